"""One example, one configuration: its rationale against its null, from ledger rows alone."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ice_eval.errors import ConfigError
from ice_eval.protocols import PROTOCOLS, Protocol
from ice_eval.rationales import Units, null_of, set_size
from ice_eval.results.schema import InputRow, LedgerRow, RowKey, null_kind, rationale_kind
from ice_eval.stats import compare, effect_size, member_win_rates

WEAK_SIGNAL = 0.05
"""Below this size of `s(x) - s(∅)` a ratio to it says nothing."""
TIE_FLAG = 0.01
"""A larger share of ties is flagged: every tie pulls a strict win rate down."""
ALL = "all"
"""Name of the several-operator average."""


class Configuration(NamedTuple):
    """What a summary line is about."""

    attribution: str
    operator: str
    direction: str
    k: float


@dataclass(frozen=True)
class Outcome:
    """One example under one configuration; `error` and no numbers where there are none."""

    example_id: str
    configuration: Configuration
    n_units: int
    target: int | None
    gold: int | None
    predicted: int | None = None
    error: str | None = None
    rationale: Units = ()
    m: int = 0
    """Size of the null."""
    win_rate: float = np.nan
    win_rate_strict: float = np.nan
    tie_rate: float = np.nan
    p_value: float = np.nan
    p_lower: float = np.nan
    effect: float = np.nan
    """What is gained over the mean of the null, as a probability."""
    effect_size: float | None = None
    nsr: float | None = None
    score: float = np.nan
    """Probability of the target when the rationale is kept, or removed (necessity)."""
    score_full: float = np.nan
    score_empty: float = np.nan
    family: NDArray[np.float64] | None = None
    """Win rates of all scored sets of the example, the rationale's first."""
    flags: tuple[str, ...] = ()

    @property
    def signal(self) -> float:
        """`s(x) - s(∅)`."""
        return self.score_full - self.score_empty

    def line(self) -> dict[str, Any]:
        """The line of `examples.jsonl`."""
        head = {
            "example_id": self.example_id,
            **self.configuration._asdict(),
            "n_units": self.n_units,
            "target": self.target,
            "gold": self.gold,
        }
        if self.error is not None:
            return {**head, "error": self.error}
        names = (
            "predicted", "m", "win_rate", "win_rate_strict", "tie_rate", "p_value", "p_lower", "effect",
            "effect_size", "nsr", "score", "score_full", "score_empty",
        )  # fmt: skip
        return {
            **head,
            **{n: getattr(self, n) for n in names},
            "flags": list(self.flags),
            "rationale": list(self.rationale),
        }


@dataclass(frozen=True)
class _Values:
    """How the rows of one (operator, direction, size) compare; the rationale's comes first."""

    order: NDArray[np.float64]
    """What rows are compared by; larger means a better rationale."""
    measure: NDArray[np.float64]
    """What effect sizes are measured in; larger means a better rationale."""
    probability: NDArray[np.float64]


class ExampleLedger:
    """The rows of one example, by what they are."""

    def __init__(
        self,
        example: InputRow,
        rows: Sequence[LedgerRow],
        *,
        calibrated: bool = False,
        protocol: Protocol = PROTOCOLS["default"],
    ) -> None:
        self.example = example
        self._protocol = protocol
        if calibrated:
            rows = _calibrated(rows)
        self._rows = rows
        self._place = {row.key: index for index, row in enumerate(rows)}
        self._log_odds = _log_odds(np.array([row.scores for row in rows]), example.target) if rows else np.zeros(0)
        self._known_sets: dict[tuple[str, str, str, int], list[Units]] = {}

    def outcome(self, configuration: Configuration, operators: Sequence[str], m: int) -> Outcome:
        """Compare one rationale with its null; `operators` are averaged over."""
        example, n_units = self.example, len(self.example.spans)
        blank = Outcome(example.example_id, configuration, n_units, example.target, example.gold)
        if example.skip_reason is not None:
            return _failed(blank, example.skip_reason)
        vector = example.attributions.get(configuration.attribution)
        if vector is None:
            return _failed(blank, f"the attribution '{configuration.attribution}' gave nothing")
        if not np.isfinite(vector).all():
            return _failed(blank, f"the attribution '{configuration.attribution}' is not finite")
        return self._compared(blank, operators, set_size(n_units, configuration.k), m)

    def _compared(self, blank: Outcome, operators: Sequence[str], size: int, m: int) -> Outcome:
        direction, n_units = blank.configuration.direction, blank.n_units
        kind = rationale_kind(blank.configuration.attribution)
        place = RowKey(blank.example_id, kind, operators[0], direction, size, None, 0)
        if place not in self._place:
            raise ConfigError(
                f"the ledger has no row of the attribution '{blank.configuration.attribution}' for example "
                f"'{blank.example_id}'; run the same command again to score what is missing."
            )
        rationale = _set_of(self._rows[self._place[place]], n_units)
        random = null_kind(blank.configuration.attribution, self._protocol)
        sets = self._sets(random, operators[0], direction, size)
        chosen = range(len(sets)) if self._protocol.own_null else null_of(rationale, sets, m)
        keys = [(kind, None), *((random, index) for index in chosen)]
        references = [self._place[RowKey(blank.example_id, k)] for k in ("full", "empty")]
        full, empty = sigmoid(self._log_odds[references]).tolist()
        empties = [self._place.get(RowKey(blank.example_id, "empty", each), references[1]) for each in operators]
        values = self._values(keys, operators, direction, size, full, sigmoid(self._log_odds[empties]))
        if not (np.isfinite(values.order).all() and np.isfinite([full, empty]).all()):
            return _failed(blank, "a score is not finite")
        predicted = int(np.argmax(self._rows[references[0]].scores))
        return _scored(blank, values, rationale, full, empty, predicted=predicted, strict=self._protocol.strict)

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
        return _Values(sign * order, sign * measure, probability)

    def _draws(self, kind: str, operator: str, direction: str, size: int, index: int | None) -> list[int]:
        """Places of the rows of one set, one for each draw of its fills."""
        place, found = (self.example.example_id, kind, operator, direction, size, index), list[int]()
        while (key := RowKey(*place, len(found))) in self._place:
            found.append(self._place[key])
        return found


