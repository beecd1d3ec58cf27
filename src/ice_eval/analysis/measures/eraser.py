"""ERASER's measures beside win rates, areas under their curves over k, and which of them ranks better."""

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import kendalltau

from ice_eval.analysis import _base
from ice_eval.analysis._base import Found, Measure, Missing, Part, Values, filled, groups_of, listed, mean_of, measure
from ice_eval.analysis.grid import POSITIVE_EVIDENCE
from ice_eval.nulls import SIZE
from ice_eval.rationales import ERASER_SHARES, Share
from ice_eval.records import Direction, Kind
from ice_eval.results import InputRow, RunFolder, RunSettings
from ice_eval.results.chains import POSITIVE_RAW
from ice_eval.results.comparisons import ScoredExamples
from ice_eval.results.folder import FinishedRun
from ice_eval.results.outcomes import ALL
from ice_eval.results.records import Configuration, Measures
from ice_eval.results.summary import CONTROL, scored_examples
from ice_eval.stats import CHANCE, mean_pvalue, reaches
from ice_eval.table import N, columns, estimate, naming

MEASURES: Mapping[Direction, tuple[str, str]] = {
    "sufficiency": ("sufficiency", "aopc_suff"),
    "necessity": ("comprehensiveness", "aopc_compr"),
}
"""ERASER's names for the drop when a rationale is kept, and when it is removed: of one size, and over several."""
_RAW = (
    *naming("attribution", "operator", "k", "measure"),
    *N,
    *estimate("raw", "raw", "signed"),
    *estimate("win_rate", "win rate", "percent", "95 % CI of win rate"),
    *columns("text", positive="positive by"),
)
_AOPC = (
    *naming("attribution", "operator"),
    *N,
    *estimate("aopc_suff", "aopc_suff ↓", "signed"),
    *estimate("aopc_compr", "aopc_compr ↑", "signed", "95 % CI of compr"),
    *columns("count", taucorr_loo_n="n of taucorr"),
    *estimate("taucorr_loo", "taucorr_loo ↑", "signed", "95 % CI of taucorr"),
)
_AGREEMENT = (
    *naming("measure"),
    *columns("count", n_configurations="configurations", agree="agree"),
    *columns("count", eraser_alone="ERASER alone positive", win_rate_alone="win rate alone positive"),
)


_POSITIVE = (
    f"ERASER counts as positive where removing the rationale costs {POSITIVE_RAW:g} of the probability or more, or "
    f"keeping it alone costs {1 - POSITIVE_RAW:g} or less; a win rate from {100 * POSITIVE_EVIDENCE:g} % on."
)


class _Key(NamedTuple):
    attribution: str
    operator: str
    name: str
    """Sufficiency, comprehensiveness, or a measure over several sizes."""
    k: Share | None = None


@measure("eraser")
class EraserMeasure(Measure):
    """ERASER's sufficiency, comprehensiveness and AOPC, and leave-one-out correlation, beside win rates."""

    needs = "a run with --eraser"

    def of(self, folder: RunFolder) -> Found | Missing:
        run = FinishedRun(folder=folder)
        config = run.config
        if not config.eraser:
            return Missing("it has no rows for it; run the same command again with --eraser")
        used = [name in run.inputs for name in run.all_inputs]
        if not any(used):
            return Missing("no example could be used")
        rows, by_part = list(run.inputs.values()), defaultdict[_Key, list[Values]](list)
        for scored in scored_examples(folder, config, kinds=None):
            for key, of_part in _values(scored, config):
                by_part[key].append(of_part)
        values = {key: np.concatenate(found, dtype=np.float64)[used] for key, found in by_part.items()}
        raw = list(_raw_lines(rows, values, folder))
        parts = filled(
            Part("ERASER beside win rates", _RAW, raw),
            Part("ERASER over several sizes", _AOPC, list(_aopc_lines(rows, values))),
            Part("Verdicts of ERASER and of win rates", _AGREEMENT, list(_agreement_lines(raw))),
        )
        notes = [_POSITIVE]
        if without := sorted({line["measure"] for line in raw if line["positive"] is None}):
            flags = ",".join(direction for direction, (name, _) in MEASURES.items() if name in without)
            beside = " and ".join(without)
            notes.append(f"win rates of {beside} are missing: the run lacks --direction {flags}.")
        return Found(parts, tuple(notes))


