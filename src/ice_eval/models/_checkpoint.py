"""Gradients of long inputs or large models in little memory: what a layer holds is computed again instead of kept."""

import contextlib
from collections.abc import Iterator
from functools import partial
from typing import Any

from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop
from transformers.modeling_layers import GradientCheckpointingLayer

from ice_eval.models._attention import no_cudnn_attention
from ice_eval.models._forwards import replaced
from ice_eval.models._placement import is_offloaded

MIN_TOKENS = 2049
"""Batches of fewer tokens keep their states: computing them twice would cost a third more time."""
SMALL = 10**9
"""Models with fewer parameters keep those of four times as many tokens on a GPU."""


@contextlib.contextmanager
def checkpointed(model: Any, n_tokens: int) -> Iterator[None]:
    """Let every layer forget its inner states until the gradient needs them, if the batch is large.

    Also where weights wait elsewhere: what is kept for a gradient would keep the weights of all layers on the device,
    and they do not fit there. A layer that is computed again fetches its weights again, and lets them go.
    """
    fits = 4 * MIN_TOKENS if model.device.type == "cuda" and model.num_parameters() < SMALL else MIN_TOKENS
    if n_tokens < fits and not is_offloaded(model):
        yield
        return
    layers = [module for module in model.modules() if isinstance(module, GradientCheckpointingLayer)]
    # A layer that were left in the middle, once it has computed what was missing, would not let go of its weights.
    # A layer that is computed again must choose the same kernels.
    with replaced(layers, _kept_short, inside=False), set_checkpoint_early_stop(False), no_cudnn_attention():
        yield


def _kept_short(layer: Any, forward: Any) -> Any:
    return partial(checkpoint, forward, use_reentrant=False, preserve_rng_state=False)
