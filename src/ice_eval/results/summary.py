"""All statistics of a run, computed from its folder without a model."""

import itertools
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from ice_eval import stats
from ice_eval.choices import PROTOCOLS, protocol_of
from ice_eval.errors import ConfigError, IceError
from ice_eval.operators import is_removal, pose_of
from ice_eval.records import Kind
from ice_eval.results.agreements import agreements, kappas, rankings, robustness
from ice_eval.results.chains import with_chains
from ice_eval.results.citations import citation_summary
from ice_eval.results.comparisons import ScoredExamples
from ice_eval.results.examples import Examples
from ice_eval.results.folder import RunFolder
from ice_eval.results.json_files import write_record
from ice_eval.results.ledger import WEAK_SIGNAL, Ledger, Names
from ice_eval.results.outcomes import ALL, TIE_FLAG, GrowingOutcomes, Outcomes, groups_of
from ice_eval.results.records import Configuration, CutTexts, Manifest, Measures, RunSettings, Summary, SummaryLine
from ice_eval.seeding import rng_for

ALPHA = 0.10
"""False discovery rate of `significant_rate`."""
DRAWS, DRAWS_PER_TEST = 9999, 200
"""Draws of a randomization test, and draws for each configuration if p-values of many are adjusted."""
_LEVEL, _SMALLEST_P = 0.95, 1e-300
CONTROL = "random"
"""The attribution that wins one half of its comparisons if the run is sound."""
BELOW_CHANCE = 0.01
"""Largest p-value at which an accuracy below chance is reported."""
SMALL_N = 50
"""Runs with fewer examples are flagged: their intervals are wide."""
_NOTHING_TO_TEST = re.compile(
    r"the text has (no|one|fewer than \d+) unit|the claim has no token|.* marks (every|no) unit|fewer than \d+ steps"
    r"|.* its explanation (covers no part of the text|is for another class)|there is only one option"
    r"|the reply holds no thinking|the example has no gold label|no other set is matched"
    r"|the model's confidence in the explained label"
)
"""Reasons that speak of the example alone: it was left out, but nothing failed."""
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
        grouped = outcomes_by_configuration(folder, config, write=write)
    noise = 0.0 if manifest.noise_guard is None else manifest.noise_guard.probability or 0.0
    summary = replace(summarise(grouped, config, notes=manifest.flags, noise=noise), cut=_cut_texts(folder))
    if config.chain is not None:
        summary = with_chains(summary, folder, config, grouped)
    if config.subject == "context":
        summary = replace(summary, citations=citation_summary(folder, config, scored_examples(folder, config), grouped))
    write_record(folder.path / "summary.json", summary)
    return summary


def _cut_texts(folder: RunFolder) -> CutTexts | None:
    parts = [folder.columns(part) for part in folder.parts()]
    n_cut, n_units = (np.concatenate([getattr(part, name) for part in parts]) for name in ("n_cut", "n_units"))
    return CutTexts.of(n_cut[n_units > 0], n_units[n_units > 0])


def contradiction(folder: RunFolder) -> str | None:
    """Return what is wrong with a finished run by computing it again from its parts; None if all files agree."""
    with tempfile.TemporaryDirectory() as name:
        copied = RunFolder(Path(name))
        try:
            for path in folder.path.iterdir():
                if path.is_dir() and not path.name.startswith("."):
                    (copied.path / path.name).symlink_to(path.resolve())
                elif path.is_file() and path.name != ".lock":
                    shutil.copyfile(path, copied.path / path.name)
            stored, lines = folder.summary(), list(folder.examples())
            if (lost := _lost(folder.manifest())) is not None:
                return f"{folder.path / 'manifest.json'} is damaged: it has no {lost}."
            if rescore(copied) != stored or list(copied.examples()) != lines:
                return (
                    f"summary.json or examples.parquet of {folder.path} do not follow from its other files. "
                    f"`ice rescore {folder.path}` writes them again."
                )
        except IceError as exc:
            return str(exc)
        except Exception as exc:  # every way in which numbers cannot be computed
            return (
                f"manifest, inputs and ledger of {folder.path} contradict each other ({type(exc).__name__}: {exc}). "
                "The command that made this run makes it again, with another --out."
            )
    return None


