"""A run that is under way."""

from collections.abc import Sequence
from dataclasses import dataclass

from ice_eval.executors import Workers
from ice_eval.pipeline.engine import Engine
from ice_eval.pipeline.progress import Reporter
from ice_eval.pipeline.replica import Order, Replica
from ice_eval.records import Example
from ice_eval.results import Manifest, RunFolder


@dataclass(frozen=True, kw_only=True)
class Job:
    """What all stages of a run share."""

    folder: RunFolder
    crew: Workers[Replica]
    """Computes the scores."""
    order: Order
    """The run as the crew knows it."""
    engine: Engine
    """The run as this process knows it."""
    stored: Manifest | None
    """The manifest of the run that is continued; None for a new one."""
    reporter: Reporter

    @property
    def evaluated(self) -> Sequence[Example]:
        """The examples to evaluate, without those that only fill the pool of infill."""
        return self.order.examples[: self.engine.config.n]
