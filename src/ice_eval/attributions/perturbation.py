"""Methods that compute credit from the scores of some keep-masks; the simplest is occlusion."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ice_eval.attributions._base import Attribution, attribution, check_most
from ice_eval.attributions._lens import Lens, PerRow
from ice_eval.errors import ConfigError
from ice_eval.records import Encoded, KeepMasks, PerUnit

_MOST_ENUMERATED = 20
"""Most units for which all keep-masks are listed: a million rows."""
_DIGITS = 10
"""Digits of credit that are kept, counted from the largest number it is computed from."""


@dataclass(frozen=True, kw_only=True)
class Perturbation(Attribution):
    """A method that explains an example by probes of it; signed, since units may count against the label."""

    signed: ClassVar[bool] = True
    operator: str = "delete"

    @abstractmethod
    def masks(self, n_units: int, rng: np.random.Generator) -> KeepMasks:
        """Return the probes of an example."""

    @abstractmethod
    def credit(self, masks: KeepMasks, values: PerRow) -> PerUnit:
        """Compute a number per unit from the log-odds of every probe."""

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        masks = [self.masks(item.n_units, lens.rng(item)) for item in batch]
        return [self._rounded(*each) for each in zip(masks, lens.values(batch, masks), strict=True)]

    def _rounded(self, masks: KeepMasks, values: PerRow) -> PerUnit:
        """Compute credit without its last digits: round-off would rank units of equal worth by position."""
        if not np.isfinite(values).all():  # the model fails on this example; the run counts it
            return np.full(masks.shape[1], np.nan)
        credit = self.credit(masks, values)
        scale = max(np.abs(credit).max(), np.abs(values).max())
        return scale * np.round(credit / scale, _DIGITS) if scale > 0 else credit


@attribution("occlusion", needs={"values"})
@dataclass(frozen=True, kw_only=True)
class Occlusion(Perturbation):
    """Loss of the target's log-odds when a unit alone is taken away (leave-one-out; Li et al., 2016)."""

    def n_probes(self, n_units: int) -> int:
        return n_units + 1

    def masks(self, n_units: int, rng: np.random.Generator) -> KeepMasks:
        return np.concatenate([np.ones((1, n_units), dtype=bool), ~np.eye(n_units, dtype=bool)])

    def credit(self, masks: KeepMasks, values: PerRow) -> PerUnit:
        lost: PerUnit = values[0] - values[1:]
        return lost


def check_samples(n_samples: int, *, least: int) -> None:
    """Raise `ConfigError` for a number of probes that is too small for a regression, or too large for an array."""
    if n_samples < least:
        raise ConfigError(f"n_samples = {n_samples}: at least {least} are needed.")
    check_most("n_samples", n_samples)


def all_fit(n_units: int, n_samples: int) -> bool:
    """Return True if there are no more keep-masks than probes."""
    return n_units <= _MOST_ENUMERATED and 2**n_units <= n_samples


def all_masks(n_units: int) -> KeepMasks:
    """Return every keep-mask once, the empty one first and the full one last."""
    numbers = np.arange(2**n_units)
    return (numbers[:, None] >> np.arange(n_units) & 1).astype(bool)


def random_masks(sizes: Sequence[int], n_units: int, rng: np.random.Generator) -> KeepMasks:
    ranks = rng.random((len(sizes), n_units)).argsort(axis=1).argsort(axis=1)
    masks: KeepMasks = ranks < np.asarray(sizes)[:, None]
    return masks
