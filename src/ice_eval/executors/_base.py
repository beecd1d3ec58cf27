"""The seam that every executor fills: it makes workers that are all alike, and gives them items to work on."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, Protocol, TypeVar

from ice_eval.scoring import Progress

W = TypeVar("W")
Item = TypeVar("Item")
Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)


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
    """A place where workers can be made."""

    @abstractmethod
    def crew(self, make: Callable[[], W]) -> Crew[W]:
        """Workers, each made by `make` when it is first needed."""
