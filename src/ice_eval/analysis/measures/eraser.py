"""ERASER's measures of a run, beside its win rates."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau

from ice_eval.analysis._runs import as_list, groups_of, interval_off_scale
from ice_eval.analysis.grid import POSITIVE_EVIDENCE, POSITIVE_RAW
from ice_eval.analysis.measures._base import Found, Measure, Missing, Part, measure
from ice_eval.nulls import SIZE
from ice_eval.rationales import ERASER_SHARES, Share
from ice_eval.records import Direction, Kind
from ice_eval.results import InputRow, RunFolder, RunSettings, Summary
from ice_eval.results.comparisons import ScoredExamples
from ice_eval.results.records import Measures
from ice_eval.results.summary import scored_examples
from ice_eval.seeding import rng_for
from ice_eval.stats import reaches
from ice_eval.table import Column, naming

MISSING = "it has no rows for it; run the same command again with --eraser"
MEASURES: Mapping[Direction, tuple[str, str]] = {
    "sufficiency": ("sufficiency", "aopc_suff"),
    "necessity": ("comprehensiveness", "aopc_compr"),
}
"""ERASER's names for the drop when a rationale is kept, and when it is removed: of one size, and over several."""

_HEAD = (Column("attribution", "attribution", "text"), Column("operator", "operator", "text"))
_RAW = (
    *_HEAD,
    *naming("k", "measure"),
    Column("n", "n", "count"),
    Column("raw", "raw", "signed"),
    Column("raw_ci", "95 % CI", "signed interval"),
    Column("win_rate", "win rate", "percent"),
    Column("win_rate_ci", "95 % CI of win rate", "percent interval"),
    Column("positive", "positive by", "text"),
)
_AOPC = (
    *_HEAD,
    Column("n", "n", "count"),
    Column("aopc_suff", "aopc_suff ↓", "signed"),
    Column("aopc_suff_ci", "95 % CI", "signed interval"),
    Column("aopc_compr", "aopc_compr ↑", "signed"),
    Column("aopc_compr_ci", "95 % CI of compr", "signed interval"),
    Column("taucorr_loo_n", "n of taucorr", "count"),
    Column("taucorr_loo", "taucorr_loo ↑", "signed"),
    Column("taucorr_loo_ci", "95 % CI of taucorr", "signed interval"),
)
_AGREEMENT = (
    Column("measure", "measure", "text"),
    Column("n_configurations", "configurations", "count"),
    Column("agree", "agree", "count"),
    Column("eraser_alone", "ERASER alone positive", "count"),
    Column("win_rate_alone", "win rate alone positive", "count"),
)


class _Key(NamedTuple):
    attribution: str
    operator: str
    name: str
    """Sufficiency, comprehensiveness, or a measure over several sizes."""
    k: Share | None = None


@dataclass(frozen=True)
class _PerExample:
    """ERASER's numbers of every example; NaN where missing."""

    examples: list[InputRow]
    values: dict[_Key, list[float]]

    @classmethod
    def of(cls, folder: RunFolder, config: RunSettings) -> "_PerExample":
        inputs = [row for part in folder.parts() for row in folder.inputs(part)]
        used = [row.skip_reason is None for row in inputs]
        values: dict[_Key, list[float]] = {}
        for scored in scored_examples(folder, config, kinds=None):
            for key, found in _values(scored, config):
                values.setdefault(key, []).extend(found.tolist())
        chosen = {key: list(itertools.compress(found, used)) for key, found in values.items()}
        return cls(list(itertools.compress(inputs, used)), chosen)

    def mean(self, key: _Key, seed: int) -> tuple[int, float | None, list[float] | None]:
        """Return the number of examples with a value, their mean, and its 95 % interval."""
        values = np.array(self.values[key])
        used = np.isfinite(values)
        if not used.any():
            return 0, None, None
        groups = groups_of(list(itertools.compress(self.examples, used)))
        interval = interval_off_scale(values[used], rng=rng_for(seed, "measures", "eraser"), groups=groups)
        return int(used.sum()), float(values[used].mean()), interval


def _values(scored: ScoredExamples, config: RunSettings) -> Iterator[tuple[_Key, NDArray[np.float64]]]:
    for name, operator in itertools.product(config.attributions, config.operators):
        own_size = name in config.own_size
        for direction, (raw, aopc) in MEASURES.items():
            for k in (None,) if own_size else config.k:
                yield _Key(name, operator, raw, k), _drops(scored, name, operator, direction, k)
            # A rationale with a size of its own has no others to average over.
            several = [] if own_size else [_drops(scored, name, operator, direction, k) for k in ERASER_SHARES]
            nothing = np.full(len(scored.examples), np.nan)
            yield _Key(name, operator, aopc), np.mean(several, axis=0) if several else nothing
        taus = [_tau_leave_one_out(scored, place, name, operator) for place in range(len(scored.examples))]
        yield _Key(name, operator, "taucorr_loo"), np.array(taus)


