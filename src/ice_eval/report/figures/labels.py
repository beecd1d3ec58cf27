"""Where the names of dots go, so that none covers another or a dot."""

from collections.abc import Iterator, Sequence

LABEL_SIZE = 10
"""Of the letters, in pixels."""
_WIDE, _HIGH, _AWAY = 0.55 * LABEL_SIZE, 1.25 * LABEL_SIZE, 8
"""Width of a letter on average, height of a line, and distance from the dot."""

Point = tuple[float, float]
Box = tuple[float, float, float, float]  # left, top, right, bottom


def label_places(dots: Sequence[Point], names: Sequence[str], *, width: float, height: float) -> list[Point]:
    """The left end of every name, at half its height; in pixels from the top left corner.

    Names are placed one after another: right of the dot, left, above, below, then further up and down; the first place
    that is free and inside the plot. Where none is, the name stands on the right.
    """
    taken: list[Box] = [(x - 5, y - 5, x + 5, y + 5) for x, y in dots]
    found = []
    for (x, y), name in zip(dots, names, strict=True):
        long = _WIDE * len(name)
        places = list(_around(x, y, long))
        chosen = next((place for place in places if _is_free(_box(place, long), taken, width, height)), places[0])
        taken.append(_box(chosen, long))
        found.append(chosen)
    return found


def _around(x: float, y: float, long: float) -> Iterator[Point]:
    right, left, middle = x + _AWAY, x - _AWAY - long, x - long / 2
    yield from ((right, y), (left, y))
    for row in range(1, 5):
        off = row * _HIGH
        yield from ((middle, y - off), (middle, y + off), (right, y - off), (right, y + off))
        yield from ((left, y - off), (left, y + off))


def _box(place: Point, long: float) -> Box:
    x, y = place
    return x, y - _HIGH / 2, x + long, y + _HIGH / 2


def _is_free(box: Box, taken: Sequence[Box], width: float, height: float) -> bool:
    left, top, right, bottom = box
    if left < 0 or right > width + 40 or top < -_HIGH or bottom > height + 2:
        return False
    return not any(left < b[2] and b[0] < right and top < b[3] and b[1] < bottom for b in taken)
