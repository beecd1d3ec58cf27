"""All statistics of a step-level run, from its folder: those of every run, and what is said of chains only."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ice_eval import stats
from ice_eval.cot.ledger import ANSWER, changed
from ice_eval.cot.levels import level_lines
from ice_eval.cot.measures import CUTS, ChainRows, Rate, capacity_lines, chain_rows, mean_rate, rate_of, shares_of
from ice_eval.records import Kind
from ice_eval.results import InputRow, LedgerRow, RunFolder, RunSettings, Summary, rescore
from ice_eval.results.json_files import write_record
from ice_eval.results.ledger import NO_NAMES
from ice_eval.results.records import (
    ChainSummary,
    CountedRate,
    CutRate,
    DependenceLine,
    ProblemCounts,
    RawAgreement,
    RawLine,
    StepCounts,
    Truncation,
)
from ice_eval.results.summary import outcomes_by_configuration
from ice_eval.seeding import rng_for

RAW_THRESHOLD = 0.5
"""From here on a raw score counts as evidence for an explanation, as a win rate does from `stats.WEAKLY_FAITHFUL` on
(the paper's head-to-head)."""


def rescore_chains(folder: RunFolder) -> Summary:
    """Compute all statistics again from inputs and ledger, and return the summary."""
    summary, config = rescore(folder), folder.manifest().config
    assert config.chain is not None, "the folder holds a step-level run"
    inputs, chains = _read(folder)
    arranged, raw = config.chain.arrangements, tuple(_raw(folder, config, summary))
    content = ChainSummary(
        problems=_problems(inputs),
        steps=_steps(chains),
        noise_floor=_counted([chain.floor for chain in chains], config),
        no_steps=_counted([chain.empty for chain in chains], config),
        capacity=tuple(capacity_lines(chains, config)),
        operator_dependence=tuple(_dependence(chains, config)),
        shuffle=_shuffled(chains, config) if "shuffle" in arranged else None,
        truncate=_truncated(chains, config) if "truncate" in arranged else None,
        levels=tuple(level_lines(folder, seed=config.seed)) if config.chain.levels else None,
        raw=raw,
        raw_agreement=_agreement(raw),
    )
    # The accuracy is that of the chains: rows have no right answer of their own.
    lines = tuple(replace(line, accuracy=content.problems.accuracy) for line in summary.configurations)
    summary = replace(summary, configurations=lines, chains=content)
    write_record(folder.path / "summary.json", summary)
    return summary


def _counted(rates: Sequence[Rate], config: RunSettings) -> CountedRate:
    return CountedRate(**vars(mean_rate(rates, seed=config.seed)), n=len(rates))


def _read(folder: RunFolder) -> tuple[list[InputRow], list[ChainRows]]:
    inputs, chains = [], []
    for part in folder.parts():
        rows: Mapping[str, list[LedgerRow]] = defaultdict(list)
        for row in folder.ledger(part, NO_NAMES).records():
            if row.key.kind != Kind.PROBE:
                rows[row.key.example_id].append(row)
        for example in folder.inputs(part):
            inputs.append(example)
            if example.skip_reason is None:
                chains.append(chain_rows(example, rows[example.example_id]))
    return inputs, chains


def _problems(inputs: Sequence[InputRow]) -> ProblemCounts:
    right = [example.gold == 0 for example in inputs if example.gold is not None]
    skipped = Counter(example.skip_reason for example in inputs if example.skip_reason is not None)
    return ProblemCounts(
        n=len(inputs),
        n_evaluated=len(inputs) - sum(skipped.values()),
        skipped=dict(skipped.most_common()),
        n_unreadable=sum(ANSWER not in example.fields for example in inputs),
        n_gold=len(right),
        accuracy=float(np.mean(right)) if right else None,
    )


def _steps(chains: Sequence[ChainRows]) -> StepCounts:
    counts = [chain.n_steps for chain in chains]
    if not counts:
        return StepCounts()
    return StepCounts(mean=float(np.mean(counts)), median=float(np.median(counts)), least=min(counts), most=max(counts))


_MEASURES: tuple[Literal["necessity", "sufficiency"], ...] = ("necessity", "sufficiency")


def _dependence(chains: Sequence[ChainRows], config: RunSettings) -> Iterator[DependenceLine]:
    """Compare necessity and sufficiency between operators, over the same chains."""
    pairs = itertools.combinations(config.operators, 2)
    for k, pair, measure in itertools.product(shares_of(config), pairs, _MEASURES):
        rates = [[getattr(chain, measure)(name, k, config.m).point for name in pair] for chain in chains]
        known = np.array([each for each in rates if not np.isnan(each).any()]).reshape(-1, 2)
        gap, interval = _gap(known, config.seed)
        yield DependenceLine(k=k, operators=pair, measure=measure, n=len(known), gap=gap, gap_ci=interval)


def _gap(pairs: NDArray[np.float64], seed: int) -> tuple[float | None, stats.Interval | None]:
    """Mean difference of two columns, and its interval."""
    if not len(pairs):
        return None, None
    first, second = pairs.T
    interval = stats.difference_interval(first, second, rng=rng_for(seed, "bootstrap"))
    return float((first - second).mean()), interval


def _shuffled(chains: Sequence[ChainRows], config: RunSettings) -> CountedRate:
    """How often the same steps in another order give another answer."""
    return _counted([rate_of(changed(rows)) for chain in chains if (rows := chain.arranged("shuffle"))], config)


def _truncated(chains: Sequence[ChainRows], config: RunSettings) -> Truncation:
    """How often a part of the chain gives its answer, and the share of steps from which on it stands."""
    curve, settled = defaultdict[float, list[Rate]](list), []
    for chain in chains:
        kept = chain.kept_when_cut()
        for share in CUTS:
            curve[share].append(rate_of(kept[[int(share * chain.n_steps + 1e-9)]]))
        settled.append(_settled(kept))
    known = np.array([share for share in settled if share is not None])
    interval = stats.mean_interval(known, rng=rng_for(config.seed, "bootstrap")) if known.size else None
    return Truncation(
        kept=tuple(CutRate(share=share, **vars(mean_rate(curve[share], seed=config.seed))) for share in CUTS),
        settled=float(known.mean()) if known.size else None,
        settled_ci=interval,
        n=int(known.size),
    )


def _settled(kept: NDArray[np.float64]) -> float | None:
    """The share of steps after which every cut gives the chain's own answer; None where all steps do not."""
    if np.isnan(kept).any() or not kept[-1]:
        return None
    missed = np.flatnonzero(kept == 0)
    return float((missed[-1] + 1 if missed.size else 0) / (len(kept) - 1))


def _raw(folder: RunFolder, config: RunSettings, summary: Summary) -> Iterator[RawLine]:
    """Raw scores as ERASER has them beside win rates: is a large score one that random steps would have, too?"""
    lines = {line.configuration: line for line in summary.configurations}
    for cell, outcomes in outcomes_by_configuration(folder, config).items():
        used = outcomes.select(outcomes.sound)
        if not len(used):
            continue
        sufficient, kept = cell.direction == "sufficiency", used.column("score")
        raw = float(np.mean(kept if sufficient else used.column("score_full") - kept))
        win_rate = lines[cell].win_rate
        assert win_rate is not None and isinstance(cell.k, float), "a configuration of steps with examples"
        yield RawLine(
            attribution=cell.attribution,
            operator=cell.operator,
            k=cell.k,
            measure="sufficiency" if sufficient else "comprehensiveness",
            n=len(used),
            raw=raw,
            win_rate=win_rate,
            raw_positive=raw >= RAW_THRESHOLD,
            win_rate_positive=win_rate >= stats.WEAKLY_FAITHFUL,
        )


def _agreement(lines: Sequence[RawLine]) -> RawAgreement:
    """How often raw scores and win rates agree, and which is the more generous where they do not."""
    return RawAgreement(
        n=len(lines),
        agree=sum(line.agree for line in lines),
        both=sum(line.raw_positive and line.win_rate_positive for line in lines),
        raw_only=sum(line.raw_positive and not line.win_rate_positive for line in lines),
        win_rate_only=sum(line.win_rate_positive and not line.raw_positive for line in lines),
        raw_threshold=RAW_THRESHOLD,
        win_rate_threshold=stats.WEAKLY_FAITHFUL,
    )
