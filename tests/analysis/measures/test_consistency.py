import numpy as np
import pytest
from scipy.stats import kstest, spearmanr
from tests.analysis.measures.conftest import drawn
from tests.small_runs import Waves, run, task_of, texts, wave

from ice_eval.analysis.measures import Missing
from ice_eval.analysis.measures.confidence import Consistency, concentration, pair_correlation


def test_concentration_worked_by_hand():
    found = concentration(np.array([0.0, -3.0, 1.0, 0.0]))
    assert found[[4, 9, 14, 19]].tolist() == [0.75, 1, 1, 1]  # a quarter, a half, three quarters, all of the units
    assert concentration(np.ones(7)) == pytest.approx(np.linspace(0, 1, 21)[1:])
    assert concentration(np.zeros(3)).tolist() == [0] * 20


def test_rho_is_spearmans_over_pairs_of_one_class():
    rng = np.random.default_rng(0)
    classes = np.array([0] * 5 + [1] * 4)
    first, second = (np.abs(np.subtract.outer(x, x)) for x in rng.normal(size=(2, 9)))
    pairs = [(i, j) for i in range(9) for j in range(i) if classes[i] == classes[j]]
    found = pair_correlation(first, second, classes, rng=rng)
    expected = spearmanr([first[pair] for pair in pairs], [second[pair] for pair in pairs]).statistic
    assert (found["pairs"], found["rho"]) == (16, pytest.approx(expected))


def test_p_values_are_uniform_where_nothing_goes_together():
    """Pairs share examples; a test of independent pairs would call a third of these significant."""
    rng = np.random.default_rng(1)
    classes, p_values = np.array([0] * 12 + [1] * 8), []
    for _ in range(150):
        first, second = (np.abs(np.subtract.outer(x, x)) for x in rng.normal(size=(2, 20)))
        p_values.append(pair_correlation(first, second, classes, rng=rng)["p_value"])
    assert kstest(p_values, "uniform").pvalue > 0.01


def test_attributions_that_spread_with_the_confidence_are_consistent():
    def telling(item):
        return np.append(np.ones(item.n_units - 1), 1 + 20 * abs(wave(item.ids)))

    found = run(texts(40), model=Waves(), attributions={"telling": telling, "hat": drawn("hat")}, m=5, n=40)
    [part] = Consistency().of(found.folder).parts
    telling, hat = part.lines
    assert (telling["rho"] > 0.5, telling["p_value"]) == (True, pytest.approx(0.001))
    assert hat["p_value"] > 0.01


def test_examples_of_a_group_get_no_p_value():
    records = [{"text": text, "group": str(number // 4)} for number, text in enumerate(texts(40))]
    found = Consistency().of(run(task_of(records), attributions={"hat": drawn("hat")}, m=5, n=40).folder)
    [part] = found.parts
    assert [line["p_value"] for line in part.lines] == [None]
    assert "not exchangeable" in found.notes[0]


def test_few_examples_are_not_enough(unannotated):
    assert isinstance(Consistency().of(unannotated.folder), Missing)
