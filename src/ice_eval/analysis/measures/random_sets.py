"""Measures of a run's own random sets: changed predictions, students of rationales, interactions of units."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ice_eval import stats
from ice_eval.analysis import _base
from ice_eval.analysis._base import Found, Measure, Missing, Values, listed, measure
from ice_eval.analysis.measures.confidence import FOLDS, folds_of
from ice_eval.nulls import SIZE
from ice_eval.rationales import Share
from ice_eval.records import NOT_SET, Ids, Kind
from ice_eval.results import InputRow, RunFolder, RunSettings
from ice_eval.results.comparisons import ScoredExamples
from ice_eval.results.folder import FinishedRun
from ice_eval.results.ledger import log_odds
from ice_eval.results.outcomes import ALL
from ice_eval.results.records import Configuration
from ice_eval.results.summary import configurations, scored_examples
from ice_eval.seeding import rng_for
from ice_eval.table import N, columns, estimate, naming

Masks = NDArray[np.bool_]
_STOPPED = Missing("its random sets end as soon as a test is decided; run without --adaptive examples")


def _cells(config: RunSettings) -> list[Configuration]:
    """Return the configurations of single operators."""
    return [cell for cell, _ in configurations(config) if cell.operator != ALL]


# --- redaction ----------------------------------------------------------------------------------------------------

_REDACTION = (
    *naming("attribution", "operator", "null", "k"),
    *N,
    *_base.above_chance_columns("prediction changes", "percent"),
)


@measure("redaction")
class Redaction(Measure):
    """How often the model's own prediction changes when a rationale is removed, against random sets of its size."""

    needs = "--direction necessity"

    def of(self, folder: RunFolder) -> Found | Missing:
        run = FinishedRun(folder=folder)
        config = run.config
        if "necessity" not in config.directions:
            return Missing("it removes no rationale; run the same command again with --direction sufficiency,necessity")
        if config.adaptive == "examples":
            return _STOPPED
        found: dict[Configuration, list[tuple[str, float, float]]] = defaultdict(list)
        for scored in scored_examples(folder, config):
            for cell in (cell for cell in _cells(config) if cell.direction == "necessity"):
                found[cell] += changes(scored, cell)
        lines = []
        for cell, of_cell in found.items():
            used = [run.inputs[name] for name, *_ in of_cell]
            if used:
                own, null = np.array([numbers for _, *numbers in of_cell]).T
                above = _base.above_chance(own, null, used)
                lines.append({**cell._asdict(), "n": len(used), **above})
        missing = "no example has a rationale and a random set"
        return listed("Predictions that change without the rationale", _REDACTION, lines, missing)


def changes(scored: ScoredExamples, cell: Configuration) -> Iterator[tuple[str, float, float]]:
    """Yield example ids, 1 if the predicted label changes under the cell's rationale, and the share of its null.

    With several fills, the first number is a mean over them.
    """
    found, labels, head = scored.compared(cell, [cell.operator]), scored.row_labels, scored.ledger.head
    predicted, names = scored.predicted(), scored.ledger.names
    sizes = scored.sizes(cell.attribution, cell.k)
    is_own = (head["kind"] == Kind.RATIONALE) & (head["size"] == sizes[head["example"]])
    for column in ("attribution", "operator", "direction"):
        is_own &= head[column] == names.of(column).index(getattr(cell, column))
    own = np.flatnonzero(is_own)
    of_example = head["example"][own]
    n_changed = np.bincount(of_example, labels[own] != predicted[of_example], minlength=len(sizes))
    n_rows = np.bincount(of_example, minlength=len(sizes))
    for place in np.flatnonzero(found.n > 0).tolist():
        null = labels[found.null_rows[place, : found.n[place]]] != predicted[place]
        yield scored.examples.ids[place], float(n_changed[place] / n_rows[place]), float(null.mean())


# --- simulatability -----------------------------------------------------------------------------------------------

FEWEST = 20
"""Fewest examples for five folds of a student."""
_MOST = 300
"""Number of first examples that a student reads."""
STUDENTS = 39
"""Number of students of random sets: with the rationale's own, 40 ranks are as many as a level of 5 % needs."""
_PENALTY = 1.0
_LEVEL = 0.05
_SIMULATED = (
    *naming("attribution", "null", "k"),
    *N,
    *_base.above_chance_columns("accuracy", "percent"),
    *columns("p-value", p_value="p"),
    *columns("percent", full="full text", majority="commonest label"),
    *columns("text", verdict="verdict"),
)


