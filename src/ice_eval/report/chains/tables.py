"""Tables of chains of thought: capacities, references, operators, levels, raw scores; and two runs side by side."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ice_eval.report.colours import word_of_verdict
from ice_eval.results import Summary
from ice_eval.results.chains import SHORT
from ice_eval.results.records import CapacityLine, ChainSummary, CountedRate, Stratum
from ice_eval.stats import REFERENCE_SHARE
from ice_eval.table import Column, Table, naming, table_of

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


def cot_tables(*summaries: Summary) -> list[Table]:
    """All tables about the chains of some runs that have a row; runs of other kinds have none."""
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


Contents = Sequence[tuple[str, ChainSummary]]
"""The number of each run, and its summary of chains."""


def _table(
    title: str, contents: Contents, lines: Callable[[ChainSummary], Iterable[Any]], columns: Sequence[Column]
) -> Table:
    """Some lines of every run as a table, each with the number of its run."""
    found = [(run, line) for run, content in contents for line in lines(content)]
    return table_of(title, [line for _, line in found], columns, runs=[run for run, _ in found])


def _problems(contents: Contents) -> Table:
    columns = (
        Column("problems.n", "problems", "text"),
        Column("problems.n_evaluated", "evaluated", "text"),
        Column("problems.skipped", "skipped", "text", get=lambda content: sum(content.problems.skipped.values())),
        Column("problems.n_unreadable", "answers unreadable", "text"),
        Column("problems.n_gold", "with gold", "text"),
        Column("problems.accuracy", "accuracy", "percent"),
        Column("steps.mean", "steps (mean)", "decimal"),
        Column("steps.least", "fewest", "text"),
        Column("steps.most", "most", "text"),
    )
    return _table("Chains of thought", contents, lambda content: [content], columns)


_PLACE = (*naming("operator", "k"), Column("chains", "chains", "text", get=lambda line: CHAINS[line.chains]))


def capacity_table(*summaries: Summary) -> Table:
    """Necessity, sufficiency, capacity and verdict, by operator, share of steps and length of chains."""
    return _capacity(list(numbered(summaries)))


def _capacity(contents: Contents) -> Table:
    columns = (
        *_PLACE,
        Column("k_effective", "steps taken", "percent"),
        *naming("n"),
        Column("necessity", "Nec", "percent"),
        Column("necessity_ci", "Nec 95 % CI", "percent interval"),
        Column("sufficiency", "Suf", "percent"),
        Column("sufficiency_ci", "Suf 95 % CI", "percent interval"),
        Column("noise_floor", "noise floor", "percent"),
        Column("src", "SRC", "fraction"),
        Column("src_ci", "SRC 95 % CI", "fraction interval"),
        Column("src_adjusted", "SRC adj.", "fraction"),
        Column("src_adjusted_ci", "SRC adj. 95 % CI", "fraction interval"),
        Column("taxonomy", "word (estimate)", "text", word=lambda line: line.taxonomy),
        Column("verdict", "verdict", "text", word=lambda line: line.verdict and line.verdict.lowest),
    )
    return _table("Do the steps carry the answer?", contents, capacities, columns)


def _open(contents: Contents) -> Table:
    """Return the numbers as they would be if all unreadable replies had been the one thing, or the other."""
    columns = (
        *_PLACE,
        Column("unreadable_rate", "unreadable", "percent"),
        Column("necessity_bounds", "Nec within", "percent interval"),
        Column("sufficiency_bounds", "Suf within", "percent interval"),
        Column("src_bounds", "SRC within", "fraction interval"),
        Column("src_adjusted_bounds", "SRC adj. within", "fraction interval"),
    )
    return _table(
        "What unreadable replies leave open",
        contents,
        lambda content: [line for line in capacities(content) if line.unreadable_rate],
        columns,
    )


def _references(contents: Contents) -> Table:
    columns = (
        Column("name", "of the chains", "text", get=lambda line: line[0]),
        Column("rate", "share", "percent", get=lambda line: line[1].rate),
        Column("rate_ci", "95 % CI", "percent interval", get=lambda line: line[1].rate_ci),
        Column(
            "rate_bounds",
            "within, if all is counted",
            "percent interval",
            get=lambda line: _bounds(line[1].rate_bounds),
        ),
        Column("n", "n", "text", get=lambda line: line[1].n),
    )
    return _table("Whole, empty, shuffled and cut chains", contents, _reference_lines, columns)


def _bounds(value: Sequence[float] | None) -> Sequence[float] | None:
    """Return the bounds that unreadable replies leave; nothing where there are none."""
    return None if value is None or value[0] == value[1] else value


def _reference_lines(content: ChainSummary) -> Iterator[tuple[str, CountedRate]]:
    """Return the subject of each rate, and the rate."""
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
    columns = (
        *naming("k", "operators", "measure", "n"),
        Column("gap", "gap", "points"),
        Column("gap_ci", "95 % CI", "points interval"),
    )
    title = "How far the numbers depend on the operator"
    return _table(title, contents, lambda content: content.operator_dependence, columns)


def _levels(contents: Contents) -> Table:
    columns = (
        *naming("attribution", "direction", "k", "unit", "n"),
        Column("win_rate", "win rate", "percent"),
        Column("win_rate_ci", "95 % CI", "percent interval"),
        Column("verdict", "verdict", "text", word=lambda line: word_of_verdict(line.verdict)),
    )
    title = "Tokens beside steps, by the model's own answer"
    return _table(title, contents, lambda content: content.levels or (), columns)


def _raw(contents: Contents) -> Table:
    columns = (
        *naming("attribution", "operator", "k", "measure", "n"),
        Column("raw", "raw score", "fraction"),
        Column("win_rate", "win rate", "percent"),
        Column("raw_positive", "raw says yes", "yes/no"),
        Column("win_rate_positive", "win rate says yes", "yes/no"),
        Column("agree", "agree", "yes/no"),
    )
    return _table("Raw scores beside win rates", contents, lambda content: content.raw, columns)


def _agreement(contents: Contents) -> Table:
    """Which says yes: the raw score, the win rate, both or none of them."""
    columns = (
        Column("n", "configurations", "text"),
        Column("both", "both say yes", "text"),
        Column("neither", "neither", "text", get=lambda line: line.agree - line.both),
        Column("raw_only", "raw score alone", "text"),
        Column("win_rate_only", "win rate alone", "text"),
        Column("agree", "agree", "percent", get=lambda line: line.agree / line.n),
    )
    return _table(
        "Do raw scores and win rates agree?",
        contents,
        lambda content: [content.raw_agreement] if content.raw else [],
        columns,
    )


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