def _lost(manifest: Manifest) -> str | None:
    """Return a part of the manifest that every finished run has and this one lacks."""
    methods = {name: each.get("method") for name, each in manifest.attributions.items()}
    found = {"labels": bool(manifest.labels)} | {
        f"attributions.{name}.method": bool(methods.get(name)) for name in (*manifest.config.attributions, *methods)
    }
    return next((name for name, is_known in found.items() if not is_known), None)


def outcomes_by_configuration(
    folder: RunFolder,
    config: RunSettings,
    *,
    n_parts: int | None = None,
    write: Callable[[Mapping[Configuration, Outcomes]], None] = lambda outcomes: None,
) -> dict[Configuration, Outcomes]:
    """Return every example of a folder, or of its first parts, finished or not, under every configuration.

    Examples are compared some parts at a time, so that not all rows are in memory; `write` gets the outcomes of each.
    """
    cells = configurations(config)
    gathered = GrowingOutcomes()
    for scored in scored_examples(folder, config, n_parts=n_parts):
        outcomes = {cell: scored.outcomes(cell, operators) for cell, operators in cells}
        write(outcomes)
        gathered.add(outcomes)
    return gathered.joined()


def scored_examples(
    folder: RunFolder, config: RunSettings, *, kinds: Sequence[Kind] | None = COMPARED, n_parts: int | None = None
) -> Iterator[ScoredExamples]:
    """Yield the examples of a folder with their rows, a few parts at a time."""
    parts, n_rows = list[tuple[Examples, Ledger]](), 0
    for part in (part for part in folder.parts() if n_parts is None or part < n_parts):
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
    return ScoredExamples(examples, ledger, config)


def names_of(config: RunSettings, examples: Sequence[str]) -> Names:
    """Return the names of the codes in a run's rows."""
    return Names(tuple(examples), config.attributions, config.nulls, config.operators)


def configurations(config: RunSettings) -> list[tuple[Configuration, tuple[str, ...]]]:
    """Return all tests of a run, each with its operators; the average over operators that remove units is last.

    Explanations are tested in the first pose alone.
    """
    operators: dict[str, tuple[str, ...]] = {name: (name,) for name in config.operators if not pose_of(name)}
    removals = tuple(filter(is_removal, config.operators))
    if len(removals) > 1:
        operators[ALL] = removals
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
        _line(cell, used[cell], Counter(outcomes.errors.values()), config, inferences, notes, noise)
        for cell, outcomes in grouped.items()
    ]
    return Summary(
        configurations=tuple(lines),
        agreement=tuple(agreements(grouped, config)),
        robustness=tuple(robustness(grouped, config)),
        kappa=tuple(kappas([lines])),
        rankings=tuple(rankings(grouped, config)),
    )


