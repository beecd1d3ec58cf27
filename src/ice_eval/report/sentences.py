"""Sentences about runs: verdicts with their limits, and notes beside tables."""

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence

from ice_eval import stats
from ice_eval.choices import Protocol, TableColumns, protocol_of
from ice_eval.nulls import SIZE
from ice_eval.rationales import DYNAMIC
from ice_eval.report.chains import cot_notes
from ice_eval.report.citations import citation_notes
from ice_eval.report.colours import is_strict
from ice_eval.report.tables import THRESHOLD, in_paper_columns
from ice_eval.results import Configuration, Plan, Summary, SummaryLine
from ice_eval.results.agreements import kappas
from ice_eval.results.records import AgreementLine, RobustnessLine
from ice_eval.table import counted, percent

FLAGS = {
    "small_n": "fewer than 50 examples: the intervals assume nothing about the win rates, so they are wide.",
    "ties": "more than 1 % of random sets tie with the rationale: a tie says nothing for or against it.",
    "depends_on_score_order": "the verdict changes if sets rank by how nearly they give the full text's score.",
    "grouped": "several examples share a text: intervals treat each such group as one observation.",
    "adaptive_dataset": "a pilot chose the number of random sets: enough for the data set, not for single examples.",
    "adaptive_examples": "each example took as many random sets as its tests needed.",
    "until_decided": "the run looked at its verdicts to stop early: intervals and p-values hold at any time.",
    "exact_for_some": "short texts have fewer sets than requested: all were used, and the test is exact.",
    "protocol_paper": "the paper's choices: own fills in every row, ties lost, percentiles, words by the win rate.",
    "protocol_released": "the choices of the paper's released package; not to be mixed with other results.",
    "protocol_authors": "the choices of the scripts that the paper names, as far as they are known.",
    "scope_prompt": "words of the prompt's template were removed too, not only those of the text.",
    "sign_abs": "signed attributions rank units by magnitude, whether they speak for the label or against it.",
    "adapted_model": "the model is a copy that was fine-tuned on inputs with units removed, not the deployed one.",
    "blacklist_without_gold": "the data have no labels: infill avoided the label words only.",
    "mask-unk_writes_end_of_text": "the model has no unknown token: mask-unk wrote end-of-text tokens.",
    "mask-pad_writes_end_of_text": "the model has no padding token: mask-pad wrote end-of-text tokens.",
    "effect_below_noise": "the effect is smaller than what rounding moves a score by: the verdict depends on rounding.",
    "out_of_memory": "the device ran out of memory: batches were made smaller, which may move scores by rounding.",
    "labels_not_listed": "the server named too few tokens to find a label in some rows; their examples were left out.",
    "no_examples": "no example could be evaluated.",
}
"""Meanings of the flags of a summary."""
_STEP_FLAGS = FLAGS | {
    "small_n": "fewer than 50 chains: the intervals assume nothing about the win rates, so they are wide.",
    "exact_for_some": "short chains have fewer sets than requested: all were used, and the test is exact.",
    "depends_on_score_order": "the verdict changes if sets rank by how nearly they give the whole chain's score.",
}
_CLAIM_FLAGS = FLAGS | {
    "small_n": "fewer than 50 answers: the intervals assume nothing about the win rates, so they are wide.",
    "grouped": "claims of one answer are not independent: intervals treat each answer as one observation.",
    "exact_for_some": "some claims have fewer sets than requested: all were used, and the test is exact.",
    "depends_on_score_order": "the verdict changes if sets rank by how nearly they give the score of all passages.",
}
SIMULTANEOUS = (
    "Intervals and verdicts are simultaneous: in 95 % of runs, all intervals of the first table cover. Its verdicts "
    "may be read together."
)
POINT_WORDS = (
    "By the run's protocol, the word follows the win rate alone, not its interval: anti-faithful below 50 %, "
    f"near-random below {THRESHOLD}, weakly faithful up to {100 * stats.FAITHFUL:g} %, faithful above."
)
PAPER_COLUMNS = (
    "The paper's columns. WR is the win rate. NSR is the mean over examples with a signal; for kept rationales it is "
    "the “Suf.” of its table of encoders. sig. rate is the share of examples that Benjamini–Hochberg rejects at 0.10. "
    "The distance d_null is the median from random sets in their standard deviations. The word is that of the win rate "
    "alone."
)
SCOPE = (
    "The verdict is about this model, these examples and these operators. It does not mean that the model is right, "
    "fair or safe, nor that people would find the explanation convincing."
)


