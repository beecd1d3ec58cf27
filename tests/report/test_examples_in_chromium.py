"""The example browser in a real browser: the whole view in a link, sets of one's own, random sets, pictures, keys."""

import itertools
import math
import re

import pytest
from tests import axe
from tests.report.test_browser import cells, sets_of
from tests.report.test_page_in_chromium import hat
from tests.small_runs import Waves, matches, picks, run, task_of, texts

from ice_eval.models.toy import Toy
from ice_eval.report import write_html
from ice_eval.report.browser import BUDGET, run_record

PROTOCOLS = {
    "default": "wins against 50 % of {} random sets, ties counted half (100 % tie)",
    "paper": "beats 0 % of {} random sets, ties counted as lost (100 % tie)",
}
MARKUP = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    rows = [{"text": text, "label": index % 2, "id": f"row {index}"} for index, text in enumerate(texts(20))]
    odd = {"id": MARKUP, "text": f"{MARKUP} <b>some</b> more words of a text", "label": 1}
    return run(
        task_of([*rows, odd]),
        model=Waves(), attributions={"signed": hat("a", shift=0.5), MARKUP: hat("b")}, operators=["delete", "mask-unk"],
        directions=["sufficiency", "necessity"], k=(0.2, 0.4), m=15, out=tmp_path_factory.mktemp("run") / "run",
    )  # fmt: skip


@pytest.fixture(scope="module")
def record(found):
    return run_record(found.folder, budget=BUDGET)


@pytest.fixture(scope="module")
def address(found):
    return found.report().resolve().as_uri()


def view(page):
    """Everything that a link must bring back."""
    return page.evaluate("""() => ({
      id: document.querySelector("#detail h3 bdi").textContent,
      set: [...document.querySelectorAll(".text .pick[aria-pressed=true]")].map(each => each.dataset.unit),
      found: [...document.querySelectorAll("#list button")].map(each => each.dataset.id),
      ...Object.fromEntries(new FormData(document.getElementById("controls"))),
    })""")  # fmt: skip


def go(page, **view):
    page.evaluate("view => { location.hash = new URLSearchParams(view); }", view)
    page.wait_for_function("id => document.querySelector('#detail h3 bdi').textContent === id", arg=view["example"])


def test_a_link_holds_the_whole_view(opened, address):
    page = opened(address)
    for name, value in (("attribution", MARKUP), ("operator", "mask-unk"), ("direction", "necessity"), ("k", "0.4"),
                        ("filter", "anti"), ("sort", "low")):  # fmt: skip
        page.select_option(f"[name={name}]", value)
    page.fill("[name=query]", "ROW 1")
    page.locator("#list button").nth(1).click()
    page.locator(".text .pick").nth(3).click()
    page.locator(".text .pick").nth(1).click()
    before = view(page)
    assert before["set"] == ["1", "3"] and len(before["found"]) > 1
    again = opened(page.url)
    assert view(again) == before
    assert again.locator("#own").text_content() == page.locator("#own").text_content()
    go(page, example="row 7")
    plain = view(page)
    assert (plain["k"], plain["query"], plain["filter"], plain["set"]) == ("0.2", "", "all", [])


def test_the_page_opens_with_the_method_that_is_furthest_ahead_in_its_example(opened, address, found, record):
    worst = dict[str, float]()
    for line in found.folder.examples():
        first = (line.direction, line.k, line.example_id) == ("sufficiency", 0.2, record["opens"])
        if first and line.operator != "all":
            worst[line.attribution] = min(line.win_rate, worst.get(line.attribution, 1.0))
    assert len({*worst.values()}) == 2
    shown = view(opened(address))
    assert (shown["id"], shown["attribution"]) == (record["opens"], max(worst, key=worst.get))


@pytest.mark.parametrize("hash_", ["example=row+3&set=1.99.x.-2.1", "example=row+3&k=7&operator=nosuch&sort=%3Cb%3E"])
def test_what_a_link_cannot_mean_is_left_out(opened, address, hash_):
    page = opened(f"{address}#{hash_}")
    found = view(page)
    assert (found["id"], found["operator"], found["k"]) == ("row 3", "delete", "0.2")
    assert found["set"] in ([], ["1"])


def test_the_link_and_the_picture_are_copied(opened, address):
    page = opened(f"{address}#example=row+3", permissions=["clipboard-read", "clipboard-write"])
    page.locator(".text .pick").first.click()
    page.get_by_role("button", name="Copy link").click()
    page.get_by_text("Link copied.").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == page.url and page.url.endswith("&set=0")
    page.get_by_role("button", name="Copy image").click()
    page.get_by_text("Image copied.").wait_for()
    kinds = page.evaluate("navigator.clipboard.read().then(([item]) => item.types)")
    assert kinds == ["image/png"]


