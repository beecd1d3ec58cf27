"""Attributions beside the behaviour of models: do they predict its confidence, and do both vary together?"""

import itertools
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata, spearmanr

from ice_eval import stats
from ice_eval.analysis._base import Found, Measure, Missing, Values, groups_of, listed, measure, vectors_of
from ice_eval.analysis.measures.explanations import entropy
from ice_eval.nulls import SIZE
from ice_eval.operators import draws_fills
from ice_eval.records import NOT_SET, Kind, PerUnit
from ice_eval.results import InputRow, Manifest, RunFolder, RunSettings
from ice_eval.results.folder import FinishedRun
from ice_eval.results.summary import scored_examples
from ice_eval.results.view import is_open
from ice_eval.seeding import rng_for
from ice_eval.stats import Groups
from ice_eval.table import N, columns, estimate, naming

FEWEST, FOLDS = 20, 5
"""Fewest examples for five folds of a regression with six features."""
_ERRORS = (
    *naming("attribution"),
    *N,
    *columns("number", error="mean error", baseline="of the mean"),
    *estimate("gain", "gain", "signed"),
)


def features(vector: PerUnit) -> list[float]:
    """Return maximum, its lead over the second, mean, spread, share of the largest magnitude, and entropy."""
    # None of them grows with the length of a text by its definition, as a sum would.
    second, first = np.sort(vector)[-2:]
    magnitudes = np.abs(vector)
    largest = float(magnitudes.max() / magnitudes.sum()) if magnitudes.any() else 0.0
    spread = entropy(vector) if magnitudes.any() else 0.0
    return [float(first), float(first - second), float(vector.mean()), float(vector.std()), largest, spread]


@measure("confidence")
class Confidence(Measure):
    """How well an attribution's numbers predict the model's confidence, against a guess of the mean."""

    needs = f"{FEWEST} examples"

    def of(self, folder: RunFolder) -> Found | Missing:
        run = FinishedRun(folder=folder)
        rows = [row for name, row in run.inputs.items() if name in run.confidences]
        if np.ptp([run.confidences[row.example_id] for row in rows] or [0.0]) == 0:
            return Missing("the model is equally sure of every example")
        lines = [line for name in run.config.attributions if (line := _gain(name, rows, run))]
        missing = f"no attribution has {FEWEST} examples (of {FOLDS} groups, if grouped); raise --n"
        return listed("Confidence from attributions", _ERRORS, lines, missing)


def _gain(name: str, rows: Sequence[InputRow], run: FinishedRun) -> dict[str, Any] | None:
    """Return the errors of a ridge regression on the other folds, and of their mean; None for too few examples."""
    used = vectors_of(name, rows, run.config)
    groups = groups_of([row for row, _ in used])
    if len(used) < FEWEST or (groups is not None and len(set(groups)) < FOLDS):
        return None
    from sklearn.dummy import DummyRegressor
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import PredefinedSplit, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x = np.array([features(vector) for _, vector in used])
    y = np.array([run.confidences[row.example_id] for row, _ in used])
    folds = PredefinedSplit(folds_of(len(y), groups, seed=run.config.seed))
    predicted = np.clip(cross_val_predict(make_pipeline(StandardScaler(), Ridge()), x, y, cv=folds), 0, 1)
    guessed = cross_val_predict(DummyRegressor(), x, y, cv=folds)
    error, baseline = np.abs(predicted - y), np.abs(guessed - y)
    interval = stats.paired_difference(error, baseline, groups=groups).interval
    means = {"error": float(error.mean()), "baseline": float(baseline.mean()), "gain": float((baseline - error).mean())}
    return {"attribution": name, "n": len(used), **means, "gain_ci": interval}


def folds_of(n: int, groups: Groups, *, seed: int) -> NDArray[np.int64]:
    """Return the fold of every example; a group is in one fold."""
    labels = list(range(n)) if groups is None else [list(dict.fromkeys(groups)).index(group) for group in groups]
    order = rng_for(seed, "confidence", "folds").permutation(max(labels) + 1)
    return order[labels] % FOLDS


