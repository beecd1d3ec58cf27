"""The records and arrays that travel between stages, and the glossary of the project.

Unit         what is kept or removed: a token, a word, a reasoning step.
Attribution  a number per unit: how much a method says that the unit matters.
Rationale    the top-k units of an attribution.
Row          one keep-mask, hence one counterfactual input.
Operator     what happens to the units that are not kept.
Score        what the model returns for a row; an *effect* is a difference of two scores.
Null         the scores of the random rows.
Win rate     the share of the null that the rationale beats.
Taxonomy     the paper's word for a win rate.
Verdict      what its interval allows to say.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ice_eval.choices import Direction as Direction
from ice_eval.choices import Scope as Scope
from ice_eval.choices import Unit as Unit

Ids = NDArray[np.int64]  # (tokens,)
PerUnit = NDArray[np.float64]  # (units,)
PerToken = NDArray[np.float64]  # (tokens,)
KeepMask = NDArray[np.bool_]  # (units,); True = the unit is kept
KeepMasks = NDArray[np.bool_]  # (rows, units)
LogScores = NDArray[np.float64]  # (rows, labels); log-probabilities, normalised over the label words
Fills = NDArray[np.int64]  # (tokens of units,): an id for each token that belongs to a unit, in their order
LabelIds = tuple[tuple[int, ...], ...]  # token ids of each label word, or the class index of each label

PROTECTED = -1
"""`Encoded.unit_of` of a token that no operator may touch."""


class Span(NamedTuple):
    """Characters `start` to `end` (exclusive) of one field of an example."""

    field: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Example:
    """One line of a data set."""

    id: str
    fields: Mapping[str, str]
    gold: int | None = None
    """Index of the right label in the task's order, where the data say it."""
    group: str | None = None
    """Examples that share a passage share a group."""
    human: tuple[Span, ...] = ()
    """The characters that a person marked as decisive."""


class Answer(NamedTuple):
    """What a model said when it was asked to explain an example."""

    text: str | None
    """As the model wrote it; None where it could not be asked."""
    tokens: int
    """Tokens of question and answer."""
    n_named: int = 0
    """Words of the text that it names."""
    n_absent: int = 0
    """Words that it names and that are not in the text."""
    problem: str | None = None
    """Why no explanation could be read from it; None where one could."""


@dataclass(frozen=True)
class SpecialIds:
    """Ids that operators may write; None where the tokenizer has no such token."""

    unk: int | None = None
    pad: int | None = None
    mask: int | None = None
    end: int | None = None
    """End of text: stands in where another is missing."""
    start: int | None = None
    """Beginning of text."""
    every: frozenset[int] = frozenset()
    """All control tokens: nothing that a text may be filled with."""


