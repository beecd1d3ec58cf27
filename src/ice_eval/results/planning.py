"""Estimate the cost and power of a run from a small one: rows, tokens, time, and width of the intervals."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ice_eval import stats
from ice_eval.errors import ConfigError
from ice_eval.operators import draws_fills
from ice_eval.rationales import Share
from ice_eval.records import NOT_SET, Ids, Kind
from ice_eval.results.examples import Examples
from ice_eval.results.folder import RunFolder
from ice_eval.results.ledger import Values
from ice_eval.results.outcomes import ALL, groups_of
from ice_eval.results.records import Configuration, RunSettings
from ice_eval.results.summary import ALPHA, configurations, names_of, outcomes_by_configuration
from ice_eval.stats.intervals import half_width

PILOT_EXAMPLES, PILOT_SETS = 48, 12
"""The pilot of `adaptive="dataset"`: three parts, and no more sets than are usually enough."""
FEWEST_SETS = 8
FEWEST_FILLS = 4
"""Fewer do not show how much win rates differ between fills."""
WIDER = 0.07
"""With fewer random sets, no interval should widen by more than this share, …"""
ROWS_SHARE = 1 / 3
"""… unless that needed more than this share of the rows."""
_MANY = 10**9
"""Upper limit for the number of sets of an example."""


@dataclass(frozen=True)
class Cost:
    """Cost of an example without its random sets, and of each set, over all operators."""

    rows_example: float
    """Rationales under all fills included."""
    rows_set: float
    tokens_example: float
    """Tokens processed by the model; a backward pass counts as two forward passes."""
    tokens_set: float
    seconds_attribution: float
    """Per example."""
    seconds_token: float
    """Per token of a row."""
    tokens_attribution: float
    bytes_row: float
    capacities: tuple[int, ...]
    """Largest possible number of random sets of each example; short texts have few."""
    n_fills: int = 1
    """Number of fills of each rationale."""
    rows_fill: float = 0.0
    """Rows of an example under one fill, without random sets; 0 if no operator draws fills."""
    tokens_fill: float = 0.0

    def at(self, n_fills: int) -> "Cost":
        """Return the cost with another number of fills."""
        more = n_fills - self.n_fills
        rows, tokens = self.rows_example + more * self.rows_fill, self.tokens_example + more * self.tokens_fill
        return replace(self, n_fills=n_fills, rows_example=rows, tokens_example=tokens)

    def sets(self, m: int) -> float:
        """Return the mean number of random sets per example if `m` are requested."""
        return float(np.minimum(m, self.capacities).mean())

    def rows(self, m: int) -> float:
        return self.rows_example + self.sets(m) * self.rows_set


def cost_of(folder: RunFolder) -> Cost:
    """Compute the cost per example and per random set of a run."""
    costs, config = folder.costs(), folder.manifest().config
    tokens, attribution_tokens, seconds = (
        sum(cost.get(name, 0) for cost in costs) for name in ("tokens", "attribution_tokens", "seconds")
    )
    attribution_seconds = sum(sum(cost["attribution_seconds"].values()) for cost in costs)
    counts, capacities, n_fills = Counter[str](), list[int](), 1
    drawing = [code for code, name in enumerate(config.operators) if draws_fills(name)]
    for part in folder.parts():
        examples = folder.columns(part)
        ledger = folder.ledger(part, names_of(config, examples.ids), inputs=True)
        head, lengths = ledger.head, ledger.inputs.lengths
        # Place among the sets that a rationale is compared with, from 1 on. Of the sets that all attributions share
        # one more is scored, in place of a rationale that is among them.
        place = np.where(head["attribution"] == NOT_SET, head["set"], head["set"] + 1)
        place[head["kind"] != Kind.RANDOM] = 0
        reached = np.zeros(len(examples), dtype=np.int64)
        np.maximum.at(reached, head["example"], place)
        filled = (head["kind"] == Kind.RATIONALE) & np.isin(head["operator"], drawing)
        n_fills = max(n_fills, 1 + int(head["draw"].max(initial=0, where=filled)))
        counts.update(
            rows=len(head),
            examples=len(np.unique(head["example"])),
            random=int((place > 0).sum()),
            sets=int(reached.sum()),
            length=int(lengths[head["kind"] != Kind.PROBE].sum()),  # tokens of probes belong to attributions
            random_length=int(lengths[place > 0].sum()),
            filled=int(filled.sum()),
            filled_length=int(lengths[filled].sum()),
        )
        capacities += _capacities(examples, np.flatnonzero(reached), config)
    n_sets, n, length = (max(counts[name], 1) for name in ("sets", "examples", "length"))
    # Tokens that rows share are computed once; they are spread over rows by length.
    random_tokens = tokens * counts["random_length"] / length
    return Cost(
        rows_example=(counts["rows"] - counts["random"]) / n,
        rows_set=counts["random"] / n_sets,
        tokens_example=(tokens - random_tokens + attribution_tokens) / n,
        tokens_set=random_tokens / n_sets,
        tokens_attribution=attribution_tokens / n,
        seconds_attribution=attribution_seconds / n,
        seconds_token=max(seconds - attribution_seconds, 0.0) / max(tokens, 1),
        bytes_row=sum(path.stat().st_size for path in folder.path.glob("*/*.parquet")) / max(counts["rows"], 1),
        capacities=tuple(capacities) or (_MANY,),
        n_fills=n_fills,
        rows_fill=counts["filled"] / n / n_fills,
        tokens_fill=tokens * counts["filled_length"] / length / n / n_fills,
    )


def _capacities(examples: Examples, chosen: Ids, config: RunSettings) -> list[int]:
    """Return the number of other sets of the rationale's size, for each example."""
    cells = {(cell.attribution, cell.k) for cell, _ in configurations(config)}
    sizes = [examples.sizes(name, k, magnitude=name in config.by_magnitude) for name, k in cells]
    return [
        min(max(math.comb(int(examples.n_units[place]), int(size[place])) - 1 for size in sizes), _MANY)
        for place in chosen
    ]