def _failed(blank: Outcome, reason: str) -> Outcome:
    return Outcome(blank.example_id, blank.configuration, blank.n_units, blank.target, blank.gold, error=reason)


def _scored(
    blank: Outcome, values: _Values, rationale: Units, full: float, empty: float, *, predicted: int, strict: bool
) -> Outcome:
    found = compare(float(values.order[0]), values.order[1:])
    score, signal = float(values.probability[0]), full - empty
    weak = abs(signal) < WEAK_SIGNAL
    flags = [("weak_signal", weak), ("negative_signal", signal < 0), ("ties", found.tie_rate > TIE_FLAG)]
    return Outcome(
        **{name: getattr(blank, name) for name in ("example_id", "configuration", "n_units", "target", "gold")},
        predicted=predicted,
        rationale=rationale,
        m=found.null.size,
        win_rate=found.win_rate_strict if strict else found.win_rate,
        win_rate_strict=found.win_rate_strict,
        tie_rate=found.tie_rate,
        p_value=found.p_value,
        p_lower=found.p_lower,
        effect=float(values.measure[0] - values.measure[1:].mean()),
        effect_size=effect_size(float(values.measure[0]), values.measure[1:]),
        nsr=None if weak else (score - empty) / signal,
        score=score,
        score_full=full,
        score_empty=empty,
        family=member_win_rates(values.order),
        flags=tuple(name for name, raised in flags if raised),
    )


def _set_of(row: LedgerRow, n_units: int) -> Units:
    """The set a row is about: what it keeps, or what it removes."""
    if row.key.direction == "necessity":
        return tuple(sorted(set(range(n_units)) - set(row.kept)))
    return row.kept


def log_odds_of(scores: Sequence[float], target: int) -> float:
    """`z_y - logsumexp(z_others)`: the order of the probability, without its saturation."""
    return float(_log_odds(np.array([scores], dtype=np.float64), target)[0])


def _log_odds(scores: NDArray[np.float64], target: int | None) -> NDArray[np.float64]:
    """`log_odds_of` of every row of (rows, labels); NaN where no target is explained."""
    if target is None:
        return np.full(len(scores), np.nan)
    others = np.delete(scores, target, axis=1)
    top = others.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):  # scores that are not finite give NaN, which the caller reports
        rest = top[:, 0] + np.log(np.exp(others - top).sum(axis=1))
        result: NDArray[np.float64] = scores[:, target] - rest
    return result


def sigmoid(log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probability of the target from its log-odds, without overflow."""
    with np.errstate(invalid="ignore"):
        result: NDArray[np.float64] = np.exp(-np.logaddexp(0.0, -log_odds))
    return result


def clipped_nsr(probability: NDArray[np.float64], full: float, empty: float) -> NDArray[np.float64]:
    """`(s - s(∅)) / (s(x) - s(∅))` as the released package has it: within [-2, 2], and 0 where the signal is weak."""
    if abs(full - empty) < WEAK_SIGNAL:
        return np.zeros_like(probability)
    clipped: NDArray[np.float64] = np.clip((probability - empty) / (full - empty), -2.0, 2.0)
    return clipped


def _calibrated(rows: Sequence[LedgerRow]) -> list[LedgerRow]:
    """Log-scores less those of the empty input: contextual calibration (Zhao et al., 2021)."""
    prior = next((row.scores for row in rows if row.key.kind == "empty"), None)
    if prior is None:
        return list(rows)
    return [row._replace(scores=tuple(np.subtract(row.scores, prior).tolist())) for row in rows]


def examples_of(
    inputs: Sequence[InputRow],
    rows: Sequence[LedgerRow],
    *,
    calibrated: bool = False,
    protocol: Protocol = PROTOCOLS["default"],
) -> Iterator[ExampleLedger]:
    """The examples of a part, each with its rows."""
    by_example: Mapping[str, list[LedgerRow]] = defaultdict(list)
    for row in rows:
        by_example[row.key.example_id].append(row)
    for example in inputs:
        yield ExampleLedger(example, by_example[example.example_id], calibrated=calibrated, protocol=protocol)