class Note(str):
    """A sentence about a run. As a string it has all; a page links the examples and leaves out the name of a flag."""

    said: str
    """The sentence, up to the examples that it names."""
    examples: tuple[str, ...]
    rest: str
    attribution: str
    """The attribution that the examples are about; empty for none."""

    def __new__(
        cls, said: str, *, examples: Sequence[str] = (), rest: str = "", attribution: str = "", flag: str = ""
    ) -> "Note":
        note = super().__new__(cls, said + ", ".join(examples) + rest + (f" [{flag}]" if flag else ""))
        note.said, note.examples, note.rest, note.attribution = said, tuple(examples), rest, attribution
        return note

    @property
    def plain(self) -> str:
        """The sentence without the name of a flag."""
        return self.said + ", ".join(self.examples) + self.rest


_ACTS = {"sufficiency": "kept", "necessity": "removed"}
_ENOUGH_FOR_KAPPA = 8
"""Fewest configurations for which the agreement of operators is reported."""
_NAMED = 5


def lead(summaries: Sequence[Summary], *, simultaneous: bool = False) -> str:
    """Return the introduction to the verdicts of some runs: the comparison, and the choice of words."""
    both = "“p adj.” and `ice report --simultaneous`"
    lines = [line for summary in summaries for line in summary.configurations]
    protocols = [protocol_of(line.flags) for line in lines if line.n]
    if protocols and all(each.fdr is not None for each in protocols):
        both = f"adjusted p-values (Benjamini–Hochberg, to be read at {protocols[0].fdr:.2f})"
    several = f"Each verdict is about one configuration; {both} allow for how many there are."
    act = " or ".join(dict.fromkeys(_ACTS[line.direction] for line in lines))
    ranked = " or ".join(dict.fromkeys("marked" if line.k is None else "top-ranked" for line in lines))
    nulls = dict.fromkeys(line.null for line in lines)
    matched = ", ".join(null for null in nulls if null != SIZE)
    also = f" (some also matched by {matched})" if SIZE in nulls else f" and matched by {matched}"
    return (
        f"Each explanation's {ranked} {units_of(summaries)} are {act}, and random sets of the same "
        f"size{also if matched else ''} are {act} in the same way. The win rate is the share of random sets that the "
        f"explanation beats{_chance(lines)}. "
        f"{_words(protocols)} {SIMULTANEOUS if simultaneous else several}"
    )


def _words(protocols: Sequence[Protocol]) -> str:
    """Return the rule of the words."""
    points = {each.words == "point" for each in protocols}
    if points == {True}:
        return POINT_WORDS
    return (
        f"{'Unless its protocol says otherwise, a' if True in points else 'A'} word is given only where the whole 95 % "
        "interval allows it. The words are anti-faithful below 50 %, better than random "
        f"above 50 %, weakly faithful from {THRESHOLD} on, faithful above {100 * stats.FAITHFUL:g} %, and random "
        "within ±5 pp where it is between 45 and 55 %. Otherwise the explanation is not distinguishable from random, "
        f"or undecidable where {100 * stats.UNDECIDABLE_TIES:.0f} % of sets or more tie."
    )


def in_first_setting(lines: Sequence[SummaryLine | AgreementLine]) -> Collection[Configuration]:
    """Return the first setting of each attribution."""
    return {line.attribution: place_of(line) for line in reversed(lines)}.values()


def place_of(line: SummaryLine | AgreementLine | RobustnessLine) -> Configuration:
    """Return the configuration of a line, whatever its operator."""
    return Configuration(line.attribution, "", line.direction, line.k, line.null)


def units_of(summaries: Sequence[Summary]) -> str:
    """Return the name of what explanations choose from: steps of chains, or units of texts."""
    return "steps" if all(summary.chains is not None for summary in summaries) else "units"


