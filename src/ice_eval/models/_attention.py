"""Attention from one position, reduced layer by layer, so that no layers × heads × n² array is ever held; or whole."""

import contextlib
from collections.abc import Collection, Iterator
from types import TracebackType
from typing import Any

import torch

from ice_eval.errors import CapabilityError


class AttentionTap:
    """Sums the attention that one position of each row pays, over the layers of a forward pass; None keeps it whole.

    An attention module is one that returns a pair whose second part is (rows, heads, queries, keys). Some models wrap
    one in another that hands the same weights on: the innermost is heard, and the wrapper skipped. Where a causal model
    was built for another kernel than the plain one, its mask may be lost on the way: that is noticed, and refused.
    """

    def __init__(
        self, model: Any, position: torch.Tensor | None, *, causal: bool, names: Collection[str] | None = None
    ) -> None:
        """Listen to the modules called `names`, or to all: it is not known which of them are attention modules."""
        self._model = model
        self._names = names
        self._position = position
        self._causal = causal
        self._ahead: list[torch.Tensor] = []
        self.heard: set[str] = set()
        """Names of the attention modules that returned weights."""
        self._n_layers = 0
        self.layers: list[torch.Tensor] = []
        """(rows, heads, queries, keys) of each layer, in the graph of the pass, where they are kept whole."""
        self._total: torch.Tensor | None = None
        self._handles: list[Any] = []

    def __enter__(self) -> "AttentionTap":
        known = None if self._names is None else [(name, self._model.get_submodule(name)) for name in self._names]
        for name, module in self._model.named_modules() if known is None else known:
            self._handles.append(module.register_forward_hook(self._hook(name)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for handle in self._handles:
            handle.remove()

    def _hook(self, name: str) -> Any:
        def hear(module: Any, arguments: Any, output: Any) -> None:
            if not (
                isinstance(output, tuple)
                and len(output) > 1
                and isinstance(output[1], torch.Tensor)
                and output[1].dim() == 4
            ):
                return
            if any(other.startswith(f"{name}.") for other in self.heard):
                return
            self.heard.add(name)
            self._n_layers += 1  # layers may share one module (ALBERT)
            if self._causal:
                self._ahead.append(output[1][0, 0].detach().triu(1).amax())  # one head shows whether there is a mask
            if self._position is None:
                self.layers.append(output[1])
                return
            rows = torch.arange(len(output[1]), device=output[1].device)
            seen = output[1].detach()[rows, :, self._position.to(output[1].device)].float().mean(dim=1)
            self._total = seen if self._total is None else self._total + seen.to(self._total.device)

        return hear

    def mean(self) -> torch.Tensor:
        """(rows, keys): mean over the layers and heads that were heard."""
        self.check()
        assert self._total is not None
        return self._total / self._n_layers

    def check(self) -> None:
        """Stop where nothing was heard, or what no causal model does."""
        if not self.heard:
            raise CapabilityError("the model returned no attention weights, so it offers no attention attribution.")
        if self._ahead and bool(torch.stack([weight.to(self._ahead[0].device) for weight in self._ahead]).amax() > 0):
            raise CapabilityError(
                "the weights that the model returned also read what comes after a token, which is not how it scores; "
                "load it with attn_implementation='eager'."
            )


@contextlib.contextmanager
def eager_attention(model: Any) -> Iterator[None]:
    """Fast attention kernels return no weights: switch to the plain one for a pass, and back."""
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.set_attn_implementation(before)


@contextlib.contextmanager
def handed_on(model: Any) -> Iterator[None]:
    """Some attention modules return their weights only when asked to: ask for a pass."""
    before = model.config.output_attentions
    model.config.output_attentions = True
    try:
        yield
    finally:
        model.config.output_attentions = before


@contextlib.contextmanager
def no_cudnn_attention() -> Iterator[None]:
    """Compute attention without cuDNN, which builds a plan for every new shape: batches differ in shape."""
    before = torch.backends.cuda.cudnn_sdp_enabled()  # type: ignore[no-untyped-call]
    torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)
