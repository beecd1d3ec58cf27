"""One example, one configuration: its rationale against its null, from ledger rows alone."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ice_eval.errors import ConfigError
from ice_eval.protocols import PROTOCOLS, Protocol
from ice_eval.rationales import Share, Units, null_of, rationale_size
from ice_eval.results.log_odds import WEAK_SIGNAL, clipped_nsr, log_odds, logit, sigmoid, with_prior_removed
from ice_eval.results.outcomes import Configuration, Outcome, Scores
from ice_eval.results.schema import InputRow, LedgerRow, RowKey, null_kind, rationale_kind
from ice_eval.stats import (
    STOP_AFTER,
    Comparison,
    SequentialComparison,
    compare,
    compare_sequentially,
    effect_size,
    member_win_rates,
)

TIE_FLAG = 0.01
"""A larger share of ties is flagged: every tie pulls a strict win rate down."""
FIRST_SETS = 2 * STOP_AFTER
"""Sets that a sequential test looks at in any case: no fewer decide both tails, unless they tie."""


@dataclass(frozen=True)
class _Values:
    """How the rows of one (operator, direction, size) compare; the rationale's comes first."""

    log_odds: NDArray[np.float64]
    order: NDArray[np.float64]
    """What rows are compared by; larger means a better rationale."""
    measure: NDArray[np.float64]
    """What effect sizes are measured in; larger means a better rationale."""
    probability: NDArray[np.float64]


@dataclass(frozen=True)
class _Found:
    """What the ledger says of one example under one configuration."""

    values: _Values
    rationale: Units
    sets: tuple[int, ...]
    full: float
    empty: float
    predicted: int


