"""Comparison of rationales with their nulls: one matrix of examples × sets per configuration."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ice_eval import stats
from ice_eval.choices import PROTOCOLS
from ice_eval.errors import ConfigError
from ice_eval.operators import draws_fills
from ice_eval.rationales import Share
from ice_eval.records import NOT_SET, Ids, Kind, LogScores
from ice_eval.results.examples import Examples
from ice_eval.results.ledger import Ledger, Values, clipped_nsr, log_odds, logit, sigmoid
from ice_eval.results.outcomes import Outcomes
from ice_eval.results.records import Configuration, RunSettings
from ice_eval.stats import Matrix

FIRST_SETS = 2 * stats.STOP_AFTER
"""Fewest sets that a sequential test reads: without ties, fewer cannot decide both tails."""


@dataclass(frozen=True, eq=False)
class ScoreMatrices:
    """Scores under one configuration: of the sets of every null, and of its rationale under the fill of each set.

    Without fills, or with one, the rationale has the same score beside every set. Examples without numbers have rows of
    NaN and `n` = 0.
    """

    order: Matrix
    """(examples, sets): values that rank the sets; larger means a better rationale."""
    own_order: Matrix
    """(examples, sets): the rationale's value, under the fill of each set."""
    measure: Matrix
    """(examples, sets): values that effect sizes are computed from; larger means a better rationale."""
    own_measure: Matrix
    probability: Values
    """(examples,): probability of the target with the rationale, mean over fills."""
    log_odds: Matrix
    """(examples, 1 + sets): log-odds of that probability, and of each set."""
    n: Ids
    """(examples,): number of sets in each null."""
    sets: Ids
    """(examples, sets): position of each set in the order of the null."""
    fills: Ids
    """(examples, sets): number of the fill that each set was scored under."""
    rationale: Ids
    """(examples,): the row of the rationale under the first operator and fill."""
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


class _GroupRows(NamedTuple):
    """Position of every example's rows in a group."""

    starts: Ids
    counts: Ids
    order: Ids

    def rows(self, places: Ids) -> Ids:
        """Return ledger rows by their offset from the first; arbitrary for examples without rows."""
        at = np.minimum(self.starts.reshape(-1, *(1,) * (places.ndim - 1)) + places, len(self.order) - 1)
        return self.order[at] if len(self.order) else np.zeros_like(places)


