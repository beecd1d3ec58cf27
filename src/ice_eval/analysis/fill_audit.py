"""What infill wrote in a finished run: how many fills tell the label, and whether win rates differ where they do."""

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ice_eval import stats
from ice_eval.analysis._runs import group_label
from ice_eval.analysis.infill_audit import InfillAudit, ReferenceName
from ice_eval.analysis.pieces import UnitIds
from ice_eval.errors import ConfigError
from ice_eval.operators import operators
from ice_eval.records import Encoded, Kind
from ice_eval.results import ExampleOutcome, InputRow, LedgerRow, RunFolder
from ice_eval.results.ledger import NO_NAMES
from ice_eval.results.records import Configuration

Contaminated = dict[tuple[str, str, str, str, int], bool]
"""(example, attribution, operator, direction, size) -> whether a fill around the rationale tells the label."""


@dataclass(frozen=True)
class FillCounts:
    """How many fills of a run are among the units that a reference list saw survive."""

    reference: ReferenceName
    fills: int
    """Over all rows."""
    contaminated_fills: int
    rows: int
    """Rows in which infill wrote something: rationales and random sets."""
    contaminated_rows: int
    examples: int
    contaminated_examples: int
    """With a fill of that kind around any rationale."""


@dataclass(frozen=True, kw_only=True)
class ContaminationEffect:
    """The win rates of one configuration, where a fill around the rationale tells the label and where none does."""

    reference: ReferenceName
    attribution: str
    operator: str
    direction: str
    k: float | None
    null: str
    n_contaminated: int
    n_clean: int
    win_rate_contaminated: float | None
    win_rate_clean: float | None
    difference: float | None
    """Contaminated less clean; None where one of them has no example."""
    difference_ci: stats.Interval | None
    """95 %, Welch."""
    p_value: float | None
    """Two-sided Welch test of no difference."""
    p_adjusted: float | None = None
    """Benjamini-Yekutieli, over all lines."""


@dataclass(frozen=True)
class FillAudit:
    """What a run's ledger says of its fills."""

    counts: tuple[FillCounts, ...]
    effects: tuple[ContaminationEffect, ...]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {name: [dict(vars(each)) for each in getattr(self, name)] for name in ("counts", "effects")}


def audit_fills(folder: RunFolder, audit: InfillAudit, items: Mapping[str, Encoded]) -> FillAudit:
    """Read every fill of a run, and compare the win rates of examples with and without label-indicative ones.

    Args:
        folder: A finished run with an operator that writes fills.
        audit: What survives the blacklist of its data.
        items: Its examples, as its model sees them.

    Raises:
        ConfigError: The run has no such operator, is not finished, or has other inputs than `items`.
    """
    folder.require_complete()
    filling = [name for name in folder.manifest().config.operators if operators.get(name).needs_fills]
    if not filling:
        raise ConfigError(f"{folder.path} holds no infill rows; run it with --operators infill first.")
    readers = [_Reader(each.reference, frozenset(each.surviving), audit.pool) for each in audit.judged]
    groups: dict[str, Hashable] = {}
    for part in folder.parts():
        inputs = {row.example_id: row for row in folder.inputs(part)}
        groups |= {name: group_label(row) for name, row in inputs.items()}
        rows = folder.ledger(part, NO_NAMES, inputs=True, kinds=(Kind.FULL, Kind.RATIONALE, Kind.RANDOM)).records()
        for row in rows:
            if row.key.kind == Kind.FULL:
                _check_same(folder, inputs[row.key.example_id], row, items)
        for row in rows:
            if row.key.operator in filling:
                for reader in readers:
                    reader.read(row, items[row.key.example_id])
    rates = _rates(folder, filling)
    effects = [_effect(cell, lines, reader, groups) for reader in readers for cell, lines in rates.items()]
    return FillAudit(tuple(reader.counts() for reader in readers), tuple(_adjusted(effects)))


