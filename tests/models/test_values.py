"""What attributions ask real architectures for: the probes are scored as a plain forward pass would."""

import numpy as np
import pytest
import torch
from tests.small_runs import rows_of

import ice_eval


@pytest.mark.parametrize("family", ["gpt2", "llama", "bert"])
@pytest.mark.parametrize("unit", ["token", "word"])
def test_occlusion_is_leave_one_out_by_plain_forward_passes(tiny, reviews, family, unit):
    model = tiny(family)
    found = ice_eval.evaluate(model, reviews, attributions=["occlusion"], operators=["delete"], n=4, m=3, unit=unit)
    labels = model.labels(reviews)
    for example in found.folder.inputs(0):
        probes = rows_of(found, "probe:occlusion", example_id=example.example_id)
        odds = [_log_odds(model, row, labels, example.target) for row in probes]
        expected = odds[0] - np.array(odds[1:])
        np.testing.assert_allclose(example.attributions["occlusion"], expected, atol=1e-4)
        assert [len(example.spans) - len(row.kept) for row in probes] == [0] + [1] * len(example.spans)


def _log_odds(model, row, labels, target):
    inputs = {"input_ids": torch.tensor([row.input_ids])}
    if any(row.segment_ids):
        inputs["token_type_ids"] = torch.tensor([row.segment_ids])
    with torch.no_grad():
        logits = model.model(**inputs).logits[0]
    logits = logits if labels.are_classes else logits[-1]
    scores = torch.log_softmax(logits.double(), dim=-1)[[ids[0] for ids in labels.ids]]
    return float(scores[target] - torch.logsumexp(scores[torch.arange(len(scores)) != target], dim=0))
