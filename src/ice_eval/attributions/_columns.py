"""Which column of an explanation of several classes is about a label."""

from collections.abc import Sequence

from ice_eval.errors import DataError
from ice_eval.models import Labels


def column_of(classes: Sequence[str], n_columns: int, labels: Labels, target: int) -> int:
    """The column of a label: by name where the columns have names, else by its place.

    Names are those of the labels, or those that the model has for its classes. A column is never taken by its place
    from among names that say something else.

    Args:
        classes: What the columns are called; empty where they have no names.
        n_columns: How many there are.
        labels: Those of the task.
        target: The label to explain, by its place among them.

    Raises:
        DataError: The columns are not about these labels.
    """
    names, known = _plain(classes), _plain(labels.classes)
    label = _plain(labels.names)[target]
    place = labels.ids[target][0] if labels.are_classes else target
    if names.count(label) == 1:
        return names.index(label)
    if known and sorted(names) == sorted(known) and names.count(known[place]) == 1:
        return names.index(known[place])
    if classes:
        raise DataError(
            f"the explained classes are {', '.join(classes)}, and the labels are {', '.join(labels.names)}"
            f"{_said(labels)}; name the classes as the labels are named."
        )
    if n_columns == len(known):
        return place
    if n_columns == len(labels.names):
        return target
    raise DataError(
        f"scores of {n_columns} classes without names, and the labels are {', '.join(labels.names)}{_said(labels)}; "
        "give a score for each, or the names of the classes."
    )


def _plain(names: Sequence[str]) -> list[str]:
    return [name.strip().casefold() for name in names]


def _said(labels: Labels) -> str:
    return f" (the model's classes: {', '.join(labels.classes)})" if labels.classes else ""
