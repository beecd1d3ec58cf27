"""The records and arrays that pass between stages, and the glossary of the project.

Unit         what is kept or removed: a token, a word, a reasoning step.
Attribution  a number per unit: its importance according to a method.
Rationale    the top-k units of an attribution.
Row          one keep-mask, hence one counterfactual input.
Operator     what happens to the units that are not kept.
Score        what the model returns for a row; an *effect* is a difference of two scores.
Null         the scores of the random rows.
NSR          the part of the full input's effect that a row retains: (s - s(∅)) / (s(x) - s(∅)).
Win rate     the share of the null that the rationale beats.
Taxonomy     the paper's word for a win rate.
Verdict      the statement that its interval supports.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
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
NO_IDS: Ids = np.zeros(0, dtype=np.int64)

PROTECTED = -1
"""`Encoded.unit_of` of a token that no operator may touch."""
PAIR, SCORED = 1, 2
"""Segments of tokens: those of a text pair, and those of a given continuation whose probability is the score."""

PASSAGE_FIELD = "passage "
"""Beginning of the names of fields that hold a passage; its own name follows, as in `passage 3`."""


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
    """Index of the right label in the task's order, if known."""
    group: str | None = None
    """Examples that share a passage share a group."""
    human: tuple[Span, ...] = ()
    """Characters that a person marked as decisive."""
    n_unread: int = 0
    """Characters of explained fields that were not read, because a setting limits their number."""

    def identity(self) -> dict[str, Any]:
        """Return what the example is, without what was not read of it."""
        return {name: value for name, value in asdict(self).items() if name != "n_unread"}


class Answer(NamedTuple):
    """Answer of a model that was asked to explain an example."""

    text: str | None
    """None if the model could not be asked."""
    tokens: int
    """Tokens of question and answer."""
    n_named: int = 0
    """Number of words of the text that it names."""
    n_absent: int = 0
    """Number of words that it names and that are not in the text."""
    problem: str | None = None
    """Reason why no explanation could be read from it."""


@dataclass(frozen=True)
class SpecialIds:
    """Ids that operators may write; None if the tokenizer has no such token."""

    unk: int | None = None
    pad: int | None = None
    mask: int | None = None
    end: int | None = None
    """End of text; used in place of a missing one."""
    start: int | None = None
    every: frozenset[int] = frozenset()
    """All control tokens; never used as fills."""


