"""The chains of two runs side by side."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ice_eval.report.chains._content import CHAINS, capacities
from ice_eval.report.chains.tables import capacity_interval, capacity_number
from ice_eval.report.tables import Column, Table, share, table_of
from ice_eval.results import Summary
from ice_eval.results.records import CapacityLine, ChainSummary


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
    columns: list[Column[_Pair]] = [
        ("run", lambda pair: pair.run),
        ("operator", lambda pair: pair.first.operator),
        ("k", lambda pair: share(pair.first.k)),
        ("chains", lambda pair: CHAINS[pair.first.chains]),
        ("n", lambda pair: f"{pair.first.n}, {pair.second.n}"),
        *_of_run("A", lambda pair: pair.first),
        *_of_run(second, lambda pair: pair.second),
    ]
    coloured: dict[str, Callable[[_Pair], str | None]] = {
        "verdict A": lambda pair: None if pair.first.verdict is None else pair.first.verdict.lowest,
        f"verdict {second}": lambda pair: None if pair.second.verdict is None else pair.second.verdict.lowest,
    }
    return table_of("Do the steps carry the answer?", pairs, columns, coloured=coloured)


def _of_run(name: str, line_of: Callable[[_Pair], CapacityLine]) -> list[Column[_Pair]]:
    return [
        (f"SRC adj. {name}", lambda pair: capacity_number(line_of(pair).src_adjusted)),
        (f"95 % CI {name}", lambda pair: capacity_interval(line_of(pair).src_adjusted_ci)),
        (f"verdict {name}", lambda pair: str(line_of(pair).verdict or "–")),
    ]


def _shared(letter: str, first: ChainSummary, second: ChainSummary) -> list[_Pair]:
    known = {(line.operator, line.k, line.chains): line for line in capacities(second)}
    return [
        _Pair(letter, line, known[place])
        for line in capacities(first)
        if (place := (line.operator, line.k, line.chains)) in known
    ]
