"""The interface of attributions."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

from ice_eval._registry import Registry, from_spec
from ice_eval.attributions._lens import Lens
from ice_eval.errors import ConfigError, DataError
from ice_eval.records import Encoded, PerUnit, Unit

_Class = TypeVar("_Class", bound="type[Attribution]")

OF_EVERY_MODEL = frozenset({"citations", "counts", "human", "lexicon", "retrieval", "values"})
"""Needs that the data or the run meet, whatever the model."""
NEEDS = frozenset({"attention_maps", "attentions", "embeddings", "generate", "gradients"}) | OF_EVERY_MODEL
"""Needs that an attribution may declare."""
LOOKS = frozenset({"attentions", "gradients"})
"""Needs that one observation of an example meets, for all attributions together."""
MOST_PROBES = 1_000_000
"""Most probes, samples or words that an option may ask for."""


@dataclass(frozen=True, kw_only=True)
class Attribution(ABC):
    """A method that gives every unit a number. Its fields are its configuration."""

    needs: ClassVar[frozenset[str]] = frozenset()
    units: ClassVar[tuple[Unit, ...]] = ("token", "word", "sentence", "passage")
    """Units that it can give numbers to."""
    signed: ClassVar[bool] = False
    """True if negative numbers count against the explained label, so that support and magnitude rank differently."""
    user_supplied: ClassVar[bool] = False
    """True if the numbers come from the user, so that a run folder must be checked to hold the same."""

    @property
    def has_signs(self) -> bool:
        """True if numbers may be negative against the label: those of signed methods, and of users."""
        return self.signed or self.user_supplied

    @property
    def sized(self) -> bool:
        """True if its rationale has its own size, the units with a positive number, whatever k."""
        return False

    @property
    def operator(self) -> str:
        """Operator on units that `lens.values` does not keep; a field where users choose."""
        return "delete"

    def n_probes(self, n_units: int) -> int:
        """Return the number of rows that the method requests from `lens.values`, for the progress of a run."""
        return 0

    def remark(self, n_units: Sequence[int]) -> str | None:
        """Return a note for the user before it explains texts of so many units."""
        return None

    @property
    def passes(self) -> int:
        """Return forward passes per example beside the shared observation; a backward pass counts as two."""
        return 0

    def check(self, lens: Lens, item: Encoded) -> None:
        """Try the method on one example before anything is written; methods that use no model need no trial.

        Any exception stops the run, such as `ConfigError` for a layer beyond the last. Methods with many passes
        override this with a shorter trial.
        """
        if self.needs - OF_EVERY_MODEL and "values" not in self.needs:
            self.attribute(lens, [item])

    @abstractmethod
    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        """Return one array per example: the importance of each unit."""


def one_per_unit(name: str, item: Encoded, values: PerUnit, *, advice: str = "") -> PerUnit:
    """Return the values if there is one for every unit; else raise an error with the units and the advice."""
    if values.shape != (item.n_units,):
        raise DataError(
            f"the attribution '{name}' gave {values.size} numbers for example '{item.example_id}', which has "
            f"{item.n_units} units: {' | '.join(item.texts[:20])}{' …' if item.n_units > 20 else ''}{advice}"
        )
    return values


attributions: Registry[type[Attribution]] = Registry("attribution", "ice_eval.attributions")


def attribution(name: str, *, needs: set[str] | None = None) -> Callable[[_Class], _Class]:
    """Register an attribution class with its `NEEDS`."""
    unknown = (needs or set()) - NEEDS
    if unknown:
        raise TypeError(
            f"the attribution '{name}' needs {sorted(unknown)}, which no lens offers; known: {sorted(NEEDS)}"
        )

    def register(cls: _Class) -> _Class:
        cls.needs = frozenset(needs or ())
        attributions.add(name, cls)
        return cls

    return register


def fields_of(method: Attribution) -> dict[str, Any]:
    """Return the name and the settings of a method as JSON can hold them; other values by their type."""
    # A user-supplied method is just its class: its numbers are in the folder themselves.
    name = next((name for name, known in attributions.items() if known is type(method)), type(method).__name__)
    chosen = {} if method.user_supplied else {each.name: getattr(method, each.name) for each in fields(method)}
    plain: dict[str, Any] = json.loads(json.dumps(chosen, default=lambda value: type(value).__name__))
    return {"method": name, **plain}


def check_most(option: str, value: int, *, most: int = MOST_PROBES) -> None:
    """Raise ConfigError for a number of probes, points or words that no array holds."""
    if value > most:
        raise ConfigError(f"{option} = {value}: at most {most:,} is possible.")


def method_of(spec: str) -> Attribution:
    """Return the attribution that `NAME` or `NAME:option=value:option=value` names; options are its fields."""
    return from_spec(spec, attributions)