class ExampleLedger:
    """The rows of one example, by what they are."""

    def __init__(
        self,
        example: InputRow,
        rows: Sequence[LedgerRow],
        *,
        calibrated: bool = False,
        protocol: Protocol = PROTOCOLS["default"],
        sequential: bool = False,
        by_magnitude: Collection[str] = (),
    ) -> None:
        self.example = example
        self._by_magnitude = by_magnitude
        self._protocol = protocol
        self._sequential = sequential
        if calibrated:
            rows = with_prior_removed(rows)
        self._rows = rows
        self._place = {row.key: index for index, row in enumerate(rows)}
        self._log_odds = log_odds(np.array([row.scores for row in rows]), example.target) if rows else np.zeros(0)
        self._known_sets: dict[tuple[str, str, str, int], list[Units]] = {}

    @classmethod
    def of(cls, example: InputRow, rows: Sequence[LedgerRow], config: Mapping[str, Any]) -> "ExampleLedger":
        """The ledger of an example as a run's configuration reads it."""
        return cls(
            example,
            rows,
            calibrated=config.get("calibration") == "contextual",
            protocol=PROTOCOLS[config.get("protocol", "default")],
            sequential=config.get("adaptive") == "examples",
            by_magnitude=config.get("by_magnitude", ()),
        )

    def outcome(self, configuration: Configuration, operators: Sequence[str], m: int) -> Outcome:
        """Compare one rationale with its null; `operators` are averaged over."""
        example = self.example
        blank = Outcome(
            example.example_id, configuration, len(example.spans), example.target, example.gold, example.group
        )
        found = self._found(configuration, operators, m)
        if isinstance(found, str):
            return _failed(blank, found)
        observed, null = float(found.values.order[0]), found.values.order[1:]
        # A stream of a finished run is as long as its test asked for: one that decides nothing has no further set.
        compared = compare_sequentially(observed, null, whole=True) if self._sequential else compare(observed, null)
        assert compared is not None, "a whole stream decides"
        return _scored(blank, found, compared, m=m, strict=self._protocol.strict)

    def scores(self, configuration: Configuration, operators: Sequence[str], m: int) -> Scores | None:
        """What is compared; None where nothing is."""
        found = self._found(configuration, operators, m)
        if isinstance(found, str):
            return None
        values = found.values.log_odds
        return Scores(float(values[0]), values[1:], found.sets[: len(values) - 1])

    def decided(self, configuration: Configuration, operators: Sequence[str], m: int) -> bool:
        """Whether a sequential test has seen enough sets, or can see none."""
        found = self._found(configuration, operators, m)
        if isinstance(found, str):
            return True
        return compare_sequentially(float(found.values.order[0]), found.values.order[1:], whole=False) is not None

    def size(self, attribution: str, k: Share | None) -> int | str:
        """How many units the rationale of an attribution holds; or why there is none."""
        example = self.example
        if example.skip_reason is not None:
            return example.skip_reason
        vector, answer = example.attributions.get(attribution), example.answers.get(attribution)
        if answer is not None and answer.problem is not None:
            return f"the attribution '{attribution}': {answer.problem}"
        if vector is None:
            return f"the attribution '{attribution}' gave nothing"
        if not np.isfinite(vector).all():
            return f"the attribution '{attribution}' is not finite"
        size = rationale_size(vector, k, magnitude=attribution in self._by_magnitude)
        if not 0 < size < len(example.spans):  # only sizes of their own can be
            return f"the attribution '{attribution}' marks {'every' if size else 'no'} unit of the text"
        return size

    def probability(
        self,
        kind: str,
        operator: str | None = None,
        direction: str | None = None,
        size: int | None = None,
        index: int | None = None,
    ) -> float | None:
        """Of the target in one row, averaged over the draws of its fills; None where there is no such row."""
        row = RowKey(self.example.example_id, kind, operator, direction, size, index)
        places = [self._place[row]] if row in self._place else self._draws(*row[1:-1])
        return float(sigmoid(self._log_odds[places]).mean()) if places else None

    def _found(self, cell: Configuration, operators: Sequence[str], m: int) -> _Found | str:
        """The rationale's row and those of its null; or why there are none."""
        example, n_units = self.example, len(self.example.spans)
        size = self.size(cell.attribution, cell.k)
        if isinstance(size, str):
            return size
        direction, kind = cell.direction, rationale_kind(cell.attribution)
        place = RowKey(example.example_id, kind, operators[0], direction, size, None, 0)
        if place not in self._place:
            raise ConfigError(
                f"the ledger has no row of the attribution '{cell.attribution}' for example "
                f"'{example.example_id}'; run the same command again to score what is missing."
            )
        rationale = _set_of(self._rows[self._place[place]], n_units)
        random = null_kind(cell.attribution, cell.null, self._protocol)
        # Under several operators: the sets that all of them have scored.
        sets = min((self._sets(random, each, direction, size) for each in operators), key=len)
        chosen = range(len(sets)) if self._protocol.own_null else null_of(rationale, sets, m)
        if not chosen:
            return f"no other set is matched with the rationale of '{cell.attribution}' ({cell.null})"
        keys = [(kind, None), *((random, index) for index in chosen)]
        references = [self._place[RowKey(example.example_id, k)] for k in ("full", "empty")]
        full, empty = sigmoid(self._log_odds[references]).tolist()
        empties = [self._place.get(RowKey(example.example_id, "empty", each), references[1]) for each in operators]
        values = self._values(keys, operators, direction, size, full, sigmoid(self._log_odds[empties]))
        if self._sequential:
            values = _looked_at(values)
        if not (np.isfinite(values.order).all() and np.isfinite([full, empty]).all()):
            return "a score is not finite"
        return _Found(values, rationale, tuple(chosen), full, empty, int(np.argmax(self._rows[references[0]].scores)))

    def _sets(self, kind: str, operator: str, direction: str, size: int) -> list[Units]:
        """The random sets of one kind and size, in their order."""
        place = kind, operator, direction, size
        if place not in self._known_sets:
            found: list[Units] = []
            while (key := RowKey(self.example.example_id, *place, len(found), 0)) in self._place:
                found.append(_set_of(self._rows[self._place[key]], len(self.example.spans)))
            self._known_sets[place] = found
        return self._known_sets[place]

    def _values(
        self,
        keys: Sequence[tuple[str, int | None]],
        operators: Sequence[str],
        direction: str,
        size: int,
        full: float,
        empty: NDArray[np.float64],
    ) -> _Values:
        """Values of sets, averaged as probabilities over draws and operators where there are several."""
        # (sets, draws) of each operator
        log_odds = [
            self._log_odds[[self._draws(kind, operator, direction, size, index) for kind, index in keys]]
            for operator in operators
        ]
        # One answer per set: compared as log-odds, which do not saturate. Several: averaged as probabilities.
        single = len(operators) == 1 and log_odds[0].shape[1] == 1
        by_operator = np.stack([sigmoid(each).mean(axis=1) for each in log_odds])
        probability = by_operator.mean(axis=0)
        if self._protocol.by_clipped_nsr:
            order = measure = np.mean(list(map(clipped_nsr, by_operator, repeat(full), empty.tolist())), axis=0)
        else:
            order, measure = log_odds[0][:, 0] if single else probability, probability
        sign = 1.0 if direction == "sufficiency" else -1.0
        return _Values(log_odds[0][:, 0] if single else logit(probability), sign * order, sign * measure, probability)

    def _draws(
        self, kind: str, operator: str | None, direction: str | None, size: int | None, index: int | None
    ) -> list[int]:
        """Places of the rows of one set, one for each draw of its fills."""
        place, found = (self.example.example_id, kind, operator, direction, size, index), list[int]()
        while (key := RowKey(*place, len(found))) in self._place:
            found.append(self._place[key])
        return found


