"""The seam that every executor fills: it makes workers that are all alike, and gives them items to work on."""

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

Say = Callable[[str], None]
"""Takes a line for the user."""


class Started(Protocol[Result_co]):
    """Work that a device may still be busy with."""

    @property
    def may_wait(self) -> bool:
        """Whether the next item may be started before this one is finished."""

    def finish(self) -> Result_co:
        """Wait for the result."""


Work = Callable[[W, Item, Progress], Started[Result]]
"""What a worker does with an item; it tells the rows that it scores."""


class Finished(NamedTuple, Generic[Item, Result]):
    """An item, and what came of it."""

    item: Item
    result: Result
    seconds: float
    """That a worker took for it."""


class Crew(ABC, Generic[W]):
    """One worker or several, made alike: whatever one of them answers, each of them would."""

    @abstractmethod
    def ask(self, question: Callable[[W], Result]) -> Result:
        """What a worker answers."""

    @abstractmethod
    def map(
        self, work: Work[W, Item, Result], items: Iterable[Item], progress: Progress
    ) -> Iterator[Finished[Item, Result]]:
        """Every item through some worker, once; they come back in the order in which they are finished."""

    @abstractmethod
    def release(self) -> None:
        """Let the workers go, busy or not."""


class Executor(ABC):
    """A place where workers can be made. Its fields are options that a user may give."""

    @abstractmethod
    def crew(self, make: Callable[[], W], *, threads: int | None = None, say: Say | None = None) -> Crew[W]:
        """Workers, each made by `make` when it is first needed.

        Args:
            make: Called where the worker is to live.
            threads: That each of them computes with, where that is known.
            say: Gets lines for the user.
        """

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Whatever must be there before a crew is made, and goes when all is done."""
        yield


executors: Registry[type[Executor]] = Registry("executor", "ice_eval.executors")


def executor(name: str) -> Callable[[type[Executor]], type[Executor]]:
    """Register an executor, a frozen dataclass; the first line of its docstring describes it."""
    return lambda cls: executors.add(name, cls)


def executor_named(name: str, **options: Any) -> Executor:
    """The executor of that name; options that are None were not given.

    Raises:
        ConfigError: There is none, or it has no such option.
    """
    chosen = executors.get(name)
    given = {key: value for key, value in options.items() if value is not None}
    for key in [key for key in given if key not in _options(chosen)]:
        owners = [other for other, cls in executors.items() if key in _options(cls)]
        raise ConfigError(
            f"{key} = {given[key]!r} means nothing to the executor '{name}'; leave it out, or use the executor "
            f"'{' or '.join(owners)}'."
        )
    return chosen(**given)


def _options(cls: type[Executor]) -> set[str]:
    return {field.name for field in fields(cls)}  # type: ignore[arg-type]
