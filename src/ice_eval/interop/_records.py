"""An explanation as other tools write it: pieces of a text with scores, and whose text it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ice_eval.errors import DataError
from ice_eval.interop._numbers import numbers

PieceScores = NDArray[np.float64]  # (pieces,) or (pieces, classes)


class Piece(NamedTuple):
    """A part of an example's text, by what it spells, by where it stands, or by both."""

    text: str | None = None
    start: int | None = None
    end: int | None = None
    """Exclusive."""
    field: str | None = None
    """None: the only field, or all of them one after another."""
    counted: Literal["characters", "words"] = "characters"
    """What `start` and `end` count; words are what spaces separate."""


@dataclass(frozen=True)
class Explanation:
    """One example's explanation, whoever made it. Every format ends here, so here is checked what it is made of.

    Raises:
        DataError: A part is of the wrong kind, or two do not go together.
    """

    scores: PieceScores
    pieces: tuple[Piece, ...] | None = None
    """None: the scores are one per unit, or one per token of the model's input."""
    id: str | None = None
    """The example's id; without it `text` tells which example is meant, and without both its place does."""
    text: str | Mapping[str, str] | None = None
    """The text that was explained, or the fields by name."""
    classes: tuple[str, ...] = ()
    """What the columns of `scores` explain, where the tool says it."""
    is_set: bool = False
    """Whether the pieces are a rationale as they are, of its own size; their scores are 1 then. It may be empty."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "scores", numbers(self.scores))
        if self.scores.ndim not in {1, 2} or 0 in self.scores.shape[1:]:
            raise DataError(
                f"the scores have the shape {self.scores.shape}; a list with a number for each piece is expected, or "
                "with a list of numbers, one per class."
            )
        if self.pieces is not None:
            if len(self.pieces) != len(self.scores):
                raise DataError(f"{len(self.pieces)} tokens and {len(self.scores)} scores; give one each.")
            for piece in self.pieces:
                _check(piece)
        if self.scores.ndim == 2 and self.classes and len(self.classes) != self.scores.shape[1]:
            raise DataError(
                f"{len(self.classes)} classes are named, {list(self.classes)!r:.60}, and each piece has scores of "
                f"{self.scores.shape[1]}."
            )
        texts = self.text.values() if isinstance(self.text, Mapping) else [self.text or ""]
        if not all(isinstance(text, str) for text in texts):
            raise DataError(f"the explained text is {self.text!r:.60}; a text is expected, or an object with texts.")


def _check(piece: Piece) -> None:
    """A piece is told by texts and whole numbers."""
    if not all(isinstance(text, str | None) for text in (piece.text, piece.field)):
        raise DataError(f"a piece has {piece.text!r:.60} for a text and {piece.field!r:.60} for a field, not texts.")
    if not all(isinstance(place, int | np.integer | None) for place in (piece.start, piece.end)):
        raise DataError(f"a piece begins at {piece.start!r:.60} and ends at {piece.end!r:.60}, not at whole numbers.")
    if piece.text is None and (piece.start is None or piece.end is None):
        raise DataError("a piece says neither what it spells nor where it begins and ends.")
