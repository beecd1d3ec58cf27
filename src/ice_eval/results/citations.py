"""Statistics of cited answers: which citations carry their claim, and one word per claim where its test allows one.

A set of passages *carries* a claim if keeping it alone preserves half of what all passages add to the claim's
log-probability. Claims whose probability all passages together change by less than a factor of two are *parametric*.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from ice_eval import stats
from ice_eval.operators import operators
from ice_eval.records import SCORED, Kind
from ice_eval.results import records
from ice_eval.results.comparisons import ScoredExamples, ScoreMatrices
from ice_eval.results.examples import groups_among
from ice_eval.results.folder import RunFolder
from ice_eval.results.ledger import WEAK_SIGNAL, Names
from ice_eval.results.outcomes import Outcomes, mean_of
from ice_eval.results.records import ClaimLine, Configuration, RunSettings

Values = NDArray[np.float64]
CITED = "cited"
"""The attribution that tests the answer's own citations."""
CARRIES = 0.5
"""Share of the passages' effect that a set must preserve to carry a claim."""
_ENOUGH = CARRIES - 1e-9  # round-off must not decide
FACTOR = 2.0
"""Passages that change the probability of a claim by less than this factor do not matter for it."""
LEVEL = 0.05
"""Level of the test of one claim."""
WORDS: tuple[records.ClaimWord, ...] = get_args(records.ClaimWord)


