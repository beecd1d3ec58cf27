"""One part of a run: some consecutive examples, from text to ledger rows.

```text
encode → full and empty rows → targets → attributions, with their probes → rationale and random rows, in one stream
       → ledger
```

Rows that the folder already holds are never scored again.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ice_eval.attributions import LOOKS, OF_EVERY_MODEL, Lens, Observer, one_per_unit
from ice_eval.encoding import shared_prefix
from ice_eval.errors import ConfigError
from ice_eval.pipeline.engine import Engine
from ice_eval.pipeline.queue import Probes, RowQueue, changed
from ice_eval.pipeline.replicas import Replica, RunPart, RunSpec
from ice_eval.pipeline.rows import ExampleRows, reference_rows, undecided
from ice_eval.records import NO_IDS, NOT_SET, PROTECTED, Answer, Encoded, Example, Kind, LogScores, PerUnit, Rows
from ice_eval.results.examples import FillTexts, InputRow
from ice_eval.results.ledger import Ledger, Names
from ice_eval.scoring import Progress, ScoringCounts


class PartResult(NamedTuple):
    """New data of a part."""

    inputs: list[InputRow]
    """Empty if nothing is new."""
    ledger: Ledger
    cost: dict[str, Any]
    n_wanted: int
    """Number of logical rows of the part, stored ones included."""


@dataclass(frozen=True)
class PendingPart:
    """A part whose last rows may still be in the model."""

    engine: Engine
    queue: RowQueue
    inputs: list[InputRow]
    before: Mapping[str, InputRow]
    cost: dict[str, Any]
    """All but the cost of rows."""
    n_wanted: int

    @property
    def may_wait(self) -> bool:
        """True if the device computes asynchronously, so that the host may start the next part."""
        return self.engine.model.works_ahead

    def finish(self) -> PartResult:
        """Wait for the scores and return every row for the ledger."""
        rows = Rows.join([asked.rows for asked in self.queue.asked])
        texts = self.engine.subject.texts(rows.inputs)
        rows = replace(rows, texts={**rows.texts, **texts}) if texts else rows
        ledger = Ledger.of(self.queue.known.names, rows, np.concatenate([each.scores() for each in self.queue.asked]))
        kinds, counts = np.unique(rows.head["kind"], return_counts=True)
        by_kind = {Kind(kind).label: int(count) for kind, count in zip(kinds, counts, strict=True)}
        cost = {**self.cost, "rows": len(rows), "rows_by_kind": by_kind}
        is_new = len(rows) or _anything_new(self.inputs, self.before)
        return PartResult(self.inputs if is_new else [], ledger, cost, self.n_wanted)


@dataclass(frozen=True)
class Attributed:
    """Results of the attributions of a part."""

    vectors: dict[tuple[str, str], PerUnit] = field(default_factory=dict)
    """(attribution, example) -> a number per unit."""
    answers: dict[tuple[str, str], Answer] = field(default_factory=dict)
    """(attribution, example) -> new answer of the model."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Attribution -> duration; a shared observation is divided equally."""

    @property
    def answer_tokens(self) -> dict[str, int]:
        """Attribution -> tokens of its questions and answers."""
        names = dict.fromkeys(name for name, _ in self.answers)
        return {name: sum(each.tokens for (own, _), each in self.answers.items() if own == name) for name in names}


def names_of(engine: Engine, examples: Sequence[Example]) -> Names:
    """Return the names of the codes in a part's rows."""
    config = engine.config
    return Names(tuple(example.id for example in examples), config.attributions, config.nulls, engine.operator_names)


