"""`responses.jsonl`, which holds every answer of a server, and limits on the cost and the rate of requests."""

import asyncio
import contextlib
import email.utils
import json
import os
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, Self, TypeVar

from ice_eval.errors import ConfigError, StorageError
from ice_eval.files import check_target, exclusive, sync_folder
from ice_eval.servers.exchange import NO_TOKENS, Question, Response, TokenUsage


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits on the total of a `responses.jsonl`, over several runs."""

    max_requests: int | None = None
    """Number of charged requests, with or without an answer."""
    max_cost: float | None = None
    """In the currency of the prices."""
    price_in: float | None = None
    """Price of a million prompt tokens."""
    price_out: float | None = None
    """Price of a million answer tokens."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and not 0 <= value < float("inf"):
                flag = name.replace("_", "-")
                raise ConfigError(f"--{flag} is {value}; expected a number that is not negative.")
        if (self.price_in is None) != (self.price_out is None):
            raise ConfigError("only one of --price-in and --price-out is given; give both, in the same currency.")
        if self.max_cost is not None and self.price_in is None:
            raise ConfigError("--max-cost needs --price-in and --price-out, the prices of a million tokens.")

    def cost(self, tokens: TokenUsage) -> float | None:
        """Return the price of the tokens; None without prices."""
        if self.price_in is None or self.price_out is None:
            return None
        return (tokens.prompt * self.price_in + tokens.completion * self.price_out) / 1e6

    def exceeded(self, n_requests: int, tokens: TokenUsage) -> str | None:
        """Return a description of the limit that these requests and tokens would exceed, or None."""
        if self.max_requests is not None and n_requests > self.max_requests:
            return f"{self.max_requests} requests (--max-requests)"
        cost = self.cost(tokens)
        if cost is not None and self.max_cost is not None and cost > self.max_cost:
            return f"{self.max_cost:g} (--max-cost)"
        return None


@dataclass(frozen=True, kw_only=True)
class RequestPlan:
    """Requests to send, and an upper estimate of their cost."""

    n_requests: int
    """Number of distinct requests."""
    n_answered: int
    """Number of requests that are already answered and cost nothing."""
    tokens: TokenUsage
    """Upper estimate for the unanswered requests."""
    cost: float | None
    """Price of `tokens`; None without prices."""
    cost_so_far: float | None

    @property
    def n_to_ask(self) -> int:
        return self.n_requests - self.n_answered

    def __str__(self) -> str:
        prompt, completion = self.tokens
        lines = [
            f"{self.n_requests:,} requests, {self.n_answered:,} of them answered already: {self.n_to_ask:,} to ask",
            f"at most about {prompt:,} tokens to read and {completion:,} to write",
        ]
        if self.cost is not None and self.cost_so_far is not None:
            lines.append(f"at most about {self.cost:.2f}, beside {self.cost_so_far:.2f} spent so far")
        return "\n".join(lines)


class Spending:
    """Keeps a run within its budget while the price of requests in flight is unknown.

    A request reserves its upper estimate. If that does not fit, it waits for requests in flight, which mostly cost less
    than reserved; the limit is reached only when none is left.
    """

    def __init__(self, budget: Budget, *, n_charged: int, billed: TokenUsage) -> None:
        self._budget = budget
        self._n, self._tokens = n_charged, billed  # charged and reserved together
        self._in_flight = 0
        self._changed = asyncio.Event()

    async def reserve(self, most: TokenUsage) -> str | None:
        """Reserve the cost of one attempt, or return a description of the limit reached."""
        while limit := self._budget.exceeded(self._n + 1, self._tokens.plus(most)):
            if not self._in_flight:
                return limit
            self._changed.clear()
            await self._changed.wait()
        self._n += 1
        self._tokens = self._tokens.plus(most)
        self._in_flight += 1
        return None

    def landed(self) -> None:
        """Count an attempt as ended, whatever its result."""
        self._in_flight -= 1
        self._changed.set()

    def replace(self, n_reserved: int, most: TokenUsage, *, n_charged: int = 0, billed: TokenUsage = NO_TOKENS) -> None:
        """Replace reservations by actual charges."""
        self._n += n_charged - n_reserved
        self._tokens = self._tokens.plus(most.times(-n_reserved)).plus(billed)
        self._changed.set()


