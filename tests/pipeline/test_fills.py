"""Several fills: rationales are scored under all of them, each random set under one, and compared under that one."""

import math
from collections import Counter

import numpy as np
import pytest
from tests.small_runs import line_of, lines_of, rows_of
from tests.toy_runs import reviews, run

from ice_eval.records import Kind

M, FILLS = 12, 4
BOTH = ["sufficiency", "necessity"]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return run(
        reviews(20),
        m=M,
        n_fills=FILLS,
        operators=["delete", "infill"],
        directions=BOTH,
        attributions=["gradient", "random"],
        out=tmp_path_factory.mktemp("fills") / "run",
    )


@pytest.fixture(scope="module")
def rows(found):
    """(kind, attribution, operator, direction, example) -> (set, fill) -> log-scores."""
    rows = {}
    for row in rows_of(found):
        key = row.key
        place = (key.kind, key.attribution, key.operator, key.direction, key.example_id)
        rows.setdefault(place, {})[key.set, key.draw] = (tuple(row.scores), key.set, set(row.kept))
    return rows


def log_odds(scores, target):
    others = [value for label, value in enumerate(scores) if label != target]
    return scores[target] - math.log(sum(map(math.exp, others)))


def probability(scores, target):
    return 1 / (1 + math.exp(-log_odds(scores, target)))


def by_hand(rows, line, operators):
    """Win rate and p-value of one example, one comparison at a time."""
    single, sign = len(operators) == 1, 1 if line.direction == "sufficiency" else -1
    own = [rows[Kind.RATIONALE, line.attribution, name, line.direction, line.example_id] for name in operators]
    null = [rows[Kind.RANDOM, None, name, line.direction, line.example_id] for name in operators]
    place = next(iter(own[0].values()))[1]
    wins = ties = n = 0
    for number in range(M + 1):
        if number == place or n == M:
            continue
        values = []
        for of_rationale, of_sets in zip(own, null, strict=True):
            [(fill, scores)] = [(fill, each[0]) for (which, fill), each in of_sets.items() if which == number]
            [beside] = [each[0] for (_, draw), each in of_rationale.items() if draw == fill]
            value = log_odds if single else probability
            values.append((value(beside, line.target), value(scores, line.target)))
        mine, other = (sign * sum(each) / len(values) for each in zip(*values, strict=True))
        n += 1
        if math.isclose(mine, other, rel_tol=1e-12, abs_tol=1e-12):
            ties += 1
        else:
            wins += mine > other
    return (wins + ties / 2) / n, (1 + n - wins) / (n + 1), n


def test_win_rates_are_those_of_a_plain_loop_over_the_rows(found, rows):
    checked = 0
    for line in found.folder.examples():
        operators = ["delete", "infill"] if line.operator == "all" else [line.operator]
        win_rate, p_value, n = by_hand(rows, line, operators)
        assert (line.win_rate, line.p_value, line.m) == (pytest.approx(win_rate), pytest.approx(p_value), n)
        checked += 1
    assert checked == 20 * 2 * 2 * 3


def test_sets_are_distributed_over_the_fills_and_rationales_have_them_all(found):
    sets = Counter((row.key.operator, row.key.draw) for row in rows_of(found, "random", direction="sufficiency"))
    assert sets["delete", 0] == sum(sets["infill", fill] for fill in range(FILLS)) == 20 * (M + 1)
    assert all(row.key.draw == row.key.set % FILLS for row in rows_of(found, "random", operator="infill"))
    own = Counter(row.key.draw for row in rows_of(found, operator="infill") if row.key.kind == Kind.RATIONALE)
    assert own == dict.fromkeys(range(FILLS), 20 * 2 * 2)


def test_the_score_is_the_mean_probability_over_fills(found, rows):
    for line in lines_of(found, operator="infill"):
        own = rows[Kind.RATIONALE, line.attribution, "infill", line.direction, line.example_id]
        assert line.score == pytest.approx(np.mean([probability(each[0], line.target) for each in own.values()]))


def test_one_fill_says_nothing_about_agreement_beyond_it(found, tmp_path):
    one = run(reviews(20), m=M, n_fills=1, attributions=["gradient"], out=tmp_path / "one")
    [line] = one.folder.summary().agreement
    assert line.rank_correlation is not None
    assert (line.rank_correlation_ceiling, line.disagree_rate, line.disagree) == (None, None, None)
    assert {each.m_effective for each in lines_of(one, operator="infill")} == {1.0}
    assert {each.m_effective for each in lines_of(found, operator="delete")} == {None}
    several = [each.m_effective for each in lines_of(found, operator="infill")]
    assert min(several) >= 1 and max(several) <= M
    assert all(each.disagree_rate is not None for each in found.folder.summary().agreement)


def test_there_are_no_more_fills_than_sets(tmp_path):
    few = run(reviews(6), m=3, n_fills=8, operators=["infill"], out=tmp_path / "few")
    assert {row.key.draw for row in rows_of(few, operator="infill")} == {0, 1, 2}


def test_an_attribution_is_added_under_the_same_fills(found, tmp_path):
    settings = {"m": M, "n_fills": FILLS, "operators": ["delete", "infill"], "directions": BOTH}
    added = run(reviews(20), attributions=["gradient"], out=tmp_path / "run", **settings)
    before = line_of(added, attribution="gradient", operator="infill", direction="necessity")
    added = run(reviews(20), attributions=["gradient", "random"], out=tmp_path / "run", **settings)
    names = {"operator": "infill", "direction": "necessity"}
    assert line_of(added, attribution="gradient", **names).win_rate == before.win_rate
    whole = line_of(found, attribution="random", **names)
    assert line_of(added, attribution="random", **names).win_rate == whole.win_rate


@pytest.mark.parametrize("adaptive", ["examples", "dataset"])
def test_adaptive_runs_use_several_fills(tmp_path, adaptive):
    done = run(reviews(12), adaptive=adaptive, m=None, n_fills=5, operators=["infill"], out=tmp_path / "run")
    own = rows_of(done, "random", operator="infill")
    assert {row.key.draw for row in own} == set(range(5))
    assert all(row.key.draw == row.key.set % 5 for row in own)
    assert all(line.error is None for line in done.folder.examples())
