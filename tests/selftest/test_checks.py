"""Each check on hand-made trials: it passes what is valid and fails what is not."""

import itertools

import numpy as np
import pytest

from ice_eval import rationales, stats
from ice_eval.selftest import checks
from ice_eval.selftest.checks import About, Trials

ABOUT = About("model", "operator", "sufficiency", "random")
N, M = 2000, 19


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def compared(families):
    """Trials of the first member of each family of scores."""
    found = [stats.compare(float(family[0]), np.asarray(family[1:], dtype=float)) for family in families]
    columns = {
        name: np.array([getattr(each, name) for each in found])
        for name in ("p_value", "p_lower", "win_rate", "tie_rate")
    }
    sizes = np.array([len(family) - 1 for family in families])
    return Trials(ABOUT, **columns, m=sizes, families=[stats.member_win_rates(np.asarray(f, float)) for f in families])


def null(rng, *, levels=None, sizes=(M,), n=N):
    """Trials without a signal; with few levels most scores tie."""
    drawn = [rng.random(1 + sizes[index % len(sizes)]) for index in range(n)]
    return compared([np.floor(each * levels) if levels else each for each in drawn])


def failing(found):
    return [check.name for check in found if not check.ok]


@pytest.mark.parametrize("levels", [None, 3, 1], ids=["continuous", "ties", "nothing but ties"])
@pytest.mark.parametrize("sizes", [(M,), (3, 6, M)], ids=["one size", "several sizes"])
def test_valid_tests_pass_however_discrete_they_are(rng, levels, sizes):
    trials = null(rng, levels=levels, sizes=sizes)
    found = [*checks.false_positives(trials), checks.uniform_ranks(trials, rng=rng)]
    assert failing(found) == []
    assert all(check.is_guarantee for check in found)


def test_a_share_comes_with_its_exact_interval():
    check = checks.at_most("name", ABOUT, np.arange(100) < 8, 0.05)
    assert (check.observed, check.n, check.bound) == (0.08, 100, "≤ 5%")
    assert (check.low, check.high) == pytest.approx((0.0352, 0.1516), abs=1e-3)
    assert check.p == pytest.approx(0.128, abs=1e-3)


def test_a_share_fails_below_one_in_a_thousand_and_not_before():
    shares = {k: checks.at_most("name", ABOUT, np.arange(100) < k, 0.05) for k in (13, 14)}
    assert shares[13].p > checks.LIMIT > shares[14].p
    assert shares[13].ok and not shares[14].ok


def test_what_is_measured_never_fails():
    check = checks.measured("name", ABOUT, np.zeros(50, dtype=bool), "power")
    assert check.ok and not check.is_guarantee


def test_a_bound_of_none_allows_none_and_a_bound_of_all_demands_all():
    hits = np.arange(100) < 1
    assert not checks.at_most("name", ABOUT, hits, 0.0).ok
    assert checks.at_most("name", ABOUT, hits & False, 0.0).ok
    assert not checks.at_least("name", ABOUT, ~hits, 1.0).ok
    assert checks.at_least("name", ABOUT, hits | True, 1.0).ok


def changed(trials, **columns):
    values = {name: getattr(trials, name) for name in ("p_value", "p_lower", "win_rate", "tie_rate", "m", "families")}
    return Trials(ABOUT, **values | columns)


def test_p_values_without_the_observed_set_fail(rng):
    trials = null(rng, sizes=(3, 6, M))
    p = (trials.p_value * (trials.m + 1) - 1) / trials.m
    assert "false positives, upper tail, α = 0.05" in failing(checks.false_positives(changed(trials, p_value=p)))


def test_p_values_that_drop_ties_fail_in_both_tails(rng):
    trials = null(rng, levels=2)
    less = trials.tie_rate * trials.m / (trials.m + 1)
    dropped = changed(trials, p_value=trials.p_value - less, p_lower=trials.p_lower - less)
    names = failing(checks.false_positives(dropped))
    assert any("upper" in name for name in names) and any("lower" in name for name in names)


def test_ranks_that_avoid_the_ends_fail(rng):
    trials = null(rng)
    inner = np.clip(trials.win_rate, 2 / M, 1 - 2 / M)
    assert not checks.uniform_ranks(changed(trials, win_rate=inner), rng=rng).ok


