import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ice_eval.errors import DataError
from ice_eval.stats import (
    Families,
    Spread,
    all_member_win_rates,
    cheapest_m,
    detectable,
    detectable_win_rate,
    m_for_width,
    mean_pvalue,
    n_for_detectable,
    n_for_width,
    spread_of,
    standard_error,
)
from ice_eval.stats.intervals import half_width

SPREADS = st.builds(Spread, between=st.floats(1e-4, 0.25), within=st.floats(1e-4, 0.25))
SETS = st.integers(1, 500)


def beta_moments(a, b):
    """Variance of true win rates from Beta(a, b), and the mean of w (1 - w)."""
    variance = a * b / ((a + b) ** 2 * (a + b + 1))
    return variance, a * b / ((a + b) * (a + b + 1))


@pytest.mark.parametrize(("a", "b"), [(2, 1), (5, 5)])
@pytest.mark.parametrize("m", [5, 50])
def test_spread_is_unbiased(a, b, m, rng):
    spreads = []
    for _ in range(1500):
        win_rates = rng.binomial(m, rng.beta(a, b, size=500)) / m
        spreads.append(spread_of(win_rates, m))
    for name, truth in zip(("between", "within"), beta_moments(a, b), strict=True):
        values = np.array([getattr(spread, name) for spread in spreads])
        assert values.min() > 0  # nothing was cut off at 0
        assert abs(values.mean() - truth) < 4 * values.std() / np.sqrt(values.size)


def test_spread_of_unequal_and_exact_examples_is_unbiased(rng):
    m = rng.integers(2, 40, size=200)
    exact = rng.random(200) < 0.3
    truths = rng.beta(2, 1, size=(2000, 200))
    win_rates = np.where(exact, truths, rng.binomial(m, truths) / m)
    spreads = [spread_of(row, m, exact=exact) for row in win_rates]
    between, within = beta_moments(2, 1)
    for values, truth in (
        (np.array([spread.between for spread in spreads]), between),
        (np.array([spread.within for spread in spreads]), within * np.mean(~exact)),
    ):
        assert abs(values.mean() - truth) < 4 * values.std() / np.sqrt(values.size)


def test_spread_done_by_hand():
    # Variance 1/8; each part of the noise is 1/4 * 3/4 * 4/3 = 1/4, over m = 4.
    spread = spread_of(np.array([0.25, 0.75]), 4)
    assert (spread.between, spread.within) == (pytest.approx(1 / 8 - 1 / 16), pytest.approx(1 / 4))
    exact = spread_of(np.array([0.25, 0.75]), 4, exact=np.array([True, True]))
    assert (exact.between, exact.within) == (pytest.approx(1 / 8), 0.0)


def test_variance_between_examples_is_never_negative():
    assert spread_of(np.array([0.5, 0.5, 0.6]), 10).between == 0.0


def test_an_exact_example_may_have_one_other_set():
    spread = spread_of(np.array([0.0, 1.0, 0.5]), np.array([1, 1, 20]), exact=np.array([True, True, False]))
    assert spread.within == pytest.approx(0.25 * 20 / 19 / 3)


@pytest.mark.parametrize(("n", "m"), [(20, 5), (100, 50)])
def test_standard_error_is_the_spread_of_simulated_means(n, m, rng):
    between, within = beta_moments(2, 1)
    means = (rng.binomial(m, rng.beta(2, 1, size=(20_000, n))) / m).mean(axis=1)
    assert standard_error(Spread(between, within), n=n, m=m) == pytest.approx(means.std(), rel=0.03)


def test_error_and_detectable_win_rate_of_the_data_themselves_are_found_again(rng):
    win_rates = rng.binomial(30, rng.beta(2, 1, size=80)) / 30
    spread = spread_of(win_rates, 30)
    assert standard_error(spread, n=80, m=30) == pytest.approx(win_rates.std(ddof=1) / np.sqrt(80))
    assert detectable(spread, n=80, m=30) == pytest.approx(detectable_win_rate(win_rates, families(80, ties=True)))


@pytest.mark.parametrize(("between", "within"), [(0.01, 0.2), (0.06, 0.17), (0.08, 0.01)])
@pytest.mark.parametrize("cost_example", [0.5, 7.0, 300.0])
def test_cheapest_number_of_sets_is_that_of_a_search(between, within, cost_example):
    grid = np.linspace(0.05, 200, 400_000)
    costs = (cost_example + 2.0 * grid) * (between + within / grid)
    found = cheapest_m(Spread(between, within), cost_example=cost_example, cost_set=2.0)
    assert found == pytest.approx(grid[costs.argmin()], abs=0.01)