def _values(scored: ScoredExamples, config: RunSettings) -> Iterator[tuple[_Key, Values]]:
    """Yield ERASER's numbers of every example; NaN where missing."""
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


def _drops(scored: ScoredExamples, attribution: str, operator: str, direction: str, k: Share | None) -> Values:
    """Return the drop of the target's probability when a rationale is kept alone, or removed; NaN without one."""
    sizes = scored.sizes(attribution, k)
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
    magnitude = attribution in scored.config.by_magnitude
    return float(kendalltau(np.abs(vector) if magnitude else vector, drops).statistic)


def _mean(field: str, values: Values, rows: Sequence[InputRow]) -> dict[str, Any]:
    """Return the number of examples with a value, their mean, and its 95 % interval, as fields of a line."""
    used = np.isfinite(values)
    if not used.any():
        return {"n": 0, field: None, f"{field}_ci": None}
    having = list(itertools.compress(rows, used))
    return {"n": len(having), **mean_of(values[used], having, field=field, scale=(-1.0, 1.0))}


def _raw_lines(rows: Sequence[InputRow], values: Mapping[_Key, Values], folder: RunFolder) -> Iterator[dict[str, Any]]:
    config = folder.manifest().config
    null = SIZE if SIZE in config.nulls else config.nulls[0]
    summary = [line for line in folder.summary().configurations if line.null == null]
    rates = {(each.attribution, each.operator, MEASURES[each.direction][0], each.k): each for each in summary}
    for key in (key for key in values if key.name in [raw for raw, _ in MEASURES.values()]):
        found, rate = _mean("raw", values[key], rows), rates.get(key, Measures())
        head = {"attribution": key.attribution, "operator": key.operator, "k": key.k, "measure": key.name}
        positive = _positive(key.name, found["raw"], rate.win_rate)
        yield {**head, **found, "win_rate": rate.win_rate, "win_rate_ci": rate.win_rate_ci, "positive": positive}


def _positive(name: str, raw: float | None, win_rate: float | None) -> str | None:
    """Return the name of the score whose threshold is reached; None without a win rate to compare with."""
    if raw is None or win_rate is None:
        return None
    goodness = 1 - raw if name == "sufficiency" else raw  # larger for a better rationale
    verdicts = reaches(goodness, POSITIVE_RAW), reaches(win_rate, POSITIVE_EVIDENCE)
    return {(True, True): "both", (True, False): "ERASER alone", (False, True): "win rate alone"}.get(verdicts, "none")


def _aopc_lines(rows: Sequence[InputRow], values: Mapping[_Key, Values]) -> Iterator[dict[str, Any]]:
    for name, operator in dict.fromkeys((key.attribution, key.operator) for key in values):
        line: dict[str, Any] = {"attribution": name, "operator": operator, "n": 0}
        for each in ("aopc_suff", "aopc_compr", "taucorr_loo"):
            found = _mean(each, values[_Key(name, operator, each)], rows)
            n = found.pop("n")
            line |= {**found, f"{each}_n": n, "n": max(n, line["n"])}
        yield line


