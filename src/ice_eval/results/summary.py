"""All statistics of a run, computed from its folder without a model."""

import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ice_eval import stats
from ice_eval.errors import ConfigError
from ice_eval.protocols import PROTOCOLS, Protocol
from ice_eval.records import Kind
from ice_eval.results.agreements import agreements, kappas, robustness
from ice_eval.results.chains import with_chains
from ice_eval.results.comparisons import Reading, ScoredExamples
from ice_eval.results.examples import Examples
from ice_eval.results.folder import RunFolder
from ice_eval.results.json_files import write_record
from ice_eval.results.ledger import WEAK_SIGNAL, Ledger, Names
from ice_eval.results.outcomes import ALL, TIE_FLAG, GrowingOutcomes, Outcomes, groups_of
from ice_eval.results.records import Configuration, Measures, RunSettings, Summary, SummaryLine
from ice_eval.seeding import rng_for

ALPHA = 0.10
"""False discovery rate of `significant_rate`."""
RESAMPLES, PAPER_RESAMPLES = 9999, 200
"""Resamples of an interval, and of the paper's percentile interval."""
FEW_GROUPS = 20
"""With fewer groups, intervals of grouped examples are too narrow."""
SMALL_N = 50
"""With fewer examples, a BCa interval is flagged as rough."""
COMPARED = (Kind.FULL, Kind.EMPTY, Kind.RATIONALE, Kind.RANDOM)
"""Kinds of rows that statistics use."""
_ROWS_AT_ONCE = 50_000
"""Rows compared together; the result does not depend on it."""


def rescore(folder: RunFolder) -> Summary:
    """Recompute `examples.parquet` and `summary.json` from inputs and ledger, and return the summary."""
    manifest = folder.manifest()
    config = manifest.config
    if not folder.parts():
        raise ConfigError(f"{folder.path} holds no scored example; run the same command again to score them.")
    with folder.writing_outcomes() as write:
        grouped = _grouped(folder, config, write)
    noise = 0.0 if manifest.noise_guard is None else manifest.noise_guard.probability
    summary = summarise(grouped, config, notes=manifest.flags, noise=noise)
    if config.chain is not None:
        summary = with_chains(summary, folder, config, grouped)
    write_record(folder.path / "summary.json", summary)
    return summary


def outcomes_by_configuration(folder: RunFolder, config: RunSettings) -> dict[Configuration, Outcomes]:
    """Return every example of a folder, finished or not, under every configuration."""
    return _grouped(folder, config, lambda outcomes: None)


def _grouped(
    folder: RunFolder, config: RunSettings, write: Callable[[Mapping[Configuration, Outcomes]], None]
) -> dict[Configuration, Outcomes]:
    """Compare all examples, some parts at a time, so that not all rows are in memory."""
    cells = configurations(config)
    gathered = GrowingOutcomes()
    for scored in scored_examples(folder, config):
        outcomes = {cell: scored.outcomes(cell, operators) for cell, operators in cells}
        write(outcomes)
        gathered.add(outcomes)
    return gathered.joined()


def scored_examples(
    folder: RunFolder, config: RunSettings, *, kinds: Sequence[Kind] | None = COMPARED
) -> Iterator[ScoredExamples]:
    """Yield the examples of a folder with their rows, a few parts at a time."""
    parts, n_rows = list[tuple[Examples, Ledger]](), 0
    for part in folder.parts():
        examples = folder.columns(part)
        parts.append((examples, folder.ledger(part, names_of(config, examples.ids), kinds=kinds)))
        n_rows += len(parts[-1][1])
        if n_rows >= _ROWS_AT_ONCE:
            yield _joined(parts, config)
            parts, n_rows = [], 0
    if parts:
        yield _joined(parts, config)


def _joined(parts: Sequence[tuple[Examples, Ledger]], config: RunSettings) -> ScoredExamples:
    examples = Examples.join([each for each, _ in parts])
    start = 0
    for own, ledger in parts:
        ledger.head["example"] += start
        start += len(own)
    ledger = Ledger.join([each for _, each in parts], names_of(config, examples.ids))
    return ScoredExamples(examples, ledger, Reading.of(config))


def names_of(config: RunSettings, examples: Sequence[str]) -> Names:
    """Return the names of the codes in a run's rows."""
    return Names(tuple(examples), config.attributions, config.nulls, config.operators)


def configurations(config: RunSettings) -> list[tuple[Configuration, tuple[str, ...]]]:
    """Return all tests of a run, each with its operators; the average over operators is last."""
    operators: dict[str, tuple[str, ...]] = {name: (name,) for name in config.operators}
    if len(operators) > 1:
        operators[ALL] = config.operators
    grid = itertools.product(config.attributions, config.nulls, operators, config.directions)
    return [
        (Configuration(attribution, operator, direction, k, null), operators[operator])
        for attribution, null, operator, direction in grid
        for k in ([None] if attribution in config.own_size else config.k)
    ]


