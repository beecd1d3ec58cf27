"""Attributions that a user brings along: as numbers, as a function, or as another tool wrote them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ice_eval.attributions._base import Attribution, one_per_unit
from ice_eval.attributions._columns import column_of
from ice_eval.attributions._lens import Lens
from ice_eval.errors import DataError
from ice_eval.interop import Aligned, Explanation, align, numbers, of_examples, placed
from ice_eval.models import Labels
from ice_eval.records import Answer, Encoded, Example, PerUnit

_ADVICE = """ (Words of your own are matched with these if you give {"words": […], "scores": […]} per example.)"""


@dataclass(frozen=True, kw_only=True)
class Computed(Attribution):
    """A function from an encoded example (its `texts` are the units) to a number per unit."""

    brought: ClassVar[bool] = True
    function: Callable[[Encoded], ArrayLike]

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        return [_numbers(lens.name, item, self.function(item)) for item in batch]


@dataclass(frozen=True, kw_only=True)
class Given(Attribution):
    """Numbers per unit for every example, by example id."""

    brought: ClassVar[bool] = True
    values: Mapping[str, ArrayLike]
    has_signs: bool = True
    sized: bool = False
    """Whether the units with a positive number are the rationale, whatever k."""

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        return [self.of(lens.name, item).values for item in batch]

    def of(self, name: str, item: Encoded, labels: Labels | None = None) -> Aligned:
        """The numbers of one example, checked.

        Raises:
            DataError: There are none, or not one per unit.
        """
        if item.example_id not in self.values:
            raise DataError(f"the attribution '{name}' has no values for example '{item.example_id}'.")
        return Aligned(_numbers(name, item, self.values[item.example_id]), np.ones(item.n_units, dtype=bool), False)


@dataclass(frozen=True, kw_only=True)
class Explained(Attribution):
    """Explanations of other tools, put into our units by the text they share."""

    brought: ClassVar[bool] = True
    explanations: Mapping[str, Explanation]
    """By example id."""
    fields: Mapping[str, Mapping[str, str]]
    """The texts of the examples, by their id."""
    n_given: int
    """How many there were, those of no known example included."""
    sized: bool = False
    """Whether they are sets of units, not scores."""

    @property
    def n_unused(self) -> int:
        """Explanations that belong to no example."""
        return self.n_given - len(self.explanations.keys() & self.fields.keys())

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        return [self._about(lens, item) for item in batch]

    def of(self, name: str, item: Encoded, labels: Labels) -> Aligned:
        """The explanation of one example in its units.

        Raises:
            DataError: There is none, it is of another text, or of other classes than the labels.
        """
        if item.example_id not in self.explanations:
            raise DataError(
                f"the attribution '{name}' has no explanation of example '{item.example_id}'; it has "
                f"{len(self.explanations)}, of {', '.join(list(self.explanations)[:5])} … Explain every example, or "
                "give a smaller --n."
            )
        explanation = self.explanations[item.example_id]
        found = align(explanation, item, self.fields[item.example_id], name=name)
        if found.values.ndim == 2:
            with placed(f"the attribution '{name}', example '{item.example_id}'"):
                for target in range(len(labels.names)):
                    column_of(explanation.classes, found.values.shape[1], labels, target)
        return found

    def _about(self, lens: Lens, item: Encoded) -> PerUnit:
        """The numbers for the label that the run explains."""
        labels, target = lens.label(item)
        found = self.of(lens.name, item, labels)
        if not found.covered.any():
            lens.note(item, Answer(text=None, tokens=0, problem="its explanation says nothing about the text"))
        values = found.values
        if values.ndim == 1:
            return values
        return values[:, column_of(self.explanations[item.example_id].classes, values.shape[1], labels, target)]


def explained(name: str, source: object, examples: Sequence[Example]) -> Explained:
    """What a file or objects of other tools say about examples.

    Args:
        name: What error messages call the attribution.
        source: As `evaluate` takes it.
        examples: All that the run reads, not only those that it evaluates: explanations of the others belong to them.

    Raises:
        DataError: It cannot be read, it is not clear whose an explanation is, or some are sets and others have scores.
    """
    found, n_given = of_examples(source, examples, name=name)
    texts = {example.id: example.fields for example in examples}
    return Explained(explanations=found, fields=texts, n_given=n_given, sized=_are_sets(found, name))


def _are_sets(found: Mapping[str, Explanation], name: str) -> bool:
    """Whether explanations are sets of units, not scores; an empty one may be either."""
    kinds = {each.is_set for each in found.values() if len(each.scores)}
    if len(kinds) > 1:
        raise DataError(
            f"the attribution '{name}': some explanations have scores and others are spans without; all or none of "
            "them should have scores."
        )
    return kinds == {True}


def _numbers(name: str, item: Encoded, given: ArrayLike) -> PerUnit:
    try:
        values = numbers(given)
    except DataError as exc:
        raise DataError(f"the attribution '{name}' gave no numbers for example '{item.example_id}': {exc}") from exc
    return one_per_unit(name, item, values, advice=_ADVICE)
