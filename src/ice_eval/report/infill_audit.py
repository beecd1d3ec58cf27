"""What an audit of infill found, as tables."""

import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import get_args

from ice_eval.analysis import ContaminationEffect, FillAudit, FillCounts, InfillAudit, Judged, Piece
from ice_eval.analysis.infill_audit import LOOSE_COUNT, LOOSE_Z, N_SHUFFLES, PieceKind
from ice_eval.report.tables import EMPTY, Column, Table, interval, naming, p_value, percent, points, table_of

_SHOWN = 8


def audit_tables(audit: InfillAudit, fills: FillAudit | None) -> list[Table]:
    """What survives the blacklist; of a run also what infill wrote, and whether it mattered."""
    found = [_blacklist_table(audit)]
    if fills is not None:
        found += [_counts_table(audit, fills.counts), _effects_table(fills.effects)]
    return found


def audit_notes(audit: InfillAudit, fills: FillAudit | None) -> list[str]:
    """What the numbers rest on."""
    listed = f" and the list '{audit.word_list}'" if audit.word_list else ""
    found = [
        f"{audit.n} examples give {audit.units:,} units to the pool; {audit.units_blocked:,} of them "
        f"({percent(audit.units_blocked / audit.units)}) are blocked. No model was asked.",
        f"words: label words, the task's lexicon{listed}, {audit.n_words} words altogether; units that stand in them "
        "at least every other time. The blacklist is the task's own.",
    ]
    if any(each.reference == "held out" for each in audit.judged):
        found.append(
            f"held out: tokens with |z| > {LOOSE_Z} and count ≥ {LOOSE_COUNT} in one half of the data, against the "
            f"blacklist of the other half. By chance: the mean of {N_SHUFFLES} shuffles of the gold labels; p: share "
            "of shuffles with a rate as high."
        )
    found += [
        f"{each.reference}, blocked, the most frequent: {_named(each.blocked.values())}."
        for each in audit.judged
        if each.blocked
    ]
    if fills is not None:
        found.append(
            "An example is contaminated where a fill around its rationale is among the surviving units. Long texts "
            "have more fills, so contaminated examples are longer ones too."
        )
    return [*found, *audit.notes]


def _blacklist_table(audit: InfillAudit) -> Table:
    columns: list[tuple[str, Callable[[Judged], str]]] = [
        ("task", lambda each: audit.task),
        ("reference", lambda each: each.reference),
        ("indicative", lambda each: f"{each.considered:,}"),
        ("blocked", lambda each: _counted(each.blocked.values())),
        ("surviving", lambda each: _counted(each.surviving.values())),
        ("by chance", lambda each: EMPTY if each.surviving_by_chance is None else f"{each.surviving_by_chance:.0f}"),
        ("est. rate", lambda each: _rate(each.rate)),
        ("rate by chance", lambda each: _rate(each.rate_by_chance)),
        ("p", lambda each: p_value(each.p_value)),
        ("per example", lambda each: percent(each.rate_per_example)),
        ("most frequent of these", lambda each: _named(each.surviving.values())),
    ]
    rows = tuple(tuple(cell(each) for _, cell in columns) for each in audit.judged)
    return Table("What survives the blacklist of infill", tuple(name for name, _ in columns), rows)


def _counted(pieces: Collection[Piece]) -> str:
    kinds = [(sum(piece.kind == kind for piece in pieces), kind) for kind in get_args(PieceKind)]
    named = ", ".join(f"{n} {kind}{'' if n == 1 else 'es' if kind == 'prefix' else 's'}" for n, kind in kinds if n)
    return f"{len(pieces):,} ({named})" if named else "0"


def _named(pieces: Iterable[Piece]) -> str:
    shown = itertools.islice(pieces, _SHOWN)
    return ", ".join(f"{piece.text or '␣'} ({piece.count})" for piece in shown) or EMPTY


def _rate(value: float | None) -> str:
    return EMPTY if value is None else f"{100 * value:.2f} %"


def _counts_table(audit: InfillAudit, counts: Sequence[FillCounts]) -> Table:
    estimated = {each.reference: each.rate for each in audit.judged}
    rows = tuple(
        (
            each.reference,
            _rate(estimated[each.reference]),
            _of(each.contaminated_fills, each.fills),
            _of(each.contaminated_rows, each.rows),
            _of(each.contaminated_examples, each.examples),
        )
        for each in counts
    )
    return Table("What infill wrote in this run", ("reference", "est. rate", "fills", "rows", "examples"), rows)


def _of(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} ({_rate(part / whole)})" if whole else EMPTY


def _effects_table(effects: Sequence[ContaminationEffect]) -> Table:
    columns: list[Column[ContaminationEffect]] = [
        *naming("attribution", "operator", "null", "direction", "k", "reference", get=getattr),
        ("contaminated", lambda line: f"{percent(line.win_rate_contaminated)} ({line.n_contaminated})"),
        ("clean", lambda line: f"{percent(line.win_rate_clean)} ({line.n_clean})"),
        ("difference", lambda line: points(line.difference)),
        ("95 % CI", lambda line: interval(line.difference_ci, signed=True)),
        ("p", lambda line: p_value(line.p_value)),
        ("p adj.", lambda line: p_value(line.p_adjusted)),
    ]
    return table_of("Win rates where fills tell the label, and where none does", effects, columns)
