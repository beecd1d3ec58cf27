"""The chains of two runs side by side."""

from collections.abc import Callable, Mapping
from typing import Any

from ice_eval.report.chains._content import CHAINS, Line, Summary, capacities, of_chains
from ice_eval.report.chains.tables import capacity_interval, capacity_number, word_of_chains
from ice_eval.report.tables import Table, share, table_of


def chain_difference_table(first: Summary, others: Mapping[str, Summary]) -> Table:
    """Capacity and verdict of a run and of others, by their letters, wherever both have a line.

    Each number has the interval of its own run: there is none of a difference.
    """
    lines = [
        {"run": letter, **line}
        for letter, other in others.items()
        if of_chains(first) and of_chains(other)
        for line in _shared(first["cot"], other["cot"])
    ]
    second = next(iter(others)) if len(others) == 1 else "other"
    columns: list[tuple[str, Callable[[Line], str]]] = [
        ("run", lambda line: str(line["run"])),
        ("operator", lambda line: str(line["operator"])),
        ("k", lambda line: share(line["k"])),
        ("chains", lambda line: CHAINS[line["chains"]]),
        ("n", lambda line: f"{line['first']['n']}, {line['second']['n']}"),
    ]
    for name, place in (("A", "first"), (second, "second")):
        columns += _of_run(name, place)
    coloured: dict[str, Callable[[Line], str | None]] = {
        "verdict A": lambda line: word_of_chains(line["first"]["verdict"]),
        f"verdict {second}": lambda line: word_of_chains(line["second"]["verdict"]),
    }
    return table_of("Do the steps carry the answer?", lines, columns, coloured=coloured)


def _of_run(name: str, place: str) -> list[tuple[str, Callable[[Line], str]]]:
    return [
        (f"SRC adj. {name}", lambda line: capacity_number(line[place]["src_adjusted"])),
        (f"95 % CI {name}", lambda line: capacity_interval(line[place]["src_adjusted_ci"])),
        (f"verdict {name}", lambda line: str(line[place]["verdict"] or "–")),
    ]


def _shared(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[dict[str, Any]]:
    known = {_place(line): line for line in capacities(second)}
    return [
        {**dict(zip(("operator", "k", "chains"), _place(line), strict=True)), "first": line, "second": known[place]}
        for line in capacities(first)
        if (place := _place(line)) in known
    ]


def _place(line: Line) -> tuple[Any, ...]:
    return tuple(line[name] for name in ("operator", "k", "chains"))