def _chance(lines: Sequence[SummaryLine]) -> str:
    """Return the rule for ties, and the resulting win rate of chance."""
    if (strict := {is_strict(line) for line in lines if has_ties(line)}) == {True, False}:
        return ". Ties count half, and 50 % is chance, or they are lost, and chance is below; each sentence says which"
    if strict == {True}:
        return ". Ties are lost, as in the protocol of the run: chance is below 50 % by half of the share that ties"
    return ", ties counted half: 50 % is chance" if strict else ": 50 % is chance"


def has_ties(line: SummaryLine) -> bool:
    """True where the share of sets that tie prints as more than 0.0 %."""
    return line.tie_rate is not None and round(line.tie_rate, 3) > 0


def over_all_sentence(line: RobustnessLine, units: str) -> str:
    """Return one sentence on all operators."""
    sentences = {
        "robust": f"It is at {THRESHOLD} or above under every operator.",
        "weak under all operators": f"It is below {THRESHOLD} under every operator.",
        "operator-dependent": f"The operators contradict each other: the answer depends on how {units} are removed.",
    }
    return sentences.get(line.word, "It is not certain whether the operators agree.") if line.word else ""


def setting_of(place: Configuration) -> str:
    act = "keeping" if place.direction == "sufficiency" else "removing"
    null = "" if place.null == SIZE else f", random sets matched by {place.null}"
    if place.k is None:
        return f"{act} what it marks{null}"
    chosen = "as many top units as it has peaks" if place.k == DYNAMIC else f"the top {100 * place.k:g} %"
    return f"{act} {chosen}{null}"


def silence(lines: Sequence[SummaryLine], units: str) -> str:
    """Return conclusions that a reader might draw from the verdicts, and must not."""
    words = {line.verdict.word for line in lines if line.verdict is not None}
    limits = [line.detectable_win_rate for line in lines if line.detectable_win_rate is not None]
    seen = f"; a win rate under {percent(min(max(limits), 1.0))} may go unnoticed here" if limits else ""
    said: Mapping[tuple[stats.Word, ...], str] = {
        tuple(stats.POSITIVE): f"that these {units} are all the model looks at, or that people find them convincing",
        (stats.NOT_DISTINGUISHABLE, stats.NEAR_RANDOM): f"that the explanation is no better than chance{seen}",
        (stats.RANDOM,): "that the explanation is exactly as good as chance: it may be better or worse by up to 5 pp",
        (stats.UNDECIDABLE,): f"whether the explanation is right: most sets of {units} change nothing, whichever they "
        "are",
        (stats.ANTI_FAITHFUL,): f"why random {units} do better, or that another method or size would fare as badly",
    }
    parts = [sentence for these, sentence in said.items() if words.intersection(these)]
    return f"It does not say {', nor '.join(parts)}." if parts else "It says nothing for or against the explanation."


def notes(*summaries: Summary, columns: TableColumns | None = None) -> list[str]:
    """Return notes beside the tables of some runs, each once; those on chains and cited answers come first.

    `columns` are those of `summary_table`.
    """
    found = [*cot_notes(*summaries), *citation_notes(*summaries)]
    found += [PAPER_COLUMNS] if in_paper_columns(summaries, columns) else []
    found += itertools.chain.from_iterable(map(_notes_of_run, summaries))
    found += [
        f"{' and '.join(each.operators)} agree on the word with weighted κ = {each.kappa:.2f} over "
        f"{each.n_configurations} configurations."
        for each in kappas([summary.configurations for summary in summaries])
        if each.kappa is not None and each.n_configurations >= _ENOUGH_FOR_KAPPA
    ]
    return list(dict.fromkeys(found))


