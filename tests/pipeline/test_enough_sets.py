"""A pilot finds how many random sets are enough for the data set."""

import pytest
from tests.small_runs import (
    METHODS,
    OPERATORS,
    Interrupted,
    Told,
    Waves,
    line_of,
    lines_of,
    results_of,
    rows_of,
    run,
    texts,
)

from ice_eval.errors import ModelError

DATA = texts(240, words=(16, 19), vocabulary=2000, seed=5)
ASKED = {"attributions": METHODS, "operators": ["mask-unk"], "n": 240}


@pytest.fixture(scope="module")
def fixed():
    return run(DATA, **ASKED)


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    told = Told()
    settings = {**ASKED, "adaptive": "dataset", "out": tmp_path_factory.mktemp("planned") / "run"}
    return run(DATA, reporter=told, **settings), told


def test_a_pilot_chooses_how_many_sets_are_enough_and_says_so(planned):
    found, told = planned
    manifest = found.folder.manifest()
    plan = manifest.planned
    assert (plan.pilot_n, plan.pilot_m) == (48, 12)
    assert 8 <= plan.m < 50
    assert manifest.config.m == plan.m and manifest.identity["m"] == 50
    assert {line.m for line in lines_of(found)} == {plan.m}
    assert "pilot: 48 examples with 12 random sets each." in told.messages
    assert any(message.startswith(f"the run continues with {plan.m} random sets:") for message in told.messages)


def test_a_third_of_the_rows_gives_nearly_the_same_intervals_and_the_same_verdicts(planned, fixed):
    found, _ = planned
    rows, whole = (run.folder.manifest().cost.rows for run in (found, fixed))
    assert rows <= whole / 3
    widths = {}
    for name in METHODS:
        ours, theirs = (line_of(each, attribution=name) for each in (found, fixed))
        widths[name] = [line.win_rate_ci[1] - line.win_rate_ci[0] for line in (ours, theirs)]
        assert ours.verdict == theirs.verdict
    # The widest interval hardly grows; narrow ones grow more, but no more than was said, up to their own errors.
    few, many = max(widths.values())
    assert few < 1.10 * many
    foretold = 1 + found.folder.manifest().planned.wider
    assert max(few / many for few, many in widths.values()) < 1.06 * foretold
    assert {line_of(fixed, attribution=name).taxonomy for name in ("strong", "against")} == {
        "faithful",
        "anti-faithful",
    }


def test_single_examples_are_not_tested_and_the_reason_is_given(planned):
    found, _ = planned
    for line in found.folder.summary().configurations:
        assert line.significant_rate is line.significant_rate_lower is line.nonnull_share is None
        assert (
            line.significant_reason == "the random sets were chosen to be enough for the data set, not for an example"
        )
        assert "adaptive_dataset" in line.flags


def test_a_finished_run_is_continued_with_the_same_number_and_no_second_pilot(planned):
    found, _ = planned
    results, rows = results_of(found), rows_of(found)
    told, model = Told(), Waves()
    again = run(DATA, model=model, adaptive="dataset", reporter=told, out=found.path, **ASKED)
    assert results_of(again) == results and rows_of(again) == rows
    assert not [message for message in told.messages if "pilot" in message or "goes on" in message]
    assert again.folder.manifest().planned == found.folder.manifest().planned


def test_what_is_added_keeps_the_number_of_sets(tmp_path):
    settings = {"n": 64, "adaptive": "dataset", "out": tmp_path / "run"}
    first = run(DATA[:64], attributions={"hat": METHODS["hat"]}, **settings)
    plan, lines = first.folder.manifest().planned, lines_of(first)
    told = Told()
    added = run(DATA[:64], attributions=METHODS, operators=OPERATORS, reporter=told, **settings)
    assert added.folder.manifest().planned == plan
    assert [line for line in lines_of(added, operator="delete", attribution="hat")] == lines
    assert {line.m for line in lines_of(added)} == {plan.m}
    assert not [message for message in told.messages if "pilot" in message]


@pytest.mark.parametrize("after", [5, 700, 1100])
def test_an_interrupted_pilot_goes_on(tmp_path, after):
    # 48 examples of the pilot take some 1,000 rows: the last interrupt comes after it.
    settings = {"n": 96, "adaptive": "dataset", "token_budget": 1024}
    whole = run(DATA[:96], out=tmp_path / "whole", **settings)
    with pytest.raises(KeyboardInterrupt):
        run(DATA[:96], model=Interrupted(after), out=tmp_path / "run", **settings)
    again = run(DATA[:96], out=tmp_path / "run", **settings)
    assert results_of(again) == results_of(whole)
    assert again.folder.manifest().planned == whole.folder.manifest().planned
    assert {row.key for row in rows_of(again)} == {row.key for row in rows_of(whole)}


def test_numbers_are_those_of_a_run_that_was_asked_for_so_many_sets(tmp_path):
    settings = {"attributions": {"hat": METHODS["hat"]}, "operators": ["mask-unk"], "n": 240}
    found = run(DATA, adaptive="dataset", out=tmp_path / "run", **settings)
    m = found.folder.manifest().planned.m
    assert lines_of(found) == lines_of(run(DATA, m=m, **settings))
    assert found.folder.manifest().cost.rows <= 240 * (2 + 1 + 51) / 3


def test_a_data_set_of_a_single_example_takes_all_sets_that_were_asked_for(tmp_path):
    found = run(DATA[:1], n=1, adaptive="dataset", m=20, out=tmp_path / "run")
    assert found.folder.manifest().planned.m == 20
    assert [line.m for line in lines_of(found)] == [20]


def test_a_single_random_set_is_enough_to_begin_with(tmp_path):
    found = run(DATA[:4], n=4, adaptive="dataset", m=1, out=tmp_path / "run")
    assert found.folder.manifest().planned.m == 1


def test_a_data_set_in_which_nothing_can_be_evaluated_fails_as_any_other(tmp_path):
    with pytest.raises(ModelError, match="no example could be evaluated"):
        run(["w1", "w2"], adaptive="dataset", out=tmp_path / "run")