def test_cheapest_number_of_sets_at_the_ends():
    assert cheapest_m(Spread(0.0, 0.2), cost_example=1, cost_set=1) == np.inf
    assert cheapest_m(Spread(0.1, 0.0), cost_example=1, cost_set=1) == 0.0
    assert cheapest_m(Spread(0.0, 0.0), cost_example=1, cost_set=1) == 0.0


@given(SPREADS, SETS, st.floats(0, 1))
def test_number_of_sets_for_a_width_is_the_smallest(spread, m, wider):
    fewer = m_for_width(spread, m=m, wider=wider)
    limit = (1 + wider) * standard_error(spread, n=100, m=m)
    assert 1 <= fewer <= m
    assert standard_error(spread, n=100, m=fewer) <= limit * (1 + 1e-9)
    assert fewer == 1 or standard_error(spread, n=100, m=fewer - 1) > limit * (1 - 1e-9)


def test_number_of_sets_for_no_wider_an_interval_is_the_same():
    for m in range(1, 300):
        assert m_for_width(Spread(0.06, 0.17), m=m, wider=0.0) == m
    assert m_for_width(Spread(0.06, 0.0), m=50, wider=0.0) == 1
    assert m_for_width(Spread(0.0, 0.2), m=100, wider=1.0) == 25


@given(SPREADS, SETS, st.floats(0.005, 0.5), st.sampled_from([0.8, 0.95, 0.99]))
def test_number_of_examples_for_a_width_is_the_smallest(spread, m, width, level):
    n = n_for_width(spread, m=m, width=width, level=level)
    widths = [2 * half_width(each, level=level) * standard_error(spread, n=each, m=m) for each in (n, max(n - 1, 1))]
    assert widths[0] <= width * (1 + 1e-9)
    assert n == 2 or widths[1] > width * (1 - 1e-9)


@given(SPREADS, SETS, st.floats(0.505, 1))
def test_number_of_examples_for_a_win_rate_is_the_smallest(spread, m, win_rate):
    n = n_for_detectable(spread, m=m, win_rate=win_rate)
    assert detectable(spread, n=n, m=m) <= win_rate * (1 + 1e-9)
    assert n == 2 or detectable(spread, n=n - 1, m=m) > win_rate * (1 - 1e-9)


def test_round_off_asks_for_no_further_example():
    spread = Spread(0.04, 0.0)
    for n in (*range(7, 40), 100, 101, 250):
        assert n_for_detectable(spread, m=50, win_rate=detectable(spread, n=n, m=50) * (1 + 1e-15)) == n


def families(n, *, m=50, ties=False):
    """Families of n examples, all of whose sets have different scores, or all the same one."""
    scores = np.zeros((n, m + 1)) if ties else np.tile(np.arange(m + 1.0), (n, 1))
    sizes = np.full(n, m + 1)
    return Families.of(all_member_win_rates(scores, sizes), sizes, sizes)


@pytest.mark.parametrize(("n", "expected"), [(20, 0.82), (100, 0.587), (500, 0.537)])
def test_detectable_win_rate_of_uniform_win_rates(n, expected):
    assert detectable_win_rate(np.linspace(0, 1, n), families(n)) == pytest.approx(expected, abs=0.015)


def test_win_rates_that_happen_to_be_equal_make_a_data_set_no_more_precise():
    spread = detectable_win_rate(np.full(100, 0.52), families(100))
    assert spread == pytest.approx(detectable(Spread(1 / 12, 0.0), n=100, m=50), abs=0.005)
    assert 0.5 < detectable_win_rate(np.full(100, 0.5), families(100, ties=True)) < 0.52


def test_detectable_win_rate_of_groups_has_the_cluster_robust_error(rng):
    rates, groups = np.repeat(rng.random(60), 5), np.repeat(np.arange(60), 5)
    error = rates[::5].std(ddof=1) / np.sqrt(60)
    found = detectable_win_rate(rates, families(300), groups=groups)
    assert found == pytest.approx(0.5 + (half_width(60) + 0.84) * error)
    assert found > detectable_win_rate(rates, families(300)) + 0.02


def test_detectable_win_rate_of_nothing_is_refused():
    with pytest.raises(DataError, match="at least one win rate"):
        detectable_win_rate(np.array([]), families(0))
    with pytest.raises(DataError, match="1 of 2 win rates that are NaN"):
        detectable_win_rate(np.array([0.1, np.nan]), families(2))


@pytest.mark.parametrize("n", [20, 60, 200])
def test_an_interval_excludes_chance_four_times_out_of_five_at_the_detectable_win_rate(n, rng):
    truth = detectable_win_rate(np.linspace(0.02, 0.98, n), families(n))
    # Beta variables with this mean and about the variance of uniform ones.
    a = truth * (truth * (1 - truth) * 12 - 1)  # 12: one over the variance of a uniform variable
    samples = rng.beta(a, a * (1 - truth) / truth, size=(400, n))
    power = np.mean([mean_pvalue(row, 0.5) <= 0.05 for row in samples])
    assert power == pytest.approx(0.8, abs=0.1)


