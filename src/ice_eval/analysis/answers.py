"""How a deployed model and its adapted copy answer the inputs of a run: whether adaptation taught the copy anything."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from ice_eval import stats
from ice_eval.analysis._runs import group_label
from ice_eval.records import Kind
from ice_eval.results import InputRow, RunFolder
from ice_eval.results.ledger import NO_NAMES
from ice_eval.seeding import rng_for

_SURENESS = (0.0, 50.0)
"""What scores of unit spread are multiplied with, at least and at most; with 0 all labels are equally likely."""
_ROUND_OFF = 1e-6
"""Differences of losses that small come from the search for the temperature."""


@dataclass(frozen=True, kw_only=True)
class Answered:
    """One kind of input of a run, answered by two models.

    The right label is the gold one, or the explained one where the data do not say.
    """

    operator: str | None
    """None for full inputs."""
    direction: str | None
    rows: int
    accuracy_deployed: float
    accuracy_adapted: float
    loss_deployed: float
    """Mean of minus the log-probability of the right label."""
    loss_adapted: float
    rescaled_deployed: float
    """The same at the temperature that makes it smallest: what is left of the loss when overconfidence is put aside."""
    rescaled_adapted: float
    difference: float
    """Of the rescaled losses, adapted less deployed, mean over examples."""
    difference_ci: stats.Interval | None
    """95 %, paired over examples, or groups of them; None where it is undefined."""

    @property
    def learnt(self) -> bool:
        """Whether the copy reads these inputs better, beyond being less sure of itself."""
        return self.difference_ci is not None and self.difference_ci[1] < -_ROUND_OFF


def answered(deployed: RunFolder, adapted: RunFolder) -> list[Answered]:
    """Both models on full inputs, and on those that keep or lack a random set of units.

    A lower loss alone says little: a copy that is less sure of every answer has one, and the order of its scores, hence
    every win rate, is the same. So losses are compared after each model was given its best temperature.
    """
    before, after = _asked(deployed), _asked(adapted)
    groups = {row.example_id: group_label(row) for part in deployed.parts() for row in deployed.inputs(part)}
    return [_compared(*kind, before[kind], after[kind], groups) for kind in before]


class _Asked(NamedTuple):
    """Rows of one kind: (rows, labels) log-probabilities, the right label of each, and its example."""

    scores: NDArray[np.float64]
    right: NDArray[np.int64]
    examples: Sequence[str]

    def losses(self) -> NDArray[np.float64]:
        return self._losses_of(self.scores)

    def rescaled(self) -> NDArray[np.float64]:
        """The losses at the best temperature; a model and one that is k times as sure have the same."""
        centred = self.scores - self.scores.mean(axis=1, keepdims=True)
        unit = centred / (centred.std() or 1.0)
        best = minimize_scalar(lambda times: self._losses_of(times * unit).mean(), bounds=_SURENESS, method="bounded")
        return self._losses_of(float(best.x) * unit)

    def _losses_of(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        chosen: NDArray[np.float64] = log_softmax(scores, axis=1)[np.arange(len(self.right)), self.right]
        return -chosen

    @property
    def accuracy(self) -> float:
        return float((self.scores.argmax(axis=1) == self.right).mean())


_Kind = tuple[str | None, str | None]  # operator, direction


def _asked(folder: RunFolder) -> Mapping[_Kind, _Asked]:
    found: dict[_Kind, list[tuple[Sequence[float], int, str]]] = {}
    for part in folder.parts():
        right = {row.example_id: _label(row) for row in folder.inputs(part)}
        for row in folder.ledger(part, NO_NAMES, kinds=(Kind.FULL, Kind.RANDOM)).records():
            label, kind = right[row.key.example_id], (row.key.operator, row.key.direction)
            if label is not None:
                found.setdefault(kind, []).append((row.scores, label, row.key.example_id))
    return {
        kind: _Asked(np.array([r[0] for r in rows]), np.array([r[1] for r in rows]), [r[2] for r in rows])
        for kind, rows in found.items()
    }


def _compared(
    operator: str | None, direction: str | None, before: _Asked, after: _Asked, groups: Mapping[str, Hashable]
) -> Answered:
    rescaled = before.rescaled(), after.rescaled()
    by_example = _means(before.examples, rescaled[0]), _means(after.examples, rescaled[1])
    shared = [example for example in by_example[0] if example in by_example[1]]
    first, second = (np.array([means[example] for example in shared]) for means in by_example)
    rng = rng_for(0, "answers", operator or "", direction or "")
    found = stats.paired_difference(first, second, rng=rng, groups=[groups[example] for example in shared])
    return Answered(
        operator=operator,
        direction=direction,
        rows=len(before.right),
        accuracy_deployed=before.accuracy,
        accuracy_adapted=after.accuracy,
        loss_deployed=float(before.losses().mean()),
        loss_adapted=float(after.losses().mean()),
        rescaled_deployed=float(rescaled[0].mean()),
        rescaled_adapted=float(rescaled[1].mean()),
        difference=found.difference,
        difference_ci=found.interval,
    )


def _means(examples: Sequence[str], values: NDArray[np.float64]) -> dict[str, float]:
    """The mean of each example's values."""
    names, place = np.unique(examples, return_inverse=True)
    means = np.bincount(place, weights=values) / np.bincount(place)
    return dict(zip(names.tolist(), means.tolist(), strict=True))


def _label(row: InputRow) -> int | None:
    """The right label, else the explained one; None for examples that were skipped."""
    return None if row.skip_reason is not None else row.target if row.gold is None else row.gold
