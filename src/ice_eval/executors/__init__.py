"""Executors create identical workers and distribute the items of a run among them."""

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ice_eval._registry import Registry
from ice_eval.errors import ConfigError
from ice_eval.scoring import Progress

__all__ = [
    "Executor", "FinishedItem", "Local", "LocalWorkers", "PendingResult", "Work", "Workers", "executor",
    "executor_named", "executors",
]  # fmt: skip

W = TypeVar("W")
Item = TypeVar("Item")
Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)


class PendingResult(Protocol[Result_co]):
    """A result that a device may still be computing."""

    @property
    def may_wait(self) -> bool:
        """True if the next item may be started before this one is finished."""

    def finish(self) -> Result_co:
        """Wait for the result and return it."""


Work = Callable[[W, Item, Progress], PendingResult[Result]]
"""Starts the work of a worker on an item; reports the rows that it scores."""


class FinishedItem(NamedTuple, Generic[Item, Result]):
    """An item, its result, and the worker's time."""

    item: Item
    result: Result
    seconds: float


class Workers(ABC, Generic[W]):
    """One or several identical workers."""

    @abstractmethod
    def ask(self, question: Callable[[W], Result]) -> Result:
        """Call a function with one of the workers and return its result."""

    @abstractmethod
    def map(
        self, work: Work[W, Item, Result], items: Iterable[Item], progress: Progress
    ) -> Iterator[FinishedItem[Item, Result]]:
        """Process every item once with some worker; yield results in order of completion."""

    @abstractmethod
    def release(self) -> None:
        """Stop the workers, even busy ones."""


class Executor(ABC):
    """Factory of workers. Its fields are options that users may set."""

    @abstractmethod
    def workers(
        self, make: Callable[[], W], *, threads: int | None = None, say: Callable[[str], None] | None = None
    ) -> Workers[W]:
        """Return workers, each created by `make`, in its own process, when it is first needed.

        `threads` is the number of threads of each worker, if known; `say` is called with messages for the user.
        """

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Set up what workers need, and shut it down on exit."""
        yield


executors: Registry[type[Executor]] = Registry("executor", "ice_eval.executors")
executor = executors.register
"""Register an executor, a frozen dataclass, under a name; the first line of its docstring describes it."""


def executor_named(name: str, **options: Any) -> Executor:
    """Return the executor of that name, or raise ConfigError; options that are None keep their defaults."""
    chosen = executors.get(name)
    known = {other: {field.name for field in fields(cls)} for other, cls in executors.items()}  # type: ignore[arg-type]
    given = {key: value for key, value in options.items() if value is not None}
    for key, value in given.items():
        if key not in known[name]:
            owners = " or ".join(other for other in known if key in known[other])
            advice = f"leave it out, or use the executor '{owners}'."
            raise ConfigError(f"{key} = {value!r} means nothing to the executor '{name}'; {advice}")
    return chosen(**given)


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
