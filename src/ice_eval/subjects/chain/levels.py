"""Tokens and steps side by side: the same chains, the same attributions, one score, two units.

For models on this machine: the score is the log-probability of the model's own answer after what is kept of its chain.
"""

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np

from ice_eval import stats
from ice_eval.attributions import PerRow
from ice_eval.errors import DataError
from ice_eval.files import write_atomically
from ice_eval.models import Model
from ice_eval.pipeline import Reporter
from ice_eval.rationales import Units, n_sets, null_of, random_sets, set_size, top_k, units_of
from ice_eval.records import Direction, KeepMask, KeepMasks
from ice_eval.results import RunFolder
from ice_eval.results.chains import LEVELS, level_tests, sign_of
from ice_eval.seeding import rng_for
from ice_eval.subjects.chain.local import STEP_ATTRIBUTIONS, AnswerScorer, ChainUnit, EncodedChain, encode_chain
from ice_eval.subjects.chain.problems import Case

_SETS = 50
"""Random sets of each size."""
_DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
_UNITS: tuple[ChainUnit, ...] = get_args(ChainUnit)


@dataclass(frozen=True, kw_only=True)
class AnswerTest:
    """The top units of one attribution of one chain, against random sets of as many.

    Scores are log-probabilities of the model's own answer. A rationale wins against a set if the answer stays more
    probable when it is kept (sufficiency), or gets less probable when it is removed (necessity).
    """

    problem_id: str
    unit: ChainUnit
    attribution: str
    direction: Direction
    k: float
    n_units: int
    size: int
    """Units of the rationale; `size / n_units` is the share that k came to."""
    rationale: Units
    m: int
    """Number of sets that it was compared with."""
    exact: bool
    """True if these are all other sets there are."""
    win_rate: float
    """Share of them that it beats, ties one half."""
    tie_rate: float
    p_value: float
    """Share of sets, the rationale included, that do at least as well."""
    p_lower: float
    """Share of sets, the rationale included, that do at most as well."""
    effect_size: float | None
    """Distance from the mean of the sets in their standard deviations, positive where it does better.

    None where they do not differ."""
    score: float
    """Score of the answer when the rationale alone is kept, or removed (necessity)."""
    score_full: float
    """Score of the answer after the whole chain."""
    score_empty: float
    """Score of the answer after no step at all."""
    null: tuple[float, ...]
    """Scores of the sets that it was compared with."""


@dataclass(frozen=True)
class _Family:
    """The sets of one size of one unit that are scored in one direction: random ones, then rationales."""

    unit: ChainUnit
    direction: Direction
    n_units: int
    size: int
    drawn: KeepMasks
    rationales: dict[str, KeepMask]
    """By attribution."""

    @property
    def rows(self) -> KeepMasks:
        masks = np.concatenate([self.drawn, np.stack(list(self.rationales.values()))])
        return masks if self.direction == "sufficiency" else ~masks


