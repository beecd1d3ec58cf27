"""Alignment of an explanation's pieces with our units.

Pieces inside a unit are summed. Every unit inside a piece has the score of the piece, so that units rank as the pieces
do, however long they are. Pieces of a set have no score: a unit that one of them touches is in the set.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ice_eval.errors import DataError
from ice_eval.interop._base import Explanation, TextPart
from ice_eval.records import Encoded
from ice_eval.subjects.alignment import Shares, folded, place, side_by_side, word_places


class Aligned(NamedTuple):
    values: NDArray[np.float64]
    """(units,), or (units, classes) where several classes are explained; NaN where no unit is covered."""
    covered: NDArray[np.bool_]
    """(units,): True where the explanation covers a unit; the others have 0."""
    cut: bool
    """True if the explanation ends before the text does."""
    parts: NDArray[np.int64]
    """(units,): the first unit inside the same piece, for most units themselves."""

    @property
    def is_coarse(self) -> bool:
        """True if a piece is longer than a unit."""
        return len(np.unique(self.parts)) < len(self.parts)


def align(explanation: Explanation, item: Encoded, fields: Mapping[str, str], *, name: str = "mine") -> Aligned:
    """Align an explanation with the units of an example with these fields; errors use `name`, and show both texts."""
    where = f"the attribution '{name}', example '{item.example_id}'"
    if explanation.pieces is None:  # one score per unit, or one per token of the model's input
        found = per_unit(explanation.scores, item)
        if found is None:
            raise DataError(
                f"{where}: {len(explanation.scores)} numbers were given, and the text has {item.n_units} units (the "
                f"input of the model has {len(item.ids)} tokens). Give tokens too, so that they can be matched. "
                f"ours: {' | '.join(item.texts[:20])}"
            )
        return Aligned(found, np.ones(item.n_units, dtype=bool), False, np.arange(item.n_units))
    if not explanation.pieces and not explanation.is_set:
        raise DataError(f"{where}: there are no tokens. ours: {' | '.join(item.texts[:20])}")
    joined = _JoinedFields(item, item.whole or fields, where)
    scores, shares, cut = joined.scored(explanation)
    values = np.zeros((item.n_units, *scores.shape[1:]))
    covered, parts = np.zeros(item.n_units, dtype=bool), np.arange(item.n_units)
    for score, share in zip(scores, shares, strict=True):
        weights = joined.weights(share)
        for unit, weight in weights.items():
            values[unit] += float(weight) * score
            covered[unit] = True
        if weights:
            parts[list(weights)] = parts[min(weights)]
    if explanation.is_set:
        values = (values > 0).astype(np.float64)
    return Aligned(values if covered.any() else np.full_like(values, np.nan), covered, cut, parts)


def per_unit(scores: NDArray[np.float64], item: Encoded) -> NDArray[np.float64] | None:
    """Return a score per unit from one per unit, or one per token of the model's input; None for other numbers.

    A row of a padded batch has zeros beyond the input, at its end or at its beginning.
    """
    n_tokens, surplus = len(item.ids), len(scores) - len(item.ids)
    if len(scores) == item.n_units:
        return scores
    if surplus < 0:
        return None
    rows = [(scores[:n_tokens], scores[n_tokens:]), (scores[surplus:], scores[:surplus])]
    unpadded = [row for row, padding in rows if not padding.any()]
    if not unpadded or not np.array_equal(unpadded[0], unpadded[-1], equal_nan=True):
        return None
    columns = [item.per_unit(column) for column in unpadded[0].reshape(n_tokens, -1).T]
    return np.stack(columns, axis=-1).reshape(item.n_units, *scores.shape[1:])


class _JoinedFields:
    """The explained fields of an example as one text, one per line."""

    def __init__(self, item: Encoded, known: Mapping[str, str], where: str) -> None:
        self._item, self._known, self._where = item, known, where
        self._texts = {span.field: known[span.field] for span in item.spans}
        ends = np.cumsum([0, *(len(text) + 1 for text in self._texts.values())])
        self._begins = dict(zip(self._texts, ends.tolist(), strict=False))

    @cached_property
    def unit_of(self) -> list[int]:
        """Unit of each character, and of the end; -1 for a protected or truncated character."""
        # A space between units counts for the one that follows, or for the last.
        text = "\n".join(self._texts.values())
        owner = [-1] * (len(text) + 1)
        for unit, (field, start, end) in enumerate(self._item.spans):
            begin = self._begins[field]
            owner[begin + start : begin + end] = [unit] * (end - start)
        following = next((unit for unit in reversed(owner) if unit >= 0), -1)
        for index in reversed(range(len(owner))):
            if owner[index] >= 0:
                following = owner[index]
            elif not text[index : index + 1].strip():
                owner[index] = following
        return owner

    @cached_property
    def _sizes(self) -> list[int]:
        """Number of characters of each unit, spaces left out; 1 for a unit of spaces."""
        parts = (self._texts[field][start:end] for field, start, end in self._item.spans)
        return [max(1, sum(not c.isspace() for c in part)) for part in parts]

    def weights(self, share: Shares) -> dict[int, Fraction]:
        """Return the weight of a piece's score in each unit that it touches."""
        # Divided by the shorter of the two: a piece inside a unit gives it all it has, and a unit inside a piece has
        # the score of the piece. The share that belongs to no unit (-1) is lost.
        characters: dict[int, set[int]] = defaultdict(set)
        for character, _ in share:
            characters[self.unit_of[character]].add(character)
        sizes = {unit: len(each) for unit, each in characters.items()}
        if len(sizes) == 1:
            return {unit: sum((part for _, part in share), Fraction(0)) for unit in sizes if unit >= 0}
        shortest = {unit: min(sum(sizes.values()), max(self._sizes[unit], n)) for unit, n in sizes.items() if unit >= 0}
        return {unit: Fraction(sizes[unit], length) for unit, length in shortest.items()}

    def scored(self, explanation: Explanation) -> tuple[NDArray[np.float64], list[Shares], bool]:
        """Return scores with the characters of each, and True if the text continues after the last one."""
        pieces = explanation.pieces or ()
        if not explanation.any_order:
            return explanation.scores, *self.shares(pieces)
        words = [piece.text or "" for piece in pieces]
        found = place(words, list(self._texts.values()))
        if found is not None and not found.cut:
            return explanation.scores, found.shares, False
        at = [
            [self._at(name, span) for name, text in self._texts.items() for span in word_places(word, text)]
            for word in words
        ]
        missing = [word for word, places in zip(words, at, strict=True) if not places]
        if missing and found is not None:
            return explanation.scores, found.shares, True
        if missing:
            raise DataError(
                f"{self._where}: the text has no {', '.join(repr(word) for word in missing[:5])}; words of the text, "
                f"or its tokens in their order, are expected. ours: {' | '.join(self._item.texts[:20])}"
            )
        if len(set(words)) < len(words):
            twice = next(word for word in words if words.count(word) > 1)
            raise DataError(
                f"{self._where}: {twice!r} has several scores, and nothing says where each belongs. Give what the "
                "library returned (an `Explanation` of LIME knows positions), spans, or all tokens in their order."
            )
        scores = np.repeat(explanation.scores, [len(places) for places in at], axis=0)
        return scores, [share for places in at for share in places], False

    def shares(self, pieces: Sequence[TextPart]) -> tuple[list[Shares], bool]:
        """Return the characters of each piece, and True if the text continues after the last one."""
        # A piece has its position, or is located by what the tokens of its field spell.
        shares: list[Shares] = [[] for _ in pieces]
        spelled: dict[str | None, list[int]] = {}
        for index, piece in enumerate(pieces):
            if piece.field is not None and piece.field not in self._begins:
                if piece.field not in self._known:  # one that is not explained has no units, and nothing is lost
                    known = ", ".join(self._known)
                    raise DataError(f"{self._where}: no field '{piece.field}'; the example has {known}.")
            elif piece.start is None or piece.end is None:
                spelled.setdefault(piece.field, []).append(index)
            else:
                shares[index] = self._spanned(piece, piece.start, piece.end)
        cut = False
        for field, indices in spelled.items():
            tokens = [pieces[index].text or "" for index in indices]
            found = place(tokens, list(self._texts.values()) if field is None else [self._texts[field]])
            if found is None:
                pairs = zip(self._item.texts, self._item.spans, strict=True)
                ours = [text for text, span in pairs if field in (None, span.field)]
                raise DataError(f"{self._where}: the tokens do not spell the text.\n{side_by_side(tokens, ours)}")
            cut = cut or found.cut
            begin = 0 if field is None else self._begins[field]
            for index, share in zip(indices, found.shares, strict=True):
                shares[index] = [(begin + character, part) for character, part in share]
        return shares, cut

    def _spanned(self, piece: TextPart, start: int, end: int) -> Shares:
        """Return the characters from `start` to `end`; raise if the piece spells others."""
        field = piece.field or self._only_field(piece)
        text = self._texts[field]
        words = _words(text) if piece.counted == "words" else ()
        size = len(words) if piece.counted == "words" else len(text)
        if not 0 <= start < end <= size:
            outside = f"the span {start} to {end} does not lie in the field '{field}'"
            raise DataError(f"{self._where}: {outside}, which has {size} {piece.counted}.")
        if words:
            start, end = words[start][0], words[end - 1][1]
        if piece.text is not None and folded(piece.text) != folded(text[start:end]):
            raise DataError(
                f"{self._where}: characters {start} to {end} of the field '{field}' are not what the explanation says."
                f"\ntheirs: {piece.text!r}\nours:   {text[start:end]!r}"
            )
        return self._at(field, (start, end))

    def _at(self, field: str, span: tuple[int, int]) -> Shares:
        """Return the characters of a span, in equal shares; spaces only where there is nothing else."""
        text = self._texts[field]
        solid = [index for index in range(*span) if not text[index].isspace()] or list(range(*span))
        return [(self._begins[field] + index, Fraction(1, len(solid))) for index in solid]

    def _only_field(self, piece: TextPart) -> str:
        names = list(self._texts)
        if len(names) == 1 or piece.counted == "words":  # a rationale of a document, which is the longest by far
            return max(names, key=lambda name: len(self._known[name]))
        raise DataError(
            f"{self._where}: a span without a field, and the explained fields are {', '.join(names)}; say which, as in "
            f'{{"field": "{names[0]}", "start": 0, "end": 4, "score": 1}}.'
        )


@lru_cache(maxsize=8)  # all words of a document are looked up in it one after another
def _words(text: str) -> tuple[tuple[int, int], ...]:
    return tuple(match.span() for match in re.finditer(r"\S+", text))
