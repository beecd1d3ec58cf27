"""Step-down minimum of p-values: against its definition, and its error rate where nothing is true."""

import numpy as np
import pytest
from scipy.stats import binomtest

from ice_eval.stats import MeanTest, all_member_win_rates, mean_tests, step_down


def made(statistic, null):
    return MeanTest.of(statistic, np.abs(np.asarray(null, dtype=float)))


def by_definition(tests):
    """Westfall and Young's algorithm 2.8 for tests whose draws belong together, one draw at a time."""
    n_draws = tests[0].n_draws
    p_of = [[np.mean(np.append(test.null, test.statistic) >= value) for value in test.null] for test in tests]
    order = sorted(range(len(tests)), key=lambda place: tests[place].p_value)
    found, largest = [0.0] * len(tests), 0.0
    for rank, place in enumerate(order):
        smallest = [min(p_of[other][draw] for other in order[rank:]) for draw in range(n_draws)]
        value = (1 + sum(each <= tests[place].p_value for each in smallest)) / (n_draws + 1)
        largest = max(largest, value)
        found[place] = largest
    return found


def test_adjusted_p_values_are_those_of_the_definition(rng):
    common = rng.normal(size=199)
    tests = [made(value, 0.7 * common + rng.normal(size=199)) for value in (3.5, 0.2, 2.4, 2.2)]
    found = step_down(tests, ["same"] * 4, rng=rng)
    assert found.p_values == pytest.approx(by_definition(tests))
    assert all(joint >= test.p_value for joint, test in zip(found.p_values, tests, strict=True))


def test_a_single_test_is_not_adjusted(rng):
    test = made(2.0, rng.normal(size=999))
    found = step_down([test], ["a"], rng=rng)
    assert found.p_values[0] == pytest.approx(test.p_value, abs=0.0011)
    assert found.alpha == pytest.approx(0.05, abs=0.002)


def test_the_same_test_twice_costs_nothing_and_independent_ones_cost_as_sidak_says(rng):
    null = rng.normal(size=9999)
    twice = [made(2.5, null), made(2.5, null)]
    together = step_down(twice, ["a", "a"], rng=rng)
    apart = step_down(twice, ["a", "b"], rng=rng)
    assert together.p_values[0] == pytest.approx(twice[0].p_value, abs=2e-4)
    assert apart.p_values[0] == pytest.approx(1 - (1 - twice[0].p_value) ** 2, rel=0.05)
    assert together.alpha == pytest.approx(0.05, abs=1e-3)
    assert apart.alpha == pytest.approx(1 - 0.95**0.5, rel=0.05)


def test_a_lone_effect_among_many_configurations_is_found(rng):
    tests = [made(9.0, rng.normal(size=9999)), *(made(1.0, rng.normal(size=9999)) for _ in range(96))]
    assert step_down(tests, range(97), rng=rng).p_values[0] < 0.02


def test_a_statistic_beyond_all_draws_is_adjusted_too(rng):
    tests = [made(np.inf, rng.normal(size=199)), *(made(0.5, rng.normal(size=199)) for _ in range(49))]
    assert tests[0].p_value == 1 / 200
    assert step_down(tests, range(50), rng=rng).p_values[0] == pytest.approx(1 - (1 - 1 / 200) ** 50, abs=0.03)


@pytest.mark.parametrize(("n_tests", "n_draws"), [(5, 199), (50, 199), (200, 99)])
def test_few_draws_make_no_false_rejection_more_likely(rng, n_tests, n_draws):
    wrong, n_trials = 0, 300
    for _ in range(n_trials):
        tests = [made(row[0], row[1:]) for row in rng.normal(size=(n_tests, n_draws + 1))]
        wrong += min(step_down(tests, range(n_tests), rng=rng).p_values) <= 0.05
    assert binomtest(wrong, n_trials, 0.05, alternative="greater").pvalue > 0.001


def test_infinite_statistics_tie_with_each_other_alone(rng):
    null = np.r_[np.full(5, np.inf), rng.normal(size=94)]
    tests = [made(np.inf, null), made(0.5, rng.normal(size=99))]
    assert tests[0].p_value == 6 / 100
    assert step_down(tests, ["a", "b"], rng=rng).p_values[0] >= 0.06


@pytest.mark.parametrize("alike", [0.0, 0.9])
def test_one_useless_method_of_ten_is_seldom_called_better(rng, alike):
    """Ten random explanations, alike or not, under two operators each, which score the same sets alike."""
    wrong, n_trials = 0, 150
    for _ in range(n_trials):
        families, keys = [], []
        shared = rng.normal(size=(20, 20))
        for method in range(10):
            own = alike**0.5 * shared + (1 - alike) ** 0.5 * rng.normal(size=(20, 20))
            for _ in range(2):
                scores = own + 0.3 * rng.normal(size=(20, 20))
                families.append([*all_member_win_rates(scores, np.full(20, 20))])
                keys.append(method)
        tests = mean_tests(families, rng=lambda: np.random.default_rng(3), n_draws=499)
        wrong += min(step_down(tests, keys, rng=rng).p_values) <= 0.05
    assert binomtest(wrong, n_trials, 0.05, alternative="greater").pvalue > 0.001