def _notes_of_run(summary: Summary) -> Iterator[str]:
    lines, of_steps = summary.configurations, summary.chains is not None
    meanings = _STEP_FLAGS if of_steps else FLAGS if summary.citations is None else _CLAIM_FLAGS
    # Where some examples drop out for one attribution only, the others have more.
    judged = max((line for line in lines if line.accuracy is not None), key=lambda line: line.n, default=None)
    if judged is not None and not of_steps:
        yield f"The model is right on {percent(judged.accuracy)} of the examples."
    if any(line.n for line in lines):
        rates = [line.detectable_win_rate for line in lines if line.detectable_win_rate is not None]
        ends = (min(rates), max(rates)) if rates else ()
        limits = dict.fromkeys(percent(rate) if rate <= 1 else "none (too few examples)" for rate in ends)
        smallest = " to ".join(limits) or "unknown (one example, or no spread)"
        yield f"Smallest mean win rate that can be distinguished from chance (power 80 %): {smallest}."
    uncertain = [line for line in lines if line.verdict and line.verdict.word == stats.NOT_DISTINGUISHABLE]
    if any(line.p_value is not None and line.p_value <= 0.05 for line in uncertain):
        yield (
            "p tests if the explanation may be a random set. It may be small although the interval covers 50 %: the "
            "interval must hold for every win rate in it. Verdicts follow the interval alone."
        )
    yield from _skipped(lines)
    yield from _single_examples(lines, of_steps=of_steps)
    yield from _disagreements(summary.agreement)
    for flag in sorted({flag for line in lines for flag in line.flags}):
        flagged = [f"{line.attribution} under {line.operator}" for line in lines if flag in line.flags]
        where = "" if len(flagged) == len(lines) else ", ".join(dict.fromkeys(flagged))
        yield flag_note(flag, where=where, meanings=meanings)


def _skipped(lines: Sequence[SummaryLine]) -> Iterator[str]:
    """Yield the number of skipped examples, and the attributions for which it is higher."""
    counts = dict[str, int]()
    for line in lines:
        counts[line.attribution] = max(line.n_skipped, counts.get(line.attribution, 0))
    least = min(counts.values(), default=0)
    for name, count in [("", least), *(each for each in counts.items() if each[1] > least)]:
        if count:
            were = "was" if count == 1 else "were"
            yield f"{counted(count, 'example')} {were} skipped{name and f' for {name}'}; examples.parquet says why."


def _single_examples(lines: Sequence[SummaryLine], *, of_steps: bool) -> Iterator[str]:
    """Yield the reason why no single example may be called significant."""
    unsaid = {(line.significant_reason, line.significant_floor_share) for line in lines if line.significant_reason}
    yield from (f"Single examples: {reason}." for reason in sorted(str(why) for why, floor in unsaid if floor is None))
    if shares := [floor for _, floor in unsaid if floor is not None]:
        limit = "" if max(shares) > 1 else f" unless at least {percent(max(shares))} of them are"
        few = "sets of steps" if of_steps else "random sets (m)"
        yield f"There are too few {few} to call single examples significant{limit}. Mean win rates are not affected."


def _disagreements(lines: Sequence[AgreementLine]) -> Iterator[str]:
    """Yield the examples that two operators judge most differently, once per attribution."""
    named: dict[tuple[str, str, str], list[tuple[str, ...]]] = {}
    for line in lines:
        if line.disagree:
            null = "" if line.null == SIZE else f" (null: {line.null})"
            named.setdefault((line.attribution, null, " and ".join(line.operators)), []).append(line.disagree)
    for (attribution, null, operators), ranked in named.items():
        by_rank = [each for same in itertools.zip_longest(*ranked) for each in same if each is not None]
        yield Note(
            f"{attribution}{null}: {operators} disagree most about the examples ",
            examples=list(dict.fromkeys(by_rank))[:_NAMED],
            rest="; `ice show` prints what the model saw of them.",
            attribution=attribution,
        )


def flag_note(flag: str, *, where: str = "", meanings: Mapping[str, str] = FLAGS) -> Note:
    """Return the meaning of a flag and the rows it is about, followed by its name in the files."""
    said = meanings.get(flag, flag.replace("_", " "))
    return Note(f"{where}: {said}" if where else f"{said[:1].upper()}{said[1:]}", flag=flag)


def plan_notes(plan: Plan) -> list[str]:
    """Return sentences on the basis of a plan's numbers."""
    pilot = (
        "From a pilot of {n:.0f} examples with {m:.0f} random sets each, in {seconds:.0f} s; loading the model is not "
    )
    found = [f"{pilot.format(**plan.pilot)}counted."]
    if plan.peak_memory_gb is not None:
        found.append(f"Peak memory of the pilot: {plan.peak_memory_gb:.2f} GB; batches of the run are no larger.")
    if plan.cheapest_m is not None and plan.cheapest_m >= 1:  # less: the sets of the pilot add negligible noise
        found.append(f"The fewest tokens for a given interval: about {plan.cheapest_m:.0f} random sets per example.")
    found.append("The widest interval and the largest detectable win rate of all configurations are shown.")
    return [*found, *plan.warnings]
