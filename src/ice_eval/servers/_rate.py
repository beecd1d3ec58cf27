"""How many requests are under way at once, and how long to wait before the next try."""

import asyncio
import contextlib
import email.utils
import random
import time
from collections.abc import AsyncIterator, Mapping


class Limiter:
    """At most so many requests at once as the server bears: one more per round of answers, half when it is too busy.

    Requests that were under way together share one halving: ten refusals at a time say no more than one.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._limit = float(most)
        self._under_way = 0
        self._round = 0
        self._resume_at = 0.0
        self._over = False
        self._changed = asyncio.Event()

    @property
    def limit(self) -> int:
        """Requests that may be under way at once."""
        return int(self._limit)

    @contextlib.asynccontextmanager
    async def slot(self) -> AsyncIterator[int]:
        """Wait for a turn and hold it; gives the round that the request belongs to."""
        while not self._over and ((pause_s := self._pause_s()) or self._under_way >= self.limit):
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), pause_s)
        self._under_way += 1
        try:
            yield self._round
        finally:
            self._under_way -= 1
            self._changed.set()

    def keeps_up(self) -> None:
        """The server has answered: one more after as many answers as may be under way."""
        self._limit = min(self._most, self._limit + 1 / self._limit)
        self._changed.set()

    def too_busy(self, turn: int, *, pause_s: float = 0.0) -> None:
        """The server does not keep up: halve, once for all requests of a round, and let nobody ask for a while."""
        if turn == self._round:
            self._round += 1
            self._limit = max(1.0, self._limit / 2)
        self._resume_at = max(self._resume_at, time.monotonic() + pause_s)

    def let_go(self) -> None:
        """Nothing more will be asked: nobody need wait for a turn."""
        self._over = True
        self._changed.set()

    def _pause_s(self) -> float | None:
        """Seconds until anybody may ask again; None where they may."""
        pause_s = self._resume_at - time.monotonic()
        return pause_s if pause_s > 0 else None


def backoff_s(attempt: int, *, first_s: float, most_s: float, rng: random.Random) -> float:
    """Seconds to wait after the given failed attempt (from 1): doubled each time, the latter half at random.

    Without chance, all requests that failed together would come back together.
    """
    whole = min(most_s, first_s * 2.0 ** min(attempt - 1, 100))  # beyond, a float overflows
    return whole * rng.uniform(0.5, 1.0)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait: `Retry-After` as a number or a date, or `retry-after-ms`."""
    with contextlib.suppress(KeyError, ValueError):
        return max(0.0, float(headers["retry-after-ms"]) / 1000)
    with contextlib.suppress(KeyError, ValueError):
        return max(0.0, float(headers["retry-after"]))
    with contextlib.suppress(KeyError, ValueError):
        return max(0.0, email.utils.parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time())
    return None
