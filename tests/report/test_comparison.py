"""What the page of a comparison answers."""

import pytest
from tests.toy_runs import planted, reviews, run

from ice_eval.report.comparison import answer, comparison_page, write_comparison
from ice_eval.results import RunDifference, WinRateDifference, differences
from ice_eval.stats import Interval

MARKUP = "<img src=x onerror=alert(1)>"


def line(attribution="attention", operator="delete", difference=0.1, ci=(0.05, 0.15), p=0.001, **changes):
    made = {
        "direction": "sufficiency",
        "k": 0.2,
        "null": "size",
        "n_first": 60,
        "n_second": 60,
        "paired": True,
    } | changes
    return WinRateDifference(
        attribution=attribution, operator=operator, win_rate_first=0.5, win_rate_second=0.6, difference=difference,
        difference_ci=None if ci is None else Interval(*ci), p_value=p, p_adjusted=p, verdict_first=None,
        verdict_second=None, **made,
    )  # fmt: skip


def said(*lines):
    none = dict.fromkeys(("first", "second", "n_first", "n_second", "n_shared", "n_other_text"))
    found = RunDifference(**none, settings=(), configurations=lines, only_first=(), only_second=())
    return answer(found, "B")


def test_the_better_run_is_named_with_operator_interval_and_adjusted_p():
    assert said(line(), line("gradient", p=0.6)) == (
        "B is better for attention under delete (B − A = +10.0 pp [+5.0, +15.0], adjusted p = 0.0010). The other "
        "difference of 2 is not settled."
    )
    worse = line(operator="infill", difference=-0.1, ci=(-0.15, -0.05), p=0.00001)
    assert said(worse) == (
        "A is better for attention under infill (B − A = -10.0 pp [-15.0, -5.0], adjusted p < 0.0001)."
    )


def test_what_is_not_settled_is_said():
    found = said(line(difference=0.01, ci=(-0.05, 0.07), p=0.5), line("gradient", ci=None, p=0.9))
    assert found == (
        "The examples do not show whether A or B is better: the clearest difference is that of attention under "
        "delete (B − A = +1.0 pp [-5.0, +7.0], adjusted p = 0.50)."
    )


def test_runs_that_are_each_better_for_something_have_no_winner():
    found = said(line(), line(operator="infill", difference=-0.1, ci=(-0.15, -0.05)))
    assert found.startswith("Neither run is better throughout: B is better for attention under delete")
    assert "; A is better for attention under infill" in found


def test_the_control_and_averages_over_operators_name_no_winner():
    unsure = line(difference=0.01, ci=(-0.05, 0.07), p=0.5)
    assert "do not show" in said(unsure, line("random"), line(operator="all"))
    assert said(line(operator="all")).startswith("B is better for attention under all")
    assert said(line("random")) == "A and B share no explanation whose difference can be tested."


def test_settings_are_named_where_they_differ_and_many_differences_are_counted():
    several = said(line(), line(k=0.1), line(direction="necessity"), line("gradient"), line("lime", p=0.01))
    assert "attention under delete, keeping the top 20 % (" in several and "removing the top 20 %" in several
    assert several.endswith("and 2 more.")


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    root = tmp_path_factory.mktemp("compared")
    asked = {"records": reviews(60), "operators": "delete"}
    first = run(
        **asked, attributions={MARKUP: lambda item: -planted(item), "same": planted}, out=root / f"{MARKUP[:4]}b>"
    )
    second = run(**asked, attributions={MARKUP: planted, "same": planted}, out=root / "second")
    return differences(first.folder, [second.folder])


def test_the_page_holds_answer_plot_tables_and_notes(two, tmp_path):
    page = write_comparison(two, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "B is better for &lt;img src=x onerror=alert(1)&gt; under delete (B − A = +" in page
    assert page.count('<td class="track" aria-hidden="true"><i style="--low: ') == 2
    for title in ("Win rates", "Head to head"):
        assert f"<caption>{title}</caption>" in page
    assert "Differences are paired" in page and "http" not in page.partition("<script")[0].replace("http-equiv", "")


def test_names_that_are_markup_stay_text(two):
    page = comparison_page(two)
    assert MARKUP not in page and "<imgb>" not in page and "&lt;img src=x" in page


def test_the_positions_of_the_plot_are_those_of_the_numbers(two):
    page = comparison_page(two)
    [found] = [each for each in two[0].configurations if each.attribution == MARKUP]
    limit = next(each for each in (0.05, 0.1, 0.25, 0.5, 1.0) if each >= max(map(abs, found.difference_ci)))
    assert f"--at: {50 + 50 * found.difference / limit}%" in page


def test_chains_are_answered_for_each_run(chains, shy_chains):
    page = comparison_page(differences(chains, [shy_chains]))
    assert "A and B share no explanation" in page
    assert "A: " in page and "their differences are not tested" in page
