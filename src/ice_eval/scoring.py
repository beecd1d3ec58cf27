"""Rows in, log-scores out, in the order they came: de-duplicated, sorted by length, packed by a token budget."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ice_eval.errors import OutOfMemoryError
from ice_eval.models import Labels, Model, Pending
from ice_eval.records import Ids, LogScores, ModelInput

Progress = Callable[[int], None]
"""Called with the number of rows just answered, or on their way."""

_UNEVEN = 4
"""A batch may take this many times its budget if all its rows were as long as the longest: attention pads."""


@dataclass
class Counts:
    """What scoring cost so far."""

    rows: int = 0
    """Logical rows, asked for."""
    forwards: int = 0
    """Rows that went through the model: duplicates are answered once."""
    tokens: int = 0
    """Tokens computed: what rows share, the prefix above all, is left out."""


@dataclass
class Submitted:
    """Rows that are being scored."""

    place: Ids
    """(rows,): which of the distinct rows each is."""
    n_labels: int
    batches: list[tuple[list[int], Pending]] = field(default_factory=list)

    def collect(self) -> LogScores:
        """Log-scores of all rows, as soon as they are there."""
        n_distinct = int(self.place.max(initial=-1)) + 1
        scores = np.full((n_distinct, self.n_labels), np.nan)
        for batch, pending in self.batches:
            scores[batch] = pending.collect()
        return scores[self.place]


class Scorer:
    """One stream of rows through one model.

    Args:
        model: Answers a batch.
        labels: The labels it is asked for.
        budget: Tokens in a batch, the shared prefix left out; a batch holds one row at least.
        lowered: Smaller budgets for rows of some lengths, as an earlier part of the run found them.
    """

    def __init__(self, model: Model, labels: Labels, *, budget: int, lowered: Mapping[int, int] | None = None) -> None:
        self.model = model
        self.labels = labels
        self.budget = budget
        self.lowered = dict(lowered or {})
        """Length up to which (a power of two) -> budget, where memory did not reach for the first one."""
        self.counts = Counts()
        self.halvings = 0
        """How often the device ran out of memory and a budget was halved."""

    def score(self, rows: Sequence[ModelInput], *, prefix: int = 0, progress: Progress | None = None) -> LogScores:
        """Log-scores of `rows`, whose first `prefix` ids are all the same."""
        return self.submit(rows, prefix=prefix, progress=progress).collect()

    def submit(self, rows: Sequence[ModelInput], *, prefix: int = 0, progress: Progress | None = None) -> Submitted:
        """Send rows to the model, and go on: the host prepares a batch while the device works on the one before."""
        unique: dict[tuple[bytes, bytes], int] = {}
        place = np.array([unique.setdefault(row.key(), len(unique)) for row in rows], dtype=np.int64)
        share = np.bincount(place, minlength=len(unique))
        first = {index: row for row, index in zip(reversed(rows), reversed(place.tolist()), strict=True)}
        distinct = [first[index] for index in range(len(unique))]
        submitted = Submitted(place, len(self.labels.names))
        for batch in self._batches(distinct, prefix):
            submitted.batches += self._sent(batch, distinct, prefix)
            if progress is not None:
                progress(int(share[batch].sum()))
        self.counts.rows += len(rows)
        return submitted

    def _batches(self, rows: Sequence[ModelInput], prefix: int) -> Iterator[list[int]]:
        """Indices of rows, longest first, so that memory runs out early or not at all and little is padded.

        Among rows of equal length those that begin alike are neighbours: a model may compute once what they share.
        """
        lengths = np.array([max(1, len(row.ids) - prefix) for row in rows], dtype=np.int64)
        by_beginning = sorted(range(len(rows)), key=lambda i: (-len(rows[i].ids), rows[i].ids[prefix:].tolist()))
        order = np.array(by_beginning, dtype=np.int64)
        while order.size:
            longest, budget = int(lengths[order[0]]), self._budget(int(lengths[order[0]]))
            room = budget // longest
            if not self.model.pads:
                together = int(np.searchsorted(np.cumsum(lengths[order]), budget, side="right"))
                room = min(together, _UNEVEN * room)
            size = max(1, room)
            yield order[:size].tolist()
            order = order[size:]

    def _budget(self, longest: int) -> int:
        return self.lowered.get(_bucket(longest), self.budget)

    def _sent(self, batch: list[int], rows: Sequence[ModelInput], prefix: int) -> list[tuple[list[int], Pending]]:
        try:
            pending = self.model.submit([rows[index] for index in batch], self.labels, prefix=prefix)
        except OutOfMemoryError as exc:
            if len(batch) == 1:
                raise OutOfMemoryError(
                    f"an input of {len(rows[batch[0]].ids)} tokens does not fit into the memory of the device, even "
                    f"alone ({exc}); use a smaller model, another dtype or device, or shorter texts."
                ) from exc
        else:
            self.counts.forwards += len(batch)
            self.counts.tokens += pending.tokens
            return [(batch, pending)]
        self.halvings += 1
        bucket = _bucket(max(1, len(rows[batch[0]].ids) - prefix))
        self.lowered[bucket] = max(1, self._budget(bucket) // 2)
        half = (len(batch) + 1) // 2
        return self._sent(batch[:half], rows, prefix) + self._sent(batch[half:], rows, prefix)


def _bucket(length: int) -> int:
    """The smallest power of two that is no shorter."""
    return 1 << (length - 1).bit_length()
