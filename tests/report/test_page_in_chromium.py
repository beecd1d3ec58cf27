"""The page in a real browser: from disk, with the network off."""

import shutil
import subprocess
import sys
import time
import zlib

import numpy as np
import pytest
from tests.small_runs import Waves, matches, run, task_of, texts

from ice_eval.models.toy import Toy
from ice_eval.report import write_html
from ice_eval.report.browser import BUDGET, run_record

SCRIPT = "<script>alert('never')</script> & \"quoted\" 'words' go here"
EMOJI = "so 😀 good 👩‍👩‍👧 today and \u2028 tomorrow 🎉"
ARABIC = "فيلم رائع جدا وممثل بارع في دور صعب"
CHINESE = "这 部 电影 非常 好看 演员 也 很 棒"
SPECIAL = (SCRIPT, EMOJI, ARABIC, CHINESE)


def hat(name, *, shift=0.0):
    """An attribution out of a hat."""
    return lambda item: (
        np.array([zlib.crc32(f"{name}{text}{item.example_id}".encode()) / 2**32 for text in item.texts]) - shift
    )


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """66 examples under two attributions and two operators; one of them takes no part."""
    plain = [{"text": text, "label": index % 2} for index, text in enumerate(texts(60))]
    special = [{"text": text, "id": f"special-{index}", "label": 0} for index, text in enumerate(SPECIAL)]
    rows = [{"id": f"row {index}", **row} for index, row in enumerate([*plain, {"text": "alone"}])]
    odd = {"id": "</script>&=#é", "text": "an odd name of some words and more"}
    return run(
        task_of([*special, *rows, odd], language="sv"),
        model=Waves(), attributions={"signed": hat("a", shift=0.5), "<b>other</b>": hat("b")},
        operators=["delete", "mask-unk"], directions=["sufficiency", "necessity"], m=12,
        out=tmp_path_factory.mktemp("page") / "run",
    )  # fmt: skip


@pytest.fixture(scope="module")
def address(found):
    return found.report().resolve().as_uri()


