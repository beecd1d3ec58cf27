"""All statistics of a run, from its folder: no model, no torch."""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ice_eval import stats
from ice_eval._files import write_atomically, write_json
from ice_eval._seeding import rng_for
from ice_eval.nulls import SIZE
from ice_eval.protocols import PROTOCOLS, Protocol
from ice_eval.results.agreements import agreements, kappas, robustness
from ice_eval.results.columns import Gathering, Groups, Outcomes, groups_of
from ice_eval.results.comparisons import TIE_FLAG, examples_of
from ice_eval.results.folder import RunFolder
from ice_eval.results.log_odds import WEAK_SIGNAL
from ice_eval.results.outcomes import ALL, Configuration, Outcome
from ice_eval.results.schema import SCHEMA

ALPHA = 0.10
"""False discovery rate that `significant_rate` allows."""
PAPER_RESAMPLES = 200
"""Resamples of the paper's percentile interval."""
FEW_GROUPS = 20
"""Below this many groups intervals of grouped examples are too narrow."""
SMALL_N = 50
"""Below this many examples a BCa interval is flagged as rough."""


def rescore(folder: RunFolder) -> dict[str, Any]:
    """Compute `examples.jsonl` and `summary.json` again from inputs and ledger, and return the summary."""
    manifest = folder.manifest()
    config = manifest["config"]
    with write_atomically(folder.path / "examples.jsonl") as stream:
        grouped = _grouped(_written(outcomes_of(folder, config), stream), config)
    noise = (manifest.get("noise_guard") or {}).get("probability", 0.0)
    summary = summarise(grouped, config, notes=manifest.get("flags", []), noise=noise)
    write_json(folder.path / "summary.json", summary)
    return summary


def outcomes_by_configuration(folder: RunFolder, config: Mapping[str, Any]) -> dict[Configuration, Outcomes]:
    """Every example of a folder, finished or not, under every configuration."""
    return _grouped(outcomes_of(folder, config), config)


def _written(outcomes: Iterable[Outcome], stream: BinaryIO) -> Iterator[Outcome]:
    """The outcomes, each when its line is written."""
    for outcome in outcomes:
        stream.write(json.dumps(outcome.line(), ensure_ascii=False, allow_nan=False).encode("utf-8") + b"\n")
        yield outcome


def _grouped(outcomes: Iterable[Outcome], config: Mapping[str, Any]) -> dict[Configuration, Outcomes]:
    gathered = {cell: Gathering() for cell, _ in configurations(config)}
    for outcome in outcomes:
        gathered[outcome.configuration].append(outcome)
    # What was gathered of a configuration goes as soon as its columns are there: data may be large.
    return {cell: gathered.pop(cell).outcomes() for cell in list(gathered)}


def configurations(config: Mapping[str, Any]) -> list[tuple[Configuration, Sequence[str]]]:
    """All that a run's folder can be asked about, the several-operator average last; each with its operators."""
    operators = {name: [name] for name in config["operators"]}
    if len(operators) > 1:
        operators[ALL] = list(config["operators"])
    own_size = config.get("own_size", ())
    grid = itertools.product(config["attributions"], nulls_of(config), operators, config["directions"])
    return [
        (Configuration(attribution, operator, direction, k, null), operators[operator])
        for attribution, null, operator, direction in grid
        for k in ([None] if attribution in own_size else config["k"])
    ]


def nulls_of(config: Mapping[str, Any]) -> Sequence[str]:
    """The nulls of a run; folders of earlier versions know one only."""
    names: Sequence[str] = config.get("nulls", (SIZE,))
    return names


def outcomes_of(folder: RunFolder, config: Mapping[str, Any]) -> Iterator[Outcome]:
    """Every example of a run under every configuration, from inputs and ledger."""
    cells = configurations(config)
    for part in folder.parts():
        for ledger in examples_of(folder.inputs(part), folder.ledger(part, probes=False), config):
            for cell, operators in cells:
                yield ledger.outcome(cell, operators, config["m"])


def _protocol(config: Mapping[str, Any]) -> Protocol:
    return PROTOCOLS[config.get("protocol", "default")]