def _agreement_lines(raw: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for name, _ in MEASURES.values():
        found = [line["positive"] for line in raw if line["measure"] == name and line["positive"] is not None]
        if found:
            alone = {"eraser_alone": found.count("ERASER alone"), "win_rate_alone": found.count("win rate alone")}
            agree = found.count("both") + found.count("none")
            yield {"measure": name, "n_configurations": len(found), "agree": agree, **alone}


# --- area over k --------------------------------------------------------------------------------------------------

_CURVE = ("attribution", "operator", "direction", "null")
_AREAS = (
    *naming(*_CURVE),
    *N,
    *estimate("auc_drop", "AUC of the drop", "signed"),
    *estimate("auc_win_rate", "AUC of the win rate", "percent", "95 % CI of win rate"),
)


def area(shares: Sequence[float], values: Values) -> Values:
    """Return the area under curves over k, by trapezoids, over the width of k: a mean height. `values`: (…, shares)."""
    areas: Values = np.asarray(np.trapezoid(values, shares, axis=-1))
    return areas / (shares[-1] - shares[0])


@measure("k-sweep")
class KSweep(Measure):
    """Area under the curve over k, of what is lost of the probability and of the win rate."""

    needs = "two shares k or more"

    def of(self, folder: RunFolder) -> Found | Missing:
        run = FinishedRun(folder=folder)
        shares = sorted(k for k in run.config.k if isinstance(k, float))
        if len(shares) < 2:
            return Missing("it has one k; run the same command again with further ones, as --k 0.1,0.2,0.4")
        points = defaultdict[tuple[str, ...], dict[str, dict[Share, tuple[float, float]]]](lambda: defaultdict(dict))
        for each in run.outcomes():
            if each.k in shares and each.operator != ALL:
                curves = points[each.attribution, each.operator, each.direction, each.null]
                curves[each.example_id][each.k] = each.score_full - each.score, each.win_rate
        lines = []
        for place, curves in points.items():
            # Examples that were evaluated at every k.
            whole = {name: [curve[k] for k in shares] for name, curve in curves.items() if len(curve) == len(shares)}
            if whole:
                line: dict[str, Any] = {**dict(zip(_CURVE, place, strict=True)), "k": shares, "n": len(whole)}
                values = np.array(list(whole.values()))  # (examples, shares, 2)
                for index, name in enumerate(("auc_drop", "auc_win_rate")):
                    areas = area(shares, values[..., index])
                    line |= mean_of(areas, [run.inputs[each] for each in whole], field=name, scale=(-1.0, 1.0))
                lines.append(line)
        title = f"Over k from {shares[0]:g} to {shares[-1]:g}"
        return listed(title, _AREAS, lines, "no example was evaluated at every k")


# --- diagnosticity ------------------------------------------------------------------------------------------------

_DIAGNOSTICITY = (
    *naming("attribution", "against", "operator", "direction", "null", "k", "measure"),
    *N,
    *estimate("mean", "diagnosticity", "percent"),
    *columns("percent", ties="ties"),
    *columns("p-value", p_value="p"),
)


@measure("diagnosticity")
@dataclass(frozen=True, kw_only=True)
class Diagnosticity(Measure):
    """Share of examples on which win rate and ERASER's measures prefer the more faithful of two explanations.

    By default it compares every attribution with `random`.
    """

    needs = "two attributions of which one is known to be more faithful"
    faithful: str = ""
    """Empty: every attribution but the other one."""
    unfaithful: str = CONTROL

    def of(self, folder: RunFolder) -> Found | Missing:
        run = FinishedRun(folder=folder)
        config = run.config
        asked = {name for name in (self.faithful, self.unfaithful) if name}
        if lacking := sorted(asked.difference(config.attributions)):
            return Missing(f"it lacks the attribution '{lacking[0]}'; name diagnosticity:faithful=NAME:unfaithful=NAME")
        names = [self.faithful] if self.faithful else [x for x in config.attributions if x != self.unfaithful]
        values: dict[Configuration, dict[str, tuple[float, float]]] = defaultdict(dict)
        for each in run.outcomes():
            if each.operator != ALL and each.attribution in {*names, self.unfaithful}:
                drop = each.score_full - each.score
                good = drop if each.direction == "necessity" else -drop
                values[each.configuration][each.example_id] = each.win_rate, good
        lines = []
        for cell, own in values.items():
            other = values.get(cell._replace(attribution=self.unfaithful), {})
            used = [example for example in own if example in other]
            if cell.attribution == self.unfaithful or not used:
                continue
            first, second = (np.array([of_one[example] for example in used]) for of_one in (own, other))
            having, head = [run.inputs[example] for example in used], {**cell._asdict(), "against": self.unfaithful}
            for column, title in enumerate(("win rate", MEASURES[cell.direction][0])):
                preferred = preferences(first[:, column], second[:, column])
                p_value = mean_pvalue(preferred, CHANCE, groups=groups_of(having))
                numbers = {"n": len(used), **mean_of(preferred, having), "ties": float((preferred == CHANCE).mean())}
                lines.append({**head, "measure": title, **numbers, "p_value": p_value})
        missing = "no example has two explanations with one k, whose order is known"
        note = "it assumes that the first explanation is the more faithful one on every example, and cannot test that"
        return listed("Diagnosticity", _DIAGNOSTICITY, lines, missing, note)


def preferences(first: Values, second: Values) -> Values:
    """Return 1 where the first number is larger, 0 where the second is, one half where they are equal."""
    return np.where(np.abs(first - second) <= _base.ALIKE, CHANCE, np.where(first > second, 1.0, 0.0))
