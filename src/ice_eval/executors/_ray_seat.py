"""What lives in the process of a worker on a Ray cluster, and what it sends back."""

import time
from collections.abc import Callable
from types import ModuleType
from typing import Any, Generic, NamedTuple

from ice_eval import __version__
from ice_eval.errors import IceError, require
from ice_eval.executors._base import W, Work
from ice_eval.scoring import Progress


def ray_package() -> ModuleType:
    """Ray, imported where it is used.

    Raises:
        MissingExtraError: It is not installed.
    """
    return require("ray", install="ice-eval[ray]", purpose="to spread a run over a cluster (--executor ray)")


class Told(NamedTuple):
    """What a worker sends back: an answer, or the error that a user is to see."""

    answer: Any = None
    error: IceError | None = None
    rows: int = 0
    seconds: float = 0.0


class Place(NamedTuple):
    """Where a worker is."""

    node: str
    host: str
    version: str


class Seat(Generic[W]):
    """What lives in the worker's process. Its worker is made with the first thing that it is asked."""

    def __init__(self, make: Callable[[], W]) -> None:
        self._make = make
        self._worker: W | None = None
        self._rows = 0

    def place(self) -> Place:
        ray = ray_package()
        return Place(ray.get_runtime_context().get_node_id(), ray.util.get_node_ip_address(), __version__)

    def scored(self) -> int:
        """Rows of the work at hand so far; answered beside it, in a thread of its own."""
        return self._rows

    def ask(self, question: Callable[[W], Any], item: None) -> Told:
        return self._told(lambda worker, progress: question(worker))

    def work(self, work: Work[W, Any, Any], item: Any) -> Told:
        return self._told(lambda worker, progress: work(worker, item, progress).finish())

    def _told(self, does: Callable[[W, Progress], Any]) -> Told:
        self._rows = 0
        try:
            if self._worker is None:
                self._worker = self._make()
            started = time.monotonic()
            answer = does(self._worker, self._advance)
        except IceError as exc:
            return Told(error=exc)
        return Told(answer, None, self._rows, time.monotonic() - started)

    def _advance(self, rows: int) -> None:
        self._rows += rows
