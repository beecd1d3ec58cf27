"""The chains of two runs side by side."""

from collections.abc import Mapping
from typing import NamedTuple

from ice_eval.report.chains._content import CHAINS, capacities
from ice_eval.results import Summary
from ice_eval.results.records import CapacityLine, ChainSummary
from ice_eval.table import Column, Table, table_of


class _Pair(NamedTuple):
    """The same line of two runs."""

    run: str
    """Letter of the second run."""
    first: CapacityLine
    second: CapacityLine


def chain_difference_table(first: Summary, others: Mapping[str, Summary]) -> Table:
    """Capacity and verdict of a run and of others, by their letters, wherever both have a line.

    Each number has the interval of its own run: there is none of a difference.
    """
    pairs = [
        pair
        for letter, other in others.items()
        if first.chains is not None and other.chains is not None
        for pair in _shared(letter, first.chains, other.chains)
    ]
    second = next(iter(others)) if len(others) == 1 else "other"
    columns = (
        Column("run", "run", "text"),
        Column("first.operator", "operator", "text"),
        Column("first.k", "k", "share"),
        Column("first.chains", "chains", "text", get=lambda pair: CHAINS[pair.first.chains]),
        Column("n", "n", "text", get=lambda pair: f"{pair.first.n}, {pair.second.n}"),
        *_of_run("A", "first"),
        *_of_run(second, "second"),
    )
    return table_of("Do the steps carry the answer?", pairs, columns)


def _of_run(name: str, which: str) -> tuple[Column, ...]:
    def word(pair: _Pair) -> str | None:
        verdict = getattr(pair, which).verdict
        return None if verdict is None else str(verdict.lowest)

    return (
        Column(f"{which}.src_adjusted", f"SRC adj. {name}", "fraction"),
        Column(f"{which}.src_adjusted_ci", f"95 % CI {name}", "fraction interval"),
        Column(f"{which}.verdict", f"verdict {name}", "text", word=word),
    )


def _shared(letter: str, first: ChainSummary, second: ChainSummary) -> list[_Pair]:
    known = {(line.operator, line.k, line.chains): line for line in capacities(second)}
    return [
        _Pair(letter, line, known[place])
        for line in capacities(first)
        if (place := (line.operator, line.k, line.chains)) in known
    ]