class _Inferences:
    """Intervals, tests and verdicts of all configurations; all tests share one stream of draws."""

    def __init__(self, used: Mapping[Configuration, Outcomes], config: RunSettings) -> None:
        self._config, self._protocol, self._anytime = config, PROTOCOLS[config.protocol], config.until is not None
        self._used = {cell: outcomes for cell, outcomes in used.items() if len(outcomes)}
        families: dict[tuple[Hashable, ...] | None, list[Configuration]] = {}
        for cell, outcomes in self._used.items():
            groups = groups_of(outcomes)
            families.setdefault(None if groups is None else tuple(groups), []).append(cell)
        self._p_values, self._adjusted, self._alpha = self._tested(families)

    def _tested(
        self, families: Mapping[tuple[Hashable, ...] | None, Sequence[Configuration]]
    ) -> tuple[dict[Configuration, float], dict[Configuration, float], float]:
        """Return p-values, adjusted ones, and the error rate at which all intervals hold together."""
        if not self._used:
            return {}, {}, 1 - _LEVEL
        if self._anytime:  # a randomization test holds its level only if one looks once
            rates = [(used.column("win_rate"), groups_of(used)) for used in self._used.values()]
            alone = [stats.mean_pvalue(each, stats.CHANCE, groups=groups, anytime=True) for each, groups in rates]
            together = stats.adjusted(np.maximum(alone, _SMALLEST_P))
            p_values, adjusted = (dict(zip(self._used, each, strict=True)) for each in (alone, together.tolist()))
            return p_values, adjusted, (1 - _LEVEL) / len(self._used)
        n_draws, tests = max(DRAWS, DRAWS_PER_TEST * len(self._used)), dict[Configuration, stats.MeanTest]()
        rng = partial(rng_for, self._config.seed, "mean-test")
        for labels, cells in families.items():
            several = [self._used[cell].families for cell in cells]
            tests |= zip(cells, stats.mean_tests(several, rng=rng, n_draws=n_draws, groups=labels), strict=True)
        keys = [(cell.attribution, cell.k, cell.null) for cell in tests]
        joint = stats.step_down(list(tests.values()), keys, rng=rng_for(self._config.seed, "step-down"))
        single = {cell: stats.MeanTest.of(test.statistic, test.null[:DRAWS]) for cell, test in tests.items()}
        p_values = {cell: max(test.p_value, self._least_p(cell)) for cell, test in single.items()}
        if self._protocol.fdr is not None:
            raised = stats.adjusted_fdr(np.array(list(p_values.values()))).tolist()
        else:
            raised = list(map(max, p_values.values(), joint.p_values))
        return p_values, dict(zip(p_values, raised, strict=True)), joint.alpha

    def _least_p(self, cell: Configuration) -> float:
        """Return the p-value of the interval where an example has several fills, else 0.

        A rationale is rated over all fills and a random set under one, so that swapping them is not exact: of few
        examples, random explanations would reach 5 % too often.
        """
        used = self._used[cell]
        if not (used.known("n_fills") > 1).any():
            return 0.0
        return stats.mean_pvalue(used.column("win_rate"), stats.CHANCE, groups=groups_of(used))

    def of(self, cell: Configuration) -> dict[str, Any]:
        """Return the measures of a configuration that are tests, intervals and verdicts."""
        used, groups = self._used[cell], groups_of(self._used[cell])
        rates, ties = used.column("win_rate"), used.column("tie_rate")
        # Words by an interval are about a fair count: by that of a protocol that counts ties as lost, a random
        # explanation would be anti-faithful. In each example, chance is below one half by this much.
        lost = ties / 2 if self._protocol.strict else np.zeros(len(ties))
        interval, level = self._interval(rates, groups), 1 - self._alpha
        simultaneous = stats.mean_interval(rates, groups=groups, level=level, anytime=self._anytime)
        fair = interval, simultaneous
        if lost.any():
            fair = self._interval(rates + lost, groups), stats.mean_interval(rates + lost, groups=groups, level=level)
        verdict = partial(self._verdict, tie_rate=float(ties.mean()))
        # If sets were ranked by NSR, a negative signal would mirror their order.
        in_order = rates
        if not self._protocol.by_clipped_nsr:  # they are in this order already
            in_order = np.where(used.column("signal") < 0, 1 - rates - 2 * lost, rates)  # a tie is lost in either order
        return {
            "win_rate_ci": interval,
            "win_rate_ci_simultaneous": simultaneous,
            "rank_effect_ci": _as_effects(interval),
            "p_value": self._p_values[cell],
            "p_adjusted": self._adjusted[cell],
            "win_rate_nsr_order": float(in_order.mean()),
            "verdict": verdict(rates, fair[0]),
            "verdict_simultaneous": verdict(rates, fair[1]),
            "verdict_nsr_order": verdict(in_order, self._interval(in_order + lost, groups)),
        }

    def _verdict(self, rates: NDArray[np.float64], interval: stats.Interval, tie_rate: float) -> stats.Verdict:
        """Return the word of these win rates, by their interval where ties are fair, or by their mean as counted."""
        if self._protocol.words == "point":
            return stats.point_verdict(float(rates.mean()), interval)
        return stats.verdict(interval, tie_rate=tie_rate)

    def _interval(self, rates: NDArray[np.float64], groups: stats.Groups) -> stats.Interval:
        if self._protocol.percentile:
            return stats.percentile_interval(rates, rng=rng_for(self._config.seed, "bootstrap"), groups=groups)
        return stats.mean_interval(rates, groups=groups, anytime=self._anytime)