def summarise(
    grouped: Mapping[Configuration, Outcomes], config: RunSettings, *, notes: Sequence[str] = (), noise: float = 0.0
) -> Summary:
    """Return one line per configuration, and the agreement of operators."""
    used = {cell: outcomes.select(outcomes.sound) for cell, outcomes in grouped.items()}
    inferences = _Inferences(used, config)
    lines = [
        _line(cell, used[cell], len(outcomes) - len(used[cell]), config, inferences, notes, noise)
        for cell, outcomes in grouped.items()
    ]
    joint = stats.JointMeans(partial(rng_for, config.seed, "agreement"))
    return Summary(
        configurations=tuple(with_adjusted_p(lines)),
        agreement=tuple(agreements(grouped, config, joint)),
        robustness=tuple(robustness(grouped, config, joint)),
        kappa=tuple(kappas([lines])),
    )


class _Inference(NamedTuple):
    """Interval, test and verdict of a mean win rate."""

    rates: NDArray[np.float64]
    interval: stats.Interval | None
    p_value: float
    verdict: stats.Verdict


class _Inferences:
    """Intervals, tests and verdicts of all configurations, by score and by NSR; all share one stream of draws."""

    def __init__(self, used: Mapping[Configuration, Outcomes], config: RunSettings) -> None:
        protocol = PROTOCOLS[config.protocol]
        n_resamples = PAPER_RESAMPLES if protocol.percentile else RESAMPLES
        self._method: stats.Method = "percentile" if protocol.percentile else "bca"
        self._joint = stats.JointMeans(partial(rng_for, config.seed, "bootstrap"), n_resamples=n_resamples)
        self._rates: dict[tuple[Configuration, bool], NDArray[np.float64]] = {}
        self._groups: dict[Configuration, stats.Groups] = {}
        families: dict[tuple[Hashable, ...] | None, dict[tuple[Configuration, bool], stats.Families]] = {}
        for cell, outcomes in used.items():
            if not len(outcomes):
                continue
            rates, groups = outcomes.column("win_rate"), groups_of(outcomes)
            by_nsr = _in_nsr_order(outcomes, rates, protocol)
            together = families.setdefault(None if groups is None else tuple(groups), {})
            self._groups[cell], together[cell, False] = groups, outcomes.families
            if not np.array_equal(by_nsr, rates):
                # By NSR the sets of an example with a negative signal rank the other way round.
                together[cell, True] = outcomes.families.turned(outcomes.column("signal") < 0)
            self._rates |= {(cell, False): rates, (cell, True): by_nsr if (cell, True) in together else rates}
        for cell, turned in self._rates:
            self._joint.add(self._rates[cell, turned], self._groups[cell])
        self._p_values: dict[tuple[Configuration, bool], float] = {}
        for labels, several in families.items():
            rng = partial(rng_for, config.seed, "mean-test")
            tests = stats.mean_tests(list(several.values()), rng=rng, groups=labels)
            self._p_values |= {key: test.p_value for key, test in zip(several, tests, strict=True)}

    def of(self, cell: Configuration, *, by_nsr: bool = False) -> _Inference:
        rates, groups = self._rates[cell, by_nsr], self._groups[cell]
        means = self._joint.means(self._joint.add(rates, groups))
        interval = stats.interval_from_means(rates, means, method=self._method, groups=groups)
        p_value = self._p_values.get((cell, by_nsr), self._p_values[cell, False])
        without = stats.reason_without_interval(rates, groups=groups)
        verdict = stats.verdict(float(rates.mean()), interval, p_value=p_value, without=without)
        return _Inference(rates, interval, p_value, verdict)


def _line(
    cell: Configuration,
    used: Outcomes,
    n_skipped: int,
    config: RunSettings,
    inferences: _Inferences,
    notes: Sequence[str],
    noise: float,
) -> SummaryLine:
    measures = Measures()
    if len(used):
        measures = _measures(used, config, inferences.of(cell), inferences.of(cell, by_nsr=True))
    flags = {*_flags(used, measures, config, noise), *notes} if len(used) else {"no_examples"}
    gold = used.column("gold")
    right = (used.column("predicted") == gold)[~np.isnan(gold)]
    return SummaryLine(
        model=config.model,
        task=config.task,
        **cell._asdict(),
        n=len(used),
        n_skipped=n_skipped,
        accuracy=float(np.mean(right)) if right.size else None,
        **vars(measures),
        flags=tuple(sorted(flags)),
    )


