"""The checks of simulated win rates hold for our intervals, and fail for those that are too narrow."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from ice_eval.selftest import checks as source
from ice_eval.selftest.checks import MEAN, simulated


def found(n=60):
    return list(simulated(n, rng=np.random.default_rng(0)))


def test_every_guarantee_holds_and_names_its_rate():
    checks = found()
    assert [check for check in checks if not check.ok] == []
    assert {check.bound for check in checks if check.is_guarantee} == {"≤ 2.5%", "≤ 5%", "≥ 95%"}
    kinds = {check.about.attribution for check in checks}
    assert kinds == {
        "benign win rates", "skewed win rates", "tied win rates", "random", "unequal groups", "skewed differences",
        "chains of thought", "random, scores little by fills", "random, scores mostly by fills",
    }  # fmt: skip


@pytest.mark.parametrize("draw", [source.benign, source.skewed, source.tied])
def test_simulated_win_rates_have_the_mean_that_is_tested(draw):
    values = draw(np.random.default_rng(1), 200_000)
    assert values.mean() == pytest.approx(MEAN, abs=0.003)
    assert 0 <= values.min() and values.max() <= 1


def naive(values, mean, *, groups=None, scale=(0.0, 1.0)):
    """Student's test, which knows neither skewness nor groups."""
    return 0.0 if np.ptp(values) == 0 and values[0] != mean else float(ttest_1samp(values, mean).pvalue)


def test_a_test_that_ignores_skewness_and_groups_fails(monkeypatch):
    monkeypatch.setattr(source.stats, "mean_pvalue", naive)
    failed = {check.about.attribution for check in found(n=150) if not check.ok}
    assert {"skewed win rates", "tied win rates", "unequal groups", "skewed differences"} <= failed


def test_words_that_follow_the_mean_alone_fail(monkeypatch):
    monkeypatch.setattr(source, "_is_called_faithful", lambda rates: rates.mean() > MEAN)
    monkeypatch.setattr(source.stats, "mean_pvalue", lambda values, mean, **more: 0.0)
    failed = {check.name for check in found() if not check.ok}
    assert "25 examples with a mean of 60 % are called faithful" in failed