def start_part(replica: Replica, part: RunPart, progress: Progress, *, spec: RunSpec) -> PendingPart:
    """Submit the missing rows of a part to the model."""
    replica.checked(spec)
    engine, known = replace(replica.engine(spec), config=part.config), part.ledger
    examples = [engine.subject.complete(example) for example in part.examples]
    before = {row.example_id: row for row in part.inputs}
    counts = replace(engine.scorer.counts)
    items = [engine.encode(example) for example in examples]
    _refuse_other_units(items, before)
    reasons = [engine.subject.skip_reason(example) for example in examples]
    alive = {place: item for place, item in enumerate(items) if item.n_units > 1 and reasons[place] is None}
    prefix = shared_prefix(list(alive.values())) if engine.model.shares_prefix else 0
    queue = RowQueue(engine.scorer, prefix, known, progress)

    # Rows depend on what comes first, and the device may still be busy with the rows of the part before.
    with engine.model.ahead():
        references = reference_rows(engine, alive)
        queue.ask(references)
        full, empty = _full_and_empty(references, queue.scored(references))
        skipped = [
            reasons[place]
            or _skip_reason(engine, item, example, full.get(place), empty.get(place))
            or (_unsure(engine, example, full[place], empty[place]) if place in alive else None)
            for place, (item, example) in enumerate(zip(items, examples, strict=True))
        ]
        alive = {place: item for place, item in alive.items() if skipped[place] is None}
        targets = {place: _target(engine, examples[place], full[place], empty[place]) for place in alive}
        by_id = {item.example_id: targets[place] for place, item in alive.items()}
        priors = {item.example_id: empty[place].tolist() for place, item in alive.items()}
        probes = Probes(engine, queue, {item.example_id: place for place, item in alive.items()}, by_id, priors)
        found = attribute(engine, list(alive.values()), by_id, before, probes)
    wanted = [ExampleRows(engine, place, item, found.vectors) for place, item in alive.items()]
    queue.ask(Rows.join([rows for each in wanted for rows in each.new()]))
    inputs = [
        _input_row(engine, example, item, targets.get(place), skipped[place], found, before.get(example.id))
        for place, (example, item) in enumerate(zip(examples, items, strict=True))
    ]
    if engine.config.adaptive == "examples":
        _further_rounds(queue, wanted, inputs)
    for rows in wanted:
        inputs[rows.place] = replace(inputs[rows.place], fills=_fill_texts(engine, rows, before))
    n_probes = sum(probes.rows.values()) + int(np.count_nonzero(known.head["kind"] == Kind.PROBE))
    cost = _cost(engine, counts, found, probes, attribution_tokens(engine, list(alive.values()), before))
    return PendingPart(engine, queue, inputs, before, cost, sum(map(len, wanted)) + len(references) + n_probes)


def _refuse_other_units(items: Sequence[Encoded], before: Mapping[str, InputRow]) -> None:
    """Raise ConfigError if the stored rows of an example are about other units than those of today."""
    for item in items:
        stored = before.get(item.example_id)
        if stored is not None and stored.spans != item.spans:
            raise ConfigError(
                f"the folder holds example '{item.example_id}' in {len(stored.spans)} units, and here it has "
                f"{item.n_units}, or others; its rows cannot be continued, so use another --out."
            )


def _full_and_empty(rows: Rows, scores: LogScores) -> tuple[dict[int, LogScores], dict[int, LogScores]]:
    """Return the scores of the full and the empty input, by index of the example."""
    plain = rows.head["operator"] == NOT_SET
    found: list[dict[int, LogScores]] = []
    for kind in (Kind.FULL, Kind.EMPTY):
        chosen = np.flatnonzero(plain & (rows.head["kind"] == kind))
        found.append({int(rows.head["example"][row]): scores[row] for row in chosen})
    return found[0], found[1]


def _cost(engine: Engine, counts: ScoringCounts, found: Attributed, probes: Probes, looked: int) -> dict[str, Any]:
    """Return the cost of the part; `counts` are from before it, `looked` the tokens of observations."""
    probe_tokens, answer_tokens = sum(probes.tokens.values()), found.answer_tokens
    return {
        "forwards": engine.scorer.counts.forwards - counts.forwards,
        "tokens": engine.scorer.counts.tokens - counts.tokens - probe_tokens,
        "attribution_seconds": found.seconds,
        "attribution_tokens": looked + probe_tokens + sum(answer_tokens.values()),
        "attribution_rows": probes.rows,
        "probe_tokens": probes.tokens,
        "answer_tokens": answer_tokens,
        "out_of_memory": engine.scorer.halvings + engine.model.n_oom_retries,
        "lowered_budgets": {str(length): budget for length, budget in engine.scorer.lowered.items()},
    }


