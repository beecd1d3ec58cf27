"""The self-test passes as it is, and fails, naming the guarantee, when a fault is planted."""

import dataclasses
import json
import sys
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.rows import each_row, join

from ice_eval import rationales, selftest, stats
from ice_eval.nulls import matched_sets
from ice_eval.operators import DrawnFills, FillPool
from ice_eval.pipeline import rows
from ice_eval.records import DIRECTIONS, Kind, Rows
from ice_eval.results import comparisons
from ice_eval.seeding import rng_for
from ice_eval.selftest import QUICK, Sizes
from ice_eval.stats.randomization import compare_all, compare_all_sequentially

RANDOM = Sizes(random=300)
"""What it takes to see a fault in how a random explanation is judged."""
SMALL = Sizes(random=300, truth=100, weakened=50, mixture=20, covered=20, matched=100, sequential=60)
NOTHING = Sizes(random=25, truth=25, weakened=25, mixture=20, covered=2, matched=50, sequential=25)


def run(sizes=SMALL, operators=("delete",), with_transformer=False, **settings):
    return selftest.selftest(sizes=sizes, operators=operators, with_transformer=with_transformer, **settings)


def failures(**settings):
    """Names of the guarantees that fail, each with what it failed on."""
    return {(check.name, check.about.operator, check.about.direction) for check in run(**settings).failed}


def names(**settings):
    return {name for name, _, _ in failures(**settings)}


# --- as it is -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def quick():
    return run(QUICK, ["delete", "infill"], with_transformer=True)


def test_a_quick_run_passes(quick):
    assert quick.ok, quick.failed
    assert quick.skipped == ()


def test_every_operator_direction_and_model_is_calibrated(quick):
    seen = {(c.about.model, c.about.operator, c.about.direction) for c in quick.checks if c.name == "ranks are uniform"}
    tried = [(model, operator) for model in ("toy", "planted") for operator in ("delete", "infill", "all")]
    tried.append(("toy-reader", "delete"))
    assert seen == {(*each, direction) for each in tried for direction in ("sufficiency", "necessity")}


def test_every_guarantee_has_a_p_value_and_a_share_its_interval(quick):
    for check in quick.checks:
        assert check.is_guarantee == (check.p is not None)
        if check.low is not None:
            assert 0 <= check.low <= check.observed <= check.high <= 1


def test_its_content_is_plain_data(quick):
    content = json.loads(json.dumps(quick.content(), allow_nan=False))
    assert content["n_guarantees"] == len(quick.guarantees) > 100
    assert (content["ok"], content["n_failed"], content["seed"], content["limit"]) == (True, 0, 0, 0.001)
    assert {"model", "operator", "direction", "attribution", "name", "observed", "p", "ok"} <= set(content["checks"][0])


def test_a_part_that_draws_nothing_is_left_out():
    assert {check.about.attribution for check in run(Sizes(sequential=25)).checks} == {"random, sequential"}
    assert run(Sizes()).checks == ()


def test_the_same_seed_gives_the_same_numbers():
    first, second, other = (run(NOTHING, seed=seed).checks for seed in (1, 1, 2))
    assert first == second != other


