import numpy as np
import pytest
from tests.analysis.measures.conftest import drawn
from tests.small_runs import Waves, run, texts, wave

from ice_eval.analysis.measures import Missing
from ice_eval.analysis.measures.confidence import Confidence, features, folds_of


def test_features_worked_by_hand():
    found = features(np.array([3.0, -1.0, 1.0, 1.0]))
    shares = np.array([3, 1, 1, 1]) / 6
    assert found == pytest.approx([3, 2, 1, np.sqrt(2), 1 / 2, -(shares * np.log(shares)).sum() / np.log(4)])
    assert features(np.zeros(3)) == [0] * 6


def test_numbers_that_tell_the_confidence_gain_on_its_mean():
    def telling(item):
        sure = 1 / (1 + np.exp(-abs(wave(item.ids))))
        return np.append(np.zeros(item.n_units - 1), sure)

    found = run(texts(60), model=Waves(), attributions={"telling": telling, "hat": drawn("hat")}, m=5, n=60)
    [part] = Confidence().of(found.folder).parts
    telling, hat = part.lines
    assert telling["gain_ci"][0] > 0
    assert telling["error"] < telling["baseline"] / 3
    assert hat["gain_ci"][0] < 0
    assert telling["baseline"] == hat["baseline"]
    assert telling["gain"] == pytest.approx(telling["baseline"] - telling["error"])


def test_folds_are_alike_in_size_and_keep_groups_together():
    assert sorted(np.bincount(folds_of(23, None, seed=0))) == [4, 4, 5, 5, 5]
    groups = [place // 4 for place in range(24)]
    found = folds_of(24, groups, seed=0)
    assert all(len(set(found[place : place + 4])) == 1 for place in range(0, 24, 4))


def test_few_examples_are_not_enough(unannotated):
    found = Confidence().of(unannotated.folder)
    assert isinstance(found, Missing)
    assert "no attribution has 20 examples" in found.reason
