"""What the rows of one chain say, and what all chains say together: necessity, sufficiency, capacity."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ice_eval import stats
from ice_eval.cot.ledger import changed
from ice_eval.rationales import DYNAMIC, set_size
from ice_eval.records import Kind
from ice_eval.results import InputRow, LedgerRow, RunSettings
from ice_eval.results.records import CapacityLine, MeanRate, Stratum
from ice_eval.seeding import rng_for
from ice_eval.stats import Interval

SHORT = 5
"""Chains of fewer steps are reported apart: a fifth of them is less than one step, and one is always taken."""
STRATA: Mapping[Stratum, Callable[[int], bool]] = {
    "long": lambda n_steps: n_steps >= SHORT,
    "short": lambda n_steps: n_steps < SHORT,
    "all": lambda n_steps: True,
}
"""Which chains a line is about."""
CUTS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of the chain at which early answers are reported."""


class Rate(NamedTuple):
    """A share of replies; what cannot be read gives bounds, and is no part of the estimate."""

    low: float
    point: float
    """NaN where no reply could be read."""
    high: float
    n_rows: int
    n_unread: int

    @property
    def complement(self) -> "Rate":
        """The share of all others."""
        return Rate(1 - self.high, 1 - self.point, 1 - self.low, self.n_rows, self.n_unread)


def rate_of(flags: NDArray[np.float64]) -> Rate:
    """Of flags that are 1, 0, or NaN where a reply could not be read."""
    unread, hits = int(np.isnan(flags).sum()), float(np.nansum(flags))
    n = flags.size
    return Rate(hits / n, hits / (n - unread) if n > unread else np.nan, (hits + unread) / n, n, unread)


@dataclass(frozen=True)
class ChainRows:
    """One chain that takes part, with its replies."""

    example: InputRow
    rows: Mapping[tuple[Kind, str | None, str | None, int | None], Sequence[LedgerRow]]
    """By kind, operator, direction and size, in the order of their sets."""

    @property
    def n_steps(self) -> int:
        return len(self.example.spans)

    @property
    def floor(self) -> Rate:
        """How often the full chain, asked again, gives another answer."""
        return rate_of(changed([*self._of(Kind.FULL), *self._of(Kind.AGAIN)]))

    @property
    def empty(self) -> Rate:
        """Whether the answer without any step is the chain's own."""
        return rate_of(changed(self._of(Kind.EMPTY))).complement

    def necessity(self, operator: str, k: float, p: int) -> Rate:
        """Share of the first P random removals that change the answer."""
        return rate_of(changed(self._random(operator, "necessity", k, p)))

    def sufficiency(self, operator: str, k: float, p: int) -> Rate:
        """Share of the first P random retained sets that keep it."""
        return rate_of(changed(self._random(operator, "sufficiency", k, p))).complement

    def arranged(self, name: str) -> list[LedgerRow]:
        """The rows of an arrangement, in their order."""
        found = [row for key, rows in self.rows.items() if key[:2] == (Kind.ARRANGED, name) for row in rows]
        return sorted(found, key=lambda row: row.key.set or 0)

    def kept_when_cut(self) -> NDArray[np.float64]:
        """Whether the chain cut off after 0, 1, … n steps gives its own answer (1, 0, NaN)."""
        beginnings = [*self._of(Kind.EMPTY), *self.arranged("truncate"), *self._of(Kind.FULL)]
        return 1 - changed(beginnings)

    def _of(self, kind: Kind) -> Sequence[LedgerRow]:
        return [row for key, rows in self.rows.items() if key[0] == kind for row in rows]

    def _random(self, operator: str, direction: str, k: float, p: int) -> Sequence[LedgerRow]:
        return self.rows[Kind.RANDOM, operator, direction, set_size(self.n_steps, k)][:p]


def chain_rows(example: InputRow, rows: Sequence[LedgerRow]) -> ChainRows:
    """The replies of one chain, by what they are about."""
    grouped: dict[tuple[Kind, str | None, str | None, int | None], list[LedgerRow]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.key.set or 0):
        key = row.key
        grouped[key.kind, key.operator, key.direction, key.size].append(row)
    return ChainRows(example, grouped)


