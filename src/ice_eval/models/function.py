"""Any function from texts to label probabilities as a model, and tokenizers for models without a vocabulary."""

import hashlib
import importlib
import os
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ice_eval.encoding import Codec, Tokens, rendered
from ice_eval.errors import ConfigError, ModelError, reported
from ice_eval.models.base import Labels, LabelScoring, Model
from ice_eval.records import Ids, Inputs, LogScores, SpecialIds
from ice_eval.tasks import Task
from ice_eval.words import TAIL, runs_on, word_spans

LabelFunction = Callable[[list[Any]], Any]
"""Takes a list of texts (of pairs where a task has several bare fields) and returns (texts, labels) probabilities."""

_SUM_TOLERANCE = 0.01  # of a row of probabilities, as float16 rounds them
_SMALLEST = 1e-9  # lower limit of probabilities: the log of 0 is not finite


class _PieceCodec(Codec):
    """Pieces of text as tokens, with ids that depend only on what they spell."""

    max_tokens = 1_000_000
    special = SpecialIds()
    no_chat: ClassVar[str]
    """Error message where a task has a chat."""

    def __init__(self) -> None:
        # Id -> text of the piece, and True if it was attached to the text before it.
        self._pieces: dict[int, tuple[str, bool]] = {}

    @abstractmethod
    def _cut(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield the bounds of each piece, and a space that is written before it."""

    def tokenize(self, text: str, pair: str | None = None, *, framed: bool = False) -> Tokens:
        texts = [text] if pair is None else [text, pair]
        found = [
            (index, start, end, self._id(part, start, end, space))
            for index, part in enumerate(texts)
            for start, end, space in self._cut(part)
        ]
        sequence, starts, ends, ids = np.array(found, dtype=np.int64).reshape(-1, 4).T
        return Tokens(ids, sequence, sequence, starts, ends)

    def decode(self, rows: Sequence[Ids]) -> list[str]:
        return [self._spelled(row) for row in rows]

    def chat_frame(self, turns: Sequence[tuple[str, str]]) -> tuple[str, str]:
        raise ConfigError(self.no_chat)

    def _id(self, text: str, start: int, end: int, space: str) -> int:
        """Return the id of a piece: the same in every process, so that a run can continue; 63 bits do not collide."""
        # In some scripts a word may begin where another ends; such a piece, attached to the text before it, has an id
        # of its own, and nothing is put between the two.
        piece = space + text[start:end]
        attached = runs_on(text[max(0, start - TAIL) : start], piece)
        spelled = piece.encode("utf-8", "surrogatepass") + (b"\0attached" if attached else b"")
        index = int.from_bytes(hashlib.blake2b(spelled, digest_size=8).digest(), "little") >> 1
        self._pieces[index] = piece, attached
        return index

    def _spelled(self, ids: Ids) -> str:
        """Return the text of pieces, with a space between words that a removal joined ("well(done)" -> "well done")."""
        text = ""
        for piece, attached in (self._pieces[int(i)] for i in ids):
            text += f" {piece}" if not attached and runs_on(text, piece) else piece
        return text


class TextCodec(_PieceCodec):
    r"""A text in words, each with the space before it, as most tokenizers cut it; together they spell the text exactly.

    ```text
    Review: a  fine film\nSentiment:   ->   [Review][:][ a][ ][ fine][ film][\n][Sentiment][:]
    ```
    """

    reads_pairs = False
    no_chat = "how a chat is written for this model is known from its tokenizer; give --tokenizer, or leave out --chat."

    def _cut(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield words with one space before them; other spaces by themselves."""
        place = 0
        for start, end in word_spans(text):
            if start > place and text[start - 1] == " ":
                start -= 1
            if start > place:
                yield place, start, ""
            yield start, end, ""
            place = end
        if place < len(text):
            yield place, len(text), ""


class WordCodec(_PieceCodec):
    """Words as tokens, of a text or of a pair; each records the space or the line breaks before it."""

    reads_pairs: Literal["bare"] = "bare"
    no_chat = "a function has no chat template; leave out --chat."

    def _cut(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield words, with a space for any before them, but line breaks as they are: a prompt must read as written."""
        for start, end in word_spans(text):
            space = text[len(text[:start].rstrip()) : start]
            # The first word counts as one after a space, or it would differ from the others when moved.
            yield start, end, space if "\n" in space else " " if space or not start else ""

    def decode(self, rows: Sequence[Ids]) -> list[str]:
        return [text.strip() for text in super().decode(rows)]


class FunctionModel(Model):
    """A function that returns probabilities only: no attention, no gradients."""

    def __init__(self, function: LabelFunction, *, name: str) -> None:
        self.name = name
        self._function = function
        self.codec = WordCodec()

    @property
    def fingerprint(self) -> str:
        """Return its name: the behaviour of a function cannot be hashed."""
        return self.name

    def labels(self, task: Task, *, scoring: LabelScoring | None = None) -> Labels:
        if task.chat:
            raise ConfigError(f"{self.name} is a function and has no chat; leave out --chat.")
        _, second = rendered(self.codec, task, dict.fromkeys(task.template.fields, ""))
        places = tuple((index,) for index in range(len(task.labels)))
        return Labels(task.labels, places, are_classes=True, of_pairs=bool(second))

    def log_scores(self, batch: Inputs, labels: Labels, *, prefix: int = 0) -> LogScores:
        clipped = np.clip(self._returned(batch, labels), _SMALLEST, None)
        with np.errstate(invalid="ignore"):  # an infinite row becomes NaN, which is reported with its example
            return np.log(clipped) - np.log(clipped.sum(axis=1, keepdims=True))  # type: ignore[no-any-return]

    def doubts(self, batch: Inputs, labels: Labels) -> list[str]:
        sums = self._returned(batch, labels).sum(axis=1)
        sums = sums[np.isfinite(sums)]
        if np.abs(sums - 1).max(initial=0.0) <= _SUM_TOLERANCE:
            return []
        return [
            f"the rows that the function {self.name} returns do not sum to 1 (the sums are {sums.min():.3g} to "
            f"{sums.max():.3g}): every row is divided by its sum. If they are logits or separate yes-or-no "
            "probabilities, return a softmax over the labels instead."
        ]

    def _returned(self, batch: Inputs, labels: Labels) -> NDArray[np.float64]:
        """Return what the function returns, (rows, labels); raise ModelError if that can be no probabilities."""
        given = "pairs of texts" if labels.of_pairs else "texts"
        with reported(f"the function {self.name}, given {given}, failed"):
            found = np.asarray(self._function(self._texts(batch, pairs=labels.of_pairs)), dtype=np.float64)
        if found.shape != (len(batch), len(labels.names)):
            raise ModelError(
                f"the function {self.name} returned shape {found.shape} for {len(batch)} texts and "
                f"{len(labels.names)} labels ({', '.join(labels.names)}); a row of probabilities per text is expected."
            )
        if (found < 0).any():
            raise ModelError(f"the function {self.name} returned negative values; probabilities are expected.")
        return found

    def default_budget(self) -> int:
        return 65_536

    def _texts(self, batch: Inputs, *, pairs: bool) -> list[str] | list[tuple[str, str]]:
        """Return the text of each row, or its two texts."""
        if not pairs:
            return self.codec.decode([batch.row(index) for index in range(len(batch))])
        found = []
        for start, end in pairwise(batch.offsets.tolist()):
            ids, in_second = batch.ids[start:end], batch.segments[start:end] == 1
            first, second = self.codec.decode([ids[~in_second], ids[in_second]])
            found.append((first, second))
        return found


def is_function(ref: object) -> bool:
    """Return True for a function as a model: itself, its path `python:module:function`, or its `FunctionModel`."""
    return isinstance(ref, FunctionModel) or callable(ref) or (isinstance(ref, str) and ref.startswith("python:"))


def from_path(path: str) -> FunctionModel:
    """Import `module:function` as Python would from the current folder."""
    module, _, name = path.partition(":")
    if not module or not name:
        raise ConfigError(f"'python:{path}' names no function; write python:module:function.")
    sys.path.insert(0, os.getcwd())
    try:
        with reported(f"'python:{path}' cannot be imported", ConfigError):
            function = getattr(importlib.import_module(module), name)
    finally:
        sys.path.remove(os.getcwd())
    if not callable(function):
        raise ConfigError(f"'python:{path}' is not a function.")
    return FunctionModel(function, name=path)
