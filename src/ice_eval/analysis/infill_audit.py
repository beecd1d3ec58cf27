"""Audit of infill: label-indicative units that pass its blacklist, and those in the fills of a finished run."""

import importlib.resources
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any, Literal, NamedTuple

import numpy as np

from ice_eval import stats
from ice_eval.encoding import Codec, blacklist_of, label_words
from ice_eval.errors import ConfigError, DataError
from ice_eval.operators import Blacklist, PooledUnits, TokenCounts, draws_fills
from ice_eval.rationales import set_size
from ice_eval.records import Encoded, Ids, Kind
from ice_eval.results import Configuration, ExampleOutcome, LedgerRow, RunFolder
from ice_eval.results.folder import FinishedRun
from ice_eval.results.ledger import NO_NAMES
from ice_eval.seeding import rng_for
from ice_eval.tasks import Task
from ice_eval.words import word_spans

LOOSE_COUNT, LOOSE_Z = 3, 1.645
"""Limits for a label-indicative token of the held-out half, looser than those of the blacklist."""
N_SHUFFLES = 200
_K = 0.2
"""Share of units that the rationale of an example keeps; all others are filled."""

UnitIds = tuple[int, ...]
PieceKind = Literal["full word", "prefix", "sub-word"]
ReferenceName = Literal["words", "held out"]
_Pool = Sequence[PooledUnits]
_Pieces = Mapping[UnitIds, "AuditedUnit"]
_Found = tuple[Collection[UnitIds], Collection[UnitIds]]
"""Label-indicative units, and those among them that infill may write."""


@dataclass(frozen=True)
class AuditedUnit:
    """A unit as used in the texts."""

    text: str
    kind: PieceKind
    """Most frequent use: a word, the beginning of one, or another piece of one."""
    count: int


@dataclass(frozen=True, kw_only=True)
class Judged:
    """Result of one reference list for a blacklist."""

    reference: ReferenceName
    blocked: Mapping[UnitIds, AuditedUnit] = field(repr=False)
    """Label-indicative units by that list that infill cannot write, the most frequent first."""
    surviving: Mapping[UnitIds, AuditedUnit] = field(repr=False)
    """Label-indicative units that infill may write."""
    surviving_by_chance: float | None = None
    """Mean number over shuffled labels."""
    rate: float
    """Probability that a unit drawn from the pool is one of the surviving."""
    rate_by_chance: float | None = None
    p_value: float | None = None
    """Share of shuffles, the data included, with a rate at least as high."""
    rate_per_example: float
    """Probability that an example has such a fill, with a rationale of a fifth of its units."""

    @property
    def considered(self) -> int:
        return len(self.blocked) + len(self.surviving)

    def as_dict(self) -> dict[str, Any]:
        pieces = {name: [dict(vars(piece)) for piece in vars(self)[name].values()] for name in ("blocked", "surviving")}
        return {**vars(self), "considered": self.considered, **pieces}


@dataclass(frozen=True)
class InfillAudit:
    """A blacklist, and its results by each reference list."""

    model: str
    task: str
    n: int
    """Number of examples that fill the pool."""
    units: int
    units_blocked: int
    n_words: int
    word_list: str | None
    """Name of the list beside label words and lexicon."""
    judged: tuple[Judged, ...]
    pool: frozenset[UnitIds] = field(repr=False)
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        plain = {name: value for name, value in vars(self).items() if name != "pool"}
        return {**plain, "judged": [each.as_dict() for each in self.judged], "notes": list(self.notes)}


