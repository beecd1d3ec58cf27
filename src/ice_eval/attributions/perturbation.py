"""Methods that compute credit from the scores of probes, which keep some units: occlusion, and linear surrogates."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import binom

from ice_eval.attributions._base import Attribution, Lens, PerRow, attribution, check_number
from ice_eval.errors import ConfigError
from ice_eval.records import Encoded, KeepMasks, PerUnit

_DIGITS = 10
"""Digits of credit that are kept, counted from the largest number it is computed from."""
_RIDGE = 1.0
"""Weight of LIME's penalty."""
_MOST_ENUMERATED = 20
"""Most units for which all keep-masks are listed: a million rows."""


@dataclass(frozen=True, kw_only=True)
class Perturbation(Attribution):
    """A method that explains an example by probes of it; signed, since units may count against the label."""

    signed = True
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


@dataclass(frozen=True, kw_only=True)
class Surrogate(Perturbation):
    """A linear model, fitted to all keep-masks where there are no more than `n_samples`, else to random ones."""

    fewest = 2
    """Fewest probes that a regression takes."""
    n_samples: int = 500
    """Probes of an example."""

    def __post_init__(self) -> None:
        if self.n_samples < self.fewest:
            raise ConfigError(f"n_samples = {self.n_samples}: at least {self.fewest} are needed.")
        check_number("n_samples", self.n_samples)

    def all_fit(self, n_units: int) -> bool:
        """Return True if there are no more keep-masks than probes."""
        return n_units <= _MOST_ENUMERATED and 2**n_units <= self.n_samples

    def n_probes(self, n_units: int) -> int:
        return 2**n_units if self.all_fit(n_units) else self.n_samples

    def masks(self, n_units: int, rng: np.random.Generator) -> KeepMasks:
        """Return every keep-mask once, the empty one first and the full one last, or those that are drawn."""
        if not self.all_fit(n_units):
            return self.drawn(n_units, rng)
        numbers = np.arange(2**n_units)
        return (numbers[:, None] >> np.arange(n_units) & 1).astype(bool)

    @abstractmethod
    def drawn(self, n_units: int, rng: np.random.Generator) -> KeepMasks:
        """Return random keep-masks."""


def _of_sizes(sizes: Sequence[int], n_units: int, rng: np.random.Generator) -> KeepMasks:
    ranks = rng.random((len(sizes), n_units)).argsort(axis=1).argsort(axis=1)
    masks: KeepMasks = ranks < np.asarray(sizes)[:, None]
    return masks


