"""What a reader must know beside the numbers about chains."""

from collections.abc import Iterator

from ice_eval.report.chains._content import (
    CHAINS,
    ENOUGH,
    capacities,
    count_of,
    headlines,
    numbered,
)
from ice_eval.report.chains.verdict import plain_words
from ice_eval.report.tables import percent
from ice_eval.results import Summary
from ice_eval.results.records import CapacityLine, ChainSummary
from ice_eval.stats import REFERENCE_SHARE, WEAKLY_FAITHFUL
from ice_eval.subjects.chain.summary import SHORT

_MANY_UNREAD = 0.05


def cot_notes(*summaries: Summary) -> list[str]:
    """Sentences about the chains of some runs, each once; runs of other kinds have none."""
    found = []
    for run, content in numbered(summaries):
        prefix = f"Run {run}: " if run else ""
        found += [f"{prefix}{note}" for note in _said(content)]
    contents = [content for _, content in numbered(summaries)]
    if contents:
        found += _READING
    if any(content.raw for content in contents):
        found.append(_RAW)
    return list(dict.fromkeys(found))


_READING = (
    "Nec: share of random removals of steps that change the answer. Suf: share of random sets of as many steps that "
    "give it by themselves. SRC = Nec × (1 − Suf); adjusted, it is what lies beyond the noise floor, at which the "
    "answer changes although nothing was taken away.",
    "decorative: SRC adj. below 0.15; scaffolding: 0.15 to 0.40; genuine: above 0.40. The word is of the estimate; the "
    "verdict names every word that the 95 % interval, with unreadable replies counted either way, does not exclude.",
)
_RAW = (
    "Raw scores are ERASER's sufficiency and comprehensiveness, and say yes from 0.5 on; win rates from "
    f"{100 * WEAKLY_FAITHFUL:g} % on. A raw score that random steps reach too is no evidence for the explanation."
)


def _said(content: ChainSummary) -> Iterator[str]:
    lines = headlines(content)
    if not lines:
        yield "No chain could be evaluated."
    for line in lines:
        if line.verdict is not None:
            yield f"{plain_words(line.verdict)[:-1]} ({_place(line)})."
    if any(line.verdict is not None and len(line.verdict.words) > 1 for line in lines):
        yield "A verdict is a range where its 95 % interval covers more than one word: more problems narrow it."
    yield from _about_sizes(lines)
    yield from _about_lengths(content, lines)
    yield from _about_noise(content)
    yield from _about_reading(content, lines)


def _place(line: CapacityLine) -> str:
    return f"{line.operator}, k = {line.k:g}, chains: {CHAINS[line.chains]}, n = {line.n}"


def _about_sizes(lines: list[CapacityLine]) -> Iterator[str]:
    if lines and max(line.n for line in lines) < ENOUGH:
        yield f"Fewer than {ENOUGH} chains: the intervals are rough."
    if lines and lines[0].k != REFERENCE_SHARE:
        yield f"The words are defined at k = {REFERENCE_SHARE:g}, which this run does not have."


def _about_lengths(content: ChainSummary, lines: list[CapacityLine]) -> Iterator[str]:
    there = [line for line in capacities(content) if lines and line.k == lines[0].k]
    lengths = {line.chains for line in there}
    if any(line.chains == "all" for line in lines):
        yield (
            f"Chains of {CHAINS['long']}: {count_of(there, 'long')} of {count_of(there, 'all')}, too few to speak for "
            "the run. So the verdict is on chains of any length; the table has either length by itself."
        )
    if "short" in lengths:
        alone = "all chains here are such" if "long" not in lengths else "so they are reported apart"
        yield (
            f"In chains of fewer than {SHORT} steps one step is always more than a fifth: more is taken away than "
            f"k = {REFERENCE_SHARE:g} says (column “steps taken”), and {alone}."
        )


def _about_noise(content: ChainSummary) -> Iterator[str]:
    floor, empty = content.noise_floor.rate, content.no_steps.rate
    if floor:
        yield f"Asked again, the whole chain gives another answer in {percent(floor)} of the replies."
    if empty:
        yield f"Without any step the model gives the chain's own answer to {percent(empty)} of the problems."


def _about_reading(content: ChainSummary, lines: list[CapacityLine]) -> Iterator[str]:
    for reason, count in content.problems.skipped.items():
        yield f"Skipped: {count} {'problem' if count == 1 else 'problems'} ({reason})."
    unread = max((line.unreadable_rate or 0 for line in lines), default=0)
    if unread:
        much = " This is much: the bounds say more than the estimates." if unread > _MANY_UNREAD else ""
        yield (
            f"Up to {percent(unread)} of the replies cannot be read. They are left out of the estimates; the bounds "
            f"count them as changed, or as not.{much}"
        )
