import numpy as np
import pytest
from scipy.stats import pearsonr

from ice_eval.errors import DataError
from ice_eval.stats import correlation_pvalue, detectable_correlation


def test_p_value_is_that_of_the_pairs_themselves():
    rng = np.random.default_rng(0)
    x = rng.normal(size=30)
    y = x + 2 * rng.normal(size=30)
    found = pearsonr(x, y)
    assert correlation_pvalue(float(found.statistic), 30) == pytest.approx(float(found.pvalue))
    assert correlation_pvalue(-0.3, 20) == correlation_pvalue(0.3, 20)


def test_the_detectable_correlation_is_found_four_times_in_five():
    rng, n = np.random.default_rng(1), 50
    r = detectable_correlation(n)
    x = rng.normal(size=(4000, n))
    y = r * x + np.sqrt(1 - r**2) * rng.normal(size=x.shape)
    found = pearsonr(x, y, axis=1).pvalue < 0.05
    assert found.mean() == pytest.approx(0.8, abs=0.02)


def test_impossible_input_is_refused():
    with pytest.raises(DataError, match="between -1 and 1"):
        correlation_pvalue(1.0, 10)
    with pytest.raises(DataError, match="at least 3 pairs"):
        correlation_pvalue(0.1, 2)
    with pytest.raises(DataError, match="at least 4 pairs"):
        detectable_correlation(3)