@pytest.fixture(scope="module")
def bare(found, tmp_path_factory):
    """The same page without figures: it opens faster, and what is tested on it needs none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "vl_convert", None)
        return write_html([found.folder], tmp_path_factory.mktemp("bare") / "page.html").as_uri()


def ids(page):
    return page.eval_on_selector_all("#list button", "buttons => buttons.map(b => b.dataset.id)")


def chosen(page):
    return page.locator("#detail h3 bdi").text_content()


def text_of(page):
    return page.locator("#detail .text").text_content()


def expected(found, attribution="signed", operator="delete", **where):
    where = {"attribution": attribution, "operator": operator, "direction": "sufficiency", **where}
    lines = [line for line in found.folder.examples() if matches(line, where)]
    return {line.example_id: line for line in lines}


def test_figures_are_drawn_without_a_network(opened, address):
    page = opened(address, drawn=True)
    boxes = page.locator("[data-figure]")
    assert boxes.count() >= 1
    for box in boxes.all():
        title = box.locator("xpath=../h3").text_content()
        assert (box.get_attribute("role"), box.get_attribute("aria-label")) == ("region", title)
        assert box.locator("[role=graphics-document]").first.get_attribute("aria-label") == title
        marks = box.locator("svg .mark-rect path, svg .mark-symbol path, svg .mark-line path, svg .mark-bar path")
        assert marks.count() > 0
        before = box.screenshot()
        box.evaluate("box => box.firstElementChild.style.visibility = 'hidden'")
        assert box.screenshot() != before  # there were pixels to hide


def test_what_a_figure_says_of_a_mark_is_text(opened, address):
    page = opened(address, drawn=True)
    told = set()
    for mark in page.locator("[data-figure] .mark-symbol.role-mark path").all()[:4]:
        page.mouse.move(0, 0)  # what was told of the last mark may lie over this one
        mark.hover(force=True)
        told.add(page.locator("#vg-tooltip-element.visible").text_content())
    assert any("<b>other</b>" in text for text in told)
    assert page.locator("#vg-tooltip-element b").count() == 0


def test_texts_are_shown_to_the_letter(opened, bare):
    page = opened(bare)
    for place, text in enumerate(SPECIAL):
        page.click(f"#list button[data-id=special-{place}]")
        assert chosen(page) == f"special-{place}"
        assert text_of(page) == text
        direction = page.locator("#detail .text").evaluate("node => getComputedStyle(node).direction")
        assert direction == ("rtl" if text == ARABIC else "ltr")
        assert page.locator("#detail .text").get_attribute("lang") == "sv"
        assert page.locator(".stack").last.evaluate("node => getComputedStyle(node).direction") == direction
        # Nothing of it has become an element: pieces are spans, those of the rationale are strong.
        assert page.locator("#detail .text :not(span.unit):not(strong.unit)").count() == 0


def test_an_example_has_its_rationale_nulls_and_counterfactuals(opened, found, bare):
    page = opened(f"{bare}#example=row+3")
    line = expected(found)["row 3"]
    units = page.locator("#detail .text .unit")
    outlined = [index for index in range(units.count()) if "rationale" in units.nth(index).get_attribute("class")]
    assert outlined == list(line.rationale)
    strips = page.locator("#detail .strip")
    assert strips.locator("h5").all_text_contents() == ["Under delete", "Under mask-unk"]
    first = strips.first
    assert f"Beats {100 * line.win_rate:.0f} % of {line.m} random sets" in first.locator(".outcome").text_content()
    assert first.locator("svg.null .bar").count() == line.m and first.locator("svg.null .own").count() == 1
    words = units.all_text_contents()
    kept = page.locator("[data-method=signed] .kept").all_text_contents()
    assert kept == [words[index] for index in line.rationale]
    removed = page.locator("[data-method=signed] .gone").all_text_contents()
    assert removed == [word for index, word in enumerate(words) if index not in line.rationale]
    page.select_option("[name=operator]", "mask-unk")
    filled = page.locator("[data-method=signed] .filled").all_text_contents()
    assert filled == ["<unk>"] * len(removed) and page.locator("#stack tbody .gone").count() == 0


def test_sets_that_tie_are_not_said_to_be_beaten(opened, tmp_path):
    """The toy knows none of the words, so that every set scores the same."""
    runs = [
        run(texts(2), model=Toy(), m=5, protocol=protocol, out=tmp_path / protocol) for protocol in ("default", "paper")
    ]
    page = opened(write_html([each.folder for each in runs], tmp_path / "ties.html").as_uri())
    said = lambda: page.locator("#detail .outcome").text_content().partition(". ")[2]  # noqa: E731
    assert said().startswith("Wins against 50 % of 5 random sets, ties counted half (100 % tie); p = ")
    middle = "bars => [...new Set(bars.map(b => b.getBBox()).map(b => b.x + b.width / 2))]"
    [of_all_sets] = page.locator("svg.null").first.locator(".bar").evaluate_all(middle)
    of_rationale = float(page.locator("svg.null .own line").first.get_attribute("x1"))
    assert of_rationale == pytest.approx(of_all_sets, abs=0.01), "neither better than the sets nor worse"
    page.select_option("#choose-run", "1")
    assert said().startswith("Beats 0 % of 5 random sets, ties counted as lost (100 % tie); p = ")


def test_filters_find_what_they_say(opened, found, bare):
    page = opened(bare)
    lines = expected(found)
    scored = {name: line for name, line in lines.items() if line.error is None}
    agreement = found.folder.summary().agreement
    [named] = [each.disagree for each in agreement if each.attribution == "signed" and each.direction == "sufficiency"]
    wanted = {
        "skipped": set(lines) - set(scored),
        "anti": {name for name, line in scored.items() if line.win_rate < 0.5},
        "disagree": set(named),
        "weak_signal": {name for name, line in scored.items() if "weak_signal" in line.flags},
        "wrong": {n for n, line in scored.items() if line.gold is not None and line.gold != line.target},
    }
    for name, names in wanted.items():
        page.select_option("[name=filter]", name)
        assert set(ids(page)) == names and names, name
        assert page.locator("#count").text_content().startswith(f"{len(names)} example")
    page.select_option("[name=filter]", "all")
    assert page.locator("#count").text_content() == "66 examples"


def test_orders_and_pages(opened, found, bare):
    page = opened(bare)
    lines = expected(found, direction="necessity", operator="mask-unk")
    assert len(ids(page)) == 50 and page.locator("#page-of").text_content() == "1 of 2"
    page.click("#page-on")
    assert len(ids(page)) == 16
    page.select_option("[name=operator]", "mask-unk")
    page.select_option("[name=direction]", "necessity")
    page.select_option("[name=sort]", "low")
    rates = [2 if lines[name].error else lines[name].win_rate for name in ids(page)]
    assert rates == sorted(rates) and chosen(page) == ids(page)[0]
    taken = page.locator("[data-method=signed] .filled").count()
    assert taken == len(lines[chosen(page)].rationale), "they are removed, and all others kept"


def test_words_are_searched_for(opened, bare):
    page = opened(bare)
    page.fill("[name=query]", "ALERT('NEVER')")
    assert ids(page) == ["special-0"] == [chosen(page)]
    page.fill("[name=query]", "电影")
    assert ids(page) == ["special-3"]
    page.fill("[name=query]", "no such words")
    assert ids(page) == [] and "No example fits" in page.locator("#detail").text_content()


def test_keys_move_search_and_help(opened, bare):
    page = opened(f"{bare}#example=special-0")
    names = ids(page)
    for key, place in (("j", 1), ("j", 2), ("k", 1)):
        page.keyboard.press(key)
        assert chosen(page) == names[place]
    page.locator(f'#list button[data-id="{names[1]}"]').focus()
    page.keyboard.press("ArrowDown")
    assert chosen(page) == names[2]
    assert page.evaluate("document.activeElement.dataset.id") == names[2]
    page.keyboard.press("a")
    assert page.locator("[name=attribution]").input_value() == "<b>other</b>"
    page.keyboard.press("/")
    page.keyboard.type("jk?")  # letters are letters while somebody types
    assert page.locator("[name=query]").input_value() == "jk?" and not page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#help").is_visible()


def test_the_keyboard_keeps_its_place_in_the_list_and_the_pager(opened, bare):
    page = opened(bare)
    names = ids(page)
    page.locator(f'#list button[data-id="{names[3]}"]').focus()
    page.keyboard.press("Enter")
    assert chosen(page) == names[3] and page.evaluate("document.activeElement.dataset.id") == names[3]
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.dataset.id") == names[4]
    page.locator("#page-on").focus()
    for _ in range(2):  # there are two pages: the second time there is no further one
        page.keyboard.press("Enter")
        assert page.locator("#page-of").text_content() == "2 of 2"
        assert page.evaluate("document.activeElement.id") == "page-on"
    assert page.locator("#page-on").get_attribute("aria-disabled") == "true"
    page.keyboard.press("j")  # nobody is in the list: the focus stays
    assert page.evaluate("document.activeElement.id") == "page-on"


def test_links_open_their_example(opened, bare):
    page = opened(bare)
    page.locator("#page-on").click()
    page.locator("#list button", has_text="an odd name").click()
    linked = opened(page.url)
    assert chosen(linked) == "</script>&=#é" and linked.locator("#list [aria-current]").count() == 1
    linked.evaluate("location.hash = 'example=row 7'")
    linked.wait_for_function("document.querySelector('#detail h3 bdi').textContent === 'row 7'")
    missing = opened(f"{bare}#example=nobody")
    assert missing.locator("#count").text_content() == "Example nobody is not in this file."


LUMINANCE = """() => {
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  // Painting the colours over one another gives what the eye sees, whatever their notation.
  const seen = (colours) => {
    context.clearRect(0, 0, 1, 1);
    for (const colour of colours) { context.fillStyle = colour; context.fillRect(0, 0, 1, 1); }
    return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const box = node.parentElement;
    if (!node.textContent.trim() || !box.checkVisibility()) continue;
    if (box.closest("svg, script, style, :disabled, option")) continue;
    const grounds = [];
    for (let at = box; at; at = at.parentElement) grounds.unshift(getComputedStyle(at).backgroundColor);
    const ground = seen(["white", ...grounds]);
    const [a, b] = [light(ground), light(seen([`rgb(${ground})`, getComputedStyle(box).color]))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) faint.push([node.textContent.trim().slice(0, 40), (a + 0.05) / (b + 0.05)]);
  }
  return faint;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read_in_light_and_dark(opened, address, scheme):
    page = opened(address, drawn=True, color_scheme=scheme)
    assert page.locator("html").get_attribute("data-drawn") == scheme
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 28)"
    assert dark == (scheme == "dark")
    assert page.evaluate(LUMINANCE) == []