def _drops(
    scored: ScoredExamples, attribution: str, operator: str, direction: str, k: Share | None
) -> NDArray[np.float64]:
    """Return the drop of the target's probability when a rationale is kept alone, or removed; NaN without one."""
    sizes = scored.examples.sizes(attribution, k, magnitude=attribution in scored.reading.by_magnitude)
    left = scored.probability_of(Kind.ERASER, operator, direction, np.maximum(sizes, 1), attribution)
    return np.where(sizes > 0, scored.reference_probability(Kind.FULL) - left, np.nan)


def _tau_leave_one_out(scored: ScoredExamples, place: int, attribution: str, operator: str) -> float:
    """Return Kendall's τ-b between an attribution and the leave-one-out drop; NaN if one is constant or not finite."""
    vector = scored.examples.vector(attribution, place)
    drops = scored.reference_probability(Kind.FULL)[place] - scored.without_each_unit(place, operator)
    if len(vector) != len(drops) or not len(vector):
        return np.nan
    if not (np.isfinite(vector).all() and np.isfinite(drops).all()) or np.ptp(vector) == 0 or np.ptp(drops) == 0:
        return np.nan
    magnitude = attribution in scored.reading.by_magnitude
    return float(kendalltau(np.abs(vector) if magnitude else vector, drops).statistic)


@measure("eraser")
@dataclass(frozen=True, kw_only=True)
class Eraser(Measure):
    """ERASER's sufficiency, comprehensiveness and AOPC, and leave-one-out correlation, beside win rates."""

    needs = "a run with --eraser"

    def of(self, folder: RunFolder) -> Found | Missing:
        config = folder.manifest().config
        if not config.eraser:
            return Missing(MISSING)
        found = _PerExample.of(folder, config)
        if not found.examples:
            return Missing("no example took part")
        raw = list(_raw_lines(found, folder.summary(), config))
        parts = (
            Part("ERASER beside win rates", _RAW, tuple(raw)),
            Part("ERASER over several sizes", _AOPC, tuple(_aopc_lines(found, config))),
            Part("Verdicts of ERASER and of win rates", _AGREEMENT, tuple(_agreement_lines(raw))),
        )
        return Found(tuple(part for part in parts if part.lines), tuple(_notes(raw)))


def _raw_lines(found: _PerExample, summary: Summary, config: RunSettings) -> Iterator[dict[str, Any]]:
    null = SIZE if SIZE in config.nulls else config.nulls[0]
    rates = {
        (line.attribution, line.operator, MEASURES[line.direction][0], line.k): line
        for line in summary.configurations
        if line.null == null
    }
    raw_names = [raw for raw, _ in MEASURES.values()]
    for key in (key for key in found.values if key.name in raw_names):
        n, raw, interval = found.mean(key, config.seed)
        rate = rates.get((key.attribution, key.operator, key.name, key.k), Measures())
        yield {
            "attribution": key.attribution,
            "operator": key.operator,
            "k": key.k,
            "measure": key.name,
            "n": n,
            "raw": raw,
            "raw_ci": interval,
            "win_rate": rate.win_rate,
            "win_rate_ci": as_list(rate.win_rate_ci),
            "positive": _positive(key.name, raw, rate.win_rate),
        }


def goodness(name: str, raw: float) -> float:
    """Return a raw score, larger for a better rationale: comprehensiveness, or 1 minus sufficiency."""
    return 1 - raw if name == "sufficiency" else raw


def _positive(name: str, raw: float | None, win_rate: float | None) -> str | None:
    """Return the name of the score whose threshold is reached; None without a win rate to compare with."""
    if raw is None or win_rate is None:
        return None
    verdicts = reaches(goodness(name, raw), POSITIVE_RAW), reaches(win_rate, POSITIVE_EVIDENCE)
    return {(True, True): "both", (True, False): "ERASER alone", (False, True): "win rate alone"}.get(verdicts, "none")


def _aopc_lines(found: _PerExample, config: RunSettings) -> Iterator[dict[str, Any]]:
    for name, operator in itertools.product(config.attributions, config.operators):
        line: dict[str, Any] = {"attribution": name, "operator": operator, "n": 0}
        for each in ("aopc_suff", "aopc_compr", "taucorr_loo"):
            n, mean, interval = found.mean(_Key(name, operator, each), config.seed)
            line |= {each: mean, f"{each}_ci": interval, f"{each}_n": n, "n": max(n, line["n"])}
        yield line


def _agreement_lines(raw: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for name, _ in MEASURES.values():
        found = [line["positive"] for line in raw if line["measure"] == name and line["positive"] is not None]
        if found:
            yield {
                "measure": name,
                "n_configurations": len(found),
                "agree": found.count("both") + found.count("none"),
                "eraser_alone": found.count("ERASER alone"),
                "win_rate_alone": found.count("win rate alone"),
            }


def _notes(raw: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield (
        f"ERASER counts as positive where removing the rationale costs {POSITIVE_RAW:g} of the probability or more, or "
        f"keeping it alone costs {1 - POSITIVE_RAW:g} or less; a win rate from {100 * POSITIVE_EVIDENCE:g} % on."
    )
    without = sorted({line["measure"] for line in raw if line["positive"] is None})
    if without:
        flags = [direction for direction, (name, _) in MEASURES.items() if name in without]
        yield f"no win rates stand beside {' and '.join(without)} where the run lacks --direction {','.join(flags)}."
