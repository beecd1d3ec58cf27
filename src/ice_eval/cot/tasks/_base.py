"""The record that every reasoning task is, and the problems that it makes."""

import functools
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ice_eval._registry import Registry
from ice_eval.cot.answers import Answer, Kind
from ice_eval.errors import DataError
from ice_eval.tasks import DataSource, HubData

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Problem:
    """One question with the answer that is held to be right."""

    id: str
    question: str
    options: tuple[str, ...]
    """What to choose from; empty where nothing is."""
    gold: Answer | None
    kind: Kind


@dataclass(frozen=True)
class Worked:
    """A problem with its solution, to show a model how to write one."""

    problem: Problem
    steps: tuple[str, ...]
    answer: str


@dataclass(frozen=True, kw_only=True)
class CotTask:
    """How the records of a data set become problems."""

    read: Callable[[Row, str], Problem]
    """Record and id -> problem; raises `DataError` without saying where, since the caller knows."""
    kind: Kind | None = None
    """What the answers are; None where every problem has options of its own."""
    example: Worked | None = None
    """What may be shown before the first question."""
    hub: HubData | None = None
    """Where the data are if no file is given."""
    name: str = "custom"
    description: str = ""

    def source(self, given: DataSource | None) -> DataSource:
        """Where problems come from: what is given, or the task's own data.

        Raises:
            DataError: There is neither.
        """
        source = given or self.hub
        if source is None:
            raise DataError(f"the task '{self.name}' has no data of its own; give them as a file: --data FILE.jsonl")
        return source

    def problems(self, source: DataSource | None = None, *, limit: int | None = None) -> list[Problem]:
        """The first `limit` problems of a file, or of the hub.

        Raises:
            DataError: There are no data; or a record lacks a field or holds an answer that cannot be read, or two have
                one id.
        """
        source = self.source(source)
        made: dict[str, Problem] = {}
        for index, row in enumerate(itertools.islice(source.rows(), limit)):
            identity = str(index if row.get("id") is None else row["id"])
            if identity in made:
                raise DataError(f"{source.origin}: two records have the id '{identity}'; ids must be unique.")
            try:
                made[identity] = self.read(row, identity)
            except DataError as exc:
                raise DataError(f"{source.origin}, record {index}: {exc}") from exc
        if not made:
            raise DataError(f"{source.origin} holds no records; at least one is needed.")
        return list(made.values())


def text_of(row: Row, name: str) -> str:
    """A field that must hold text."""
    value = row.get(name)
    if not isinstance(value, str) or not value.strip():
        held = "is missing" if value is None else f"holds {value!r}"
        raise DataError(f"the field '{name}' {held}, and text is expected; the record has {', '.join(map(str, row))}.")
    return value


def gold_of(value: object, kind: Kind) -> Answer:
    """The answer that a record holds to be right."""
    gold = kind.gold(str(value))
    if gold is None:
        raise DataError(f"the answer {value!r} cannot be read as {kind.noun}.")
    return gold


CotTaskFactory = Callable[[], CotTask]
cot_tasks: Registry[CotTaskFactory] = Registry("cot_task", "ice_eval.cot.tasks")


def cot_task(name: str) -> Callable[[CotTaskFactory], CotTaskFactory]:
    """Register a function that returns a `CotTask`; it gets its name, and its description from the docstring."""

    def register(factory: CotTaskFactory) -> CotTaskFactory:
        described = (factory.__doc__ or "").strip().partition("\n")[0]

        @functools.wraps(factory)  # so that a message about two of one name can say where they are
        def named() -> CotTask:
            return replace(factory(), name=name, description=described)

        cot_tasks.add(name, named)
        return factory

    return register