def test_uniform_win_rates_need_the_sizes_that_are_always_printed():
    uniform = Spread(1 / 12 - 1 / 6 / 50, 1 / 6)
    for n, expected in [(20, 0.797), (100, 0.587), (500, 0.537)]:
        assert detectable(uniform, n=n, m=50) == pytest.approx(expected, abs=0.005)


def test_bad_input_is_refused():
    spread = Spread(0.06, 0.17)
    with pytest.raises(DataError, match="at least two examples to see a spread, got one"):
        spread_of(np.array([0.5]), 50)
    with pytest.raises(DataError, match=r"win rates lie in \[0, 1\], got values from 40.0 to 60.0"):
        spread_of(np.array([40.0, 60.0]), 50)
    with pytest.raises(DataError, match="at least two random sets behind a win rate"):
        spread_of(np.array([0.0, 1.0]), 1)
    with pytest.raises(DataError, match="one number of random sets per example, got an array of shape"):
        spread_of(np.array([0.1, 0.2]), np.array([5, 5, 5]))
    with pytest.raises(DataError, match="one exact flag per example"):
        spread_of(np.array([0.1, 0.2]), 5, exact=np.array([True]))
    with pytest.raises(DataError, match="a variance is finite and not negative"):
        Spread(-0.1, 0.2)
    with pytest.raises(DataError, match="at least one example, got n=0"):
        standard_error(spread, n=0, m=50)
    with pytest.raises(DataError, match="at least one random set, got m=0"):
        detectable(spread, n=10, m=0)
    with pytest.raises(DataError, match="costs are positive and finite, got cost_example=0"):
        cheapest_m(spread, cost_example=0, cost_set=1)
    with pytest.raises(DataError, match="not negative, got -0.1"):
        m_for_width(spread, m=50, wider=-0.1)
    with pytest.raises(DataError, match="width of an interval is positive, got 0"):
        n_for_width(spread, m=50, width=0)
    with pytest.raises(DataError, match="confidence level lies between 0 and 1, got 95"):
        n_for_width(spread, m=50, width=0.1, level=95)
    with pytest.raises(DataError, match="lies above 0.5 and at most at 1, got 0.5"):
        n_for_detectable(spread, m=50, win_rate=0.5)


def test_ties_add_less_noise_than_wins_and_losses(rng):
    # 40 % of the sets tie, which count one half: the variance of one comparison is 0.3 + 0.4/4 - 0.5**2 = 0.15.
    outcomes = rng.choice([0.0, 0.5, 1.0], p=[0.3, 0.4, 0.3], size=(4000, 20))
    rates, ties = outcomes.mean(axis=1), (outcomes == 0.5).mean(axis=1)
    spread = spread_of(rates, 20, tie_rates=ties)
    assert spread.within == pytest.approx(0.15, abs=0.003)
    assert spread.between == pytest.approx(0.0, abs=0.001)
    assert spread_of(rates, 20).within == pytest.approx(0.25 + 0.1 / 19, abs=0.003)


def test_examples_of_few_groups_count_as_copies(rng):
    rates = rng.random(60)
    alone = spread_of(rates, 20)
    for groups, copies in ((["a"] * 60, 60), (np.repeat([0, 1, 2], 20), 20)):
        spread = spread_of(rates, 20, groups=groups)
        assert spread.variance(20) == pytest.approx(copies * alone.variance(20))


def test_groups_make_a_mean_less_sure(rng):
    n_groups, copies, m = 400, 4, 20
    truth = np.repeat(rng.beta(2, 2, size=n_groups), copies)
    win_rates, groups = rng.binomial(m, truth) / m, np.repeat(np.arange(n_groups), copies)
    spread = spread_of(win_rates, m, groups=groups)
    # Examples of a group share their true win rate, so a mean of N has the variance of N / 4 of them.
    assert spread.between == pytest.approx(copies * truth.var(), rel=0.2)
    assert spread.within == spread_of(win_rates, m).within
    means = [rng.binomial(m, np.repeat(rng.beta(2, 2, size=n_groups), copies)).mean() / m for _ in range(2000)]
    assert standard_error(spread, n=n_groups * copies, m=m) == pytest.approx(np.std(means), rel=0.1)


@pytest.mark.parametrize("n", [1, 3, 8, 20, 49, 50, 200])
def test_no_win_rate_is_detectable_that_equal_values_do_not_show(n):
    least = detectable_win_rate(np.full(n, 0.6), families(n, ties=True))
    assert least > 0.5
    if least < 0.99:
        assert mean_pvalue(np.full(n, least + 1e-6), 0.5) <= 0.05 < mean_pvalue(np.full(n, least - 2e-3), 0.5)