class Limiter:
    """Adapts the number of requests in flight: one more per round of answers, half if the server is too busy.

    Requests that were in flight together halve it only once.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._limit = float(most)
        self._in_flight = 0
        self._round = 0
        self._resume_at = 0.0
        self._stopped = False
        self._changed = asyncio.Event()

    @property
    def limit(self) -> int:
        return int(self._limit)

    @contextlib.asynccontextmanager
    async def slot(self) -> AsyncIterator[int]:
        """Wait for a free slot and hold it; yield the round of the request."""
        while not self._stopped:
            pause_s = self._resume_at - time.monotonic()
            if pause_s <= 0 and self._in_flight < self.limit:
                break
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), pause_s if pause_s > 0 else None)
        self._in_flight += 1
        try:
            yield self._round
        finally:
            self._in_flight -= 1
            self._changed.set()

    def speed_up(self) -> None:
        """Count an answer: the limit grows by one after `limit` answers."""
        self._limit = min(self._most, self._limit + 1 / self._limit)
        self._changed.set()

    def slow_down(self, turn: int, *, pause_s: float = 0.0) -> None:
        """Halve the limit, once for all requests of a round, and pause."""
        if turn == self._round:
            self._round += 1
            self._limit = max(1.0, self._limit / 2)
        self._resume_at = max(self._resume_at, time.monotonic() + pause_s)

    def stop(self) -> None:
        """End all waiting: no more requests will be sent."""
        self._stopped = True
        self._changed.set()


def backoff_s(attempt: int, *, first_s: float, most_s: float, rng: random.Random) -> float:
    """Return the pause after a failed attempt (from 1): doubled each time, its latter half random to spread repeats."""
    whole = min(most_s, first_s * 2.0 ** min(attempt - 1, 100))  # beyond, a float overflows
    return whole * rng.uniform(0.5, 1.0)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the pause that a server requests: `Retry-After` as a number or a date, or `retry-after-ms`."""
    with contextlib.suppress(KeyError, ValueError):
        return max(0.0, float(headers["retry-after-ms"]) / 1000)
    with contextlib.suppress(KeyError, ValueError):
        return max(0.0, float(headers["retry-after"]))
    with contextlib.suppress(KeyError, ValueError):
        return max(0.0, email.utils.parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time())
    return None


RESPONSES = "responses.jsonl"
_Question = TypeVar("_Question", bound=Question)


class ResponseStore:
    """An append-only file of responses that one process at a time may write.

    A kill can leave an incomplete last line; readers skip it, and the next writer removes it. Enter the store (`with
    ResponseStore(path) as store:`) to read the file and lock it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.responses: dict[str, Response] = {}  # by the key of the request
        self.billed = NO_TOKENS  # total tokens of the file
        self.n_charged = 0  # requests that were, or may have been, charged
        self.limits = set[int]()  # of written tokens, in requests that were answered
        self._stream: FileIO | None = None
        self._opened = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self.responses, self.billed, self.n_charged, self.limits = {}, NO_TOKENS, 0, set()
        with contextlib.ExitStack() as opened:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                check_target(self.path)
                self._stream = opened.enter_context(self.path.open("ab", buffering=0))
                sync_folder(self.path.parent)
            except OSError as exc:
                raise ConfigError(f"{self.path} cannot be written: {exc.strerror}; choose another --out.") from exc
            opened.enter_context(exclusive(self.path))
            self._repair()
            for response in read_responses(self.path):
                self._remember(response)
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *raised: object) -> None:
        """Release the lock. The responses can still be read."""
        self._opened.close()

    @property
    def is_open(self) -> bool:
        """True if responses can be added."""
        return self._stream is not None and not self._stream.closed

    def has_answer(self, key: str) -> bool:
        """Return True if the request was answered and need not be sent."""
        return key in self.responses and self.responses[key].answered

    def missing(self, requests: Mapping[str, _Question]) -> list[_Question]:
        """Return the requests that have no answer yet."""
        return [request for key, request in requests.items() if not self.has_answer(key)]

    def add(self, response: Response) -> None:
        """Append a response and flush it to disk."""
        line = json.dumps(response.to_json(), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        # A lone surrogate is no text that UTF-8 can write.
        self._append(line.encode("utf-8", errors="backslashreplace") + b"\n")
        self._remember(response)

    def _append(self, data: bytes) -> None:
        assert self._stream is not None, "the store is not open"
        end = self._stream.seek(0, os.SEEK_END)
        try:
            while data:
                data = data[self._stream.write(data) :]
            os.fsync(self._stream.fileno())
        except OSError as exc:
            with contextlib.suppress(OSError):
                self._stream.truncate(end)
            raise StorageError(
                f"{self.path} cannot be written: {exc.strerror}. Earlier answers are kept: free some space, then run "
                "the same command to continue."
            ) from exc

    def _remember(self, response: Response) -> None:
        self.billed = self.billed.plus(response.billed)
        self.n_charged += response.lost + (response.answered and response.status != "too_long")
        if response.max_tokens is not None:
            self.limits.add(response.max_tokens)
        if response.answered or not self.has_answer(response.key):
            self.responses[response.key] = response

    def _repair(self) -> None:
        """Remove or complete the line that a killed process did not finish."""
        assert self._stream is not None
        with self.path.open("rb") as reader:
            last = b"".join(deque(reader, maxlen=1))
        if not last or last.endswith(b"\n"):
            return
        try:
            _parse(last)
            self._append(b"\n")
        except ValueError:
            self._stream.truncate(self._stream.seek(0, os.SEEK_END) - len(last))


def read_responses(path: Path) -> Iterator[Response]:
    """Yield the responses of a file in order of arrival, without a lock; an incomplete last line is skipped."""
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                yield _parse(line)
            except ValueError as exc:
                raise ConfigError(
                    f"line {number} of {path} is damaged; remove that line, and its request is sent again."
                ) from exc


def _parse(line: bytes) -> Response:
    try:
        return Response.from_json(json.loads(line))
    except (AttributeError, TypeError, KeyError) as exc:
        raise ValueError("not a response") from exc


def addresses(responses: Iterable[Response]) -> dict[str, Any]:
    """Return the server addresses of responses for a manifest: the last one, and all; empty without a server."""
    found = [each.server for each in sorted(responses, key=lambda each: each.time) if each.server is not None]
    return {"base_url": found[-1], "base_urls": list(dict.fromkeys(found))} if found else {}