def summarise(
    grouped: Mapping[Configuration, Outcomes],
    config: Mapping[str, Any],
    *,
    notes: Sequence[str] = (),
    noise: float = 0.0,
) -> dict[str, Any]:
    """`summary.json`: one record per configuration, and what the operators agree on."""
    lines = [_line(cell, outcomes, config, notes, noise) for cell, outcomes in grouped.items()]
    return {
        "schema": SCHEMA,
        "configurations": _with_adjusted_p(lines),
        "agreement": list(agreements(grouped, config)),
        "robustness": list(robustness(grouped, config)),
        "kappa": kappas(lines),
    }


def _line(
    cell: Configuration, outcomes: Outcomes, config: Mapping[str, Any], notes: Sequence[str], noise: float
) -> dict[str, Any]:
    head = {"model": config["model"], "task": config["task"], **cell._asdict()}
    used = outcomes.select(outcomes.sound)
    counts = {"n": len(used), "n_skipped": len(outcomes) - len(used), "accuracy": _accuracy(used)}
    measures = _measures(used, config) if len(used) else Measures()
    flags = {*_flags(used, measures, config, noise), *notes} if len(used) else {"no_examples"}
    return {**head, **counts, **asdict(measures), "flags": sorted(flags)}


def _with_adjusted_p(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The p-values of all configurations, adjusted together."""
    tested = [line for line in lines if line["p_value"] is not None]
    adjusted = stats.adjusted(np.array([line["p_value"] for line in tested])) if tested else ()
    for line, p_value in zip(tested, adjusted, strict=True):
        line["p_adjusted"] = float(p_value)
    return list(lines)


def _accuracy(used: Outcomes) -> float | None:
    gold = used.column("gold")
    right = (used.column("predicted") == gold)[~np.isnan(gold)]
    return float(np.mean(right)) if right.size else None


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
    p_adjusted: float | None = None
    """Benjamini-Yekutieli, over the configurations of the run."""
    effect: float | None = None
    """Mean of what the rationale gains over its null, as a probability."""
    effect_size: float | None = None
    effect_size_median: float | None = None
    effect_word: str | None = None
    """Of the median: negligible, small, medium or large, from 0.2, 0.5 and 0.8 on; None if half are undefined."""
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


def _measures(used: Outcomes, config: Mapping[str, Any]) -> Measures:
    rates, groups = used.column("win_rate"), groups_of(used)
    interval = _interval(rates, groups, config)
    by_nsr, p_value = _in_nsr_order(used, rates, _protocol(config)), _p_value(used, groups, config)
    p_by_nsr = p_value if np.array_equal(by_nsr, rates) else _p_value(used, groups, config, by_nsr=True)
    effects = used.known("effect_size")
    median = _median(effects)
    return Measures(
        win_rate=float(rates.mean()),
        win_rate_ci=None if interval is None else list(interval),
        win_rate_strict=float(used.column("win_rate_strict").mean()),
        tie_rate=float(used.column("tie_rate").mean()),
        p_value=p_value,
        effect=float(used.column("effect").mean()),
        effect_size=float(np.mean(effects)) if effects.size else None,
        effect_size_median=median,
        effect_word=stats.effect_word(median) if median is not None and 2 * len(effects) >= len(used) else None,
        effect_size_undefined=len(used) - len(effects),
        nsr=_pooled_nsr(used),
        nsr_median=_median(used.known("nsr")),
        **_of_single_examples(used, config),
        weak_signal_rate=float((np.abs(used.column("signal")) < WEAK_SIGNAL).mean()),
        negative_signal_rate=float((used.column("signal") < 0).mean()),
        win_rate_nsr_order=float(by_nsr.mean()),
        detectable_win_rate=stats.detectable_win_rate(rates, groups=groups),
        taxonomy=stats.taxonomy(float(rates.mean())),
        verdict=_verdict(rates, interval, p_value, groups),
        verdict_nsr_order=_verdict(by_nsr, _interval(by_nsr, groups, config), p_by_nsr, groups),
        excludes_chance=stats.excludes_chance(interval),
    )


def _p_value(used: Outcomes, groups: Groups, config: Mapping[str, Any], *, by_nsr: bool = False) -> float:
    """Of a mean win rate of one half; by NSR the sets of an example with a negative signal rank the other way round."""
    families = used.families()
    if by_nsr:
        negative = used.column("signal") < 0
        families = [1 - each if turned else each for each, turned in zip(families, negative, strict=True)]
    return stats.mean_test(families, rng=rng_for(config["seed"], "mean-test"), groups=groups).p_value


def _of_single_examples(used: Outcomes, config: Mapping[str, Any]) -> dict[str, Any]:
    """How many examples are significant by themselves."""
    if config.get("adaptive") == "dataset":
        return {"significant_reason": "the random sets were chosen to be enough for the data set, not for an example"}
    sequential = config.get("adaptive") == "examples"
    floor = 1 / ((config["m"] if sequential else int(used.column("m").max())) + 1)
    p_values = used.column("p_value")
    upper, lower = (
        stats.significant_rate(used.column(name), floor=floor, alpha=ALPHA) for name in ("p_value", "p_lower")
    )
    n_values = used.column("m").astype(int) + 1
    if sequential:
        # A null p-value h/l is above one half with probability one half as soon as 2h sets can be scored. The p-value
        # of an example that has fewer, and has used them all, is on the usual grid at one half.
        n_values = np.where(used.flag("exact"), np.minimum(n_values, 2 * stats.STOP_AFTER), 2 * stats.STOP_AFTER)
    nonnull = stats.nonnull_share(p_values, n_values)
    return {
        "significant_rate": upper.rate,
        "significant_reason": upper.reason,
        "significant_rate_lower": lower.rate,
        "significant_floor_share": upper.floor_share,
        "nonnull_share": nonnull.share,
        "nonnull_share_low": nonnull.low,
    }


def _in_nsr_order(used: Outcomes, rates: NDArray[np.float64], protocol: Protocol) -> NDArray[np.float64]:
    """Win rates if sets were ranked by how well they reproduce s(x): the mirror image where the signal is negative."""
    if protocol.by_clipped_nsr:
        return rates  # they are in this order already
    lost = used.column("tie_rate") if protocol.strict else 0.0  # a tie is lost in either order
    return np.where(used.column("signal") < 0, 1 - rates - lost, rates)


def _flags(used: Outcomes, measures: Measures, config: Mapping[str, Any], noise: float) -> Iterator[str]:
    if len(used) < SMALL_N:
        yield "small_n"
    if measures.tie_rate is not None and measures.tie_rate > TIE_FLAG:
        yield "ties"
    if measures.verdict != measures.verdict_nsr_order:
        yield "depends_on_score_order"
    if used.flag("exact").any():
        yield "exact_for_some"
    groups = groups_of(used)
    if groups is not None:
        yield "grouped"
        if len(set(groups)) < FEW_GROUPS:
            yield "few_groups"
    if config.get("adaptive"):
        yield f"adaptive_{config['adaptive']}"
    if measures.effect is not None and abs(measures.effect) < noise and not _protocol(config).by_clipped_nsr:
        yield "effect_below_noise"


def _interval(rates: NDArray[np.float64], groups: Groups, config: Mapping[str, Any]) -> stats.Interval | None:
    # One stream for all configurations: intervals of the same examples resample the same examples.
    rng = rng_for(config["seed"], "bootstrap")
    if _protocol(config).percentile:
        return stats.mean_interval(rates, rng=rng, groups=groups, n_resamples=PAPER_RESAMPLES, method="percentile")
    return stats.mean_interval(rates, rng=rng, groups=groups)


def _verdict(rates: NDArray[np.float64], interval: stats.Interval | None, p_value: float, groups: Groups) -> str:
    without = stats.verdict_without_interval(rates, groups=groups)
    return stats.verdict(float(rates.mean()), interval, p_value=p_value, without=without)


def _pooled_nsr(used: Outcomes) -> float | None:
    """`Σ(s_r - s_∅) / Σ(s_x - s_∅)`; None when there is nothing to divide by."""
    total = float(used.column("signal").sum())
    if abs(total) < 1e-9:
        return None
    return float((used.column("score") - used.column("score_empty")).sum() / total)


def _median(values: NDArray[np.float64]) -> float | None:
    return float(np.median(values)) if values.size else None
