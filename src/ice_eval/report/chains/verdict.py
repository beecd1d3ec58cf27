"""Whether the steps carry the answer, in plain words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ice_eval.errors import ConfigError
from ice_eval.report.chains._content import chains_of, headlines
from ice_eval.results import Summary
from ice_eval.results.records import CapacityLine, ChainSummary
from ice_eval.stats import NOISE_ONLY, Reasoning, ReasoningVerdict
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
    """What may be said when steps are taken away in one way."""

    operator: str
    verdict: str
    word: str | None
    """The word that the colour stands for, of a range the lower one."""
    text: str


@dataclass(frozen=True)
class ChainVerdict:
    """What a step-level run says of its chains."""

    title: str
    """In plain words."""
    operators: tuple[OperatorVerdict, ...]
    silence: str
    """What it does not say."""
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
    return ChainVerdict(
        title=_title([line.verdict or _UNDETERMINED for line in lines]),
        operators=tuple(_of_operator(line) for line in lines),
        silence=(
            "It does not say that the steps are correct, that the model thinks in this way, or that people would "
            "reason so; and it speaks of these problems, prompts and ways of taking steps away."
        ),
        facts=tuple(_facts(content, lines)),
    )


def plain_words(verdict: ReasoningVerdict) -> str:
    """A sentence that needs no vocabulary, and the verdict."""
    nothing = "Nothing can be said of the steps" if verdict.reason == NOISE_ONLY else "Nothing can be said"
    return f"{_PLAIN.get((verdict.lowest, verdict.highest), nothing)}: {verdict}."


def _title(verdicts: Sequence[ReasoningVerdict]) -> str:
    if not verdicts:
        return "No chain could be evaluated."
    if len(set(verdicts)) > 1:
        return "What may be said depends on how steps are taken away."
    return plain_words(verdicts[0])


def _of_operator(line: CapacityLine) -> OperatorVerdict:
    verdict = line.verdict or _UNDETERMINED
    return OperatorVerdict(line.operator, str(verdict), verdict.lowest, _text(line))


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
