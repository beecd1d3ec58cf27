"""What a run of the pipeline found, as arrays that checks read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ice_eval import pipeline
from ice_eval.attributions import Attribution
from ice_eval.nulls import SIZE
from ice_eval.results import summary
from ice_eval.results.columns import Outcomes
from ice_eval.results.records import Configuration
from ice_eval.selftest._known import KnownModel
from ice_eval.selftest._texts import SHARE
from ice_eval.settings import RunConfig, run_config

DIRECTIONS = ("sufficiency", "necessity")

Column = NDArray[np.float64]  # (examples,)


@dataclass(frozen=True)
class About:
    """What some trials are trials of."""

    model: str
    operator: str
    direction: str
    attribution: str

    def __str__(self) -> str:
        return f"{self.attribution} on {self.model}, {self.operator}, {self.direction}"


@dataclass(frozen=True)
class Trials:
    """One explanation under one configuration, on many examples: all that a check of calibration needs.

    Whatever gives p-values and win rates can be checked: another null, another test, another model.
    """

    about: About
    p_value: Column
    p_lower: Column
    win_rate: Column
    tie_rate: Column
    m: NDArray[np.int64]
    """Size of each example's null."""
    families: Sequence[Column] = field(default=(), repr=False)
    """Win rates of all scored sets of each example, the rationale's first; empty where a test has none."""
    sequential: bool = False
    """Whether each example took as many sets as its test needed: then it has no rank among a fixed number of them."""

    def __len__(self) -> int:
        return self.win_rate.size


def trials(
    known: KnownModel,
    methods: Mapping[str, Attribution],
    *,
    n: int,
    m: int,
    seed: int,
    purpose: str,
    operators: Sequence[str],
    directions: Sequence[str] = DIRECTIONS,
    folder: Path,
    **settings: Any,
) -> dict[About, Trials]:
    """Run the whole pipeline on `n` fresh texts and read its outcomes; `settings` are further ones of a run."""
    task = known.task(n, seed=seed, purpose=purpose)
    asked = {"attributions": methods, "operators": operators, "directions": directions}
    config = run_config({**asked, "k": SHARE, "n": n, "m": m, "seed": seed, **settings})
    scored = pipeline.score(
        config, model=known.model, task=task, examples=task.examples(), attributions=methods, out=folder
    )
    run = pipeline.finish(scored)
    found, sequential = {}, config.adaptive == "examples"
    for cell, outcomes in summary.outcomes_by_configuration(run, run.manifest().config).items():
        # A rationale may be alone in its class; nothing else may go wrong with these texts.
        assert cell.null != SIZE or not outcomes.errors, outcomes.errors
        about = About(known.name, cell.operator, cell.direction, _label(cell, config))
        found[about] = _trials_of(about, outcomes.select(outcomes.sound), sequential=sequential)
    return found


def _label(cell: Configuration, config: RunConfig) -> str:
    """The attribution, and how it was tested if in another way than by default."""
    null = "" if cell.null == SIZE else f", null of {cell.null}"
    return f"{cell.attribution}{null}{', sequential' if config.adaptive == 'examples' else ''}"


def _trials_of(about: About, used: Outcomes, *, sequential: bool) -> Trials:
    columns = {name: used.column(name) for name in ("p_value", "p_lower", "win_rate", "tie_rate")}
    n_sets = used.column("m").astype(np.int64)
    return Trials(about, **columns, m=n_sets, families=used.families.rates(), sequential=sequential)
