"""Chains of thought over several runs: leading lines, counts of patterns, and raw scores beside win rates."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ice_eval.analysis._base import Found, Missing, Part, fields_of, filled, grouped_by
from ice_eval.analysis.grid import GridResults, GridRun, is_control
from ice_eval.operators import is_removal
from ice_eval.results.chains import POSITIVE_RAW, SHORT, raw_agreement
from ice_eval.results.outcomes import ALL
from ice_eval.results.records import CapacityLine, ChainSummary, RawLine, Stratum
from ice_eval.stats import PATTERNS, REFERENCE_SHARE, WEAKLY_FAITHFUL
from ice_eval.table import Column, columns, estimate, naming

CHAINS: Mapping[Stratum, str] = {"long": f"{SHORT} steps or more", "short": f"fewer than {SHORT} steps", "all": "all"}
"""Strata of chains by length, in words."""
ENOUGH = 50
"""Chains from which on an interval is not rough, so that long ones can speak for themselves."""
_UNDETERMINED, _NO_VERDICT = "undetermined", "no verdict"
_BOTH = "both"


def capacities(content: ChainSummary) -> list[CapacityLine]:
    """Return the lines of the lengths that occur; all chains together only where both do."""
    there = {line.chains for line in content.capacity if line.k_effective is not None}
    shown = there if {"long", "short"} <= there else there - {"all"}
    return [line for line in content.capacity if line.chains in shown]


def headlines(content: ChainSummary) -> list[CapacityLine]:
    """Return a line for every operator, at the share of steps that the capacity is defined for where the run has it.

    Other poses do not lead: the verdict of their operator knows them. Operators that take nothing away have none.
    """
    shares = [line.k for line in capacities(content)]
    share = REFERENCE_SHARE if REFERENCE_SHARE in shares else next(iter(shares), None)
    return [] if share is None else leading(content, share)


def leading(content: ChainSummary, k: float) -> list[CapacityLine]:
    """Return a line for every operator that takes steps away, at one share of steps.

    Long chains lead where they are most of the chains, or enough: of short ones a fifth is less than one step. Where
    they are few, all chains lead together, since a verdict on one chain of fourteen is none on the run.
    """
    there = [line for line in capacities(content) if line.k == k and is_removal(line.operator)]
    # The length that leads is chosen by the number of chains alone, whatever they say.
    length = next((name for name in CHAINS if any(line.chains == name for line in there)), None)
    if any(line.chains == "all" for line in there):
        n_long = n_of_length(there, "long")
        length = "long" if n_long >= ENOUGH or 2 * n_long > n_of_length(there, "all") else "all"
    return [line for line in there if line.chains == length]


def n_of_length(lines: Sequence[CapacityLine], length: Stratum) -> int:
    """Return the number of chains of a length, under the operator whose replies could be read for most of them."""
    return max((line.n for line in lines if line.chains == length), default=0)


# --- questions of a grid ------------------------------------------------------------------------------------------

_LINE = (
    *naming("operator", "k", "chains", "n"),
    *estimate("necessity", "Nec", "percent", "Nec 95 % CI"),
    *estimate("sufficiency", "Suf", "percent", "Suf 95 % CI"),
    *estimate("src", "SRC", "fraction", "SRC 95 % CI"),
    *estimate("src_adjusted", "SRC adj.", "fraction", "SRC adj. 95 % CI"),
    *columns("percent", accuracy="accuracy"),
    Column("verdict", "verdict", "text", word=lambda line: line["pattern"]),
)
_NUMBERS = ("operator", "k", "n", *(
    f"{name}{end}" for name in ("necessity", "sufficiency", "src", "src_adjusted") for end in ("", "_ci")
))  # fmt: skip


def reasoning_patterns(grid: GridResults) -> Found | Missing:
    """Return the leading line of every run, operator and share of steps, and how many of these have each pattern."""
    lines = [line for run in grid.runs for line in _leading(run, grid.chains[run.name])]
    if not lines:
        return Missing("no operator removes steps, or no chain could be evaluated")
    places = dict.fromkeys((line["operator"], line["k"]) for line in lines)
    counts = [_counted([line for line in lines if (line["operator"], line["k"]) == place]) for place in places]
    words = [word for word in (*PATTERNS, _UNDETERMINED, _NO_VERDICT) if any(line[word] for line in counts)]
    header = (*naming("operator", "k"), *columns("count", n="configurations", **{word: word for word in words}))
    total = _counted(lines)
    named = ", ".join(f"{total[word]} {word}" for word in words)
    return Found(
        (Part("Chains of the grid", _LINE, lines), Part("Patterns over the grid", header, counts)),
        (f"Of {total['n']} configurations (model, task, operator, k): {named}.",),
    )


def _leading(run: GridRun, content: ChainSummary) -> Iterator[dict[str, Any]]:
    head = {"model": run.model, "task": run.task}
    for k in dict.fromkeys(line.k for line in content.capacity):
        for line in leading(content, k):
            verdict = line.verdict
            yield {
                **head,
                **fields_of(line, *_NUMBERS),
                "chains": CHAINS[line.chains],
                "accuracy": content.problems.accuracy,
                "verdict": None if verdict is None else str(verdict),
                "pattern": None if verdict is None else verdict.pattern,
                "possible": [] if verdict is None else list(verdict.words),
            }


def _counted(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how many lines have each pattern, several possible ones, or none."""
    found = Counter(line["pattern"] or (_UNDETERMINED if line["possible"] else _NO_VERDICT) for line in lines)
    words = {word: found[word] for word in (*PATTERNS, _UNDETERMINED, _NO_VERDICT)}
    return {"operator": lines[0]["operator"], "k": lines[0]["k"], "n": len(lines), **words}


_POOLED = (
    *naming("attribution", "operator", "k", "measure"),
    *columns("count", n="configurations", both="both say yes", neither="neither", raw_only="raw score alone"),
    *columns("count", win_rate_only="win rate alone", without="without raw score"),
    *columns("percent", disagree="disagree"),
)


def raw_scores(grid: GridResults) -> Found | Missing:
    """Count over all runs how often raw ERASER scores and win rates agree, by explanation, operator, k and measure."""
    lines = [line for run in grid.runs for line in grid.chains[run.name].raw]
    kept = [line for line in lines if line.operator != ALL and not is_control(line.attribution)]
    if not kept:
        return Missing("no explanation of steps was evaluated")
    pooled = []
    for head, own in grouped_by(kept, "attribution", "operator", "k"):
        for measure in (*dict.fromkeys(line.measure for line in own), _BOTH):
            chosen = own if measure == _BOTH else [line for line in own if line.measure == measure]
            pooled.append({**head, "measure": measure, **agreement(chosen)})
    notes = (
        f"Raw scores say yes from {POSITIVE_RAW:g} on, win rates from {100 * WEAKLY_FAITHFUL:g} % on; a configuration "
        "is a model, a task and a measure. Controls and the average over operators are left out.",
    )
    return Found(filled(Part("Raw scores and win rates over the grid", _POOLED, pooled)), notes)


def agreement(lines: Sequence[RawLine]) -> dict[str, Any]:
    """Return how often raw scores and win rates agree; configurations without a raw score do not count."""
    found = raw_agreement(lines)
    return {
        "n": found.n,
        "both": found.both,
        "neither": found.agree - found.both,
        "raw_only": found.raw_only,
        "win_rate_only": found.win_rate_only,
        "without": len(lines) - found.n,
        "disagree": (found.n - found.agree) / found.n if found.n else None,
    }