def is_decided(folder: RunFolder, config: RunSettings, *, n_parts: int) -> bool:
    """Return True if the first parts settle the verdict on every attribution but the control, under every operator."""
    for cell, outcomes in outcomes_by_configuration(folder, config, n_parts=n_parts).items():
        used = outcomes.select(outcomes.sound)
        if cell.operator == ALL or cell.attribution == CONTROL:
            continue
        if not len(used):
            return False
        interval = stats.mean_interval(used.column("win_rate"), groups=groups_of(used), anytime=True)
        if not stats.is_settled(interval, tie_rate=float(used.column("tie_rate").mean())):
            return False
    return True


def _line(
    cell: Configuration,
    used: Outcomes,
    skipped: Counter[str],
    config: RunSettings,
    inferences: _Inferences,
    notes: Sequence[str],
    noise: float,
) -> SummaryLine:
    measures = Measures()
    if len(used):
        measures = _measures(used, config, inferences.of(cell))
    flags = {*_flags(used, measures, config, noise), *notes} if len(used) else {"no_examples"}
    gold = used.column("gold")
    right = (used.column("predicted") == gold)[~np.isnan(gold)]
    return SummaryLine(
        model=config.model,
        task=config.task,
        **cell._asdict(),
        n=len(used),
        n_skipped=skipped.total(),
        accuracy=float(np.mean(right)) if right.size else None,
        **vars(measures),
        flags=tuple(sorted(flags)),
        n_gold=len(right),
        skipped=dict(skipped.most_common()),
    )


def below_chance(accuracy: float, n: int, labels: Sequence[str]) -> str | None:
    """Return a warning if a model is right less often than chance (1 % level, one-sided); None if it is not."""
    p_value = binom.cdf(round(accuracy * n), n, 1 / len(labels))
    if p_value > BELOW_CHANCE:
        return None
    return (
        f"The model is right on {100 * accuracy:.1f} % of {n} examples, less than chance ({100 / len(labels):.0f} %): "
        f"are its classes or label words in the order of the task, {', '.join(labels)}?"
    )


def adjusted_jointly(summaries: Sequence[Summary]) -> list[Summary]:
    """Return the summaries of several runs, with p-values adjusted over all of them together.

    By Holm, or by Benjamini-Hochberg where the protocols of all runs say so.
    """
    if len(summaries) < 2:  # the adjustment of a single run knows what its configurations have in common
        return list(summaries)
    lines = [line for summary in summaries for line in summary.configurations]
    fdr = all(protocol_of(line.flags).fdr is not None for line in lines if line.p_value is not None)
    adjusted = stats.adjusted_known([line.p_value for line in lines], fdr=fdr)
    together = iter([replace(line, p_adjusted=value) for line, value in zip(lines, adjusted, strict=True)])
    return [
        replace(summary, configurations=tuple(itertools.islice(together, len(summary.configurations))))
        for summary in summaries
    ]


class Dropped(NamedTuple):
    """Examples that should have a result and have none."""

    n: int
    total: int
    reasons: Mapping[str, int]
    """Reason -> number of examples."""
    where: str = ""
    """The configuration, if others lost fewer examples."""

    @property
    def share(self) -> float:
        return self.n / self.total if self.total else 0.0


def dropped(summary: Summary) -> Dropped:
    """Return the failed examples of the configuration that has most of them; texts of one unit did not fail."""
    lines = [line for line in summary.configurations if line.operator != ALL]
    counted = [((line.attribution, line.operator), line.skipped, line.n + line.n_skipped) for line in lines]
    if summary.chains is not None:
        counted.append((("", ""), summary.chains.problems.skipped, summary.chains.problems.n))
    found, none = dict[tuple[str, str], Dropped](), Dropped(0, 0, {})
    for place, skipped, total in counted:
        failed = {why: n for why, n in skipped.items() if not _NOTHING_TO_TEST.match(why)}
        each = Dropped(sum(failed.values()), total, failed)
        found[place] = max(found.get(place, none), each, key=attrgetter("share"))
    (attribution, operator), most = max(found.items(), key=lambda each: each[1].share, default=(("", ""), none))
    same = [place for place, each in found.items() if each.n == most.n]
    if len(same) == len(found) or not operator:
        return most
    is_shared = all(place in same for place in found if place[1] == operator)
    return most._replace(where=f"under {operator}" if is_shared else f"for {attribution} under {operator}")


