"""Comparison of rationales with their nulls: one matrix of examples × sets per configuration."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ice_eval import stats
from ice_eval.errors import ConfigError
from ice_eval.protocols import PROTOCOLS, Protocol
from ice_eval.records import NOT_SET, Ids, Kind
from ice_eval.results.examples import Examples
from ice_eval.results.ledger import Ledger, Values, clipped_nsr, log_odds, logit, sigmoid
from ice_eval.results.outcomes import Outcomes
from ice_eval.results.records import Configuration, RunSettings
from ice_eval.stats import Matrix

FIRST_SETS = 2 * stats.STOP_AFTER
"""Fewest sets that a sequential test reads: without ties, fewer cannot decide both tails."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Settings that define how rows are compared."""

    m: int
    """Largest number of sets in a null."""
    protocol: Protocol = PROTOCOLS["default"]
    calibrated: bool = False
    """True if the score of the empty input is subtracted from every other."""
    sequential: bool = False
    """True if every example has as many sets as its test needed."""
    by_magnitude: tuple[str, ...] = ()
    """Attributions that rank units by magnitude."""

    @classmethod
    def of(cls, config: RunSettings) -> "Reading":
        return cls(
            m=config.m,
            protocol=PROTOCOLS[config.protocol],
            calibrated=config.calibration == "contextual",
            sequential=config.adaptive == "examples",
            by_magnitude=config.by_magnitude,
        )


@dataclass(frozen=True, eq=False)
class ScoreMatrices:
    """Scores under one configuration: the rationale in the first column, its null in the others.

    Examples without numbers have rows of NaN and `n` = 0.
    """

    order: Matrix
    """(examples, 1 + sets): values that rank the sets; larger means a better rationale."""
    measure: Matrix
    """(examples, 1 + sets): values that effect sizes are computed from; larger means a better rationale."""
    probability: Matrix
    log_odds: Matrix
    n: Ids
    """(examples,): number of sets in each null."""
    sets: Ids
    """(examples, sets): position of each set in the order of the null."""
    rationale: Ids
    """(examples,): the row of the rationale under the first operator."""
    null_rows: Ids
    """(examples, sets): the rows of its null."""
    full: Values
    """(examples,): probability of the target in the full input."""
    empty: Values
    errors: Mapping[int, str]
    """Example -> reason why it has no numbers."""


_GROUPED = ("kind", "null", "attribution", "operator", "direction")
_LARGEST = 2**31


class _Group(NamedTuple):
    """Rows of one kind, null, attribution, operator and direction, sorted by example, size, set and draw."""

    order: Ids
    places: Ids
    """(groups,): example and size of the rows that belong together, as one number."""
    starts: Ids
    counts: Ids


class _Found(NamedTuple):
    """Position of every example's rows in a group."""

    starts: Ids
    counts: Ids
    order: Ids

    def rows(self, places: Ids) -> Ids:
        """Return ledger rows by their offset from the first; arbitrary for examples without rows."""
        at = np.minimum(self.starts.reshape(-1, *(1,) * (places.ndim - 1)) + places, len(self.order) - 1)
        return self.order[at] if len(self.order) else np.zeros_like(places)


class _UnderOperator(NamedTuple):
    """The rows of one configuration under one operator."""

    rationale: _Found
    null: _Found
    n_draws: int
    is_shared: bool
    """True if all attributions share the null, so that a rationale may be one of its sets."""


