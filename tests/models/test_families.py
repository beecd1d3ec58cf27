"""Every family × operator × unit × direction, end to end: each row of the ledger against a plain forward."""

import numpy as np
import pytest
import torch
from tests.helpers import CAUSAL, CLASSIFIERS
from tests.rows import ledger_rows

import ice_eval as ice
from ice_eval.operators import operators

TEXTS = [
    "the room was warm, and the food isn't bad at all",
    "we waited 3.5 hours for a cold soup — never again!",
    "naïve café 电影很好 👍🏽 رائع",
]


def task_of(prompt):
    return ice.Task(
        data=ice.Records([{"text": text, "label": i % 2} for i, text in enumerate(TEXTS)]),
        prompt=prompt,
        label_words={"negative": " negative", "positive": " positive"},
    )


def plain(model, row, label_ids, *, causal):
    arguments = {"input_ids": torch.tensor([row.input_ids])}
    if not causal and getattr(model.config, "type_vocab_size", 0) > 1:
        arguments["token_type_ids"] = torch.tensor([row.segment_ids])
    with torch.no_grad():
        logits = model(**arguments).logits.double().numpy()
    chosen = (logits[0, -1] if causal else logits[0])[label_ids]
    return chosen - np.logaddexp.reduce(chosen)


@pytest.mark.parametrize("unit", ["token", "word"])
@pytest.mark.parametrize("family", CAUSAL + CLASSIFIERS)
def test_every_row_is_that_of_a_plain_forward(tiny, family, unit):
    model = tiny(family)
    causal = family in CAUSAL
    on_texts = [name for name, each in operators.items() if "token" in each.units]
    known = [name for name in on_texts if name != "mask" or not causal]
    task = task_of("Review: {text}\nSentiment:")
    run = ice.evaluate(
        model, task, attributions=["attention", "gradient"], operators=known, unit=unit, m=4,
        directions=["sufficiency", "necessity"], k=0.3,
    )  # fmt: skip
    manifest = run.folder.manifest()
    assert manifest.messages == ()  # shared prefix and label head agree with plain scores
    assert run.summary()["n"].tolist() == [3] * 2 * (len(known) + 1) * 2
    label_ids = [ids[0] for ids in manifest.label_ids]
    rows = ledger_rows(run.folder)
    assert {row.key.direction for row in rows} == {None, "sufficiency", "necessity"}
    assert {row.key.operator for row in rows} == {None, *known}
    expected = {}  # many rows have the same input
    for row in rows:
        key = row.input_ids, row.segment_ids
        if key not in expected:
            expected[key] = plain(model.model, row, label_ids, causal=causal)
        np.testing.assert_allclose(row.scores, expected[key], atol=5e-5)


@pytest.mark.parametrize("family", CAUSAL)
def test_a_language_model_has_no_mask_token(tiny, family):
    with pytest.raises(ice.ConfigError, match="'mask' needs a mask token"):
        ice.evaluate(tiny(family), task_of("{text}"), attributions=["random"], operators=["mask"], m=2)
