"""Distances of two models and of their explanations, against a loop over the rows of both runs."""

import itertools

import numpy as np
import pytest
from scipy.stats import kstest, spearmanr
from tests.rows import each_row, ledger_rows
from tests.small_runs import Waves, picks, run, task_of, texts

from ice_eval.analysis.measures import Found, Missing, measured, measures
from ice_eval.analysis.measures.confidence import ModelConsistency, permuted_pvalue, variation
from ice_eval.records import Kind
from ice_eval.seeding import rng_for

LOUD = [f"loud{number}" for number in range(8)]
LOUD_IDS = Waves().codec.tokenize(" ".join(LOUD)).ids
TEXTS = [" ".join([text, *LOUD[: 2 + number % 7]]) for number, text in enumerate(texts(40, words=(8, 9), seed=4))]


class Shifted(Waves):
    """The waves, moved by one half for every loud word."""

    def __init__(self):
        super().__init__()
        self.name = "shifted"

    def log_scores(self, batch, labels, *, prefix=0):
        scores = super().log_scores(batch, labels, prefix=prefix)
        log_odds = scores[:, 1] - scores[:, 0] + np.array([loudness(row.ids) / 2 for row in each_row(batch)])
        return np.stack([-np.logaddexp(0, log_odds), -np.logaddexp(0, -log_odds)], axis=1)


def loudness(ids):
    return np.isin(ids, LOUD_IDS).sum()


def drawn(name):
    return lambda item: rng_for(0, name, item.example_id).random(item.n_units)


def moved(by_model):
    """Ranks of which one model's explanation turns as many around as there are loud words."""

    def attribute(item):
        ranks, loud = np.arange(item.n_units, dtype=float), loudness(item.ids) * by_model
        return np.append(ranks[:loud][::-1], ranks[loud:])

    return attribute


def pair(**settings):
    settings = {"m": 20, "n": 40, "k": 0.4, "operators": ["delete"]} | settings
    first = run(TEXTS, model=Waves(), attributions={"hat": drawn("one"), "moved": moved(0)}, **settings)
    own = {"hat": drawn("two"), "moved": moved(1)}
    return first.folder, run(TEXTS, model=Shifted(), attributions=own, **settings).folder


@pytest.fixture(scope="module")
def both():
    return pair()


def lines_of(*folders):
    [result] = measured({"model-consistency": ModelConsistency()}, folders)
    assert all(each == Found(()) for each in result.of_runs)
    [part] = result.across.parts
    return {line["attribution"]: line for line in part.lines}


@pytest.mark.parametrize("operators", [["delete"], ["infill"]])
def test_rho_is_that_of_plain_loops(both, operators):
    """Infill writes other texts for every model, so that only the full texts are the same."""
    folders = both if operators == ["delete"] else pair(operators=operators)
    rows = [ledger_rows(folder) for folder in folders]
    inputs = [{row.example_id: row for part in folder.parts() for row in folder.inputs(part)} for folder in folders]
    kind = Kind.RANDOM if operators == ["delete"] else Kind.FULL
    scores = [{(r.key.example_id, r.kept): np.exp(r.scores) for r in own if r.key.kind == kind} for own in rows]
    for name, line in lines_of(*folders).items():
        behaviour, explanations = [], []
        for example in inputs[0]:
            shared = [key for key in scores[0] if key[0] == example and key in scores[1]]
            assert len(shared) >= 5 or kind == Kind.FULL
            behaviour.append(np.mean([abs(scores[0][key][0] - scores[1][key][0]) for key in shared]))
            vectors = [own[example].attributions[name] for own in inputs]
            explanations.append(1 - spearmanr(*vectors).statistic)
        assert line["rho"] == pytest.approx(spearmanr(behaviour, explanations).statistic)
        assert (line["n"], line["first"], line["second"]) == (40, "waves", "shifted")
        assert line["behaviour"] == ("random sets" if kind == Kind.RANDOM else "full text")


def test_explanations_that_move_with_the_model_are_consistent(both):
    lines = lines_of(*both)
    assert lines["moved"]["rho"] > 0.5 and lines["moved"]["p_value"] == pytest.approx(0.001)
    assert lines["moved"]["rho_ci"].low > 0.2
    assert lines["hat"]["p_value"] > 0.01


def test_the_p_value_is_that_of_all_permutations_and_uniform_by_chance():
    rng = np.random.default_rng(0)
    x, y = np.array([1.0, 2, 3, 4, 5, 6]), np.array([2.0, 1, 4, 6, 3, 5])
    every = [abs(spearmanr(x, order).statistic) for order in itertools.permutations(y)]
    exact = np.mean(np.array(every) >= abs(spearmanr(x, y).statistic) - 1e-9)
    assert permuted_pvalue(x, y, rng=rng) == pytest.approx(exact, abs=0.05)  # three standard errors of 999 draws
    many = [permuted_pvalue(*rng.normal(size=(2, 15)), rng=rng) for _ in range(200)]
    assert kstest(many, "uniform").pvalue > 0.01


def test_variation_is_half_the_sum_of_differences():
    assert variation(np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])) == pytest.approx(0.3)


def test_labels_may_stand_in_another_order(both):
    words = {"positive": " positive", "negative": " negative"}
    settings = {"m": 20, "k": 0.4, "n": 40, "operators": ["delete"]}
    turned = run(task_of(TEXTS, label_words=words), model=Turned(), attributions={"hat": drawn("one")}, **settings)
    lines = lines_of(turned.folder, both[1])
    assert lines["hat"]["rho"] == pytest.approx(lines_of(*both)["hat"]["rho"])


class Turned(Waves):
    def log_scores(self, batch, labels, *, prefix=0):
        return super().log_scores(batch, labels, prefix=prefix)[:, ::-1]


def test_one_run_or_one_model_is_not_enough(both, tmp_path):
    assert isinstance(ModelConsistency().of(both[0]), Missing)
    [alone] = measured({"m": ModelConsistency()}, both[:1])
    assert "RUN RUN" in alone.of_runs[0].reason
    [same] = measured({"m": ModelConsistency()}, [both[0], both[0]])
    assert same.across is None and "--unit word" in same.of_runs[1].reason
    other = run(texts(40, seed=9), model=Shifted(), attributions={"hat": drawn("two")}, m=5, n=40)
    [apart] = measured({"m": ModelConsistency()}, [both[0], other.folder])
    assert apart.across is None and "the same units" in apart.of_runs[0].reason


def test_examples_of_a_group_get_no_p_value():
    records = [{"text": text, "group": str(number // 4)} for number, text in enumerate(TEXTS)]
    folders = [
        run(task_of(records), model=model, attributions={"hat": picks(model.name)}, m=10, n=40).folder
        for model in (Waves(), Shifted())
    ]
    [result] = measured({"model-consistency": measures.get("model-consistency")()}, folders)
    assert result.across.parts[0].lines[0]["p_value"] is None
    assert "not exchangeable" in result.across.notes[0]