# --- consistency --------------------------------------------------------------------------------------------------

FEWEST_PAIRED = 10
"""Fewest examples with the same target: below, the order of pairs is mostly chance."""
_MOST = 300
"""Number of first examples whose pairs are compared: pairs grow with the square of examples."""
_PERMUTATIONS = 999
_GRID = np.linspace(0, 1, 21)[1:]
_TINY = 1e-12
"""Probabilities are clipped this far from 0 and 1: log-odds stay finite."""
_GROUPED = "examples of a group are not exchangeable one by one: rho is a description, without a p-value"
_RELATION = (
    *naming("attribution"),
    *N,
    *columns("count", pairs="pairs"),
    *columns("signed", rho="rho"),
    *columns("p-value", p_value="p"),
)


def concentration(vector: PerUnit) -> Values:
    """Return the share of the magnitude that the top 5 %, 10 %, … 100 % of the units hold; 0 where there is none."""
    magnitudes = np.sort(np.abs(vector))[::-1]
    shares = np.concatenate([[0.0], np.cumsum(magnitudes)]) / max(float(magnitudes.sum()), np.finfo(np.float64).tiny)
    return np.interp(_GRID, np.linspace(0, 1, vector.size + 1), shares)


@measure("consistency")
class Consistency(Measure):
    """Similarity of concentration between examples that the model is equally sure of."""

    needs = f"{FEWEST_PAIRED} examples with the same target"

    def of(self, folder: RunFolder) -> Found | Missing:
        run = FinishedRun(folder=folder)
        rows = [row for name, row in run.inputs.items() if name in run.confidences]
        lines = [line for name in run.config.attributions if (line := _correlation(name, rows, run))]
        missing = f"no attribution and confidence differ over {FEWEST_PAIRED} examples with the same target; raise --n"
        notes = (_GROUPED,) if groups_of(rows) is not None else ()
        return listed("Consistency of confidence and attribution", _RELATION, lines, missing, *notes)


def _correlation(name: str, rows: Sequence[InputRow], run: FinishedRun) -> dict[str, Any] | None:
    used = [(row, vector) for row, vector in vectors_of(name, rows, run.config) if vector.any()][:_MOST]
    targets = np.array([-1 if row.target is None else row.target for row, _ in used])
    if not used or np.bincount(targets + 1).max() < FEWEST_PAIRED:
        return None
    profiles = np.array([concentration(vector) for _, vector in used])
    sure = np.clip([run.confidences[row.example_id] for row, _ in used], _TINY, 1 - _TINY)
    log_odds = np.log(sure) - np.log1p(-sure)
    found = pair_correlation(
        np.abs(profiles[:, None] - profiles[None]).mean(axis=2),
        np.abs(np.subtract.outer(log_odds, log_odds)),
        targets,
        rng=rng_for(run.config.seed, "consistency", name),
    )
    if found is None:
        return None
    # Exchanging single examples of a group would call most groups significant.
    p_value = found["p_value"] if groups_of([row for row, _ in used]) is None else None
    return {"attribution": name, "n": len(used), **found, "p_value": p_value}


def pair_correlation(
    first: Values, second: Values, classes: NDArray[np.int64], *, rng: np.random.Generator
) -> dict[str, Any] | None:
    """Return Spearman's rho of two matrices of distances, over pairs of one class, with its two-sided p-value."""
    # Pairs share examples, so the p-value comes from exchanging whole examples within their class (Mantel, 1967).
    # None where one kind of distance is constant.
    rows, columns = np.nonzero(np.triu(np.equal.outer(classes, classes), k=1))
    x, y = rankdata(first[rows, columns]), rankdata(second[rows, columns])
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    x, y = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
    ranks = np.zeros_like(second)
    ranks[rows, columns] = ranks[columns, rows] = y
    members = [np.flatnonzero(classes == each) for each in np.unique(classes)]
    null, order = np.empty(_PERMUTATIONS), np.empty(classes.size, dtype=np.int64)
    for draw in range(_PERMUTATIONS):
        for places in members:
            order[places] = rng.permutation(places)
        null[draw] = (x * ranks[order[rows], order[columns]]).mean()
    rho = float((x * y).mean())
    return {"pairs": rows.size, "rho": rho, "p_value": stats.upper_pvalue(abs(rho), np.abs(null))}


