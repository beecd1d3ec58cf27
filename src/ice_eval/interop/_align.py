"""Pieces of someone else's explanation -> a number for each of our units.

A piece's score is spread over the characters it covers, spaces left out, and every unit sums what its characters get.
Pieces of a set have no amount to spread: a unit that one of them touches is in the set.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ice_eval.errors import DataError
from ice_eval.interop._mismatch import side_by_side
from ice_eval.interop._placing import place
from ice_eval.interop._records import Explanation, Piece
from ice_eval.interop._tokens import fold
from ice_eval.records import Encoded, Ids

Shares = list[tuple[int, Fraction]]  # characters of the joined text, and the share of a piece that each carries


class Aligned(NamedTuple):
    """An explanation in our units."""

    values: NDArray[np.float64]
    """(units,), or (units, classes) where several classes are explained; not a number where no unit is covered."""
    covered: NDArray[np.bool_]
    """(units,): which units the explanation says something about; the others have 0."""
    cut: bool
    """Whether the explanation ends before the text does."""


@dataclass(frozen=True)
class _Joined:
    """The explained fields of an example as one text, and the unit of each of its characters."""

    names: tuple[str, ...]
    texts: tuple[str, ...]
    begins: Mapping[str, int]
    known: Mapping[str, str]
    """All texts of the example, the explained ones among them."""
    text: str
    owner: Ids
    """-1: a space between units, a protected character, or what was cut."""

    @classmethod
    def of(cls, item: Encoded, fields: Mapping[str, str]) -> "_Joined":
        known = item.whole or fields
        names = tuple(dict.fromkeys(span.field for span in item.spans))
        texts = tuple(known[name] for name in names)
        begins = np.cumsum([0, *(len(text) + 1 for text in texts)])[:-1].tolist()
        begin_of = dict(zip(names, begins, strict=True))
        text = "\n".join(texts)
        owner = np.full(len(text) + 1, -1, dtype=np.int64)
        for unit, span in enumerate(item.spans):
            owner[begin_of[span.field] + span.start : begin_of[span.field] + span.end] = unit
        return cls(names, texts, begin_of, known, text, owner)

    def per_unit(self, share: Shares) -> dict[int, Fraction]:
        """How much of a piece each unit gets; what belongs to none is lost."""
        found: dict[int, Fraction] = {}
        for character, part in share:
            unit = self.unit(character)
            found[unit] = found.get(unit, Fraction(0)) + part
        found.pop(-1, None)
        return found

    def unit(self, character: int) -> int:
        """The unit of a character; a space between units counts for the one that follows, or for the last."""
        if self.owner[character] >= 0 or self.text[character : character + 1].strip():
            return int(self.owner[character])
        after = self.owner[character:]
        before = self.owner[: character + 1]
        known = after[after >= 0] if (after >= 0).any() else before[before >= 0][::-1]
        return int(known[0]) if known.size else -1


def align(explanation: Explanation, item: Encoded, fields: Mapping[str, str], *, name: str = "mine") -> Aligned:
    """The explanation of an example in its units.

    Args:
        explanation: What another tool wrote.
        item: The example as the model sees it.
        fields: The example's texts.
        name: What error messages call the attribution.

    Raises:
        DataError: The explanation is of another text; the message shows both tokenisations.
    """
    where = f"the attribution '{name}', example '{item.example_id}'"
    if explanation.pieces is None:
        return _counted(explanation, item, where)
    if not explanation.pieces and not explanation.is_set:
        raise DataError(f"{where}: there are no tokens. ours: {' | '.join(item.texts[:20])}")
    joined = _Joined.of(item, fields)
    shares, cut = _shares(explanation.pieces, joined, item, where)
    values = np.zeros((item.n_units, *explanation.scores.shape[1:]))
    covered = np.zeros(item.n_units, dtype=bool)
    for score, share in zip(explanation.scores, shares, strict=True):
        for unit, part in joined.per_unit(share).items():
            values[unit] += float(part) * score
            covered[unit] = True
    if explanation.is_set:
        values = (values > 0).astype(np.float64)
    return Aligned(values if covered.any() else np.full_like(values, np.nan), covered, cut)


def _counted(explanation: Explanation, item: Encoded, where: str) -> Aligned:
    """One number per unit, or one per token of the model's input."""
    scores, everything = explanation.scores, np.ones(item.n_units, dtype=bool)
    if len(scores) == item.n_units:
        return Aligned(scores, everything, False)
    if len(scores) == len(item.ids):
        columns = [item.per_unit(column) for column in scores.reshape(len(scores), -1).T]
        return Aligned(np.stack(columns, axis=-1).reshape(item.n_units, *scores.shape[1:]), everything, False)
    raise DataError(
        f"{where}: {len(scores)} numbers were given, and the text has {item.n_units} units (the input of the model has "
        f"{len(item.ids)} tokens). Give tokens too, so that they can be matched. ours: {' | '.join(item.texts[:20])}"
    )


