"""What an evaluation would take, from a small pilot that is not kept."""

from dataclasses import fields
from typing import Any

from ice_eval.api.evaluation import evaluate
from ice_eval.api.progress import watched
from ice_eval.api.settings import config_of, task_of
from ice_eval.errors import ConfigError
from ice_eval.models import ModelRef, Served
from ice_eval.pipeline import Reporter, RunConfig, examples_read
from ice_eval.results import Plan
from ice_eval.results import plan as plan_from
from ice_eval.results.planning import PILOT_SETS
from ice_eval.tasks import Task


def plan(
    model: ModelRef,
    task: str | Task,
    *,
    n: int = 500,
    m: int | None = None,
    adaptive: str | None = None,
    width: float | None = None,
    detect: float | None = None,
    pilot: int = 32,
    **settings: Any,
) -> Plan:
    """Say what an evaluation would take, and how sure its answer would be, from a small pilot that is not kept.

    Args:
        model: As `evaluate` takes it.
        task: As `evaluate` takes it.
        n: Examples that are asked for.
        m: Random sets that are asked for.
        adaptive: As asked for; the pilot itself is not.
        width: Wanted width of the 95 % intervals, as 0.05: how many examples and sets it takes at the least cost.
        detect: Wanted smallest detectable win rate, as 0.55: the same.
        pilot: Examples of the pilot.
        **settings: Further arguments of `evaluate`.

    Raises:
        ConfigError: What was asked cannot be done.
    """
    known = {field.name for field in fields(RunConfig)}
    asked = config_of(n=n, m=m, adaptive=adaptive, **{name: settings[name] for name in settings if name in known})
    _check_goals(pilot, width, detect)
    chosen = task_of(task, settings.pop("data", None))
    limit = examples_read(n)
    n_examples = len(chosen.examples(limit=limit))
    shown = settings.get("reporter") or watched(continues=False)
    settings["reporter"] = _OfPilot(shown)
    if isinstance(model, Served):
        shown.say(f"the pilot asks {model.base_url}: its answers are charged for, and are not kept.")
    # One random set shows no spread.
    found = evaluate(model, chosen, n=min(n, pilot), m=min(max(asked.m, 2), PILOT_SETS), **settings)
    for message in found.folder.manifest().messages:
        shown.say(message)
    return plan_from(
        found.folder,
        n=min(n, n_examples),
        m=asked.m,
        adaptive=asked.adaptive,
        width=width,
        detect=detect,
        available=n_examples if n_examples < limit else None,
    )


def _check_goals(pilot: int, width: float | None, detect: float | None) -> None:
    if pilot < 2:
        raise ConfigError(f"pilot = {pilot}: at least 2 examples are needed.")
    for name, goal, low, usual in (("width", width, 0.0, 0.05), ("detect", detect, 0.5, 0.55)):
        if goal is not None and not low < goal < 1:
            raise ConfigError(
                f"{name} = {goal}: a number between {low:g} and 1 is expected, as {usual} for {100 * usual:.0f} %."
            )


class _OfPilot:
    """Shows the progress of a pilot; what is said of its few examples and sets is not about the run that is planned."""

    def __init__(self, shown: Reporter) -> None:
        self._shown = shown

    def say(self, message: str) -> None: ...

    def start(self, total: int) -> None:
        self._shown.start(total)

    def advance(self, rows: int, *, scored: bool = True) -> None:
        self._shown.advance(rows, scored=scored)

    def correct(self, total: int) -> None:
        self._shown.correct(total)

    def stop(self) -> None:
        self._shown.stop()

    def asked_to_stop(self) -> bool:
        return self._shown.asked_to_stop()