def test_the_mean_is_tested_on_both_sides(rng):
    trials = null(rng)
    assert checks.mean_win_rate(trials).ok
    for shift in (-0.05, 0.05):
        assert not checks.mean_win_rate(changed(trials, win_rate=trials.win_rate + shift)).ok


def test_trials_are_checked_for_what_they_have(rng):
    trials = null(rng, n=400)
    whole = [check.name for check in checks.calibration(trials, rng=rng)]
    bare = [check.name for check in checks.calibration(changed(trials, families=()), rng=rng)]
    assert {name for name in whole if name not in bare} == {
        "data sets of 25 distinguished from random, p ≤ 0.05",
        "verdict on a data set of 25 is not random",
    }
    sequential = [check.name for check in checks.calibration(changed(trials, sequential=True), rng=rng)]
    assert {name for name in whole if name not in sequential} == {
        "ranks are uniform",
        "false positives, upper tail, α = 0.20",
        "false positives, lower tail, α = 0.20",
    }


def test_data_sets_are_told_from_random_at_their_level_and_by_their_direction(rng):
    told, won = checks.data_sets(null(rng), rng=rng)
    assert told.size == N // 25 and told.mean() < 0.15
    families = [np.append(family[0] + 1.0, family[1:]) for family in rng.random((100, M + 1))]
    told, won = checks.data_sets(compared(families), rng=rng)
    assert told.all() and won.all()
    told, won = checks.data_sets(compared([-family for family in families]), rng=rng)
    assert told.all() and not won.any()


def best(rng, n=100):
    return compared([np.append(2.0, family) for family in rng.random((n, M))])


def worst(rng, n=100):
    return compared([np.append(-2.0, family) for family in rng.random((n, M))])


SETTINGS = {"exact": True, "unique": True}


def test_the_truth_passes_as_itself_and_fails_as_its_opposite(rng):
    assert failing(checks.truth(best(rng), **SETTINGS, rng=rng)) == []
    assert failing(checks.negated_truth(worst(rng), **SETTINGS, rng=rng)) == []
    assert len(failing(checks.truth(worst(rng), **SETTINGS, rng=rng))) == 3
    assert len(failing(checks.negated_truth(best(rng), **SETTINGS, rng=rng))) == 4


def test_a_truth_that_ties_once_is_not_unique(rng):
    trials = best(rng)
    trials.p_value[3] = 2 / 20
    assert failing(checks.truth(trials, **SETTINGS, rng=rng)) == ["the truth has the smallest p-value"]
    assert failing(checks.truth(trials, **SETTINGS | {"unique": False}, rng=rng)) == []


def p_values(rng, n):
    return (1 + np.floor(rng.random(n) * 100)) / 100


def test_benjamini_hochberg_keeps_the_rate_and_raw_p_values_do_not(rng, monkeypatch):
    def found():
        mixture = {"n_null": 9, "n_signal": 1, "alpha": 0.10}
        yield from checks.false_discoveries(ABOUT, p_values(rng, 900), np.full(100, 0.01), **mixture, rng=rng)

    rate, power = found()
    assert rate.ok and rate.n == 100 and power.observed > 0.9
    monkeypatch.setattr(stats, "significant", lambda p, *, alpha: p <= alpha)
    rate, power = found()
    assert not rate.ok and rate.observed > 0.2


def test_an_interval_of_the_wrong_level_does_not_cover(rng, monkeypatch):
    settings = {"size": 100, "n_data_sets": 400}
    population = null(rng).win_rate
    assert checks.coverage(ABOUT, population, **settings, rng=rng).ok
    real = stats.mean_interval
    monkeypatch.setattr(stats, "mean_interval", lambda *args, **more: real(*args, level=0.85, **more))
    assert not checks.coverage(ABOUT, population, **settings, rng=rng).ok


def test_random_sets_are_uniform_and_ordered_ones_are_not(rng, monkeypatch):
    settings = {"n": 1000, "seed": 0}
    assert checks.uniform_sets(30, 6, **settings, rng=rng).ok
    assert checks.uniform_sets(8, 2, **settings, rng=rng).ok

    def ordered(n_units, size, count, **keys):
        first = itertools.islice(itertools.combinations(range(n_units), size), count)
        return np.array([rationales.keep_mask(units, n_units) for units in first])

    monkeypatch.setattr(rationales, "random_sets", ordered)
    assert not checks.uniform_sets(8, 2, **settings, rng=rng).ok
