"""Two tokenisations of what should be one text, side by side."""

from collections.abc import Sequence

from ice_eval.interop._tokens import Stream, readings

_BEFORE, _AFTER = 6, 4


def side_by_side(theirs: Sequence[str], ours: Sequence[str]) -> str:
    """Two lines around the first difference, which is marked »so«."""
    our_stream = _solid(_joined(ours))
    reads = [_solid(stream.folded()) for stream in readings(theirs)]
    same, their_stream = max(((_common(each.text, our_stream.text), each) for each in reads), key=lambda pair: pair[0])
    return f"theirs: {_line(theirs, _part(their_stream, same))}\nours:   {_line(ours, _part(our_stream, same))}"


def _joined(texts: Sequence[str]) -> Stream:
    ends = [0]
    for text in texts:
        ends.append(ends[-1] + len(text))
    return Stream("".join(texts), tuple(zip(ends[:-1], ends[1:], strict=True))).folded()


def _solid(stream: Stream) -> Stream:
    """Without spaces."""
    places = [0]
    for c in stream.text:
        places.append(places[-1] + (not c.isspace()))
    return Stream("".join(stream.text.split()), tuple((places[start], places[end]) for start, end in stream.parts))


def _common(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _part(stream: Stream, character: int) -> int:
    """The piece that a character belongs to, or the end."""
    return next(
        (index for index, (start, end) in enumerate(stream.parts) if start <= character < end), len(stream.parts)
    )


def _line(pieces: Sequence[str], marked: int) -> str:
    first, last = max(0, marked - _BEFORE), marked + 1 + _AFTER
    shown = [_shown(piece) for piece in pieces[first:last]]
    if marked < len(pieces):
        shown[marked - first] = f"»{shown[marked - first]}«"
    else:
        shown.append("»end«")
    return ("… | " if first else "") + " | ".join(shown) + (" | …" if last < len(pieces) else "")


def _shown(piece: str) -> str:
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in piece.strip() or piece)