@pytest.mark.parametrize("example", ["row 3", MARKUP])
def test_a_picture_is_saved_where_there_is_no_clipboard(opened, address, example):
    page = opened(address)
    go(page, example=example, operator="mask-unk", set="0.2")
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    with page.expect_download() as download:
        page.get_by_role("button", name="Copy image").click()
    content = download.value.path().read_bytes()
    assert content.startswith(b"\x89PNG") and download.value.suggested_filename.endswith(".png")
    width, height = (int.from_bytes(content[at : at + 4], "big") for at in (16, 20))
    assert width == 2080 and 600 < height < 4000 and len(content) > 20_000


def slow_neighbour(record, example, own, operator, *, k):
    """The recorded set of the greatest overlap by plain loops: its units, score and win rate."""
    wanted = [
        (place, cell) for place, cell in cells(record, example)
        if place["operator"] == operator and place["direction"] == "sufficiency"
    ]  # fmt: skip
    wanted.sort(key=lambda each: (each[0]["attribution"] != "signed", each[0]["k"] != k) != (False, False))
    best = None
    for place, cell in wanted:
        null, sets = example["nulls"][cell["null"]], sets_of(example, cell)
        size = "" if place["k"] == k else f" (size: top {100 * place['k']:.0f} %)"
        name = f"the rationale of {place['attribution']}{size}"
        found = [(set(example["rationales"][cell["rationale"]]), cell["score"], cell["win_rate"], name)]
        for at, (number, units) in enumerate(sets):
            others = [score for other, score in enumerate(null) if other != at]
            beaten = sum(1.0 if null[at] > score else 0.5 if null[at] == score else 0.0 for score in others)
            found.append((set(units), null[at], beaten / len(others), f"random set {number + 1}{size}"))
        for each in found:
            shared = len(each[0] & own) / len(each[0] | own)
            if best is None or shared > best[0]:
                best = (shared, *each)
    return best


def percent(thousandths):
    """A score as the page writes it: more digits near 0 and 1."""
    p = 1 / (1 + math.exp(-thousandths / 1000))
    return f"{100 * p:.{2 if p > 0.99 or p < 0.01 else 1 if p > 0.95 or p < 0.05 else 0}f}"


@pytest.mark.parametrize("k", [0.2, 0.4])
def test_a_set_of_ones_own_has_its_nearest_recorded_neighbour(opened, address, record, k):
    example = next(each for each in record["examples"] if each["id"] == "row 5")
    page = opened(f"{address}#example=row+5&k={k}")
    units = page.locator(".text .pick")
    for own in ((0,), (1, 4), (0, 3, 7), (2, 5, 6, 8)):
        for unit in range(units.count()):
            if (units.nth(unit).get_attribute("aria-pressed") == "true") != (unit in own):
                units.nth(unit).click()
        said = page.locator("#own li").all_text_contents()
        for operator, line in zip(("delete", "mask-unk"), said, strict=True):
            share, found, score, rate, name = slow_neighbour(record, example, set(own), operator, k=k)
            counts = f"{len(found & set(own))} shared, {len(found)} in all, overlap {100 * share:.0f} %"
            how = (
                f"this very set was scored: it is {name};"
                if share == 1
                else f"the nearest recorded set is {name} ({counts}):"
            )
            assert line.startswith(f"Under {operator}, {how} score {percent(score)} %, beats {100 * rate:.0f} % of ")
        not_own = "the neighbour was scored, not your own set" in page.locator("#own").inner_text()
        assert not_own == any("nearest" in each for each in said)
        assert page.locator("#nulls .strip", has_text="◆").count() == 2
    row = page.locator("#stack tr.mine .kept").all_text_contents()
    assert row == [units.nth(unit).text_content() for unit in (2, 5, 6, 8)]


def test_a_set_that_was_recorded_is_said_to_be(opened, address, record):
    example = next(each for each in record["examples"] if each["id"] == "row 5")
    place, cell = next((place, cell) for place, cell in cells(record, example) if place["operator"] == "delete")
    number, units = sets_of(example, cell)[3]
    page = opened(f"{address}#example=row+5&set={'.'.join(map(str, units))}")
    assert f"this very set was scored: it is random set {number + 1};" in page.locator("#own li").first.text_content()
    said = ", ".join(page.locator(".text .pick").nth(unit).text_content() for unit in units)
    lines = "".join(page.locator("#own li").all_text_contents())
    assert page.locator("#own").text_content() == f"◆ Your own rationale: {said} Clear{lines}", "and nothing else"
    page.get_by_role("button", name="Clear").click()
    assert view(page)["set"] == [] and page.url.endswith("#example=row+5")