def _check_same(folder: RunFolder, example: InputRow, full: LedgerRow, items: Mapping[str, Encoded]) -> None:
    """Refuse examples that are not those of the run."""
    item = items.get(example.example_id)
    if item is None or tuple(item.ids.tolist()) != full.input_ids or item.spans != example.spans:
        raise ConfigError(
            f"example '{example.example_id}' of {folder.path} is another one here: the model's tokenizer, the data or "
            "the prompt differ; give --model, --task, --data, --prompt, --labels and --explain as in the run."
        )


class _Reader:
    """Counts the fills that one reference list calls label-indicative."""

    def __init__(self, reference: ReferenceName, marked: Collection[UnitIds], pool: Collection[UnitIds]) -> None:
        self.reference = reference
        self._marked, self._pool = marked, pool
        self._fills = self._bad_fills = self._rows = self._bad_rows = 0
        self.contaminated: Contaminated = {}

    def read(self, row: LedgerRow, item: Encoded) -> None:
        ids, kept = np.array(row.input_ids), set(row.kept)
        fills = [tuple(ids[item.unit_of == unit].tolist()) for unit in range(item.n_units) if unit not in kept]
        bad = sum(self._is_marked(fill) for fill in fills)
        self._fills += len(fills)
        self._bad_fills += bad
        self._rows += 1
        self._bad_rows += bad > 0
        key = row.key
        if key.kind == Kind.RATIONALE and key.attribution and key.operator and key.direction and key.size is not None:
            place = (key.example_id, key.attribution, key.operator, key.direction, key.size)
            self.contaminated[place] = self.contaminated.get(place, False) or bad > 0  # several draws are several rows

    def _is_marked(self, fill: UnitIds) -> bool:
        if fill in self._pool or len(fill) == 1:
            return fill in self._marked
        # Shorter units were joined.
        parts = (fill[start:end] for start in range(len(fill)) for end in range(start + 1, len(fill) + 1))
        return any(part in self._marked for part in parts)

    def counts(self) -> FillCounts:
        examples = {name for name, *_ in self.contaminated}
        bad = {name for (name, *_), found in self.contaminated.items() if found}
        return FillCounts(
            self.reference, self._fills, self._bad_fills, self._rows, self._bad_rows, len(examples), len(bad)
        )


def _rates(folder: RunFolder, filling: Sequence[str]) -> dict[Configuration, list[ExampleOutcome]]:
    """The lines of every configuration whose operator writes fills."""
    found: dict[Configuration, list[ExampleOutcome]] = {}
    for line in folder.examples():
        if line.error is None and line.operator in filling:
            found.setdefault(line.configuration, []).append(line)
    return found


def _effect(
    cell: Configuration, lines: Sequence[ExampleOutcome], reader: _Reader, groups: Mapping[str, Hashable]
) -> ContaminationEffect:
    sides: dict[bool, list[ExampleOutcome]] = {True: [], False: []}
    for line in lines:
        place = (line.example_id, cell.attribution, cell.operator, cell.direction, len(line.rationale))
        sides[reader.contaminated[place]].append(line)
    bad, clean = (np.array([line.win_rate for line in sides[side]], dtype=np.float64) for side in (True, False))
    found = None
    if bad.size and clean.size:
        of_bad, of_clean = ([groups[line.example_id] for line in sides[side]] for side in (True, False))
        found = stats.unpaired_difference(clean, bad, first_groups=of_clean, second_groups=of_bad)
    return ContaminationEffect(
        reference=reader.reference,
        **cell._asdict(),
        n_contaminated=bad.size,
        n_clean=clean.size,
        win_rate_contaminated=float(bad.mean()) if bad.size else None,
        win_rate_clean=float(clean.mean()) if clean.size else None,
        difference=None if found is None else found.difference,
        difference_ci=None if found is None else found.interval,
        p_value=None if found is None else found.p_value,
    )


def _adjusted(effects: Sequence[ContaminationEffect]) -> Iterator[ContaminationEffect]:
    for each, p_adjusted in zip(effects, stats.adjusted_known([each.p_value for each in effects]), strict=True):
        yield replace(each, p_adjusted=p_adjusted)
