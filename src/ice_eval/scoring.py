"""Scoring of rows: de-duplicated, sorted by length, batched by a token budget; results in the original order."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

import numpy as np

from ice_eval.encoding import common_start
from ice_eval.errors import OutOfMemoryError
from ice_eval.models import Labels, Model, Pending
from ice_eval.records import Ids, Inputs, LogScores

Progress = Callable[[int], None]
"""Called with the number of rows just sent to the model."""

_BRANCHING = 8
"""Largest ratio of padded batch size to budget for rows that share long beginnings."""
_UNEVEN = 4
"""Largest ratio of padded batch size to budget, since attention pads rows to the longest."""


LARGEST_NOISE = 0.05
"""Largest change of a probability that rounding explains where an input is scored alone, in types of 16 bits."""
BATCHES = "depend on the other inputs of a batch"
"""Part of every message about that."""


def depends_on_batch(model: Model, rows: Inputs, labels: Labels, *, prefix: int = 0) -> str | None:
    """Return a warning if the scores of a few rows are others where each is scored alone; None if they are not."""
    alone, together = model.again(rows, labels, prefix=prefix), model.log_scores(rows, labels, prefix=prefix)
    known = np.isfinite(alone) & np.isfinite(together)  # a score that is a number in neither belongs to its example
    change = float(np.abs(np.exp(alone[known]) - np.exp(together[known])).max(initial=0.0))
    if n_apart := np.count_nonzero((np.isfinite(alone) != np.isfinite(together)).any(axis=1)):
        how = f"{n_apart} of {len(rows)} inputs have a score only alone or only with others, else NaN or infinity."
    elif change > LARGEST_NOISE:
        how = (
            f"a probability changes by {change:.2f} where an input is scored alone. --token-budget 1 scores each alone."
        )
    else:
        return None
    return f"the scores of {model.name} {BATCHES}: {how}"


@dataclass
class ScoringCounts:
    """Costs of scoring so far."""

    rows: int = 0
    """Requested rows."""
    forwards: int = 0
    """Rows computed by the model, without duplicates."""
    tokens: int = 0
    """Computed tokens; shared ones such as the prefix count at most once."""


@dataclass
class Submitted:
    """Rows that are being scored."""

    place: Ids
    """(rows,): index of each row among the distinct ones."""
    scores: LogScores
    """(distinct rows, labels): those that are known."""
    batches: list[tuple[Ids, Pending]] = field(default_factory=list)
    """The others."""

    def collect(self) -> LogScores:
        """Wait for the log-scores of all rows and return them."""
        while self.batches:
            batch, pending = self.batches.pop(0)
            self.scores[batch] = pending.collect()
        return self.scores[self.place]


class Scorer:
    """Scores rows with one model."""

    def __init__(self, model: Model, labels: Labels, *, budget: int, lowered: Mapping[int, int] | None = None) -> None:
        self.model = model
        self.labels = labels
        self.budget = budget
        """Tokens per batch, without the shared prefix; a batch holds at least one row."""
        self.lowered = dict(lowered or {})
        """Largest length (a power of two) -> budget lowered after running out of memory, perhaps in an earlier run."""
        self.counts = ScoringCounts()
        self.halvings = 0
        """Number of out-of-memory retries, each with half the budget."""

    def score(self, rows: Inputs, *, prefix: int = 0, progress: Progress | None = None) -> LogScores:
        """Return the log-scores of `rows`, which share their first `prefix` ids."""
        return self.submit(rows, prefix=prefix, progress=progress).collect()

    def submit(
        self,
        rows: Inputs,
        *,
        prefix: int = 0,
        progress: Progress | None = None,
        known: Mapping[bytes, LogScores] | None = None,
    ) -> Submitted:
        """Send rows to the model without waiting: the host prepares a batch while the device computes the last one.

        `known` holds scores by the key of their row; these rows are not computed.
        """
        unique: dict[bytes, int] = {}
        place = np.array([unique.setdefault(key, len(unique)) for key in rows.keys], dtype=np.int64)
        share = np.bincount(place, minlength=len(unique))
        # A row is the first of its kind if its index is higher than those of all rows before it.
        first = np.flatnonzero(np.diff(np.maximum.accumulate(place), prepend=-1))
        submitted = Submitted(place, np.full((len(unique), len(self.labels.names)), np.nan))
        known = known or {}
        for key in known.keys() & unique.keys():
            submitted.scores[unique[key]] = known[key]
        new = np.array([index for key, index in unique.items() if key not in known], dtype=np.int64)
        if progress is not None and known:
            progress(len(rows) - int(share[new].sum()))
        distinct = rows.take(first[new])
        for batch in self._batches(distinct, prefix):
            waiting = [batch]
            while waiting:
                now = waiting.pop()
                try:
                    pending = self.model.submit(distinct.take(now), self.labels, prefix=prefix)
                except OutOfMemoryError as exc:
                    waiting += self._halves(now, int(distinct.lengths[now[0]]), prefix, exc)
                    continue
                self.counts.forwards += len(now)
                self.counts.tokens += pending.tokens
                submitted.batches.append((new[now], pending))
            if progress is not None:
                progress(int(share[new[batch]].sum()))
        self.counts.rows += len(rows)
        return submitted

    def _batches(self, rows: Inputs, prefix: int) -> Iterator[Ids]:
        """Yield indices of rows, longest first, so that memory runs out early or not at all and padding is small."""
        if self.labels.scoring == "given" and not self.model.pads:
            yield from self._branches(rows, prefix)
            return
        order = _order(rows, prefix)
        lengths = np.maximum(1, rows.lengths[order] - prefix)
        ends, cuts, start = np.cumsum(lengths), _cuts(lengths, self.model.pass_tokens, self.budget), 0
        while start < len(order):
            longest = int(lengths[start])
            budget = self.lowered.get(_bucket(longest), self.budget)
            room = budget // longest
            if not self.model.pads:
                together = int(np.searchsorted(ends, ends[start] - longest + budget, side="right")) - start
                room = min(together, _UNEVEN * room)
            cut = cuts[np.searchsorted(cuts, start, side="right")]
            stop = min(start + max(1, room), int(cut))
            yield order[start:stop]
            start = stop

    def _branches(self, rows: Inputs, prefix: int) -> Iterator[Ids]:
        """Yield indices of rows with a common beginning, which is computed once: contexts of many passages are long.

        A batch computes at most the budget of tokens, but one row at least.
        """
        order = _by_ids(rows, prefix)
        lengths, batch, n_tokens, longest = rows.lengths - prefix, list[int](), 0, 0
        for row in order.tolist():
            new = int(lengths[row])
            shared = common_start([rows.row(batch[-1])[prefix:], rows.row(row)[prefix:]]) if batch else 0
            budget = self.lowered.get(_bucket(max(1, longest, new)), self.budget)
            padded = max(longest, new) * (len(batch) + 1)
            if batch and (n_tokens + new - shared > budget or padded > _BRANCHING * budget):
                yield np.array(batch)
                batch, n_tokens, longest, shared = [], 0, 0, 0
            batch.append(row)
            n_tokens, longest = n_tokens + new - shared, max(longest, new)
        if batch:
            yield np.array(batch)

    def _halves(self, batch: Ids, longest: int, prefix: int, exc: OutOfMemoryError) -> list[Ids]:
        """Return the halves of a batch that did not fit, the first one last, and lower the budget of its length."""
        if len(batch) == 1:
            raise OutOfMemoryError(
                f"an input of {longest} tokens does not fit into the memory of the device, even "
                f"alone ({exc}); use a smaller model, another dtype or device, or shorter texts."
            ) from exc
        self.halvings += 1
        bucket = _bucket(max(1, longest - prefix))
        self.lowered[bucket] = max(1, self.lowered.get(bucket, self.budget) // 2)
        half = (len(batch) + 1) // 2
        return [batch[half:], batch[:half]]


def _order(rows: Inputs, prefix: int) -> Ids:
    """Return the order of rows: longest first, then by ids, so that rows with a common start are neighbours."""
    by_ids = _by_ids(rows, prefix)
    order: Ids = by_ids[np.argsort(-rows.lengths[by_ids], kind="stable")]
    return order


def _by_ids(rows: Inputs, prefix: int) -> Ids:
    """Return rows sorted by their ids after a prefix: rows with a common beginning are neighbours."""
    # Bytes compare as the numbers do where the highest byte comes first.
    ids = rows.ids.astype(">i8").tobytes()
    keys = [ids[8 * (start + prefix) : 8 * end] for start, end in pairwise(rows.offsets.tolist())]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


def _cuts(lengths: Ids, pass_tokens: int, budget: int) -> Ids:
    """Return the ends of the cheapest batches of sorted rows; the cost is padded tokens plus `pass_tokens` per pass."""
    if not pass_tokens or not len(lengths):
        return np.array([len(lengths)])
    starts = np.flatnonzero(np.diff(lengths, prepend=0))
    ends = np.append(starts[1:], len(lengths))
    cost, before = np.zeros(len(starts) + 1), np.zeros(len(starts), dtype=np.int64)
    for last, end in enumerate(ends):  # over lengths that occur: a group begins with one and ends with another
        tokens = lengths[starts[: last + 1]] * (end - starts[: last + 1])
        every = cost[: last + 1] + tokens + pass_tokens * -(-tokens // budget)
        before[last] = np.argmin(every)
        cost[last + 1] = every[before[last]]
    cuts, last = list[int](), len(ends)
    while last:
        cuts.append(int(ends[last - 1]))
        last = int(before[last - 1])
    return np.array(cuts[::-1])


def _bucket(length: int) -> int:
    """Return the smallest power of two that is at least `length`."""
    return 1 << (length - 1).bit_length()


# --- progress -------------------------------------------------------------------------------------------------------


class Reporter(Protocol):
    """Receiver of progress and messages."""

    def say(self, message: str) -> None:
        """Show a message to the user."""

    def start(self, total: int, counted: str = "rows", *, examples: int = 0) -> None:
        """Begin with an estimate of the total number of rows, or of what else is counted.

        People are shown the share of the rows as a number of `examples`, if these are given.
        """

    def advance(self, rows: int, *, scored: bool = True) -> None:
        """Count rows that were just scored, or found in the folder."""

    def correct(self, total: int) -> None:
        """Replace the estimate of the total."""

    def stop(self) -> None:
        """End progress: the last row is scored, or the run ended early."""

    def asked_to_stop(self) -> bool:
        """Return True if no further part should be started; started parts are finished and written."""


class Silent:
    """A reporter that ignores everything."""

    def say(self, message: str) -> None: ...
    def start(self, total: int, counted: str = "rows", *, examples: int = 0) -> None: ...
    def advance(self, rows: int, *, scored: bool = True) -> None: ...
    def correct(self, total: int) -> None: ...
    def stop(self) -> None: ...
    def asked_to_stop(self) -> bool:
        return False
