"""Client of an OpenAI-compatible server: each request is sent until it is answered, and paid for once."""

import asyncio
import contextlib
import functools
import ipaddress
import os
import queue
import random
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeVar, get_args
from urllib.parse import urlsplit

from ice_eval.errors import BudgetError, ConfigError, IceError, ModelError, RefusedError, require
from ice_eval.servers.exchange import NO_TOKENS, Completion, Question, Response, TokenUsage, one_line, read_completion
from ice_eval.servers.store import Budget, Limiter, RequestPlan, ResponseStore, Spending, backoff_s, retry_after_s

LimitField = Literal["max_tokens", "max_completion_tokens"]
_DEFAULT_KEY = "OPENAI_API_KEY"
_SECRET = re.compile(r"[@?#]|(?:^|/)(?:sk|gsk|hf|key)[-_]", re.IGNORECASE)
"""Parts of an address that may be secret: a password, a query, or a part that starts like a key."""
_NO_ADDRESS = "--base-url is no address; expected one as http://localhost:8000/v1."
"""The address is not repeated, since part of it may be a password (`http://me:secret`)."""
_KEPT = "earlier answers are kept; run the same command later to continue."

_CONNECT_S = 20.0
_FIRST_CONTACT = 3  # attempts to reach a server that never answered: a wrong address, or a server that is not running
_GIVEN_UP = 5  # consecutive unanswered requests after which the server is considered gone
_BUSY, _TRANSIENT, _UNFIT = {429, 503, 529}, {408, 409, 425}, {400, 413, 422}
_NO_ENDPOINT = {404, 405}  # servers that only chat have no completions
_DECLINED = {"content_filter", "content_policy_violation", "data_inspection_failed"}
_DECLINES = re.compile(r"content (?:filter|policy|management policy|exists risk)|inappropriate content", re.IGNORECASE)
_TOO_LONG = re.compile(
    r"context[ _-]?(?:length|size|window)|\b(?:prompt|input|request)\b.{0,60}\btoo (?:long|large)\b"
    r"|longer than the (?:model|maximum)|exceeds? the (?:maximum|max|model)\b.{0,60}\b(?:token|length)",
    re.IGNORECASE,
)
"""Words of servers about a request that is longer than the model reads: others of the run may be shorter."""
_NO_BEGUN_TURN = re.compile(
    r"add_generation_prompt|continue_final_message|assistant|prefill|last (?:role|message)", re.IGNORECASE
)
"""Words of servers about a last turn that is the model's own."""
_OTHER_FIELD = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}


@dataclass(frozen=True, kw_only=True)
class Server:
    """An OpenAI-compatible server. The key is read from the environment when needed and stored nowhere."""

    base_url: str
    """Address before `/chat/completions`, as in `http://localhost:8000/v1`."""
    api_key_env: str | None = None
    """Environment variable that holds the key; by default `OPENAI_API_KEY`, and no key if that is not set."""
    concurrency: int = 16
    """Largest number of requests in flight; fewer while the server is too busy."""
    timeout_s: float = 300.0
    """Limit of one attempt, up to the last byte of the answer."""
    attempts: int = 8
    first_backoff_s: float = 1.0
    """Pause after the first failed attempt; each later pause is twice as long."""
    most_backoff_s: float = 60.0
    most_pause_s: float = 600.0
    """If a server requests a longer pause, the run ends and can be continued later."""
    limit_field: LimitField = "max_tokens"
    """The server's name for the token limit; OpenAI's newer models need the second."""

    def __post_init__(self) -> None:
        if _SECRET.search(self.base_url):  # it is written to the manifest, and not even repeated here
            raise ConfigError(
                "--base-url holds a password or a query, or a key; give the bare address, and a key by --api-key-env."
            )
        try:
            parts = urlsplit(self.base_url)
            valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            valid = False
        if not valid:
            raise ConfigError(_NO_ADDRESS)
        if self.concurrency < 1 or self.attempts < 1 or not self.timeout_s > 0:
            raise ConfigError("concurrency and attempts must be at least 1, and the timeout longer than 0 seconds.")
        if self.limit_field not in get_args(LimitField):
            raise ConfigError(f"--limit-field '{self.limit_field}': {' or '.join(get_args(LimitField))} is expected.")

    @property
    def is_local(self) -> bool:
        """True if the server runs on this machine."""
        host = urlsplit(self.base_url).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    def key(self) -> str | None:
        """Return the key. Unless a variable is named, no key is sent unencrypted to another machine."""
        if self.api_key_env is None and not self.is_local and urlsplit(self.base_url).scheme == "http":
            return None
        name = self.api_key_env or _DEFAULT_KEY
        key = os.environ.get(name, "").strip()
        if self.api_key_env is not None and not key:
            raise ConfigError(f"the environment variable {name} (--api-key-env) is not set; set it to the key.")
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise ConfigError(f"the environment variable {name} holds no key: spaces or characters that no key has.")
        return key or None


