"""Any function from texts to label probabilities: a scikit-learn pipeline, a rules engine, a remote service."""

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ice_eval.encoding import Tokens
from ice_eval.errors import ConfigError, ModelError
from ice_eval.models._base import Model
from ice_eval.models._pieces import Pieces
from ice_eval.models._records import Labels, LabelScoring
from ice_eval.records import Ids, Inputs, LogScores, SpecialIds
from ice_eval.tasks import Task
from ice_eval.words import TAIL, word_spans

LabelFunction = Callable[[list[Any]], Any]
"""Takes a list of texts (of pairs of texts, for tasks with two fields) and returns (texts, labels) probabilities."""

_SMALLEST = 1e-9
"""Probabilities are clipped here: the log of a certain "no" is not finite."""


class WordCodec:
    """Words as tokens; each remembers whether a space stood before it, so that texts can be put together again."""

    reads_pairs = True
    max_tokens = 1_000_000
    special = SpecialIds()

    def __init__(self) -> None:
        self._pieces = Pieces()

    def tokenize(self, text: str, pair: str | None = None, *, framed: bool = False) -> Tokens:
        texts = [text] if pair is None else [text, pair]
        found = [(index, *span) for index, part in enumerate(texts) for span in word_spans(part)]
        ids = [self._id(texts[index], start, end) for index, start, end in found]
        sequence, starts, ends = np.array(found, dtype=np.int64).reshape(-1, 3).T
        return Tokens(np.array(ids, dtype=np.int64), sequence, sequence, starts, ends)

    def writes_special(self, text: str) -> bool:
        return False

    def chat_frame(self, turns: Sequence[tuple[str, str]]) -> tuple[str, str]:
        raise ConfigError("a function has no chat template; leave out --chat.")

    def decode(self, rows: Sequence[Ids]) -> list[str]:
        return [self._pieces.spelled(row).strip() for row in rows]

    def _id(self, text: str, start: int, end: int) -> int:
        # The first word of a text would be set apart from others if it were moved elsewhere.
        apart = start == 0 or text[start - 1].isspace()
        before = text[max(0, start - TAIL) : start]
        return self._pieces.id_of((" " if apart else "") + text[start:end], before=before)


class FunctionModel(Model):
    """A function that is asked for probabilities and for nothing else: no attention, no gradients."""

    def __init__(self, function: LabelFunction, *, name: str) -> None:
        self.name = name
        self._function = function
        self._codec = WordCodec()

    @property
    def codec(self) -> WordCodec:
        return self._codec

    @property
    def fingerprint(self) -> str:
        """Its name: what a function does cannot be hashed."""
        return self.name

    def labels(self, task: Task, *, scoring: LabelScoring | None = None) -> Labels:
        if task.chat:
            raise ConfigError(f"{self.name} is a function and has no chat; leave out --chat.")
        return Labels(task.labels, tuple((index,) for index in range(len(task.labels))), are_classes=True)

    def log_scores(self, batch: Inputs, labels: Labels, *, prefix: int = 0) -> LogScores:
        try:
            answer = np.asarray(self._function(self._texts(batch)), dtype=np.float64)
        except Exception as exc:  # it is the user's function: whatever it raises is reported as its failure
            raise ModelError(f"the function {self.name} failed: {type(exc).__name__}: {exc}") from exc
        if answer.shape != (len(batch), len(labels.names)):
            raise ModelError(
                f"the function {self.name} returned shape {answer.shape} for {len(batch)} texts and "
                f"{len(labels.names)} labels ({', '.join(labels.names)}); a row of probabilities per text is expected."
            )
        if (answer < 0).any():
            raise ModelError(f"the function {self.name} returned negative values; probabilities are expected.")
        clipped = np.clip(answer, _SMALLEST, None)
        scores: LogScores = np.log(clipped) - np.log(clipped.sum(axis=1, keepdims=True))
        return scores

    def default_budget(self) -> int:
        return 65_536

    def _texts(self, batch: Inputs) -> list[str | tuple[str, str]]:
        """The text of each row, or its two texts where it has tokens of both."""
        bounds = list(pairwise(batch.offsets.tolist()))
        ids, second = ([flat[start:end] for start, end in bounds] for flat in (batch.ids, batch.segments == 1))
        return [
            self._pair(row[~in_second], row[in_second]) if in_second.any() else self._codec.decode([row])[0]
            for row, in_second in zip(ids, second, strict=True)
        ]

    def _pair(self, first: Ids, second: Ids) -> tuple[str, str]:
        one, other = self._codec.decode([first, second])
        return one, other


def from_path(path: str) -> FunctionModel:
    """`module:function`, imported as Python would from the present folder."""
    module, _, name = path.partition(":")
    if not module or not name:
        raise ConfigError(f"'python:{path}' names no function; write python:module:function.")
    sys.path.insert(0, os.getcwd())
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as exc:
        raise ConfigError(f"'python:{path}' cannot be imported: {exc}.") from exc
    finally:
        sys.path.remove(os.getcwd())
    if not callable(function):
        raise ConfigError(f"'python:{path}' is no function.")
    return FunctionModel(function, name=path)