def _further_rounds(queue: RowQueue, wanted: Sequence[ExampleRows], inputs: Sequence[InputRow]) -> None:
    """Score further sets of examples with undecided sequential tests."""
    while wanted:
        asked = [Ledger.of(queue.known.names, each.rows, each.scores()) for each in queue.asked]
        scored = Ledger.join([queue.known, *asked], queue.known.names)
        growing = undecided(inputs, wanted, scored)
        for rows, streams in growing:
            for stream in streams:
                rows.grow(stream)
        wanted = [rows for rows, _ in growing]
        if wanted:
            queue.ask(Rows.join([each for rows in wanted for each in rows.new()]))


def _anything_new(inputs: Sequence[InputRow], before: Mapping[str, InputRow]) -> bool:
    return any(
        row.example_id not in before or set(row.attributions) - set(before[row.example_id].attributions)
        for row in inputs
    )


def _skip_reason(
    engine: Engine, item: Encoded, example: Example, full: LogScores | None, empty: LogScores | None
) -> str | None:
    if item.n_units == 0:
        return "the text has no unit"
    if full is None or empty is None:
        return "the text has one unit, so there is no other set to compare with"
    if not (np.isfinite(full).all() and np.isfinite(empty).all()):
        return "the model's score of the full or the empty input is not finite"
    if engine.config.target == "gold" and example.gold is None:
        return "the example has no gold label to explain"
    fills = any(act.needs_fills for act in engine.operators.values())
    if fills and engine.pool is not None and not engine.pool.can_fill(item):
        return "infill finds no units of other examples that fit this one"
    if engine.targets is not None and item.example_id not in engine.targets:
        return "the run of the deployed model skipped it"
    return None


def _unsure(engine: Engine, example: Example, full: LogScores, empty: LogScores) -> str | None:
    """Return the reason why an example is skipped whose explained label is not probable enough."""
    least = engine.config.min_confidence
    if least is None or engine.targets is not None:  # those of a deployed model were chosen by its own confidence
        return None
    chances = np.exp(full - np.logaddexp.reduce(full))
    if chances[_target(engine, example, full, empty)] >= least:
        return None
    return f"the model's confidence in the explained label is below {least:g}"


def _target(engine: Engine, example: Example, full: LogScores, empty: LogScores) -> int:
    if engine.targets is not None:
        return engine.targets[example.id]
    return engine.subject.target(engine.config, example, full, empty)


def _input_row(
    engine: Engine,
    example: Example,
    item: Encoded,
    target: int | None,
    skip: str | None,
    found: Attributed,
    before: InputRow | None,
) -> InputRow:
    names = [name for name in engine.attributions if (name, example.id) in found.vectors]
    return InputRow(
        example_id=example.id,
        fields={**example.fields, **item.whole},
        spans=item.spans,
        gold=example.gold,
        target=target,
        group=example.group,
        human=example.human,
        n_cut=item.n_cut,
        skip_reason=skip,
        attributions={name: tuple(found.vectors[name, example.id].tolist()) for name in names},
        answers={name: found.answers[name, example.id] for name in names if (name, example.id) in found.answers},
        fills=() if before is None else before.fills,
    )


def _fill_texts(engine: Engine, rows: ExampleRows, before: Mapping[str, InputRow]) -> tuple[FillTexts, ...]:
    """Return the replacement texts of an example by operator; rows with their own fills hold their texts themselves."""
    item = rows.item
    held = before[item.example_id].fills if item.example_id in before else ()
    known = {(fill.operator, fill.draw): fill for fill in held}
    for (name, draw), drawn in rows.fills.items():
        known[name, draw] = FillTexts(name, draw, drawn.texts)
    for name, act in engine.operators.items():
        if act.needs_fills or (name, 0) in known:
            continue
        nothing = act.build(item, np.zeros((1, item.n_units), dtype=bool), fills=NO_IDS)
        if len(nothing.ids) == len(item.ids):
            known[name, 0] = FillTexts(name, 0, tuple(_spelled(engine, item, nothing.ids)))
    return tuple(known.values())


