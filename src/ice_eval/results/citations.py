"""Statistics of cited answers: which citations carry their claim, and one word per claim where its test allows one.

A set of passages *carries* a claim if keeping it alone preserves half of what all passages add to the claim's
log-probability. Claims to which passages add next to nothing are *parametric*: the model does not need them for it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ice_eval import stats
from ice_eval.records import SCORED, Kind
from ice_eval.results.comparisons import ScoredExamples, ScoreMatrices
from ice_eval.results.folder import RunFolder
from ice_eval.results.ledger import WEAK_SIGNAL, Names
from ice_eval.results.records import (
    CarriedLine,
    CitationSummary,
    ClaimLine,
    ClaimWord,
    Configuration,
    RunSettings,
    WordLine,
)

Values = NDArray[np.float64]
CITED = "cited"
"""The attribution that tests the answer's own citations."""
CARRIES = 0.5
"""Share of the passages' effect that a set must preserve to carry a claim."""
LEVEL = 0.05
"""Level of the test of one claim."""
WORDS: tuple[ClaimWord, ...] = ("faithful", "uncited but used", "post-rationalised", "parametric", "undetermined")


def citation_summary(folder: RunFolder, config: RunSettings, scored: Iterable[ScoredExamples]) -> CitationSummary:
    """Return what a run about cited answers shows, from its examples with their rows."""
    carried: dict[Configuration, list[_Carried]] = {}
    claims, skipped, groups = list[ClaimLine](), Counter[str](), set[str]()
    n_tokens = _scored_tokens(folder)
    for each in scored:
        skipped.update(each.examples.skip_reasons.values())
        groups.update(group for group in each.examples.groups if group is not None)
        for cell in _sufficient(config):
            found = each.compared(cell, (cell.operator,))
            carried.setdefault(cell, []).extend(_carried(each, found))
            if cell.attribution == CITED and cell.operator == config.operators[0]:
                claims += _claims(each, found, _without_cited(each, config, cell), n_tokens)
    return CitationSummary(
        n_answers=len(groups),
        n_claims=sum(claim.word is not None for claim in claims),
        operator=config.operators[0],
        skipped=dict(skipped.most_common()),
        words=tuple(_word_lines(claims)),
        carried=tuple(_carried_line(cell, found) for cell, found in carried.items()),
        claims=tuple(claims),
    )


def _sufficient(config: RunSettings) -> Iterator[Configuration]:
    """Yield the configurations in which rationales are kept, with the null of all sets of their size."""
    for name in config.attributions if "sufficiency" in config.directions else ():
        for k in [None] if name in config.own_size else config.k:
            for operator in config.operators:
                yield Configuration(name, operator, "sufficiency", k, config.nulls[0])


class _Carried(NamedTuple):
    """One claim whose passages add something."""

    example_id: str
    group: str | None
    own: float
    """1 if the rationale carries the claim, else 0."""
    null: float
    """Share of the random sets that carry it."""


def _carried(scored: ScoredExamples, found: ScoreMatrices) -> Iterator[_Carried]:
    for place in np.flatnonzero((found.n > 0) & (found.full - found.empty >= WEAK_SIGNAL)).tolist():
        sets = _preserved(found, place, found.measure[place, : found.n[place]])
        own = float(_preserved(found, place, found.probability[place]) >= CARRIES)
        examples = scored.examples
        yield _Carried(examples.ids[place], examples.groups[place], own, float(np.mean(sets >= CARRIES)))


def _preserved(found: ScoreMatrices, place: int, scores: Values | float) -> Values:
    """Return the share of the passages' effect that scores preserve."""
    return np.asarray((scores - found.empty[place]) / (found.full[place] - found.empty[place]))


def _carried_line(cell: Configuration, found: Sequence[_Carried]) -> CarriedLine:
    groups = _groups([each.group for each in found])

    def mean(values: Sequence[float]) -> tuple[float | None, stats.Interval | None]:
        if not values:
            return None, None
        return float(np.mean(values)), stats.mean_interval(np.array(values), groups=groups)

    (own, own_ci), (null, null_ci) = mean([each.own for each in found]), mean([each.null for each in found])
    return CarriedLine(
        attribution=cell.attribution,
        operator=cell.operator,
        k=cell.k,
        n=len(found),
        carried=own,
        carried_ci=own_ci,
        carried_random=null,
        carried_random_ci=null_ci,
    )


def _groups(names: Sequence[str | None]) -> stats.Groups:
    return list(names) if len(set(names)) < len(names) else None


def _without_cited(scored: ScoredExamples, config: RunSettings, cell: Configuration) -> ScoreMatrices | None:
    """Return the scores in which the cited passages are removed; None where the run has none."""
    if "necessity" not in config.directions:
        return None
    return scored.compared(cell._replace(direction="necessity"), (cell.operator,))


