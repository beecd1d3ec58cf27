"""What a small run says about a larger one: rows, tokens, time, and how sure its answer will be."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ice_eval import stats
from ice_eval.errors import ConfigError
from ice_eval.results.columns import Outcomes, groups_of
from ice_eval.results.costs import Cost, cost_of
from ice_eval.results.folder import RunFolder
from ice_eval.results.outcomes import ALL
from ice_eval.results.records import Configuration, RunSettings
from ice_eval.results.summary import ALPHA, outcomes_by_configuration

PILOT_EXAMPLES, PILOT_SETS = 48, 12
"""What `adaptive="dataset"` looks at before it decides: three parts, and no more sets than it usually finds enough."""
FEWEST_SETS = 8
WIDER = 0.07
"""With fewer random sets no interval should become wider by more than this share, …"""
ROWS_SHARE = 1 / 3
"""… unless that took more than this share of the rows."""


@dataclass(frozen=True)
class Choice:
    """A number of examples and of random sets, and what they come to."""

    name: str
    n: int
    m: int
    rows: int
    tokens: int
    minutes: float
    disk_mb: float
    width: float
    """Of the widest of the 95 % intervals, about."""
    detectable_win_rate: float
    """By all configurations, with power 80 %."""


@dataclass(frozen=True)
class Plan:
    """What a pilot says about a run."""

    model: str
    task: str
    device: str
    pilot: Mapping[str, float]
    """Its n, m and seconds."""
    cheapest_m: float | None
    """Random sets at which a wanted interval costs the fewest tokens; None where the pilot shows no spread."""
    choices: tuple[Choice, ...]
    peak_memory_gb: float | None
    warnings: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Sets:
    """How many random sets are enough for a data set."""

    m: int
    cheapest_m: float | None
    wider: float
    """By what share intervals become wider than with as many sets as were asked for, the worst of them."""


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
    """Scale a finished run up.

    Args:
        folder: The pilot.
        n: Examples that are asked for.
        m: Random sets that are asked for.
        adaptive: `examples`: as many of them as each example's test will need.
        width: Wanted width of the 95 % intervals.
        detect: Wanted smallest detectable win rate.
        available: Examples that the data hold; None where that is not known.

    Raises:
        ConfigError: The pilot has fewer than two examples that can be evaluated.
    """
    manifest = folder.manifest()
    config, seconds = manifest.config, 0.0 if manifest.cost is None else manifest.cost.seconds
    spreads, cost = spreads_of(folder, config), cost_of(folder)
    if not spreads:
        raise ConfigError("the pilot has fewer than two examples that can be evaluated; a plan needs more.")
    enough = sets_for(spreads, cost, m=m)

    def choice(name: str, n: int, m: int) -> Choice:
        return _choice(name, n, m, spreads, cost)

    fewer = _with_pilot(choice("--adaptive dataset", n, enough.m), cost)
    choices = [replace(fewer, name="as asked") if adaptive == "dataset" else choice("as asked", n, m)]
    if adaptive == "examples":
        choices = [choice("as asked, about", n, _sequential_sets(folder, config, m=m))]
    elif fewer.m < choices[0].m:
        choices.append(fewer)
    for wanted, needed in (("width", width), ("detect", detect)):
        if needed is not None:
            choices.append(choice(_goal(wanted, needed), _examples_for(wanted, needed, spreads, enough.m), enough.m))
    memory = None if manifest.cost is None else manifest.cost.peak_memory
    return Plan(
        model=config.model,
        task=config.task,
        device=manifest.device,
        pilot={"n": manifest.data.examples, "m": config.m, "seconds": seconds},
        cheapest_m=enough.cheapest_m,
        choices=tuple(choices),
        peak_memory_gb=None if memory is None else round(memory / 1e9, 2),
        warnings=tuple(_warnings(choices, width, detect, available, adaptive=adaptive)),
    )


def _goal(wanted: str, needed: float) -> str:
    return f"interval of {100 * needed:g} pp" if wanted == "width" else f"detect {100 * needed:g} %"


def _examples_for(wanted: str, needed: float, spreads: Sequence[stats.Spread], m: int) -> int:
    if wanted == "width":
        return max(stats.n_for_width(spread, m=m, width=needed) for spread in spreads)
    return max(stats.n_for_detectable(spread, m=m, win_rate=needed) for spread in spreads)


def _choice(name: str, n: int, m: int, spreads: Sequence[stats.Spread], cost: Cost) -> Choice:
    rows = n * cost.rows(m)
    tokens = n * (cost.tokens_example - cost.tokens_attribution + cost.sets(m) * cost.tokens_set)
    errors = [stats.standard_error(spread, n=n, m=m) for spread in spreads]
    return Choice(
        name=name,
        n=n,
        m=m,
        rows=round(rows),
        tokens=round(tokens + n * cost.tokens_attribution),
        minutes=round((n * cost.seconds_attribution + tokens * cost.seconds_token) / 60, 2),
        disk_mb=round(rows * cost.bytes_row / 1e6, 1),
        width=2 * 1.96 * max(errors),
        detectable_win_rate=max(stats.detectable(spread, n=n, m=m) for spread in spreads),
    )


def _with_pilot(choice: Choice, cost: Cost) -> Choice:
    """Beside the sets that are enough, those that the run's own pilot scores to find that out."""
    rows = min(choice.n, PILOT_EXAMPLES) * (cost.sets(max(PILOT_SETS, choice.m)) - cost.sets(choice.m)) * cost.rows_set
    share = 1 + rows / max(choice.rows, 1)
    return replace(
        choice,
        rows=round(choice.rows * share),
        tokens=round(choice.tokens * share),
        minutes=round(choice.minutes * share, 2),
        disk_mb=round(choice.disk_mb * share, 1),
    )


