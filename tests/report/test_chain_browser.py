"""The page of a step-level run in a real browser."""

import pytest

pytest.importorskip("openai", reason="chains are asked of a server through the extra 'api'")

from tests import axe
from tests.report.chain_runs import SCRIPT

from ice_eval.report import write_html


@pytest.fixture(scope="module")
def addresses(chains, shy_chains, tmp_path_factory):
    """The pages of a run with explanations, and of one without."""
    path = tmp_path_factory.mktemp("pages")
    return [write_html([folder], path / f"{folder.path.name}.html").as_uri() for folder in (chains, shy_chains)]


@pytest.mark.parametrize("width", [1280, 380])
def test_figures_are_drawn_and_nothing_sticks_out(addresses, opened, width):
    page = opened(addresses[0], width=width, drawn=True)
    assert page.locator("#chains [data-figure] svg").count() == 3
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(addresses, opened, scheme):
    assert axe.violations(opened(addresses[0], color_scheme=scheme, drawn=True)) == []


def test_steps_are_coloured_and_numbered_by_what_they_do(addresses, opened):
    page = opened(addresses[0])
    steps = page.locator("#detail .steps > li")
    assert steps.locator(".effect").all_text_contents() == ["+0.00 0/2"] + 5 * ["+1.00 2/2"]
    shades = steps.locator(".unit").evaluate_all("units => units.map(unit => getComputedStyle(unit).backgroundColor)")
    assert shades[0] != shades[1] and len(set(shades[1:])) == 1
    assert steps.first.locator(".unit").text_content() == f"Note {SCRIPT.format('chain')} first."
    assert "another answer" in steps.nth(1).locator(".replies").text_content()
    assert SCRIPT.format("reply") in steps.nth(1).locator(".replies").text_content()
    assert SCRIPT.format("question") in page.locator("#detail .question").text_content()
    assert "explained label" not in page.locator("#examples").text_content()


def test_another_chain_can_be_chosen_and_explanations_are_tallied(addresses, opened):
    page = opened(addresses[0])
    page.locator("#list button").nth(1).click()
    assert page.locator("#detail h3 bdi").text_content() == "p1"
    assert page.locator("#list .rate").all_text_contents() == 5 * ["5/6"]
    assert "random sets of steps" in page.locator("#detail .tally").first.text_content()
    assert page.locator("#choose-filter option[value=weak_signal]").is_disabled()


def test_steps_are_units_of_rows_random_sets_and_a_set_of_ones_own(addresses, opened):
    page = opened(f"{addresses[0]}#example=p1&set=1.3")
    assert page.locator("#stack thead th").all_text_contents() == list("123456")
    assert page.locator("#stack tr.mine .kept").all_text_contents() == ["2", "4"]
    assert page.locator("#stack tr.mine .gone").all_text_contents() == ["1", "3", "5", "6"]
    assert page.locator("#stack [data-method]").count() == page.locator("[name=attribution] option").count()
    said = page.locator("#own").text_content()
    assert "Your own chosen steps: step 2, step 4" in said
    assert page.locator("#own li").count() == page.locator("#nulls .strip").count() == 2
    assert all(
        "another answer" in each or "the same answer" in each for each in page.locator("#own li").all_text_contents()
    )
    page.locator("svg.null .bar").first.hover()
    assert "step " in page.locator("#seen").text_content() and page.locator(".text .drawn").count() >= 1
    ticks = page.locator("svg.null .tick").all_text_contents()
    assert ticks == ["another answer", "cannot be read", "the same answer"]
    assert opened(page.url).locator("#own").text_content() == said
    with page.expect_download() as download:
        page.get_by_role("button", name="Save image").click()
    assert download.value.path().read_bytes().startswith(b"\x89PNG")


def test_chains_are_shown_without_explanations_too(addresses, opened):
    page = opened(addresses[1])
    assert page.locator("#detail .steps > li").count() == 4
    assert page.locator("#verdict").count() == 0 and page.locator("#detail .operators").count() == 0
    assert page.locator("#choose-sort option[value=low]").is_disabled()
