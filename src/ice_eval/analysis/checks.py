"""Checks of a model: as it reads a task, explanations by another tool, and a deployed one beside its adapted copy."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from ice_eval import stats
from ice_eval.analysis._base import Values
from ice_eval.attributions import Explained, Fit, fit_of
from ice_eval.encoding import encode, rendered, shared_prefix
from ice_eval.models import LabelScoring, Model, Scoring
from ice_eval.rationales import Share
from ice_eval.records import Encoded, Example, Inputs, Kind, Scope, Unit
from ice_eval.results import RunFolder
from ice_eval.results.folder import FinishedRun
from ice_eval.results.ledger import NO_NAMES
from ice_eval.results.summary import below_chance
from ice_eval.scoring import Scorer, depends_on_batch
from ice_eval.tasks import Piece, Task, data_notes

N_SHOWN, N_SCORED, N_MASS = 3, 50, 16


@dataclass(frozen=True)
class Segment:
    """A run of characters of a rendered prompt."""

    text: str
    kind: Literal["protected", "unit", "between"]
    """Template, a unit that may be removed, or spaces between units."""


@dataclass(frozen=True)
class LabelLine:
    """One label: its word and tokens, its probability for an empty text, and its share of predictions."""

    label: str
    word: str
    token_ids: tuple[int, ...]
    tokens: tuple[str, ...]
    prior: float
    predicted: float


@dataclass(frozen=True)
class TaskCheck:
    """Prompts, labels and accuracy of a task."""

    prompts: tuple[tuple[Segment, ...], ...]
    labels: tuple[LabelLine, ...]
    label_scoring: Scoring
    n: int
    accuracy: float | None
    """None where the data have no gold labels."""
    majority: float | None
    """Accuracy of always giving the most frequent label; None without gold labels."""
    truncated: int
    median_units: float
    label_mass: float | None
    """Share of the probability of all that the model may write that the labels hold, in the median; None: unknown."""
    human: int
    """Scored examples with a human rationale."""
    notes: tuple[str, ...]


def check_task(model: Model, task: Task, *, unit: Unit = "token") -> TaskCheck:
    """Render, encode and score the first examples of a task."""
    labels = model.labels(task)
    examples = task.examples(limit=N_SCORED)
    items = [encode(model.codec, task, example, unit=unit, reserve=labels.reserve) for example in examples]
    prefix = shared_prefix(items) if model.shares_prefix else 0
    rows = Inputs.join([items[0].empty(), *(item.full() for item in items)])
    notes = [*([labels.note] if labels.note else []), *data_notes(task, examples)]
    few = rows.take(range(min(4, len(rows))))
    notes += [*model.check(few, labels, prefix=prefix), *model.doubts(few, labels)]
    if model.server is None and (noise := depends_on_batch(model, few, labels)) is not None:
        notes.append(noise)
    mass = model.label_mass(rows.take(range(1, min(1 + N_MASS, len(rows)))), labels)
    scores = np.exp(Scorer(model, labels, budget=model.default_budget()).score(rows, prefix=prefix))
    answers = scores[1:].argmax(axis=1)
    gold = Counter(example.gold for example in examples if example.gold is not None)
    right = [int(a) == e.gold for a, e in zip(answers, examples, strict=True) if e.gold is not None]
    accuracy = float(np.mean(right)) if right else None
    if accuracy is not None and (found := below_chance(accuracy, len(right), labels.names)) is not None:
        notes.append(found)
    lines = []
    for index, (name, word, ids) in enumerate(zip(labels.names, task.answers, labels.ids, strict=True)):
        tokens = [] if labels.are_classes else model.codec.decode([np.array([i]) for i in ids])
        predicted = float(np.mean(answers == index))
        lines.append(LabelLine(name, word, ids, tuple(tokens), float(scores[0][index]), predicted))
    return TaskCheck(
        prompts=tuple(tuple(_segments(model, task, e, i)) for e, i in zip(examples[:N_SHOWN], items, strict=False)),
        labels=tuple(lines),
        label_scoring=labels.scoring,
        n=len(items),
        accuracy=accuracy,
        majority=max(gold.values()) / gold.total() if gold else None,
        truncated=sum(item.truncated for item in items),
        median_units=float(np.median([item.n_units for item in items])),
        label_mass=None if mass is None else float(np.median(mass)),
        human=sum(bool(example.human) for example in examples),
        notes=tuple(notes),
    )


def _segments(model: Model, task: Task, example: Example, item: Encoded) -> Iterator[Segment]:
    first, second = rendered(model.codec, task, example.fields)
    for piece in (*first, *([Piece("\n"), *second] if second else [])):
        spans = [span for span in item.spans if span.field == piece.field]
        place = 0
        for span in spans:
            if span.start > place:
                yield Segment(piece.text[place : span.start], "between")
            yield Segment(piece.text[span.start : span.end], "unit")
            place = span.end
        if place < len(piece.text):
            yield Segment(piece.text[place:], "between" if spans else "protected")


class ExplanationCheck(NamedTuple):
    """Alignment of explanations with the examples of a task."""

    fit: Fit
    unused: int
    """Explanations of examples that are not evaluated or do not exist."""


def check_explanations(
    model: Model,
    task: Task,
    examples: Sequence[Example],
    given: Explained,
    *,
    unit: Unit = "token",
    scope: Scope = "content",
    label_scoring: LabelScoring | None = None,
    shares: Sequence[Share] = (),
) -> ExplanationCheck:
    """Align every explanation with its example, and count those that fit; settings as in the planned run."""
    labels = model.labels(task, scoring=label_scoring)  # long labels leave less room for the text
    items = (encode(model.codec, task, e, unit=unit, scope=scope, reserve=labels.reserve) for e in examples)
    used = sum(example.id in given.explanations for example in examples)
    fit = fit_of(given, "file", items, labels, shares=shares, all_of_them=True)
    return ExplanationCheck(fit, given.n_given - used)


# --- a deployed model and its adapted copy --------------------------------------------------------------------------

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
    run = FinishedRun(folder=deployed)
    return [_compared(*kind, before[kind], after[kind], run) for kind in before]


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
    operator: str | None, direction: str | None, before: _Scored, after: _Scored, run: FinishedRun
) -> Answered:
    values: dict[str, Any] = {"operator": operator, "direction": direction, "rows": len(before.right)}
    by_example = list[dict[str, float]]()
    for side, scored in (("deployed", before), ("adapted", after)):
        rescaled, right = scored.rescaled(), scored.scores.argmax(axis=1) == scored.right
        of_rows = {"accuracy": right, "loss": scored.losses(scored.scores), "rescaled": rescaled}
        values |= {f"{name}_{side}": float(each.mean()) for name, each in of_rows.items()}
        names, place = np.unique(scored.examples, return_inverse=True)
        means = np.bincount(place, weights=rescaled) / np.bincount(place)
        by_example.append(dict(zip(names.tolist(), means.tolist(), strict=True)))
    shared = [example for example in by_example[0] if example in by_example[1]]
    first, second = (np.array([means[example] for example in shared]) for means in by_example)
    change = second - first
    interval = stats.unbounded_interval(change, groups=run.groups_of(shared))
    return Answered(**values, difference=float(change.mean()), difference_ci=interval)
