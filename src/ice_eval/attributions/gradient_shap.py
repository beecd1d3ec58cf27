"""Gradient SHAP."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ice_eval.attributions._base import Attribution, attribution
from ice_eval.attributions._lens import Lens
from ice_eval.attributions._paths import (
    Baseline,
    Step,
    at_tokens,
    baseline_of,
    between,
    check_baseline,
    weighted_products,
)
from ice_eval.errors import ConfigError
from ice_eval.models import EmbeddedText
from ice_eval.records import Encoded, PerUnit


@attribution("gradient-shap", needs={"embeddings"})
@dataclass(frozen=True, kw_only=True)
class GradientShap(Attribution):
    """Gradient of the target's log-odds times the way from a baseline, at random points of it, per unit; signed.

    Every sample puts noise on the embeddings of the text and takes the gradient at a uniform place between the baseline
    and there. Without noise it is integrated gradients by chance. Lundberg & Lee, 2017; as captum's `GradientShap`.
    """

    signed: ClassVar[bool] = True
    samples: int = 32
    """Random points."""
    noise: float = 0.1
    """Standard deviation of the noise, as a share of that of the embeddings."""
    baseline: Baseline = "zero"
    """What the text is compared with: zeros, or the embedding of padding."""

    def __post_init__(self) -> None:
        if self.samples < 1 or not 0 <= self.noise < np.inf:
            raise ConfigError(
                f"gradient-shap: samples = {self.samples}, noise = {self.noise}; at least 1 and 0 are needed."
            )
        check_baseline(self.baseline)

    @property
    def passes(self) -> int:
        return 3 * self.samples

    def check(self, lens: Lens, item: Encoded) -> None:
        replace(self, samples=1).attribute(lens, [item])

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        weights = np.full(self.samples, 1 / self.samples)
        return [
            item.per_unit(at_tokens(item, text, weighted_products(text, self._steps(text, lens.rng(item)), weights)))
            for item, text in zip(batch, lens.embeddings(batch), strict=True)
        ]

    def _steps(self, text: EmbeddedText, rng: np.random.Generator) -> Iterator[Step]:
        start, spread = baseline_of(text, self.baseline), self.noise * text.embedding.std()
        for _ in range(self.samples):
            noisy = text.embedding + spread * rng.standard_normal(text.embedding.shape)
            yield between(start, noisy, rng.uniform())