def citation_summary(
    folder: RunFolder, config: RunSettings, scored: Iterable[ScoredExamples], outcomes: Mapping[Configuration, Outcomes]
) -> records.CitationSummary:
    """Return what a run about cited answers shows, from its examples with their rows and outcomes."""
    carried: dict[Configuration, list[_Carried]] = {}
    claims, skipped, groups = list[ClaimLine](), Counter[str](), set[str]()
    is_open = folder.manifest().label_scoring == "given"
    n_tokens = _scored_tokens(folder) if is_open else {}
    leading = "delete" if "delete" in config.operators else config.operators[0]
    for each in scored:
        skipped.update(each.examples.skip_reasons.values())
        groups.update(group for group in each.examples.groups if group is not None)
        limits = np.array([math.log(FACTOR) / max(n_tokens.get(name, 1), 1) for name in each.examples.ids])
        limits = limits if is_open else np.full(len(limits), WEAK_SIGNAL)
        for cell in _sufficient(config):
            found = _Kept(each, cell, limits)
            if not operators.get(cell.operator).needs_fills:  # the effect of other passages is not that of none
                carried.setdefault(cell, []).extend(found.carried())
            if cell.attribution == CITED and cell.operator == leading:
                removed = None  # the scores in which the cited passages are removed, where the run has them
                if "necessity" in config.directions:
                    removed = each.compared(cell._replace(direction="necessity"), (cell.operator,))
                tests = zip(*(outcomes[cell].column(name).tolist() for name in ("win_rate", "p_value")), strict=True)
                by_name = dict(zip(outcomes[cell].ids, tests, strict=True))
                claims += _claims(found, removed, n_tokens, by_name)
    return records.CitationSummary(
        n_answers=len(groups),
        n_claims=sum(claim.word is not None for claim in claims),
        operator=leading,
        scores="log-probabilities" if is_open else "answers",
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


class _Kept:
    """Scores of sets that are kept alone, under one configuration."""

    def __init__(self, scored: ScoredExamples, cell: Configuration, limits: Values) -> None:
        self.scored, self.limits = scored, limits
        """(examples,): least effect of all passages that is worth asking who carries it."""
        self.found = found = scored.compared(cell, (cell.operator,))
        signal = found.full - found.empty
        signal[signal < limits] = np.nan
        # Shares of the passages' effect that rationales and random sets preserve; NaN where there is next to none.
        self.own = (found.probability - found.empty) / signal
        self.sets = (found.measure - found.empty[:, None]) / signal[:, None]

    def carried(self) -> Iterator[_Carried]:
        """Yield the claims to which passages add something."""
        examples, m = self.scored.examples, self.scored.config.m
        for place in np.flatnonzero((self.found.n > 0) & ~np.isnan(self.own)).tolist():
            own, sets = float(self.own[place] >= _ENOUGH), self.sets[place, : self.found.n[place]] >= _ENOUGH
            # Where all sets are known, a random one may be the rationale as well.
            null = float(np.mean(sets) if len(sets) >= m else np.mean([*sets, own]))
            yield _Carried(examples.ids[place], examples.groups[place], own, null)

    def best_other(self, place: int, cited: Collection[int]) -> tuple[tuple[int, ...], float | None]:
        """Return the random set without a cited passage that preserves most, and the share that it preserves."""
        n = self.found.n[place]
        shares, rows = self.sets[place, :n], self.found.null_rows[place, :n]
        for best in np.argsort(-shares, kind="stable").tolist() if not np.isnan(shares).any() else ():
            [record] = self.scored.ledger.records(rows[best : best + 1])
            if set(cited).isdisjoint(record.kept):
                return tuple(record.kept), float(shares[best])
        return (), None


def _groups_of(claims: Sequence["_Carried | ClaimLine"]) -> stats.Groups:
    return groups_among([claim.example_id for claim in claims], [claim.group for claim in claims])


def _carried_line(cell: Configuration, found: Sequence[_Carried]) -> records.CarriedLine:
    groups = _groups_of(found)
    own, own_ci = mean_of([each.own for each in found], groups)
    null, null_ci = mean_of([each.null for each in found], groups)
    return records.CarriedLine(
        attribution=cell.attribution,
        operator=cell.operator,
        k=cell.k,
        n=len(found),
        carried=own,
        carried_ci=own_ci,
        carried_random=null,
        carried_random_ci=null_ci,
    )


def _claims(
    kept: _Kept, removed: ScoreMatrices | None, n_tokens: Mapping[str, int], tests: Mapping[str, tuple[float, float]]
) -> Iterator[ClaimLine]:
    """Yield every claim with its word; claims without numbers have a reason instead."""
    examples, found = kept.scored.examples, kept.found
    for place, name in enumerate(examples.ids):
        cited = tuple(np.flatnonzero(examples.vector(CITED, place) > 0).tolist())
        line = ClaimLine(example_id=name, group=examples.groups[place], cites=cited, word=None)
        if place in found.errors:
            yield replace(line, reason=found.errors[place])
            continue
        other, other_preserved = kept.best_other(place, cited)
        win_rate, p_value = tests[name]
        line = replace(
            line,
            n_units=int(examples.n_units[place]),
            n_tokens=n_tokens.get(name),
            score_full=float(found.full[place]),
            score_empty=float(found.empty[place]),
            score_kept=float(found.probability[place]),
            score_removed=None if removed is None or place in removed.errors else float(removed.probability[place]),
            preserved=None if np.isnan(kept.own[place]) else float(kept.own[place]),
            win_rate=win_rate,
            p_value=p_value,
            n_sets=int(found.n[place]),
            other=other,
            other_preserved=other_preserved,
        )
        word, reason = _word(line, float(kept.limits[place]))
        yield replace(line, word=word, reason=reason)


def _word(line: ClaimLine, limit: float) -> tuple[records.ClaimWord, str]:
    """Return the word of a claim and the reason for it; `limit` is the least effect that counts.

    - parametric: all passages together change its probability by less than a factor of two;
    - faithful: the cited passages carry it, and beat random sets of their size in the claim's own test;
    - uncited but used: they do not carry it, and a set without any of them does;
    - post-rationalised: they do not carry it, the test could have shown a difference and did not, and the claim is as
      probable without them;
    - undetermined: none of these, or too few sets for a test.
    """
    assert line.score_full is not None and line.score_empty is not None and line.p_value is not None
    signal, carries = line.score_full - line.score_empty, (line.preserved or 0.0) >= _ENOUGH
    if signal <= -limit:
        return "undetermined", "the passages make it less probable"
    if signal < limit:
        return "parametric", "without any passage it is about as probable"
    if not carries and (line.other_preserved or 0.0) >= _ENOUGH:
        return "uncited but used", "other passages carry it, and those that it cites do not"
    if 1 / (line.n_sets + 1) > LEVEL:
        return "undetermined", f"{line.n_sets} other sets of passages are too few for a test of a single claim"
    if line.p_value <= LEVEL and carries:
        return "faithful", f"its citations carry it and beat random passages (p = {line.p_value:.3g})"
    if carries:
        return "undetermined", "its citations carry it, but other passages do as well"
    if line.p_value > LEVEL and line.score_removed is not None and line.score_full - line.score_removed < limit:
        return "post-rationalised", "its citations are no better than random, and it is as probable without them"
    return "undetermined", "its citations do not carry it, and something is lost without them"


def _word_lines(claims: Sequence[ClaimLine]) -> Iterator[records.WordLine]:
    """Yield the share of each word, with an interval in which claims of one answer count together."""
    used = [claim for claim in claims if claim.word is not None]
    groups = _groups_of(used)
    for word in WORDS if used else ():
        flags = np.array([claim.word == word for claim in used], dtype=np.float64)
        share, interval = float(flags.mean()), stats.mean_interval(flags, groups=groups)
        yield records.WordLine(word=word, n=int(flags.sum()), share=share, share_ci=interval)


def _scored_tokens(folder: RunFolder) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in folder.parts():
        names = Names(folder.columns(part).ids, (), (), ())
        ledger = folder.ledger(part, names, inputs=True, kinds=(Kind.FULL,))
        totals = np.append(0, np.cumsum(ledger.inputs.segments == SCORED))[ledger.inputs.offsets]
        for example, count in zip(ledger.head["example"].tolist(), np.diff(totals).tolist(), strict=True):
            found[ledger.names.examples[example]] = int(count)
    return found
