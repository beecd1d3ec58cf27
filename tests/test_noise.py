"""What rounding does: rows scored alone against rows scored in a batch."""

import numpy as np
import pytest
from tests.rows import ledger_rows, name_of

import ice_eval as ice
from ice_eval.models.toy import Toy
from ice_eval.records import Kind
from ice_eval.results.records import NoiseGuard


class Jumpy(Toy):
    """Answers of a batch are off by a little; alone they are right."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def log_scores(self, batch, labels, *, prefix=0):
        scores = super().log_scores(batch, labels, prefix=prefix)
        if len(batch) > 1:
            chance = np.exp(scores[:, 1]) * (1 - self.error)
            scores = np.log(np.stack([1 - chance, chance], axis=1))
        return scores


TEXTS = ["a good warm film", "a bad cold slow film", "good food and good wine", "we waited and it was bad"]


def run(model, sentiment_task, **settings):
    task = sentiment_task(TEXTS, [1, 0, 1, 0])
    return ice.evaluate(model, task, **{"attributions": ["random"], "operators": ["delete"], "m": 6, **settings})


def test_a_model_that_rounds_nothing_has_no_noise(toy, sentiment_task):
    found = run(toy, sentiment_task)
    assert found.folder.manifest().noise_guard == NoiseGuard(rows=8, log_score=0.0, probability=0.0)


def test_the_largest_difference_is_in_the_manifest(sentiment_task):
    found = run(Jumpy(0.01), sentiment_task)
    noise = found.folder.manifest().noise_guard
    assert 0 < noise.probability <= 0.01
    assert noise.log_score > noise.probability


def test_an_effect_below_the_noise_is_flagged(sentiment_task):
    loud, quiet = run(Jumpy(0.9), sentiment_task), run(Jumpy(1e-6), sentiment_task)
    for found, flagged in ((loud, True), (quiet, False)):
        [line] = found.folder.summary().configurations
        noise = found.folder.manifest().noise_guard.probability
        assert (abs(line.effect) < noise) == flagged == ("effect_below_noise" in line.flags)


def test_the_effect_is_the_gain_over_the_mean_of_the_null(toy, sentiment_task):
    found = run(toy, sentiment_task, attributions=["gradient"], operators=["delete"])
    rows = ledger_rows(found.folder, 0)
    targets = {row.example_id: row.target for row in found.folder.inputs(0)}
    for line in found.folder.examples():
        example = line.example_id
        chance = {row.key: np.exp(row.scores[targets[example]]) for row in rows if row.key.example_id == example}
        kept = next(row.kept for row in rows if (row.key.example_id, name_of(row)) == (example, "rationale:gradient"))
        null = [chance[row.key] for row in rows if row.key[:2] == (example, Kind.RANDOM) and row.kept != kept][:6]
        own = next(value for key, value in chance.items() if key.kind == Kind.RATIONALE)
        assert line.effect == pytest.approx(own - np.mean(null))


def test_a_continued_run_keeps_its_noise(toy, sentiment_task, tmp_path):
    first = run(Jumpy(0.01), sentiment_task, out=tmp_path / "run").folder.manifest().noise_guard
    again = run(Jumpy(0.01), sentiment_task, out=tmp_path / "run", attributions=["random", "gradient"])
    assert again.folder.manifest().noise_guard == first
