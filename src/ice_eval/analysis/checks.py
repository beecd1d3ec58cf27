"""Checks before a run: of a task, as a model reads it, and of explanations by another tool."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from ice_eval.attributions import Explained, Fit, fit_of
from ice_eval.encoding import encode, rendered, shared_prefix
from ice_eval.models import LabelScoring, Model, Scoring
from ice_eval.rationales import Share
from ice_eval.records import Encoded, Example, Inputs, Scope, Unit
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
