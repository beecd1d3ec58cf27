"""Runs that stop as soon as every verdict is settled."""

import numpy as np
import pytest
from tests.small_runs import Interrupted, Told, Waves
from tests.toy_runs import planted, reviews, run, task_of

from ice_eval import ConfigError, stats
from ice_eval.stats import Interval, is_settled

SETTINGS = {"operators": ["delete"], "until": "decided", "n": 160, "m": 20}


def right(item):
    return planted(item)


def wrong(item):
    return -planted(item)


def settled(attributions, **changes):
    return run(reviews(160), attributions=attributions, **SETTINGS | changes)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.61, 0.99, True),
        (0.56, 0.70, False),
        (0.56, 0.60, True),
        (0.51, 0.58, True),
        (0.51, 0.61, False),
        (0.46, 0.54, True),
        (0.40, 0.54, False),
        (0.20, 0.49, True),
    ],
)
def test_a_verdict_is_settled_where_no_stronger_word_is_possible(low, high, expected):
    assert is_settled(Interval(low, high)) == expected


def test_ties_that_decide_nothing_settle_a_verdict():
    assert is_settled(Interval(0.4, 0.7), tie_rate=0.9)


def test_a_run_ends_at_the_first_look_at_which_all_is_settled():
    found = settled({"right": right, "wrong": wrong})
    manifest = found.folder.manifest()
    assert manifest.data.examples == 32
    assert {line.n for line in found.folder.summary().configurations} == {32}
    assert [line.verdict.word for line in found.folder.summary().configurations] == ["faithful", "anti-faithful"]
    assert all("until_decided" in line.flags for line in found.folder.summary().configurations)
    assert found.folder.manifest().status == "complete"


def test_numbers_are_those_of_as_many_examples_but_intervals_hold_at_any_time():
    early = settled({"right": right})
    whole = run(reviews(32), attributions={"right": right}, operators=["delete"], m=20, n=32)
    [one], [other] = early.folder.summary().configurations, whole.folder.summary().configurations
    assert (one.win_rate, one.tie_rate) == (other.win_rate, other.tie_rate)
    rates = np.array([line.win_rate for line in early.folder.examples()])
    assert one.win_rate_ci == stats.mean_interval(rates, anytime=True)
    assert one.p_value == stats.mean_pvalue(rates, 0.5, anytime=True)


def test_a_control_need_not_be_settled_and_what_is_not_goes_on_to_the_end():
    assert settled({"right": right, "random": None}).folder.manifest().data.examples == 32
    told = Told()
    rng = np.random.default_rng(0)
    unclear = {"unclear": lambda item: planted(item) * (rng.random() < 0.4) + rng.random(len(item.texts))}
    found = run(reviews(60), attributions=unclear, reporter=told, **SETTINGS | {"n": 60})
    assert found.folder.manifest().data.examples == 60
    assert [m for m in told.messages if "settled" in m] == [
        f"after {n} examples not every verdict is settled." for n in (32, 48)
    ]


def test_an_interrupted_run_ends_where_another_does(tmp_path):
    settings = {"attributions": ["attention", "gradient"], "operators": ["delete"], "until": "decided", "n": 100}
    task = task_of(reviews(100))
    straight = run(model=Waves(), task=task, out=tmp_path / "straight", **settings)
    with pytest.raises(KeyboardInterrupt):
        run(model=Interrupted(after=900), task=task, out=tmp_path / "cut", **settings)
    continued = run(model=Waves(), task=task, out=tmp_path / "cut", **settings)
    assert continued.folder.summary() == straight.folder.summary()
    assert continued.folder.manifest().data == straight.folder.manifest().data
    assert run(model=Waves(), task=task, out=tmp_path / "cut", **settings).folder.summary() == straight.folder.summary()


def test_intervals_of_the_paper_do_not_allow_it():
    with pytest.raises(ConfigError, match="needs intervals that hold at any time"):
        settled({"right": right}, protocol="paper")


def half_right(item):
    """An explanation that is right for half of the texts, and wrong for most others."""
    return planted(item) * (1 if int(item.example_id) % 2 else -0.8)


def test_a_finished_run_ends_where_it_did_and_what_is_added_goes_as_far(tmp_path):
    first = settled({"half": half_right}, out=tmp_path / "run")
    n = first.folder.manifest().data.examples
    assert 32 < n <= 160
    again = settled({"half": half_right}, out=tmp_path / "run")
    assert again.folder.manifest().data.examples == n
    grown = settled({"half": half_right, "right": right}, out=tmp_path / "run")
    assert {line.n for line in grown.folder.summary().configurations} == {n}
    assert grown.folder.manifest().data.examples == n


def test_the_examples_of_a_pilot_are_looked_at_together():
    found = settled({"right": right}, adaptive="dataset")
    assert found.folder.manifest().data.examples == 48
    assert {line.n for line in found.folder.summary().configurations} == {48}


def test_what_can_be_detected_is_said_for_the_wider_intervals():
    early = settled({"half": half_right}, n=96)
    n = early.folder.manifest().data.examples
    fixed = run(reviews(160), attributions={"half": half_right}, operators=["delete"], m=20, n=n)
    [one], [other] = early.folder.summary().configurations, fixed.folder.summary().configurations
    assert one.n == other.n == 96 and one.detectable_win_rate > other.detectable_win_rate