def audit_infill(
    codec: Codec,
    task: Task,
    items: Sequence[tuple[Encoded, int | None]],
    *,
    model: str,
    words: Collection[str] | None = None,
    label_words_only: bool = False,
    seed: int = 0,
) -> InfillAudit:
    """Find label-indicative units that pass the blacklist, by two reference lists; needs no model.

    *words*: label words, the task's lexicon, and a hand-written list for the labels (or `words`). Units that are such a
    word, or part of such words at least every other time, are label-indicative. The blacklist is the task's own.
    *held out*: tokens that the gold labels of one half of the data use differently. The rule is looser than that of the
    blacklist, which is built from the other half; each half judges once. Most of these tokens may be noise: shuffled
    labels estimate their number. With `label_words_only` the blacklist has label words alone (the paper's package).
    """

    def blacklist(part: _Pool) -> Blacklist:
        return blacklist_of(codec, task, part, label_words_only=label_words_only)

    entries = [PooledUnits.of(item, gold) for item, gold in items]
    n_units = sum(len(entry.units) for entry in entries)
    if not n_units:
        raise DataError("the examples have no units, so there is nothing to fill with.")
    free = _free(entries, blacklist(entries))
    # Units that the rationale of an example does not keep are filled.
    removed = np.array([item.n_units - set_size(item.n_units, _K) for item, _ in items if item.n_units])
    listed, name = (frozenset(word.casefold() for word in words), "given") if words is not None else giveaways(task)
    known = listed | {word.casefold() for word in task.lexicon}
    for text in label_words(task):  # 'sci/tech' is two words
        known |= {text[start:end] for start, end in word_spans(text) if text[start:end].isalnum()}
    pieces, inside = _pieces([item for item, _ in items], known)
    surviving = inside & free.keys()
    rate = sum(free[ids] for ids in surviving) / max(sum(free.values()), 1)
    judged = [_judged("words", pieces, (inside, surviving), rate, removed)]
    notes = [] if name else ["No list of words is known for these labels: only label words and the lexicon are used."]
    if len({entry.gold for entry in entries if entry.gold is not None}) > 1:
        judged.append(_held_out(entries, pieces, blacklist, removed, seed))
    else:
        notes.append("The data have no gold labels, or only one: nothing can be held out.")
    return InfillAudit(
        model=model,
        task=task.name,
        n=len(entries),
        units=n_units,
        units_blocked=n_units - sum(free.values()),
        n_words=len(known),
        word_list=name,
        judged=tuple(judged),
        pool=frozenset(free),
        notes=tuple(notes),
    )


def giveaways(task: Task) -> tuple[frozenset[str], str | None]:
    """Return words that a person would read as a sign of one of the task's labels, and the name of their list."""
    asked = {label.casefold() for label in task.labels}
    folder = importlib.resources.files("ice_eval.analysis") / "giveaways"
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        first, _, words = file.read_text(encoding="utf-8").partition("\n")
        if set(first.removeprefix("# labels: ").split(", ")) == asked:
            return frozenset(words.split()), file.name.removesuffix(".txt")
    return frozenset(), None


def _pieces(items: Sequence[Encoded], words: Collection[str]) -> tuple[dict[UnitIds, AuditedUnit], set[UnitIds]]:
    """Return every unit of the texts, the most frequent first, and those in one of the words every other time."""
    texts: dict[UnitIds, str] = {}
    kinds: dict[UnitIds, Counter[PieceKind]] = defaultdict(Counter)
    balance: Counter[UnitIds] = Counter()
    for item in items:
        fields = {**item.fields, **item.whole}
        spans = {name: word_spans(text) for name, text in fields.items()}
        for token_ids, span, text in zip(item.unit_ids(), item.spans, item.texts, strict=True):
            ids, own = tuple(token_ids.tolist()), spans[span.field]
            start, end = span.start + len(text) - len(text.lstrip()), span.end - len(text) + len(text.rstrip())
            # The word that contains the unit or begins with it.
            place = bisect_right(own, (start, len(fields[span.field]))) - 1
            first, last = own[place] if place >= 0 else (start, end)
            texts.setdefault(ids, text.strip())
            kinds[ids]["sub-word" if start > first else "prefix" if end < last else "full word"] += 1
            balance[ids] += 1 if fields[span.field][first:last].casefold() in words else -1
    ranked = sorted(kinds, key=lambda ids: (-kinds[ids].total(), texts[ids]))
    found = {ids: AuditedUnit(texts[ids], kinds[ids].most_common(1)[0][0], kinds[ids].total()) for ids in ranked}
    return found, {ids for ids, value in balance.items() if value >= 0}


def _free(entries: _Pool, blacklist: Blacklist) -> dict[UnitIds, int]:
    """Return the units that infill may write, and their counts in the pool."""
    texts = {ids: text for entry in entries for ids, text in entry.units}
    counts = Counter(ids for entry in entries for ids, _ in entry.units)
    return {ids: count for ids, count in counts.items() if not blacklist.blocks(texts[ids], ids)}


def _judged(
    reference: ReferenceName, pieces: _Pieces, found: _Found, rate: float, removed: Ids, **by_chance: float
) -> Judged:
    considered, surviving = found
    return Judged(
        reference=reference,
        blocked={ids: piece for ids, piece in pieces.items() if ids in considered and ids not in surviving},
        surviving={ids: piece for ids, piece in pieces.items() if ids in surviving},
        rate=rate,
        rate_per_example=float(np.mean(1 - (1 - rate) ** removed)),
        **by_chance,
    )


