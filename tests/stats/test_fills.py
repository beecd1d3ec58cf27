import numpy as np
import pytest

from ice_eval import stats

M, F = 12, 4
FILLS = np.arange(M) % F


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def scores(rng, n, *, share, m=M, n_fills=F):
    """Scores of random rationales and their sets; fills make a share of the variance."""
    quality = rng.standard_normal((n, m + 1, 1))
    under = np.sqrt(1 - share) * quality + np.sqrt(share) * rng.standard_normal((n, m + 1, n_fills))
    fills = np.arange(m) % n_fills
    return under[:, 0, fills], under[:, np.arange(1, m + 1), fills], np.broadcast_to(fills, (n, m)), np.full(n, m)


def test_one_number_per_rationale_is_that_number_beside_every_set(rng):
    observed, null, n = rng.random(5), rng.random((5, M)), np.full(5, M)
    one, many = (stats.compare_all(each, null, n) for each in (observed, np.repeat(observed[:, None], M, axis=1)))
    assert all(np.array_equal(getattr(one, name), getattr(many, name)) for name in vars(one))


def test_a_win_rate_is_the_mean_of_win_rates_per_fill(rng):
    observed, null, fills, n = scores(rng, 6, share=0.5)
    rates = [(observed[:, fills[0] == f] > null[:, fills[0] == f]).mean(axis=1) for f in range(F)]
    assert stats.compare_all(observed, null, n).win_rate == pytest.approx(np.mean(rates, axis=0))


def test_noise_of_fills_is_that_of_win_rates_per_fill(rng):
    observed, null, fills, n = scores(rng, 30, share=0.7)
    found = stats.fill_noise(observed, null, fills, n)
    rates = np.array([(observed[:, fills[0] == f] > null[:, fills[0] == f]).mean(axis=1) for f in range(F)])
    assert found.error == pytest.approx(rates.var(axis=0, ddof=1) / F)
    won = (observed > null).reshape(30, M // F, F)
    assert found.within == pytest.approx(won.var(axis=1, ddof=1).mean(axis=1))
    assert found.n_effective.min() >= 1 and found.n_effective.max() <= M
    assert (found.n_fills == F).all()


def test_one_fill_is_worth_one_set(rng):
    observed, null, _, n = scores(rng, 5, share=0.0)
    found = stats.fill_noise(observed, null, np.zeros((5, M), dtype=np.int64), n)
    assert found.n_effective.tolist() == [1.0] * 5 and np.isnan(found.error).all()


def test_members_are_compared_by_their_difference_to_the_rationale_under_their_fill(rng):
    observed, null, _, _ = scores(rng, 8, share=0.4)
    observed, null, n = np.round(observed, 1), np.round(null, 1), np.array([M, M, M, M, 5, 5, 2, 1])
    null = np.where(np.arange(M) < n[:, None], null, np.nan)
    rates = stats.member_win_rates_by_fill(observed, null, n)
    for own, sets, found, m in zip(observed, null, rates, n, strict=True):
        values = np.round([0.0, *(sets - own)[:m]], 1)
        ahead = np.sign(values[:, None] - values)
        assert found[: m + 1] == pytest.approx(0.5 + ahead.sum(axis=1) / 2 / m)
        assert np.isnan(found[m + 1 :]).all()
    assert rates[:, 0] == pytest.approx(stats.compare_all(observed, null, n).win_rate)


def test_an_offset_of_a_fill_changes_no_member_even_where_most_sets_tie(rng):
    observed, null, fills, n = scores(rng, 8, share=0.4)
    observed, null = np.round(observed), np.round(null)
    offset = np.array([0.1, 3.3, -2.7, 7.1])[fills]
    moved = stats.member_win_rates_by_fill(observed + offset, null + offset, n)
    assert np.array_equal(moved, stats.member_win_rates_by_fill(observed, null, n))


def test_members_of_one_fill_are_the_usual_ones(rng):
    observed, null, n = np.repeat(rng.random((5, 1)), M, axis=1), rng.random((5, M)), np.full(5, M)
    usual = stats.all_member_win_rates(np.concatenate([observed[:, :1], null], axis=1), n + 1)
    assert np.array_equal(stats.member_win_rates_by_fill(observed, null, n), usual)


def test_effect_sizes_of_one_fill_are_the_usual_ones(rng):
    observed, null, _, n = scores(rng, 5, share=0.0)
    whole = stats.effect_sizes_by_fill(observed, null, np.zeros((5, M), dtype=np.int64), n)
    assert whole == pytest.approx(stats.effect_sizes(observed[:, 0], null, n))


def test_an_offset_of_a_fill_changes_no_effect_size(rng):
    observed, null, fills, n = scores(rng, 5, share=0.3)
    offset = np.array([0.0, 3.0, -2.0, 7.0])[fills]
    moved = stats.effect_sizes_by_fill(observed + offset, null + offset, fills, n)
    assert moved == pytest.approx(stats.effect_sizes_by_fill(observed, null, fills, n))


@pytest.mark.parametrize(("share", "tied"), [(0.0, False), (0.7, False), (0.5, True)])
def test_the_test_of_a_data_set_keeps_its_level(rng, share, tied):
    rejected = 0
    for _ in range(200):
        observed, null, fills, n = scores(rng, 10, share=share)
        if tied:  # most scores are the offset of their fill, and few are larger
            offset = np.array([0.0, 3.0, -2.0, 7.0])[fills]
            observed, null = ((each > 1.3) + offset for each in (observed, null))
        families = [*stats.member_win_rates_by_fill(observed, null, n)]
        rejected += stats.mean_test(families, rng=rng, n_draws=99).p_value <= 0.05
    assert rejected <= 22  # binomial: 22 of 200 are reached with probability 0.0006 at the level of 5 %


def test_p_values_of_examples_are_conservative(rng):
    observed, null, _, n = scores(rng, 4000, share=0.5)
    p_values = stats.compare_all(observed, null, n).p_value
    for level in (0.1, 0.2):
        assert (p_values <= level).mean() <= level + 0.01


def test_the_parts_of_the_variance_are_found(rng):
    n, m, n_fills, between, fills = 4000, 20, 5, 0.03, 0.05
    truth = 0.5 + np.sqrt(between) * rng.choice([-1.0, 1.0], size=(n, 1))
    per_fill = truth + np.sqrt(fills) * rng.choice([-1.0, 1.0], size=(n, n_fills))
    won = rng.random((n, m)) < per_fill[:, np.arange(m) % n_fills]
    order = np.broadcast_to(np.arange(m) % n_fills, (n, m))
    noise = stats.fill_noise(np.where(won, 1.0, -1.0), np.zeros((n, m)), order, np.full(n, m))
    spread = stats.spread_of(won.mean(axis=1), m, noise=noise)
    assert spread.between == pytest.approx(between, rel=0.08)
    assert spread.fills == pytest.approx(fills, rel=0.08)
    assert spread.within == pytest.approx((per_fill * (1 - per_fill)).mean(), rel=0.03)
    assert spread.at(n_fills).variance(m) == pytest.approx(won.mean(axis=1).var(ddof=1), rel=0.02)
