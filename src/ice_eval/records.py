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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]  # (tokens,)
PerUnit = NDArray[np.float64]  # (units,)
PerToken = NDArray[np.float64]  # (tokens,)
KeepMasks = NDArray[np.bool_]  # (rows, units); True = the unit is kept
LogScores = NDArray[np.float64]  # (rows, labels); log-probabilities, normalised over the label words
Fills = Sequence[Ids]  # one replacement per unit, as many tokens as the unit has
LabelIds = tuple[tuple[int, ...], ...]  # token ids of each label word, or the class index of each label

Unit = Literal["token", "word"]
Scope = Literal["content", "prompt"]
Direction = Literal["sufficiency", "necessity"]
PROTECTED = -1
"""`Encoded.unit_of` of a token that no operator may touch."""


class Span(NamedTuple):
    """Characters `start` to `end` (exclusive) of one field of an example."""

    field: str
    start: int
    end: int


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class ModelInput:
    """What the model sees for one row."""

    ids: Ids
    segments: Ids

    def key(self) -> tuple[bytes, bytes]:
        """Two rows with equal keys get one forward pass."""
        return self.ids.tobytes(), self.segments.tobytes()


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
    """Unit of each token, `PROTECTED` for the template and special tokens."""
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

    def tokens_kept(self, keep: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which tokens stay when the units of `keep` stay; protected tokens always do."""
        # Index -1 (protected) reads the sentinel appended at the end.
        kept: NDArray[np.bool_] = np.append(np.asarray(keep, dtype=bool), True)[self.unit_of]
        return kept

    def per_unit(self, values: PerToken) -> PerUnit:
        """Sum token values over the tokens of each unit."""
        inside = self.unit_of != PROTECTED
        return np.bincount(self.unit_of[inside], weights=values[inside], minlength=self.n_units).astype(np.float64)

    def unit_ids(self) -> list[Ids]:
        """The token ids of each unit."""
        return [self.ids[self.unit_of == unit] for unit in range(self.n_units)]

    def full(self) -> ModelInput:
        """The input with nothing removed."""
        return ModelInput(self.ids, self.segments)

    def empty(self) -> ModelInput:
        """The same template with empty content: what gives `s(∅)`, whatever the operator."""
        bare = self.unit_of == PROTECTED
        if not bare.any() and self.special.end is not None:
            # A model must read something: where the prompt is nothing but the text, the end of another text.
            return ModelInput(np.array([self.special.end], dtype=np.int64), np.zeros(1, dtype=np.int64))
        return ModelInput(self.ids[bare], self.segments[bare])
