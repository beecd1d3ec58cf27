"""Interactions of units: none in a sum of words, found where they are planted, and no more than chance elsewhere."""

import numpy as np
import pytest
from scipy.stats import kstest
from tests.rows import each_row
from tests.small_runs import picks, run, task_of, texts
from tests.toy_runs import reviews
from tests.toy_runs import run as toy_run

from ice_eval.analysis.measures import Missing
from ice_eval.analysis.measures.random_sets import Interactions, _against_random, additive_fit, interactions
from ice_eval.models.toy import Toy

BOTH = ["sufficiency", "necessity"]


def sets_of(rng, n_sets, n_units, *sizes):
    found = np.zeros((n_sets, n_units), dtype=bool)
    for number, row in enumerate(found):
        row[rng.choice(n_units, sizes[number % len(sizes)], replace=False)] = True
    return found


@pytest.mark.parametrize("sizes", [(4,), (2, 5, 7)])
def test_the_interaction_is_a_coefficient_of_least_squares(sizes):
    rng = np.random.default_rng(len(sizes))
    kept, values, rationale = sets_of(rng, 60, 9, *sizes), rng.normal(size=60), [1, 4, 8]
    fit = additive_fit(kept, values)
    [found], [strength] = interactions(fit, kept, np.isin(np.arange(9), rationale)[None])
    totals = kept.sum(axis=1)
    pairs = np.array([sum(row[i] and row[j] for i in rationale for j in rationale if i < j) for row in kept])
    additive = np.column_stack([np.ones(60), kept, totals * (totals - 1) / 2])
    full = np.column_stack([additive, pairs])
    coefficients, *_ = np.linalg.lstsq(full, values, rcond=None)

    def left(design):
        return float(np.sum((values - design @ np.linalg.lstsq(design, values, rcond=None)[0]) ** 2))

    rank = np.linalg.matrix_rank(additive)
    assert found == pytest.approx(coefficients[-1])
    assert strength**2 == pytest.approx(left(additive) - left(full))
    assert fit.basis.shape == (60, rank) and rank == (9 if len(sizes) == 1 else 11)
    unexplained = left(additive) / (60 - rank) / np.var(values, ddof=1)
    assert fit.explained == pytest.approx(max(0, 1 - unexplained))


def test_too_few_sets_give_nothing():
    rng = np.random.default_rng(0)
    assert additive_fit(sets_of(rng, 18, 9, 3), rng.normal(size=18)) is None
    assert additive_fit(sets_of(rng, 19, 9, 3), rng.normal(size=19)) is not None


def test_a_sum_of_words_has_no_interactions():
    methods = ["gradient", "random"]
    done = toy_run(reviews(20), attributions=methods, operators=["delete"], k=0.4, m=40, n=20)
    for line in Interactions().of(done.folder).parts[0].lines:
        assert (line["n"], line["n_texts"], line["additive"]) == (20, 20, 1)
        assert (line["interaction"], line["stronger"]) == (pytest.approx(0, abs=1e-6), 0.5)


class Together(Toy):
    """Two words of each text add 4 to its log-odds if both are there, beside what words of the toy weigh."""

    def log_scores(self, batch, labels, *, prefix=0):
        found = super().log_scores(batch, labels, prefix=prefix)
        both = [np.isin(row.ids, self.pair).sum() == 2 for row in each_row(batch)]
        log_odds = found[:, 1] - found[:, 0] + 4 * np.array(both)
        return np.stack([-np.logaddexp(0, log_odds), -np.logaddexp(0, -log_odds)], axis=1)


def test_words_that_act_together_are_found():
    pair = ("neither", "nor")
    records = [f"{text} neither first nor" for text in texts(24, words=(8, 10), seed=5)]
    model = Together()
    model.pair = [int(model.codec.tokenize(word).ids[0]) for word in pair]

    def marked(item):
        return np.isin(item.texts, pair) + 0.01 * picks("noise")(item)

    methods = {"marked": marked, "hat": picks("hat")}
    done = run(task_of(records), model=model, attributions=methods, operators=["delete"], k=[0.2, 0.5], directions=BOTH,
               m=50, n=24)  # fmt: skip
    lines = {(line["attribution"], line["k"]): line for line in Interactions().of(done.folder).parts[0].lines}
    right = lines["marked", 0.2]  # 11 to 13 words: the rationale is the pair
    assert right["interaction"] == pytest.approx(4, abs=1e-6)
    assert right["stronger"] > 0.95 and right["p_value"] < 1e-4
    assert lines["marked", 0.5]["stronger"] > 0.7  # the pair is one of up to 15
    assert lines["hat", 0.2]["p_value"] > 0.01 and lines["hat", 0.5]["p_value"] > 0.01


def test_random_rationales_rank_uniformly_whatever_interacts():
    rng, ranks = np.random.default_rng(2), []
    for number in range(300):
        kept = sets_of(rng, 60, 10, 3, 6)
        values = rng.normal(size=60) + 3 * (kept[:, 0] & kept[:, 1]) - 2 * (kept[:, 2] & kept[:, 5])
        rationale = rng.choice(10, 4, replace=False).tolist()
        ranks.append(_against_random(additive_fit(kept, values), kept, rationale, np.random.default_rng(number))[2])
    assert kstest(ranks, "uniform").pvalue > 0.01


def test_runs_without_enough_sets_are_refused(unannotated):
    found = Interactions().of(unannotated.folder)
    assert isinstance(found, Missing) and "raise --m" in found.reason
    matched = run(texts(4), attributions={"hat": picks("hat")}, nulls=["contiguity"], m=5, n=4, k=0.4)
    assert "--null size" in Interactions().of(matched.folder).reason
