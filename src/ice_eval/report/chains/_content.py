"""What a summary says of chains, and which of its lines lead."""

from collections.abc import Iterator, Mapping, Sequence

from ice_eval.results import Summary
from ice_eval.results.records import CapacityLine, ChainSummary, Stratum
from ice_eval.stats import REFERENCE_SHARE
from ice_eval.subjects.chain.summary import SHORT

CHAINS: Mapping[Stratum, str] = {"long": f"{SHORT} steps or more", "short": f"fewer than {SHORT} steps", "all": "all"}
"""What the names of the lengths stand for."""
ENOUGH = 50
"""Chains from which on an interval is not rough, so that long ones can speak for themselves."""


def numbered(summaries: Sequence[Summary]) -> Iterator[tuple[str, ChainSummary]]:
    """What each step-level run says of chains, with the number of the run where there are several runs."""
    for number, summary in enumerate(summaries, start=1):
        if summary.chains is not None:
            yield str(number) if len(summaries) > 1 else "", summary.chains


def capacities(content: ChainSummary) -> list[CapacityLine]:
    """The lines of lengths that there are; all chains together only where there are both."""
    there = {line.chains for line in content.capacity if line.k_effective is not None}
    shown = there if {"long", "short"} <= there else there - {"all"}
    return [line for line in content.capacity if line.chains in shown]


def chains_of(line: CapacityLine) -> str:
    """Which chains a line is about, within a sentence."""
    return f"chains of {'any length' if line.chains == 'all' else CHAINS[line.chains]}"


def headlines(content: ChainSummary) -> list[CapacityLine]:
    """A line for every operator, at the share of steps that the capacity is defined for where the run has it.

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
    """How many chains of a length there are, under the operator whose replies could be read for most of them."""
    return max((line.n for line in lines if line.chains == length), default=0)


def _leading(lines: Sequence[CapacityLine]) -> Stratum:
    """The length of chains that speaks for the run, by their number alone, whatever they say."""
    lengths = [name for name in CHAINS if any(line.chains == name for line in lines)]
    if "all" not in lengths:
        return lengths[0]
    n_long = count_of(lines, "long")
    return "long" if n_long >= ENOUGH or 2 * n_long > count_of(lines, "all") else "all"
