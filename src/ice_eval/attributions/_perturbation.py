"""What methods have in common that perturb: they ask for the scores of some keep-masks, and turn them into credit."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ice_eval.attributions._base import Attribution
from ice_eval.attributions._lens import Lens, PerRow
from ice_eval.errors import ConfigError
from ice_eval.records import Encoded, KeepMasks, PerUnit

_MOST_ENUMERATED = 20
"""Units up to which all keep-masks may be listed: a million rows."""
_DIGITS = 10
"""Digits of credit that are kept, counted from the largest number it is computed from."""


@dataclass(frozen=True, kw_only=True)
class Perturbation(Attribution):
    """A method that explains an example by probes of it; signed, since units may speak against the label."""

    signed: ClassVar[bool] = True
    operator: str = "delete"
    """What happens to the units that a probe does not keep."""

    @abstractmethod
    def masks(self, n_units: int, rng: np.random.Generator) -> KeepMasks:
        """The probes of an example."""

    @abstractmethod
    def credit(self, masks: KeepMasks, values: PerRow) -> PerUnit:
        """A number per unit, from the log-odds of every probe."""

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        masks = [self.masks(item.n_units, lens.rng(item)) for item in batch]
        found = zip(masks, lens.values(batch, masks), strict=True)
        return [self._rounded(*each) if np.isfinite(each[1]).all() else _nothing(each[0]) for each in found]

    def _rounded(self, masks: KeepMasks, values: PerRow) -> PerUnit:
        """Credit without its last digits: rounding would rank units that are worth the same, and by their position."""
        credit = self.credit(masks, values)
        scale = max(np.abs(credit).max(), np.abs(values).max())
        return scale * np.round(credit / scale, _DIGITS) if scale > 0 else credit


def _nothing(masks: KeepMasks) -> PerUnit:
    """Of an example on which the model fails; the run counts it."""
    return np.full(masks.shape[1], np.nan)


def check_samples(n_samples: int, *, least: int) -> None:
    """Refuse a number of probes that no regression can work with.

    Raises:
        ConfigError: It is too small.
    """
    if n_samples < least:
        raise ConfigError(f"n_samples = {n_samples}: at least {least} are needed.")


def all_fit(n_units: int, n_samples: int) -> bool:
    """Whether there are no more keep-masks than probes."""
    return n_units <= _MOST_ENUMERATED and 2**n_units <= n_samples


def all_masks(n_units: int) -> KeepMasks:
    """Every keep-mask once, the empty one first and the full one last."""
    numbers = np.arange(2**n_units)
    return (numbers[:, None] >> np.arange(n_units) & 1).astype(bool)


def random_masks(sizes: Sequence[int], n_units: int, rng: np.random.Generator) -> KeepMasks:
    """A random keep-mask of each size."""
    ranks = rng.random((len(sizes), n_units)).argsort(axis=1).argsort(axis=1)
    masks: KeepMasks = ranks < np.asarray(sizes)[:, None]
    return masks