class StudentExample(NamedTuple):
    """One example as a student reads it."""

    row: InputRow
    label: int
    """Label that the model predicts."""
    rationale: Ids
    sets: tuple[Ids, ...]
    full: Ids


@measure("simulatability")
class Simulatability(Measure):
    """How well a simple classifier predicts the model's label from a rationale, against random sets of its size."""

    needs = f"{FEWEST} examples, with two predicted labels"

    def of(self, folder: RunFolder) -> Found | Missing:
        run = FinishedRun(folder=folder)
        config = run.config
        if config.adaptive == "examples":
            return _STOPPED
        studied: dict[Configuration, list[StudentExample]] = defaultdict(list)
        # Sets do not depend on the operator and direction that they are scored under.
        every = _cells(config)
        cells = [cell for cell in every if (cell.operator, cell.direction) == (every[0].operator, every[0].direction)]
        words: dict[str, int] = {}
        for scored in scored_examples(folder, config):
            for cell in (cell for cell in cells if len(studied[cell]) < _MOST):
                studied[cell] += islice(_studied(scored, cell, run.inputs, words), _MOST - len(studied[cell]))
        lines = []
        for cell, found in studied.items():
            groups, counts = _base.groups_of([each.row for each in found]), np.bincount([e.label for e in found])
            too_few = len(found) < FEWEST or np.count_nonzero(counts >= FOLDS) < 2
            if not too_few and (groups is None or len(set(groups)) >= FOLDS):
                place = {"attribution": cell.attribution, "null": cell.null, "k": cell.k}
                lines.append({**place, "n": len(found), **_taught(found, len(words), groups, config.seed)})
        missing = f"no attribution has {FEWEST} examples, {FOLDS} of each of two predicted labels; raise --n"
        note = (
            f"A student is a ridge classifier of the words that it sees, in {FOLDS} folds. p ranks it among those of "
            f"up to {STUDENTS} random sets. A verdict needs p ≤ {_LEVEL:g} and an interval that excludes 0."
        )
        return listed("Labels recovered from rationales", _SIMULATED, lines, missing, note)


def _studied(
    scored: ScoredExamples, cell: Configuration, rows: Mapping[str, InputRow], words: dict[str, int]
) -> Iterator[StudentExample]:
    found, labels = scored.compared(cell, [cell.operator]), scored.predicted()
    for place in np.flatnonzero(found.n > 0).tolist():
        row = rows[scored.examples.ids[place]]
        texts = [row.fields[span.field][span.start : span.end].strip().lower() for span in row.spans]
        units = np.array([words.setdefault(text, len(words)) for text in texts])
        used = [found.rationale[place], *found.null_rows[place, : min(found.n[place], STUDENTS)]]
        kept = scored.ledger.masks(np.array(used), len(units))
        own, *sets = [units[mask] for mask in (kept if cell.direction == "sufficiency" else ~kept)]
        yield StudentExample(row, int(labels[place]), own, tuple(sets), units)


def _taught(studied: Sequence[StudentExample], n_words: int, groups: stats.Groups, seed: int) -> dict[str, Any]:
    """Return the accuracy of students of rationales, of random sets and of full texts, as fields of a line."""
    labels = np.array([each.label for each in studied])
    folds = folds_of(len(studied), groups, seed=seed)
    n_students = min(STUDENTS, max(len(each.sets) for each in studied))
    # An example with fewer sets than students shows some of them again.
    several = ([each.sets[number % len(each.sets)] for each in studied] for number in range(n_students))
    own = right([each.rationale for each in studied], n_words, labels, folds)
    null = np.array([right(bags, n_words, labels, folds) for bags in several])
    above = _base.above_chance(own, null.mean(axis=0), [each.row for each in studied])
    ranked = stats.compare(float(own.mean()), null.mean(axis=1))
    p_value = min(1.0, 2 * min(ranked.p_value, ranked.p_lower))
    low, high = above["above_chance_ci"] or (0.0, 0.0)
    verdict: str | None = stats.NOT_DISTINGUISHABLE if n_students == STUDENTS else None
    if p_value <= _LEVEL and (low > 0 or high < 0):
        verdict = "better than random" if low > 0 else "worse than random"
    full = right([each.full for each in studied], n_words, labels, folds).mean()
    majority = np.bincount(labels).max() / len(labels)
    return {**above, "p_value": p_value, "full": float(full), "majority": float(majority), "verdict": verdict}


