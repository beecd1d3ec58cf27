"""Gates for continuous integration: verdicts with an unwanted word, and too many failed examples."""

from collections.abc import Iterator, Sequence

from ice_eval._registry import did_you_mean
from ice_eval.analysis.chains import headlines
from ice_eval.errors import ConfigError
from ice_eval.nulls import SIZE
from ice_eval.report import citations
from ice_eval.report.chains import numbered
from ice_eval.results import Summary, SummaryLine
from ice_eval.results.citations import CITED
from ice_eval.results.outcomes import ALL
from ice_eval.results.records import AgreementLine
from ice_eval.results.summary import CONTROL, dropped
from ice_eval.stats import PATTERNS, WEAKLY_FAITHFUL, ReasoningVerdict
from ice_eval.stats import WORDS as VERDICTS
from ice_eval.table import percent, share

DISAGREE = "operators disagree"
UNDETERMINED = "undetermined"
WORDS = (*VERDICTS, UNDETERMINED, DISAGREE, *PATTERNS)
OF_CLAIMS = ("uncited but used", "post-rationalised")
"""Words that only claims of cited answers have; `parametric` is one of theirs, too."""
_PARAMETRIC = "parametric"
_NAMED = 5
"""Claims that a line names."""


def words_of(given: Sequence[str]) -> tuple[str, ...]:
    """Read words from comma-separated lists; raise `ConfigError` for one that is not in `WORDS` or `OF_CLAIMS`."""
    found, known = tuple(word.strip() for text in given for word in text.split(",")), (*WORDS, *OF_CLAIMS)
    for word in found:
        if word not in known:
            raise ConfigError(f"no verdict '{word}' for --fail-if; use one or several of: {', '.join(known)}.")
    return found


def failures(summaries: Sequence[Summary], words: Sequence[str], *, attributions: Sequence[str] = ()) -> list[str]:
    """Return a line for every configuration whose verdict is one of the words, and for every disagreement.

    The average over operators is skipped, since its operators are checked, and so is the random control, which should
    be indistinguishable from random. Chains of thought have the leading verdict under each operator. It fails for every
    pattern that it does not exclude; no verdict, or a noisy one, excludes none. "decorative" fails for "parametric":
    both say that the answer does not need the steps. Cited answers fail if a single claim is "parametric", "uncited but
    used" or "post-rationalised". With `attributions` only theirs count, and claims only with `cited`; raises
    `ConfigError` if no run has an attribution of that name.
    """
    known = dict.fromkeys(line.attribution for summary in summaries for line in summary.configurations)
    for name in attributions:
        if name not in known:
            raise ConfigError(
                f"no attribution '{name}' here{did_you_mean(name, list(known))} Known: {', '.join(known)}."
            )

    def named(line: SummaryLine | AgreementLine, operators: str) -> str:
        run = f"{line.model} on {line.task}, " if len(summaries) > 1 else ""
        null = "" if line.null == SIZE else f", null: {line.null}"
        return f"{run}{line.attribution} under {operators} (k = {share(line.k)}, {line.direction}{null})"

    def counts(line: SummaryLine | AgreementLine) -> bool:
        return line.attribution in attributions if attributions else line.attribution != CONTROL

    found = list(_of_chains(summaries, words))
    if not attributions or CITED in attributions:
        found += _of_claims(summaries, words)
    for summary in summaries:
        for line in summary.configurations:
            if line.operator != ALL and counts(line) and (line.verdict.word if line.verdict else UNDETERMINED) in words:
                found.append(f"{named(line, line.operator)}: {line.verdict or UNDETERMINED}")
        for pair in summary.agreement if DISAGREE in words else ():
            if pair.crosses_threshold == "yes" and counts(pair):
                where = named(pair, " and ".join(pair.operators))
                found.append(f"{where}: win rates on opposite sides of {100 * WEAKLY_FAITHFUL:g} %")
    return found


def losses(summaries: Sequence[Summary], most: float) -> list[str]:
    """Return a line for every run in which more than this share of examples failed and has no result."""
    found = [dropped(summary) for summary in summaries]
    return [
        f"{'' if len(found) == 1 else f'run {number}: '}{each.n} of {each.total} examples ({percent(each.share)}) have "
        f"no result{each.where and f' {each.where}'}, more than --max-dropped {most:g}"
        for number, each in enumerate(found, start=1)
        if each.share > most
    ]


def _unasked(subject: str, asked: Sequence[str], judged: Sequence[object]) -> Iterator[str]:
    if asked and not judged:
        named = ", ".join(f"'{word}'" for word in asked)
        yield f"no run here is about {subject}, so none can exclude {named}; leave it out of --fail-if."


def _of_chains(summaries: Sequence[Summary], words: Sequence[str]) -> Iterator[str]:
    """Yield a line for every leading verdict that does not exclude the words, or that is missing."""
    judged, asked = numbered(summaries), [word for word in words if word in PATTERNS]
    if citations.numbered(summaries) and not judged:
        asked = [word for word in asked if word != _PARAMETRIC]
    yield from _unasked("chains of thought", asked, judged)
    for run in judged:
        chains = f"{run.name}: chains" if run.name else "chains"
        lines = headlines(run.content)
        if not lines and (asked or UNDETERMINED in words):
            yield f"{chains}: {UNDETERMINED} (no chain could be evaluated)"
        for line in lines:
            if not _held(line.verdict).isdisjoint(words):
                yield f"{chains} under {line.operator} (k = {share(line.k)}): {line.verdict or UNDETERMINED}"


def _of_claims(summaries: Sequence[Summary], words: Sequence[str]) -> Iterator[str]:
    """Yield a line for every word that claims of a run have, and for words that no claim could have."""
    judged, asked = citations.numbered(summaries), [word for word in words if word in OF_CLAIMS]
    yield from _unasked("cited answers", asked, judged)
    for number, content in judged:
        run = f"run {number}: " if number else ""
        if asked and not content.n_claims:
            yield f"{run}claims: {UNDETERMINED} (no claim has a word)"
        for word in (each for each in words if each in (*OF_CLAIMS, _PARAMETRIC)):
            claims = [claim.example_id for claim in content.claims if claim.word == word]
            more = ", …" if len(claims) > _NAMED else ""
            if claims:
                yield f"{run}{len(claims)} of {content.n_claims} claims are {word}: {', '.join(claims[:_NAMED])}{more}"


def _held(verdict: ReasoningVerdict | None) -> set[str]:
    """Return the words that a verdict on chains does not exclude; `parametric` is `decorative`, too."""
    words = set[str]() if verdict is None else set(verdict.words)
    held = set[str](PATTERNS) if not words or "noisy" in words else set(words)
    held |= {"decorative"} if "parametric" in words else set()
    return held if len(words) == 1 else held | {UNDETERMINED}