def test_a_recorded_set_of_another_setting_says_its_size_and_null(opened, tmp_path):
    methods = {name: picks(name) for name in ("mine", "yours")}
    settings = {"k": (0.2, "dynamic"), "nulls": ("size", "contiguity"), "m": 20}
    done = run(texts(1, words=(24, 24)), model=Waves(), attributions=methods, out=tmp_path / "run", **settings)
    record = run_record(done.folder, budget=BUDGET)
    [example] = record["examples"]
    size, null = "size: its peaks", "null: matched by contiguity"
    said = {
        ("0.2", "size"): "", ("0.2", "contiguity"): f" ({null})",
        ("dynamic", "size"): f" ({size})", ("dynamic", "contiguity"): f" ({size}, {null})",
    }  # fmt: skip
    first, wanted = dict[tuple[int, ...], str](), dict[str, tuple[int, ...]]()
    for place, cell in cells(record, example):
        name, setting = place["attribution"], (str(place["k"]), place["null"])
        owner = "" if name == "mine" or setting == ("0.2", "size") else f" of {name}"
        sets = [(f"the rationale of {name}", example["rationales"][cell["rationale"]])]
        sets += [(f"random set {number + 1}{owner}", units) for number, units in sets_of(example, cell)]
        for words, units in sets:
            if first.setdefault(tuple(units), words + said[setting]) == words + said[setting]:
                wanted.setdefault(re.sub(r" \d+", "", first[tuple(units)]), tuple(units))
    assert len(wanted) == 10, "four rationales, random sets of every setting, and those of the other method"
    assert sum(each.startswith("random set of yours (size: its peaks") for each in wanted) == 2
    page = opened(done.report().resolve().as_uri())
    for units in wanted.values():
        go(page, example=example["id"], set=".".join(map(str, units)))
        page.wait_for_function("n => document.querySelectorAll('.text .picked').length === n", arg=len(units))
        assert f"this very set was scored: it is {first[units]}; score" in page.locator("#own li").text_content()


def test_a_recorded_set_that_ties_is_not_said_to_beat_others(opened, tmp_path):
    """The toy knows none of the words, so that every set scores the same."""
    folders = [run(texts(2), model=Toy(), m=5, protocol=each, out=tmp_path / each).folder for each in PROTOCOLS]
    page = opened(write_html(folders, tmp_path / "ties.html").as_uri())
    for at, (folder, said) in enumerate(zip(folders, PROTOCOLS.values(), strict=True)):
        [example, _] = run_record(folder, budget=BUDGET)["examples"]
        _, cell = next(cells(run_record(folder, budget=BUDGET), example))
        for n, units in ((5, example["rationales"][cell["rationale"]]), (4, sets_of(example, cell)[2][1])):
            go(page, run=str(at), example=example["id"], set=".".join(map(str, units)))
            page.locator("#own li", has_text=f" %, {said.format(n)}.").wait_for()


def test_a_random_set_shows_its_words_at_the_pointer_and_with_keys(opened, address, record):
    example = next(each for each in record["examples"] if each["id"] == "row 5")
    page = opened(f"{address}#example=row+5")
    _, cell = next(cells(record, example))
    null, sets = example["nulls"][cell["null"]], sets_of(example, cell)
    strip, drawn = page.get_by_role("slider", name="Random sets under delete, by score"), page.locator(".text .drawn")
    words = page.locator(".text .pick").all_text_contents()
    for at in (0, 7):
        number, units = sets[at]
        strip.locator(f"[data-index='{at}']").hover()
        assert drawn.all_text_contents() == [words[unit] for unit in units]
        said = page.locator("#seen").text_content()
        assert said.startswith(f"Random set {number + 1} under delete, kept: ")
        assert said.endswith(", ".join(words[unit] for unit in units))
    page.locator("#detail h3").hover()
    assert drawn.count() == 0
    strip.focus()
    by_score = sorted(range(len(null)), key=lambda at: null[at])
    for key, at in (("ArrowRight", 0), ("ArrowRight", 1), ("End", -1), ("ArrowLeft", -2), ("Home", 0)):
        page.keyboard.press(key)
        assert drawn.all_text_contents() == [words[unit] for unit in sets[by_score[at]][1]]
        assert strip.get_attribute("aria-valuetext") == page.locator("#seen").text_content()
    page.keyboard.press("Tab")
    assert drawn.count() == 0, "the next strip has the focus"