def answer_tests(
    scorer: AnswerScorer,
    chain: EncodedChain,
    *,
    attributions: Sequence[str] = STEP_ATTRIBUTIONS,
    k: Sequence[float] = (0.2,),
    directions: Sequence[Direction] = _DIRECTIONS,
    units: Sequence[ChainUnit] = _UNITS,
    m: int = 50,
    seed: int = 0,
) -> list[AnswerTest]:
    """Test attributions of one chain, with tokens and with steps as units.

    The random sets of a problem, unit and size are drawn once, whatever the attributions; where there are m + 1 sets
    or fewer, all are used and the test is exact. A chain of a single unit has nothing to compare and gives no record.

    Args:
        scorer: Scores with one model.
        chain: The chain that is explained.
        attributions: Names of methods.
        k: Shares of units in a rationale.
        directions: Directions; rationales are kept, or removed.
        units: Units that are kept or removed.
        m: Random sets per test.
        seed: Of the sets, and of what decides ties.

    Raises:
        DataError: Numbers of an attribution, or scores, are not finite.
    """
    problem = chain.problem_id
    counts = {unit: n_units for unit in units if (n_units := chain.cut_in(unit).n_units) > 1}
    vectors = scorer.attributions(chain, attributions, units=list(counts), seed=seed)
    families = []
    for unit, n_units in counts.items():
        for size in dict.fromkeys(set_size(n_units, share) for share in k):
            drawn = random_sets(n_units, size, m + 1, seed=seed, example_id=problem)
            rngs = {name: rng_for(seed, problem, "ties", name) for name in attributions}
            tops = {name: top_k(vectors[unit][name], size, rng=rng) for name, rng in rngs.items()}
            families += [_Family(unit, direction, n_units, size, drawn, tops) for direction in directions]
    if not families:
        return []
    all_or_none = np.array([[True], [False]]).repeat(chain.steps.n_units, axis=1)
    rows: list[tuple[ChainUnit, KeepMasks]] = [("step", all_or_none), *((each.unit, each.rows) for each in families)]
    scores = scorer.scores_of(chain, rows)
    (full, empty), *scored = np.split(scores, np.cumsum([len(keep) for _, keep in rows])[:-1])
    by_family = zip(families, scored, strict=True)
    tests = [test for family, own in by_family for test in _tests(chain, family, own, k, m, float(full), float(empty))]
    order = {key: place for place, key in enumerate(itertools.product(units, attributions, directions, k))}
    return sorted(tests, key=lambda test: order[test.unit, test.attribution, test.direction, test.k])


def _tests(
    chain: EncodedChain, family: _Family, scores: PerRow, k: Sequence[float], m: int, full: float, empty: float
) -> Iterator[AnswerTest]:
    sign = sign_of(family.direction)
    of_sets, of_rationales = scores[: len(family.drawn)], scores[len(family.drawn) :]
    for (name, rationale), score in zip(family.rationales.items(), of_rationales.tolist(), strict=True):
        null = null_of(rationale, family.drawn, m)
        compared = stats.compare(sign * score, sign * of_sets[null])
        for share in k:
            if set_size(family.n_units, share) == family.size:
                yield AnswerTest(
                    problem_id=chain.problem_id,
                    unit=family.unit,
                    attribution=name,
                    direction=family.direction,
                    k=share,
                    n_units=family.n_units,
                    size=family.size,
                    rationale=units_of(rationale),
                    m=len(null),
                    exact=n_sets(family.n_units, family.size) <= m + 1,
                    win_rate=compared.win_rate,
                    tie_rate=compared.tie_rate,
                    p_value=compared.p_value,
                    p_lower=compared.p_lower,
                    effect_size=compared.effect_size,
                    score=score,
                    score_full=full,
                    score_empty=empty,
                    null=tuple(of_sets[null].tolist()),
                )


def write_levels(
    folder: RunFolder, cases: Sequence[Case], model: Model, *, k: Sequence[float], seed: int, reporter: Reporter
) -> None:
    """Test the attributions of every chain in both units; what the file holds already is kept."""
    scorer = AnswerScorer(model)
    kept = list(level_tests(folder.path))
    known = {(line["problem_id"], line["k"]) for line in kept}
    reporter.say(f"tokens and steps: {len(cases)} chains, {_SETS} random sets each.")
    for case in cases:
        missing = [share for share in k if (case.id, share) not in known]
        if missing:
            kept += _tested(scorer, model, case, missing, seed)
            _write(folder.path / LEVELS, kept)


def _tested(scorer: AnswerScorer, model: Model, case: Case, shares: Sequence[float], seed: int) -> list[dict[str, Any]]:
    try:
        chain = encode_chain(model, case.problem, case.texts, case.own.value)
        tests = answer_tests(scorer, chain, k=shares, m=_SETS, seed=seed)
    except DataError as exc:  # too long for the model's window
        return [{"problem_id": case.id, "k": k, "error": str(exc)} for k in shares]
    return [asdict(test) for test in tests]


def _write(path: Path, lines: Sequence[dict[str, Any]]) -> None:
    with write_atomically(path) as stream:
        for line in lines:
            stream.write(json.dumps(line, ensure_ascii=False, allow_nan=False).encode("utf-8") + b"\n")
