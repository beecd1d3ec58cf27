"""What a reader must know beside the numbers of explanations, in sentences."""

import itertools
from collections.abc import Iterator, Mapping, Sequence

from ice_eval.nulls import SIZE
from ice_eval.report.tables import percent
from ice_eval.results import Summary, SummaryLine
from ice_eval.results.agreements import kappas
from ice_eval.results.records import AgreementLine

FLAGS = {
    "small_n": "fewer than 50 examples: the intervals are rough.",
    "ties": "more than 1 % of random sets tie with the rationale: a tie says nothing for or against it.",
    "depends_on_score_order": "the verdict changes if sets rank by how nearly they give the full text's score.",
    "few_groups": "fewer than 20 groups: intervals are too narrow, at 12 groups they cover 92 % instead of 95 %.",
    "grouped": "several examples share a passage: whole groups were resampled, and errors allow for it.",
    "adaptive_dataset": "a pilot chose the number of random sets: enough for the data set, not for single examples.",
    "adaptive_examples": "each example took as many random sets as its tests needed.",
    "exact_for_some": "short texts have fewer sets than were asked for: all of them were used, and the test is exact.",
    "protocol_paper": "the choices of the paper's text: own fills in every row, ties lost, percentile intervals.",
    "protocol_released": "the choices of the paper's released package; not to be mixed with other results.",
    "scope_prompt": "words of the prompt's template were removed too, not only those of the text.",
    "sign_abs": "signed attributions rank units by magnitude, whether they speak for the label or against it.",
    "adapted_model": "the model is a copy that was fine-tuned on inputs with units removed, not the deployed one.",
    "blacklist_without_gold": "the data have no labels: infill avoided the label words only.",
    "mask-unk_writes_end_of_text": "the model has no unknown token: mask-unk wrote end-of-text tokens.",
    "mask-pad_writes_end_of_text": "the model has no padding token: mask-pad wrote end-of-text tokens.",
    "effect_below_noise": "the effect is smaller than what rounding moves a score by: the verdict rests on rounding.",
    "out_of_memory": "the device ran out of memory: batches were made smaller, which may move scores by rounding.",
    "labels_not_listed": "the server named too few tokens to find a label in some rows; their examples were left out.",
    "no_examples": "no example could be evaluated.",
}
"""What the flags of a summary mean."""
STEP_FLAGS = {
    **FLAGS,
    "small_n": "fewer than 50 chains: the intervals are rough.",
    "exact_for_some": "short chains have fewer sets than were asked for: all of them were used, and the test is exact.",
    "depends_on_score_order": "the verdict changes if sets rank by how nearly they give the whole chain's score.",
}
"""The same where steps of chains are explained."""

_ENOUGH_FOR_KAPPA = 8
_NAMED = 5
"""Examples that are named where operators disagree."""


def explanation_notes(*summaries: Summary) -> list[str]:
    """Of some runs, each thing once."""
    several = [*(note for summary in summaries for note in _of_run(summary)), *_kappa_notes(summaries)]
    return list(dict.fromkeys(several))


def _of_run(summary: Summary) -> Iterator[str]:
    lines, of_steps = summary.configurations, summary.chains is not None
    if not of_steps:
        yield from _accuracy(lines)
    yield from _detectable(lines)
    if not of_steps:
        yield from _effect_sizes(lines)
    yield from _skipped(lines)
    yield from _single_examples(lines, of_steps=of_steps)
    yield from _disagreements(summary.agreement)
    yield from _flags(lines, STEP_FLAGS if of_steps else FLAGS)


def _accuracy(lines: Sequence[SummaryLine]) -> Iterator[str]:
    """Of the line about most examples: where some drop out for one attribution only, the others have more."""
    judged = [line for line in lines if line.accuracy is not None]
    if judged:
        most = max(judged, key=lambda line: line.n)
        yield f"The model is right on {percent(most.accuracy)} of the examples."


def _detectable(lines: Sequence[SummaryLine]) -> Iterator[str]:
    if any(line.n for line in lines):
        found = [line.detectable_win_rate for line in lines if line.detectable_win_rate is not None]
        smallest = _span(found) if found else "unknown (one example, or no spread)"
        yield f"Smallest mean win rate told from chance with power 80 %: {smallest}."