class ScoredExamples:
    """Examples with their scored rows."""

    def __init__(self, examples: Examples, ledger: Ledger, reading: Reading) -> None:
        self.examples, self.ledger, self.reading = examples, ledger, reading
        head = ledger.head
        keys = ("draw", "set", "size", "example", "direction", "operator", "attribution", "null", "kind")
        order = np.lexsort([head[name] for name in keys])
        sorted_head = head[order]
        parts = np.array([sorted_head[name] for name in _GROUPED], dtype=np.int64)
        changes = np.append(np.ones(min(len(order), 1), dtype=bool), (np.diff(parts) != 0).any(axis=0))
        places = sorted_head["example"].astype(np.int64) * _LARGEST + sorted_head["size"]
        self._groups: dict[tuple[int, ...], _Group] = {}
        for start, stop in pairwise([*np.flatnonzero(changes).tolist(), len(order)]):
            own = places[start:stop]
            firsts = np.flatnonzero(np.append(True, np.diff(own) != 0))
            group = _Group(order[start:stop], own[firsts], firsts, np.diff(np.append(firsts, len(own))))
            self._groups[tuple(parts[:, start].tolist())] = group

    @cached_property
    def _log_odds(self) -> Values:
        """(rows,): log-odds of the target, calibrated if the run is."""
        if not len(self.ledger):
            return np.full(1, np.nan)  # target of any index into an empty ledger
        scores, example = self.ledger.scores, self.ledger.head["example"]
        if self.reading.calibrated:  # contextual calibration (Zhao et al., 2021)
            prior = self._references(Kind.EMPTY)
            scores = scores - np.where(prior[example, None] >= 0, scores[np.maximum(prior[example], 0)], 0.0)
        return log_odds(scores, self.examples.target[example])

    def _references(self, kind: Kind, operator: str | None = None) -> Ids:
        """Return the full or empty row of each example, (examples,); `NOT_SET` where it is missing."""
        found = self._find(kind, np.full(len(self.examples), NOT_SET), operator=operator)
        return np.where(found.counts > 0, found.rows(np.zeros_like(found.starts)), NOT_SET)

    def predicted(self) -> Ids:
        """Return the label that the model predicts for each full input, (examples,)."""
        if not len(self.ledger):
            return np.zeros(len(self.examples), dtype=np.int64)
        full = self._references(Kind.FULL)
        scores = self.ledger.scores[np.maximum(full, 0)]
        if self.reading.calibrated:
            scores = scores - self.ledger.scores[np.maximum(self._references(Kind.EMPTY), 0)]
        predicted: Ids = np.argmax(scores, axis=1)
        return predicted

    def probability_of(self, kind: Kind, operator: str, direction: str, sizes: Ids, attribution: str | None) -> Values:
        """Return the probability of the target per example, (examples,), mean over draws; NaN without a row."""
        found = self._find(kind, sizes, attribution=attribution, operator=operator, direction=direction)
        draws = np.broadcast_to(np.arange(int(found.counts.max(initial=1))), (len(sizes), found.counts.max(initial=1)))
        values: Values = sigmoid(self._log_odds[found.rows(draws)]).mean(axis=1)
        return np.where(found.counts > 0, values, np.nan)

    def reference_probability(self, kind: Kind, operator: str | None = None) -> Values:
        """Return the probability of the target in the full or empty input, (examples,); NaN without a row.

        With an operator, in its own such input where there is one.
        """
        rows = self._references(kind)
        if operator is not None:
            own = self._references(kind, operator)
            rows = np.where(own >= 0, own, rows)
        return np.where(rows >= 0, sigmoid(self._log_odds[np.maximum(rows, 0)]), np.nan)

    def without_each_unit(self, place: int, operator: str) -> Values:
        """Return the probability of the target with each unit of one example removed alone, mean over draws."""
        ones = np.ones(len(self.examples), dtype=np.int64)
        found = self._find(Kind.LEAVE_ONE_OUT, ones, operator=operator, direction="necessity")
        n_units = int(self.examples.n_units[place])
        if not found.counts[place]:
            return np.full(n_units, np.nan)
        rows = found.order[found.starts[place] + np.arange(found.counts[place])]
        means: Values = sigmoid(self._log_odds[rows]).reshape(n_units, -1).mean(axis=1)
        return means

    def _find(self, kind: Kind, sizes: Ids, **names: str | None) -> _Found:
        """Return the rows of every example that have its size and these names; columns without a name do not apply."""
        pairs = [(column, names.get(column)) for column in _GROUPED[1:]]
        codes = [NOT_SET if name is None else self.ledger.names.of(column).index(name) for column, name in pairs]
        group = self._groups.get((kind, *codes))
        if group is None:
            none = np.zeros(len(self.examples), dtype=np.int64)
            return _Found(none, none, none[:0])
        wanted = np.arange(len(sizes), dtype=np.int64) * _LARGEST + sizes
        at = np.minimum(np.searchsorted(group.places, wanted), len(group.places) - 1)
        return _Found(group.starts[at], np.where(group.places[at] == wanted, group.counts[at], 0), group.order)

    def compared(self, cell: Configuration, operators: Sequence[str]) -> ScoreMatrices:
        """Return the scores of every rationale and its null, averaged over `operators`.

        Raises:
            ConfigError: A rationale has no row.
        """
        examples, reading, own = self.examples, self.reading, cell.attribution
        sizes = examples.sizes(own, cell.k, magnitude=own in reading.by_magnitude)
        found = []
        for operator in operators:
            find = partial(self._find, sizes=sizes, operator=operator, direction=cell.direction)
            rationale = find(Kind.RATIONALE, attribution=own)
            missing = np.flatnonzero((sizes > 0) & (rationale.counts == 0))
            if missing.size:
                raise ConfigError(
                    f"the ledger has no row of the attribution '{own}' for example '{examples.ids[missing[0]]}'; run "
                    "the same command again to score what is missing."
                )
            shared = find(Kind.RANDOM, null=cell.null)
            drawn = shared if len(shared.order) else find(Kind.RANDOM, null=cell.null, attribution=own)
            n_draws = int(rationale.counts.max(initial=1))
            found.append(_UnderOperator(rationale, drawn, n_draws, drawn is shared))
        n = np.min([each.null.counts // each.n_draws for each in found], axis=0)  # the sets that all have scored
        first = found[0]
        rows = first.rationale.rows(np.zeros(len(examples), dtype=np.int64))
        # The null of a rationale leaves out that rationale, where it is one of the sets that all attributions share.
        place = np.where(first.is_shared, self.ledger.head["set"][rows] if len(self.ledger) else NOT_SET, NOT_SET)
        left_out = np.where(place == NOT_SET, n, np.minimum(place, n))
        n = np.minimum(np.where(sizes > 0, n - (left_out < n), 0), reading.m)
        columns = np.arange(int(n.max(initial=0)))
        sets = columns + (columns >= left_out[:, None])
        inside = columns < n[:, None]
        by_operator = [self._log_odds_of(each, sets, inside) for each in found]
        scores = self._scores(operators, by_operator, 1.0 if cell.direction == "sufficiency" else -1.0)
        null_rows = first.null.rows(sets * first.n_draws)
        matrices = ScoreMatrices(**scores, n=n, sets=sets, rationale=rows, null_rows=null_rows, errors={})
        return self._sound(matrices, cell, sizes)

    def _log_odds_of(self, found: _UnderOperator, sets: Ids, inside: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return log-odds of rationale and null under one operator, (examples, 1 + sets, draws); NaN where missing."""
        draws = np.arange(found.n_draws)
        first = found.rationale.rows(np.broadcast_to(draws, (len(sets), 1, found.n_draws)))
        null = found.null.rows(sets[:, :, None] * found.n_draws + draws)
        known = np.concatenate([(found.rationale.counts > 0)[:, None], inside], axis=1)
        rows = np.concatenate([first, null], axis=1)
        return np.where(known[:, :, None], self._log_odds[rows], np.nan)

    def _scores(self, operators: Sequence[str], by_operator: Sequence[Values], sign: float) -> dict[str, Values]:
        """Average log-odds over draws and operators, as probabilities if there are several."""
        full, empty = (self.reference_probability(kind) for kind in (Kind.FULL, Kind.EMPTY))
        # One answer per set: compared as log-odds, which do not saturate. Several: averaged as probabilities.
        single = len(operators) == 1 and by_operator[0].shape[2] == 1
        probabilities = [sigmoid(each).mean(axis=2) for each in by_operator]
        probability = np.mean(probabilities, axis=0)
        log_odds = by_operator[0][:, :, 0] if single else logit(probability)
        order, measure = log_odds if single else probability, probability
        if self.reading.protocol.by_clipped_nsr:
            empties = [self.reference_probability(Kind.EMPTY, name) for name in operators]
            nsr = [clipped_nsr(each, full, own) for each, own in zip(probabilities, empties, strict=True)]
            order = measure = np.mean(nsr, axis=0)
        matrices = {"order": sign * order, "measure": sign * measure, "probability": probability, "log_odds": log_odds}
        return {**matrices, "full": full, "empty": empty}

    def _sound(self, found: ScoreMatrices, cell: Configuration, sizes: Ids) -> ScoreMatrices:
        """Record the examples without numbers, with the reason."""
        n = self._looked_at(found.order, found.n) if self.reading.sequential else found.n
        inside = np.arange(found.order.shape[1]) <= n[:, None]
        finite = np.where(inside, np.isfinite(found.order), True).all(axis=1)
        finite &= np.isfinite(found.full) & np.isfinite(found.empty)
        errors = {}
        for place in np.flatnonzero((sizes == 0) | (n == 0) | ~finite).tolist():
            if not sizes[place]:
                errors[place] = self.examples.reason(cell.attribution, place)
            elif not n[place]:
                errors[place] = f"no other set is matched with the rationale of '{cell.attribution}' ({cell.null})"
            else:
                errors[place] = "a score is not finite"
        sound = np.ones(len(n), dtype=bool)
        sound[list(errors)] = False
        keep = inside & sound[:, None]
        names = ("order", "measure", "probability", "log_odds")
        cut = {name: np.where(keep, getattr(found, name), np.nan) for name in names}
        return replace(found, **cut, n=np.where(sound, n, 0), errors=errors)

    def _looked_at(self, order: Matrix, n: Ids) -> Ids:
        """Return the number of sets before the first non-finite one, if these already decide a sequential test.

        Later rows may belong to other tests: a failure among them must not spoil a test that has stopped.
        """
        bad = ~np.isfinite(order) & (np.arange(order.shape[1]) <= n[:, None])
        before = np.where(bad.any(axis=1), bad.argmax(axis=1) - 1, n)
        some = before > 0
        stopped = np.zeros(len(n), dtype=bool)
        if some.any():
            stream = np.where(np.arange(order.shape[1] - 1) < before[:, None], order[:, 1:], np.nan)
            stopped[some] = stats.compare_all_sequentially(order[some, 0], stream[some], before[some]).stopped
        return np.where(stopped, before, n)

    def decided(self, cell: Configuration, operators: Sequence[str]) -> NDArray[np.bool_]:
        """Return a mask of examples whose sequential test has stopped or can see no further set, (examples,)."""
        found = self.compared(cell, operators)
        decided: NDArray[np.bool_] = np.equal(found.n, 0)
        some = ~decided
        if some.any():
            tests = stats.compare_all_sequentially(found.order[some, 0], found.order[some, 1:], found.n[some])
            decided[some] = tests.stopped
        return decided

    def outcomes(self, cell: Configuration, operators: Sequence[str]) -> Outcomes:
        """Compare every rationale with its null, averaged over `operators`."""
        found = self.compared(cell, operators)
        sound = found.n > 0
        used = found
        if not sound.all():
            used = replace(found, **{name: value[sound] for name, value in vars(found).items() if name != "errors"})
        n_used, null = used.n, used.measure[:, 1:]
        if self.reading.sequential:
            # In a finished run, an undecided stream has no further set.
            tests = stats.compare_all_sequentially(used.order[:, 0], used.order[:, 1:], used.n)
            rates, n_rated, n_used = tests.rates, tests.n_rated, tests.n_used
        else:
            rates, n_rated = stats.compare_all(used.order[:, 0], used.order[:, 1:], used.n), used.n
        rated = np.arange(null.shape[1]) < n_rated[:, None]
        null = np.where(rated, null, np.nan)
        exact = (n_used == n_rated) & (n_rated < self.reading.m)
        family = used.order[:, : 1 + FIRST_SETS] if self.reading.sequential else used.order
        members = np.minimum(used.n, family.shape[1] - 1) + 1
        halves = _halves(used.order[:, 0], np.where(rated, used.order[:, 1:], np.nan), n_rated, rates, exact)
        numbers = {
            **vars(rates),
            "win_rate": rates.win_rate_strict if self.reading.protocol.strict else rates.win_rate,
            "m": n_used.astype(np.float64),
            "exact": exact.astype(np.float64),
            "effect": used.measure[:, 0] - stats.null_means(null, n_rated),
            "effect_size": stats.effect_sizes(used.measure[:, 0], null, n_rated),
            "score": used.probability[:, 0],
            "first_half": halves[0],
            "second_half": halves[1],
        }
        return Outcomes.of(
            self.examples,
            sound,
            numbers,
            stats.all_member_win_rates(family, members) if len(members) else family,
            members,
            found.errors,
            self._rationales(cell, used.rationale),
            self._shared,
        )

    @cached_property
    def _shared(self) -> dict[str, Values]:
        """Columns that are the same under all configurations."""
        examples = self.examples
        return {
            "gold": np.where(examples.gold == NOT_SET, np.nan, examples.gold),
            "target": np.where(examples.target == NOT_SET, np.nan, examples.target),
            "n_units": examples.n_units.astype(np.float64),
            "predicted": self.predicted().astype(np.float64),
            "score_full": self.reference_probability(Kind.FULL),
            "score_empty": self.reference_probability(Kind.EMPTY),
        }

    def _rationales(self, cell: Configuration, rows: Ids) -> list[tuple[int, ...]]:
        """Return the units that each rationale's row keeps or removes."""
        if not len(self.ledger.n_kept):
            return []
        ends, found = np.cumsum(self.ledger.n_kept), []
        example = self.ledger.head["example"]
        for row in rows.tolist():
            kept = self.ledger.kept[ends[row] - self.ledger.n_kept[row] : ends[row]]
            if cell.direction == "necessity":
                kept = np.setdiff1d(np.arange(self.examples.n_units[example[row]]), kept)
            found.append(tuple(kept.tolist()))
        return found


def _halves(
    observed: Values, null: Matrix, n: Ids, rates: stats.Comparisons, exact: NDArray[np.bool_]
) -> tuple[Values, Values]:
    """Return win rates against two halves of the null; an exhaustive null has no noise and is used twice."""
    whole = exact | (n < 2)
    halves = []
    for start in (0, 1):
        own = np.maximum((n + 1 - start) // 2, 1)
        halves.append(np.where(whole, rates.win_rate, stats.compare_all(observed, null[:, start::2], own).win_rate))
    return halves[0], halves[1]
