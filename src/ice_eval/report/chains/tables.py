"""What step-level runs say of chains, as tables."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ice_eval.report.chains._content import CHAINS, Line, Summary, capacities, numbered
from ice_eval.report.tables import Table, interval, percent, share, table_of, word_of_verdict

Columns = list[tuple[str, Callable[[Line], str]]]
_RUN: Columns = [("run", lambda line: str(line["run"]))]


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


def capacity_number(value: float | None) -> str:
    """A capacity lies between 0 and 1, and is printed as a fraction, as in the paper."""
    return "–" if value is None else f"{value:.2f}"


def capacity_interval(value: Sequence[float] | None) -> str:
    return "–" if value is None else "[" + ", ".join(f"{limit:.2f}" for limit in value) + "]"


Contents = Sequence[tuple[str, Mapping[str, Any]]]
"""The number of each run, and what it says of chains."""


def _of_runs(contents: Contents, lines: Callable[[Mapping[str, Any]], Iterable[Line]]) -> list[Line]:
    """Some lines of every run, each with the number of its run."""
    return [{"run": run, **line} for run, content in contents for line in lines(content)]


def _problems(contents: Contents) -> Table:
    lines = _of_runs(contents, lambda content: [{**content["problems"], **content["steps"]}])
    columns: Columns = [
        *_RUN,
        ("problems", lambda line: str(line["n"])),
        ("evaluated", lambda line: str(line["n_evaluated"])),
        ("skipped", lambda line: str(sum(line["skipped"].values()))),
        ("answers unreadable", lambda line: str(line["n_unreadable"])),
        ("with gold", lambda line: str(line["n_gold"])),
        ("accuracy", lambda line: percent(line["accuracy"])),
        ("steps (mean)", lambda line: "–" if line["mean"] is None else f"{line['mean']:.1f}"),
        ("fewest", lambda line: _count(line["least"])),
        ("most", lambda line: _count(line["most"])),
    ]
    return table_of("Chains of thought", lines, columns)


def _count(value: int | None) -> str:
    return "–" if value is None else str(value)


_PLACE: Columns = [
    *_RUN,
    ("operator", lambda line: str(line["operator"])),
    ("k", lambda line: share(line["k"])),
    ("chains", lambda line: CHAINS[line["chains"]]),
]


def capacity_table(*summaries: Summary) -> Table:
    """Necessity, sufficiency, capacity and verdict, by operator, share of steps and length of chains."""
    return _capacity(list(numbered(summaries)))


def _capacity(contents: Contents) -> Table:
    lines = _of_runs(contents, capacities)
    columns: Columns = [
        *_PLACE,
        ("steps taken", lambda line: percent(line["k_effective"])),
        ("n", lambda line: str(line["n"])),
        ("Nec", lambda line: percent(line["necessity"])),
        ("Nec 95 % CI", lambda line: interval(line["necessity_ci"])),
        ("Suf", lambda line: percent(line["sufficiency"])),
        ("Suf 95 % CI", lambda line: interval(line["sufficiency_ci"])),
        ("noise floor", lambda line: percent(line["noise_floor"])),
        ("SRC", lambda line: capacity_number(line["src"])),
        ("SRC 95 % CI", lambda line: capacity_interval(line["src_ci"])),
        ("SRC adj.", lambda line: capacity_number(line["src_adjusted"])),
        ("SRC adj. 95 % CI", lambda line: capacity_interval(line["src_adjusted_ci"])),
        ("word (estimate)", lambda line: str(line["taxonomy"] or "–")),
        ("verdict", lambda line: str(line["verdict"] or "–")),
    ]
    return table_of(
        "Do the steps carry the answer?",
        lines,
        columns,
        coloured={
            "word (estimate)": lambda line: line["taxonomy"],
            "verdict": lambda line: word_of_chains(line["verdict"]),
        },
    )


def word_of_chains(verdict: str | None) -> str | None:
    """The word that colours a verdict on chains: of a range the lower one, as that is what is sure."""
    return None if verdict is None else verdict.partition(" to ")[0]


def _open(contents: Contents) -> Table:
    """What the numbers would be if all unreadable replies had been the one thing, or the other."""
    lines = [line for line in _of_runs(contents, capacities) if line["unreadable_rate"]]
    columns: Columns = [
        *_PLACE,
        ("unreadable", lambda line: percent(line["unreadable_rate"])),
        ("Nec within", lambda line: interval(line["necessity_bounds"])),
        ("Suf within", lambda line: interval(line["sufficiency_bounds"])),
        ("SRC within", lambda line: capacity_interval(line["src_bounds"])),
        ("SRC adj. within", lambda line: capacity_interval(line["src_adjusted_bounds"])),
    ]
    return table_of("What unreadable replies leave open", lines, columns)


def _references(contents: Contents) -> Table:
    lines = _of_runs(contents, _reference_lines)
    columns: Columns = [
        *_RUN,
        ("of the chains", lambda line: str(line["what"])),
        ("share", lambda line: percent(line["rate"])),
        ("95 % CI", lambda line: interval(line["rate_ci"])),
        ("within, if all is counted", lambda line: _bounds(line["rate_bounds"])),
        ("n", lambda line: str(line["n"])),
    ]
    return table_of("Whole, empty, shuffled and cut chains", lines, columns)


def _bounds(value: Sequence[float] | None) -> str:
    """What unreadable replies leave open; nothing where there are none."""
    return "–" if value is None or value[0] == value[1] else interval(value)


def _reference_lines(content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"what": "another answer to the whole chain, asked again (noise floor)", **content["noise_floor"]}
    yield {"what": "own answer without any step", **content["no_steps"]}
    if "shuffle" in content:
        yield {"what": "another answer to the steps in another order", **content["shuffle"]}
    if "truncate" in content:
        cut = content["truncate"]
        n = content["problems"]["n_evaluated"]
        for line in cut["kept"][1:]:  # cut off before the first step is no step at all
            yield {"what": f"own answer after the first {100 * line['share']:g} % of the steps", **line, "n": n}
        yield {
            "what": "share of steps from which on the answer stands",
            "rate": cut["settled"],
            "rate_ci": cut["settled_ci"],
            "rate_bounds": None,
            "n": cut["n"],
        }


def _dependence(contents: Contents) -> Table:
    lines = _of_runs(contents, lambda content: content["operator_dependence"])
    columns: Columns = [
        *_RUN,
        ("k", lambda line: share(line["k"])),
        ("operators", lambda line: " − ".join(line["operators"])),
        ("measure", lambda line: str(line["measure"])),
        ("n", lambda line: str(line["n"])),
        ("gap", lambda line: "–" if line["gap"] is None else f"{100 * line['gap']:+.1f} pp"),
        ("95 % CI", lambda line: interval(line["gap_ci"], signed=True)),
    ]
    return table_of("How far the numbers depend on the operator", lines, columns)


def _levels(contents: Contents) -> Table:
    lines = _of_runs(contents, lambda content: content.get("levels", ()))
    columns: Columns = [
        *_RUN,
        ("attribution", lambda line: str(line["attribution"])),
        ("direction", lambda line: str(line["direction"])),
        ("k", lambda line: share(line["k"])),
        ("unit", lambda line: str(line["unit"])),
        ("n", lambda line: str(line["n"])),
        ("win rate", lambda line: percent(line["win_rate"])),
        ("95 % CI", lambda line: interval(line["win_rate_ci"])),
        ("verdict", lambda line: str(line["verdict"])),
    ]
    return table_of(
        "Tokens beside steps, by the model's own answer",
        lines,
        columns,
        coloured={"verdict": lambda line: word_of_verdict(line["verdict"])},
    )


_SAID = {True: "yes", False: "no"}


def _raw(contents: Contents) -> Table:
    lines = _of_runs(contents, lambda content: content["raw"])
    columns: Columns = [
        *_RUN,
        ("attribution", lambda line: str(line["attribution"])),
        ("operator", lambda line: str(line["operator"])),
        ("k", lambda line: share(line["k"])),
        ("measure", lambda line: str(line["measure"])),
        ("n", lambda line: str(line["n"])),
        ("raw score", lambda line: f"{line['raw']:.2f}"),
        ("win rate", lambda line: percent(line["win_rate"])),
        ("raw says yes", lambda line: _SAID[line["raw_positive"]]),
        ("win rate says yes", lambda line: _SAID[line["win_rate_positive"]]),
        ("agree", lambda line: _SAID[line["agree"]]),
    ]
    return table_of("Raw scores beside win rates", lines, columns)


def _agreement(contents: Contents) -> Table:
    """Who says yes: the raw score, the win rate, both or none of them."""
    lines = _of_runs(contents, lambda content: [_counts(content)] if content["raw"] else [])
    columns: Columns = [
        *_RUN,
        ("configurations", lambda line: str(line["n"])),
        ("both say yes", lambda line: str(line["both"])),
        ("neither", lambda line: str(line["agree"] - line["both"])),
        ("raw score alone", lambda line: str(line["raw_only"])),
        ("win rate alone", lambda line: str(line["win_rate_only"])),
        ("agree", lambda line: percent(line["agree"] / line["n"])),
    ]
    return table_of("Do raw scores and win rates agree?", lines, columns)


def _counts(content: Mapping[str, Any]) -> dict[str, Any]:
    both = sum(line["raw_positive"] and line["win_rate_positive"] for line in content["raw"])
    return {**content["raw_agreement"], "both": both}
