"""Gradients and attention of one forward pass of a transformers model."""

import contextlib
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop
from transformers.modeling_layers import GradientCheckpointingLayer

from ice_eval.errors import CapabilityError
from ice_eval.models import devices
from ice_eval.models.base import Prior, Priors

_MIN_CHECKPOINTED_TOKENS = 2049  # batches of fewer tokens keep their states: a second pass costs a third more time
SMALL_MODEL = 10**9  # models with fewer parameters keep the states of four times as many tokens on a GPU
_NO_GRADIENT = ".*an autograd kernel was not registered"  # warning of torch for a kernel that it then ignores


@contextlib.contextmanager
def switched(switch: Callable[[Any], None], to: object, before: object) -> Iterator[None]:
    """Call `switch` with a value, and on exit with the one before."""
    switch(to)
    try:
        yield
    finally:
        switch(before)


def gradients_of(values: torch.Tensor, at: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Return the gradients of the sum of `values` at each tensor of `at`; `CapabilityError` if a kernel has none."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=_NO_GRADIENT, category=UserWarning)
        try:
            return torch.autograd.grad(values.sum(), at)
        except UserWarning as exc:
            why = "its layers compute with kernels that have no gradient, as of quantised weights"
            raise CapabilityError(why) from exc


def no_grad(model: Any) -> AbstractContextManager[None]:
    """Compute without gradients, in inference mode unless weights are quantised: it breaks some of their tensors."""
    return torch.no_grad() if devices.quantised_by(model) else torch.inference_mode()


@contextlib.contextmanager
def checkpointed(model: Any, n_tokens: int) -> Iterator[None]:
    """Let every layer drop its inner states until the gradient needs them, if the batch is large."""
    # Also where weights are offloaded: states kept for a gradient would keep the weights of all layers on the device,
    # and they do not fit there. A layer that is computed again fetches its weights again, and releases them.
    is_small = model.device.type == "cuda" and model.num_parameters() < SMALL_MODEL
    fits = 4 * _MIN_CHECKPOINTED_TOKENS if is_small else _MIN_CHECKPOINTED_TOKENS
    if n_tokens < fits and not devices.is_offloaded(model):
        yield
        return

    def recomputed(_: Any, forward: Any) -> Any:
        return partial(checkpoint, forward, use_reentrant=False, preserve_rng_state=False)

    layers = [module for module in model.modules() if isinstance(module, GradientCheckpointingLayer)]
    # Without early stop: a layer that stops once it has computed what was missing would not release its weights.
    # Without cuDNN: a layer that is computed again must choose the same kernels.
    computed_again = devices.replaced_forward(layers, recomputed, inside=False)
    with computed_again, set_checkpoint_early_stop(False), no_cudnn_attention():
        yield


def target_odds(scores: torch.Tensor, targets: int | Sequence[int], priors: Prior | Priors) -> torch.Tensor:
    """Return `z_y - logsumexp(z_others)` of each row's target; of an open answer its log-probability.

    Scores are calibrated by the log-scores in `priors`; targets and priors are one for all rows, or one for each.
    """
    if priors is not None:
        scores = scores - devices.to_device(np.array(priors), scores.device).to(scores.dtype)
    index = devices.to_device(np.full(len(scores), targets, dtype=np.int64), scores.device)[:, None]
    chosen = scores.gather(1, index)[:, 0]
    if scores.shape[1] == 1:
        return chosen
    return chosen - torch.logsumexp(scores.scatter(1, index, -torch.inf), dim=1)


class AttentionRecorder(contextlib.ExitStack):
    """Sums the attention that scoring positions of each row pay, over the layers of a pass; None keeps it whole."""

    # Reduced layer by layer, so that no layers × heads × n² array is ever held. An attention module returns a pair
    # whose second part is (rows, heads, queries, keys). Some models wrap one in another that returns the same weights:
    # the innermost is recorded. Where a causal model was built for another kernel than the plain one, its mask may be
    # lost: `check` refuses that.

    def __init__(
        self, model: Any, position: torch.Tensor | None, *, causal: bool, names: Collection[str] | None
    ) -> None:
        """Record the modules called `names`, or all if None."""
        super().__init__()
        modules = model.named_modules() if names is None else [(name, model.get_submodule(name)) for name in names]
        self._position, self._causal = position, causal
        self._ahead: list[torch.Tensor] = []
        self.names: set[str] = set()
        self._n_layers = 0
        self.layers: list[torch.Tensor] = []
        """(rows, heads, queries, keys) of each layer, in the graph of the pass, where they are kept whole."""
        self._total: torch.Tensor | None = None
        for name, module in modules:
            self.callback(module.register_forward_hook(partial(self._record, name)).remove)

    def _record(self, name: str, module: Any, arguments: Any, output: Any) -> None:
        weights = output[1] if isinstance(output, tuple) and len(output) > 1 else None
        if not isinstance(weights, torch.Tensor) or weights.dim() != 4:
            return
        if any(other.startswith(f"{name}.") for other in self.names):
            return
        self.names.add(name)
        self._n_layers += 1  # layers may share one module (ALBERT)
        if self._causal:
            self._ahead.append(weights[0, 0].detach().triu(1).amax())  # one head shows whether there is a mask
        if self._position is None:
            self.layers.append(weights)
            return
        rows = torch.arange(len(weights), device=weights.device)[:, None]
        chosen = self._position.to(weights.device).view(len(weights), -1)
        counts = (chosen >= 0)[:, :, None]
        by_position = weights.detach()[rows, :, chosen.clamp(min=0)].float().mean(dim=2)
        seen = (by_position * counts).sum(dim=1) / counts.sum(dim=1)
        self._total = seen if self._total is None else self._total + seen.to(self._total.device)

    def mean(self) -> torch.Tensor:
        """Return the mean over the recorded layers and heads: (rows, keys)."""
        self.check()
        assert self._total is not None
        return self._total / self._n_layers

    def check(self) -> None:
        """Raise a `CapabilityError` where nothing was recorded, or weights that no causal model has."""
        if not self.names:
            raise CapabilityError("the model returned no attention weights, so it offers no attention attribution.")
        if self._ahead and bool(torch.stack([weight.to(self._ahead[0].device) for weight in self._ahead]).amax() > 0):
            raise CapabilityError(
                "the weights that the model returned also read what comes after a token, which is not how it scores; "
                "load it with attn_implementation='eager'."
            )


def eager_attention(model: Any) -> AbstractContextManager[None]:
    """Switch to the plain attention kernel: fast ones return no weights."""
    return switched(model.set_attn_implementation, "eager", model.config._attn_implementation)


def output_attentions(model: Any) -> AbstractContextManager[None]:
    """Request attention weights: some attention modules return them only then."""
    # The public setter refuses models that keep another kernel than the plain one; their weights are checked here.
    return switched(partial(setattr, model.config, "_output_attentions"), True, model.config._output_attentions)


def no_cudnn_attention() -> AbstractContextManager[None]:
    """Compute attention without cuDNN, which builds a plan for every new shape: batches differ in shape."""
    before = torch.backends.cuda.cudnn_sdp_enabled()  # type: ignore[no-untyped-call]
    return switched(torch.backends.cuda.enable_cudnn_sdp, False, before)
