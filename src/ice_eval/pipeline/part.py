"""One part of a run: 16 consecutive examples, from text to ledger rows.

```text
encode → full and empty rows → targets → attributions, with their probes → rationale and random rows, in one stream
       → ledger
```

What the folder already holds of the part is never scored again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ice_eval.encoding import shared_prefix
from ice_eval.pipeline.attribute import Attributed, attribute, attribution_tokens
from ice_eval.pipeline.desk import Answers, Asked, Desk
from ice_eval.pipeline.engine import Engine
from ice_eval.pipeline.probes import Probes
from ice_eval.pipeline.rows import ExampleRows, content_of, n_references, reference_rows
from ice_eval.pipeline.stopping import undecided
from ice_eval.records import Encoded, Example
from ice_eval.results.comparisons import by_example
from ice_eval.results.schema import InputRow, LedgerRow, RowKey, is_probe
from ice_eval.scoring import Counts, Progress

PART_SIZE = 16


@dataclass
class PartResult:
    """What a part adds to the folder."""

    inputs: list[InputRow] = field(default_factory=list)
    ledger: list[LedgerRow] = field(default_factory=list)
    cost: dict[str, Any] = field(default_factory=dict)
    n_wanted: int = 0
    """Logical rows of the part, those that were there before included."""


@dataclass
class PartInFlight:
    """A part whose last rows may still be on their way through the model."""

    engine: Engine
    result: PartResult
    asked: Sequence[Asked]
    """References, probes, and the rows of sets: once, more often where a sequential test went on asking."""
    answered: Answers
    before: Mapping[str, InputRow]

    def __len__(self) -> int:
        """Rows that were missing."""
        return sum(len(asked.rows) for asked in self.asked)

    @property
    def may_wait(self) -> bool:
        """Whether the device works on it by itself, so that the host may start the next part."""
        return self.engine.model.works_ahead

    def finish(self) -> PartResult:
        """Wait for the scores, and note every row in the ledger."""
        for asked in self.asked:
            asked.answers(self.answered)
        rows = [row for asked in self.asked for row in asked.rows]
        texts = self.engine.model.codec.decode([content_of(row) for row in rows])
        for row, text in zip(rows, texts, strict=True):
            ids, segments = row.input.ids.tolist(), row.input.segments.tolist()
            scores = self.answered[row.input.key()]
            self.result.ledger.append(LedgerRow(row.key, row.kept, tuple(ids), tuple(segments), scores, text))
        self.result.cost |= {"rows": len(rows), "rows_by_kind": _count_kinds(self.result.ledger)}
        if not _anything_new(self.result, self.before):
            self.result.inputs = []
        return self.result


def start_part(
    engine: Engine,
    examples: Sequence[Example],
    known_inputs: Sequence[InputRow],
    known_rows: Sequence[LedgerRow],
    progress: Progress,
) -> PartInFlight:
    """Send what is missing of a part to the model."""
    known = {row.key: row for row in known_rows}
    answered = {row.input.key(): row.scores for row in known_rows}
    before = {row.example_id: row for row in known_inputs}
    counts = replace(engine.scorer.counts)
    items = {example.id: engine.encode(example) for example in examples}
    alive = [item for item in items.values() if item.n_units > 1]
    prefix = shared_prefix(alive) if alive and engine.model.shares_prefix else 0

    desk = Desk(engine.scorer, prefix, known, answered, progress)

    # Rows depend on what comes first, and the device may still be busy with the rows of the part before.
    with engine.model.ahead():
        references = desk.ask(reference_rows(engine, alive))
        scores = {**{key: row.scores for key, row in known.items()}, **references.answers(answered)}
        skipped = {e.id: _skip_reason(engine, items[e.id], e, scores) for e in examples}
        alive = [item for item in alive if skipped[item.example_id] is None]
        gold = {e.id: e.gold for e in examples}
        targets = {item.example_id: _target(engine, gold, scores, item) for item in alive}
        probes = Probes(engine, desk, targets)
        found = attribute(engine, alive, targets, before, probes)
    inputs = [_input_row(e, items[e.id], targets.get(e.id), skipped[e.id], found) for e in examples]
    wanted = [ExampleRows(engine, item, found.vectors) for item in alive]
    rounds = [desk.ask(row for rows in wanted for row in rows.new())]
    if engine.config.adaptive == "examples":
        rounds += _further_rounds(desk, wanted, inputs, [references, *rounds])
    n_probes = sum(probes.rows.values()) + sum(is_probe(key.kind) for key in known)
    n_referred = n_references(engine) * sum(item.n_units > 1 for item in items.values())
    result = PartResult(
        inputs=inputs,
        n_wanted=sum(map(len, wanted)) + n_referred + n_probes,
        cost=_cost(engine, counts, found, probes, attribution_tokens(engine, alive, before)),
    )
    return PartInFlight(engine, result, [references, *probes.asked, *rounds], answered, before)


def _cost(engine: Engine, counts: Counts, found: Attributed, probes: Probes, looked: int) -> dict[str, Any]:
    """What the part took so far.

    Args:
        engine: The run.
        counts: What its scorer had counted before the part.
        found: The attributions of the part.
        probes: What they asked for.
        looked: Tokens that they sent through the model themselves.
    """
    probe_tokens, answer_tokens = sum(probes.tokens.values()), found.answer_tokens
    return {
        "forwards": engine.scorer.counts.forwards - counts.forwards,
        "tokens": engine.scorer.counts.tokens - counts.tokens - probe_tokens,
        "attribution_seconds": found.seconds,
        "attribution_tokens": looked + probe_tokens + sum(answer_tokens.values()),
        "attribution_rows": probes.rows,
        "probe_tokens": probes.tokens,
        "answer_tokens": answer_tokens,
        "out_of_memory": engine.scorer.halvings + engine.model.shortages,
        "lowered_budgets": {str(length): budget for length, budget in engine.scorer.lowered.items()},
    }


def _further_rounds(
    desk: Desk, wanted: Sequence[ExampleRows], inputs: Sequence[InputRow], asked: Sequence[Asked]
) -> Iterator[Asked]:
    """Go on with the examples that a sequential test has not decided."""
    example_of = {row.example_id: row for row in inputs}
    scored = by_example(desk.known.values())
    while wanted:
        for each in asked:
            for row, scores in zip(each.rows, each.answers(desk.answered).values(), strict=True):
                scored[row.key.example_id].append(LedgerRow(row.key, row.kept, (), (), scores))
        going_on = []
        for rows in wanted:
            name = rows.item.example_id
            streams = undecided(example_of[name], rows, scored[name])
            for stream in streams:
                rows.grow(stream)
            going_on += [rows] if streams else []
        wanted = going_on
        if wanted:
            asked = [desk.ask(row for rows in wanted for row in rows.new())]
            yield asked[0]


def _anything_new(result: PartResult, before: Mapping[str, InputRow]) -> bool:
    if result.ledger:
        return True
    return any(
        row.example_id not in before or set(row.attributions) - set(before[row.example_id].attributions)
        for row in result.inputs
    )


def _skip_reason(
    engine: Engine, item: Encoded, example: Example, scores: Mapping[RowKey, Sequence[float]]
) -> str | None:
    if item.n_units == 0:
        return "the text has no unit"
    if item.n_units == 1:
        return "the text has one unit, so there is no other set to compare with"
    if not all(np.isfinite(scores[RowKey(item.example_id, kind)]).all() for kind in ("full", "empty")):
        return "the model's score of the full or the empty input is not finite"
    if engine.config.target == "gold" and example.gold is None:
        return "the example has no gold label to explain"
    fills = any(act.needs_fills for act in engine.operators.values())
    if fills and engine.pool is not None and not engine.pool.can_fill(item):
        return "infill finds no units of other examples that fit this one"
    if engine.targets is not None and item.example_id not in engine.targets:
        return "the run of the deployed model skipped it"
    return None


def _target(
    engine: Engine, gold: Mapping[str, int | None], scores: Mapping[RowKey, Sequence[float]], item: Encoded
) -> int:
    if engine.targets is not None:
        return engine.targets[item.example_id]
    config, right = engine.config, gold[item.example_id]
    if config.target == "gold" and right is not None:
        return right
    full, prior = (np.array(scores[RowKey(item.example_id, kind)]) for kind in ("full", "empty"))
    return int(np.argmax(full - prior if config.calibration == "contextual" else full))


def _input_row(
    example: Example,
    item: Encoded,
    target: int | None,
    skip: str | None,
    found: Attributed,
) -> InputRow:
    return InputRow(
        example_id=example.id,
        fields={**example.fields, **item.whole},
        spans=item.spans,
        gold=example.gold,
        target=target,
        group=example.group,
        human=example.human,
        truncated=item.truncated,
        skip_reason=skip,
        attributions={
            name: tuple(v.tolist()) for (name, identity), v in found.vectors.items() if identity == example.id
        },
        answers={name: answer for (name, identity), answer in found.answers.items() if identity == example.id},
    )


def _count_kinds(rows: Sequence[LedgerRow]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.key.kind] = counts.get(row.key.kind, 0) + 1
    return counts
