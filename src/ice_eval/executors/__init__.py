"""Where the work of a run is done."""

from ice_eval.executors._base import (
    Crew,
    Executor,
    Finished,
    Started,
    Work,
    executor,
    executor_named,
    executors,
)
from ice_eval.executors.local import Local, LocalCrew

__all__ = [
    "Crew",
    "Executor",
    "Finished",
    "Local",
    "LocalCrew",
    "Started",
    "Work",
    "executor",
    "executor_named",
    "executors",
]
