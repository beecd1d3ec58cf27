"""One worker, in this process."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ice_eval.executors._base import Crew, Executor, Finished, Item, Result, Say, Started, W, Work, executor
from ice_eval.scoring import Progress


@executor("local")
@dataclass(frozen=True)
class Local(Executor):
    """One worker, in this process."""

    def crew(self, make: Callable[[], W], *, threads: int | None = None, say: Say | None = None) -> "LocalCrew[W]":
        return LocalCrew(make())


class LocalCrew(Crew[W]):
    """A worker that is already there."""

    def __init__(self, worker: W) -> None:
        self._worker = worker

    def ask(self, question: Callable[[W], Result]) -> Result:
        return question(self._worker)

    def map(
        self, work: Work[W, Item, Result], items: Iterable[Item], progress: Progress
    ) -> Iterator[Finished[Item, Result]]:
        """In order; where work may wait, the next item is started before the last one comes back."""
        last, waiting = time.monotonic(), list[tuple[Item, Started[Result]]]()

        def finished() -> Finished[Item, Result]:
            nonlocal last
            item, started = waiting.pop(0)
            result, before = started.finish(), last
            last = time.monotonic()
            return Finished(item, result, last - before)

        for item in items:
            started = work(self._worker, item, progress)
            waiting.append((item, started))
            while len(waiting) > (1 if started.may_wait else 0):
                yield finished()
        while waiting:
            yield finished()

    def release(self) -> None:
        """Nothing: the worker goes with this process."""