def test_without_torch_the_transformer_is_skipped_and_said_to_be(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    report = run(NOTHING, with_transformer=True)
    assert report.skipped == ("the transformer is skipped: tokenizers is not installed.",)
    assert "planted" not in {check.about.model for check in report.checks}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_a_full_run_passes(seed):
    report = selftest.selftest(seed=seed)
    assert report.ok, report.failed


# --- planted faults -----------------------------------------------------------------------------------------------


def compare_with(change):
    """`stats.compare_all`, with a fault."""

    def faulty(observed, null, n):
        found = compare_all(observed, null, n)
        below, tied = np.rint(found.win_rate_strict * n), np.rint(found.tie_rate * n)
        return dataclasses.replace(found, **change(below, tied, n - below - tied, n))

    return faulty


def prefer_early(monkeypatch, times):
    """Let the first unit be so many times as likely to be in a random set as the last."""

    def early(n_units, size, count, *, seed, example_id):
        rng, weights = rng_for(seed, example_id, "random-sets", size), np.geomspace(times, 1, n_units)
        found = {}
        while len(found) < min(count, rationales.n_sets(n_units, size)):
            units = tuple(sorted(rng.choice(n_units, size, replace=False, p=weights / weights.sum()).tolist()))
            found.setdefault(units, rationales.keep_mask(units, n_units))
        return np.array(list(found.values()))

    for module in (rationales, rows):
        monkeypatch.setattr(module, "random_sets", early)


def test_random_sets_that_prefer_early_units_are_found_in_what_the_model_says(monkeypatch):
    prefer_early(monkeypatch, 4)
    assert {"ranks are uniform", "mean win rate"} & names(sizes=RANDOM)


def test_random_sets_that_prefer_early_units_a_little_are_found(monkeypatch):
    prefer_early(monkeypatch, 2)
    found = names(sizes=RANDOM)
    assert "places in sets of 6 of 30 units are uniform" in found


def test_a_wrong_tail_is_found(monkeypatch):
    swapped = compare_with(
        lambda below, tied, above, m: {
            "p_value": (1 + tied + below) / (m + 1),
            "p_lower": (1 + tied + above) / (m + 1),
        }
    )
    monkeypatch.setattr(comparisons.stats, "compare_all", swapped)
    assert {"a random set beats the truth", "a random set does worse than the negated truth"} <= names(sizes=NOTHING)


def test_dropped_ties_are_found(monkeypatch):
    dropped = compare_with(
        lambda below, tied, above, m: {"p_value": (1 + above) / (m + 1), "p_lower": (1 + below) / (m + 1)}
    )
    monkeypatch.setattr(comparisons.stats, "compare_all", dropped)
    assert "false positives, lower tail, α = 0.05" in names(sizes=RANDOM)


@pytest.mark.slow
def test_ties_that_count_as_wins_are_found(monkeypatch):
    generous = compare_with(lambda below, tied, above, m: {"win_rate": (below + tied) / m})
    monkeypatch.setattr(comparisons.stats, "compare_all", generous)
    assert {"mean win rate", "ranks are uniform"} <= names(sizes=RANDOM)


def test_a_p_value_that_leaves_out_the_rationale_itself_is_found(monkeypatch):
    bare = compare_with(lambda below, tied, above, m: {"p_value": np.maximum(tied + above, 0.5) / m})
    monkeypatch.setattr(comparisons.stats, "compare_all", bare)
    assert "the truth has the smallest p-value" in names(sizes=Sizes(truth=25), with_transformer=True)


@pytest.mark.slow
def test_a_null_that_holds_the_rationale_is_found(monkeypatch):
    monkeypatch.setattr(rows, "place_of", lambda rationale, sets: None)
    assert "the truth has the smallest p-value" in names(sizes=Sizes(truth=100), with_transformer=True)


def rationale_rows(monkeypatch, change):
    """Let `change(engine, item, seen)` be what the model sees of every rationale; `seen` is what it would see."""
    real = rows.ExampleRows._under

    def changed(self, operator, direction, head, sets):
        name, keep = tuple(self.engine.operators)[operator], sets if DIRECTIONS[direction] == "sufficiency" else ~sets
        several = real(self, operator, direction, head, sets)
        inputs = each_row(several.inputs)
        for place in np.flatnonzero(head["kind"] == Kind.RATIONALE):
            seen = Seen(name, DIRECTIONS[direction], keep[place][None], inputs[place])
            inputs[place] = change(self.engine, self.item, seen)
        return Rows(several.head, several.kept, several.n_kept, join(inputs), several.texts)

    monkeypatch.setattr(rows.ExampleRows, "_under", changed)


class Seen(NamedTuple):
    """One row, as the model sees it."""

    operator: str
    direction: str
    keep: Any
    """(1, units)"""
    inputs: Any


def test_a_rationale_swapped_with_its_complement_is_found(monkeypatch):
    def complement(engine, item, seen):
        return engine.operators[seen.operator].build(item, ~seen.keep, fills=item.ids[:0])

    rationale_rows(monkeypatch, complement)
    assert {"a random set beats the truth", "a random set does worse than the negated truth"} <= names(sizes=NOTHING)


def test_the_least_important_units_in_place_of_the_most_important_are_found(monkeypatch):
    monkeypatch.setattr(rows, "top_k", lambda vector, size, **ties: rationales.top_k(-vector, size, **ties))
    assert "a random set beats the truth" in names(sizes=NOTHING)


def test_a_wrong_sign_of_necessity_is_found_there_alone(monkeypatch):
    real = comparisons.ScoredExamples.compared

    def wrong(self, cell, operators):
        found = real(self, cell, operators)
        sign = -1.0 if cell.direction == "necessity" else 1.0
        names = ("order", "own_order", "measure", "own_measure")
        return dataclasses.replace(found, **{name: sign * getattr(found, name) for name in names})

    monkeypatch.setattr(comparisons.ScoredExamples, "compared", wrong)
    found = failures(sizes=NOTHING)
    assert ("a random set beats the truth", "delete", "necessity") in found
    assert {direction for _, _, direction in found} == {"necessity"}


@pytest.mark.slow
def test_fills_that_are_chosen_for_the_rationale_are_found(monkeypatch):
    def best_of_three(engine, item, seen):
        if seen.operator != "infill":
            return seen.inputs
        drawn = [rows._draw_fills(engine, item, "fault", number).ids for number in range(3)]
        inputs = [engine.operators["infill"].build(item, seen.keep, fills=fills) for fills in drawn]
        scores = engine.model.log_scores(join([item.full(), *inputs]), engine.scorer.labels)
        gain = scores[1:, int(np.argmax(scores[0]))] * (1 if seen.direction == "sufficiency" else -1)
        return inputs[int(np.argmax(gain))]

    rationale_rows(monkeypatch, best_of_three)
    found = failures(operators=["delete", "infill"])
    assert ("mean win rate", "infill", "sufficiency") in found
    assert not any(operator == "delete" for _, operator, _ in found)


@pytest.mark.slow
def test_units_that_are_filled_with_themselves_are_found(monkeypatch):
    monkeypatch.setattr(FillPool, "draw", lambda self, item, rng: DrawnFills(item.content_ids(), item.texts))
    assert "the truth is detected in a data set of 25" in names(operators=["infill"])


def test_raw_p_values_in_place_of_benjamini_hochberg_are_found(monkeypatch):
    monkeypatch.setattr(stats, "significant", lambda p_values, *, alpha=0.1: np.asarray(p_values) <= alpha)
    sizes = dataclasses.replace(NOTHING, mixture=600)
    found = {name.partition(",")[0] for name in names(sizes=sizes, with_transformer=True)}
    assert found == {"false discoveries"}


@pytest.mark.slow
def test_an_interval_that_is_too_narrow_is_found(monkeypatch):
    real = stats.mean_interval
    monkeypatch.setattr(stats, "mean_interval", lambda *values, **more: real(*values, **{**more, "level": 0.8}))
    found = names(sizes=dataclasses.replace(NOTHING, random=100, weakened=100, covered=100))
    assert found == {"95 % interval of 100 examples covers the mean"}


@pytest.mark.slow
def test_a_mean_test_that_is_too_easy_is_found(monkeypatch):
    real = stats.mean_test

    def easy(families, **more):
        found = real(families, **more)
        return dataclasses.replace(found, p_value=found.p_value / 8)

    monkeypatch.setattr(stats, "mean_test", easy)
    assert "data sets of 25 distinguished from random, p ≤ 0.05" in names(
        sizes=dataclasses.replace(NOTHING, random=400)
    )


# --- matched nulls and sequential tests ---------------------------------------------------------------------------


def explanations_that_fail(**settings):
    return {check.about.attribution for check in run(**settings).failed}


def test_every_null_and_the_sequential_test_are_calibrated(quick):
    seen = {check.about.attribution for check in quick.checks if check.name == "mean win rate" and check.is_guarantee}
    assert seen >= {
        "random, null of contiguity",
        "random, null of frequency",
        "random, null of position",
        "random, null of sub-word",
        "random, sequential",
    }


@pytest.mark.slow
def test_matched_sets_that_prefer_early_units_are_found(monkeypatch):
    def early(null, item, rationale, count, **keys):
        several = matched_sets(null, item, rationale, 4 * count, **keys)
        return sorted(several, key=sum)[:count]

    monkeypatch.setattr(rows, "matched_sets", early)
    found = explanations_that_fail(sizes=dataclasses.replace(NOTHING, matched=400))
    assert found and all("null of" in name for name in found)


@pytest.mark.slow
def test_a_sequential_p_value_that_forgets_where_it_stopped_is_found(monkeypatch):
    def naive(observed, stream, n):
        found = compare_all_sequentially(observed, stream, n)
        rates = dataclasses.replace(found.rates, p_value=np.maximum(found.rates.p_value - 1 / found.n_upper, 1e-3))
        return dataclasses.replace(found, rates=rates)

    monkeypatch.setattr(comparisons.stats, "compare_all_sequentially", naive)
    sizes = dataclasses.replace(NOTHING, sequential=800)
    found = {(check.name.partition(",")[0], check.about.attribution) for check in run(sizes).failed}
    assert found == {("false positives", "random, sequential")}


def test_a_win_rate_that_counts_the_stopping_set_is_found(monkeypatch):
    def naive(observed, stream, n):
        found = compare_all_sequentially(observed, stream, n)
        return dataclasses.replace(found, rates=dataclasses.replace(found.rates, win_rate=1 - found.rates.p_value))

    monkeypatch.setattr(comparisons.stats, "compare_all_sequentially", naive)
    found = {(check.name, check.about.attribution) for check in run(Sizes(sequential=800)).failed}
    # Intervals follow the win rates, so that verdicts suffer too; p-values do not.
    names = ("mean win rate", "verdict on a data set of 25 is not random")
    assert found == {(name, "random, sequential") for name in names}


def test_citations_are_checked():
    found = run(Sizes(citations=100))
    assert found.ok and len(found.checks) == 22
    assert {check.about.attribution for check in found.checks} == {"random citations", "planted citations"}


def test_a_reader_that_ignores_passages_fails(monkeypatch):
    monkeypatch.setattr("ice_eval.models.toy.ToyReader._score", lambda *args: -1.0)
    assert {check.about.attribution for check in run(Sizes(citations=25)).failed} == {"planted citations"}