@dataclass(frozen=True, eq=False)
class Inputs:
    r"""What the model sees: the token ids of some rows, end to end.

    ```text
    ids      [Review : a film \n Sentiment :][Review : film \n Sentiment :]
    offsets   0                               7                            13
    ```
    """

    ids: Ids
    """(tokens of all rows,)"""
    segments: Ids
    """(tokens of all rows,): 1 for the tokens of a text pair."""
    offsets: Ids
    """(rows + 1,): where each row begins, and where the last one ends."""

    @classmethod
    def one(cls, ids: Ids, segments: Ids | None = None) -> "Inputs":
        """A single row."""
        return cls(ids, np.zeros_like(ids) if segments is None else segments, np.array([0, len(ids)]))

    @classmethod
    def join(cls, parts: "Sequence[Inputs]") -> "Inputs":
        """The rows of all parts, in order."""
        if not parts:
            return cls(_NO_IDS, _NO_IDS, np.zeros(1, dtype=np.int64))
        lengths = np.concatenate([part.lengths for part in parts])
        return cls(
            np.concatenate([part.ids for part in parts]),
            np.concatenate([part.segments for part in parts]),
            np.append(0, np.cumsum(lengths)),
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Ids:
        """(rows,): tokens of each row."""
        return np.diff(self.offsets)

    def row(self, index: int) -> Ids:
        """The ids of one row."""
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    def take(self, rows: Ids | Sequence[int], *, start: int = 0) -> "Inputs":
        """Some of the rows, without their first `start` tokens."""
        chosen = np.asarray(rows, dtype=np.int64)
        places, offsets = _places(self.offsets, chosen, start)
        found = Inputs(self.ids[places], self.segments[places], offsets)
        if "_keys" in self.__dict__ and not start:
            found.__dict__["_keys"] = [self._keys[row] for row in chosen.tolist()]  # they are known already
        return found

    def padded(self, fill: int) -> tuple[Ids, Ids, Ids]:
        """Ids, mask and segments as matrices of (rows, longest), padded on the right."""
        lengths = self.lengths
        inside = np.arange(int(lengths.max(initial=0))) < lengths[:, None]
        ids, segments = np.full(inside.shape, fill, dtype=np.int64), np.zeros(inside.shape, dtype=np.int64)
        ids[inside], segments[inside] = self.ids, self.segments
        return ids, inside.astype(np.int64), segments

    def keys(self) -> list[bytes]:
        """Return a key per row: rows with equal keys get one forward pass."""
        return self._keys

    @cached_property
    def _keys(self) -> list[bytes]:
        ends = (self.offsets * self.ids.itemsize).tolist()
        ids = self.ids.tobytes()
        found = [ids[start:end] for start, end in pairwise(ends)]
        if not self.segments.any():
            return found
        segments = self.segments.tobytes()
        # The mark keeps a pair apart from every plain row, whose key has eight bytes per token.
        seconds = (segments[start:end] for start, end in pairwise(ends))
        return [key + b"|" + pair if any(pair) else key for key, pair in zip(found, seconds, strict=True)]


_NO_IDS: Ids = np.zeros(0, dtype=np.int64)


def _places(offsets: Ids, rows: Ids, start: int = 0) -> tuple[Ids, Ids]:
    """Return where the values of some ragged rows are, without the first `start` of each, and their new offsets."""
    begins = offsets[rows] + start
    lengths = offsets[rows + 1] - begins
    found = np.append(0, np.cumsum(lengths))
    return np.arange(found[-1]) + np.repeat(begins - found[:-1], lengths), found


class Kind(IntEnum):
    """What a row is about."""

    FULL = 0
    """Nothing is removed."""
    EMPTY = 1
    """Everything is removed."""
    RATIONALE = 2
    """The set that an attribution chose."""
    RANDOM = 3
    """A set of a null."""
    PROBE = 4
    """A row that an attribution asked for; no rationale is compared with it."""
    ERASER = 5
    """A rationale of one of ERASER's sizes, kept and removed."""
    LEAVE_ONE_OUT = 6
    """One unit removed."""
    AGAIN = 7
    """The full chain of thought, asked once more."""
    ARRANGED = 8
    """The steps of a chain in another order, or cut off."""

    @property
    def label(self) -> str:
        """The name in the ledger."""
        return self.name.lower().replace("_", "-")


DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
NOT_SET = -1
"""A column of a row that does not apply to it."""
ROW = np.dtype(
    [
        ("example", np.int32),  # place of the example in the part
        ("kind", np.int8),  # Kind
        ("attribution", np.int16),  # whose rationale, probe or own null it is; not set for a null shared by all
        ("null", np.int16),  # of random sets: which null they belong to
        ("operator", np.int16),
        ("direction", np.int8),  # place in DIRECTIONS
        ("size", np.int32),  # units in the set
        ("set", np.int32),  # place of the set in the order of its null; of a rationale: where its null has the same set
        ("draw", np.int32),  # which fill, where an operator needs one
    ]
)
"""Columns that say what a row is. The null of a rationale is decided by them and nothing else: the rows of its example,
operator, direction and size that belong to a null, in the order of `set`, without the one whose `set` is its own."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a part: what each is about, what it keeps, and what the model sees."""

    head: NDArray[Any]
    """(rows,) of `ROW`."""
    kept: Ids
    """Units that rows keep, end to end."""
    n_kept: Ids
    """(rows,): how many units each row keeps."""
    inputs: Inputs
    texts: Mapping[int, str] = field(default_factory=dict)
    """Row -> what it shows a person, where that does not follow from the units and fills of its example."""

    @classmethod
    def of(cls, head: NDArray[Any], keep: KeepMasks, inputs: Inputs, texts: Mapping[int, str] | None = None) -> "Rows":
        """Build rows of one example from their keep-masks."""
        return cls(head, np.nonzero(keep)[1], np.count_nonzero(keep, axis=1), inputs, texts or {})

    @classmethod
    def join(cls, parts: "Sequence[Rows]") -> "Rows":
        """Join rows, in order."""
        starts = itertools.accumulate((len(part) for part in parts), initial=0)
        return cls(
            join_heads([part.head for part in parts]),
            np.concatenate([_NO_IDS, *(part.kept for part in parts)]),
            np.concatenate([_NO_IDS, *(part.n_kept for part in parts)]),
            Inputs.join([part.inputs for part in parts]),
            {start + row: text for start, part in zip(starts, parts, strict=False) for row, text in part.texts.items()},
        )

    def __len__(self) -> int:
        return len(self.head)

    def take(self, rows: Ids) -> "Rows":
        """Return some of the rows."""
        if np.array_equal(rows, np.arange(len(self))):
            return self
        texts = {place: self.texts[row] for place, row in enumerate(rows.tolist()) if row in self.texts}
        kept, n_kept, inputs = self.kept, self.n_kept, self.inputs
        if len(n_kept):
            offsets = np.append(0, np.cumsum(n_kept))
            kept, n_kept = kept[_places(offsets, rows)[0]], n_kept[rows]
        return Rows(self.head[rows], kept, n_kept, inputs.take(rows) if len(inputs) else inputs, texts)


def heads(n_rows: int, **columns: ArrayLike) -> NDArray[Any]:
    """Return `n_rows` heads; columns that are not given do not apply."""
    head = np.repeat(_BLANK, n_rows)
    for name, values in columns.items():
        head[name] = values
    return head


def join_heads(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return heads end to end; as bytes, for numpy compares the fields of every part before it joins them."""
    joined = b"".join([part.tobytes() for part in parts])
    return np.frombuffer(bytearray(joined), dtype=ROW)


_BLANK = np.full(1, NOT_SET, dtype=ROW)


@dataclass(frozen=True)
class Encoded:
    r"""An example as a model sees it: the rendered prompt, tokenised once, and which unit each token belongs to.

    ```text
    ids      Review : ·a ·gor geous ·film \n Sentiment :
    unit_of    -1  -1   0    1     2     3  -1    -1   -1
    ```
    """

    example_id: str
    ids: Ids
    segments: Ids
    unit_of: Ids
    """Unit of each token, `PROTECTED` for the template and special tokens; numbered in the order of tokens."""
    spans: tuple[Span, ...]
    """Where each unit stands in the fields of the example."""
    texts: tuple[str, ...]
    """The characters of each unit."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """The texts of the example, as far as they were not cut."""
    whole: Mapping[str, str] = field(default_factory=dict)
    """What spans point into where that is no field of the example: the rendered prompt, with `scope="prompt"`."""
    special: SpecialIds = field(default_factory=SpecialIds)
    truncated: bool = False
    """Whether the end of a field was cut to fit."""

    @property
    def n_units(self) -> int:
        return len(self.spans)

    @property
    def content(self) -> slice:
        """From the first to the last token that belongs to a unit; empty when there is none."""
        where = np.flatnonzero(self.unit_of != PROTECTED)
        return slice(int(where[0]), int(where[-1]) + 1) if where.size else slice(0, 0)

    def tokens_kept(self, keep: ArrayLike) -> NDArray[np.bool_]:
        """Which tokens stay when the units of `keep` stay, for one keep-mask or for each row of several.

        Protected tokens always stay.
        """
        masks = np.asarray(keep, dtype=bool)
        # Index -1 (protected) reads the sentinel appended at the end.
        sentinel = np.ones((*masks.shape[:-1], 1), dtype=bool)
        kept: NDArray[np.bool_] = np.concatenate([masks, sentinel], axis=-1)[..., self.unit_of]
        return kept

    def without(self, kept: NDArray[np.bool_]) -> Inputs:
        """One input per row of `kept`, (rows, tokens): the tokens that are not kept are removed."""
        rows, tokens = np.nonzero(kept)
        offsets = np.append(0, np.cumsum(np.bincount(rows, minlength=len(kept))))
        return Inputs(self.ids[tokens], self.segments[tokens], offsets)

    def overwritten(self, kept: NDArray[np.bool_], replacement: int | Ids) -> Inputs:
        """One input per row of `kept`, (rows, tokens): the tokens that are not kept are overwritten.

        Args:
            kept: Which tokens stay.
            replacement: One id for all tokens, or an id for each token of the example.
        """
        ids = np.where(kept, self.ids, replacement).astype(np.int64, copy=False)
        offsets = np.arange(len(kept) + 1) * len(self.ids)
        return Inputs(ids.ravel(), np.tile(self.segments, len(kept)), offsets)

    def per_unit(self, values: PerToken) -> PerUnit:
        """Sum token values over the tokens of each unit."""
        inside = self.unit_of != PROTECTED
        return np.bincount(self.unit_of[inside], weights=values[inside], minlength=self.n_units).astype(np.float64)

    def unit_lengths(self) -> Ids:
        """Return the number of tokens of each unit."""
        return np.bincount(self.unit_of[self.unit_of != PROTECTED], minlength=self.n_units)

    def unit_ids(self) -> list[Ids]:
        """Return the token ids of each unit."""
        return np.split(self.content_ids(), np.cumsum(self.unit_lengths())[:-1]) if self.n_units else []

    def content_ids(self) -> Ids:
        """Return the token ids of all units, unit after unit."""
        ids: Ids = self.ids[self.unit_of != PROTECTED]
        return ids

    def full(self) -> Inputs:
        """The input with nothing removed."""
        return Inputs.one(self.ids, self.segments)

    def empty(self) -> Inputs:
        """The same template with empty content: the input behind `s(∅)`, whatever the operator."""
        bare = self.unit_of == PROTECTED
        if not bare.any() and self.special.end is not None:
            # A model must read something: where the prompt is nothing but the text, the end of another text.
            return Inputs.one(np.array([self.special.end], dtype=np.int64))
        return Inputs.one(self.ids[bare], self.segments[bare])
