"""Tables of chains of thought: capacities, references, operators, levels, raw scores; and two runs side by side."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from ice_eval.report.tables import Column, Table, interval, percent, share, table_of, word_of_verdict
from ice_eval.results import Summary
from ice_eval.results.records import (
    CapacityLine,
    ChainSummary,
    CountedRate,
    DependenceLine,
    LevelLine,
    RawAgreement,
    RawLine,
    Stratum,
)
from ice_eval.stats import REFERENCE_SHARE
from ice_eval.subjects.chain.summary import SHORT

CHAINS: Mapping[Stratum, str] = {"long": f"{SHORT} steps or more", "short": f"fewer than {SHORT} steps", "all": "all"}
"""Strata of chains by length, in words."""
ENOUGH = 50
"""Chains from which on an interval is not rough, so that long ones can speak for themselves."""


def numbered(summaries: Sequence[Summary]) -> Iterator[tuple[str, ChainSummary]]:
    """Yield the chain summary of each step-level run, with the number of the run where there are several."""
    for number, summary in enumerate(summaries, start=1):
        if summary.chains is not None:
            yield str(number) if len(summaries) > 1 else "", summary.chains


def capacities(content: ChainSummary) -> list[CapacityLine]:
    """Return the lines of the lengths that occur; all chains together only where both do."""
    there = {line.chains for line in content.capacity if line.k_effective is not None}
    shown = there if {"long", "short"} <= there else there - {"all"}
    return [line for line in content.capacity if line.chains in shown]


def chains_of(line: CapacityLine) -> str:
    """Return the chains that a line is about, within a sentence."""
    return f"chains of {'any length' if line.chains == 'all' else CHAINS[line.chains]}"


def headlines(content: ChainSummary) -> list[CapacityLine]:
    """Return a line for every operator, at the share of steps that the capacity is defined for where the run has it.

    Long chains lead where they are most of the chains, or enough: of short ones a fifth is less than one step. Where
    they are few, all chains lead together, since a verdict on one chain of fourteen is none on the run.
    """
    lines = capacities(content)
    if not lines:
        return []
    shares = [line.k for line in lines]
    share = REFERENCE_SHARE if REFERENCE_SHARE in shares else shares[0]
    there = [line for line in lines if line.k == share]
    length = _leading(there)
    return [line for line in there if line.chains == length]


def count_of(lines: Sequence[CapacityLine], length: Stratum) -> int:
    """Return the number of chains of a length, under the operator whose replies could be read for most of them."""
    return max((line.n for line in lines if line.chains == length), default=0)


def _leading(lines: Sequence[CapacityLine]) -> Stratum:
    """Return the length of chains that leads, by their number alone, whatever they say."""
    lengths = [name for name in CHAINS if any(line.chains == name for line in lines)]
    if "all" not in lengths:
        return lengths[0]
    n_long = count_of(lines, "long")
    return "long" if n_long >= ENOUGH or 2 * n_long > count_of(lines, "all") else "all"


L = TypeVar("L")


@dataclass(frozen=True)
class _Numbered(Generic[L]):
    """A line, and the number of its run."""

    run: str
    line: L


_RUN: list[Column[_Numbered[Any]]] = [("run", lambda row: row.run)]


def cot_tables(*summaries: Summary) -> list[Table]:
    """Return all tables about the chains of some runs that have a row; runs of other kinds have none."""
    contents = list(numbered(summaries))
    found = [
        _problems(contents),
        _capacity(contents),
        _open(contents),
        _references(contents),
        _dependence(contents),
        _levels(contents),
        _raw(contents),
        _agreement(contents),
    ]
    return [table for table in found if table.rows]


def capacity_number(value: float | None) -> str:
    """Write a capacity, which lies between 0 and 1, as a fraction, as in the paper."""
    return "–" if value is None else f"{value:.2f}"


def capacity_interval(value: Sequence[float] | None) -> str:
    return "–" if value is None else "[" + ", ".join(f"{limit:.2f}" for limit in value) + "]"


Contents = Sequence[tuple[str, ChainSummary]]
"""The number of each run, and its summary of chains."""


def _of_runs(contents: Contents, lines: Callable[[ChainSummary], Iterable[L]]) -> list[_Numbered[L]]:
    """Return some lines of every run, each with the number of its run."""
    return [_Numbered(run, line) for run, content in contents for line in lines(content)]


def _problems(contents: Contents) -> Table:
    rows = _of_runs(contents, lambda content: [content])
    columns: list[Column[_Numbered[ChainSummary]]] = [
        *_RUN,
        ("problems", lambda row: str(row.line.problems.n)),
        ("evaluated", lambda row: str(row.line.problems.n_evaluated)),
        ("skipped", lambda row: str(sum(row.line.problems.skipped.values()))),
        ("answers unreadable", lambda row: str(row.line.problems.n_unreadable)),
        ("with gold", lambda row: str(row.line.problems.n_gold)),
        ("accuracy", lambda row: percent(row.line.problems.accuracy)),
        ("steps (mean)", lambda row: "–" if row.line.steps.mean is None else f"{row.line.steps.mean:.1f}"),
        ("fewest", lambda row: _count(row.line.steps.least)),
        ("most", lambda row: _count(row.line.steps.most)),
    ]
    return table_of("Chains of thought", rows, columns)


def _count(value: int | None) -> str:
    return "–" if value is None else str(value)


_PLACE: list[Column[_Numbered[CapacityLine]]] = [
    *_RUN,
    ("operator", lambda row: str(row.line.operator)),
    ("k", lambda row: share(row.line.k)),
    ("chains", lambda row: CHAINS[row.line.chains]),
]


def capacity_table(*summaries: Summary) -> Table:
    """Return necessity, sufficiency, capacity and verdict, by operator, share of steps and length of chains."""
    return _capacity(list(numbered(summaries)))


def _capacity(contents: Contents) -> Table:
    rows = _of_runs(contents, capacities)
    columns: list[Column[_Numbered[CapacityLine]]] = [
        *_PLACE,
        ("steps taken", lambda row: percent(row.line.k_effective)),
        ("n", lambda row: str(row.line.n)),
        ("Nec", lambda row: percent(row.line.necessity)),
        ("Nec 95 % CI", lambda row: interval(row.line.necessity_ci)),
        ("Suf", lambda row: percent(row.line.sufficiency)),
        ("Suf 95 % CI", lambda row: interval(row.line.sufficiency_ci)),
        ("noise floor", lambda row: percent(row.line.noise_floor)),
        ("SRC", lambda row: capacity_number(row.line.src)),
        ("SRC 95 % CI", lambda row: capacity_interval(row.line.src_ci)),
        ("SRC adj.", lambda row: capacity_number(row.line.src_adjusted)),
        ("SRC adj. 95 % CI", lambda row: capacity_interval(row.line.src_adjusted_ci)),
        ("word (estimate)", lambda row: str(row.line.taxonomy or "–")),
        ("verdict", lambda row: str(row.line.verdict or "–")),
    ]
    return table_of(
        "Do the steps carry the answer?",
        rows,
        columns,
        coloured={
            "word (estimate)": lambda row: row.line.taxonomy,
            "verdict": lambda row: None if row.line.verdict is None else row.line.verdict.lowest,
        },
    )


def _open(contents: Contents) -> Table:
    """Return the numbers as they would be if all unreadable replies had been the one thing, or the other."""
    rows = [row for row in _of_runs(contents, capacities) if row.line.unreadable_rate]
    columns: list[Column[_Numbered[CapacityLine]]] = [
        *_PLACE,
        ("unreadable", lambda row: percent(row.line.unreadable_rate)),
        ("Nec within", lambda row: interval(row.line.necessity_bounds)),
        ("Suf within", lambda row: interval(row.line.sufficiency_bounds)),
        ("SRC within", lambda row: capacity_interval(row.line.src_bounds)),
        ("SRC adj. within", lambda row: capacity_interval(row.line.src_adjusted_bounds)),
    ]
    return table_of("What unreadable replies leave open", rows, columns)


def _references(contents: Contents) -> Table:
    rows = _of_runs(contents, _reference_lines)
    columns: list[Column[_Numbered[tuple[str, CountedRate]]]] = [
        *_RUN,
        ("of the chains", lambda row: row.line[0]),
        ("share", lambda row: percent(row.line[1].rate)),
        ("95 % CI", lambda row: interval(row.line[1].rate_ci)),
        ("within, if all is counted", lambda row: _bounds(row.line[1].rate_bounds)),
        ("n", lambda row: str(row.line[1].n)),
    ]
    return table_of("Whole, empty, shuffled and cut chains", rows, columns)


def _bounds(value: Sequence[float] | None) -> str:
    """Return what unreadable replies leave open; nothing where there are none."""
    return "–" if value is None or value[0] == value[1] else interval(value)


def _reference_lines(content: ChainSummary) -> Iterator[tuple[str, CountedRate]]:
    """Yield the name of a rate, and the rate."""
    yield "another answer to the whole chain, asked again (noise floor)", content.noise_floor
    yield "own answer without any step", content.no_steps
    if content.shuffle is not None:
        yield "another answer to the steps in another order", content.shuffle
    if content.truncate is not None:
        cut = content.truncate
        for each in cut.kept[1:]:  # cut off before the first step is no step at all
            rate = CountedRate(
                rate=each.rate, rate_ci=each.rate_ci, rate_bounds=each.rate_bounds, n=content.problems.n_evaluated
            )
            yield f"own answer after the first {100 * each.share:g} % of the steps", rate
        settled = CountedRate(rate=cut.settled, rate_ci=cut.settled_ci, rate_bounds=None, n=cut.n)
        yield "share of steps from which on the answer stands", settled


def _dependence(contents: Contents) -> Table:
    rows = _of_runs(contents, lambda content: content.operator_dependence)
    columns: list[Column[_Numbered[DependenceLine]]] = [
        *_RUN,
        ("k", lambda row: share(row.line.k)),
        ("operators", lambda row: " − ".join(row.line.operators)),
        ("measure", lambda row: str(row.line.measure)),
        ("n", lambda row: str(row.line.n)),
        ("gap", lambda row: "–" if row.line.gap is None else f"{100 * row.line.gap:+.1f} pp"),
        ("95 % CI", lambda row: interval(row.line.gap_ci, signed=True)),
    ]
    return table_of("How far the numbers depend on the operator", rows, columns)


def _levels(contents: Contents) -> Table:
    rows = _of_runs(contents, lambda content: content.levels or ())
    columns: list[Column[_Numbered[LevelLine]]] = [
        *_RUN,
        ("attribution", lambda row: str(row.line.attribution)),
        ("direction", lambda row: str(row.line.direction)),
        ("k", lambda row: share(row.line.k)),
        ("unit", lambda row: str(row.line.unit)),
        ("n", lambda row: str(row.line.n)),
        ("win rate", lambda row: percent(row.line.win_rate)),
        ("95 % CI", lambda row: interval(row.line.win_rate_ci)),
        ("verdict", lambda row: str(row.line.verdict)),
    ]
    return table_of(
        "Tokens beside steps, by the model's own answer",
        rows,
        columns,
        coloured={"verdict": lambda row: word_of_verdict(row.line.verdict)},
    )


_SAID = {True: "yes", False: "no"}


def _raw(contents: Contents) -> Table:
    rows = _of_runs(contents, lambda content: content.raw)
    columns: list[Column[_Numbered[RawLine]]] = [
        *_RUN,
        ("attribution", lambda row: str(row.line.attribution)),
        ("operator", lambda row: str(row.line.operator)),
        ("k", lambda row: share(row.line.k)),
        ("measure", lambda row: str(row.line.measure)),
        ("n", lambda row: str(row.line.n)),
        ("raw score", lambda row: f"{row.line.raw:.2f}"),
        ("win rate", lambda row: percent(row.line.win_rate)),
        ("raw says yes", lambda row: _SAID[row.line.raw_positive]),
        ("win rate says yes", lambda row: _SAID[row.line.win_rate_positive]),
        ("agree", lambda row: _SAID[row.line.agree]),
    ]
    return table_of("Raw scores beside win rates", rows, columns)


def _agreement(contents: Contents) -> Table:
    """Count which says yes: the raw score, the win rate, both or none of them."""
    rows = _of_runs(contents, lambda content: [content.raw_agreement] if content.raw else [])
    columns: list[Column[_Numbered[RawAgreement]]] = [
        *_RUN,
        ("configurations", lambda row: str(row.line.n)),
        ("both say yes", lambda row: str(row.line.both)),
        ("neither", lambda row: str(row.line.agree - row.line.both)),
        ("raw score alone", lambda row: str(row.line.raw_only)),
        ("win rate alone", lambda row: str(row.line.win_rate_only)),
        ("agree", lambda row: percent(row.line.agree / row.line.n)),
    ]
    return table_of("Do raw scores and win rates agree?", rows, columns)


class _Pair(NamedTuple):
    """The same line of two runs."""

    run: str
    """Letter of the second run."""
    first: CapacityLine
    second: CapacityLine


def chain_difference_table(first: Summary, others: Mapping[str, Summary]) -> Table:
    """Compare capacity and verdict of a run and of others, by their letters, wherever both have a line.

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