@dataclass(frozen=True, eq=False)
class Inputs:
    r"""The token ids of some rows, concatenated: what the model reads.

    ```text
    ids      [Review : a film \n Sentiment :][Review : film \n Sentiment :]
    offsets   0                               7                            13
    ```
    """

    ids: Ids
    """(tokens of all rows,)"""
    segments: Ids
    """(tokens of all rows,): `PAIR`, `SCORED`, or 0."""
    offsets: Ids
    """(rows + 1,): start of each row, and end of the last one."""

    @classmethod
    def one(cls, ids: Ids, segments: Ids | None = None) -> "Inputs":
        return cls(ids, np.zeros_like(ids) if segments is None else segments, np.array([0, len(ids)]))

    @classmethod
    def join(cls, parts: "Sequence[Inputs]") -> "Inputs":
        if not parts:
            return cls(NO_IDS, NO_IDS, np.zeros(1, dtype=np.int64))
        return cls(
            np.concatenate([part.ids for part in parts]),
            np.concatenate([part.segments for part in parts]),
            _offsets(np.concatenate([part.lengths for part in parts])),
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Ids:
        """(rows,): number of tokens of each row."""
        return self.offsets[1:] - self.offsets[:-1]

    def row(self, index: int) -> Ids:
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    def take(self, rows: Ids | Sequence[int], *, start: int = 0) -> "Inputs":
        """Return some of the rows, without their first `start` tokens."""
        places, offsets = _places(self.offsets, np.asarray(rows, dtype=np.int64), start)
        return Inputs(self.ids[places], self.segments[places], offsets)

    def padded(self, fill: int) -> tuple[Ids, Ids, Ids]:
        """Return ids, mask and segments as matrices of (rows, longest), padded on the right."""
        lengths = self.lengths
        inside = np.arange(int(lengths.max(initial=0))) < lengths[:, None]
        ids, segments = np.full(inside.shape, fill, dtype=np.int64), np.zeros(inside.shape, dtype=np.int64)
        ids[inside], segments[inside] = self.ids, self.segments
        return ids, inside.astype(np.int64), segments

    @cached_property
    def keys(self) -> list[bytes]:
        """A key per row: rows with equal keys get one forward pass."""
        ends = (self.offsets * self.ids.itemsize).tolist()
        ids = self.ids.tobytes()
        found = [ids[start:end] for start, end in pairwise(ends)]
        if not self.segments.any():
            return found
        segments = self.segments.tobytes()
        # The mark keeps a pair apart from every plain row, whose key has eight bytes per token.
        seconds = (segments[start:end] for start, end in pairwise(ends))
        return [key + b"|" + pair if any(pair) else key for key, pair in zip(found, seconds, strict=True)]


def _offsets(lengths: Ids) -> Ids:
    """Return the start of each ragged row, and the end of the last one."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    lengths.cumsum(out=offsets[1:])
    return offsets


def _places(offsets: Ids, rows: Ids, start: int = 0) -> tuple[Ids, Ids]:
    """Return indices of the values of some ragged rows, without the first `start` of each, and their new offsets."""
    begins = offsets[rows] + start
    lengths = offsets[rows + 1] - begins
    found = _offsets(lengths)
    return np.arange(found[-1]) + np.repeat(begins - found[:-1], lengths), found


def marked(inputs: Inputs, mark: int) -> Inputs:
    """Return inputs with one more id, behind the first of each."""
    between = np.array([mark], dtype=np.int64)
    rows = (inputs.row(index) for index in range(len(inputs)))
    return Inputs.join([Inputs.one(np.concatenate([row[:1], between, row[1:]])) for row in rows])


class Kind(IntEnum):
    """Purpose of a row."""

    FULL = 0
    """Nothing is removed."""
    EMPTY = 1
    """Everything is removed."""
    RATIONALE = 2
    """The set that an attribution chose."""
    RANDOM = 3
    """A set of a null."""
    PROBE = 4
    """A row that an attribution requested; no rationale is compared with it."""
    ERASER = 5
    """A rationale of one of ERASER's sizes, kept and removed."""
    LEAVE_ONE_OUT = 6
    AGAIN = 7
    """The full chain of thought, or none of it, answered once more or in another pose."""
    ARRANGED = 8
    """The steps of a chain reordered or truncated."""

    @property
    def label(self) -> str:
        return self.name.lower().replace("_", "-")


DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
NOT_SET = -1
"""Value of a column that does not apply to a row."""
ROW = np.dtype(
    [
        ("example", np.int32),  # index of the example in the part
        ("kind", np.int8),  # Kind
        ("attribution", np.int16),  # whose rationale, probe or own null it is; not set for a null shared by all
        ("null", np.int16),  # of random sets: which null they belong to
        ("operator", np.int16),
        ("direction", np.int8),  # index in DIRECTIONS
        ("size", np.int32),  # units in the set
        ("set", np.int32),  # index of the set in its null; of a rationale: index of the same set
        ("draw", np.int32),  # which fill, where an operator needs one
    ]
)
"""Columns that identify a row. They alone define the null of a rationale: the rows of its example, operator, direction
and size that belong to a null, in the order of `set`, without the one whose `set` is its own.
"""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a part: heads, kept units, and inputs of the model."""

    head: NDArray[Any]
    """(rows,) of `ROW`."""
    kept: Ids
    """Units that rows keep, concatenated."""
    n_kept: Ids
    """(rows,): number of units that each row keeps."""
    inputs: Inputs
    texts: Mapping[int, str] = field(default_factory=dict)
    """Row -> readable text, if it does not follow from the units and fills of its example."""

    @classmethod
    def of(cls, head: NDArray[Any], keep: KeepMasks, inputs: Inputs, texts: Mapping[int, str] | None = None) -> "Rows":
        """Return rows of one example from their keep-masks."""
        rows, kept = keep.nonzero()
        return cls(head, kept, np.bincount(rows, minlength=len(keep)), inputs, texts or {})

    @classmethod
    def join(cls, parts: "Sequence[Rows]") -> "Rows":
        starts = itertools.accumulate((len(part) for part in parts), initial=0)
        return cls(
            # As bytes, since numpy compares the fields of every part before joining.
            np.frombuffer(bytearray(b"".join([part.head.tobytes() for part in parts])), dtype=ROW),
            np.concatenate([NO_IDS, *(part.kept for part in parts)]),
            np.concatenate([NO_IDS, *(part.n_kept for part in parts)]),
            Inputs.join([part.inputs for part in parts]),
            {start + row: text for start, part in zip(starts, parts, strict=False) for row, text in part.texts.items()},
        )

    def __len__(self) -> int:
        return len(self.head)

    def take(self, rows: Ids) -> "Rows":
        if np.array_equal(rows, np.arange(len(self))):
            return self
        texts = {place: self.texts[row] for place, row in enumerate(rows.tolist()) if row in self.texts}
        kept, n_kept, inputs = self.kept, self.n_kept, self.inputs
        if len(n_kept):
            kept, n_kept = kept[_places(_offsets(n_kept), rows)[0]], n_kept[rows]
        return Rows(self.head[rows], kept, n_kept, inputs.take(rows) if len(inputs) else inputs, texts)


def heads(n_rows: int, **columns: ArrayLike) -> NDArray[Any]:
    """Return `n_rows` heads; columns that are not given do not apply."""
    head = np.repeat(_BLANK, n_rows)
    for name, values in columns.items():
        head[name] = values
    return head


_BLANK = np.full(1, NOT_SET, dtype=ROW)


@dataclass(frozen=True)
class Encoded:
    r"""An example as a model reads it: the rendered prompt, tokenised once, and the unit of each token.

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
    """Position of each unit in the fields of the example."""
    texts: tuple[str, ...]
    fields: Mapping[str, str] = field(default_factory=dict)
    """The texts of the example, possibly truncated."""
    whole: Mapping[str, str] = field(default_factory=dict)
    """Text that spans refer to if it is no field of the example: the rendered prompt, with `scope="prompt"`."""
    special: SpecialIds = field(default_factory=SpecialIds)
    n_cut: int = 0
    """Number of units at the end of fields that were cut to fit; estimated for what a limit of characters left out."""
    divided: bool = False
    """True if the tokenizer by itself would join characters of template and content in a token."""
    heading_of: Ids | None = None
    """(tokens,): group whose heading a token is, as the number of a passage; `PROTECTED` for others."""
    group_of: Ids | None = None
    """(units,): group of each unit, as the passage of a sentence; None where units have none."""

    @property
    def n_units(self) -> int:
        return len(self.spans)

    @property
    def truncated(self) -> bool:
        """True if the end of a field was cut."""
        return self.n_cut > 0

    @property
    def content(self) -> slice:
        """Slice from the first to the last token that belongs to a unit or is a heading; empty without units."""
        removable = self.unit_of != PROTECTED
        if self.heading_of is not None:
            removable |= self.heading_of != PROTECTED
        where = np.flatnonzero(removable)
        return slice(int(where[0]), int(where[-1]) + 1) if where.size else slice(0, 0)

    def tokens_kept(self, keep: ArrayLike) -> NDArray[np.bool_]:
        """Return a mask of the tokens that remain for one or several keep-masks; protected tokens always remain."""
        masks = np.asarray(keep, dtype=bool)
        # Index -1 (protected) reads the sentinel appended at the end.
        sentinel = np.ones((*masks.shape[:-1], 1), dtype=bool)
        return np.concatenate([masks, sentinel], axis=-1).take(self.unit_of, axis=-1)

    def headings_kept(self, keep: KeepMasks) -> NDArray[np.bool_]:
        """Return a mask of the tokens that remain if a heading goes with the last unit of its group, (rows, tokens)."""
        if self.heading_of is None or self.group_of is None:
            return np.ones((len(keep), len(self.ids)), dtype=bool)
        last = max(int(self.heading_of.max(initial=0)), int(self.group_of.max(initial=0)))  # either may lack one
        shown = np.zeros((len(keep), last + 2), dtype=bool)
        shown[:, -1] = True  # index -1 (no heading)
        rows, units = keep.nonzero()
        shown[rows, self.group_of[units]] = True
        return shown.take(self.heading_of, axis=1)

    def without(self, kept: NDArray[np.bool_]) -> Inputs:
        """Return one input per row of `kept`, (rows, tokens), with the other tokens removed."""
        rows, tokens = kept.nonzero()
        offsets = _offsets(np.bincount(rows, minlength=len(kept)))
        return Inputs(self.ids[tokens], self.segments[tokens], offsets)

    def overwritten(self, kept: NDArray[np.bool_], replacement: int | Ids) -> Inputs:
        """Return one input per row of `kept`, (rows, tokens), with the other tokens overwritten.

        Args:
            kept: Mask of the tokens that remain.
            replacement: One id for all tokens, or an id for each token of the example.
        """
        ids = np.where(kept, self.ids, replacement).astype(np.int64, copy=False)
        offsets = np.arange(len(kept) + 1) * len(self.ids)
        return Inputs(ids.ravel(), np.repeat(self.segments[None], len(kept), axis=0).ravel(), offsets)

    def per_unit(self, values: PerToken) -> PerUnit:
        """Return the sum of token values for each unit."""
        inside = self.unit_of != PROTECTED
        return np.bincount(self.unit_of[inside], weights=values[inside], minlength=self.n_units).astype(np.float64)

    def unit_lengths(self) -> Ids:
        """Return the number of tokens of each unit."""
        return np.bincount(self.unit_of[self.unit_of != PROTECTED], minlength=self.n_units)

    def unit_ids(self) -> list[Ids]:
        return np.split(self.content_ids(), np.cumsum(self.unit_lengths())[:-1]) if self.n_units else []

    def content_ids(self) -> Ids:
        """Return the token ids of all units, unit by unit."""
        ids: Ids = self.ids[self.unit_of != PROTECTED]
        return ids

    def full(self) -> Inputs:
        """Return the input with nothing removed."""
        return Inputs.one(self.ids, self.segments)

    def empty(self) -> Inputs:
        """Return the template with empty content: the input of `s(∅)`, whatever the operator."""
        bare = self.unit_of == PROTECTED
        if self.heading_of is not None:
            bare &= self.heading_of == PROTECTED
        if not bare.any() and self.special.end is not None:
            # A model must read something: where the prompt is nothing but the text, the end of another text.
            return Inputs.one(np.array([self.special.end], dtype=np.int64))
        return Inputs.one(self.ids[bare], self.segments[bare])
