"""Rows in, log-scores out, in the order they came: de-duplicated, sorted by length, packed by a token budget."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ice_eval.errors import OutOfMemoryError
from ice_eval.models import Labels, Model
from ice_eval.records import LogScores, ModelInput

Progress = Callable[[int], None]
"""Called with the number of rows just answered."""


@dataclass
class Counts:
    """What scoring cost so far."""

    rows: int = 0
    """Logical rows, asked for."""
    forwards: int = 0
    """Rows that went through the model: duplicates are answered once."""
    tokens: int = 0
    """Tokens computed, the shared prefix left out."""


class Scorer:
    """One stream of rows through one model.

    Args:
        model: Answers a batch.
        labels: The labels it is asked for.
        budget: Tokens in a batch, padding included and the shared prefix left out; a batch holds one row at least.
    """

    def __init__(self, model: Model, labels: Labels, *, budget: int) -> None:
        self.model = model
        self.labels = labels
        self.budget = budget
        self.counts = Counts()
        self.halvings = 0
        """How often the device ran out of memory and the budget was halved."""

    def score(self, rows: Sequence[ModelInput], *, prefix: int = 0, progress: Progress | None = None) -> LogScores:
        """Log-scores of `rows`, whose first `prefix` ids are all the same."""
        unique: dict[tuple[bytes, bytes], int] = {}
        place = np.array([unique.setdefault(row.key(), len(unique)) for row in rows], dtype=np.int64)
        share = np.bincount(place, minlength=len(unique))
        first = {index: row for row, index in zip(reversed(rows), reversed(place.tolist()), strict=True)}
        distinct = [first[index] for index in range(len(unique))]
        scores = np.full((len(distinct), len(self.labels.names)), np.nan)
        for batch in self._batches(distinct, prefix):
            self._fill(scores, batch, distinct, prefix)
            if progress is not None:
                progress(int(share[batch].sum()))
        self.counts.rows += len(rows)
        return scores[place]

    def _batches(self, rows: Sequence[ModelInput], prefix: int) -> Iterator[list[int]]:
        """Indices of rows, longest first, so that memory runs out early or not at all and little is padded."""
        lengths = np.array([len(row.ids) - prefix for row in rows])
        order = np.argsort(-lengths, kind="stable").tolist()
        while order:
            size = max(1, self.budget // max(1, int(lengths[order[0]])))
            yield order[:size]
            order = order[size:]

    def _fill(self, scores: LogScores, batch: list[int], rows: Sequence[ModelInput], prefix: int) -> None:
        try:
            scores[batch] = self.model.log_scores([rows[index] for index in batch], self.labels, prefix=prefix)
        except OutOfMemoryError:
            if len(batch) == 1:
                raise
            self.halvings += 1
            self.budget = max(1, self.budget // 2)
            half = (len(batch) + 1) // 2
            self._fill(scores, batch[:half], rows, prefix)
            self._fill(scores, batch[half:], rows, prefix)
            return
        self.counts.forwards += len(batch)
        self.counts.tokens += sum(len(rows[index].ids) - prefix for index in batch)