@attribution("lime", needs={"values"})
@dataclass(frozen=True, kw_only=True)
class Lime(Surrogate):
    """Weights of a ridge regression of the target's log-odds on which units are kept (Ribeiro et al., 2016).

    A probe keeps a number of units that is uniform from 1 to one less than all, and then a random set of that size; the
    first keeps all. Probes near the full text weigh more. Where there are no more sets than probes, all are probed.
    """

    kernel_width: float = 0.25
    """Width of the kernel of weights, in cosine distance from the full text."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.kernel_width < np.inf:
            raise ConfigError(f"lime: kernel_width = {self.kernel_width}; a positive number is needed.")

    def drawn(self, n_units: int, rng: np.random.Generator) -> KeepMasks:
        drawn = _of_sizes(rng.integers(1, n_units, size=self.n_samples - 1).tolist(), n_units, rng)
        return np.concatenate([np.ones((1, n_units), dtype=bool), drawn])

    def credit(self, masks: KeepMasks, values: PerRow) -> PerUnit:
        from sklearn.linear_model import Ridge

        # 1 - cos(mask, all units) of 0/1 vectors; an empty mask is as far away as can be.
        distance = 1 - np.sqrt(masks.mean(axis=1))
        # The root is that of the original code.
        weights = np.sqrt(np.exp(-((distance / self.kernel_width) ** 2)))
        fitted = Ridge(alpha=_RIDGE).fit(masks.astype(np.float64), values, sample_weight=weights)
        return np.asarray(fitted.coef_, dtype=np.float64)


@attribution("kernel-shap", needs={"values"})
@dataclass(frozen=True, kw_only=True)
class KernelShap(Surrogate):
    """Shapley values of the target's log-odds, by weighted least squares (Lundberg & Lee, 2017).

    They add up to the gain of the full text over the empty one. Sizes of sets are drawn by the weights of the Shapley
    kernel, and every set comes with its complement, which reduces noise (Covert & Lee, 2021). Where there are no more
    sets than probes, all are probed and the values are exact.
    """

    fewest = 4
    n_samples: int = 500
    """Probes of an example, the full and the empty text included.

    A set and its complement give one equation, so with fewer probes than twice the units the values are
    underdetermined; the solution of least norm is returned.
    """

    def n_probes(self, n_units: int) -> int:
        return 2**n_units if self.all_fit(n_units) else 2 + self._n_pairs * 2

    def remark(self, n_units: Sequence[int]) -> str | None:
        long = [each for each in n_units if not self.all_fit(each) and each > self._n_pairs + 1]
        if not long:
            return None
        return (
            f"{self.n_samples} probes are too few for {len(long)} of {len(n_units)} texts, which have more "
            f"than {self._n_pairs + 1} units; the minimum-norm solution is used. Use n_samples={2 * max(long)} "
            "or more."
        )

    @property
    def _n_pairs(self) -> int:
        return (self.n_samples - 2) // 2

    def drawn(self, n_units: int, rng: np.random.Generator) -> KeepMasks:
        sizes = np.arange(1, n_units)
        share = 1 / (sizes * (n_units - sizes))  # of all sets of a size together
        drawn = _of_sizes(rng.choice(sizes, self._n_pairs, p=share / share.sum()).tolist(), n_units, rng)
        ends = np.array([[False], [True]]).repeat(n_units, axis=1)
        return np.concatenate([ends[:1], drawn, ~drawn, ends[1:]])

    def credit(self, masks: KeepMasks, values: PerRow) -> PerUnit:
        empty, full, n_units = values[0], values[-1], masks.shape[1]
        kept, size = masks[1:-1].astype(np.float64), masks[1:-1].sum(axis=1)
        # Sets were drawn by their weights, or all sets are included and are weighted now.
        exact = len(masks) == 2**n_units
        weights = np.sqrt(1 / (binom(n_units, size) * size * (n_units - size))) if exact else np.ones(len(kept))
        # φ = (v(all) - v(∅)) / n + u with Σu = 0: rows of `centred` are orthogonal to 1, and so is the solution of
        # least size.
        average = (full - empty) / n_units
        centred = kept - kept.mean(axis=1, keepdims=True)
        left = values[1:-1] - empty - size * average
        solution, *_ = np.linalg.lstsq(centred * weights[:, None], left * weights, rcond=None)
        return np.asarray(average + solution, dtype=np.float64)


@attribution("context-cite", needs={"values"})
@dataclass(frozen=True, kw_only=True)
class ContextCite(Surrogate):
    """Weights of a sparse linear model of the claim's log-probability (ContextCite; Cohen-Wang et al., 2024).

    Every probe keeps each unit with probability one half. The regression is a LASSO on standardised columns. Where
    there are no more sets than probes, all are probed.
    """

    n_samples: int = 64
    """Probes of an example."""
    alpha: float = 0.01
    """Weight of the penalty."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.alpha < np.inf:
            raise ConfigError(f"context-cite: alpha = {self.alpha}; a positive number is needed.")

    def drawn(self, n_units: int, rng: np.random.Generator) -> KeepMasks:
        return rng.random((self.n_samples, n_units)) < 0.5

    def credit(self, masks: KeepMasks, values: PerRow) -> PerUnit:
        from sklearn.linear_model import Lasso

        spread = masks.std(axis=0)
        scale = np.where(spread > 0, spread, 1.0)
        columns = (masks - masks.mean(axis=0)) / scale
        return np.asarray(Lasso(alpha=self.alpha).fit(columns, values).coef_ / scale, dtype=np.float64)
