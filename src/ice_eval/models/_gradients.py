"""Gradients that are right, or none."""

import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch

from ice_eval.errors import CapabilityError
from ice_eval.models._quantisers import quantised_by

_NO_GRADIENT = ".*an autograd kernel was not registered"
"""The warning of torch for a kernel that it cannot differentiate; it then ignores what goes through it."""


def gradients_of(values: torch.Tensor, at: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Return the gradients of the sum of `values` with respect to each tensor of `at`.

    Raises:
        CapabilityError: Layers compute with kernels that have no gradient, as those of some quantised weights.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=_NO_GRADIENT, category=UserWarning)
        try:
            return torch.autograd.grad(values.sum(), at)
        except UserWarning as exc:
            raise CapabilityError(
                "its layers compute with kernels that have no gradient, as of quantised weights"
            ) from exc


def no_grad(model: Any) -> AbstractContextManager[None]:
    """Compute without gradients: in inference mode, which breaks some tensors of quantised weights, unless they are."""
    return torch.no_grad() if quantised_by(model) else torch.inference_mode()
