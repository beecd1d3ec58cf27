"""Sentences about chains of thought: the verdict in plain words, and the notes beside the numbers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ice_eval.errors import ConfigError
from ice_eval.report.chains.tables import (
    CHAINS,
    ENOUGH,
    capacities,
    chains_of,
    count_of,
    headlines,
    numbered,
)
from ice_eval.results import Summary
from ice_eval.results.chains import SHORT
from ice_eval.results.records import CapacityLine, ChainSummary
from ice_eval.stats import NOISE_ONLY, REFERENCE_SHARE, WEAKLY_FAITHFUL, Reasoning, ReasoningVerdict
from ice_eval.table import interval, percent, written

_PLAIN: Mapping[tuple[Reasoning | None, Reasoning | None], str] = {
    ("decorative", "decorative"): "The answer does not rest on the steps",
    ("scaffolding", "scaffolding"): "The answer rests on the steps in part",
    ("genuine", "genuine"): "The steps carry the answer",
    ("decorative", "scaffolding"): "The answer rests on the steps in part at most",
    ("scaffolding", "genuine"): "The answer rests on the steps, at least in part",
    ("decorative", "genuine"): "It is not certain whether the steps carry the answer",
}
_UNDETERMINED = ReasoningVerdict(reason="too few examples")
"""Verdict where no reply could be read."""


@dataclass(frozen=True)
class OperatorVerdict:
    """The verdict under one operator."""

    operator: str
    verdict: str
    word: str | None
    """The word that the colour stands for, of a range the lower one."""
    text: str


@dataclass(frozen=True)
class ChainVerdict:
    """The verdict of a step-level run on its chains."""

    title: str
    """In plain words."""
    operators: tuple[OperatorVerdict, ...]
    silence: str
    """The limits of what it says."""
    facts: tuple[tuple[str, str, str], ...]
    """Key numbers: a name, a value, and its interval or what it is of."""


def chain_verdict(summary: Summary) -> ChainVerdict:
    """Return the verdict at the share of steps that the capacity is defined for.

    Raises:
        ConfigError: The summary is not that of a step-level run.
    """
    content = summary.chains
    if content is None:
        raise ConfigError("the run is not about chains of thought: there is no verdict on steps.")
    lines = headlines(content)
    verdicts = [line.verdict or _UNDETERMINED for line in lines]
    return ChainVerdict(
        title=_title(verdicts),
        operators=tuple(
            OperatorVerdict(line.operator, str(verdict), verdict.lowest, _text(line))
            for line, verdict in zip(lines, verdicts, strict=True)
        ),
        silence=(
            "It does not say that the steps are correct, that the model thinks in this way, or that people would "
            "reason so; and it speaks of these problems, prompts and ways of taking steps away."
        ),
        facts=tuple(_facts(content, lines)),
    )


def plain_words(verdict: ReasoningVerdict) -> str:
    """Return a sentence that needs no vocabulary, and the verdict."""
    nothing = "Nothing can be said of the steps" if verdict.reason == NOISE_ONLY else "Nothing can be said"
    return f"{_PLAIN.get((verdict.lowest, verdict.highest), nothing)}: {verdict}."


def _title(verdicts: Sequence[ReasoningVerdict]) -> str:
    if not verdicts:
        return "No chain could be evaluated."
    if len(set(verdicts)) > 1:
        return "What may be said depends on how steps are taken away."
    return plain_words(verdicts[0])


_ACTS = {"delete": "deleted", "replace": "replaced by steps of other problems"}


def _text(line: CapacityLine) -> str:
    if line.src is None or line.k_effective is None:
        return "no reply could be read."
    act = _ACTS.get(line.operator, f"taken away ({line.operator})")
    beyond = f"beyond the noise floor {written(line.src_adjusted, 'fraction')}"
    if line.src_adjusted is None:
        beyond = "and nothing of it lies beyond the noise floor, which is 100 %"
    text = (
        f"where {100 * line.k_effective:.0f} % of the steps on average (k = {line.k:g}) are {act}, the answer "
        f"changes in {percent(line.necessity)} of the replies; from as many steps alone it comes in "
        f"{percent(line.sufficiency)}. SRC = {written(line.src, 'fraction')}, {beyond} "
        f"(95 % interval {written(line.src_adjusted_ci, 'fraction interval')}, n = {line.n} {chains_of(line)})."
    )
    return text.replace(" %", "\u00a0%").replace("n = ", "n\u00a0=\u00a0")


def _facts(content: ChainSummary, lines: Sequence[CapacityLine]) -> list[tuple[str, str, str]]:
    problems, steps = content.problems, content.steps
    found = [("problems evaluated", str(problems.n_evaluated), f"of {problems.n}")]
    if problems.accuracy is not None:
        found.append(("accuracy", percent(problems.accuracy), f"of {problems.n_gold} with a known answer"))
    if steps.mean is not None:
        found.append(("steps of a chain", f"{steps.mean:.1f}", f"{steps.least} to {steps.most}"))
    if lines:
        line = lines[0]
        which = f"{line.operator}, k = {line.k:g}"
        found += [
            ("necessity (Nec)", percent(line.necessity), f"{interval(line.necessity_ci)}, {which}"),
            ("sufficiency (Suf)", percent(line.sufficiency), f"{interval(line.sufficiency_ci)}, {which}"),
            (
                "SRC beyond noise",
                written(line.src_adjusted, "fraction"),
                f"{written(line.src_adjusted_ci, 'fraction interval')}, {chains_of(line)}",
            ),
        ]
    for name, mean in (("noise floor", content.noise_floor), ("own answer without steps", content.no_steps)):
        found.append((name, percent(mean.rate), interval(mean.rate_ci)))
    return found


_MANY_UNREAD = 0.05


def cot_notes(*summaries: Summary) -> list[str]:
    """Return sentences about the chains of some runs, each once; runs of other kinds have none."""
    found = []
    for run, content in numbered(summaries):
        prefix, lines = f"Run {run}: " if run else "", headlines(content)
        found += [f"{prefix}{note}" for note in (*_about_verdict(content, lines), *_about_replies(content, lines))]
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


def _about_verdict(content: ChainSummary, lines: list[CapacityLine]) -> Iterator[str]:
    if not lines:
        yield "No chain could be evaluated."
        return
    for line in lines:
        if line.verdict is not None:
            place = f"{line.operator}, k = {line.k:g}, chains: {CHAINS[line.chains]}, n = {line.n}"
            yield f"{plain_words(line.verdict)[:-1]} ({place})."
    if any(line.verdict is not None and len(line.verdict.words) > 1 for line in lines):
        yield "A verdict is a range where its 95 % interval covers more than one word: more problems narrow it."
    if max(line.n for line in lines) < ENOUGH:
        yield f"Fewer than {ENOUGH} chains: the intervals are rough."
    if lines[0].k != REFERENCE_SHARE:
        yield f"The words are defined at k = {REFERENCE_SHARE:g}, which this run does not have."
    there = [line for line in capacities(content) if line.k == lines[0].k]
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


def _about_replies(content: ChainSummary, lines: list[CapacityLine]) -> Iterator[str]:
    floor, empty = content.noise_floor.rate, content.no_steps.rate
    if floor:
        yield f"Asked again, the whole chain gives another answer in {percent(floor)} of the replies."
    if empty:
        yield f"Without any step the model gives the chain's own answer to {percent(empty)} of the problems."
    for reason, count in content.problems.skipped.items():
        yield f"Skipped: {count} {'problem' if count == 1 else 'problems'} ({reason})."
    unread = max((line.unreadable_rate or 0 for line in lines), default=0)
    if unread:
        much = " This is much: the bounds say more than the estimates." if unread > _MANY_UNREAD else ""
        yield (
            f"Up to {percent(unread)} of the replies cannot be read. They are left out of the estimates; the bounds "
            f"count them as changed, or as not.{much}"
        )
