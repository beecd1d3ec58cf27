"""Attributions that captum computes outside, read from a file, come to the numbers and verdicts of our own."""

import json

import numpy as np
import pytest
import torch
import transformers

import ice_eval
from ice_eval.tasks import FileData, Task

N = 16
OURS = {"ixg": "input-x-gradient", "ig": "integrated-gradients:steps=8:baseline=pad"}


def captum_rows(folder, texts):
    """Method -> a line per text: the log-odds of the predicted class, tokens as the tokenizer writes them."""
    attr = pytest.importorskip("captum.attr", reason="needs captum: pip install captum", exc_type=ImportError)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()

    def log_odds(ids, label):
        logits = model(ids).logits
        return logits[:, label] - logits[:, 1 - label]

    products = attr.LayerGradientXActivation(log_odds, model.get_input_embeddings())
    integrated = attr.LayerIntegratedGradients(log_odds, model.get_input_embeddings())
    found = {"ixg": [], "ig": []}
    for text in texts:
        ids = tokenizer(text, return_tensors="pt")["input_ids"]
        label = int(model(ids).logits.argmax())
        empty = ids.clone()
        empty[:, 1:-1] = tokenizer.pad_token_id  # [CLS] and [SEP] stay
        scores = {
            "ixg": products.attribute(ids, additional_forward_args=label),
            "ig": integrated.attribute(ids, empty, additional_forward_args=label, n_steps=8),
        }
        tokens = tokenizer.convert_ids_to_tokens(ids[0])
        for name, each in scores.items():
            found[name].append({"text": text, "tokens": tokens, "scores": each.sum(-1)[0].tolist()})
    return found


@pytest.mark.real
@pytest.mark.slow
def test_what_captum_computes_outside_gives_the_verdicts_of_our_own(shared_data, tmp_path):
    folder = shared_data.parent / "models" / "minilm-sentiment"
    lines = (shared_data / "sst2.jsonl").read_text(encoding="utf-8").splitlines()[:N]
    attributions = dict.fromkeys(OURS.values())
    for method, rows in captum_rows(folder, [json.loads(line)["text"] for line in lines]).items():
        path = tmp_path / f"{method}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        attributions[f"captum-{method}"] = path
    words = {"negative": " negative", "positive": " positive"}
    task = Task(data=FileData(shared_data / "sst2.jsonl"), prompt="{text}", label_words=words)
    run = ice_eval.evaluate(str(folder), task, attributions=attributions, n=N, m=10, device="cpu")
    summary = run.summary().set_index(["attribution", "operator"])
    examples = run.examples().set_index(["attribution", "operator", "example_id"])
    for method, ours in OURS.items():
        theirs = f"captum-{method}"
        assert summary.loc[theirs, "verdict"].tolist() == summary.loc[ours, "verdict"].tolist()
        np.testing.assert_allclose(summary.loc[theirs, "win_rate"], summary.loc[ours, "win_rate"], atol=0.02)
        same = [
            set(a) == set(b) for a, b in zip(examples.loc[theirs].rationale, examples.loc[ours].rationale, strict=True)
        ]
        assert np.mean(same) > 0.9