def test_the_reader_chooses_light_or_dark(opened, address):
    page = opened(address, drawn=True, color_scheme="light")
    assert page.locator("#theme").text_content() == "Dark"
    page.click("#theme")
    page.wait_for_selector("html[data-drawn=dark]")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 28)"
    page.click("#theme")
    page.wait_for_selector("html[data-drawn=light]")


@pytest.mark.parametrize("width", [375, 1280])
def test_nothing_hangs_over_the_edge(opened, address, width):
    page = opened(address, drawn=True, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    table = page.locator("#tables .wide").first
    wide = table.evaluate("box => box.scrollWidth > box.clientWidth")
    assert wide == (width == 375)


def test_figures_use_the_width_and_hide_no_panel(opened, address):
    page = opened(address, drawn=True, width=1400)
    figures = page.locator("#figures figure")
    widths = figures.evaluate_all(
        "all => all.map(each => each.querySelector('.drawing svg').getBoundingClientRect().width)"
    )
    assert max(widths) > 700
    assert figures.locator(".drawing").evaluate_all("all => all.every(box => box.scrollWidth <= box.clientWidth)")


def test_a_shade_says_that_a_table_goes_on_below(opened, bare):
    page = opened(bare, width=1400)
    box = page.locator("#tables .wide").first
    # With four columns the table is narrower than its box.
    box.evaluate("box => box.querySelectorAll(':is(td, th):nth-child(n + 5)').forEach(cell => cell.remove())")
    box.evaluate("box => { box.style.maxHeight = '9rem'; box.scrollIntoView(); scrollBy(0, -200); }")
    place = box.bounding_box()

    def pixel(from_bottom):
        """Right of the table, where its box is empty."""
        at = {"x": place["x"] + place["width"] - 100, "y": place["y"] + place["height"] - from_bottom}
        return page.screenshot(clip={**at, "width": 1, "height": 1})

    assert pixel(3) != pixel(60)
    box.evaluate("box => { box.scrollTop = box.scrollHeight; }")
    assert pixel(3) == pixel(60)


def test_controls_have_names_and_ids_are_unique(opened, address):
    page = opened(address, drawn=True)
    for name in ("Attribution", "Operator", "Direction", "Show", "Order", "Search"):
        assert page.locator("#controls").get_by_label(name).is_visible(), name
    unnamed = "nodes => nodes.filter(n => !n.textContent.trim() && !n.getAttribute('aria-label')).length"
    assert page.eval_on_selector_all("button, a", unnamed) == 0
    every = page.eval_on_selector_all("[id]", "nodes => nodes.map(n => n.id)")
    assert len(set(every)) == len(every)
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_paper_shows_every_section_and_the_chosen_example(opened, address):
    page = opened(f"{address}#example=row+3", drawn=True, color_scheme="dark")
    page.emulate_media(media="print")
    for name in ("verdict", "notes", "figures", "tables", "examples", "provenance"):
        assert page.locator(f"#{name}").is_visible()
    assert page.locator("#detail .stack").first.is_visible() and page.locator("#detail .strip").first.is_visible()
    assert not page.locator("nav").is_visible() and not page.locator("#list").is_visible()
    assert page.locator("#tables .wide").first.evaluate("box => getComputedStyle(box).overflowX") == "visible"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    # Light words of figures stay readable until they are drawn again, and they are.
    assert page.locator(".drawing").first.evaluate("box => getComputedStyle(box).backgroundColor") == "rgb(20, 23, 28)"
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.wait_for_selector("html[data-drawn=light]")


def test_several_runs_are_browsed_by_run(opened, found, tmp_path):
    short = run(texts(3, seed=5), model=Waves(), m=5, out=tmp_path / "short")
    page = opened(write_html([found.folder, short.folder], tmp_path / "both.html").as_uri() + "#example=2&run=1")
    assert chosen(page) == "2" and page.locator("#count").text_content() == "3 examples"
    page.select_option("[name=run]", "0")
    assert page.locator("#count").text_content() == "66 examples"
    assert chosen(page) == run_record(found.folder, budget=BUDGET)["opens"], "the most telling one"


def test_scripts_that_are_not_the_pages_own_do_not_run(chromium, address):
    page = chromium.new_context().new_page()
    refused = []
    page.on("console", lambda message: refused.append(message.text))
    page.goto(address)
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.ran = true'}))"
    )
    assert page.evaluate("window.ran") is None
    assert any("Content Security Policy" in text for text in refused)
    page.context.close()


