"""Integrated gradients."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ice_eval.attributions._base import Attribution, attribution
from ice_eval.attributions._lens import Lens
from ice_eval.attributions._paths import Baseline, at_tokens, baseline_of, between, check_baseline, weighted_products
from ice_eval.errors import ConfigError
from ice_eval.models import EmbeddedText
from ice_eval.records import Encoded, PerToken, PerUnit


@attribution("integrated-gradients", needs={"embeddings"})
@dataclass(frozen=True, kw_only=True)
class IntegratedGradients(Attribution):
    """Gradient of the target's log-odds along a straight path from a baseline to the text, summed per unit; signed.

    Only the embeddings of units move; the template stays. The numbers of a text add up to the log-odds of the text less
    those of the baseline, but for the error of a sum over `steps` points (Gauss-Legendre). Sundararajan et al., 2017.
    """

    signed: ClassVar[bool] = True
    steps: int = 64
    """Points on the path; with fewer the sums of language models are far off (docs/attributions.md)."""
    baseline: Baseline = "zero"
    """Where the path begins: at zeros, or at the embedding of padding."""

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ConfigError(f"integrated-gradients: steps = {self.steps}; at least 1 is needed.")
        check_baseline(self.baseline)

    @property
    def passes(self) -> int:
        return 3 * self.steps

    def check(self, lens: Lens, item: Encoded) -> None:
        replace(self, steps=1).attribute(lens, [item])

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        found = zip(batch, lens.embeddings(batch), strict=True)
        return [item.per_unit(self._per_token(item, text)) for item, text in found]

    def _per_token(self, item: Encoded, text: EmbeddedText) -> PerToken:
        places, weights = np.polynomial.legendre.leggauss(self.steps)
        start = baseline_of(text, self.baseline)
        steps = (between(start, text.embedding, float(share)) for share in (1 + places) / 2)
        return at_tokens(item, text, weighted_products(text, steps, weights / 2))
