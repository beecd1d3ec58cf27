"""Questions to a server, each asked and paid for once, whatever happens on the way."""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from ice_eval.servers._session import Session
from ice_eval.servers.budget import Budget, Plan
from ice_eval.servers.exchange import NO_TOKENS, Question, Response
from ice_eval.servers.server import Server
from ice_eval.servers.store import ResponseStore


class Progress(NamedTuple):
    """How far the asking is."""

    n_done: int
    n_requests: int
    n_retries: int
    concurrency: int
    """Requests that may be under way at once, as the server bears it just now."""
    cost: float | None
    """Of everything in the store; None without prices."""


def plan_requests(requests: Iterable[Question], store: ResponseStore, budget: Budget) -> Plan:
    """What asking would cost at most, beside what a store holds already."""
    distinct = {request.key: request for request in requests}
    missing = store.missing(distinct)
    tokens = NO_TOKENS
    for request in missing:
        tokens = tokens.plus(request.most_tokens())
    return Plan(
        n_requests=len(distinct),
        n_answered=len(distinct) - len(missing),
        tokens=tokens,
        cost=budget.cost(tokens),
        cost_so_far=budget.cost(store.billed),
    )


class Chat:
    """A server, the file that keeps its answers, and a limit on what they may cost.

    `with ResponseStore(path) as store: answers = Chat(server, store).ask(requests)`
    """

    def __init__(
        self, server: Server, store: ResponseStore, *, budget: Budget | None = None, keep_requests: bool = False
    ) -> None:
        self._server = server
        self._store = store
        self._budget = budget or Budget()
        self._keep_requests = keep_requests

    def plan(self, requests: Iterable[Question]) -> Plan:
        """What asking would cost at most; asks nothing."""
        return plan_requests(requests, self._store, self._budget)

    def ask(
        self, requests: Iterable[Question], *, progress: Callable[[Progress], None] | None = None
    ) -> dict[str, Response]:
        """The response to every request, by its key, from the store or from the server.

        Equal requests are asked once. A request that was given up has a response with the status `error`; the next
        call asks it again. Works where an event loop runs already, as in a notebook.

        Args:
            requests: What to ask.
            progress: Called in this thread after every response that arrives.

        Raises:
            ConfigError: The server refuses, or is not there.
            BudgetError: The limit is reached before all is answered.
            ModelError: The server stopped answering.
        """
        distinct = {request.key: request for request in requests}
        missing = self._store.missing(distinct)
        if missing:
            assert self._store.is_open, "enter the store first: what arrives must be kept"
            self._ask_missing(missing, n_requests=len(distinct), progress=progress or (lambda _: None))
        return {key: self._store.responses[key] for key in distinct}

    def _ask_missing(
        self, missing: Sequence[Question], *, n_requests: int, progress: Callable[[Progress], None]
    ) -> None:
        """Run the event loop in a thread of its own; this one tells the progress and can be interrupted."""
        news: queue.SimpleQueue[Progress | None] = queue.SimpleQueue()
        n_done = n_requests - len(missing)

        def tell() -> None:
            nonlocal n_done
            n_done += 1
            cost = self._budget.cost(self._store.billed)
            news.put(Progress(n_done, n_requests, session.retries, session.limiter.limit, cost))

        session = Session(self._server, self._budget, self._store, keep_requests=self._keep_requests, tell=tell)
        loop = _Loop()
        with ThreadPoolExecutor(max_workers=1) as pool:
            ended = pool.submit(loop.run, session, missing)
            ended.add_done_callback(lambda _: news.put(None))
            try:
                while (step := news.get()) is not None:
                    progress(step)
            except BaseException as exc:
                loop.cancel()
                exc.add_note(f"What was answered is kept in {self._store.path}; asking again continues.")
                raise
        ended.result()


class _Loop:
    """An event loop in another thread that this thread can stop."""

    def __init__(self) -> None:
        self._runs = threading.Event()

    def run(self, session: Session, requests: Sequence[Question]) -> None:
        asyncio.run(self._main(session, requests))

    async def _main(self, session: Session, requests: Sequence[Question]) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        self._runs.set()
        await session.run(requests)

    def cancel(self) -> None:
        """Let go of what is in the air."""
        self._runs.wait()
        with contextlib.suppress(RuntimeError):  # it has ended meanwhile
            assert self._task is not None
            self._loop.call_soon_threadsafe(self._task.cancel)