@dataclass(frozen=True)
class Choice:
    """A number of examples and of random sets, with their cost and precision."""

    name: str
    n: int
    m: int
    rows: int
    tokens: int
    minutes: float
    disk_mb: float
    width: float
    """Approximate width of the widest 95 % interval."""
    detectable_win_rate: float
    """Mean win rate that all configurations detect with power 80 %."""
    fills: int = 1
    """Number of fills; 1 if no operator draws any."""


@dataclass(frozen=True)
class VarianceShares:
    """Origin of the variance of a win rate of one example, under one configuration, as asked."""

    attribution: str
    operator: str
    direction: str
    k: Share | None
    null: str
    variance: float
    examples: float
    """Share of the variance that examples differ by: only more examples help."""
    fills: float
    sets: float


@dataclass(frozen=True)
class Plan:
    """Estimates for a run, from a pilot."""

    model: str
    task: str
    device: str
    pilot: Mapping[str, float]
    """n, m and seconds of the pilot."""
    cheapest_m: float | None
    """Number of random sets at which a given width costs the fewest tokens; None if the pilot shows no spread."""
    choices: tuple[Choice, ...]
    peak_memory_gb: float | None
    warnings: tuple[str, ...]
    variances: tuple[VarianceShares, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Sets:
    """Number of random sets that suffices for a data set."""

    m: int
    cheapest_m: float | None
    wider: float
    """Share by which the worst interval widens compared with the requested number of sets."""


def plan(
    folder: RunFolder,
    *,
    n: int,
    m: int,
    adaptive: str | None = None,
    width: float | None = None,
    detect: float | None = None,
    available: int | None = None,
) -> Plan:
    """Estimate the cost and precision of a run of `n` examples and `m` random sets from a finished pilot.

    `width` (of the 95 % intervals) and `detect` (smallest win rate) are wanted; `available` is the size of the data.

    Raises:
        ConfigError: The pilot has fewer than two examples that can be evaluated.
    """
    manifest = folder.manifest()
    config, spent = manifest.config, manifest.cost
    by_cell, cost = spreads_of(folder, config), cost_of(folder)
    if not by_cell:
        raise ConfigError("the pilot has fewer than two examples that can be evaluated; a plan needs more.")
    asked_fills = min(config.n_fills, m) if cost.rows_fill else 1
    spreads, cost = list(by_cell.values()), cost.at(asked_fills)
    enough = sets_for(spreads, cost, m=m)

    choice = partial(_choice, spreads=spreads, cost=cost)
    fewer = _with_pilot(choice("--adaptive dataset", n, enough.m, asked_fills), cost)
    if adaptive == "dataset":
        choices = [replace(fewer, name="as asked")]
    elif adaptive == "examples":
        choices = [choice("as asked, about", n, _sequential_sets(folder, config, m=m), asked_fills)]
    else:
        choices = [choice("as asked", n, m, asked_fills), *([fewer] if fewer.m < m else [])]
    n_fills = fills_for(spreads, cost, m=enough.m)
    many = [spread.at(n_fills) for spread in spreads]
    suffix, wanted = f", --n-fills {n_fills}" if n_fills != asked_fills else "", list[tuple[str, int]]()
    if adaptive is None and suffix:
        wanted.append((f"--m {enough.m}{suffix}".replace(",", ""), n))
    if width is not None:
        examples = max(stats.n_for_width(spread, m=enough.m, width=width) for spread in many)
        wanted.append((f"interval of {100 * width:g} pp{suffix}", examples))
    if detect is not None:
        examples = max(stats.n_for_detectable(spread, m=enough.m, win_rate=detect) for spread in many)
        wanted.append((f"detect {100 * detect:g} %{suffix}", examples))
    choices += [choice(name, n, enough.m, n_fills) for name, n in wanted]
    memory = None if spent is None else spent.peak_memory
    return Plan(
        model=config.model,
        task=config.task,
        device=manifest.device,
        pilot={"n": manifest.data.examples, "m": config.m, "seconds": 0.0 if spent is None else spent.seconds},
        cheapest_m=enough.cheapest_m,
        choices=tuple(choices),
        variances=tuple(_shares(cell, spread, m, asked_fills) for cell, spread in by_cell.items()),
        peak_memory_gb=None if memory is None else round(memory / 1e9, 2),
        warnings=tuple(_warnings(choices, width, detect, available, adaptive=adaptive)),
    )


def _choice(name: str, n: int, m: int, n_fills: int, *, spreads: Sequence[stats.Spread], cost: Cost) -> Choice:
    spreads, cost = [spread.at(n_fills) for spread in spreads], cost.at(n_fills)
    rows = n * cost.rows(m)
    tokens = n * (cost.tokens_example - cost.tokens_attribution + cost.sets(m) * cost.tokens_set)
    return Choice(
        name=name,
        n=n,
        m=m,
        fills=n_fills,
        rows=round(rows),
        tokens=round(tokens + n * cost.tokens_attribution),
        minutes=round((n * cost.seconds_attribution + tokens * cost.seconds_token) / 60, 2),
        disk_mb=round(rows * cost.bytes_row / 1e6, 1),
        width=2 * half_width(n) * max(stats.standard_error(spread, n=n, m=m) for spread in spreads),
        detectable_win_rate=max(stats.detectable(spread, n=n, m=m) for spread in spreads),
    )


def _shares(cell: Configuration, spread: stats.Spread, m: int, n_fills: int) -> VarianceShares:
    parts = np.array([spread.between, spread.fills / n_fills, spread.within / m])
    total = float(parts.sum())
    examples, fills, sets = (parts / total if total > 0 else parts).tolist()
    return VarianceShares(**cell._asdict(), variance=total, examples=examples, fills=fills, sets=sets)


def _with_pilot(choice: Choice, cost: Cost) -> Choice:
    """Add the cost of the extra sets that the run's own pilot scores."""
    rows = min(choice.n, PILOT_EXAMPLES) * (cost.sets(max(PILOT_SETS, choice.m)) - cost.sets(choice.m)) * cost.rows_set
    share = 1 + rows / max(choice.rows, 1)
    digits = {"rows": None, "tokens": None, "minutes": 2, "disk_mb": 1}
    return replace(choice, **{name: round(getattr(choice, name) * share, after) for name, after in digits.items()})


def _warnings(
    choices: Sequence[Choice], width: float | None, detect: float | None, available: int | None, *, adaptive: str | None
) -> Iterator[str]:
    asked = choices[0]
    if width is not None and asked.width > width:
        yield f"{asked.n} examples give an interval of {100 * asked.width:.1f} pp, wider than {100 * width:g} pp."
    if detect is not None and asked.detectable_win_rate > detect:
        found = f"a win rate of {100 * asked.detectable_win_rate:.1f} %" if asked.detectable_win_rate <= 1 else "none"
        yield f"{asked.n} examples distinguish {found} from chance, not one of {100 * detect:g} %."
    if adaptive is None and asked.m + 1 < 1 / ALPHA:
        yield f"with {asked.m} random sets no single example can be significant; use at least {round(1 / ALPHA) - 1}."
    for choice in choices:
        if available is not None and available < choice.n:
            yield f"{choice.name}: {choice.n} examples are needed, and the data hold {available}."


def _sequential_sets(folder: RunFolder, config: RunSettings, *, m: int) -> int:
    """Estimate the sets that a sequential test needs per example, from the win rates of the pilot.

    A tail that random sets reach with probability q stops after h/q of them on average. Both tails of every
    attribution must stop.
    """
    needed: dict[Configuration, Values] = {}
    for cell, outcomes in outcomes_by_configuration(folder, config).items():
        if cell.operator != ALL:
            n_sets = outcomes.column("m")
            rates = (outcomes.column("win_rate") * n_sets + 0.5) / (n_sets + 1)
            draws = np.where(outcomes.flag("exact"), n_sets, stats.STOP_AFTER / np.minimum(rates, 1 - rates))
            place = cell._replace(attribution="")
            needed[place] = np.fmax(needed.get(place, np.nan), np.minimum(draws, m))
    return math.ceil(float(np.nanmean(np.concatenate(list(needed.values())))))


def spreads_of(folder: RunFolder, config: RunSettings) -> dict[Configuration, stats.Spread]:
    """Estimate the variance of win rates of each configuration, from examples with at least two random sets."""
    found = {}
    for cell, outcomes in outcomes_by_configuration(folder, config).items():
        used = outcomes.select(outcomes.sound & (outcomes.flag("exact") | (outcomes.column("m") > 1)))
        if cell.operator != ALL and len(used) > 1:
            rates, ties, m = (used.column(name) for name in ("win_rate", "tie_rate", "m"))
            exact, groups, noise = used.flag("exact"), groups_of(used), None
            if not np.isnan(used.column("n_fills")).any():
                columns = (used.column(name) for name in ("fill_variance", "set_variance", "m_effective"))
                noise = stats.FillNoise(used.column("n_fills").astype(np.int64), *columns)
            found[cell] = stats.spread_of(rates, m.astype(int), exact=exact, tie_rates=ties, noise=noise, groups=groups)
    return found


def fills_for(spreads: Sequence[stats.Spread], cost: Cost, *, m: int) -> int:
    """Return the number of fills at which a given width costs the fewest tokens, at least `FEWEST_FILLS`."""
    if not cost.rows_fill:
        return 1
    pooled = _pooled(spreads)
    fixed = max(cost.at(0).tokens_example, cost.tokens_fill)
    # An example costs that of its fills beside that of the rows that depend on neither fills nor sets.
    cheapest = stats.cheapest_m(
        stats.Spread(pooled.between, pooled.fills), cost_example=fixed, cost_set=cost.tokens_fill
    )
    return min(max(round(cheapest) if math.isfinite(cheapest) else m, FEWEST_FILLS), m)


def _pooled(spreads: Sequence[stats.Spread]) -> stats.Spread:
    parts = {name: float(np.mean([getattr(each, name) for each in spreads])) for name in ("between", "within", "fills")}
    return stats.Spread(**parts)


def sets_for(spreads: Sequence[stats.Spread], cost: Cost, *, m: int) -> Sets:
    """Return the number of random sets that suffices for statements about the data set, at most `m`.

    This is the cheapest number by the pooled spread of win rates. It is larger if an interval would become too wide, as
    long as the rows stay within `ROWS_SHARE` of those with `m` sets.
    """
    if not spreads:
        return Sets(m, None, 0.0)
    spreads = [spread.at(cost.n_fills) for spread in spreads]
    pooled = _pooled(spreads)
    cheapest = stats.cheapest_m(pooled, cost_example=cost.tokens_example, cost_set=cost.tokens_set)
    for_width = max(stats.m_for_width(spread, m=m, wider=WIDER) for spread in spreads)
    for_a_third = math.floor((cost.rows(m) * ROWS_SHARE - cost.rows_example) / max(cost.rows_set, 1))
    wanted = max(min(for_width, for_a_third), FEWEST_SETS)
    enough = min(max(wanted, round(cheapest)) if math.isfinite(cheapest) else wanted, m)
    errors = [[stats.standard_error(spread, n=1, m=each) for each in (enough, m)] for spread in spreads]
    wider = max((few / many for few, many in errors if many > 0), default=1.0) - 1
    return Sets(enough, cheapest if math.isfinite(cheapest) else None, wider)