def test_operators_share_one_axis_and_every_method_has_a_mark(opened, address, record, found):
    page = opened(f"{address}#example=row+5")
    place_of = "all => all.map(g => [g.firstChild.textContent, Number(g.querySelector('line').getAttribute('x1'))])"
    marks = [strip.locator("g").evaluate_all(place_of) for strip in page.locator("#nulls .strip").all()]
    example = next(each for each in record["examples"] if each["id"] == "row 5")
    scores = {
        (place["operator"], place["attribution"]): cell["score"] for place, cell in cells(record, example)
        if place["operator"] != "all" and place["direction"] == "sufficiency" and place["k"] == 0.2
    }  # fmt: skip
    points = [
        (scores[name, method], x)
        for name, each in zip(("delete", "mask-unk"), marks, strict=True)
        for method, x in each
    ]
    assert len(points) == 4
    for (one, left), (other, right) in itertools.combinations(sorted(points), 2):
        assert left <= right
        (low, first), *_, (high, last) = sorted(points)
        assert (right - left) == pytest.approx((other - one) * (last - first) / (high - low), abs=0.1)


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(opened, address, width, scheme):
    page = opened(f"{address}#example=row+5&set=1.2", width=width, color_scheme=scheme, drawn=True, bypass_csp=True)
    assert axe.violations(page) == []


def test_the_browser_is_used_with_the_keyboard_alone(opened, address, found):
    page = opened(f"{address}#example=row+5")
    stops = page.locator("#browser :is(a, button, select, input, [tabindex])").evaluate_all("""all => all
      .filter(each => each.tabIndex >= 0 && each.checkVisibility())
      .map(each => each.closest("#detail, #list, #controls")?.id ?? "")""")
    assert stops.count("list") == 1, "one stop for the whole list"
    page.locator("#browser .skip").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Copy link"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.dataset.unit") == "0", "one stop for all words"
    for key in ("Space", "ArrowRight", "ArrowRight", "Space"):
        page.keyboard.press(key)
    assert view(page)["set"] == ["0", "2"] and page.evaluate("document.activeElement.dataset.unit") == "2"
    page.keyboard.press("j")
    assert view(page)["id"] == "row 6" and view(page)["set"] == [], "a set is of one text"
    page.locator(".text .pick").first.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    assert view(page)["set"] == []


def test_the_page_opens_with_the_most_telling_example(opened, address, record):
    page = opened(address)
    assert view(page)["id"] == record["opens"] and "#" not in page.url
    assert page.locator("#list [aria-current] .id").text_content() == record["opens"]
    page.get_by_role("link", name="See one example").click()
    page.wait_for_function("document.querySelector('#examples').getBoundingClientRect().top < innerHeight / 2")
    assert view(page)["id"] == record["opens"]


def test_examples_in_notes_are_links_and_codes_of_flags_are_words(opened, address, found):
    page = opened(address)
    links = page.locator("#notes a")
    named = [line.disagree for line in found.folder.summary().agreement if line.disagree]
    assert named and links.count() > 0 and set(links.all_text_contents()) <= {id for ids in named for id in ids}
    link = links.last
    link.click()
    page.wait_for_function("id => document.querySelector('#detail h3 bdi').textContent === id", arg=link.text_content())
    note = page.locator("#notes li").filter(has=page.locator("a")).last.text_content()
    assert note.strip().startswith(view(page)["attribution"])
    said = page.locator("#notes").text_content()
    assert "Fewer than 50 examples" in said and "small_n" not in said and "[" not in said


def test_markup_in_every_string_stays_text(opened, address):
    page = opened(address)
    page.select_option("[name=attribution]", MARKUP)
    go(page, example=MARKUP, attribution=MARKUP, set="0.1")
    assert page.locator("#stack tbody th", has_text=MARKUP).count() >= 1
    page.get_by_role("slider").first.focus()
    page.keyboard.press("End")
    assert page.locator("#browser :is(img, script)").count() == 0
    assert page.locator("#browser b:not(.kept, #own b, #seen b, dt b)").count() == 0


def test_every_method_has_a_row_of_the_same_words(opened, address, found):
    page = opened(f"{address}#example=row+5")
    lines = [
        line
        for line in found.folder.examples()
        if matches(line, {"example_id": "row 5", "operator": "delete", "direction": "sufficiency", "k": 0.2})
    ]
    words = page.locator("#stack thead th").all_text_contents()
    assert words == page.locator(".text .pick").all_text_contents()
    for line in lines:
        row = page.locator(f'#stack [data-method="{line.attribution}"]')
        assert [word.strip() for word in row.locator("td").all_text_contents()] == words
        assert row.locator(".kept").all_text_contents() == [words[unit] for unit in line.rationale]
    assert page.locator("#stack [aria-current]").first.get_attribute("data-method") == "signed"
    left = page.locator("#stack table tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].slice(1).map(cell => Math.round(cell.getBoundingClientRect().x)))"
    )
    assert len(left) % 3 == 0  # words and two methods
    assert all(left[at : at + 3] == 3 * [left[at]] for at in range(0, len(left), 3)), (
        "the same words are one above another"
    )


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_sticks_out_at_any_width(opened, address, width, scheme):
    page = opened(f"{address}#example=row+5&set=1.2", width=width, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#stack table").evaluate_all(
        "all => all.every(each => each.getBoundingClientRect().right <= innerWidth)"
    )
