import pytest
from scipy.stats import spearmanr
from tests.analysis.measures.conftest import drawn
from tests.small_runs import run, texts

from ice_eval.analysis.measures import Missing
from ice_eval.analysis.measures.explanations import AgreementMeasure


def test_each_two_attributions_are_compared(small):
    ranks, overlaps = AgreementMeasure().of(small.folder).parts
    pairs = [(line["first"], line["second"]) for line in ranks.lines]
    assert len(pairs) == 6 == len(overlaps.lines)
    [line] = [line for line in ranks.lines if (line["first"], line["second"]) == ("hat", "other")]
    rows = [row for part in small.folder.parts() for row in small.folder.inputs(part)]
    values = [spearmanr(row.attributions["hat"], row.attributions["other"]).statistic for row in rows]
    assert line["mean"] == pytest.approx(sum(values) / len(values))
    assert line["mean_ci"][0] < line["mean"] < line["mean_ci"][1]
    assert abs(line["mean"]) < 3 / (40 * 11) ** 0.5  # three standard errors of 40 texts with 12 units or so


def test_the_same_numbers_agree_wholly():
    found = run(texts(5), attributions={"one": drawn("hat"), "same": drawn("hat")}, m=5, k=[0.2, 0.4])
    ranks, overlaps = AgreementMeasure().of(found.folder).parts
    assert [line["mean"] for line in ranks.lines] == [pytest.approx(1)]
    assert [(line["k"], line["mean"]) for line in overlaps.lines] == [(0.2, 1), (0.4, 1)]


def test_one_attribution_is_not_enough(unannotated):
    found = AgreementMeasure().of(unannotated.folder)
    assert found == Missing("the run has one attribution, and agreement needs two; add one with --attributions")