def simultaneous(summary: Summary) -> Summary:
    """Return the summary with the intervals and verdicts that hold for all configurations of the run at once."""
    lines = []
    for line in summary.configurations:
        interval = line.win_rate_ci_simultaneous
        effect = line.rank_effect_ci if interval is None else _as_effects(interval)
        line = replace(line, win_rate_ci=interval, rank_effect_ci=effect, verdict=line.verdict_simultaneous)
        lines.append(line)
    return replace(summary, configurations=tuple(lines))


def _as_effects(interval: stats.Interval) -> stats.Interval:
    """Return an interval of win rates on the scale of rank effects, from -1 to 1."""
    return stats.Interval(*(2 * limit - 1 for limit in interval))


def _measures(used: Outcomes, config: RunSettings, inferred: Mapping[str, Any]) -> Measures:
    rates, effects, nsr = used.column("win_rate"), used.known("effect_size"), used.known("nsr")
    win_rate, ties = float(rates.mean()), float(used.column("tie_rate").mean())
    strict, anytime = float(used.column("win_rate_strict").mean()), config.until is not None
    return Measures(
        win_rate=win_rate,
        win_rate_strict=strict,
        tie_rate=ties,
        win_rate_untied=strict / (1 - ties) if ties < 1 else None,
        win_rate_attainable=1 - ties if PROTOCOLS[config.protocol].strict else 1 - ties / 2,
        rank_effect=2 * win_rate - 1,
        effect=float(used.column("effect").mean()),
        effect_size=float(np.mean(effects)) if effects.size else None,
        effect_size_median=_median(effects),
        effect_size_random=_median(used.known("effect_size_random")),
        effect_size_undefined=len(used) - len(effects),
        nsr=_pooled_nsr(used),
        nsr_mean=float(np.mean(nsr)) if nsr.size else None,
        nsr_median=_median(nsr),
        weak_signal_rate=float((np.abs(used.column("signal")) < WEAK_SIGNAL).mean()),
        negative_signal_rate=float((used.column("signal") < 0).mean()),
        detectable_win_rate=stats.detectable_win_rate(rates, used.families, groups=groups_of(used), anytime=anytime),
        taxonomy=stats.taxonomy(win_rate),
        **_of_single_examples(used, config),
        **inferred,
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


def _flags(used: Outcomes, measures: Measures, config: RunSettings, noise: float) -> Iterator[str]:
    groups, effect, ties = groups_of(used), measures.effect or 0.0, measures.tie_rate or 0.0
    raised = {
        "small_n": stats.effective_number(groups, n=len(used)) < SMALL_N,
        "ties": ties > TIE_FLAG,
        "depends_on_score_order": measures.verdict != measures.verdict_nsr_order,
        "exact_for_some": used.flag("exact").any(),
        "grouped": groups is not None,
        f"adaptive_{config.adaptive}": config.adaptive,
        f"until_{config.until}": config.until,
        "effect_below_noise": abs(effect) < noise and not PROTOCOLS[config.protocol].by_clipped_nsr,
    }
    return (name for name, is_raised in raised.items() if is_raised)


def _pooled_nsr(used: Outcomes) -> float | None:
    """Return `Σ(s_r - s_∅) / Σ(s_x - s_∅)`; None if the denominator is 0."""
    total = float(used.column("signal").sum())
    if abs(total) < 1e-9:
        return None
    return float((used.column("score") - used.column("score_empty")).sum() / total)


def _median(values: NDArray[np.float64]) -> float | None:
    return float(np.median(values)) if values.size else None