def _claims(
    scored: ScoredExamples, found: ScoreMatrices, removed: ScoreMatrices | None, n_tokens: Mapping[str, int]
) -> Iterator[ClaimLine]:
    """Yield every claim with its word; claims without numbers have a reason instead."""
    examples, sound = scored.examples, found.n > 0
    rates = stats.compare_all(found.own_order[sound], found.order[sound], found.n[sound])
    number = np.cumsum(sound) - 1
    for place, name in enumerate(examples.ids):
        cited = tuple(np.flatnonzero(examples.vector(CITED, place) > 0).tolist())
        if place in found.errors:
            yield ClaimLine(
                example_id=name, group=examples.groups[place], cites=cited, reason=found.errors[place], word=None
            )
            continue
        signal = float(found.full[place] - found.empty[place])
        without = None if removed is None or place in removed.errors else float(removed.probability[place])
        other = _best_other(scored, found, place, set(cited))
        line = ClaimLine(
            example_id=name,
            group=examples.groups[place],
            cites=cited,
            n_units=int(examples.n_units[place]),
            n_tokens=n_tokens.get(name),
            score_full=float(found.full[place]),
            score_empty=float(found.empty[place]),
            score_kept=float(found.probability[place]),
            score_removed=without,
            preserved=float(_preserved(found, place, found.probability[place])) if signal >= WEAK_SIGNAL else None,
            win_rate=float(rates.win_rate[number[place]]),
            p_value=float(rates.p_value[number[place]]),
            n_sets=int(found.n[place]),
            other=other.units,
            other_preserved=other.preserved,
            word=None,
        )
        yield _with_word(line)


class _OtherSet(NamedTuple):
    units: tuple[int, ...] = ()
    preserved: float | None = None


def _best_other(scored: ScoredExamples, found: ScoreMatrices, place: int, cited: set[int]) -> _OtherSet:
    """Return the random set without a cited passage that preserves most."""
    if found.full[place] - found.empty[place] < WEAK_SIGNAL:
        return _OtherSet()
    rows = found.null_rows[place, : found.n[place]]
    shares = _preserved(found, place, found.measure[place, : found.n[place]])
    for best in np.argsort(-shares, kind="stable").tolist():
        [record] = scored.ledger.records(rows[best : best + 1])
        if cited.isdisjoint(record.kept):
            return _OtherSet(tuple(record.kept), float(shares[best]))
    return _OtherSet()


def _with_word(line: ClaimLine) -> ClaimLine:
    """Return a claim with its word and the reason for it.

    - parametric: passages add less than the weak-signal limit to the log-probability of a token;
    - faithful: the cited passages beat random sets of their size in the claim's own test;
    - uncited but used: they do not carry the claim, and a set without any of them does;
    - post-rationalised: the test could have shown a difference and did not, and the claim is as probable without them;
    - undetermined: none of these, or too few sets for a test.
    """
    assert line.score_full is not None and line.score_empty is not None and line.p_value is not None
    word: ClaimWord = "undetermined"
    if line.score_full - line.score_empty < WEAK_SIGNAL:
        word, reason = "parametric", "the model gives it the same probability without any passage"
    elif line.p_value <= LEVEL:
        word, reason = "faithful", f"its citations beat random passages (p = {line.p_value:.3g})"
    elif (line.preserved or 0.0) < CARRIES <= (line.other_preserved or 0.0):
        word, reason = "uncited but used", "other passages carry it, and those that it cites do not"
    elif 1 / (line.n_sets + 1) > LEVEL:
        reason = f"{line.n_sets} other sets of passages are too few for a test of a single claim"
    elif line.score_removed is not None and line.score_full - line.score_removed < WEAK_SIGNAL:
        word, reason = "post-rationalised", "its citations are no better than random, and it survives without them"
    else:
        reason = "its citations are no better than random, but it does not survive without them"
    return ClaimLine(**{**vars(line), "word": word, "reason": reason})


def _word_lines(claims: Sequence[ClaimLine]) -> Iterator[WordLine]:
    """Yield the share of each word, with an interval in which claims of one answer count together."""
    used = [claim for claim in claims if claim.word is not None]
    groups = _groups([claim.group for claim in used])
    for word in WORDS if used else ():
        flags = np.array([claim.word == word for claim in used], dtype=np.float64)
        share, interval = float(flags.mean()), stats.mean_interval(flags, groups=groups)
        yield WordLine(word=word, n=int(flags.sum()), share=share, share_ci=interval)


def _scored_tokens(folder: RunFolder) -> dict[str, int]:
    """Return the number of tokens of each claim."""
    found: dict[str, int] = {}
    for part in folder.parts():
        names = Names(folder.columns(part).ids, (), (), ())
        ledger = folder.ledger(part, names, inputs=True, kinds=(Kind.FULL,))
        totals = np.append(0, np.cumsum(ledger.inputs.segments == SCORED))[ledger.inputs.offsets]
        for example, count in zip(ledger.head["example"].tolist(), np.diff(totals).tolist(), strict=True):
            found[ledger.names.examples[example]] = int(count)
    return found