def plan_requests(requests: Iterable[Question], store: ResponseStore, budget: Budget) -> RequestPlan:
    """Estimate the cost of requests that a store has no answers to."""
    distinct = {request.key: request for request in requests}
    missing = store.missing(distinct)
    tokens = NO_TOKENS
    for request in missing:
        tokens = tokens.plus(request.most_tokens())
    return RequestPlan(
        n_requests=len(distinct),
        n_answered=len(distinct) - len(missing),
        tokens=tokens,
        cost=budget.cost(tokens),
        cost_so_far=budget.cost(store.billed),
    )


Asked_contra = TypeVar("Asked_contra", bound=Question, contravariant=True)


class Asker(ABC, Generic[Asked_contra]):
    """A model that answers requests, the file of its answers, and a limit on their cost.

    `with ResponseStore(path) as store: answers = Chat(server, store).ask(requests)`
    """

    def __init__(self, store: ResponseStore, *, budget: Budget | None = None) -> None:
        self.store, self._budget = store, budget or Budget()

    def plan(self, requests: Iterable[Asked_contra]) -> RequestPlan:
        """Estimate the cost of requests without asking any."""
        return plan_requests(requests, self.store, self._budget)

    def ask(
        self, requests: Iterable[Asked_contra], *, progress: Callable[[int], None] | None = None
    ) -> dict[str, Response]:
        """Return the response to every request, by its key, from the store or from the model.

        Equal requests are asked once. `progress` is called with 1 after every response that arrives.
        """
        distinct = {request.key: request for request in requests}
        missing = self.store.missing(distinct)
        if missing:
            assert self.store.is_open, "enter the store first: what arrives must be kept"
            self._ask_missing(missing, progress or (lambda _: None))
        return {key: self.store.responses[key] for key in distinct}

    def over_budget(self, planned: RequestPlan) -> str | None:
        """Return the limit that the requests of a plan would exceed, with all that the store holds; None: they fit."""
        return self._budget.exceeded(self.store.n_charged + planned.n_to_ask, self.store.billed.plus(planned.tokens))

    @abstractmethod
    def _ask_missing(self, missing: Sequence[Asked_contra], progress: Callable[[int], None]) -> None:
        """Store a response to each of some requests."""

    def _say_kept(self, exc: BaseException) -> None:
        exc.add_note(f"What was answered is kept in {self.store.path}; asking again continues.")


class Chat(Asker[Question]):
    """A server.

    A failed request has a response with the status `error`, and the next call sends it again. Works if an event loop is
    already running, as in a notebook; progress is reported in the calling thread.

    Raises:
        ConfigError: The server refuses, or cannot be reached.
        BudgetError: The limit is reached before all requests are answered.
        ModelError: The server stopped answering.
    """

    def __init__(self, server: Server, store: ResponseStore, *, budget: Budget | None = None) -> None:
        super().__init__(store, budget=budget)
        self._server = server

    def _ask_missing(self, missing: Sequence[Question], progress: Callable[[int], None]) -> None:
        """Run the event loop in a separate thread; this one reports progress and can be interrupted."""
        arrived: queue.SimpleQueue[int] = queue.SimpleQueue()  # 1 for every response, 0 at the end
        task: Future[asyncio.Task[None]] = Future()

        async def main() -> None:
            current = asyncio.current_task()
            assert current is not None
            task.set_result(current)
            await session.run(missing)

        spending = Spending(self._budget, n_charged=self.store.n_charged, billed=self.store.billed)
        session = _Session(self._server, spending, self.store, functools.partial(arrived.put, 1))
        with ThreadPoolExecutor(max_workers=1) as pool:
            ended = pool.submit(asyncio.run, main())
            ended.add_done_callback(lambda _: arrived.put(0))
            try:
                while n_new := arrived.get():
                    progress(n_new)
            except BaseException as exc:
                running = task.result()
                with contextlib.suppress(RuntimeError):  # it has ended meanwhile
                    running.get_loop().call_soon_threadsafe(running.cancel)
                self._say_kept(exc)
                raise
        ended.result()


