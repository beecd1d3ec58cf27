"""Pieces of text as tokens, for models that read text and show no vocabulary."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ice_eval.encoding import Tokens
from ice_eval.errors import ConfigError
from ice_eval.records import Ids, SpecialIds
from ice_eval.words import TAIL, runs_on, word_spans


class _Piece(NamedTuple):
    text: str
    attached: bool
    """Whether it ran on from what stood before it."""


class Pieces:
    """Pieces of text that were seen, by ids that depend on nothing but what they spell."""

    def __init__(self) -> None:
        self._pieces: dict[int, _Piece] = {}

    def id_of(self, piece: str, *, before: str) -> int:
        """The id of a piece, the same in every process, so that a run can be continued; 63 bits do not collide.

        Args:
            piece: What it spells.
            before: The text that it follows, or the end of it. In odd scripts a word may begin where another ends; such
                a piece is told from others, and nothing is put between the two.
        """
        attached = runs_on(before, piece)
        spelled = piece.encode("utf-8", "surrogatepass") + (b"\0attached" if attached else b"")
        index = int.from_bytes(hashlib.blake2b(spelled, digest_size=8).digest(), "little") >> 1
        self._pieces[index] = _Piece(piece, attached)
        return index

    def spelled(self, ids: Ids) -> str:
        """What pieces spell together; a space parts words that only a removal brought together.

        Of "well(done)" without its brackets "well done" is left.
        """
        text = ""
        for piece, attached in (self._pieces[int(i)] for i in ids):
            text += f" {piece}" if not attached and runs_on(text, piece) else piece
        return text


class TextCodec:
    r"""A text in words, each with the space before it, as most tokenizers cut it; together they spell it to the letter.

    ```text
    Review: a  fine film\nSentiment:   ->   [Review][:][ a][ ][ fine][ film][\n][Sentiment][:]
    ```
    """

    reads_pairs = False
    max_tokens = 1_000_000
    special = SpecialIds()

    def __init__(self) -> None:
        self._pieces = Pieces()

    def tokenize(self, text: str, pair: str | None = None, *, framed: bool = False) -> Tokens:
        spans = np.array(list(_spans(text)), dtype=np.int64).reshape(-1, 2)
        found = [self._pieces.id_of(text[start:end], before=text[max(0, start - TAIL) : start]) for start, end in spans]
        ids = np.array(found, dtype=np.int64)
        none = np.zeros(len(ids), dtype=np.int64)
        return Tokens(ids=ids, segments=none, sequence=none, start=spans[:, 0], end=spans[:, 1])

    def writes_special(self, text: str) -> bool:
        return False

    def chat_frame(self, turns: Sequence[tuple[str, str]]) -> tuple[str, str]:
        raise ConfigError(
            "how a chat is written for this model is known from its tokenizer; give --tokenizer, or leave out --chat."
        )

    def decode(self, rows: Sequence[Ids]) -> list[str]:
        return [self._pieces.spelled(row) for row in rows]


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Words with one space before them; other spaces by themselves."""
    place = 0
    for start, end in word_spans(text):
        if start > place and text[start - 1] == " ":
            start -= 1
        if start > place:
            yield place, start
        yield start, end
        place = end
    if place < len(text):
        yield place, len(text)
