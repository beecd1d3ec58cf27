"""Tools of tables and figures, in a real browser with the network off."""

import csv
import io

import pytest
from tests.report.test_page_in_chromium import hat
from tests.small_runs import Waves, run, task_of, texts

ODD = "=<b>1+1</b>"
"""An attribution whose name is markup, and a formula to a spreadsheet."""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    rows = [{"text": text, "label": index % 2} for index, text in enumerate(texts(12))]
    names = ("signed", ODD, "other")
    found = run(
        task_of(rows), model=Waves(), attributions={name: hat(name) for name in names},
        operators=["delete", "mask-unk"], m=12, out=tmp_path_factory.mktemp("tools") / "run",
    )  # fmt: skip
    return found.report().resolve().as_uri()


@pytest.fixture
def page(opened, address):
    return opened(address, permissions=["clipboard-read", "clipboard-write"])


def block(page, title):
    return page.locator(".wide:has(> table)", has=page.locator("caption", has_text=title)).first


def column(table, name):
    headers = table.locator("th").all_inner_texts()
    at = headers.index(name)
    return [row.split("\t")[at] for row in table.locator("tbody tr:visible").all_inner_texts()]


def test_a_header_sorts_by_value_both_ways_and_back(page):
    table = block(page, "Faithfulness")
    before = column(table, "win rate")
    header = table.locator("th", has_text="win rate")
    rates = lambda: [float(cell.removesuffix(" %")) for cell in column(table, "win rate")]  # noqa: E731
    for direction, ordered in (("descending", True), ("ascending", False)):
        header.locator("button").click()
        assert header.get_attribute("aria-sort") == direction
        assert rates() == sorted(rates(), reverse=ordered) and len(rates()) == len(before)
    header.locator("button").click()
    assert header.get_attribute("aria-sort") is None and column(table, "win rate") == before


def test_p_values_and_limits_are_sorted_as_numbers_not_as_text(page):
    block(page, "Faithfulness").evaluate("""box => {
      const body = box.firstElementChild.tBodies[0];
      const at = [...body.parentElement.tHead.rows[0].cells].findIndex(each => each.textContent === "p");
      const texts = ["0.94", "<0.0001", "–", "0.0042", "1,000", "−3"];
      texts.forEach((text, index) => { body.rows[index].cells[at].textContent = text; });
    }""")
    table = block(page, "Faithfulness")
    header = table.get_by_role("button", name="p", exact=True)
    header.click()
    header.click()
    found = [cell for cell in column(table, "p") if cell in {"−3", "<0.0001", "0.0042", "0.94", "1,000", "–"}]
    assert list(dict.fromkeys(found)) == ["−3", "<0.0001", "0.0042", "0.94", "1,000", "–"]


def test_a_table_is_sorted_with_the_keyboard_alone(page):
    table = block(page, "Faithfulness")
    first = table.locator("th button").first
    first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert table.locator("th").nth(1).get_attribute("aria-sort") == "ascending"
    stops = table.locator("th button").evaluate_all("all => all.map(each => each.tabIndex)")
    assert sorted(stops) == [-1] * (len(stops) - 1) + [0] and stops[1] == 0


def test_a_filter_keeps_rows_that_hold_all_words(page):
    table = block(page, "Faithfulness")
    total = table.locator("tbody tr").count()
    page.get_by_label("Filter: Faithfulness").fill("signed DELETE")
    assert table.locator("tbody tr:visible").count() == 1 < total
    assert page.get_by_role("status").filter(has_text=f"1 of {total} rows").count() == 1
    page.get_by_label("Filter: Faithfulness").fill("")
    assert table.locator("tbody tr:visible").count() == total


def test_only_long_tables_have_a_filter(page):
    sizes = page.locator(".wide > table").evaluate_all("""tables => tables.map(table => [
      table.tBodies[0].rows.length, Boolean(table.parentElement.previousElementSibling.querySelector("input"))])""")
    assert {(rows > 8) == has for rows, has in sizes} == {True} and len({has for _, has in sizes}) == 2


def test_copied_rows_are_those_shown_separated_by_tabs(page):
    table = block(page, "Faithfulness")
    page.get_by_label("Filter: Faithfulness").fill("other")
    page.get_by_role("button", name="Copy: Faithfulness").click()
    page.get_by_role("status").filter(has_text="copied").wait_for()
    header, *lines = page.evaluate("navigator.clipboard.readText()").split("\n")
    assert header.split("\t") == table.locator("th").all_inner_texts()
    assert lines == table.locator("tbody tr:visible").all_inner_texts()


def test_a_downloaded_table_is_data(page):
    table = block(page, "Faithfulness")
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV: Faithfulness").click()
    assert download.value.suggested_filename == "faithfulness.csv"
    content = download.value.path().read_text(encoding="utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(content)))
    shown = table.locator("tbody tr").all_inner_texts()
    assert len(rows) == len(shown)
    for row, cells in zip(rows, (line.split("\t") for line in shown), strict=True):
        low, high = float(row["95 % CI, low"]), float(row["95 % CI, high"])
        assert f"[{low:.1f}, {high:.1f}]" in cells and f"{float(row['win rate (%)']):.1f} %" in cells
    # A name that a spreadsheet would compute is a text.
    assert {row["attribution"] for row in rows} == {"signed", "other", f"'{ODD}"}


@pytest.mark.parametrize(("kind", "start"), [("svg", b"<svg"), ("png", b"\x89PNG\r\n")])
def test_a_figure_is_saved_on_white_under_the_policy_of_the_page(opened, address, kind, start):
    page = opened(address, drawn=True, color_scheme="dark")
    with page.expect_download() as download:
        page.get_by_role("button", name=f"{kind.upper()}: Win rates").first.click()
    content = download.value.path().read_bytes()
    assert content.startswith(start) and len(content) > 1000
    assert kind == "png" or b'fill="#ffffff"' in content[:2000]


def test_tools_show_at_the_pointer_and_always_where_there_is_none(opened, address):
    page = opened(address)
    tools = page.locator(".tools", has=page.get_by_role("button", name="Copy: Faithfulness"))
    opacity = lambda at: at.evaluate("node => getComputedStyle(node).opacity")  # noqa: E731
    page.mouse.move(0, 0)
    assert opacity(tools) == "0"
    block(page, "Faithfulness").hover()
    assert opacity(tools) == "1"
    page.mouse.move(0, 0)
    page.get_by_role("button", name="Copy: Faithfulness").focus()
    assert opacity(tools) == "1"
    touched = opened(address, width=390, has_touch=True, is_mobile=True)
    assert opacity(touched.locator(".tools", has=touched.get_by_role("button", name="Copy: Faithfulness"))) == "1"
    assert touched.evaluate("document.documentElement.scrollWidth") == 390


def test_without_scripts_tables_are_plain(chromium, address):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    assert page.locator(".wide > table").count() > 1
    assert page.locator("#tables button, .tools").count() == 0
    context.close()
