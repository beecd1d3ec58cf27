"""Which measures prefer the more faithful of two explanations, against a loop over the outcomes of the run."""

import numpy as np
import pytest
from tests.small_runs import METHODS, lines_of, picks, run, texts

from ice_eval._registry import from_spec
from ice_eval.analysis.measures import Missing, measures
from ice_eval.analysis.measures.eraser import Diagnosticity, preferences

BOTH = ["sufficiency", "necessity"]


@pytest.fixture(scope="module")
def found():
    return run(texts(40), attributions=METHODS, directions=BOTH, operators=["delete", "mask-unk"], m=10, n=40)


def test_equal_numbers_count_one_half():
    assert preferences(np.array([2.0, 0.3, 0.1]), np.array([1.0, 0.3, 0.2])).tolist() == [1, 0.5, 0]


@pytest.mark.parametrize(("faithful", "unfaithful"), [("strong", "hat"), ("hat", "against")])
def test_shares_are_those_of_plain_loops(found, faithful, unfaithful):
    measure = Diagnosticity(faithful=faithful, unfaithful=unfaithful)
    [part] = measure.of(found.folder).parts
    assert len(part.lines) == 8
    for line in part.lines:
        where = {"operator": line["operator"], "direction": line["direction"]}
        both = [lines_of(found, attribution=name, **where) for name in (faithful, unfaithful)]
        points, ties = 0.0, 0
        for one, other in zip(*both, strict=True):
            # A good rationale alone keeps the probability high; without it the probability is low.
            numbers = {
                "win rate": (one.win_rate, other.win_rate),
                "sufficiency": (one.score, other.score),
                "comprehensiveness": (-one.score, -other.score),
            }
            first, second = numbers[line["measure"]]
            ties += first == second
            points += 0.5 if first == second else first > second
        assert line["mean"] == pytest.approx(points / 40)
        assert line["ties"] == pytest.approx(ties / 40)
        assert (line["attribution"], line["against"], line["n"]) == (faithful, unfaithful, 40)
        assert line["operator"] == "delete" or (line["mean"] > 0.7 and line["p_value"] < 0.01)


def test_of_two_random_explanations_neither_is_preferred_more_often_than_the_level():
    many = {f"hat{number}": picks(f"hat{number}") for number in range(40)}
    folder = run(texts(30), attributions=many, m=5, n=30).folder
    pairs = [Diagnosticity(faithful=f"hat{each}", unfaithful=f"hat{each + 1}") for each in range(0, 40, 2)]
    lines = [line for pair in pairs for line in pair.of(folder).parts[0].lines if line["measure"] == "win rate"]
    assert len(lines) == 20
    assert np.mean([line["p_value"] <= 0.05 for line in lines]) <= 0.1


def test_every_attribution_is_compared_with_the_control_by_default():
    done = run(texts(12), attributions=["random", "first-k", "longest-words"], m=5, n=12)
    lines = measures.get("diagnosticity")().of(done.folder).parts[0].lines
    assert {(line["attribution"], line["against"]) for line in lines} == {
        ("first-k", "random"), ("longest-words", "random"),
    }  # fmt: skip


def test_a_name_that_the_run_lacks_is_named(found):
    missing = Diagnosticity().of(found.folder)
    assert isinstance(missing, Missing) and "'random'" in missing.reason
    asked = from_spec("diagnosticity:faithful=strong:unfaithful=weak", measures)
    assert "'weak'" in asked.of(found.folder).reason
