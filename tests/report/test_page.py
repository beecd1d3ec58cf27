import base64
import hashlib
import html
import json
import re
import shutil
import sys
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest
from tests.small_runs import METHODS, run, texts

import ice_eval
from ice_eval.models.toy import Toy
from ice_eval.report import page, summary_html, write_html
from ice_eval.report.browser import script_json
from ice_eval.report.comparison import comparison_page
from ice_eval.report.page import ShownExample, content_policy, drawings, script_text
from ice_eval.results import RunFolder, differences, view_example
from ice_eval.table import unbroken
from ice_eval.tasks import Records, Task

SCRIPT = "<script>alert('{}')</script>"
TEXTS = ["a good film with no flaw", "an awful film with no point", "great fun & games", "a dull mess in a box"]


class Page(HTMLParser):
    """Tags with their attributes, the text between them, and the scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.code = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        inside = self.tags and self.tags[-1][0] in {"script", "style"} and self.cdata_elem is not None
        (self.code if inside else self.text).append(data)

    def names(self):
        return {tag for tag, _ in self.tags}

    def words(self):
        return "".join(self.text)


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
    assert given in Page(hostile_page).words()


def test_the_page_has_no_tag_but_its_own(hostile_page):
    found = Page(hostile_page)
    assert not found.names() & {"img", "iframe", "link", "object", "embed", "base"}
    assert not any(name.startswith("on") for _, attributes in found.tags for name in attributes)
    kinds = [attributes.get("type") for tag, attributes in found.tags if tag == "script"]
    assert kinds == ["application/json", "module", "application/json", "module", "module"]


def test_the_table_of_a_notebook_escapes_names_too(hostile):
    text = summary_html(hostile.folder)
    assert SCRIPT.format("attribution") not in text
    assert SCRIPT.format("attribution") in html.unescape(text)
    assert hostile._repr_html_() == text


def test_the_page_needs_nothing_from_elsewhere(hostile_page):
    found = Page(hostile_page)
    assert not any("src" in attributes for _, attributes in found.tags)
    assert all(attributes.get("href", "#").startswith("#") for _, attributes in found.tags)
    style = found.code[0]
    assert "light-dark(" in style and not re.search(r"url\(|@import", style)


def test_the_page_allows_its_own_scripts_and_nothing_else(hostile_page):
    found = Page(hostile_page)
    [policy] = [attributes["content"] for tag, attributes in found.tags if "http-equiv" in attributes]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in rules["script-src"]
    scripts = re.findall(r'<script type="module">(.*?)</script>', hostile_page, flags=re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert sorted(rules["script-src"].split()) == sorted(f"'sha256-{each}'" for each in hashes)


def test_the_page_holds_the_numbers_of_the_summary(hostile, hostile_page):
    rows = hostile.summary()
    assert "Faithfulness" in hostile_page and "Operator agreement" in hostile_page
    for rate in rows.win_rate:
        assert f'<td class="number">{100 * rate:.1f} %</td>' in hostile_page
    assert f"ice-eval {ice_eval.__version__}" in hostile_page


def test_the_page_tells_how_it_was_made(hostile, hostile_page):
    manifest = hostile.folder.manifest()
    assert f"{manifest.cost.rows} rows, {manifest.cost.forwards} forward passes" in hostile_page
    assert manifest.identity["weights"] in hostile_page
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
    words = Page(text).words()
    assert not re.findall(r"\b(None|nan)\b", words)


def test_a_run_whose_examples_were_all_skipped_says_so_in_a_sentence(edited, tmp_path):
    names = ("win_rate", "win_rate_ci", "tie_rate", "verdict", "taxonomy", "detectable_win_rate")
    text = edited(tmp_path / "page.html", **dict.fromkeys(names))
    assert "No example could be evaluated." in " ".join(Page(text).words().split())


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("95 % of them", "95_% of them"),
        ("(n = 20)", "(n_=_20)"),
        ("r = +0.3, κ = 0.5", "r_=_+0.3, κ_=_0.5"),
        ("sum = 3", "sum = 3"),
    ],
)
def test_a_number_stays_on_one_line_with_its_name_and_its_percent(written, kept):
    assert unbroken(written) == kept.replace("_", "\u00a0")


def test_a_flag_is_explained_on_the_page(edited, tmp_path):
    text = edited(tmp_path / "page.html", flags=["small_n", "<b>odd</b>"])
    assert (
        "Fewer than 50 examples: the intervals assume nothing about the win rates, so they are wide."
        in Page(text).words()
    )
    assert "<b>odd</b>" not in text and "&lt;b&gt;odd&lt;/b&gt;" in text


def test_several_runs_share_a_page(hostile, tmp_path):
    text = write_html([hostile.folder, hostile.folder], tmp_path / "new" / "folder" / "both.html").read_text("utf-8")
    title = f"{SCRIPT.format('model')} on {SCRIPT.format('task')}"
    # Notes and provenance of each are folded; the matrix has every run once.
    escaped = html.escape(title, quote=True).replace("&#x27;", "&#39;")
    assert re.findall(r"<summary><bdi>(.*?)</bdi></summary>", text) == [escaped] * 2
    assert "1 runs" not in text and text.count('<table class="matrix">') == 1


def test_runs_of_one_model_and_task_have_one_name_each_everywhere(hostile, tmp_path):
    twin = shutil.copytree(hostile.folder.path, tmp_path / "twin")
    text = write_html([hostile.folder, RunFolder(twin)], tmp_path / "both.html").read_text("utf-8")
    names = [f"{SCRIPT.format('model')} ({name}) on {SCRIPT.format('task')}" for name in ("run", "twin")]
    found = Page(text)
    words = " ".join(found.words().split())
    assert f"Run 1: {names[0]}; Run 2: {names[1]}." in words
    data = next(code for code in found.code if code.startswith('{"columns"'))
    assert [each["title"] for each in json.loads(data)["runs"]] == names
    assert all(words.count(name) >= 2 for name in names)  # under the tables, and among the runs


def test_nothing_but_the_page_is_left_behind(hostile, tmp_path):
    write_html([hostile.folder], tmp_path / "page.html")
    write_html([hostile.folder], tmp_path / "page.html")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_without_the_libraries_the_page_has_no_figures_and_says_so(hostile, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    text = write_html([hostile.folder], tmp_path / "page.html").read_text(encoding="utf-8")
    found = Page(text)
    assert "No figures: 'vl_convert' is not installed" in found.words()
    assert len([tag for tag, _ in found.tags if tag == "script"]) == 2
    assert "Faithfulness" in found.words()


def test_a_large_run_keeps_the_page_small_and_says_what_is_left_out(hostile, tmp_path):
    text = write_html([hostile.folder], tmp_path / "page.html", budget=1500).read_text(encoding="utf-8")
    words = " ".join(Page(text).words().split())
    assert re.search(r"[123] of 4 examples are in this file, to keep it small", words)
    assert "ice show run --example ID" in words


NASTY = ["</script><script>alert(1)</script>", "<!--", "a & b > c", "line\u2028sep\u2029", "'\"\\", "😀 مرحبا 你好"]


def test_json_in_a_page_comes_back_as_it_was():
    assert json.loads(script_json(NASTY)) == NASTY


def test_json_in_a_page_holds_nothing_that_a_parser_looks_for():
    assert not set(script_json(NASTY)) & set("<>&\u2028\u2029")


def test_numbers_that_are_none_are_refused():
    with pytest.raises(ValueError, match="not JSON compliant"):
        script_json([float("nan")])


def test_a_script_cannot_end_its_element():
    assert script_text('x = "</script>";\r\n') == 'x = "<\\/script>";\n'
    with pytest.raises(ValueError, match="<!--"):
        script_text("<!-- old")


def test_a_policy_names_each_script_by_its_hash():
    # The hash of the empty text is well known.
    assert "script-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='; " in content_policy([""])


@pytest.fixture(scope="module")
def folder():
    return ice_eval.evaluate("toy", "demo", n=4, m=5).folder


@pytest.fixture
def bundles(monkeypatch, tmp_path):
    """A stand-in for vl-convert, whose real bundle takes seconds; it notes what it is asked for."""
    asked = []

    def javascript_bundle(snippet, vl_version):
        asked.append(vl_version)
        return f"/* {vl_version} */ {snippet}"

    monkeypatch.setitem(
        sys.modules, "vl_convert", SimpleNamespace(__version__="1.2", javascript_bundle=javascript_bundle)
    )
    monkeypatch.setenv("ICE_CACHE", str(tmp_path / "cache"))
    page._library.cache_clear()
    yield asked
    page._library.cache_clear()


def test_the_library_is_put_together_once_and_kept(folder, bundles, tmp_path):
    first = drawings([folder])
    page._library.cache_clear()  # as in another process
    assert drawings([folder]).library == first.library
    assert len(bundles) == 1
    [kept] = (tmp_path / "cache").iterdir()
    assert kept.name == f"vega-lite-{bundles[0]}-by-1.2.js"
    assert kept.read_text(encoding="utf-8") == first.library


def test_a_cache_that_cannot_be_written_costs_time_and_nothing_else(folder, bundles, tmp_path):
    (tmp_path / "cache").write_text("a file, not a folder", encoding="utf-8")
    assert "vegaEmbed" in drawings([folder]).library


def test_figures_come_with_their_captions_and_two_themes(folder, bundles):
    found = drawings([folder])
    assert found.missing == "" and set(found.themes) == {"light", "dark"}
    for figure in found.figures:
        assert set(figure) == {"name", "title", "caption", "spec"}
        assert "config" not in figure["spec"] or not figure["spec"]["config"].get("background")
    assert len({figure["name"] for figure in found.figures}) == len(found.figures) > 0


def test_versions_that_do_not_fit_cost_the_figures_and_not_the_report(folder, bundles, monkeypatch):
    def refuse(snippet, vl_version):
        raise RuntimeError("Unsupported Vega-Lite version string\n\nStack backtrace:")

    monkeypatch.setattr(sys.modules["vl_convert"], "javascript_bundle", refuse)
    found = drawings([folder])
    assert found.figures == ()
    assert "vl-convert 1.2 says: Unsupported Vega-Lite version string. Reinstall both" in found.missing


def test_without_altair_the_page_says_how_to_get_it(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    assert drawings([folder]).missing == (
        "No figures: 'altair' is not installed, and is needed to draw figures. Install it: pip install 'altair'"
    )


def test_a_name_cannot_turn_the_numbers_behind_it_and_texts_keep_their_direction(tmp_path):
    turned, text = "a\u202ename\u2066", "the film \u2067קסם\u2069 was good and long but dull at its end"
    found = run([text, *texts(5)], attributions={turned: METHODS["hat"], "random": None}, m=5, out=tmp_path / "run")
    for written in (
        write_html([found.folder], tmp_path / "page.html").read_text(encoding="utf-8"),
        comparison_page(differences(found.folder, [found.folder])),
        summary_html(found.folder),
    ):
        shown = re.sub(r"<script.*?</script>", "", written, flags=re.DOTALL)
        assert "a\ufffdname\ufffd" in shown and not re.search("[\u202a-\u202e\u2066-\u2069]", shown)
    example = ShownExample(view_example(found.folder, "0"))
    assert "\u2067קסם\u2069" in re.sub("<[^>]*>", "", example._repr_html_())
    assert f"text: {text}\n" in repr(example) and "a\ufffdname\ufffd under delete" in repr(example)
