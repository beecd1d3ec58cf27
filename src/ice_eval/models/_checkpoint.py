"""Gradients of long inputs in little memory: states inside a layer are computed again instead of kept."""

import contextlib
from collections.abc import Iterator
from functools import partial
from typing import Any

from torch.utils.checkpoint import checkpoint
from transformers.modeling_layers import GradientCheckpointingLayer

MIN_TOKENS = 2049
"""Batches of fewer tokens keep their states: computing them twice would cost a third more time."""


@contextlib.contextmanager
def checkpointed(model: Any, n_tokens: int) -> Iterator[None]:
    """Let every layer forget its inner states until the gradient needs them, if the batch is large."""
    layers = [module for module in model.modules() if isinstance(module, GradientCheckpointingLayer)]
    if n_tokens < MIN_TOKENS:
        layers = []
    for layer in layers:
        layer.forward = partial(checkpoint, layer.forward, use_reentrant=False, preserve_rng_state=False)
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward
