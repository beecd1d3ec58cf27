"""Executors create identical workers and distribute the items of a run among them."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ice_eval._registry import Registry
from ice_eval.errors import ConfigError
from ice_eval.scoring import Progress

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
        """Return workers, each created by `make` when it is first needed.

        Args:
            make: Called in the process of the worker.
            threads: Threads of each worker, if known.
            say: Called with messages for the user.
        """

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Set up what workers need, and shut it down on exit."""
        yield


executors: Registry[type[Executor]] = Registry("executor", "ice_eval.executors")


def executor(name: str) -> Callable[[type[Executor]], type[Executor]]:
    """Register an executor, a frozen dataclass; the first line of its docstring describes it."""
    return lambda cls: executors.add(name, cls)


def executor_named(name: str, **options: Any) -> Executor:
    """Return the executor of that name, or raise ConfigError; options that are None keep their defaults."""
    chosen = executors.get(name)
    given = {key: value for key, value in options.items() if value is not None}
    for key in given:
        if key not in _options(chosen):
            owners = " or ".join(other for other, cls in executors.items() if key in _options(cls))
            raise ConfigError(
                f"{key} = {given[key]!r} means nothing to the executor '{name}'; leave it out, or use the executor "
                f"'{owners}'."
            )
    return chosen(**given)


def _options(cls: type[Executor]) -> set[str]:
    return {field.name for field in fields(cls)}  # type: ignore[arg-type]


from ice_eval.executors.local import Local, LocalWorkers  # noqa: E402 (it extends what is defined above)

__all__ = [
    "Executor",
    "FinishedItem",
    "Local",
    "LocalWorkers",
    "PendingResult",
    "Work",
    "Workers",
    "executor",
    "executor_named",
    "executors",
]