class _Half(NamedTuple):
    """The judging half of the data, and its units that pass the blacklist of the other half."""

    counts: TokenCounts
    units: Collection[UnitIds]
    free: Mapping[UnitIds, int]

    def indicative(self, golds: Ids) -> set[UnitIds]:
        """Return the units with a token that these labels use differently."""
        tokens = self.counts.indicative(golds, min_count=LOOSE_COUNT, z_limit=LOOSE_Z)
        return {ids for ids in self.units if not tokens.isdisjoint(ids)}


def _held_out(
    entries: _Pool, pieces: _Pieces, blacklist: Callable[[_Pool], Blacklist], removed: Ids, seed: int
) -> Judged:
    # Two halves with the same share of every label, however the data are sorted.
    first, second, seen = list[PooledUnits](), list[PooledUnits](), Counter[int | None]()
    for entry in entries:
        (second if seen[entry.gold] % 2 else first).append(entry)
        seen[entry.gold] += 1
    halves = [
        _Half(TokenCounts.of(judges), {ids for entry in judges for ids, _ in entry.units}, _free(judges, blacklist(by)))
        for by, judges in ((first, second), (second, first))
    ]
    golds = [half.counts.golds for half in halves]
    considered = {ids for half, own in zip(halves, golds, strict=True) for ids in half.indicative(own)}
    surviving, rate = _surviving(halves, golds)
    by_chance = []
    for draw in range(N_SHUFFLES):
        rng = rng_for(seed, "infill-audit", str(draw))
        units, share = _surviving(halves, [rng.permutation(own) for own in golds])
        by_chance.append((len(units), share))
    counts, rates = np.array(by_chance).T
    means = {"surviving_by_chance": float(counts.mean()), "rate_by_chance": float(rates.mean())}
    p_value = stats.upper_pvalue(rate, rates)
    return _judged("held out", pieces, (considered, surviving), rate, removed, **means, p_value=p_value)


def _surviving(halves: Sequence[_Half], golds: Sequence[Ids]) -> tuple[set[UnitIds], float]:
    """Return units that one half calls indicative and the other's blacklist does not block, and their pool share."""
    found = [half.indicative(own) & half.free.keys() for half, own in zip(halves, golds, strict=True)]
    drawn = sum(half.free[ids] for half, own in zip(halves, found, strict=True) for ids in own)
    return set[UnitIds]().union(*found), drawn / max(sum(sum(half.free.values()) for half in halves), 1)


# --- fills of a finished run --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FillCounts:
    """Numbers of fills of a run that are among the surviving units of a reference list."""

    reference: ReferenceName
    fills: int
    contaminated_fills: int
    rows: int
    """Rows with fills: rationales and random sets."""
    contaminated_rows: int
    examples: int
    contaminated_examples: int
    """Examples with such a fill around any rationale."""


@dataclass(frozen=True, kw_only=True)
class ContaminationEffect:
    """Win rates of one configuration with and without label-indicative fills around the rationale."""

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
    difference: float | None = None
    """Contaminated minus clean; None where one of them has no example."""
    difference_ci: stats.Interval | None = None
    """95 % interval by Welch."""
    p_value: float | None = None
    """Two-sided Welch test of no difference."""
    p_adjusted: float | None = None
    """Adjusted over all lines (Holm)."""


@dataclass(frozen=True)
class FillAudit:
    counts: tuple[FillCounts, ...]
    effects: tuple[ContaminationEffect, ...]

    def as_dict(self) -> dict[str, Any]:
        return {name: [dict(vars(each)) for each in getattr(self, name)] for name in ("counts", "effects")}