def right(bags: Sequence[Ids], n_words: int, labels: Ids, folds: Ids) -> Values:
    """Return 1 for every example whose label is predicted from its words by a student of the other folds, else 0."""
    unique = [np.unique(bag) for bag in bags]
    ends = np.cumsum([0, *map(len, unique)])
    words = csr_array((np.ones(ends[-1]), np.concatenate(unique), ends), shape=(len(bags), n_words))
    kernel = (words @ words.T).toarray() + 1.0  # a word that every text has is the constant
    classes, places = np.unique(labels, return_inverse=True)
    sides = 2.0 * np.eye(len(classes))[places] - 1
    guessed = np.empty(len(bags), dtype=np.int64)
    for fold in np.unique(folds):
        test, train = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        inner = kernel[np.ix_(train, train)] + _PENALTY * np.eye(len(train))
        guessed[test] = (kernel[np.ix_(test, train)] @ np.linalg.solve(inner, sides[train])).argmax(axis=1)
    return np.equal(guessed, places).astype(np.float64)


# --- interactions -------------------------------------------------------------------------------------------------

_PAIRS_OF = 99
"""Number of random sets whose pairs a rationale's are compared with."""
_LEAST_FREEDOM = 10
"""Fewest scored sets beyond the number of coefficients of an additive model."""
_TINY = 1e-6
"""Relative size of residuals and norms that are rounding."""
_INTERACTIONS = (
    *naming("attribution", "operator", "k"),
    *N,
    *columns("count", n_texts="of texts"),
    *columns("percent", additive="additive"),
    *estimate("interaction", "interaction", "signed"),
    *estimate("stronger", "stronger than random pairs", "percent", "95 % CI of it"),
    *columns("p-value", p_value="p"),
)


class AdditiveFit(NamedTuple):
    """Residual of the log-odds of some sets after a sum of numbers of units."""

    basis: Values
    """(sets, rank): orthonormal columns of the additive model."""
    residual: Values
    explained: float
    """Adjusted share of the variance that the sum explains, 0 at least; 1 where there is none."""


def additive_fit(kept: Masks, values: Values) -> AdditiveFit | None:
    """Fit the log-odds of sets by a number per kept unit, and one for any two units; None for too few sets."""
    if len(kept) <= kept.shape[1]:
        return None
    n_kept = kept.sum(axis=1).astype(np.float64)
    # Sets of one size have a constant number of pairs; a rank that is lower for that leaves more freedom.
    design = np.column_stack([np.ones(len(kept)), kept, n_kept * (n_kept - 1) / 2])
    left, sizes, _ = np.linalg.svd(design / np.maximum(np.linalg.norm(design, axis=0), 1e-12), full_matrices=False)
    basis = left[:, sizes > 1e-9 * sizes[0]]
    freedom = len(kept) - basis.shape[1]
    if freedom < _LEAST_FREEDOM:
        return None
    centred = values - values.mean()
    residual, total = values - basis @ (basis.T @ values), float(centred @ centred)
    if np.linalg.norm(residual) <= _TINY * max(np.sqrt(total), float(np.abs(values).max())):
        return AdditiveFit(basis, np.zeros(len(kept)), 1.0)
    unexplained = (residual @ residual / freedom) / (total / (len(kept) - 1))
    return AdditiveFit(basis, residual, max(0.0, 1 - float(unexplained)))


def interactions(fit: AdditiveFit, kept: Masks, sets: Masks) -> tuple[Values, Values]:
    """Return the mean interaction of the pairs in each set, in log-odds, and how much of the residual it explains.

    Both (sets,). The first is the coefficient of the number of pairs of a set that are kept, beside the additive model.
    The second is the square root of the sum of squares that it explains; NaN where the additive model already fits it.
    """
    shared = kept.astype(np.float64) @ sets.T
    pairs = shared * (shared - 1) / 2
    rest = pairs - fit.basis @ (fit.basis.T @ pairs)
    norms = np.linalg.norm(rest, axis=0)
    norms[norms <= _TINY * np.linalg.norm(pairs, axis=0)] = np.nan
    along = rest.T @ fit.residual
    return along / norms**2, np.abs(along) / norms


