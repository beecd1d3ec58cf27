"""One worker, in this process."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ice_eval.executors import Executor, FinishedItem, Item, PendingResult, Result, W, Work, Workers, executor
from ice_eval.scoring import Progress


@executor("local")
@dataclass(frozen=True)
class Local(Executor):
    """One worker, in this process."""

    def workers(
        self, make: Callable[[], W], *, threads: int | None = None, say: Callable[[str], None] | None = None
    ) -> "LocalWorkers[W]":
        return LocalWorkers(make())


class LocalWorkers(Workers[W]):
    """An existing worker."""

    def __init__(self, worker: W) -> None:
        self._worker = worker

    def ask(self, question: Callable[[W], Result]) -> Result:
        return question(self._worker)

    def map(
        self, work: Work[W, Item, Result], items: Iterable[Item], progress: Progress
    ) -> Iterator[FinishedItem[Item, Result]]:
        """Yield results in order; if work may wait, the next item starts before the last one is finished."""
        last, waiting = time.monotonic(), list[tuple[Item, PendingResult[Result]]]()

        def finished() -> FinishedItem[Item, Result]:
            nonlocal last
            item, started = waiting.pop(0)
            result, before = started.finish(), last
            last = time.monotonic()
            return FinishedItem(item, result, last - before)

        for item in items:
            started = work(self._worker, item, progress)
            waiting.append((item, started))
            while len(waiting) > (1 if started.may_wait else 0):
                yield finished()
        while waiting:
            yield finished()

    def release(self) -> None:
        """Do nothing: the worker ends with this process."""