def _span(rates: Sequence[float]) -> str:
    """The range of some win rates, where above 100 % means that there is none."""
    low, high = (percent(rate) if rate <= 1 else "none (too few examples)" for rate in (min(rates), max(rates)))
    return low if low == high else f"{low} to {high}"


def _effect_sizes(lines: Sequence[SummaryLine]) -> Iterator[str]:
    """How few examples have one, where these are too few for a word."""
    for line in lines:
        if line.effect_size_median is not None and line.effect_word is None:
            defined = line.n - (line.effect_size_undefined or 0)
            where = f"{line.attribution} under {line.operator}"
            yield f"{where}: effect sizes exist for {defined} of {line.n} examples."


def _skipped(lines: Sequence[SummaryLine]) -> Iterator[str]:
    """How many examples take no part, and for whom more than for others."""
    counts = {line.attribution: 0 for line in lines}
    for line in lines:
        counts[line.attribution] = max(line.n_skipped, counts[line.attribution])
    least = min(counts.values(), default=0)
    if least:
        yield f"{_take_no_part(least)}; examples.parquet says why."
    for name, count in counts.items():
        if count > least:
            yield f"{_take_no_part(count)} for {name}; examples.parquet says why."


def _take_no_part(n: int) -> str:
    return "1 example takes no part" if n == 1 else f"{n} examples take no part"


def _single_examples(lines: Sequence[SummaryLine], *, of_steps: bool) -> Iterator[str]:
    """Why none of them may be called significant."""
    unsaid = [line for line in lines if line.significant_reason]
    reasons = {str(line.significant_reason) for line in unsaid if line.significant_floor_share is None}
    yield from (f"Single examples: {reason}." for reason in sorted(reasons))
    shares = [line.significant_floor_share for line in unsaid if line.significant_floor_share is not None]
    if shares:
        most = max(shares)
        limit = "" if most > 1 else f" unless {percent(most)} of them are"
        few = "sets of steps" if of_steps else "random sets (m)"
        yield f"There are too few {few} to call single examples significant{limit}; mean win rates need no more."


def _disagreements(lines: Sequence[AgreementLine]) -> Iterator[str]:
    """The examples that two operators judge most differently, once for all k and directions of an attribution."""
    named: dict[tuple[str, str, str], list[tuple[str, ...]]] = {}
    for line in lines:
        if line.disagree:
            null = "" if line.null == SIZE else f" (null: {line.null})"
            named.setdefault((line.attribution, null, " and ".join(line.operators)), []).append(line.disagree)
    for (attribution, null, operators), ranked in named.items():
        by_rank = [each for same in itertools.zip_longest(*ranked) for each in same if each is not None]
        examples = ", ".join(list(dict.fromkeys(by_rank))[:_NAMED])
        yield (
            f"{attribution}{null}: {operators} disagree most about the examples {examples}; "
            "`ice show` prints what the model saw of them."
        )


def _flags(lines: Sequence[SummaryLine], meanings: Mapping[str, str]) -> Iterator[str]:
    for flag in sorted({flag for line in lines for flag in line.flags}):
        yield flag_note(flag, where=_where(flag, lines), meanings=meanings)


def flag_note(flag: str, *, where: str = "", meanings: Mapping[str, str] = FLAGS) -> str:
    """What a flag means and where, with the name that it has in the files behind it."""
    said = meanings.get(flag, "")
    return f"{where}: {said} [{flag}]" if where else f"{said[:1].upper()}{said[1:]} [{flag}]".lstrip()


def _where(flag: str, lines: Sequence[SummaryLine]) -> str:
    """The rows that a flag is about, unless it is about all."""
    flagged = [f"{line.attribution} under {line.operator}" for line in lines if flag in line.flags]
    return "" if len(flagged) == len(lines) else ", ".join(dict.fromkeys(flagged))


def _kappa_notes(summaries: Sequence[Summary]) -> list[str]:
    """How far operators agree on a word over all configurations; a handful of them says nothing."""
    return [
        f"{' and '.join(found.operators)} agree on the word with weighted κ = {found.kappa:.2f} over "
        f"{found.n_configurations} configurations."
        for found in kappas([summary.configurations for summary in summaries])
        if found.kappa is not None and found.n_configurations >= _ENOUGH_FOR_KAPPA
    ]
