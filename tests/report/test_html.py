import html
import json
import re
from html.parser import HTMLParser

import pytest

import ice_eval
from ice_eval.models.toy import Toy
from ice_eval.report import summary_html, write_html
from ice_eval.tasks import Records, Task

SCRIPT = "<script>alert('{}')</script>"
TEXTS = ["a good film with no flaw", "an awful film with no point", "great fun & games", "a dull mess in a box"]


class Page(HTMLParser):
    """Tags with their attributes, and the text between them."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text.append(data)

    def names(self):
        return {tag for tag, _ in self.tags}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A run in which every name that a user may choose holds markup."""
    toy = Toy()
    toy.name = SCRIPT.format("model")
    task = Task(
        data=Records([{"text": text, "label": index % 2} for index, text in enumerate(TEXTS)]),
        prompt=f"{SCRIPT.format('prompt')} {{text}}\nSentiment:",
        label_words={"<b>bad</b>": " bad", "<img src=x onerror=y>": " good"},
        name=SCRIPT.format("task"),
    )
    attribution = SCRIPT.format("attribution")
    return ice_eval.evaluate(
        toy, task, attributions={attribution: lambda item: range(item.n_units)}, n=4, m=5,
        out=tmp_path_factory.mktemp("run") / "run",
    )  # fmt: skip


@pytest.fixture(scope="module")
def hostile_page(hostile):
    return hostile.report().read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "given",
    [
        *(SCRIPT.format(name) for name in ("model", "task", "prompt", "attribution")),
        "<b>bad</b>",
        "<img src=x onerror=y>",
    ],
)
def test_what_a_user_named_is_text_and_never_markup(hostile_page, given):
    assert given not in hostile_page
    assert given in "".join(Page(hostile_page).text)


def test_the_page_has_no_tag_but_its_own(hostile_page):
    assert not Page(hostile_page).names() & {"script", "img", "b", "iframe", "link", "object", "embed"}
    assert not any(name.startswith("on") for _, attributes in Page(hostile_page).tags for name in attributes)


def test_the_table_of_a_notebook_escapes_names_too(hostile):
    text = summary_html(hostile.folder)
    assert SCRIPT.format("attribution") not in text
    assert SCRIPT.format("attribution") in html.unescape(text)
    assert hostile._repr_html_() == text


def test_the_page_needs_nothing_from_elsewhere(hostile_page):
    assert not re.search(r"https?:|//\w|url\(|@import", hostile_page)
    assert not any({"src", "href"} & set(attributes) for _, attributes in Page(hostile_page).tags)


def test_the_page_holds_the_numbers_of_the_summary(hostile, hostile_page):
    rows = hostile.summary()
    assert "Faithfulness" in hostile_page and "Operator agreement" in hostile_page
    for rate in rows.win_rate:
        assert f"<td>{100 * rate:.1f} %</td>" in hostile_page
    assert f"ice-eval {ice_eval.__version__}" in hostile_page


def test_the_page_tells_how_it_was_made(hostile, hostile_page):
    manifest = hostile.folder.manifest()
    assert f"{manifest['rows']} rows, {manifest['forwards']} forward passes" in hostile_page
    assert manifest["identity"]["weights"] in hostile_page
    assert "m = 5, seed = 0" in hostile_page


@pytest.fixture
def edited(hostile):
    """Changes of every configuration -> the page of the run with them."""
    path = hostile.path / "summary.json"
    before = path.read_bytes()

    def page(target, **changes):
        summary = json.loads(before)
        for line in summary["configurations"]:
            line.update(changes)
        path.write_text(json.dumps(summary), encoding="utf-8")
        return write_html([hostile.folder], target).read_text(encoding="utf-8")

    yield page
    path.write_bytes(before)


def test_values_that_are_undefined_read_as_a_dash(edited, tmp_path):
    names = ("win_rate", "win_rate_ci", "effect_size_median", "p_value", "verdict", "accuracy", "detectable_win_rate")
    text = edited(tmp_path / "page.html", **dict.fromkeys(names))
    assert text.count("<td>–</td>") >= 5
    assert "None" not in text and "nan" not in text


def test_a_flag_is_explained_on_the_page(edited, tmp_path):
    text = edited(tmp_path / "page.html", flags=["small_n", "<b>odd</b>"])
    assert "small_n: fewer than 50 examples" in text
    assert "<b>odd</b>" not in text and "&lt;b&gt;odd&lt;/b&gt;" in text


def test_several_runs_share_a_page(hostile, tmp_path):
    text = write_html([hostile.folder, hostile.folder], tmp_path / "new" / "folder" / "both.html").read_text("utf-8")
    assert text.count("<section>") == 2


def test_nothing_but_the_page_is_left_behind(hostile, tmp_path):
    write_html([hostile.folder], tmp_path / "page.html")
    write_html([hostile.folder], tmp_path / "page.html")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