def _shares(pieces: Sequence[Piece], joined: _Joined, item: Encoded, where: str) -> tuple[list[Shares], bool]:
    """The characters of each piece: as it says itself, or found by what the tokens of its field spell."""
    shares: list[Shares] = [[] for _ in pieces]
    spelled: dict[str | None, list[int]] = {}
    for index, piece in enumerate(pieces):
        if piece.field is not None and piece.field not in joined.begins:
            _refuse_unknown(piece.field, joined, where)
        elif piece.start is None or piece.end is None:
            spelled.setdefault(piece.field, []).append(index)
        else:
            shares[index] = _spanned(piece, joined, where)
    cut = False
    for field, indices in spelled.items():
        found, ends_early = _spelled([pieces[index].text or "" for index in indices], field, joined, item, where)
        cut = cut or ends_early
        for index, share in zip(indices, found, strict=True):
            shares[index] = share
    return shares, cut


def _refuse_unknown(field: str, joined: _Joined, where: str) -> None:
    """A field that is not explained has no units, and nothing is lost; one that is not there is a mistake."""
    if field not in joined.known:
        raise DataError(f"{where}: no field '{field}'; the example has {', '.join(joined.known)}.")


def _spelled(
    tokens: Sequence[str], field: str | None, joined: _Joined, item: Encoded, where: str
) -> tuple[list[Shares], bool]:
    texts = joined.texts if field is None else (joined.texts[joined.names.index(field)],)
    begin = 0 if field is None else joined.begins[field]
    found = place(tokens, "\n".join(texts), texts)
    if found is None:
        units = [span for span in item.spans if field in (None, span.field)]
        ours = [text for text, span in zip(item.texts, item.spans, strict=True) if span in units]
        raise DataError(f"{where}: the tokens do not spell the text.\n{side_by_side(tokens, ours)}")
    return [[(begin + character, part) for character, part in share] for share in found.shares], found.cut


def _spanned(piece: Piece, joined: _Joined, where: str) -> Shares:
    """The characters from `start` to `end`, which must be those that the piece spells, if it spells any."""
    field = piece.field or _only_field(piece, joined, where)
    text = joined.texts[joined.names.index(field)]
    start, end = _characters(piece, text, field, where)
    found = text[start:end]
    if piece.text is not None and _solid(piece.text) != _solid(found):
        raise DataError(
            f"{where}: characters {start} to {end} of the field '{field}' are not what the explanation says.\n"
            f"theirs: {piece.text!r}\nours:   {found!r}"
        )
    solid = [index for index in range(start, end) if not text[index].isspace()] or list(range(start, end))
    return [(joined.begins[field] + index, Fraction(1, len(solid))) for index in solid]


def _only_field(piece: Piece, joined: _Joined, where: str) -> str:
    if len(joined.names) == 1:
        return joined.names[0]
    if piece.counted == "words":  # a rationale of a document, which is the longest by far
        return max(joined.names, key=lambda name: len(joined.known[name]))
    raise DataError(
        f"{where}: a span without a field, and the explained fields are {', '.join(joined.names)}; say which, as in "
        f'{{"field": "{joined.names[0]}", "start": 0, "end": 4, "score": 1}}.'
    )


def _characters(piece: Piece, text: str, field: str, where: str) -> tuple[int, int]:
    start, end = piece.start or 0, piece.end or 0
    words = _words(text) if piece.counted == "words" else ()
    size = len(words) if piece.counted == "words" else len(text)
    if not 0 <= start < end <= size:
        raise DataError(
            f"{where}: the span {start} to {end} does not lie in the field '{field}', which has {size} {piece.counted}."
        )
    return (words[start][0], words[end - 1][1]) if words else (start, end)


@lru_cache(maxsize=8)  # all words of a document are looked up in it one after another
def _words(text: str) -> tuple[tuple[int, int], ...]:
    """Where the words between spaces begin and end."""
    return tuple(match.span() for match in re.finditer(r"\S+", text))


def _solid(text: str) -> str:
    """What two writings of a piece must share: all but spaces, case, accents and width."""
    return "".join("".join(map(fold, text)).split())