@measure("interactions")
class Interactions(Measure):
    """Interaction of a rationale's units beyond the sum of their effects, beside random units."""

    needs = "more random sets than units in a text"

    def of(self, folder: RunFolder) -> Found | Missing:
        run = FinishedRun(folder=folder)
        config = run.config
        if config.adaptive == "examples":
            return _STOPPED
        if SIZE not in config.nulls:
            return Missing("its random sets are matched with rationales; run the same command again with --null size")
        found: dict[tuple[str, str, Share | None], list[tuple[str, float, float, float]]] = defaultdict(list)
        rationales = {key: own for key, own in run.rationales.items() if any(map(len, own.values()))}
        operators = list(dict.fromkeys(cell.operator for cell in _cells(config)))
        for scored in scored_examples(folder, config, kinds=(Kind.RANDOM,)):
            for operator in operators:
                for name, kept, fit in _fits(scored, operator):
                    for (attribution, k), own in rationales.items():
                        if len(own.get(name, ())) > 1:
                            rng = rng_for(config.seed, "interactions", operator, attribution, str(k), name)
                            line = _against_random(fit, kept, own[name], rng)
                            found[attribution, operator, k] += [(name, *line)] if line is not None else []
        lines = []
        for key, of_key in ((key, of_key) for key, of_key in found.items() if of_key):
            used = [run.inputs[name] for name, *_ in of_key]
            additive, interaction, stronger = np.array([numbers for _, *numbers in of_key]).T
            groups = _base.groups_of(used)
            place = dict(zip(("attribution", "operator", "k"), key, strict=True))
            means = {"additive": float(additive.mean()), "interaction": float(interaction.mean())}
            interval = stats.unbounded_interval(interaction, groups=groups)
            p_value = stats.mean_pvalue(stronger, stats.CHANCE, groups=groups)
            head = {**place, "n": len(used), "n_texts": len(run.inputs), **means, "interaction_ci": interval}
            lines.append({**head, **_base.mean_of(stronger, used, field="stronger"), "p_value": p_value})
        missing = (
            f"no text with a rationale of two units has {_LEAST_FREEDOM} more random sets than units; raise --m, "
            "give several --k, or use --direction sufficiency,necessity"
        )
        return listed("Interactions within rationales", _INTERACTIONS, lines, missing)


def _fits(scored: ScoredExamples, operator: str) -> Iterator[tuple[str, Masks, AdditiveFit]]:
    """Yield the additive fits of examples to all random sets under an operator, of any size and direction."""
    ledger, names = scored.ledger, scored.ledger.names
    head = ledger.head
    used = (head["null"] == names.of("null").index(SIZE)) & (head["operator"] == names.of("operator").index(operator))
    used &= (head["kind"] == Kind.RANDOM) & (scored.examples.target[head["example"]] != NOT_SET)
    chosen = np.flatnonzero(used)
    chosen = chosen[np.argsort(head["example"][chosen], kind="stable")]
    target = scored.examples.target[head["example"][chosen]]
    values = log_odds(ledger.scores[chosen], target, versus=scored.config.versus_label)
    starts = np.searchsorted(head["example"][chosen], np.arange(len(scored.examples) + 1))
    for place, name in enumerate(scored.examples.ids):
        of_example = slice(starts[place], starts[place + 1])
        own = values[of_example]
        if own.size and np.isfinite(own).all():
            kept = ledger.masks(chosen[of_example], int(scored.examples.n_units[place]))
            fit = additive_fit(kept, own)
            if fit is not None:
                yield name, kept, fit


def _against_random(
    fit: AdditiveFit, kept: Masks, rationale: Sequence[int], rng: np.random.Generator
) -> tuple[float, float, float] | None:
    """Return the additive share, the interaction in a rationale, and the share of random sets with a weaker one."""
    n_units = kept.shape[1]
    sets = np.zeros((1 + _PAIRS_OF, n_units), dtype=np.bool_)
    sets[0, list(rationale)] = True
    np.put_along_axis(sets[1:], rng.random((_PAIRS_OF, n_units)).argsort(axis=1)[:, : len(rationale)], True, axis=1)
    found, strength = interactions(fit, kept, sets)
    null = strength[1:][~np.isnan(strength[1:])]
    if np.isnan(strength[0]) or not null.size:
        return None
    return fit.explained, float(found[0]), stats.compare(float(strength[0]), null).win_rate