# --- consistency of models ----------------------------------------------------------------------------------------

_FROM_SETS, _FROM_TEXT = "random sets", "full text"
_FEWEST_SHARED = 5
"""Fewest random sets that two runs share on every example: below, behaviour is compared on full texts."""
_DECIMALS = 9
_MODELS = (
    *columns("text", first="first model", second="second model", attribution="attribution", behaviour="behaviour from"),
    *N,
    *estimate("rho", "rho", "signed"),
    *columns("p-value", p_value="p"),
)
_Content = Hashable
"""Texts and units of an example; equal in runs of different models."""
_Key = tuple[str, int, bytes]
"""Operator, direction, and units that a random set keeps."""


class _Behaviour(NamedTuple):
    """Numbers of one run about an example."""

    row: InputRow
    full: Values
    """Probability of each label on the full text, labels in alphabetical order."""
    sets: Mapping[_Key, Values]


@measure("model-consistency")
class ModelConsistency(Measure):
    """Difference of two models' explanations on examples on which the models behave differently."""

    needs = f"runs of two models with {FEWEST_PAIRED} examples in common"

    def of(self, folder: RunFolder) -> Found | Missing:
        return Missing("it compares models; give runs of two models on the same data, as ice measures RUN RUN")

    def across(self, found: Sequence[Found], folders: Sequence[RunFolder]) -> Found | Missing:
        kinds: dict[tuple[object, ...], list[RunFolder]] = defaultdict(list)
        for folder in folders:
            manifest = folder.manifest()
            if not is_open(manifest.labels):
                kinds[manifest.config.task, frozenset(manifest.labels), manifest.config.unit].append(folder)
        lines, grouped = list[dict[str, Any]](), False
        for alike in kinds.values():
            held = [(folder.manifest(), _behaviours(folder)) for folder in alike] if len(alike) > 1 else []
            for (first, one), (second, other) in itertools.combinations(held, 2):
                if _model_of(first) != _model_of(second):
                    pairs = [(one[content], other[content]) for content in one if content in other]
                    grouped = grouped or groups_of([behaviour.row for behaviour, _ in pairs]) is not None
                    lines += _model_lines(pairs, first.config, second.config)
        missing = (
            f"no two models have {FEWEST_PAIRED} texts with the same units and explanations that differ; "
            "--unit word gives models with different tokens the same units"
        )
        return listed("Consistency of models", _MODELS, lines, missing, *((_GROUPED,) if grouped else ()))


def _model_of(manifest: Manifest) -> tuple[object, ...]:
    return manifest.config.model, manifest.identity.get("weights")


