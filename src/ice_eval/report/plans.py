"""A plan as a table and a few lines."""

from collections.abc import Callable

from ice_eval.report.tables import Table, percent
from ice_eval.results import Choice, Plan


def plan_table(plan: Plan, *, hourly_price: float | None = None) -> Table:
    """What each choice of examples and random sets comes to."""
    columns: list[tuple[str, Callable[[Choice], str]]] = [
        ("", lambda choice: choice.name),
        ("n", lambda choice: f"{choice.n:,}"),
        ("m", lambda choice: f"{choice.m:,}"),
        ("rows", lambda choice: f"{choice.rows:,}"),
        ("tokens", lambda choice: f"{choice.tokens:,}"),
        ("minutes", lambda choice: f"{choice.minutes:.1f}"),
        ("disk", lambda choice: f"{choice.disk_mb:.1f} MB"),
        ("95 % interval", lambda choice: f"± {50 * choice.width:.1f} pp"),
        ("detectable", lambda choice: percent(choice.detectable_win_rate)),
    ]
    if hourly_price is not None:
        columns.append(("dollars", lambda choice: f"{choice.minutes / 60 * hourly_price:.2f}"))
    rows = tuple(tuple(cell(choice) for _, cell in columns) for choice in plan.choices)
    return Table(f"{plan.model} on {plan.task}, {plan.device}", tuple(name for name, _ in columns), rows)


def plan_notes(plan: Plan) -> list[str]:
    """What the numbers rest on."""
    found = [
        f"From a pilot of {plan.pilot['n']:.0f} examples with {plan.pilot['m']:.0f} random sets each, in "
        f"{plan.pilot['seconds']:.0f} s; loading the model is not counted.",
    ]
    if plan.peak_memory_gb is not None:
        found.append(f"Peak memory of the pilot: {plan.peak_memory_gb:.2f} GB; batches of the run are no larger.")
    if plan.cheapest_m is not None and plan.cheapest_m >= 1:  # less: the sets of the pilot add no noise to speak of
        found.append(f"The fewest tokens for a given interval: about {plan.cheapest_m:.0f} random sets per example.")
    found.append("The widest interval and the largest detectable win rate of all configurations are shown.")
    return [*found, *plan.warnings]
