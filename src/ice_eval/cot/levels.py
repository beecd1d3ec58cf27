"""Tokens and steps side by side: the same chains, the same attributions, one score, two units.

For models on this machine: the score is the log-probability of the model's own answer after what is kept of its chain.
"""

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from ice_eval import stats
from ice_eval.cot.cases import Case
from ice_eval.cot.config import CotConfig
from ice_eval.cot.local_chains import encode_chain
from ice_eval.cot.local_scores import AnswerScorer
from ice_eval.cot.local_tests import answer_tests
from ice_eval.errors import DataError
from ice_eval.files import write_atomically
from ice_eval.models import Model
from ice_eval.pipeline import Reporter
from ice_eval.results import RunFolder
from ice_eval.results.records import LevelLine
from ice_eval.seeding import rng_for

LEVELS = "levels.jsonl"
_SETS = 50
"""Random sets of each size."""
_METHODS = ("attention", "gradient")


def write_levels(folder: RunFolder, cases: Sequence[Case], model: Model, config: CotConfig, reporter: Reporter) -> None:
    """Test the attributions of every chain in both units; what the file holds already is kept."""
    scorer = AnswerScorer(model)
    kept = list(_lines(folder.path / LEVELS))
    known = {(line["problem_id"], line["k"]) for line in kept}
    reporter.say(f"tokens and steps: {len(cases)} chains, {_SETS} random sets each.")
    for case in cases:
        missing = [k for k in config.k if (case.id, k) not in known]
        if missing:
            kept += _tested(scorer, model, case, missing, config.seed)
            _write(folder.path / LEVELS, kept)


def level_lines(folder: RunFolder, *, seed: int) -> Iterator[LevelLine]:
    """Yield mean win rates in tokens and in steps, by attribution, direction and share."""

    def place(line: dict[str, Any]) -> tuple[Any, ...]:
        return line["attribution"], line["direction"], line["k"], line["unit"]

    tested = [line for line in _lines(folder.path / LEVELS) if "error" not in line]
    for key, lines in itertools.groupby(sorted(tested, key=place), key=place):
        attribution, direction, k, unit = key
        rates = np.array([line["win_rate"] for line in lines])
        interval = stats.mean_interval(rates, rng=rng_for(seed, "bootstrap"))
        mean, p_value = float(rates.mean()), _p_value(rates)
        yield LevelLine(
            unit=unit,
            attribution=attribution,
            direction=direction,
            k=k,
            n=int(rates.size),
            win_rate=mean,
            win_rate_ci=interval,
            p_value=p_value,
            taxonomy=stats.taxonomy(mean),
            verdict=stats.verdict(mean, interval, p_value=p_value, without=stats.reason_without_interval(rates)),
        )


def _p_value(rates: NDArray[np.float64]) -> float | None:
    """Of a mean win rate of one half, by a t-test over chains; None where they show no spread."""
    if rates.size < 2 or np.ptp(rates) == 0:
        return None
    return float(scipy.stats.ttest_1samp(rates, stats.CHANCE).pvalue)


def _tested(scorer: AnswerScorer, model: Model, case: Case, shares: Sequence[float], seed: int) -> list[dict[str, Any]]:
    try:
        chain = encode_chain(model, case.problem, case.texts, case.own.value)
        tests = answer_tests(scorer, chain, attributions=_METHODS, k=shares, m=_SETS, seed=seed)
    except DataError as exc:  # too long for the model's window
        return [{"problem_id": case.id, "k": k, "error": str(exc)} for k in shares]
    return [asdict(test) for test in tests]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if path.exists():
        with path.open(encoding="utf-8") as stream:
            yield from map(json.loads, stream)


def _write(path: Path, lines: Sequence[dict[str, Any]]) -> None:
    with write_atomically(path) as stream:
        for line in lines:
            stream.write(json.dumps(line, ensure_ascii=False, allow_nan=False).encode("utf-8") + b"\n")
