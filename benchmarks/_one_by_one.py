"""Rows one by one, a forward pass of the whole model for each, as a simple script does: what we are compared with."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ice_eval.models import Labels


def label_scores(model: Any, ids: Sequence[int] | np.ndarray, labels: Labels) -> torch.Tensor:
    """Log-probabilities of the first token of every label, or of its class, from the whole head."""
    first = [each[0] for each in labels.ids]
    with torch.inference_mode():
        logits = model.model(input_ids=torch.tensor(np.asarray(ids)[None], device=model.device)).logits
        last = logits[0] if labels.are_classes else logits[0, -1]
        return torch.log_softmax(last.float(), dim=-1)[first].cpu()


def seconds_per_row(model: Any, rows: Sequence[Sequence[int]], labels: Labels) -> float:
    """Return the mean seconds of one of these rows."""
    started = time.perf_counter()
    for row in rows:
        label_scores(model, row, labels)
    return (time.perf_counter() - started) / len(rows)


def some_of(rows: Sequence[Any], most: int) -> list[Any]:
    """A fixed random sample: all of them would take too long one by one."""
    return [rows[index] for index in np.random.default_rng(0).permutation(len(rows))[:most]]
