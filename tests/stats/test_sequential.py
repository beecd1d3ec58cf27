import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, chisquare
from tests.stats.streams import compare_sequentially

from ice_eval.stats import compare, effect_size

GRID_STREAMS = st.lists(st.integers(-3, 3), max_size=60)  # few values, so many ties


def one_draw_at_a_time(observed, stream, *, whole, h):
    """The rule as it is written, as a loop: p-values, draws looked at, and the draws that the rates are over."""
    p_values, stops = [], []
    for hits in (lambda draw: draw >= observed, lambda draw: draw <= observed):
        n_hits, p_value, stop = 0, None, None
        for i, draw in enumerate(stream, start=1):
            n_hits += hits(draw)
            if n_hits == h:
                p_value, stop = h / i, i
                break
        if stop is None and not whole:
            return None
        p_values.append((n_hits + 1) / (len(stream) + 1) if p_value is None else p_value)
        stops.append(stop)
    looked_at = [len(stream) if stop is None else stop for stop in stops]
    rated = stream if None in stops else stream[: max(looked_at) - 1]
    wins, ties = sum(draw < observed for draw in rated), sum(draw == observed for draw in rated)
    rates = [(wins + ties / 2) / len(rated), wins / len(rated), ties / len(rated)]
    return *p_values, *looked_at, *rates, list(rated)


def as_tuple(result):
    if result is None:
        return None
    rates = [result.win_rate, result.win_rate_strict, result.tie_rate]
    return result.p_value, result.p_lower, result.n_upper, result.n_lower, *rates, result.null


@pytest.mark.parametrize("h", [2, 3, 10])
@pytest.mark.parametrize("n_values", [1, 2, 5, 1000])
def test_comparison_is_the_rule_applied_one_draw_at_a_time(n_values, h, rng):
    for _ in range(200):
        stream = rng.integers(0, n_values, size=rng.integers(1, 80)).astype(float)
        observed, whole = float(rng.integers(0, n_values)), bool(rng.integers(2))
        expected = one_draw_at_a_time(observed, stream, whole=whole, h=h)
        assert as_tuple(compare_sequentially(observed, stream, whole=whole, h=h)) == expected


@settings(deadline=None)
@given(st.integers(-3, 3), GRID_STREAMS, GRID_STREAMS, st.booleans(), st.integers(2, 6))
def test_draws_after_the_stop_never_change_a_number(observed, stream, more, whole, h):
    early = compare_sequentially(observed, np.array(stream, dtype=float), whole=False, h=h)
    if early is not None:
        late = compare_sequentially(observed, np.array(stream + more, dtype=float), whole=whole, h=h)
        assert as_tuple(late) == as_tuple(early)
        assert late.effect_size == early.effect_size


def test_a_larger_draw_does_not_undo_a_tie_that_is_settled():
    stream = np.array([1.0 - 1e-12, 1.0 + 1e-12] * 6)
    early = compare_sequentially(1.0, stream, whole=False, h=2)
    late = compare_sequentially(1.0, np.append(stream, 1e12), whole=False, h=2)
    assert compare(1.0, np.append(stream, 1e12)).tie_rate > 0.9  # the slack of the whole null would tie them
    assert (as_tuple(early), early.tie_rate) == (as_tuple(late), 0.0)


def test_round_off_does_not_break_ties():
    assert compare_sequentially(0.3, np.full(20, 0.1 + 0.2), whole=False).tie_rate == 1.0


def test_a_score_after_the_stop_need_not_be_a_number():
    stream = np.array([0.0, 1.0] * 3)
    settled = compare_sequentially(0.5, stream, whole=False, h=2)
    assert as_tuple(compare_sequentially(0.5, np.append(stream, np.nan), whole=True, h=2)) == as_tuple(settled)


def test_counts_of_a_comparison_done_by_hand():
    # Losses at draws 2 and 5 stop the upper tail, wins at 1 and 3 the lower one; draw 5 itself is not rated.
    result = compare_sequentially(0.5, np.array([0.1, 0.9, 0.2, 0.3, 0.8, 0.7]), whole=False, h=2)
    assert (result.p_value, result.p_lower) == (2 / 5, 2 / 3)
    assert (result.n_upper, result.n_lower, result.n_used) == (5, 3, 5)
    assert (result.win_rate, result.win_rate_strict, result.tie_rate) == (3 / 4, 3 / 4, 0.0)
    assert result.effect_size == effect_size(0.5, np.array([0.1, 0.9, 0.2, 0.3]))


def test_a_stream_that_stops_nothing_is_compared_whole(rng):
    for stream in rng.normal(size=(50, 30)):
        result, whole = compare_sequentially(0.3, stream, whole=True, h=31), compare(0.3, stream)
        names = ("win_rate", "win_rate_strict", "tie_rate", "p_value", "p_lower", "effect_size")
        assert all(getattr(result, name) == getattr(whole, name) for name in names)
        np.testing.assert_array_equal(result.null, stream)
        assert result.n_used == result.n_upper == result.n_lower == 30


