"""All statistics of a run, from its folder: no model, no torch."""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ice_eval import stats
from ice_eval._seeding import rng_for
from ice_eval.protocols import PROTOCOLS, Protocol
from ice_eval.results.comparisons import ALL, TIE_FLAG, WEAK_SIGNAL, Configuration, Outcome, examples_of
from ice_eval.results.files import write_atomically, write_json
from ice_eval.results.folder import RunFolder
from ice_eval.results.schema import SCHEMA

ALPHA = 0.10
"""False discovery rate that `significant_rate` allows."""
PAPER_RESAMPLES = 200
"""Resamples of the paper's percentile interval."""
SMALL_N = 50
"""Below this many examples a BCa interval is flagged as rough."""


def rescore(folder: RunFolder) -> dict[str, Any]:
    """Compute `examples.jsonl` and `summary.json` again from inputs and ledger, and return the summary."""
    config = folder.manifest()["config"]
    grouped: dict[Configuration, list[Outcome]] = {c: [] for c in configurations(config)}
    with write_atomically(folder.path / "examples.jsonl") as stream:
        for outcome in _outcomes(folder, config):
            grouped[outcome.configuration].append(outcome)
            stream.write(json.dumps(outcome.line(), ensure_ascii=False, allow_nan=False).encode("utf-8") + b"\n")
    manifest = folder.manifest()
    noise = (manifest.get("noise_guard") or {}).get("probability", 0.0)
    summary = summarise(grouped, config, notes=manifest.get("flags", []), noise=noise)
    write_json(folder.path / "summary.json", summary)
    return summary


def configurations(config: Mapping[str, Any]) -> list[Configuration]:
    """All that a run's folder can be asked about, the several-operator average last."""
    operators = [*config["operators"], *([ALL] if len(config["operators"]) > 1 else [])]
    grid = itertools.product(config["attributions"], operators, config["directions"], config["k"])
    return [Configuration(*cell) for cell in grid]


def _outcomes(folder: RunFolder, config: Mapping[str, Any]) -> Iterator[Outcome]:
    cells = configurations(config)
    for part in folder.parts():
        rows = folder.ledger(part)
        calibrated = config.get("calibration") == "contextual"
        for ledger in examples_of(folder.inputs(part), rows, calibrated=calibrated, protocol=_protocol(config)):
            for cell in cells:
                operators = config["operators"] if cell.operator == ALL else [cell.operator]
                yield ledger.outcome(cell, operators, config["m"])


def _protocol(config: Mapping[str, Any]) -> Protocol:
    return PROTOCOLS[config.get("protocol", "default")]


def summarise(
    grouped: Mapping[Configuration, Sequence[Outcome]],
    config: Mapping[str, Any],
    *,
    notes: Sequence[str] = (),
    noise: float = 0.0,
) -> dict[str, Any]:
    """`summary.json`: one record per configuration, and the agreement of every pair of operators."""
    lines = [_line(cell, outcomes, config, notes, noise) for cell, outcomes in grouped.items()]
    return {"schema": SCHEMA, "configurations": lines, "agreement": list(_agreements(grouped, config))}


def _line(
    cell: Configuration, outcomes: Sequence[Outcome], config: Mapping[str, Any], notes: Sequence[str], noise: float
) -> dict[str, Any]:
    head = {"model": config["model"], "task": config["task"], **cell._asdict()}
    used = [outcome for outcome in outcomes if outcome.error is None]
    counts = {"n": len(used), "n_skipped": len(outcomes) - len(used), "accuracy": _accuracy(used)}
    measures = _measures(used, config) if used else Measures()
    flags = {*_flags(used, measures, config, noise), *notes} if used else {"no_examples"}
    return {**head, **counts, **asdict(measures), "flags": sorted(flags)}


def _accuracy(used: Sequence[Outcome]) -> float | None:
    right = [outcome.predicted == outcome.gold for outcome in used if outcome.gold is not None]
    return float(np.mean(right)) if right else None


@dataclass(frozen=True, kw_only=True)
class Measures:
    """The numbers and words of one configuration, in the order of `summary.json`; all None without an example."""

    win_rate: float | None = None
    """Mean over examples."""
    win_rate_ci: list[float] | None = None
    """95 % BCa interval; None where it is undefined."""
    win_rate_strict: float | None = None
    tie_rate: float | None = None
    p_value: float | None = None
    """Two-sided test of a mean win rate of one half."""
    effect: float | None = None
    """Mean of what the rationale gains over its null, as a probability."""
    effect_size: float | None = None
    effect_size_median: float | None = None
    effect_size_undefined: int | None = None
    """Examples whose null has no spread."""
    nsr: float | None = None
    nsr_median: float | None = None
    significant_rate: float | None = None
    """Share of examples that Benjamini-Hochberg rejects, upper tail."""
    significant_reason: str | None = None
    """Why `significant_rate` is None."""
    significant_rate_lower: float | None = None
    """The same for the lower tail, a family of its own."""
    significant_floor_share: float | None = None
    """Below this share of examples no rejection is possible at this m."""
    nonnull_share: float | None = None
    nonnull_share_low: float | None = None
    weak_signal_rate: float | None = None
    negative_signal_rate: float | None = None
    win_rate_nsr_order: float | None = None
    detectable_win_rate: float | None = None
    taxonomy: str | None = None
    verdict: str | None = None
    verdict_nsr_order: str | None = None
    excludes_chance: bool | None = None


