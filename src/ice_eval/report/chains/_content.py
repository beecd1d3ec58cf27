"""What a summary says of chains, and which of its lines lead."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ice_eval.cot.measures import SHORT
from ice_eval.stats import REFERENCE_SHARE

Line = Mapping[str, Any]
Summary = Mapping[str, Any]

CHAINS = {"long": f"{SHORT} steps or more", "short": f"fewer than {SHORT} steps", "all": "all"}
"""What the names of the lengths stand for."""


def of_chains(summary: Summary) -> bool:
    """Whether it is the summary of a step-level run."""
    return "cot" in summary


def numbered(summaries: Sequence[Summary]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What each step-level run says of chains, with the number of the run where there are several runs."""
    for number, summary in enumerate(summaries, start=1):
        if of_chains(summary):
            yield str(number) if len(summaries) > 1 else "", summary["cot"]


def capacities(content: Mapping[str, Any]) -> list[Line]:
    """The lines of lengths that there are; all chains together only where there are both."""
    there = {line["chains"] for line in content["capacity"] if line["k_effective"] is not None}
    shown = there if {"long", "short"} <= there else there - {"all"}
    return [line for line in content["capacity"] if line["chains"] in shown]


def headlines(content: Mapping[str, Any]) -> list[Line]:
    """A line for every operator, at the share of steps that the capacity is defined for where the run has it.

    Long chains lead where there are any: of short ones a fifth is less than one step.
    """
    lines = capacities(content)
    if not lines:
        return []
    shares = [line["k"] for line in lines]
    share = REFERENCE_SHARE if REFERENCE_SHARE in shares else shares[0]
    length = next(name for name in CHAINS if any(line["chains"] == name for line in lines))
    return [line for line in lines if (line["k"], line["chains"]) == (share, length)]
