"""What a user writes for a run, as the pipeline takes it: one name or several, a share or several, a task by name."""

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from ice_eval.errors import ConfigError
from ice_eval.pipeline import RunConfig
from ice_eval.rationales import DYNAMIC, Share
from ice_eval.tasks import DataSource, Task, load_task, with_file


def _several(names: str | Iterable[str]) -> tuple[str, ...]:
    """One name or several."""
    return (names,) if isinstance(names, str) else tuple(names)


def _shares(k: Share | Sequence[Share]) -> tuple[Share, ...]:
    several: Any = (k,) if isinstance(k, str) or np.ndim(k) == 0 else k
    try:
        return tuple(DYNAMIC if value == DYNAMIC else float(value) for value in several)
    except (TypeError, ValueError) as exc:
        raise ConfigError(f"k = {k!r}: a share between 0 and 1 or '{DYNAMIC}' is expected, or several.") from exc


def config_of(*, m: int | None, **values: Any) -> RunConfig:
    """The configuration of what a user gave: one name or several, a share or several, `m` or its default."""
    several = ("attributions", "operators", "directions", "nulls")
    values |= {name: _several(values[name]) for name in several if name in values}
    values |= {"k": _shares(values["k"])} if "k" in values else {}
    values |= {} if m is None else {"m": m}
    try:
        return RunConfig(**values)
    except TypeError as exc:
        known = ", ".join(field.name for field in fields(RunConfig))
        raise ConfigError(f"{exc}".replace("RunConfig.__init__()", "evaluate()") + f"; settings are {known}.") from exc


def task_of(task: str | Task, data: str | Path | DataSource | None) -> Task:
    """A known task or a user's, with other data in place of its own if some are given."""
    chosen = load_task(task) if isinstance(task, str) else task
    if data is None:
        return chosen
    return replace(chosen, data=data) if isinstance(data, DataSource) else with_file(chosen, Path(data))