def test_undecided_tails_ask_for_more_draws():
    assert compare_sequentially(1.0, np.array([]), whole=False) is None
    assert compare_sequentially(1.0, np.zeros(500), whole=False) is None  # nothing was as good yet
    result = compare_sequentially(1.0, np.zeros(500), whole=True)
    assert (result.p_value, result.p_lower) == (1 / 501, 1.0)
    assert (result.n_upper, result.n_lower, result.n_used) == (500, 10, 500)


def test_ties_count_in_both_tails():
    result = compare_sequentially(1.0, np.ones(10), whole=False)
    assert (result.p_value, result.p_lower, result.n_used) == (1.0, 1.0, 10)
    assert (result.win_rate, result.tie_rate, result.effect_size) == (0.5, 1.0, None)


def random_rationales(rng, *, n, n_sets, n_values, m=499):
    """Comparisons of rationales that are one of `n_sets` scored sets, in random order, at most `m` others scored."""
    results = []
    for _ in range(n):
        scores = rng.random(n_sets) if n_values is None else rng.integers(0, n_values, size=n_sets).astype(float)
        results.append(compare_sequentially(scores[0], scores[1 : m + 1], whole=True))
    return results


@pytest.mark.parametrize("n_values", [None, 4])
@pytest.mark.parametrize("n_sets", [15, 60, 500])
def test_random_rationales_have_valid_pvalues_and_win_half(n_sets, n_values, rng):
    results = random_rationales(rng, n=5000, n_sets=n_sets, n_values=n_values)
    for tail in ("p_value", "p_lower"):
        p_values = np.array([getattr(result, tail) for result in results])
        for alpha in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.8):
            n_small = np.count_nonzero(p_values <= alpha)
            assert binomtest(n_small, 5000, alpha, alternative="greater").pvalue > 1e-3
    rates = np.array([result.win_rate for result in results])
    assert abs(rates.mean() - 0.5) < 4 * rates.std() / np.sqrt(rates.size)


def sampled_family(rng, *, n_sets, n_values):
    """Scores of one fixed family, unequally often tied, in a random order of its sets."""
    scores = np.random.default_rng(9).integers(0, n_values, size=n_sets) ** 2.0
    return rng.permutation(scores)


@pytest.mark.parametrize(("n_sets", "m"), [(15, 14), (60, 40), (2000, 499)])
def test_sets_of_one_fixed_family_drawn_without_replacement_have_valid_pvalues(n_sets, m, rng):
    orders = [sampled_family(rng, n_sets=n_sets, n_values=6)[: m + 1] for _ in range(5000)]
    results = [compare_sequentially(scores[0], scores[1:], whole=True) for scores in orders]
    for tail in ("p_value", "p_lower"):
        p_values = np.array([getattr(result, tail) for result in results])
        for alpha in (0.05, 0.1, 0.2, 0.5):
            n_small = np.count_nonzero(p_values <= alpha)
            assert binomtest(n_small, 5000, alpha, alternative="greater").pvalue > 1e-3
    rates = np.array([result.win_rate for result in results])
    assert abs(rates.mean() - 0.5) < 4 * rates.std() / np.sqrt(rates.size)


def test_without_ties_every_possible_pvalue_is_met_with_its_own_probability(rng):
    m, h = 59, 10
    results = random_rationales(rng, n=20_000, n_sets=m + 1, n_values=None)
    possible = np.r_[np.arange(1, h + 1) / (m + 1), h / np.arange(m, h - 1, -1)]
    shares = np.diff(possible, prepend=0)  # P(p <= each possible value) is that value
    for tail in ("p_value", "p_lower"):
        cells = np.searchsorted(possible, [getattr(result, tail) - 1e-12 for result in results])
        assert chisquare(np.bincount(cells, minlength=possible.size), 20_000 * shares).pvalue > 1e-3


@pytest.mark.parametrize("truth", [0.5, 0.8, 0.95, 0.05])
@pytest.mark.parametrize("m", [40, 499])
def test_win_rate_is_unbiased_whatever_the_truth(truth, m, rng):
    rates = np.array([compare_sequentially(truth, draws, whole=True).win_rate for draws in rng.random((5000, m))])
    assert abs(rates.mean() - truth) < 4 * rates.std() / np.sqrt(rates.size)


def test_win_rate_with_ties_is_unbiased(rng):
    # Of the values 0 to 9, six lie below 6 and one is 6.
    streams = rng.integers(0, 10, size=(5000, 200)).astype(float)
    rates = np.array([compare_sequentially(6.0, draws, whole=True).win_rate for draws in streams])
    assert abs(rates.mean() - 0.65) < 4 * rates.std() / np.sqrt(rates.size)


@pytest.mark.parametrize("truth", [0.8, 0.95])
def test_a_win_rate_that_counted_the_stopping_draw_would_be_biased(truth, rng):
    results = [compare_sequentially(truth, draws, whole=True) for draws in rng.random((5000, 499))]
    naive = np.array([1 - result.p_value for result in results])  # 1 - h / l
    assert truth - naive.mean() > 5 * naive.std() / np.sqrt(naive.size)
