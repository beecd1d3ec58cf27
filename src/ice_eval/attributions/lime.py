"""LIME."""

from dataclasses import dataclass

import numpy as np

from ice_eval.attributions._base import attribution
from ice_eval.attributions._lens import PerRow
from ice_eval.attributions.perturbation import Perturbation, all_fit, all_masks, check_samples, random_masks
from ice_eval.errors import ConfigError
from ice_eval.records import KeepMasks, PerUnit

_ALPHA = 1.0


@attribution("lime", needs={"values"})
@dataclass(frozen=True, kw_only=True)
class Lime(Perturbation):
    """Weights of a ridge regression of the target's log-odds on which units are kept (Ribeiro et al., 2016).

    A probe keeps a number of units that is uniform from 1 to one less than all, and then a random set of that size; the
    first keeps all. Probes near the full text weigh more. Where there are no more sets than probes, all are probed.
    """

    n_samples: int = 500
    """Probes of an example."""
    kernel_width: float = 0.25
    """Width of the kernel of weights, in cosine distance from the full text."""

    def __post_init__(self) -> None:
        check_samples(self.n_samples, least=2)
        if not 0 < self.kernel_width < np.inf:
            raise ConfigError(f"lime: kernel_width = {self.kernel_width}; a positive number is needed.")

    def n_probes(self, n_units: int) -> int:
        return 2**n_units if all_fit(n_units, self.n_samples) else self.n_samples

    def masks(self, n_units: int, rng: np.random.Generator) -> KeepMasks:
        if all_fit(n_units, self.n_samples):
            return all_masks(n_units)
        drawn = random_masks(rng.integers(1, n_units, size=self.n_samples - 1).tolist(), n_units, rng)
        return np.concatenate([np.ones((1, n_units), dtype=bool), drawn])

    def credit(self, masks: KeepMasks, values: PerRow) -> PerUnit:
        from sklearn.linear_model import Ridge

        # 1 - cos(mask, all units) of 0/1 vectors; an empty mask is as far away as can be.
        distance = 1 - np.sqrt(masks.mean(axis=1))
        # The root is that of the original code.
        weights = np.sqrt(np.exp(-((distance / self.kernel_width) ** 2)))
        fitted = Ridge(alpha=_ALPHA).fit(masks.astype(np.float64), values, sample_weight=weights)
        return np.asarray(fitted.coef_, dtype=np.float64)