def _measures(used: Sequence[Outcome], config: Mapping[str, Any]) -> Measures:
    rates, p_values = _column(used, "win_rate"), _column(used, "p_value")
    interval = _interval(rates, config)
    by_nsr = _in_nsr_order(used, rates, _protocol(config))
    test = stats.mean_test([o.family for o in used if o.family is not None], rng=rng_for(config["seed"], "mean-test"))
    upper = stats.significant_rate(p_values, floor=_floor(used), alpha=ALPHA)
    lower = stats.significant_rate(_column(used, "p_lower"), floor=_floor(used), alpha=ALPHA)
    nonnull = stats.nonnull_share(p_values, np.array([outcome.m + 1 for outcome in used]))
    effects = [outcome.effect_size for outcome in used if outcome.effect_size is not None]
    return Measures(
        win_rate=float(rates.mean()),
        win_rate_ci=None if interval is None else list(interval),
        win_rate_strict=float(_column(used, "win_rate_strict").mean()),
        tie_rate=float(_column(used, "tie_rate").mean()),
        p_value=test.p_value,
        effect=float(_column(used, "effect").mean()),
        effect_size=float(np.mean(effects)) if effects else None,
        effect_size_median=_median(effects),
        effect_size_undefined=len(used) - len(effects),
        nsr=_pooled_nsr(used),
        nsr_median=_median([outcome.nsr for outcome in used]),
        significant_rate=upper.rate,
        significant_reason=upper.reason,
        significant_rate_lower=lower.rate,
        significant_floor_share=upper.floor_share,
        nonnull_share=nonnull.share,
        nonnull_share_low=nonnull.low,
        weak_signal_rate=float((np.abs(_signals(used)) < WEAK_SIGNAL).mean()),
        negative_signal_rate=float((_signals(used) < 0).mean()),
        win_rate_nsr_order=float(by_nsr.mean()),
        detectable_win_rate=stats.detectable_win_rate(rates),
        taxonomy=stats.taxonomy(float(rates.mean())),
        verdict=stats.verdict(float(rates.mean()), interval),
        verdict_nsr_order=stats.verdict(float(by_nsr.mean()), _interval(by_nsr, config)),
        excludes_chance=stats.excludes_chance(interval),
    )


def _in_nsr_order(used: Sequence[Outcome], rates: NDArray[np.float64], protocol: Protocol) -> NDArray[np.float64]:
    """Win rates if sets were ranked by how well they reproduce s(x): the mirror image where the signal is negative."""
    if protocol.by_clipped_nsr:
        return rates  # they are in this order already
    lost = _column(used, "tie_rate") if protocol.strict else 0.0  # a tie is lost in either order
    return np.where(_signals(used) < 0, 1 - rates - lost, rates)


def _flags(used: Sequence[Outcome], measures: Measures, config: Mapping[str, Any], noise: float) -> Iterator[str]:
    if len(used) < SMALL_N:
        yield "small_n"
    if measures.tie_rate is not None and measures.tie_rate > TIE_FLAG:
        yield "ties"
    if measures.verdict != measures.verdict_nsr_order:
        yield "depends_on_score_order"
    if any(outcome.m < config["m"] for outcome in used):
        yield "exact_for_some"
    if measures.effect is not None and abs(measures.effect) < noise and not _protocol(config).by_clipped_nsr:
        yield "effect_below_noise"


def _interval(rates: NDArray[np.float64], config: Mapping[str, Any]) -> stats.Interval | None:
    # One stream for all configurations: intervals of the same examples resample the same examples.
    rng = rng_for(config["seed"], "bootstrap")
    if _protocol(config).percentile:
        return stats.mean_interval(rates, rng=rng, n_resamples=PAPER_RESAMPLES, method="percentile")
    return stats.mean_interval(rates, rng=rng)


def _column(used: Sequence[Outcome], name: str) -> NDArray[np.float64]:
    return np.array([getattr(outcome, name) for outcome in used], dtype=np.float64)


def _signals(used: Sequence[Outcome]) -> NDArray[np.float64]:
    return _column(used, "signal")


def _floor(used: Sequence[Outcome]) -> float:
    """The smallest p-value that any example could have."""
    return 1 / (max(outcome.m for outcome in used) + 1)


def _pooled_nsr(used: Sequence[Outcome]) -> float | None:
    """`Σ(s_r - s_∅) / Σ(s_x - s_∅)`; None when there is nothing to divide by."""
    total = float(_signals(used).sum())
    if abs(total) < 1e-9:
        return None
    return float((_column(used, "score") - _column(used, "score_empty")).sum() / total)


def _median(values: Sequence[float | None]) -> float | None:
    found = [value for value in values if value is not None]
    return float(np.median(found)) if found else None


def _agreements(
    grouped: Mapping[Configuration, Sequence[Outcome]], config: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    for attribution, k, direction in itertools.product(config["attributions"], config["k"], config["directions"]):
        for pair in itertools.combinations(config["operators"], 2):
            first, second = (grouped[Configuration(attribution, operator, direction, k)] for operator in pair)
            both = [
                (a.win_rate, b.win_rate)
                for a, b in zip(first, second, strict=True)
                if a.error is None and b.error is None
            ]
            head = {
                "model": config["model"],
                "task": config["task"],
                "attribution": attribution,
                "k": k,
                "direction": direction,
            }
            yield {**head, "operators": list(pair), "n": len(both), **_agreement(np.array(both), config)}


def _agreement(both: NDArray[np.float64], config: Mapping[str, Any]) -> dict[str, Any]:
    names = ("gap", "gap_ci", "p_crosses", "crosses_threshold", "same_taxonomy", "rank_correlation")
    if len(both) == 0:
        return dict.fromkeys(names)
    found = stats.agreement(both[:, 0], both[:, 1], rng=rng_for(config["seed"], "agreement"))
    values = {name: getattr(found, name) for name in names}
    return {**values, "gap_ci": None if found.gap_ci is None else list(found.gap_ci)}
