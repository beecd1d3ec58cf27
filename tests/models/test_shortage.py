"""Memory that does not reach, at every stage of a run: smaller batches, a flag, and the same answers."""

import numpy as np
import pytest
import torch

import ice_eval

STAGES = {
    "scoring": ("first-k", lambda model: (model, "_label_scores")),
    "probes": ("occlusion", lambda model: (model, "_label_scores")),
    "attention and gradient": ("gradient", lambda model: (model, "_observe")),
    "paths": ("integrated-gradients:steps=8", lambda model: (model, "_scores_at")),
    "generation": ("self-explanation", lambda model: (model.model, "generate")),
}
MOST = 4
"""Rows: no fewer than the check before a run takes."""


def with_little_memory(patch, owner, name):
    """The passes of a model that take more than a few rows at once do not fit."""
    whole, refused = getattr(owner, name), []

    def small(rows, *rest, **options):
        if len(rows) > MOST:
            refused.append(len(rows))
            raise torch.OutOfMemoryError("CUDA out of memory")
        return whole(rows, *rest, **options)

    patch.setattr(owner, name, small)
    return refused


@pytest.fixture(scope="module")
def settings():
    return {"task": "demo", "n": 8, "m": 4, "operators": ["delete"]}


def numbers(run):
    lines = [line for line in run.folder.examples() if line.error is None]
    return np.array([[line.score, line.score_full, line.score_empty] for line in lines])


@pytest.mark.parametrize("stage", STAGES)
def test_a_run_goes_on_with_smaller_batches_and_is_flagged(tiny, settings, monkeypatch, tmp_path, stage):
    attribution, place = STAGES[stage]
    model = tiny("llama")
    enough = ice_eval.evaluate(model, attributions=[attribution, "random"], out=tmp_path / "enough", **settings)
    refused = with_little_memory(monkeypatch, *place(model))
    short = ice_eval.evaluate(model, attributions=[attribution, "random"], out=tmp_path / "short", **settings)
    assert refused, "memory was never short"
    assert "out_of_memory" in short.folder.manifest().flags
    assert all("out_of_memory" in line.flags for line in short.folder.summary().configurations if line.n)
    assert "out_of_memory" not in enough.folder.manifest().flags
    assert short.folder.manifest().cost.rows_by_kind == enough.folder.manifest().cost.rows_by_kind
    np.testing.assert_allclose(numbers(short), numbers(enough), atol=1e-4)


def test_an_input_that_does_not_fit_alone_ends_the_run_with_what_to_do(tiny, settings, monkeypatch, tmp_path):
    model, out = tiny("llama"), tmp_path / "run"
    whole = model._label_scores

    def full_at_last(batch, *rest):
        if (out / "manifest.json").exists():  # the run has begun
            raise torch.OutOfMemoryError("CUDA out of memory")
        return whole(batch, *rest)

    monkeypatch.setattr(model, "_label_scores", full_at_last)
    with pytest.raises(
        ice_eval.errors.OutOfMemoryError, match=r"an input of \d+ tokens does not fit .* even alone .*smaller model"
    ):
        ice_eval.evaluate(model, attributions=["random"], out=out, **settings)
    monkeypatch.undo()
    assert ice_eval.evaluate(tiny("llama"), attributions=["random"], out=out, **settings).folder.summary()
