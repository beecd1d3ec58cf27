"""From the index to a run, an example, a question and a comparison, in a real browser."""

import pytest
from tests.axe import violations
from tests.view.conftest import MARKUP, TEXT


def rows(page, title="Runs"):
    table = page.locator(".wide > table", has=page.locator("caption", has_text=title)).first
    return table.locator("tbody tr:visible").all_inner_texts()


def test_from_the_index_to_a_run_an_example_and_back_to_a_comparison(page):
    page.get_by_role("link", name="first", exact=True).click()
    page.wait_for_selector("#detail h3")
    example = page.locator("#list button").nth(1)
    example.click()
    assert "demo-" in page.locator("#detail h3").inner_text()
    page.get_by_role("link", name="All runs").click()
    page.get_by_role("checkbox", name="Compare first").check()
    assert "Choose two runs" in page.locator("#chosen").inner_text()
    page.get_by_role("checkbox", name="Compare grid/runs/second").check()
    page.get_by_role("button", name="Compare", exact=True).click()
    page.wait_for_url("**/compare?run=*&run=*")
    assert "is better" in page.locator(".said").inner_text()
    assert page.locator(".differences .track i").count() == 6
    page.get_by_role("link", name="Report A").click()
    page.wait_for_selector("#detail h3")


def test_one_run_is_not_compared(page):
    page.get_by_role("checkbox", name="Compare first").check()
    button = page.get_by_role("button", name="Compare", exact=True)
    assert button.get_attribute("aria-disabled") == "true"
    button.click(force=True)
    assert page.url.endswith("/")


def test_the_index_is_sorted_by_names_and_by_numbers(page):
    page.locator("#runs").get_by_role("button", name="run", exact=True).click()
    assert [row.split("\t")[0].strip() for row in rows(page)] == ["<b>odd<b>", "first", "grid/runs/second"]
    page.locator("#runs").get_by_role("button", name="n", exact=True).click()
    assert [row.split("\t")[3] for row in rows(page)] == ["12", "12", "8"]


def test_the_grid_of_all_methods_is_filtered(page):
    assert len(rows(page, "Win rates of all methods")) == 9
    page.get_by_label("Filter: Win rates of all methods").fill("second control")
    [row] = rows(page, "Win rates of all methods")
    assert "grid/runs/second" in row and "control, expected 50 %" in row
    page.get_by_label("Filter: Win rates of all methods").fill(MARKUP)
    assert len(rows(page, "Win rates of all methods")) == 3


def test_units_are_picked_with_the_keyboard_alone(page):
    page.get_by_role("link", name="first", exact=True).press("Enter")
    page.wait_for_selector("#detail h3")
    page.get_by_role("link", name="What if …").press("Enter")
    page.wait_for_selector(".pick")
    page.get_by_role("button", name="Read this text").focus()
    for key in ("Tab", "ArrowRight", "ArrowRight", "Space", "Tab", "Enter"):
        page.keyboard.press(key)
    page.wait_for_selector("#answer h3")
    assert page.locator('.pick[aria-pressed="true"]').get_attribute("data-unit") == "2"
    assert page.locator("#answer h3").inner_text() == "1 unit kept, under delete"


def test_a_text_is_read_and_picked_units_are_compared(page):
    page.get_by_role("link", name="first", exact=True).click()
    page.get_by_role("link", name="What if …").click()
    page.wait_for_selector(".pick")
    page.get_by_label("text", exact=True).fill(TEXT)
    page.get_by_role("button", name="Read this text").click()
    page.get_by_role("button", name="warm", exact=True).click()
    page.get_by_role("button", name="great", exact=True).click()
    page.get_by_label("Operator").select_option("infill")
    page.wait_for_selector("#answer svg")
    assert page.locator("#answer h3").inner_text() == "2 units kept, under infill"
    assert page.locator("#answer svg circle").count() == 12
    assert "of 12 random sets" in page.locator("#answer .said").inner_text()
    page.get_by_label("text", exact=True).fill("one")
    page.get_by_role("button", name="Read this text").click()
    page.locator("#said", has_text="fewer than two units").wait_for()


def test_a_model_that_cannot_be_loaded_is_said_in_a_sentence(page):
    page.get_by_role("link", name="<b>odd<b>").click()
    page.wait_for_selector("#detail h3")
    page.get_by_role("link", name="What if …").click()
    page.locator("#said", has_text="no model").wait_for(timeout=60_000)
    assert page.locator("#picking").is_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_pages_have_no_violation_of_accessibility(page, scheme, width):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    assert violations(page) == []
    for box in page.get_by_role("checkbox").all():
        box.check()
    page.get_by_role("button", name="Compare", exact=True).click()
    page.wait_for_selector("#answer")
    assert violations(page) == []
    page.get_by_role("link", name="All runs").click()
    page.get_by_role("link", name="first", exact=True).click()
    page.get_by_role("link", name="What if …").click()
    page.wait_for_selector(".pick")
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") == width
