import numpy as np
import pytest
from tests.small_runs import lines_of, picks, run, texts

from ice_eval.analysis.measures import Missing
from ice_eval.analysis.measures.eraser import KSweep, area


def test_the_area_is_the_mean_height_of_the_curve():
    # From 0.1 to 0.2 the curve is 0.5 high on average, from 0.2 to 0.4 it is 1.0: (0.05 + 0.2) / 0.3.
    assert area([0.1, 0.2, 0.4], np.array([0.0, 1.0, 1.0])) == pytest.approx(0.25 / 0.3)
    assert area([0.1, 0.5], np.array([[0.7, 0.7], [0.2, 0.4]])) == pytest.approx([0.7, 0.3])


def test_a_run_over_several_k_has_one_number_for_each_curve():
    done = run(texts(12), attributions={"mine": picks("mine", towards=1.0)}, m=9, k=[0.4, 0.1, "dynamic", 0.2])
    [part] = KSweep().of(done.folder).parts
    [line] = part.lines
    assert part.title == "Over k from 0.1 to 0.4"
    means = {
        k: [np.mean([field(each) for each in lines_of(done, k=k)]) for k in [k]][0]
        for k in (0.1, 0.2, 0.4)
        for field in [lambda each: each.win_rate]
    }
    assert line["auc_win_rate"] == pytest.approx(
        (0.05 * (means[0.1] + means[0.2]) + 0.1 * (means[0.2] + means[0.4])) / 0.3
    )
    assert line["n"] == 12
    low, high = line["auc_drop_ci"]
    assert low < line["auc_drop"] < high


def test_one_k_is_no_sweep():
    found = KSweep().of(run(texts(4), m=3, k=[0.2, "dynamic"]).folder)
    assert isinstance(found, Missing)
    assert "--k 0.1,0.2,0.4" in found.reason