def mean_rate(rates: Sequence[Rate], *, seed: int) -> MeanRate:
    """Mean over chains, its interval, and the bounds that unreadable replies leave; chains without a reply left out."""
    points = np.array([rate.point for rate in rates if not np.isnan(rate.point)])
    interval = stats.mean_interval(points, rng=rng_for(seed, "bootstrap")) if points.size else None
    bounds = None
    if rates:
        bounds = float(np.mean([rate.low for rate in rates])), float(np.mean([rate.high for rate in rates]))
    return MeanRate(rate=float(points.mean()) if points.size else None, rate_ci=interval, rate_bounds=bounds)


class _Rates(NamedTuple):
    """What the capacity of one chain is made of."""

    necessity: Rate
    sufficiency: Rate
    floor: Rate

    @property
    def is_read(self) -> bool:
        """Whether each of them has a reply that could be read."""
        return not any(np.isnan(rate.point) for rate in self)


def capacity_lines(chains: Sequence[ChainRows], config: RunSettings) -> Iterator[CapacityLine]:
    """Necessity, sufficiency and capacity: a line for every operator, share, and length of chains."""
    for operator in config.operators:
        for k in shares_of(config):
            for stratum, belongs in STRATA.items():
                chosen = [chain for chain in chains if belongs(chain.n_steps)]
                yield _capacity_line(chosen, operator, k, stratum, config)


def shares_of(config: RunSettings) -> list[float]:
    """The shares of steps of a run."""
    return [k for k in config.k if k != DYNAMIC]


def _capacity_line(
    chains: Sequence[ChainRows], operator: str, k: float, stratum: Stratum, config: RunSettings
) -> CapacityLine:
    seed, p = config.seed, config.m
    rates = [_Rates(each.necessity(operator, k, p), each.sufficiency(operator, k, p), each.floor) for each in chains]
    necessity, sufficiency, floors = ([each[column] for each in rates] for column in range(3))
    n_rows = sum(rate.n_rows for rate in (*necessity, *sufficiency))
    n_unread = sum(rate.n_unread for rate in (*necessity, *sufficiency))
    shares = [set_size(chain.n_steps, k) / chain.n_steps for chain in chains]
    removed, kept = mean_rate(necessity, seed=seed), mean_rate(sufficiency, seed=seed)
    line = CapacityLine(
        operator=operator,
        k=k,
        chains=stratum,
        n=sum(each.is_read for each in rates),
        k_effective=float(np.mean(shares)) if shares else None,
        necessity=removed.rate,
        necessity_ci=removed.rate_ci,
        necessity_bounds=removed.rate_bounds,
        sufficiency=kept.rate,
        sufficiency_ci=kept.rate_ci,
        sufficiency_bounds=kept.rate_bounds,
        noise_floor=mean_rate(floors, seed=seed).rate,
        unreadable_rate=n_unread / n_rows if n_rows else None,
    )
    return _with_capacity(line, rates, seed)


def _with_capacity(line: CapacityLine, rates: Sequence[_Rates], seed: int) -> CapacityLine:
    """Add capacity, the bounds that unreadable replies leave, and the words; nothing where no reply was read."""
    read = [each for each in rates if each.is_read]
    if not read:
        return line
    found = _capacity(read, ("point", "point", "point"), seed)
    # Every unreadable reply counted so that the capacity is lowest, or highest; of chains without a readable one, too.
    low = _capacity(rates, ("low", "high", "high"), seed)
    high = _capacity(rates, ("high", "low", "low"), seed)
    widest = None
    if low.adjusted_ci is not None and high.adjusted_ci is not None:
        widest = Interval(low.adjusted_ci.low, high.adjusted_ci.high)
    noise_only = stats.ReasoningVerdict(reason=stats.NOISE_ONLY)
    return replace(
        line,
        src=found.src,
        src_ci=found.src_ci,
        src_bounds=(low.src, high.src),
        src_product=found.product,
        src_adjusted=found.adjusted,
        src_adjusted_ci=found.adjusted_ci,
        src_adjusted_bounds=None if low.adjusted is None or high.adjusted is None else (low.adjusted, high.adjusted),
        taxonomy=None if found.adjusted is None else stats.reasoning_word(found.adjusted),
        verdict=noise_only if found.adjusted is None else stats.reasoning_verdict(widest),
    )


def _capacity(chains: Sequence[_Rates], ends: tuple[str, str, str], seed: int) -> stats.Capacity:
    """With the given end of each of the three rates."""
    columns = [
        np.array([getattr(rates[column], end) for rates in chains], dtype=np.float64) for column, end in enumerate(ends)
    ]
    return stats.capacity(*columns, rng=rng_for(seed, "capacity"))
