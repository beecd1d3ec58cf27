from dataclasses import replace

import pytest

from ice_eval.report import FORMATS, formatted, plan_notes, plan_table
from ice_eval.results import Choice, Plan

PLAN = Plan(
    model="toy", task="demo", device="cpu", pilot={"n": 32, "m": 16, "seconds": 1.2}, cheapest_m=4.4,
    choices=(
        Choice("as asked", 500, 50, 27000, 1_234_567, 90.0, 12.34, 0.061, 0.5437),
        Choice("--adaptive dataset", 500, 12, 8000, 300_000, 20.0, 3.0, 0.064, 0.5457),
    ),
    peak_memory_gb=0.5, warnings=("too few.",),
)  # fmt: skip


def test_a_plan_reads_as_a_row_for_each_choice():
    table = plan_table(PLAN)
    assert table.title == "toy on demo, cpu"
    assert table.rows[0] == (
        "as asked", "500", "50", "27,000", "1,234,567", "90.0", "12.3 MB", "± 3.0 pp", "54.4 %",
    )  # fmt: skip
    assert "dollars" not in table.header


def test_a_price_gives_dollars():
    table = plan_table(PLAN, hourly_price=4)
    assert table.header[-1] == "dollars"
    assert [row[-1] for row in table.rows] == ["6.00", "1.33"]


@pytest.mark.parametrize("style", FORMATS)
def test_every_format_takes_a_plan(style):
    assert "27,000" in formatted(plan_table(PLAN), style)


def test_the_notes_of_a_plan_say_what_it_rests_on():
    found = plan_notes(PLAN)
    assert found[0].startswith("From a pilot of 32 examples with 16 random sets each, in 1 s")
    assert "Peak memory of the pilot: 0.50 GB; batches of the run are no larger." in found
    assert "The fewest tokens for a given interval: about 4 random sets per example." in found
    assert found[-1] == "too few."
    # Sets that add no noise have no cheapest number.
    assert not any("fewest tokens" in note for note in plan_notes(replace(PLAN, cheapest_m=0.0)))
    bare = plan_notes(replace(PLAN, cheapest_m=None, peak_memory_gb=None, warnings=()))
    assert len(bare) == 2
