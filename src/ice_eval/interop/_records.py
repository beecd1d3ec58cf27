"""An explanation as other tools write it: pieces of a text with scores, and whose text it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
    """One example's explanation, whoever made it."""

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
    """Whether the pieces are a rationale as they are, of its own size; their scores are 1 then."""