def _looked_at(values: _Values) -> _Values:
    """Without the rows from the first that is not finite on, where a sequential test is decided before it.

    Others may have asked for those rows, or the stream grew beyond the stop: they must not spoil a test that is over.
    """
    finite = np.isfinite(values.order)
    n = len(finite) if finite.all() else int(np.argmin(finite))
    if n < 2 or compare_sequentially(float(values.order[0]), values.order[1:n], whole=False) is None:
        return values
    return _Values(values.log_odds[:n], values.order[:n], values.measure[:n], values.probability[:n])


def _failed(blank: Outcome, reason: str) -> Outcome:
    return replace(blank, error=reason)


def _scored(blank: Outcome, found: _Found, compared: Comparison, *, m: int, strict: bool) -> Outcome:
    values, n_sets = found.values, compared.null.size
    null = values.measure[1 : 1 + n_sets]  # a sequential test may look at fewer sets than were scored
    score, signal = float(values.probability[0]), found.full - found.empty
    weak = abs(signal) < WEAK_SIGNAL
    flags = [("weak_signal", weak), ("negative_signal", signal < 0), ("ties", compared.tie_rate > TIE_FLAG)]
    sequential = isinstance(compared, SequentialComparison)
    n_used = compared.n_used if isinstance(compared, SequentialComparison) else n_sets
    exact = n_used == n_sets < m
    return replace(
        blank,
        predicted=found.predicted,
        rationale=found.rationale,
        m=n_used,
        exact=exact,
        win_rate=compared.win_rate_strict if strict else compared.win_rate,
        win_rate_strict=compared.win_rate_strict,
        tie_rate=compared.tie_rate,
        p_value=compared.p_value,
        p_lower=compared.p_lower,
        effect=float(values.measure[0] - null.mean()),
        effect_size=effect_size(float(values.measure[0]), null),
        nsr=None if weak else (score - found.empty) / signal,
        score=score,
        score_full=found.full,
        score_empty=found.empty,
        family=member_win_rates(values.order[: 1 + FIRST_SETS] if sequential else values.order),
        halves=_halves(compared, exact=exact),
        flags=tuple(name for name, raised in flags if raised),
    )


def _halves(compared: Comparison, *, exact: bool) -> tuple[float, float]:
    """Win rates against two halves of the null; a null of all sets there are has no second one, and no noise."""
    if exact or compared.null.size < 2:
        return compared.win_rate, compared.win_rate
    first, second = (compare(compared.observed, compared.null[start::2]).win_rate for start in (0, 1))
    return first, second


def _set_of(row: LedgerRow, n_units: int) -> Units:
    """The set a row is about: what it keeps, or what it removes."""
    if row.key.direction == "necessity":
        return tuple(sorted(set(range(n_units)) - set(row.kept)))
    return row.kept


def examples_of(
    inputs: Sequence[InputRow], rows: Sequence[LedgerRow], config: Mapping[str, Any]
) -> Iterator[ExampleLedger]:
    """The examples of a part, each with its rows, as a run's configuration reads them."""
    found = by_example(rows)
    for example in inputs:
        yield ExampleLedger.of(example, found[example.example_id], config)


def by_example(rows: Iterable[LedgerRow]) -> defaultdict[str, list[LedgerRow]]:
    """The rows of each example, in their order; an example without rows has none."""
    found: defaultdict[str, list[LedgerRow]] = defaultdict(list)
    for row in rows:
        found[row.key.example_id].append(row)
    return found