def audit_fills(folder: RunFolder, audit: InfillAudit, items: Mapping[str, Encoded]) -> FillAudit:
    """Count the fills of a run, and compare win rates of examples with and without label-indicative ones.

    Raises:
        ConfigError: The run has no operator that writes fills, is not finished, or has other inputs than `items`.
    """
    run = FinishedRun(folder=folder)
    folder.require_complete()
    filling = [name for name in run.config.operators if draws_fills(name)]
    if not filling:
        raise ConfigError(f"{folder.path} holds no infill rows; run it with --operators infill first.")
    readers = [_FillReader(each.reference, frozenset(each.surviving), audit.pool) for each in audit.judged]
    for part in folder.parts():
        rows = folder.ledger(part, NO_NAMES, inputs=True, kinds=(Kind.FULL, Kind.RATIONALE, Kind.RANDOM)).records()
        for row in (row for row in rows if row.key.kind == Kind.FULL):
            name, item = row.key.example_id, items.get(row.key.example_id)
            if item is None or tuple(item.ids.tolist()) != row.input_ids or item.spans != run.all_inputs[name].spans:
                raise ConfigError(
                    f"example '{name}' differs from that of {folder.path}: the model's tokenizer, the data or the "
                    "prompt differ; give --model, --task, --data, --prompt, --labels and --explain as in the run."
                )
        for row in rows:
            for reader in readers if row.key.operator in filling else ():
                reader.read(row, items[row.key.example_id])
    outcomes: dict[Configuration, list[ExampleOutcome]] = defaultdict(list)
    for line in run.outcomes():
        if line.operator in filling:
            outcomes[line.configuration].append(line)
    effects = [_effect(cell, lines, reader, run) for reader in readers for cell, lines in outcomes.items()]
    p_adjusted = stats.adjusted_known([each.p_value for each in effects])
    return FillAudit(
        tuple(reader.counts() for reader in readers),
        tuple(replace(each, p_adjusted=p) for each, p in zip(effects, p_adjusted, strict=True)),
    )


class _FillReader:
    """Counts the fills that one reference list calls label-indicative."""

    def __init__(self, reference: ReferenceName, marked: Collection[UnitIds], pool: Collection[UnitIds]) -> None:
        self.reference, self._marked, self._pool = reference, marked, pool
        self._counts = Counter(fills=0, contaminated_fills=0, rows=0, contaminated_rows=0)
        self._around: dict[tuple[str | int | None, ...], list[bool]] = {}
        """True if a unit written around a rationale is indicative, for each of its draws of fills."""

    def read(self, row: LedgerRow, item: Encoded) -> None:
        ids, kept, key = np.array(row.input_ids), set(row.kept), row.key
        fills = [tuple(ids[item.unit_of == unit].tolist()) for unit in range(item.n_units) if unit not in kept]
        bad = sum(self._is_marked(fill) for fill in fills)
        self._counts.update(fills=len(fills), contaminated_fills=bad, rows=1, contaminated_rows=int(bad > 0))
        if key.kind == Kind.RATIONALE:
            place = (key.example_id, key.attribution, key.operator, key.direction, key.size)
            self._around.setdefault(place, []).append(bad > 0)

    def is_contaminated(self, *place: str | int | None) -> bool:
        """Return True if at least half of the draws of an example, attribution, operator, direction and size are."""
        draws = self._around[place]
        return 2 * sum(draws) >= len(draws)

    def _is_marked(self, fill: UnitIds) -> bool:
        if fill in self._pool or len(fill) == 1:
            return fill in self._marked
        # Shorter units were joined.
        parts = (fill[start:end] for start in range(len(fill)) for end in range(start + 1, len(fill) + 1))
        return any(part in self._marked for part in parts)

    def counts(self) -> FillCounts:
        examples = {name for name, *_ in self._around}
        bad = {name for name, *place in self._around if self.is_contaminated(name, *place)}
        return FillCounts(self.reference, **self._counts, examples=len(examples), contaminated_examples=len(bad))


def _effect(
    cell: Configuration, lines: Sequence[ExampleOutcome], reader: _FillReader, run: FinishedRun
) -> ContaminationEffect:
    place = (cell.attribution, cell.operator, cell.direction)
    told = np.array([reader.is_contaminated(line.example_id, *place, len(line.rationale)) for line in lines])
    rates, names = np.array([line.win_rate for line in lines]), [line.example_id for line in lines]
    bad, clean = rates[told], rates[~told]
    difference: dict[str, Any] = {}
    if bad.size and clean.size:
        of_clean, of_bad = (run.groups_of(list(compress(names, side))) for side in (~told, told))
        found = stats.unpaired_difference(clean, bad, first_groups=of_clean, second_groups=of_bad)
        difference = {"difference": found.difference, "difference_ci": found.interval, "p_value": found.p_value}
    return ContaminationEffect(
        reference=reader.reference,
        **cell._asdict(),
        n_contaminated=bad.size,
        n_clean=clean.size,
        win_rate_contaminated=float(bad.mean()) if bad.size else None,
        win_rate_clean=float(clean.mean()) if clean.size else None,
        **difference,
    )
