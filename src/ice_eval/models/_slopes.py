"""Gradients that are right, or none."""

import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch

from ice_eval.errors import CapabilityError
from ice_eval.models._quantisers import quantised_by

_NO_GRADIENT = ".*an autograd kernel was not registered"
"""How torch warns of a kernel that it cannot differentiate, and goes on without what went through it."""


def slopes(of: torch.Tensor, at: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Gradients of the sum of some numbers.

    Raises:
        CapabilityError: Layers compute with kernels that have no gradient, as those of some quantised weights.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=_NO_GRADIENT, category=UserWarning)
        try:
            return torch.autograd.grad(of.sum(), at)
        except UserWarning as exc:
            raise CapabilityError(
                "its layers compute with kernels that have no gradient, as of quantised weights"
            ) from exc


def without_slopes(model: Any) -> AbstractContextManager[None]:
    """For passes without a gradient; what is fastest breaks some tensors that quantised weights are made of."""
    return torch.no_grad() if quantised_by(model) else torch.inference_mode()
