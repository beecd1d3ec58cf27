"""All requests of one call, in an event loop: who is asked when, how often, and when to stop."""

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterator, Sequence

from ice_eval.errors import BudgetError, ConfigError, IceError, ModelError, RefusedError
from ice_eval.servers._connection import Connection, Failure, connected
from ice_eval.servers._rate import Limiter, backoff_s
from ice_eval.servers.budget import Budget, Spending
from ice_eval.servers.exchange import Question, Reply, Response, Tokens
from ice_eval.servers.server import Server
from ice_eval.servers.store import ResponseStore

_FIRST_CONTACT = 3
"""Attempts to find a server that was never there: mostly a wrong address, or one that was not started."""
_GIVEN_UP = 5
"""Requests in a row that were given up, after which the server counts as gone."""
_KEPT = "what was answered is kept, and the same command continues later."


class Session:
    """Asks for everything that is missing; every response is in the store before the next step.

    A reason to stop lets what is in the air arrive, for that is paid for, and asks nothing more.
    """

    def __init__(
        self, server: Server, budget: Budget, store: ResponseStore, *, keep_requests: bool, tell: Callable[[], None]
    ) -> None:
        self.retries = 0
        self.limiter = Limiter(server.concurrency)
        self._server = server
        self._store = store
        self._keep_requests = keep_requests
        self._tell = tell
        self._spending = Spending(budget, n_charged=store.n_charged, billed=store.billed)
        self._stop: IceError | None = None
        self._stopped = asyncio.Event()
        self._in_contact = False
        self._given_up = 0
        # Chance only spreads retries over time; no result depends on it.
        self._rng = random.Random()

    async def run(self, requests: Sequence[Question]) -> None:
        """Ask for all of them.

        Raises:
            IceError: The run had to stop early.
        """
        queue = iter(requests)
        async with connected(self._server) as connection, asyncio.TaskGroup() as workers:
            for _ in range(min(self._server.concurrency, len(requests))):
                workers.create_task(self._work(queue, connection))
        if self._stop is not None:
            raise self._stop

    async def _work(self, queue: Iterator[Question], connection: Connection) -> None:
        for request in queue:
            if self._stop is not None:
                return
            try:
                await self._ask(request, connection)
            except IceError as exc:  # the store cannot be written
                self._end(exc)

    def _end(self, reason: IceError) -> None:
        """Ask nothing more and wait for nothing but answers. The first reason counts."""
        self._stop = self._stop or reason
        self._stopped.set()
        self.limiter.let_go()

    async def _ask(self, request: Question, connection: Connection) -> None:
        """Until it is answered, the attempts are used up, or there is a reason to stop."""
        most, lost, reason = request.most_tokens(), 0, ""
        for attempt in range(1, self._server.attempts + 1):
            async with self.limiter.slot() as turn:
                if self._stop is not None or not await self._afford(request):
                    break
                try:
                    outcome = await connection.attempt(request)
                finally:
                    self._spending.landed()
            if isinstance(outcome, Reply):
                self._arrived(request, outcome, lost)
                return
            reason = outcome.reason
            if outcome.kind == "lost":
                lost += 1
            else:
                self._spending.replace(1, most)
            wait_s = self._failed(outcome, attempt, turn)
            if self._stop is not None:
                break
            if attempt < self._server.attempts:
                self.retries += 1
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopped.wait(), wait_s)
        else:
            self._unanswered(request, reason, lost)
            self._give_up(reason)
            return
        if lost:
            self._unanswered(request, reason, lost)

    async def _afford(self, request: Question) -> bool:
        limit = await self._spending.reserve(request.most_tokens())
        if limit is not None:
            self._end(
                BudgetError(
                    f"the limit of {limit} is reached; what was answered is kept in {self._store.path}, and the same "
                    "command with a higher limit continues."
                )
            )
        return limit is None

    def _failed(self, failure: Failure, attempt: int, turn: int) -> float:
        """Draw the conclusions from a failed attempt: whether to stop, whether to slow down, how long to wait."""
        server, pause_s = self._server, failure.retry_after_s or 0.0
        self._in_contact = self._in_contact or failure.kind != "unreachable"
        reason = self._reason_to_stop(failure, attempt)
        if reason is not None:
            self._end(reason)
        elif failure.kind == "busy":
            self.limiter.too_busy(turn, pause_s=pause_s)
        wait_s = backoff_s(attempt, first_s=server.first_backoff_s, most_s=server.most_backoff_s, rng=self._rng)
        return max(wait_s, pause_s)

    def _reason_to_stop(self, failure: Failure, attempt: int) -> IceError | None:
        """Why no request need be sent any more, after a failed attempt; None where trying again may help."""
        url, pause_s = self._server.base_url, failure.retry_after_s or 0.0
        if failure.kind == "refused":
            return RefusedError(f"{url} refuses: {failure.reason}")
        if failure.kind == "fatal":
            return ConfigError(f"{url} refuses: {failure.reason}")
        if failure.kind == "unreachable" and not self._in_contact and attempt >= _FIRST_CONTACT:
            return ConfigError(f"no server can be reached at {url} ({failure.reason}); start it or correct --base-url.")
        if pause_s > self._server.most_pause_s:
            return ModelError(f"{url} wants a pause of {pause_s:.0f} seconds; {_KEPT}")
        return None

    def _give_up(self, reason: str) -> None:
        self._given_up += 1
        if self._given_up >= _GIVEN_UP:
            self._end(
                ModelError(
                    f"{self._server.base_url} has answered none of the last {self._given_up} requests, each tried "
                    f"{self._server.attempts} times ({reason}); {_KEPT}"
                )
            )

    def _arrived(self, request: Question, reply: Reply, lost: int) -> None:
        self._in_contact = True
        self._given_up = 0
        self.limiter.keeps_up()
        most = request.most_tokens()
        billed = (reply.usage or most).times(1 + lost)
        self._keep(request, reply, lost, billed)
        self._spending.replace(1 + lost, most, n_charged=1 + lost, billed=billed)

    def _unanswered(self, request: Question, reason: str, lost: int) -> None:
        """Keep the failure and what it may have cost."""
        self._keep(request, Reply(status="error", error=reason), lost, request.most_tokens().times(lost))

    def _keep(self, request: Question, reply: Reply, lost: int, billed: Tokens) -> None:
        url = self._server.base_url
        self._store.add(
            Response.to(request, reply, keep_request=self._keep_requests, server=url, lost=lost, billed=billed)
        )
        self._tell()