@pytest.mark.slow
def test_two_thousand_examples_open_and_filter_in_a_second(opened, tmp_path):
    found = run(texts(2000, words=(6, 9)), model=Waves(), operators=["delete", "mask-unk"], n=2000, m=8)
    path = write_html([found.folder], tmp_path / "large.html")
    assert path.stat().st_size < 5_000_000
    began = time.monotonic()
    page = opened(path.as_uri())
    assert time.monotonic() - began < 3
    assert page.locator("#count").text_content() == "2,000 examples"
    for name, value in (("filter", "anti"), ("sort", "gap"), ("filter", "all"), ("operator", "mask-unk")):
        began = time.monotonic()
        page.select_option(f"[name={name}]", value)
        assert ids(page)
        assert time.monotonic() - began < 1


def test_printed_pages_have_numbers_and_the_hash(opened, found, address, tmp_path):
    program = shutil.which("pdftotext")
    if program is None:
        pytest.skip("needs pdftotext of poppler")
    page = opened(address, drawn=True)
    page.pdf(path=tmp_path / "page.pdf", prefer_css_page_size=True)
    done = subprocess.run([program, "-layout", tmp_path / "page.pdf", "-"], capture_output=True, check=True, text=True)
    pages = done.stdout.split("\f")[:-1]
    for number, text in enumerate(pages, start=1):
        last = " ".join(text.split()[-6:])
        assert last == f"configuration {found.folder.manifest().config_hash} page {number} of {len(pages)}"


def test_a_late_event_of_an_earlier_address_changes_nothing(opened, bare):
    page = opened(bare)
    page.locator("#list button").nth(2).click()
    page.locator(".text .pick").nth(1).focus()
    page.evaluate("dispatchEvent(new HashChangeEvent('hashchange'))")
    assert page.evaluate("document.activeElement.className").startswith("unit"), "the text is not drawn anew"


def test_the_attribution_is_the_colour_behind_a_word(opened, bare):
    page = opened(bare)
    colours = page.locator(".text .pick").evaluate_all("all => all.map(each => getComputedStyle(each).backgroundColor)")
    assert len(set(colours)) > 2
