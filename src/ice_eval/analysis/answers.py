"""Accuracy and loss of a deployed model and its adapted copy on the inputs of a run."""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from ice_eval import stats
from ice_eval.analysis.examples import Values, group_label
from ice_eval.records import Kind
from ice_eval.results import RunFolder
from ice_eval.results.ledger import NO_NAMES

_INVERSE_TEMPERATURES = (0.0, 50.0)
"""Bounds for scores of unit spread; at 0 all labels are equally likely."""
_ROUND_OFF = 1e-6
"""Differences of losses up to this size come from the search for the temperature."""


@dataclass(frozen=True, kw_only=True)
class Answered:
    """Results of two models on one kind of input; the right label is the gold one, or else the explained one."""

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
    """Smallest loss over temperatures: without the effect of overconfidence."""
    rescaled_adapted: float
    difference: float
    """Mean difference of the rescaled losses over examples, adapted minus deployed."""
    difference_ci: stats.Interval | None
    """95 % interval, paired over examples or groups; None where it is undefined."""

    @property
    def learnt(self) -> bool:
        """True if the copy's rescaled loss is significantly lower on these inputs."""
        return self.difference_ci is not None and self.difference_ci[1] < -_ROUND_OFF


class _Scored(NamedTuple):
    scores: Values
    """Log-probabilities, (rows, labels)."""
    right: NDArray[np.int64]
    examples: list[str]

    def losses(self, scores: Values) -> Values:
        chosen: Values = log_softmax(scores, axis=1)[np.arange(len(self.right)), self.right]
        return -chosen

    def rescaled(self) -> Values:
        """Return the losses at the best temperature, which do not depend on the scale of the scores."""
        centred = self.scores - self.scores.mean(axis=1, keepdims=True)
        unit = centred / (centred.std() or 1.0)
        best = minimize_scalar(
            lambda times: self.losses(times * unit).mean(), bounds=_INVERSE_TEMPERATURES, method="bounded"
        )
        return self.losses(float(best.x) * unit)


def answered(deployed: RunFolder, adapted: RunFolder) -> list[Answered]:
    """Compare both models on full inputs, and on those that keep or lack a random set of units."""
    # A lower loss alone proves little: a copy that is less sure of every answer has one, and the order of its scores,
    # hence every win rate, is the same. So losses are compared at each model's best temperature.
    before, after = _scored(deployed), _scored(adapted)
    groups = {row.example_id: group_label(row) for part in deployed.parts() for row in deployed.inputs(part)}
    return [_compared(*kind, before[kind], after[kind], groups) for kind in before]


def _scored(folder: RunFolder) -> Mapping[tuple[str | None, str | None], _Scored]:
    """Return the full inputs and random sets of a run by operator and direction, without skipped examples."""
    found: dict[tuple[str | None, str | None], list[tuple[Sequence[float], int, str]]] = defaultdict(list)
    for part in folder.parts():
        used = [row for row in folder.inputs(part) if row.skip_reason is None]
        right = {row.example_id: row.target if row.gold is None else row.gold for row in used}
        for row in folder.ledger(part, NO_NAMES, kinds=(Kind.FULL, Kind.RANDOM)).records():
            label = right.get(row.key.example_id)
            if label is not None:
                found[row.key.operator, row.key.direction].append((row.scores, label, row.key.example_id))
    columns = {kind: list(zip(*rows, strict=True)) for kind, rows in found.items()}
    return {kind: _Scored(np.array(s), np.array(right), list(names)) for kind, (s, right, names) in columns.items()}


def _compared(
    operator: str | None, direction: str | None, before: _Scored, after: _Scored, groups: Mapping[str, Hashable]
) -> Answered:
    values: dict[str, Any] = {"operator": operator, "direction": direction, "rows": len(before.right)}
    by_example = []
    for side, scored in (("deployed", before), ("adapted", after)):
        rescaled, right = scored.rescaled(), scored.scores.argmax(axis=1) == scored.right
        of_rows = {"accuracy": right, "loss": scored.losses(scored.scores), "rescaled": rescaled}
        values |= {f"{name}_{side}": float(each.mean()) for name, each in of_rows.items()}
        by_example.append(_means(scored.examples, rescaled))
    shared = [example for example in by_example[0] if example in by_example[1]]
    first, second = (np.array([means[example] for example in shared]) for means in by_example)
    change = second - first
    interval = stats.unbounded_interval(change, groups=[groups[example] for example in shared])
    return Answered(**values, difference=float(change.mean()), difference_ci=interval)


def _means(examples: Sequence[str], values: Values) -> dict[str, float]:
    names, place = np.unique(examples, return_inverse=True)
    means = np.bincount(place, weights=values) / np.bincount(place)
    return dict(zip(names.tolist(), means.tolist(), strict=True))