class _Failure(NamedTuple):
    """Reason why an attempt got no answer.

    - `refused`: the server does not accept this request.
    - `fatal`: it accepts none.
    - `busy`: it is overloaded.
    - `unreachable`: the request was not sent.
    - `failed`: the server reports an error, and charges nothing.
    - `lost`: the request was sent and its answer did not arrive whole; it may be charged.
    """

    kind: Literal["refused", "fatal", "busy", "unreachable", "failed", "lost"]
    reason: str
    pause_s: float = 0.0  # that the server requests


class _Session:
    """Sends the requests of one call; every response is stored before the next step.

    On a reason to stop, no more requests are sent; those in flight are awaited, since they are paid for.
    """

    def __init__(self, server: Server, spending: Spending, store: ResponseStore, arrived: Callable[[], None]) -> None:
        self._limiter = Limiter(server.concurrency)
        self._openai = require("openai", install="ice-eval[api]", purpose="to ask a server")
        self._server, self._spending, self._store, self._arrived = server, spending, store, arrived
        self._key = server.key()
        self._stop: IceError | None = None
        self._stopped = asyncio.Event()
        self._in_contact = False
        self._given_up = 0
        self._rng = random.Random()  # spreads retries over time; no result depends on it

    async def run(self, requests: Sequence[Question]) -> None:
        """Send all requests, or raise the IceError that stopped the session."""
        openai, server, pending = self._openai, self._server, iter(requests)
        # A proxy must not see what goes to this machine.
        http = openai.DefaultAsyncHttpxClient(follow_redirects=False, trust_env=not server.is_local)
        try:
            sdk = openai.AsyncOpenAI(
                base_url=server.base_url,
                api_key=self._key or "none",  # the SDK would look for one by itself
                max_retries=0,
                timeout=openai.Timeout(server.timeout_s, connect=min(server.timeout_s, _CONNECT_S)),
                http_client=http,
            )
        except Exception as exc:  # impossible host names; the error's type depends on the SDK's own client
            raise ConfigError(_NO_ADDRESS) from exc
        async with sdk as client, asyncio.TaskGroup() as workers:
            for _ in range(min(server.concurrency, len(requests))):
                workers.create_task(self._work(pending, client))
        if self._stop is not None:
            raise self._stop

    def _keep(self, request: Question, reply: Completion, lost: int, billed: TokenUsage) -> None:
        self._store.add(Response.to(request, reply, server=self._server.base_url, lost=lost, billed=billed))
        self._arrived()

    async def _work(self, pending: Iterator[Question], client: Any) -> None:
        for request in pending:
            if self._stop is not None:
                return
            try:
                await self._ask(request, client)
            except IceError as exc:  # the store cannot be written
                self._end(exc)

    def _end(self, reason: IceError) -> None:
        """Send nothing more; the first reason counts."""
        self._stop = self._stop or reason
        self._stopped.set()
        self._limiter.stop()

    async def _ask(self, request: Question, client: Any) -> None:
        """Try until the request is answered, all attempts are used, or there is a reason to stop."""
        server, most, lost, reason = self._server, request.most_tokens(), 0, ""
        for attempt in range(1, server.attempts + 1):
            async with self._limiter.slot() as turn:
                if self._stop is not None:
                    break
                if (limit := await self._spending.reserve(most)) is not None:
                    kept = f"earlier answers are kept in {self._store.path}"
                    continues = "and the same command with a higher limit continues."
                    self._end(BudgetError(f"the limit of {limit} is reached; {kept}, {continues}"))
                    break
                try:
                    outcome = await self._attempt(request, client)
                finally:
                    self._spending.landed()
            if isinstance(outcome, Completion):
                self._in_contact, self._given_up = True, 0
                self._limiter.speed_up()
                billed = (outcome.usage or most).times(1 + lost)
                self._keep(request, outcome, lost, billed)
                n_charged = lost + (outcome.status != "too_long")
                self._spending.replace(1 + lost, most, n_charged=n_charged, billed=billed)
                return
            reason = outcome.reason
            if outcome.kind == "lost":
                lost += 1
            else:
                self._spending.replace(1, most)
            self._in_contact = self._in_contact or outcome.kind != "unreachable"
            if (stop := self._reason_to_stop(outcome, attempt)) is not None:
                self._end(stop)
            elif outcome.kind == "busy":
                self._limiter.slow_down(turn, pause_s=outcome.pause_s)
            if self._stop is not None:
                break
            if attempt < server.attempts:
                wait_s = backoff_s(attempt, first_s=server.first_backoff_s, most_s=server.most_backoff_s, rng=self._rng)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopped.wait(), max(wait_s, outcome.pause_s))
        used_up = self._stop is None
        if used_up or lost:
            self._keep(request, Completion(status="error", error=reason), lost, most.times(lost))
        self._given_up += used_up
        if used_up and self._given_up >= _GIVEN_UP:
            silent = f"has answered none of the last {self._given_up} requests, each tried {server.attempts} times"
            self._end(ModelError(f"{server.base_url} {silent} ({reason}); {_KEPT}"))

    def _reason_to_stop(self, failure: _Failure, attempt: int) -> IceError | None:
        """Return the reason to send no more requests; None if another attempt may help."""
        url = self._server.base_url
        if failure.kind in ("refused", "fatal"):
            error = RefusedError if failure.kind == "refused" else ConfigError
            return error(f"{url} refuses: {failure.reason}")
        if failure.kind == "unreachable" and not self._in_contact and attempt >= _FIRST_CONTACT:
            return ConfigError(f"no server can be reached at {url} ({failure.reason}); start it or correct --base-url.")
        if failure.pause_s > self._server.most_pause_s:
            return ModelError(f"{url} asks for a pause of {failure.pause_s:.0f} seconds; {_KEPT}")
        return None

    async def _attempt(self, request: Question, client: Any) -> Completion | _Failure:
        body, is_chat = request.body(), request.endpoint == "chat/completions"
        if is_chat:
            body[self._server.limit_field] = body.pop("max_tokens")
        known = {name: body.pop(name) for name in ("messages" if is_chat else "prompt", "model")}
        endpoint = client.chat.completions if is_chat else client.completions
        try:
            async with asyncio.timeout(self._server.timeout_s):
                raw = await endpoint.with_raw_response.create(**known, extra_body=body)
            text = raw.http_response.text
            return read_completion(text, self._key, is_chat=is_chat, last_tokens=request.last_tokens)
        except self._openai.APIStatusError as exc:
            return self._error_status(exc, request)
        except self._openai.APIConnectionError as exc:
            name = type(exc.__cause__).__name__
            reason = f"{name} {one_line(str(exc.__cause__ or ''), self._key)}".rstrip()
            return _Failure("unreachable" if name in ("ConnectError", "ConnectTimeout") else "lost", reason)
        except TimeoutError:
            return _Failure("lost", f"no answer within {self._server.timeout_s:g} seconds")
        except ValueError as exc:
            return _Failure("lost", f"the answer makes no sense: {exc}")

    def _error_status(self, exc: Any, request: Question) -> Completion | _Failure:
        status, code, body = exc.status_code, exc.code, exc.body
        if isinstance(body, dict):
            body = body.get("message") or body.get("detail") or body
        said = one_line(str(body), self._key)
        reason = f"status {status}: {said or 'no message'}"
        if status in (400, 403) and (code in _DECLINED or _DECLINES.search(said)):
            return Completion(status="refusal", finish_reason=code)
        if status == 413 or (status in _UNFIT and (code == "context_length_exceeded" or _TOO_LONG.search(said))):
            return Completion(status="too_long", error=reason, usage=NO_TOKENS)
        pause_s = retry_after_s(exc.response.headers) or 0.0
        # Some servers report "too many requests" for an empty account, where waiting does not help.
        if status in _BUSY and code != "insufficient_quota":
            return _Failure("busy", reason, pause_s)
        if status in _TRANSIENT or status >= 500:
            return _Failure("failed", reason, pause_s)
        if status in (401, 403):
            name = self._server.api_key_env or _DEFAULT_KEY
            reason += f" The key is taken from the environment variable {name}; --api-key-env names another."
        elif status == 404:
            reason += " Check --model, and --base-url, which mostly ends in /v1."
        elif status in _UNFIT:
            remedy = _remedy(said, request, self._server.limit_field)
            reason = f"{reason.removesuffix('.')}.{remedy}" if remedy else reason
        lacks_endpoint = status in _NO_ENDPOINT and request.endpoint == "completions"
        return _Failure("refused" if status in _UNFIT or lacks_endpoint else "fatal", reason)


def _remedy(said: str, request: Question, limit_field: LimitField) -> str:
    """Return the option that mends a refused request, if the server's words name a field of it."""
    if "continue_final_message" in request.extra and _NO_BEGUN_TURN.search(said):
        return (
            " It does not go on with a begun turn, as --poses prefill needs: leave that out. A run that began with it "
            "needs another --out."
        )
    if any(name in said for name in request.extra):
        return " That field comes from --extra-body: correct it, or leave it out."
    if limit_field in said and ("support" in said.casefold() or _OTHER_FIELD[limit_field] in said):
        other = _OTHER_FIELD[limit_field]
        return f" Use --limit-field {other}{'' if other in said else ', or lower --max-tokens and --answer-tokens'}."
    if "temperature" in said:
        return " Use --temperature server, which leaves the temperature to the server, and another --out."
    return ""
