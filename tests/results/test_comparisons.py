"""Every number of one example, against the definitions written out slowly."""

import itertools
import json
import math
import statistics

import numpy as np
import pytest
from tests.made_records import settings
from tests.rows import ledger_of

from ice_eval.nulls import SIZE
from ice_eval.records import NOT_SET, Kind
from ice_eval.results.comparisons import ScoredExamples
from ice_eval.results.examples import Examples
from ice_eval.results.json_files import as_json
from ice_eval.results.ledger import Names, clipped_nsr, log_odds
from ice_eval.results.outcomes import FLAGS, outcome_table

SETS = [(0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (1, 3)]


def by_hand(observed, null):
    """The definitions, one comparison at a time."""
    wins = ties = losses = 0
    for value in null:
        if math.isclose(value, observed, rel_tol=1e-13):
            ties += 1
        elif observed > value:
            wins += 1
        else:
            losses += 1
    m = len(null)
    return {
        "win_rate": (wins + ties / 2) / m,
        "win_rate_strict": wins / m,
        "tie_rate": ties / m,
        "p_value": (1 + ties + losses) / (m + 1),
        "p_lower": (1 + ties + wins) / (m + 1),
        "m": m,
    }


def numbers(outcome):
    assert outcome.error is None
    return {
        name: getattr(outcome, name) for name in ("win_rate", "win_rate_strict", "tie_rate", "p_value", "p_lower", "m")
    }


def softmax(scores, label):
    return math.exp(scores[label]) / sum(math.exp(z) for z in scores)


def test_a_rationale_is_placed_among_its_null(book):
    null = [0.2, 0.5, 0.5, 0.9]
    outcome = book().reference().null(SETS[:4], null).rationale((2, 3), 0.5).outcome()
    assert numbers(outcome) == {
        "win_rate": 0.5,
        "win_rate_strict": 0.25,
        "tie_rate": 0.5,
        "p_value": 4 / 5,
        "p_lower": 4 / 5,
        "m": 4,
    }
    assert "ties" in outcome.flags


def test_both_tails_count_the_rationale_itself(book):
    best = book().reference().null(SETS[:4], [0.2, 0.3, 0.4, 0.5]).rationale((2, 3), 0.6).outcome()
    worst = book().reference().null(SETS[:4], [0.2, 0.3, 0.4, 0.5]).rationale((2, 3), 0.1).outcome()
    assert (best.win_rate, best.p_value, best.p_lower) == (1.0, 1 / 5, 1.0)
    assert (worst.win_rate, worst.p_value, worst.p_lower) == (0.0, 1.0, 1 / 5)
    assert best.flags == worst.flags == ()


@pytest.mark.parametrize("seed", range(20))
def test_every_number_follows_the_definitions(book, seed):
    rng = np.random.default_rng(seed)
    # A coarse grid of probabilities, so that some tie.
    values = (rng.integers(1, 30, size=7) / 31).tolist()
    full, empty = rng.uniform(0.1, 0.9, size=2).tolist()
    outcome = book(target=seed % 2, m=6).reference(full=full, empty=empty).null(SETS, values[1:])
    outcome = outcome.rationale((2, 3), values[0]).outcome()

    assert numbers(outcome) == by_hand(values[0], values[1:])
    spread = statistics.pstdev(values[1:])
    assert outcome.effect_size == pytest.approx((values[0] - statistics.fmean(values[1:])) / spread, rel=1e-9)
    assert outcome.score == pytest.approx(values[0], rel=1e-12)
    assert (outcome.score_full, outcome.score_empty) == pytest.approx((full, empty), rel=1e-12)
    if abs(full - empty) < 0.05:
        assert outcome.nsr is None and "weak_signal" in outcome.flags
    else:
        assert outcome.nsr == pytest.approx((values[0] - empty) / (full - empty), rel=1e-9)
        assert "weak_signal" not in outcome.flags
    assert ("negative_signal" in outcome.flags) == (full < empty)
    assert ("ties" in outcome.flags) == (outcome.tie_rate > 0.01)


@pytest.mark.parametrize("seed", range(20))
def test_the_family_holds_the_win_rate_of_every_scored_set(book, seed):
    values = (np.random.default_rng(seed).integers(1, 12, size=7) / 13).tolist()
    _, outcomes = book(m=6).reference().null(SETS, values[1:]).rationale((2, 3), values[0]).outcomes()
    slow = [by_hand(value, values[:i] + values[i + 1 :])["win_rate"] for i, value in enumerate(values)]
    [family] = outcomes.families.rates()
    assert family.tolist() == pytest.approx(slow, abs=1e-15)


def test_effect_size_is_undefined_without_spread(book):
    outcome = book().reference().null(SETS[:4], [0.3] * 4).rationale((2, 3), 0.6).outcome()
    assert outcome.effect_size is None
    assert outcome.win_rate == 1.0


def test_probabilities_that_saturate_are_still_told_apart(book):
    # As probabilities all of these are 1.0 in double precision; as log-odds they differ.
    log_odds = [40.0, 41.0, 43.0, 44.0]
    assert len({1 / (1 + math.exp(-z)) for z in log_odds}) == 1
    null = [(-z, -math.exp(-z)) for z in log_odds]
    outcome = book().reference().null(SETS[:4], null).rationale((2, 3), (-42.0, -math.exp(-42.0))).outcome()
    assert (outcome.win_rate, outcome.tie_rate) == (0.5, 0.0)


def test_scores_need_not_be_normalised(book):
    plain = book().reference().null(SETS[:4], [0.2, 0.5, 0.6, 0.9]).rationale((2, 3), 0.55)
    shifted = book()
    shifted.rows = [row._replace(scores=tuple(z + 3.0 for z in row.scores)) for row in plain.rows]
    before, after = plain.outcome(), shifted.outcome()
    assert numbers(after) == numbers(before)
    assert (after.score, after.nsr) == pytest.approx((before.score, before.nsr))


@pytest.mark.parametrize(("full", "empty", "weak"), [(0.549, 0.5, True), (0.5, 0.549, True), (0.551, 0.5, False)])
def test_nsr_is_null_below_a_signal_of_five_points(book, full, empty, weak):
    outcome = book().reference(full=full, empty=empty).null(SETS[:4], [0.2, 0.3, 0.4, 0.5]).rationale((2, 3), 0.6)
    outcome = outcome.outcome()
    assert (outcome.nsr is None) == weak == ("weak_signal" in outcome.flags)


def test_nsr_is_not_clipped(book):
    over = book().reference(full=0.6, empty=0.4).null(SETS[:4], [0.2, 0.3, 0.4, 0.5]).rationale((2, 3), 0.9)
    under = book().reference(full=0.6, empty=0.4).null(SETS[:4], [0.2, 0.3, 0.4, 0.5]).rationale((2, 3), 0.1)
    assert over.outcome().nsr == pytest.approx(2.5)
    assert under.outcome().nsr == pytest.approx(-1.5)


def test_a_negative_signal_is_flagged_and_score_order_stays(book):
    outcome = (
        book().reference(full=0.3, empty=0.6).null(SETS[:4], [0.2, 0.3, 0.4, 0.5]).rationale((2, 3), 0.9).outcome()
    )
    assert outcome.flags == ("negative_signal",)
    assert outcome.win_rate == 1.0
    assert outcome.nsr == pytest.approx(-1.0)


@pytest.mark.parametrize("seed", range(10))
def test_several_operators_are_averaged_as_probabilities(book, seed):
    values = np.random.default_rng(seed).uniform(0.01, 0.99, size=(3, 7)).round(3)
    one = book(m=6).reference()
    for operator, row in zip(("delete", "infill", "mask"), values.tolist(), strict=True):
        one.null(SETS, row[1:], operator=operator).rationale((2, 3), row[0], operator=operator)
    outcome = one.outcome("delete", "infill", "mask")
    mean = [statistics.fmean(column) for column in zip(*values.tolist(), strict=True)]
    assert numbers(outcome) == by_hand(mean[0], mean[1:])
    assert outcome.score == pytest.approx(mean[0], rel=1e-12)
    spread = statistics.pstdev(mean[1:])
    assert outcome.effect_size == pytest.approx((mean[0] - statistics.fmean(mean[1:])) / spread, rel=1e-9)
    for operator, row in zip(("delete", "infill", "mask"), values.tolist(), strict=True):
        assert numbers(one.outcome(operator)) == by_hand(row[0], row[1:])


def test_the_average_over_operators_is_not_one_of_log_odds(book):
    # Mean probabilities 0.501 against 0.50095.
    one = book(m=1).reference()
    for operator, null in (("delete", 0.9999), ("infill", 0.002)):
        one.null([(0, 1)], [null], operator=operator).rationale((2, 3), 0.501, operator=operator)
    log_odds = math.log(0.9999 / 0.0001) + math.log(0.002 / 0.998)
    assert log_odds / 2 > math.log(0.501 / 0.499)  # by log-odds the rationale would lose
    assert one.outcome("delete", "infill").win_rate == 1.0


def test_a_set_is_compared_under_its_own_fill(book):
    rationale, null = [0.6, 0.2, 0.7], [0.5, 0.3, 0.7, 0.6]
    one = book().reference()
    for draw, value in enumerate(rationale):
        one.rationale((2, 3), value, operator="infill", draw=draw)
    for place, value in enumerate(null):
        one.row(Kind.RANDOM, SETS[place], value, set=place, null=SIZE, operator="infill", draw=place % 3)
    outcome = one.outcome("infill")
    # Won, lost, tied, tied.
    assert numbers(outcome) == by_hand(0.0, [-0.1, 0.1, 0.0, 0.0])
    assert outcome.score == pytest.approx(0.5)


def test_fills_are_averaged_before_operators(book):
    # Two fills under one operator weigh as much as the single answer of the other.
    one = book(m=1).reference()
    one.null([(0, 1)], [0.4], operator="delete").rationale((2, 3), 0.4, operator="delete")
    one.null([(0, 1)], [0.1], operator="infill", draw=0)
    for draw, rationale in enumerate((0.8, 0.4)):
        one.rationale((2, 3), rationale, operator="infill", draw=draw)
    outcome = one.outcome("delete", "infill")
    assert outcome.score == pytest.approx((0.4 + (0.8 + 0.4) / 2) / 2)
    assert outcome.win_rate == 1.0


@pytest.mark.parametrize("m", [9, 50])
def test_with_all_sets_at_hand_the_test_is_exact(book, m):
    every = list(itertools.combinations(range(5), 2))
    rng = np.random.default_rng(m)
    value = dict(zip(every, (rng.integers(1, 9, size=len(every)) / 10).tolist(), strict=True))
    shuffled = [every[i] for i in rng.permutation(len(every))]
    for rationale in every:
        one = book(n_units=5, m=m).reference().null(shuffled, [value[s] for s in shuffled])
        outcome = one.rationale(rationale, value[rationale]).outcome()
        at_least = sum(value[s] >= value[rationale] for s in every)
        at_most = sum(value[s] <= value[rationale] for s in every)
        others = [value[s] for s in every if s != rationale]
        assert outcome.p_value == at_least / len(every)
        assert outcome.p_lower == at_most / len(every)
        assert outcome.m == len(every) - 1
        assert outcome.win_rate == by_hand(value[rationale], others)["win_rate"]


def test_two_units_leave_one_other_set(book):
    outcome = book(n_units=2, m=50).reference().null([(1,), (0,)], [0.3, 0.6]).rationale((0,), 0.6).outcome(size=1)
    assert (outcome.win_rate, outcome.p_value, outcome.p_lower, outcome.m) == (1.0, 0.5, 1.0, 1)
    assert outcome.effect_size is None


def test_only_its_own_rationale_is_left_out_of_a_null(book):
    values = [0.1, 0.2, 0.3, 0.4, 0.5]
    one = book(m=4, other=tuple([0.0] * 6)).reference().null(SETS[:5], values)
    one.rationale(SETS[1], 0.2).rationale(SETS[3], 0.4, name="other").rationale((4, 5), 0.25, name="third")
    one.attributions["third"] = (0.0,) * 6
    # Own set 1 drops out and the fifth takes its place; set 3, the other's rationale, stays.
    assert numbers(one.outcome()) == by_hand(0.2, [0.1, 0.3, 0.4, 0.5])
    assert numbers(one.outcome(name="other")) == by_hand(0.4, [0.1, 0.2, 0.3, 0.5])
    # A rationale that is none of the sets is compared with the first four, not with five.
    assert numbers(one.outcome(name="third")) == by_hand(0.25, [0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_rows_in_the_ledger_does_not_matter(book, seed):
    one = book(m=4).reference().null(SETS[:5], [0.1, 0.2, 0.3, 0.4, 0.9]).rationale(SETS[1], 0.2)
    one.rows = [one.rows[i] for i in np.random.default_rng(seed).permutation(len(one.rows))]
    assert numbers(one.outcome()) == by_hand(0.2, [0.1, 0.3, 0.4, 0.9])


@pytest.mark.parametrize("target", [0, 1, 2])
def test_the_target_is_the_label_that_is_explained(book, target):
    rng = np.random.default_rng(target)
    scores = [tuple(row) for row in np.log(rng.dirichlet([1, 1, 1], size=7)).tolist()]
    one = book(target=target, n_labels=3, m=6).reference().null(SETS, scores[1:]).rationale((2, 3), scores[0])
    outcome = one.outcome()
    probability = [softmax(row, target) for row in scores]
    assert numbers(outcome) == by_hand(probability[0], probability[1:])
    assert outcome.score == pytest.approx(probability[0], rel=1e-12)
    spread = statistics.pstdev(probability[1:])
    effect = (probability[0] - statistics.fmean(probability[1:])) / spread
    assert outcome.effect_size == pytest.approx(effect, rel=1e-9)


def test_the_prediction_is_the_label_with_the_largest_full_score(book):
    one = book(target=2, gold=0, n_labels=3).reference(full=(-3.0, -0.1, -5.0)).null(SETS[:4], [0.2, 0.3, 0.4, 0.5])
    outcome = one.rationale((2, 3), 0.6).outcome()
    assert (outcome.predicted, outcome.target, outcome.gold) == (1, 2, 0)


def test_necessity_credits_the_removal_that_hurts_most(book):
    # Rows hold the complement: what is left when the set is removed.
    values = [0.2, 0.5, 0.5, 0.9]
    place = {"direction": "necessity"}
    one = book().reference(full=0.9, empty=0.4).null(SETS[:4], values, **place).rationale((2, 3), 0.4, **place)
    assert one.rows[-1].kept == (0, 1, 4, 5)
    outcome = one.outcome(direction="necessity")
    assert numbers(outcome) == by_hand(-0.4, [-v for v in values])
    assert outcome.win_rate == 0.75
    assert outcome.rationale == (2, 3)
    assert outcome.score == pytest.approx(0.4)
    spread = statistics.pstdev(values)
    assert outcome.effect_size == pytest.approx((statistics.fmean(values) - 0.4) / spread)


def test_necessity_leaves_the_removed_set_itself_out_of_its_null(book):
    place = {"direction": "necessity"}
    one = book(m=4).reference().null(SETS[:5], [0.1, 0.2, 0.3, 0.4, 0.5], **place).rationale(SETS[1], 0.2, **place)
    assert numbers(one.outcome(direction="necessity")) == by_hand(-0.2, [-0.1, -0.3, -0.4, -0.5])


def test_the_two_directions_do_not_mix(book):
    one = book().reference()
    for direction, value in (("sufficiency", 0.9), ("necessity", 0.95)):
        one.null(SETS[:4], [0.2, 0.3, 0.4, 0.5], direction=direction).rationale((2, 3), value, direction=direction)
    assert one.outcome().win_rate == 1.0
    assert one.outcome(direction="necessity").win_rate == 0.0


def test_sizes_do_not_mix(book):
    one = book().reference().null(SETS[:4], [0.2, 0.3, 0.4, 0.5]).rationale((2, 3), 0.6)
    one.null([(0,), (1,), (2,), (3,)], [0.9] * 4).rationale((4,), 0.6)
    assert one.outcome(size=2).win_rate == 1.0
    assert one.outcome(size=1).win_rate == 0.0


@pytest.mark.parametrize("bad", [(math.nan, math.nan), (math.nan, -0.1), (math.inf, 0.0), (-math.inf, 0.0)])
@pytest.mark.parametrize("place", ["rationale", "null"])
def test_a_score_that_is_not_finite_is_an_error_and_no_number(book, bad, place):
    null = [0.2, 0.3, bad if place == "null" else 0.4, 0.5]
    one = book().reference().null(SETS[:4], null).rationale((2, 3), bad if place == "rationale" else 0.6)
    line = as_json(one.outcome())
    assert line["error"] == "a score is not finite"
    assert "win_rate" not in line and "p_value" not in line
    assert_no_numbers(one, error="a score is not finite")


def assert_no_numbers(one, *, error, **asked):
    """The line of an example that failed says who it is and why, and nothing else."""
    cell, found = one.outcomes(**asked)
    [line] = outcome_table({cell: found}).to_pylist()
    known = {name: line.pop(name) for name in ("example_id", "error", "n_units", "target", "gold", *cell._fields)}
    assert set(line.values()) == {None}
    assert {"predicted", "m", "exact", "win_rate", "p_value", "score", "rationale", *FLAGS} <= set(line)
    assert known == {
        "example_id": one.example_id,
        "error": error,
        "n_units": one.n_units,
        "target": one.input.target,
        "gold": one.gold,
        **cell._asdict(),
        "k": str(cell.k),
    }


def test_a_score_outside_the_null_may_be_anything(book):
    nan = (math.nan, math.nan)
    outcome = book(m=4).reference().null(SETS[:5], [0.2, 0.3, 0.4, 0.5, nan]).rationale((2, 3), 0.6).outcome()
    assert outcome.error is None and outcome.win_rate == 1.0


def test_the_average_over_operators_fails_where_one_of_them_does(book):
    one = book().reference()
    one.null(SETS[:4], [0.2, 0.3, 0.4, 0.5]).rationale((2, 3), 0.6)
    one.null(SETS[:4], [0.2, 0.3, 0.4, (math.nan,) * 2], operator="infill").rationale((2, 3), 0.6, operator="infill")
    assert one.outcome("delete").error is None
    assert one.outcome("infill").error == one.outcome("delete", "infill").error == "a score is not finite"


def test_a_skipped_example_carries_its_reason(book):
    one = book(n_units=1)
    one.skip_reason = "the text has one unit, so there is no other set to compare with"
    assert_no_numbers(one, error=one.skip_reason, size=1)
    assert as_json(one.outcome(size=1)) == {
        "example_id": "e0",
        "attribution": "mine",
        "operator": "delete",
        "direction": "sufficiency",
        "k": 1.0,
        "null": "size",
        "n_units": 1,
        "target": None,
        "gold": None,
        "error": one.skip_reason,
    }


def test_an_attribution_that_is_missing_or_not_finite_is_an_error(book):
    one = book(broken=(0.0, math.nan, 0.0, 0.0, 0.0, 0.0)).reference().null(SETS[:4], [0.2, 0.3, 0.4, 0.5])
    assert one.outcome(name="broken").error == "the attribution 'broken' is not finite"
    assert one.outcome(name="absent").error == "the attribution 'absent' gave nothing"


def test_a_line_holds_the_fields_of_the_contract(book):
    one = book(gold=1).reference(full=0.52, empty=0.5).null(SETS[:4], [0.3] * 4).rationale((2, 3), 0.6)
    cell, found = one.outcomes()
    [line] = outcome_table({cell: found}).to_pylist()
    contract = {
        "example_id", "attribution", "operator", "direction", "k", "win_rate", "win_rate_strict", "tie_rate", "p_value",
        "p_lower", "effect_size", "nsr", *FLAGS, "rationale",
    }  # fmt: skip
    assert contract <= set(line)
    assert (line["effect_size"], line["nsr"], line["rationale"]) == (None, None, [2, 3])
    assert (line["weak_signal"], line["negative_signal"], line["ties"]) == (True, False, False)
    read = json.loads(json.dumps(as_json(one.outcome()), allow_nan=False))
    assert contract - set(FLAGS) <= set(read)
    assert (read["effect_size"], read["nsr"], read["rationale"], read["flags"]) == (None, None, [2, 3], ["weak_signal"])


@pytest.mark.parametrize("adaptive", [None, "examples"])
def test_rows_go_to_the_example_they_belong_to(book, adaptive):
    books = [
        book("e1").reference().null(SETS[:4], [0.2, 0.3, 0.4, 0.5]).rationale((2, 3), 0.6),
        book("e2", n_units=5, other=(0.0,) * 5).reference().null(SETS[:3], [0.2, 0.3, 0.4]).rationale((2, 3), 0.1),
        book("e3").reference().null(SETS[:4], [0.2, (math.nan,) * 2, 0.4, 0.5]).rationale((2, 3), 0.3),
        book("e4").reference().null(SETS[:4], [0.2, 0.3, 0.4, 0.5]).rationale(SETS[1], 0.3),
    ]
    names = Names(tuple(one.example_id for one in books), ("mine",), ("size",), ("delete",))
    mixed = [row for rows in itertools.zip_longest(*(one.ledger_rows() for one in books)) for row in rows if row]
    together = ScoredExamples(
        Examples.of([one.input for one in books]),
        ledger_of(mixed, names),
        settings(m=4, adaptive=adaptive),
    )
    cell, _ = books[0].outcomes()
    found = together.outcomes(cell._replace(k=0.4), ["delete"])
    assert found.sound.tolist() == [True, True, False, True]
    assert found.errors == {2: "a score is not finite"}
    families = dict(zip(["e1", "e2", "e4"], found.families.rates(), strict=True))
    for place, one in enumerate(books):
        _, alone = one.outcomes(size=0.4 * one.n_units, adaptive=adaptive)
        for name in ("win_rate", "p_value", "p_lower", "effect", "effect_size", "nsr", "m", "exact", "first_half"):
            assert found.column(name)[place] == pytest.approx(alone.column(name)[0], nan_ok=True), name
        if one is not books[2]:
            [family] = alone.families.rates()
            assert np.array_equal(family, families[one.example_id])
    assert found.column("win_rate")[:2].tolist() == [1.0, 0.0]
    assert found.rationales == {0: (2, 3), 1: (2, 3), 3: SETS[1]}


def test_the_clipped_share_of_the_signal_stays_within_two_and_is_nothing_where_the_signal_is_weak():
    probability = np.tile([0.2, 0.5, 0.8, 1.0], (3, 1))
    found = clipped_nsr(probability, np.array([0.8, 0.6, 0.54]), np.array([0.2, 0.5, 0.5]))
    assert found[0].tolist() == pytest.approx([0, 0.5, 1, 4 / 3])
    assert found[1].tolist() == pytest.approx([-2, 0, 2, 2])
    assert found[2].tolist() == [0, 0, 0, 0]


def test_the_clipped_share_of_a_score_that_is_missing_is_missing():
    found = clipped_nsr(np.array([[np.nan, 0.5], [np.nan, 0.5]]), np.array([0.9, 0.51]), np.array([0.1, 0.5]))
    assert np.isnan(found[:, 0]).all() and found[:, 1].tolist() == pytest.approx([0.5, 0.0])


def test_log_odds_are_those_of_the_target_against_all_others():
    scores = np.log([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1]])
    assert log_odds(scores, 0) == pytest.approx([0, math.log(0.1 / 0.9)])
    assert log_odds(scores, 2) == pytest.approx([math.log(0.2 / 0.8), math.log(0.1 / 0.9)])
    assert log_odds(scores, np.array([0, 2])) == pytest.approx([0, math.log(0.1 / 0.9)])
    assert np.isnan(log_odds(scores, NOT_SET)).all()
    assert np.isnan(log_odds(scores, np.array([NOT_SET, 1]))).tolist() == [True, False]


def test_a_line_says_which_configuration_it_is_of(book):
    one = book().reference().null(SETS[:4], [0.2, 0.3, 0.4, 0.5]).rationale((2, 3), 0.6)
    cell, _ = one.outcomes()
    assert one.outcome().configuration == cell


def test_a_line_says_whether_its_null_holds_all_sets(book):
    one = book(m=4).reference().null(SETS[:4], [0.2, 0.3, 0.4, 0.5]).rationale((2, 3), 0.6)
    assert not one.outcome().exact
    assert book(m=9).reference().null(SETS[:4], [0.2, 0.3, 0.4, 0.5]).rationale((2, 3), 0.6).outcome().exact