def _behaviours(folder: RunFolder) -> dict[_Content, _Behaviour]:
    """Return what a run holds about its first examples."""
    run, found = FinishedRun(folder=folder), dict[_Content, _Behaviour]()
    config, order = run.config, np.argsort(run.manifest.labels)
    rows = dict(itertools.islice(run.inputs.items(), _MOST))
    # Operators that draw fills show each model other texts; matched sets depend on its explanations.
    for scored in scored_examples(folder, config, kinds=(Kind.FULL, Kind.RANDOM)):
        ledger, full, sets = scored.ledger, dict[int, Values](), defaultdict[int, dict[_Key, Values]](dict)
        places = [place for place, name in enumerate(scored.examples.ids) if name in rows]
        operators = {code: name for code, name in enumerate(ledger.names.operators) if not draws_fills(name)}
        by_size = ledger.names.nulls.index(SIZE) if SIZE in ledger.names.nulls else NOT_SET
        probabilities, ends = np.exp(ledger.scores[:, order]), np.cumsum(ledger.n_kept)
        for number in np.flatnonzero(np.isin(ledger.head["example"], places)).tolist():
            head, end = ledger.head[number], ends[number]
            if head["kind"] == Kind.FULL:
                full[int(head["example"])] = probabilities[number]
            elif int(head["operator"]) in operators and head["null"] == by_size:
                kept = np.sort(ledger.kept[end - ledger.n_kept[number] : end]).tobytes()
                key = operators[int(head["operator"])], int(head["direction"]), kept
                sets[int(head["example"])][key] = probabilities[number]
        for place in places:
            row = rows[scored.examples.ids[place]]
            if place in full and np.isfinite(full[place]).all():
                content = tuple(row.fields.items()), row.spans
                found.setdefault(content, _Behaviour(row, full[place], sets[place]))
    return found


def _model_lines(
    pairs: Sequence[tuple[_Behaviour, _Behaviour]], first: RunSettings, second: RunSettings
) -> Iterator[dict[str, Any]]:
    shared = [[key for key in one.sets if key in other.sets] for one, other in pairs]
    # One kind of distance for all examples, or they would not have one order.
    from_sets = min(map(len, shared), default=0) >= _FEWEST_SHARED
    distances = [
        np.mean([variation(one.sets[key], other.sets[key]) for key in keys])
        if from_sets
        else variation(one.full, other.full)
        for (one, other), keys in zip(pairs, shared, strict=True)
    ]
    for name in first.attributions:
        vectors = [
            {row.example_id: vector for row, vector in vectors_of(name, rows, config) if np.ptp(vector) > 0}
            for rows, config in (([one.row for one, _ in pairs], first), ([other.row for _, other in pairs], second))
        ]
        used = [
            (distance, one.row, vectors[0][one.row.example_id], vectors[1][other.row.example_id])
            for distance, (one, other) in zip(distances, pairs, strict=True)
            if one.row.example_id in vectors[0] and other.row.example_id in vectors[1]
        ]
        if len(used) < FEWEST_PAIRED:
            continue
        # Rounding must not rank equal distances.
        behaved = np.round([distance for distance, *_ in used], _DECIMALS)
        apart = np.round([1 - float(spearmanr(a, b).statistic) for *_, a, b in used], _DECIMALS)
        groups = groups_of([row for _, row, *_ in used])
        rng = rng_for(first.seed, "model-consistency", name, first.model, second.model)
        rho = stats.correlate(behaved, apart, rng=rng, coefficient="spearman", groups=groups)
        if rho.r is not None:
            p_value = permuted_pvalue(behaved, apart, rng=rng) if groups is None else None
            head = {"task": first.task, "first": first.model, "second": second.model, "attribution": name}
            numbers = {"n": len(used), "rho": rho.r, "rho_ci": rho.interval, "p_value": p_value}
            yield {**head, "behaviour": _FROM_SETS if from_sets else _FROM_TEXT, **numbers}


def variation(first: Values, second: Values) -> float:
    """Return the total variation distance of two distributions over labels, from 0 to 1."""
    return float(np.abs(first - second).sum() / 2)


def permuted_pvalue(x: Values, y: Values, *, rng: np.random.Generator) -> float:
    """Return the two-sided p-value of Spearman's rho from exchanging the values of one side."""
    x, y = (ranks - ranks.mean() for ranks in (rankdata(x), rankdata(y)))
    null = rng.permuted(np.tile(y, (_PERMUTATIONS, 1)), axis=1) @ x
    return stats.upper_pvalue(abs(float(x @ y)), np.abs(null))
