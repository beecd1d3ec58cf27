"""What changed between runs, as tables: the first run is A, the others are B, C and so on."""

from collections.abc import Callable, Sequence
from string import ascii_uppercase

from ice_eval.nulls import SIZE
from ice_eval.report.chains import chain_difference_table
from ice_eval.report.notes import flag_note
from ice_eval.report.tables import (
    EMPTY,
    Column,
    Table,
    interval,
    naming,
    p_value,
    percent,
    points,
    share,
    table_of,
    word_of_rate,
    word_of_verdict,
)
from ice_eval.results import Configuration, RunDifference, WinRateDifference
from ice_eval.results.summary import SMALL_N

_LONGEST = 60
_Row = tuple[str, WinRateDifference]
"""The letter of a run, and one of its configurations."""


def run_letters(n: int) -> list[str]:
    """What `n` runs are called in tables: A, B, C and so on."""
    letters = list(ascii_uppercase)
    return [letters[i] if i < len(letters) else f"R{i + 1}" for i in range(n)]


def difference_tables(found: Sequence[RunDifference]) -> list[Table]:
    """All tables of some comparisons with the same first run that have a row."""
    letters = run_letters(len(found) + 1)[1:]
    others = {letter: each.second.summary() for letter, each in zip(letters, found, strict=True)}
    chains = chain_difference_table(found[0].first.summary(), others)
    return [table for table in (settings_table(found), chains, difference_table(found)) if table.rows]


def settings_table(found: Sequence[RunDifference]) -> Table:
    """The fields that runs disagree about, and their values."""
    letters = run_letters(len(found) + 1)
    fields = dict.fromkeys(setting.field for each in found for setting in each.settings)
    rows = []
    for field in fields:
        values = [next((s for s in each.settings if s.field == field), None) for each in found]
        first = next(setting.first for setting in values if setting is not None)
        # A run that does not appear under a field agrees with the first about it.
        others = (first if setting is None else setting.second for setting in values)
        rows.append((field, *map(_value, (first, *others))))
    return Table("Settings that differ", ("field", *letters), tuple(rows))


def difference_table(found: Sequence[RunDifference]) -> Table:
    """Win rates of every configuration that runs share, and how sure their difference is.

    Columns that say the same in every row are left out. P-values are adjusted over all rows of the table.
    """
    letters = run_letters(len(found) + 1)[1:]
    rows = [(letter, line) for letter, each in zip(letters, found, strict=True) for line in each.configurations]
    first, second = "A", "B" if len(found) == 1 else "other"
    columns: list[Column[_Row]] = [
        ("run", lambda row: row[0]),
        *naming("attribution", "null", "operator", "direction", "k", get=lambda row, name: getattr(row[1], name)),
        ("n", lambda row: _n(row[1])),
        (first, lambda row: percent(row[1].win_rate_first)),
        (second, lambda row: percent(row[1].win_rate_second)),
        (f"{second} − {first}", lambda row: points(row[1].difference)),
        ("95 % CI", lambda row: interval(row[1].difference_ci, signed=True)),
        ("p", lambda row: p_value(row[1].p_value)),
        ("p adj.", lambda row: p_value(row[1].p_adjusted)),
        ("verdict", lambda row: _verdicts(row[1])),
    ]
    coloured: dict[str, Callable[[_Row], str | None]] = {
        first: lambda row: word_of_rate(row[1].win_rate_first, row[1].verdict_first),
        second: lambda row: word_of_rate(row[1].win_rate_second, row[1].verdict_second),
        "verdict": lambda row: word_of_verdict(row[1].verdict_second),
    }
    return table_of("Win rates", rows, columns, coloured=coloured)


def difference_notes(found: Sequence[RunDifference]) -> list[str]:
    """What a reader must know beside the numbers."""
    letters = run_letters(len(found) + 1)
    notes = [f"A is {found[0].first.path}."]
    for letter, each in zip(letters[1:], found, strict=True):
        notes.append(f"{letter} is {each.second.path}. {_examples(each, letter)}")
        if not each.settings:
            notes.append(f"A and {letter} have the same settings.")
        for cells, name in ((each.only_first, "A"), (each.only_second, letter)):
            if cells:
                notes.append(f"Only {name} has, for {_named(cells)}.")
    lines = [line for each in found for line in each.configurations]
    if any(min(line.n_first, line.n_second) < SMALL_N for line in lines):
        notes.append(flag_note("small_n"))
    return notes


def _examples(each: RunDifference, letter: str) -> str:
    same = "have the same id as in A" if each.by_id else "are the same as in A"
    shared = f"{each.n_shared} examples {same} ({each.n_first} there, {each.n_second} here)"
    which = "of them" if each.by_id else "with the same id"
    texts = f"; {each.n_other_text} {which} have another text" if each.n_other_text else ""
    kinds = {line.paired for line in each.configurations}
    how = {
        frozenset({True}): " Differences are paired: win rates over the examples that both runs evaluated.",
        frozenset({False}): " Differences are unpaired: all examples of each run, which are taken to be independent.",
        frozenset({True, False}): " Rows with one n are paired, those with two are not.",
    }.get(frozenset(kinds), "")
    return f"{shared}{texts}.{how}"


def _n(line: WinRateDifference) -> str:
    return str(line.n_first) if line.paired else f"{line.n_first}, {line.n_second}"


def _verdicts(line: WinRateDifference) -> str:
    first, second = (str(verdict or EMPTY) for verdict in (line.verdict_first, line.verdict_second))
    return f"{second} (both)" if first == second else f"{first} → {second}"


def _named(cells: Sequence[Configuration]) -> str:
    """`sufficiency, k = 0.2: occlusion under delete, infill` for configurations that one run alone has."""
    by_place: dict[str, dict[str, list[str]]] = {}
    for cell in cells:
        null = "" if cell.null == SIZE else f", null {cell.null}"
        by_attribution = by_place.setdefault(f"{cell.direction}, k = {share(cell.k)}{null}", {})
        by_attribution.setdefault(cell.attribution, []).append(cell.operator)
    return "; ".join(
        f"{place}: " + ", ".join(f"{name} under {'/'.join(operators)}" for name, operators in by_attribution.items())
        for place, by_attribution in by_place.items()
    )


def _value(value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else EMPTY if value is None else str(value)
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