def _warnings(
    choices: Sequence[Choice],
    width: float | None,
    detect: float | None,
    available: int | None,
    *,
    adaptive: str | None,
) -> Iterator[str]:
    """What N and M cannot give of what was asked."""
    asked = choices[0]
    if width is not None and asked.width > width:
        yield f"{asked.n} examples give an interval of {100 * asked.width:.1f} pp, wider than {100 * width:g} pp."
    if detect is not None and asked.detectable_win_rate > detect:
        yield (
            f"{asked.n} examples tell a win rate of {100 * asked.detectable_win_rate:.1f} % from chance, not one of "
            f"{100 * detect:g} %."
        )
    if adaptive is None and asked.m + 1 < 1 / ALPHA:
        yield f"with {asked.m} random sets no single example can be significant; {round(1 / ALPHA) - 1} are the least."
    for choice in choices:
        if available is not None and available < choice.n:
            yield f"{choice.name}: {choice.n} examples are needed, and the data hold {available}."


def _sequential_sets(folder: RunFolder, config: RunSettings, *, m: int) -> int:
    """Sets that a sequential test will take per example, about, from what the pilot says of its win rates.

    A tail that random sets reach with probability q stops after h/q of them on average; both tails must stop, of every
    attribution.
    """
    needed: dict[tuple[Configuration, str], float] = {}
    for cell, outcomes in outcomes_by_configuration(folder, config).items():
        if cell.operator == ALL:
            continue
        used = outcomes.select(outcomes.sound)
        n_sets = used.column("m")
        rates = (used.column("win_rate") * n_sets + 0.5) / (n_sets + 1)
        draws = np.where(used.flag("exact"), n_sets, stats.STOP_AFTER / np.minimum(rates, 1 - rates))
        for name, count in zip(used.ids, np.minimum(draws, m), strict=True):
            place = cell._replace(attribution=""), name
            needed[place] = max(needed.get(place, 0.0), float(count))
    return math.ceil(np.mean(list(needed.values())))


def spreads_of(folder: RunFolder, config: RunSettings) -> list[stats.Spread]:
    """The variance of every configuration's win rates, the average over operators left out.

    A configuration with fewer than two examples has none, and an example with a single random set says nothing of it.
    """
    found = []
    for cell, outcomes in outcomes_by_configuration(folder, config).items():
        used = outcomes.select(outcomes.sound & (outcomes.flag("exact") | (outcomes.column("m") > 1)))
        if cell.operator != ALL and len(used) > 1:
            found.append(_spread(used))
    return found


def _spread(used: Outcomes) -> stats.Spread:
    rates, ties, m = (used.column(name) for name in ("win_rate", "tie_rate", "m"))
    return stats.spread_of(rates, m.astype(int), exact=used.flag("exact"), tie_rates=ties, groups=groups_of(used))


def sets_for(spreads: Sequence[stats.Spread], cost: Cost, *, m: int) -> Sets:
    """How many random sets are enough for statements about the data set; never more than `m`.

    The cheapest number, by how win rates spread over all configurations; more where some interval would become too
    wide, as long as the rows stay within a third of those with `m` sets.
    """
    if not spreads:
        return Sets(m, None, 0.0)
    pooled = stats.Spread(
        between=float(np.mean([spread.between for spread in spreads])),
        within=float(np.mean([spread.within for spread in spreads])),
    )
    cheapest = stats.cheapest_m(pooled, cost_example=cost.tokens_example, cost_set=cost.tokens_set)
    for_width = max(stats.m_for_width(spread, m=m, wider=WIDER) for spread in spreads)
    for_a_third = math.floor((cost.rows(m) * ROWS_SHARE - cost.rows_example) / max(cost.rows_set, 1))
    wanted = max(min(for_width, for_a_third), FEWEST_SETS)
    enough = min(max(wanted, round(cheapest)) if math.isfinite(cheapest) else wanted, m)
    errors = [[stats.standard_error(spread, n=1, m=each) for each in (enough, m)] for spread in spreads]
    wider = max((few / many for few, many in errors if many > 0), default=1.0) - 1
    return Sets(enough, cheapest if math.isfinite(cheapest) else None, wider)
