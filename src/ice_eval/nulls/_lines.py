"""Which units stand side by side."""

from itertools import pairwise

from ice_eval.records import Encoded


def lines(item: Encoded) -> list[range]:
    """The units of an example, cut where a field ends: units of two fields are never adjacent.

    A prompt may show a field twice: then the second showing begins a line of its own.
    """
    starts = [unit for unit in range(item.n_units) if not unit or not _go_on(item, unit)]
    return [range(start, end) for start, end in pairwise([*starts, item.n_units])]


def _go_on(item: Encoded, unit: int) -> bool:
    """Whether a unit stands after the one before it in the same field."""
    before, here = item.spans[unit - 1], item.spans[unit]
    return here.field == before.field and here.start >= before.end