def with_adjusted_p(lines: Sequence[SummaryLine]) -> list[SummaryLine]:
    """Return the lines with p-values adjusted together, by Benjamini-Yekutieli."""
    adjusted = stats.adjusted_known([line.p_value for line in lines])
    return [replace(line, p_adjusted=value) for line, value in zip(lines, adjusted, strict=True)]


def adjusted_jointly(summaries: Sequence[Summary]) -> list[Summary]:
    """Return the summaries of several runs, with p-values adjusted over all of them together."""
    lines = iter(with_adjusted_p([line for summary in summaries for line in summary.configurations]))
    return [
        replace(summary, configurations=tuple(itertools.islice(lines, len(summary.configurations))))
        for summary in summaries
    ]


def _measures(used: Outcomes, config: RunSettings, found: _Inference, by_nsr: _Inference) -> Measures:
    rates, groups = found.rates, groups_of(used)
    effects = used.known("effect_size")
    median = _median(effects)
    return Measures(
        win_rate=float(rates.mean()),
        win_rate_ci=found.interval,
        win_rate_strict=float(used.column("win_rate_strict").mean()),
        tie_rate=float(used.column("tie_rate").mean()),
        p_value=found.p_value,
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
        win_rate_nsr_order=float(by_nsr.rates.mean()),
        detectable_win_rate=stats.detectable_win_rate(rates, groups=groups),
        taxonomy=stats.taxonomy(float(rates.mean())),
        verdict=found.verdict,
        verdict_nsr_order=by_nsr.verdict,
    )


def _of_single_examples(used: Outcomes, config: RunSettings) -> dict[str, Any]:
    """Return the share of examples that are significant by themselves."""
    if config.adaptive == "dataset":
        return {"significant_reason": "the random sets were chosen to be enough for the data set, not for an example"}
    sequential = config.adaptive == "examples"
    floor = 1 / ((config.m if sequential else int(used.column("m").max())) + 1)
    tails = used.column("p_value"), used.column("p_lower")
    upper, lower = (stats.significant_rate(tail, floor=floor, alpha=ALPHA) for tail in tails)
    n_values = used.column("m").astype(int) + 1
    if sequential:
        # A null p-value h/l is above one half with probability one half as soon as 2h sets can be scored. The p-value
        # of an example that has fewer, and has used them all, is on the usual grid at one half.
        n_values = np.where(used.flag("exact"), np.minimum(n_values, 2 * stats.STOP_AFTER), 2 * stats.STOP_AFTER)
    nonnull = stats.nonnull_share(tails[0], n_values)
    return {
        "significant_rate": upper.rate,
        "significant_reason": upper.reason,
        "significant_rate_lower": lower.rate,
        "significant_floor_share": upper.floor_share,
        "nonnull_share": nonnull.share,
        "nonnull_share_low": nonnull.low,
    }


def _in_nsr_order(used: Outcomes, rates: NDArray[np.float64], protocol: Protocol) -> NDArray[np.float64]:
    """Return win rates if sets were ranked by NSR: the mirror image where the signal is negative."""
    if protocol.by_clipped_nsr:
        return rates  # they are in this order already
    lost = used.column("tie_rate") if protocol.strict else 0.0  # a tie is lost in either order
    return np.where(used.column("signal") < 0, 1 - rates - lost, rates)


def _flags(used: Outcomes, measures: Measures, config: RunSettings, noise: float) -> Iterator[str]:
    if len(used) < SMALL_N:
        yield "small_n"
    if measures.tie_rate is not None and measures.tie_rate > TIE_FLAG:
        yield "ties"
    if str(measures.verdict) != str(measures.verdict_nsr_order):
        yield "depends_on_score_order"
    if used.flag("exact").any():
        yield "exact_for_some"
    groups = groups_of(used)
    if groups is not None:
        yield "grouped"
        if len(set(groups)) < FEW_GROUPS:
            yield "few_groups"
    if config.adaptive:
        yield f"adaptive_{config.adaptive}"
    if measures.effect is not None and abs(measures.effect) < noise and not PROTOCOLS[config.protocol].by_clipped_nsr:
        yield "effect_below_noise"


def _pooled_nsr(used: Outcomes) -> float | None:
    """Return `Σ(s_r - s_∅) / Σ(s_x - s_∅)`; None if the denominator is 0."""
    total = float(used.column("signal").sum())
    if abs(total) < 1e-9:
        return None
    return float((used.column("score") - used.column("score_empty")).sum() / total)


def _median(values: NDArray[np.float64]) -> float | None:
    return float(np.median(values)) if values.size else None