def _spelled(engine: Engine, item: Encoded, ids: Any) -> list[str]:
    """Return the text of replacement ids, unit by unit."""
    inside = item.unit_of != PROTECTED
    units = np.split(ids[inside], np.cumsum(item.unit_lengths())[:-1])
    keys = [unit.tobytes() for unit in units]
    new = {key: unit for key, unit in zip(keys, units, strict=True) if key not in engine.spelled}
    engine.spelled.update(zip(new, engine.model.codec.decode(list(new.values())), strict=True))
    return [engine.spelled[key] for key in keys]


def attribute(
    engine: Engine,
    items: Sequence[Encoded],
    targets: Mapping[str, int],
    before: Mapping[str, InputRow],
    probes: Probes,
) -> Attributed:
    """Compute missing attributions; raise ConfigError if user-supplied ones differ from those stored in `before`."""
    stored = {
        name: {e: np.array(row.attributions[name]) for e, row in before.items() if name in row.attributions}
        for name in engine.attributions
    }
    missing = {
        name: [item for item in items if method.user_supplied or item.example_id not in stored[name]]
        for name, method in engine.attributions.items()
    }
    looking = {name for name, todo in missing.items() if todo and engine.attributions[name].needs & LOOKS}
    observer, of_look = _looked(engine, items, targets, {n: todo for n, todo in missing.items() if todo}, probes)
    found = Attributed()
    for name, method in engine.attributions.items():
        if missing[name]:
            started = time.monotonic()
            lens = Lens(observer, method.needs, engine.config.seed, name, engine.data, partial(probes.values, name))
            for item, vector in zip(missing[name], engine.subject.attribute(method, lens, missing[name]), strict=True):
                found.vectors[name, item.example_id] = one_per_unit(name, item, np.asarray(vector, dtype=np.float64))
            found.answers.update({(name, example_id): answer for example_id, answer in lens.answers.items()})
            share = of_look / len(looking) if name in looking else 0.0
            found.seconds[name] = round(time.monotonic() - started + share, 3)
        for example_id, vector in stored[name].items():
            if not np.array_equal(vector, found.vectors.get((name, example_id), vector), equal_nan=True):
                raise changed(name, example_id)
            found.vectors[name, example_id] = vector
    return found


def _looked(
    engine: Engine,
    items: Sequence[Encoded],
    targets: Mapping[str, int],
    missing: Mapping[str, Sequence[Encoded]],
    probes: Probes,
) -> tuple[Observer, float]:
    """Observe the model once for all methods that need it; return the observer and the seconds."""
    needs = {need for name in missing for need in engine.attributions[name].needs}
    observer = Observer(
        engine.model,
        engine.scorer.labels,
        targets,
        needs - OF_EVERY_MODEL,
        chat=engine.in_turns,
        priors=probes.subtracted(),
    )
    looking = [todo for name, todo in missing.items() if engine.attributions[name].needs & LOOKS]
    shown = {item.example_id for todo in looking for item in todo if not engine.subject.observes_in_attribute}
    started = time.monotonic()
    observer.see([item for item in items if item.example_id in shown])
    return observer, time.monotonic() - started


def attribution_tokens(engine: Engine, items: Sequence[Encoded], before: Mapping[str, InputRow]) -> int:
    """Return the tokens of observing methods: one pass for all of them, three if one needs gradients."""
    total = 0
    for item in items:
        stored = before[item.example_id].attributions if item.example_id in before else {}
        new = [method for name, method in engine.attributions.items() if name not in stored]
        needs = {need for method in new for need in method.needs}
        looks = 3 if "gradients" in needs else 1 if "attentions" in needs else 0
        total += (looks + sum(method.passes for method in new)) * len(item.ids)
    return total