class ScoredExamples:
    """Examples with their scored rows, compared as the settings of their run say."""

    def __init__(self, examples: Examples, ledger: Ledger, config: RunSettings) -> None:
        self.examples, self.ledger, self.config = examples, ledger, config
        self._protocol, self._sizes = PROTOCOLS[config.protocol], dict[tuple[str, Share | None], Ids]()
        # Every example has as many sets as its test needed.
        self._sequential = config.adaptive == "examples"
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

    def sizes(self, attribution: str, k: Share | None) -> Ids:
        """Return the number of units in each rationale, (examples,); 0 if there is none."""
        if (attribution, k) not in self._sizes:
            magnitude = attribution in self.config.by_magnitude
            self._sizes[attribution, k] = self.examples.sizes(attribution, k, magnitude=magnitude)
        return self._sizes[attribution, k]

    @cached_property
    def _log_odds(self) -> Values:
        """(rows,): log-odds of the target, calibrated if the run is."""
        if not len(self.ledger):
            return np.full(1, np.nan)  # target of any index into an empty ledger
        target = self.examples.target[self.ledger.head["example"]]
        return log_odds(self._calibrated_scores, target, versus=self.config.versus_label)

    @cached_property
    def _calibrated_scores(self) -> LogScores:
        """(rows, labels): scores, without those of the empty input if the run is calibrated (Zhao et al., 2021)."""
        scores = self.ledger.scores
        if self.config.calibration != "contextual":
            return scores
        prior = self._references(Kind.EMPTY)[self.ledger.head["example"]]
        return scores - np.where(prior[:, None] >= 0, scores[np.maximum(prior, 0)], 0.0)

    @property
    def _is_open(self) -> bool:
        """True if scores are log-probabilities of given texts, which are compared and averaged as they are."""
        return self.ledger.scores.shape[1:] == (1,)

    def _measured(self, scores: Values) -> Values:
        """Return the probability of the target, or its log-probability where that is the score."""
        return scores if self._is_open else sigmoid(scores)

    def _as_log_odds(self, measured: Values) -> Values:
        return measured if self._is_open else logit(measured)

    def _references(self, kind: Kind, operator: str | None = None) -> Ids:
        """Return the full or empty row of each example, (examples,); `NOT_SET` where it is missing."""
        found = self._find(kind, np.full(len(self.examples), NOT_SET), operator=operator)
        return np.where(found.counts > 0, found.rows(np.zeros_like(found.starts)), NOT_SET)

    @cached_property
    def row_labels(self) -> Ids:
        """(rows,): label that the model predicts for each row."""
        predicted: Ids = np.argmax(self._calibrated_scores, axis=1)
        return predicted

    def predicted(self) -> Ids:
        """Return the label that the model predicts for each full input, (examples,)."""
        if not len(self.ledger):
            return np.zeros(len(self.examples), dtype=np.int64)
        return self.row_labels[np.maximum(self._references(Kind.FULL), 0)]

    def probability_of(self, kind: Kind, operator: str, direction: str, sizes: Ids, attribution: str | None) -> Values:
        """Return the probability of the target per example, (examples,), mean over draws; NaN without a row."""
        found = self._find(kind, sizes, attribution=attribution, operator=operator, direction=direction)
        draws = np.broadcast_to(np.arange(int(found.counts.max(initial=1))), (len(sizes), found.counts.max(initial=1)))
        values: Values = self._measured(self._log_odds[found.rows(draws)]).mean(axis=1)
        return np.where(found.counts > 0, values, np.nan)

    def reference_probability(self, kind: Kind, operator: str | None = None) -> Values:
        """Return the probability of the target in the full or empty input, (examples,); NaN without a row.

        With an operator, in its own such input where there is one.
        """
        rows = self._references(kind)
        if operator is not None:
            own = self._references(kind, operator)
            rows = np.where(own >= 0, own, rows)
        return np.where(rows >= 0, self._measured(self._log_odds[np.maximum(rows, 0)]), np.nan)

    def without_each_unit(self, place: int, operator: str) -> Values:
        """Return the probability of the target with each unit of one example removed alone, mean over draws."""
        ones = np.ones(len(self.examples), dtype=np.int64)
        found = self._find(Kind.LEAVE_ONE_OUT, ones, operator=operator, direction="necessity")
        n_units = int(self.examples.n_units[place])
        if not found.counts[place]:
            return np.full(n_units, np.nan)
        rows = found.order[found.starts[place] + np.arange(found.counts[place])]
        means: Values = self._measured(self._log_odds[rows]).reshape(n_units, -1).mean(axis=1)
        return means

    def _find(self, kind: Kind, sizes: Ids, **names: str | None) -> _GroupRows:
        """Return the rows of every example that have its size and these names; columns without a name do not apply."""
        pairs = [(column, names.get(column)) for column in _GROUPED[1:]]
        codes = [NOT_SET if name is None else self.ledger.names.of(column).index(name) for column, name in pairs]
        group = self._groups.get((kind, *codes))
        if group is None:
            none = np.zeros(len(self.examples), dtype=np.int64)
            return _GroupRows(none, none, none[:0])
        wanted = np.arange(len(sizes), dtype=np.int64) * _LARGEST + sizes
        at = np.minimum(np.searchsorted(group.places, wanted), len(group.places) - 1)
        return _GroupRows(group.starts[at], np.where(group.places[at] == wanted, group.counts[at], 0), group.order)

    def compared(self, cell: Configuration, operators: Sequence[str]) -> ScoreMatrices:
        """Return the scores of every rationale and its null, averaged over `operators`.

        Raises:
            ConfigError: A rationale has no row.
        """
        examples, sizes = self.examples, self.sizes(cell.attribution, cell.k)
        found, is_shared = (
            list[tuple[_GroupRows, _GroupRows]](),
            False,
        )  # rationales, a row per fill; nulls, a row per set
        for operator in operators:
            find = partial(self._find, sizes=sizes, operator=operator, direction=cell.direction)
            rationale = find(Kind.RATIONALE, attribution=cell.attribution)
            missing = np.flatnonzero((sizes > 0) & (rationale.counts == 0))
            if missing.size:
                raise ConfigError(
                    f"the ledger has no row of the attribution '{cell.attribution}' for example "
                    f"'{examples.ids[missing[0]]}'; run the same command again to score what is missing."
                )
            shared = find(Kind.RANDOM, null=cell.null)
            is_shared = is_shared or len(shared.order) > 0
            null = shared if len(shared.order) else find(Kind.RANDOM, null=cell.null, attribution=cell.attribution)
            found.append((rationale, null))
        n = np.min([null.counts for _, null in found], axis=0)  # the sets that all have scored
        rows = found[0][0].rows(np.zeros(len(examples), dtype=np.int64))
        # The null of a rationale leaves out that rationale, where it is one of the sets that all attributions share.
        place = np.where(is_shared, self.ledger.head["set"][rows] if len(self.ledger) else NOT_SET, NOT_SET)
        left_out = np.where(place == NOT_SET, n, np.minimum(place, n))
        n = np.minimum(np.where(sizes > 0, n - (left_out < n), 0), self.config.m)
        columns = np.arange(int(n.max(initial=0)))
        sets = columns + (columns >= left_out[:, None])
        inside = columns < n[:, None]
        by_operator = []
        for rationale, null in found:
            draws = np.arange(int(rationale.counts.max(initial=1)))
            own_rows = rationale.rows(np.broadcast_to(draws, (len(sets), len(draws))))
            own_scores = np.where(draws < rationale.counts[:, None], self._log_odds[own_rows], np.nan)
            by_operator.append((own_scores, np.where(inside, self._log_odds[null.rows(sets)], np.nan)))
        fills = sets % max(scores.shape[1] for scores, _ in by_operator)
        scores = self._scores(operators, by_operator, fills, 1.0 if cell.direction == "sufficiency" else -1.0)
        null_rows = found[0][1].rows(sets)
        matrices = ScoreMatrices(**scores, n=n, sets=sets, fills=fills, rationale=rows, null_rows=null_rows, errors={})
        return self._sound(matrices, cell, sizes)

    def _scores(
        self, operators: Sequence[str], by_operator: Sequence[tuple[Matrix, Matrix]], fills: Ids, sign: float
    ) -> dict[str, Values]:
        """Return the scores of rationales and sets, averaged over operators as probabilities if there are several."""
        full, empty = (self.reference_probability(kind) for kind in (Kind.FULL, Kind.EMPTY))
        # Beside every set, its rationale under the same fill.
        beside = [np.take_along_axis(own, fills % own.shape[1], axis=1) for own, _ in by_operator]
        own = [self._measured(each) for each in beside]
        null = [self._measured(each) for _, each in by_operator]
        probability = np.mean([self._measured(each).mean(axis=1) for each, _ in by_operator], axis=0)
        own_measure, measure = np.mean(own, axis=0), np.mean(null, axis=0)
        # One answer per set: compared as log-odds, which do not saturate. Several: averaged as probabilities.
        single = len(operators) == 1
        own_order, order = (beside[0], by_operator[0][1]) if single else (own_measure, measure)
        one_row = single and by_operator[0][0].shape[1] == 1
        of_rationale = by_operator[0][0][:, 0] if one_row else self._as_log_odds(probability)
        of_sets = order if single else self._as_log_odds(measure)
        if self._protocol.by_clipped_nsr:
            empties = [self.reference_probability(Kind.EMPTY, name) for name in operators]
            own_order, order = (
                np.mean([clipped_nsr(each, full, s) for each, s in zip(side, empties, strict=True)], axis=0)
                for side in (own, null)
            )
            own_measure, measure = own_order, order
        return {
            "order": sign * order,
            "own_order": sign * own_order,
            "measure": sign * measure,
            "own_measure": sign * own_measure,
            "probability": probability,
            "log_odds": np.concatenate([of_rationale[:, None], of_sets], axis=1),
            "full": full,
            "empty": empty,
        }

    def _sound(self, found: ScoreMatrices, cell: Configuration, sizes: Ids) -> ScoreMatrices:
        """Record the examples without numbers, with the reason."""
        n = self._looked_at(found, found.n) if self._sequential else found.n
        inside = np.arange(found.order.shape[1]) < n[:, None]
        finite = np.where(inside, np.isfinite(found.order) & np.isfinite(found.own_order), True).all(axis=1)
        finite &= np.isfinite(found.full) & np.isfinite(found.empty) & np.isfinite(found.probability)
        sound, errors = (sizes > 0) & (n > 0) & finite, {}
        for place in np.flatnonzero(~sound).tolist():
            if not sizes[place]:
                errors[place] = self.examples.reason(cell.attribution, place)
            elif not n[place]:
                errors[place] = f"no other set is matched with the rationale of '{cell.attribution}' ({cell.null})"
            else:
                errors[place] = "a score is not finite"
        keep = inside & sound[:, None]
        kept = {"probability": sound, "log_odds": np.concatenate([sound[:, None], keep], axis=1)}
        kept |= dict.fromkeys(("order", "own_order", "measure", "own_measure"), keep)
        cut = {name: np.where(mask, getattr(found, name), np.nan) for name, mask in kept.items()}
        return replace(found, **cut, n=np.where(sound, n, 0), errors=errors)

    def _looked_at(self, found: ScoreMatrices, n: Ids) -> Ids:
        """Return the number of sets before the first non-finite one, if these already decide a sequential test.

        Later rows may belong to other tests: a failure among them must not spoil a test that has stopped.
        """
        places = np.arange(found.order.shape[1])
        bad = ~(np.isfinite(found.order) & np.isfinite(found.own_order)) & (places < n[:, None])
        before = np.where(bad.any(axis=1), bad.argmax(axis=1) if bad.shape[1] else n, n)
        some = before > 0
        stopped = np.zeros(len(n), dtype=bool)
        if some.any():
            stream = np.where(places < before[:, None], found.order, np.nan)
            stopped[some] = stats.compare_all_sequentially(found.own_order[some], stream[some], before[some]).stopped
        return np.where(stopped, before, n)

    def decided(self, cell: Configuration, operators: Sequence[str]) -> NDArray[np.bool_]:
        """Return a mask of examples whose sequential test has stopped or can see no further set, (examples,)."""
        found = self.compared(cell, operators)
        tests = stats.compare_all_sequentially(found.own_order, found.order, found.n)
        decided: NDArray[np.bool_] = np.logical_or(tests.stopped, found.n == 0)
        return decided

    def outcomes(self, cell: Configuration, operators: Sequence[str]) -> Outcomes:
        """Compare every rationale with its null, averaged over `operators`."""
        found = self.compared(cell, operators)
        sound = found.n > 0
        used = found
        if not sound.all():
            used = replace(found, **{name: value[sound] for name, value in vars(found).items() if name != "errors"})
        n_used = used.n
        if self._sequential:
            # In a finished run, an undecided stream has no further set.
            tests = stats.compare_all_sequentially(used.own_order, used.order, used.n)
            rates, n_rated, n_used = tests.rates, tests.n_rated, tests.n_used
        else:
            rates, n_rated = stats.compare_all(used.own_order, used.order, used.n), used.n
        exact = (n_used == n_rated) & (n_rated < self.config.m)
        numbers = {
            **vars(rates),
            "win_rate": rates.win_rate_strict if self._protocol.strict else rates.win_rate,
            "m": n_used.astype(np.float64),
            "exact": exact.astype(np.float64),
            "score": used.probability,
            **self._beside_rates(used, n_rated, rates, exact, operators),
        }
        rationales, (families, members) = self._rationales(cell, used.rationale), self._families(used)
        return Outcomes.of(self.examples, sound, numbers, families, members, found.errors, rationales, self._shared)

    def _beside_rates(
        self, used: ScoreMatrices, n: Ids, rates: stats.Comparisons, exact: NDArray[np.bool_], operators: Sequence[str]
    ) -> dict[str, Values]:
        """Return effects and what is known about the noise of win rates, from the first `n` sets."""
        rated = np.arange(used.order.shape[1]) < n[:, None]
        order, measure, own = (np.where(rated, each, np.nan) for each in (used.order, used.measure, used.own_measure))
        own_means, of_random, several = stats.null_means(own, n), np.full(len(n), np.nan), n > 2
        if several.any():  # the first random set of each example against the others
            of_random[several] = stats.effect_sizes(measure[several, 0], measure[several, 1:], n[several] - 1)
        halves = (np.full(len(n), np.nan),) * 2  # one fill says nothing about the others
        noise = dict.fromkeys(("n_fills", "fill_variance", "set_variance", "m_effective"), halves[0])
        if not any(map(draws_fills, operators)):
            halves = _halves(used.own_order, order, rates, exact, np.arange(order.shape[1]) % 2)
        else:
            found = stats.fill_noise(used.own_order, order, used.fills, n)
            values = found.n_fills.astype(np.float64), found.error, found.within, found.n_effective
            noise = dict(zip(noise, values, strict=True))
            if used.fills.any():
                halves = _halves(used.own_order, order, rates, np.zeros_like(exact), used.fills % 2)
        if used.fills.any():
            effect_size = stats.effect_sizes_by_fill(own, measure, used.fills, n)
        else:
            effect_size = stats.effect_sizes(own_means, measure, n)
        return {
            "effect": own_means - stats.null_means(measure, n),
            "effect_size": effect_size,
            "effect_size_random": of_random,
            "first_half": halves[0],
            "second_half": halves[1],
            **noise,
        }

    def _families(self, used: ScoreMatrices) -> tuple[Matrix, Ids]:
        """Return win rates of all members of each family, and their number."""
        most = FIRST_SETS if self._sequential else used.order.shape[1]
        order, own, n = used.order[:, :most], used.own_order[:, :most], np.minimum(used.n, most)
        if not len(n):
            return order, n
        if used.fills.any():
            return stats.member_win_rates_by_fill(own, order, n), n + 1
        return stats.all_member_win_rates(np.concatenate([own[:, :1], order], axis=1), n + 1), n + 1

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
        found, example = [], self.ledger.head["example"]
        for row in rows.tolist():
            kept = self.ledger.units(row)
            if cell.direction == "necessity":
                kept = np.setdiff1d(np.arange(self.examples.n_units[example[row]]), kept)
            found.append(tuple(kept.tolist()))
        return found


def _halves(
    observed: Matrix, null: Matrix, rates: stats.Comparisons, exact: NDArray[np.bool_], half: Ids
) -> tuple[Values, Values]:
    """Return win rates against two halves of the null, by the half of each set: every other set or every other fill.

    An exhaustive null without noise is used twice.
    """
    inside = ~np.isnan(null)
    both = [inside & (half == side) for side in (0, 1)]
    whole = exact | ~np.logical_and.reduce([own.any(axis=1) for own in both])
    halves = []
    for own in both:
        counts = np.maximum(np.count_nonzero(own, axis=1), 1)
        found = stats.compare_all(observed, np.where(own, null, np.nan), counts)
        halves.append(np.where(whole, rates.win_rate, found.win_rate))
    return halves[0], halves[1]
