"""Gradients of the target's log-odds at the embeddings of tokens: at the text, or on the path from a baseline."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ice_eval.attributions._base import Attribution, Lens, attribution, check_number
from ice_eval.errors import CapabilityError, ConfigError
from ice_eval.models import EmbeddedText
from ice_eval.records import Encoded, PerUnit, Unit

_MOST_POINTS = 5_000
"""Most points of a path: their places are the eigenvalues of a matrix of that size."""
Baseline = Literal["zero", "pad"]
Norm = Literal["l1", "l2"]
_ORDERS: Mapping[Norm, int | None] = {"l1": 1, "l2": None}
Embeddings = NDArray[np.float64]  # (tokens of units, width)
Step = tuple[Embeddings, Embeddings]  # the point where the gradient is taken, and the way that it is multiplied with


@attribution("gradient", needs={"gradients"})
@dataclass(frozen=True, kw_only=True)
class Gradient(Attribution):
    """L2 norm of the gradient of the target's log-odds at each token's embedding, summed per unit."""

    units = get_args(Unit)
    norm: Norm = "l2"
    """Norm of the gradient: l2, or l1, the sum of its absolute values."""

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        found = zip(batch, lens.gradients(batch), strict=True)
        return [item.per_unit(np.linalg.norm(g.gradient, ord=_ORDERS[self.norm], axis=1)) for item, g in found]


@attribution("input-x-gradient", needs={"gradients"})
class InputXGradient(Attribution):
    """Embedding of each token dotted with the gradient of the target's log-odds there, summed per unit; signed."""

    signed = True

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        found = zip(batch, lens.gradients(batch), strict=True)
        return [item.per_unit(np.einsum("td,td->t", g.embedding, g.gradient)) for item, g in found]


@attribution("integrated-gradients", needs={"embeddings"})
@dataclass(frozen=True, kw_only=True)
class IntegratedGradients(Attribution):
    """Gradient of the target's log-odds along a straight path from a baseline to the text, summed per unit; signed.

    Only the embeddings of units move; the template stays. The numbers add up to the log-odds of the text minus those of
    the baseline, up to the error of a sum over `steps` points (Gauss-Legendre). Sundararajan et al., 2017.
    """

    signed = True
    steps: int = 64
    """Points on the path; with fewer the sums of language models are far off (docs/attributions.md)."""
    baseline: Baseline = "zero"
    """Start of the path: zeros, or the embedding of padding."""

    def __post_init__(self) -> None:
        check_number("integrated-gradients: steps", self.steps, most=_MOST_POINTS)
        _check_baseline(self.baseline)

    @property
    def passes(self) -> int:
        return 3 * self.steps

    def check(self, lens: Lens, item: Encoded) -> None:
        replace(self, steps=1).attribute(lens, [item])

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        places, weights = np.polynomial.legendre.leggauss(self.steps)  # on (-1, 1)
        found = zip(batch, lens.embeddings(batch), strict=True)
        return [_summed_products(item, text, self._path(text, (1 + places) / 2), weights / 2) for item, text in found]

    def _path(self, text: EmbeddedText, shares: NDArray[np.float64]) -> Iterator[Step]:
        start = baseline_of(text, self.baseline)
        for share in shares.tolist():
            yield start + share * (text.embedding - start), text.embedding - start


@attribution("gradient-shap", needs={"embeddings"})
@dataclass(frozen=True, kw_only=True)
class GradientShap(Attribution):
    """Gradient of the target's log-odds times the way from a baseline, at random points of it, per unit; signed.

    Every sample adds noise to the embeddings of the text and takes the gradient at a uniform point between the baseline
    and there. Without noise it is a Monte Carlo estimate of integrated gradients. Lundberg & Lee, 2017; as captum's
    `GradientShap`.
    """

    signed = True
    samples: int = 32
    noise: float = 0.1
    """Standard deviation of the noise, as a share of that of the embeddings."""
    baseline: Baseline = "zero"
    """Reference of the text: zeros, or the embedding of padding."""

    def __post_init__(self) -> None:
        if self.samples < 1 or not 0 <= self.noise < np.inf:
            raise ConfigError(
                f"gradient-shap: samples = {self.samples}, noise = {self.noise}; at least 1 and 0 are needed."
            )
        check_number("gradient-shap: samples", self.samples)
        _check_baseline(self.baseline)

    @property
    def passes(self) -> int:
        return 3 * self.samples

    def check(self, lens: Lens, item: Encoded) -> None:
        replace(self, samples=1).attribute(lens, [item])

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        weights = np.full(self.samples, 1 / self.samples)
        found = zip(batch, lens.embeddings(batch), strict=True)
        return [_summed_products(item, text, self._samples(text, lens.rng(item)), weights) for item, text in found]

    def _samples(self, text: EmbeddedText, rng: np.random.Generator) -> Iterator[Step]:
        start, spread = baseline_of(text, self.baseline), self.noise * text.embedding.std()
        for _ in range(self.samples):
            noisy = text.embedding + spread * rng.standard_normal(text.embedding.shape)
            yield start + rng.uniform() * (noisy - start), noisy - start


def _check_baseline(name: str) -> None:
    if name not in get_args(Baseline):
        raise ConfigError(f"baseline = '{name}'; {' or '.join(get_args(Baseline))} is expected.")


def baseline_of(text: EmbeddedText, name: Baseline) -> Embeddings:
    """Return the embeddings of the baseline text."""
    if name == "zero":
        return np.zeros_like(text.embedding)
    if text.pad is None:
        raise CapabilityError("the model has neither a padding token nor an end of text; use baseline=zero.")
    return np.broadcast_to(text.pad, text.embedding.shape)


def _summed_products(item: Encoded, text: EmbeddedText, steps: Iterable[Step], weights: NDArray[np.float64]) -> PerUnit:
    """Sum gradients times differences over steps with their weights; a few steps share a pass."""
    # Steps are made as they are needed: all those of a long text would fill the memory.
    total, waiting = np.zeros(len(text.tokens)), iter(steps)
    for first in range(0, len(weights), text.at_once):
        points, ways = zip(*itertools.islice(waiting, text.at_once), strict=True)
        gradients = text.gradients(np.stack(points))
        total += np.einsum("p,ptd,ptd->t", weights[first : first + len(ways)], gradients, np.stack(ways))
    per_token = np.zeros(len(item.ids))
    per_token[text.tokens] = total
    return item.per_unit(per_token)
