"""User-supplied attributions, as numbers, a function, or the output of another tool, and their fit to a run."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ice_eval.attributions._base import Attribution, Lens, one_per_unit
from ice_eval.errors import DataError
from ice_eval.interop import Aligned, Explanation, align, numbers, of_examples, one_text, per_unit, placed
from ice_eval.models import Labels
from ice_eval.rationales import Share, set_size
from ice_eval.records import Answer, Encoded, Example, PerUnit, Unit

_ADVICE = """ (Words of your own are matched with these if you give {"words": […], "scores": […]} per example.)"""


@dataclass(frozen=True, kw_only=True)
class Computed(Attribution):
    """A function from an encoded example (its `texts` are the units) to a number per unit."""

    units: ClassVar[tuple[Unit, ...]] = get_args(Unit)
    user_supplied: ClassVar[bool] = True
    function: Callable[[Encoded], ArrayLike]

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        return [_checked(lens.name, item, self.function(item)) for item in batch]


@dataclass(frozen=True, kw_only=True)
class Given(Attribution):
    """Numbers per unit for every example, by example id."""

    units: ClassVar[tuple[Unit, ...]] = get_args(Unit)
    user_supplied: ClassVar[bool] = True
    values: Mapping[str, ArrayLike]
    has_signs: bool = True
    sized: bool = False
    """True if the units with a positive number are the rationale, whatever k."""

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        return [self.of(lens.name, item).values for item in batch]

    def of(self, name: str, item: Encoded, labels: Labels | None = None) -> Aligned:
        """Return the numbers of one example; raise `DataError` if there are none, or not one per unit."""
        if item.example_id not in self.values:
            raise DataError(f"the attribution '{name}' has no values for example '{item.example_id}'.")
        values = _checked(name, item, self.values[item.example_id])
        return Aligned(values, np.ones(item.n_units, dtype=bool), False, np.arange(item.n_units))


@dataclass(frozen=True, kw_only=True)
class Explained(Attribution):
    """Explanations of other tools, aligned with our units by the text they share."""

    user_supplied: ClassVar[bool] = True
    explanations: Mapping[str, Explanation]
    fields: Mapping[str, Mapping[str, str]]
    n_given: int
    """Number of explanations, those of no known example included."""
    sized: bool = False
    """True if they are sets of units, not scores."""

    @property
    def n_unused(self) -> int:
        """Number of explanations that belong to no example."""
        return self.n_given - len(self.explanations.keys() & self.fields.keys())

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        return [self._about_target(lens, item) for item in batch]

    def of(self, name: str, item: Encoded, labels: Labels) -> Aligned:
        """Return the explanation of one example in its units; raise `DataError` if text or labels do not match."""
        if item.example_id not in self.explanations:
            raise DataError(
                f"the attribution '{name}' has no explanation of example '{item.example_id}'; it has "
                f"{len(self.explanations)}, of {', '.join(list(self.explanations)[:5])} … Explain every example, or "
                "give a smaller --n."
            )
        explanation = self.explanations[item.example_id]
        found = align(explanation, item, self.fields[item.example_id], name=name)
        with placed(f"the attribution '{name}', example '{item.example_id}'"):
            if not any(self._explains(item, labels)):
                raise DataError(
                    f"its explanation is for the class {', '.join(map(str, explanation.classes))}, which is not one of "
                    f"the labels ({', '.join(labels.names)})."
                )
        return found

    def parts(self, item: Encoded) -> NDArray[np.int64]:
        """Return the first unit inside the same piece of the explanation, for each unit."""
        return align(self.explanations[item.example_id], item, self.fields[item.example_id]).parts

    def explains_all(self, item: Encoded, labels: Labels) -> bool:
        """Return True if every label is explained, whichever the model predicts."""
        return all(self._explains(item, labels))

    def _explains(self, item: Encoded, labels: Labels) -> list[bool]:
        explanation = self.explanations[item.example_id]
        return [_column(explanation, labels, target) is not None for target in range(len(labels.names))]

    def _about_target(self, lens: Lens, item: Encoded) -> PerUnit:
        labels, target = lens.label(item)
        found = self.of(lens.name, item, labels)
        column = _column(self.explanations[item.example_id], labels, target)
        if column is None:
            problem = "its explanation is for another class than the explained label"
            lens.note(item, Answer(text=None, tokens=0, problem=problem))
            return np.full(item.n_units, np.nan)
        if not found.covered.any():
            lens.note(item, Answer(text=None, tokens=0, problem="its explanation covers no part of the text"))
        return found.values if found.values.ndim == 1 else found.values[:, column]


def explained(name: str, source: object, examples: Sequence[Example]) -> Explained:
    """Read explanations from a file or objects of other tools; `examples` include those that are not evaluated."""
    found, n_given = of_examples(source, examples, name=name)
    texts = {example.id: example.fields for example in examples}
    kinds = {each.is_set for each in found.values() if len(each.scores)}  # an empty one may be either
    if len(kinds) > 1:
        raise DataError(
            f"the attribution '{name}': some explanations have scores and others are spans without; all or none of "
            "them should have scores."
        )
    return Explained(explanations=found, fields=texts, n_given=n_given, sized=kinds == {True})


def _checked(name: str, item: Encoded, given: ArrayLike) -> PerUnit:
    try:
        values = numbers(given)
    except DataError as exc:
        raise DataError(f"the attribution '{name}' gave no numbers for example '{item.example_id}': {exc}") from exc
    values = one_text(values)
    found = per_unit(values, item) if values.ndim == 1 else None
    return one_per_unit(name, item, values if found is None else found, advice=_ADVICE)


def _column(explanation: Explanation, labels: Labels, target: int) -> int | None:
    """Return the column that explains a label, 0 where there is just one; None if others are explained."""
    classes, scores = explanation.classes, explanation.scores
    if scores.ndim == 1 and len(classes) != 1:
        return 0
    return column_of(classes, 1 if scores.ndim == 1 else scores.shape[1], labels, target)


def column_of(classes: Sequence[str | int], n_columns: int, labels: Labels, target: int) -> int | None:
    """Return the column of a label: by name where the columns have names, else by its index.

    None if all columns are of other labels or classes of the model.
    """
    # Names (`classes`, perhaps none) are those of the labels, or the model's names of its classes. The index of a
    # column is never used where the columns have other names.
    place = labels.ids[target][0] if labels.are_classes else target
    if classes and all(isinstance(each, int) for each in classes):
        return classes.index(place) if place in classes else None
    names, known, ours = (
        [str(name).strip().casefold() for name in each] for each in (classes, labels.classes, labels.names)
    )
    if names.count(ours[target]) == 1:
        return names.index(ours[target])
    if known and set(names) <= set(known) and names.count(known[place]) == 1:
        return names.index(known[place])
    if names and len(set(names)) == len(names) and (set(names) <= set(ours) or set(names) <= set(known)):
        return None
    shown = ", ".join(labels.names) + (f" (the model's classes: {', '.join(labels.classes)})" if labels.classes else "")
    if classes:
        raise DataError(
            f"the explained classes are {', '.join(map(str, classes))}, and the labels are {shown}; name the classes "
            "as the labels are named."
        )
    if n_columns == len(known):
        return place
    if n_columns == len(labels.names):
        return target
    raise DataError(
        f"scores of {n_columns} classes without names, and the labels are {shown}; give a score for each, or the names "
        "of the classes."
    )


@dataclass(frozen=True)
class Fit:
    """Fit of user-supplied numbers to the examples of a run."""

    examples: int
    too_short: int
    """Examples with one unit or none, which a run skips, so that they need no explanation."""
    covered: int
    units: int
    """Units of the examples that are covered."""
    units_covered: int
    """Units of those examples that the explanation covers."""
    cut: int
    """Examples whose explanation ends before the text does."""
    silent: int
    """Examples whose explanation covers no unit; a run skips them."""
    constant: int
    """Examples with the same number for every unit, where a rationale is a random draw."""
    drawn: int
    """Others with a score for fewer units than a rationale holds: it is filled by a draw among those with 0."""
    not_finite: int
    """Examples with a number that is not finite; a run skips them."""
    coarse: int
    """Examples with scores that cover several units, which share them."""
    some_labels: int
    """Examples with an explanation of some labels; a run skips those where it explains another."""
    missing: tuple[str, ...]
    mismatches: tuple[str, ...]
    """Error of each example whose explanation does not fit, beginning with its id."""

    @property
    def fits(self) -> bool:
        """True if everything fits, and at least one example can be evaluated."""
        return not self.missing and not self.mismatches and self.covered > self.silent + self.not_finite

    def remarks(self, name: str) -> Iterator[str]:
        """Yield notes for the user of an attribution that fits."""
        remarks = {
            "ends before the text in {}: the rest counts as 0.": self.cut,
            "covers no unit of {}, which are skipped.": self.silent,
            "has the same number for all units in {}: their rationale is a random draw.": self.constant,
            "has scores for fewer units than a rationale holds in {}: the rest of these rationales is drawn at random "
            "among the units with 0. Spans without scores are taken as they are, whatever k.": self.drawn,
            "is not finite in {}, which are skipped.": self.not_finite,
            "has scores that cover several units in {}: these units share the score, and where k divides them, "
            "some are drawn at random. A larger --unit avoids this.": self.coarse,
            "explains some labels only in {}: where the run explains another label, the example is skipped and "
            "counted.": self.some_labels,
        }
        for remark, count in remarks.items():
            if count:
                yield f"the attribution '{name}' {remark.format(f'{count} of {self.examples} examples')}"


def fit_of(
    method: Given | Explained,
    name: str,
    items: Iterable[Encoded],
    labels: Labels,
    *,
    shares: Sequence[Share] = (),
    all_of_them: bool = False,
) -> Fit:
    """Check user-supplied numbers against the examples of a run, whose k are `shares`.

    Raises `DataError` for the first example without an explanation, or with one that does not fit; with `all_of_them`
    these are collected.
    """
    known = method.values if isinstance(method, Given) else method.explanations
    missing: list[str] = []
    mismatches: list[str] = []
    fitting: list[Aligned] = []
    too_short = some_labels = 0
    for item in items:
        if item.n_units < 2:
            too_short += 1
            continue
        try:
            fitting.append(method.of(name, item, labels))
            some_labels += isinstance(method, Explained) and not method.explains_all(item, labels)
        except DataError as exc:
            if not all_of_them:
                raise
            if item.example_id in known:
                mismatches.append(str(exc).removeprefix(f"the attribution '{name}', "))
            else:
                missing.append(item.example_id)
    constant = [bool((found.values == found.values[0]).all()) for found in fitting]
    drawn = [_is_drawn(found, shares) for found in fitting]
    return Fit(
        examples=len(fitting) + len(missing) + len(mismatches),
        too_short=too_short,
        covered=len(fitting),
        units=sum(len(found.covered) for found in fitting),
        units_covered=sum(int(found.covered.sum()) for found in fitting),
        cut=sum(found.cut for found in fitting),
        silent=sum(not found.covered.any() for found in fitting),
        constant=0 if method.sized else sum(constant),
        drawn=0 if method.sized else sum(d and not c for d, c in zip(drawn, constant, strict=True)),
        not_finite=sum(bool(found.covered.any() and not np.isfinite(found.values).all()) for found in fitting),
        coarse=0 if method.sized else sum(found.is_coarse for found in fitting),
        some_labels=some_labels,
        missing=tuple(missing),
        mismatches=tuple(mismatches),
    )


def _is_drawn(found: Aligned, shares: Sequence[Share]) -> bool:
    """Return True if fewer units have a number other than 0 than a rationale holds, for some k."""
    if found.values.ndim > 1 or not np.isfinite(found.values).all():
        return False
    sizes = [set_size(len(found.values), share) for share in shares if isinstance(share, float)]
    return bool(np.count_nonzero(found.values) < max(sizes, default=0))
