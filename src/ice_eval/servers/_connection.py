"""One attempt to get an answer out of a server, and what went wrong in words."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Literal

from ice_eval._extras import require
from ice_eval.servers._completion import read_completion
from ice_eval.servers._rate import retry_after_s
from ice_eval.servers._shown import one_line
from ice_eval.servers.exchange import Question, Reply
from ice_eval.servers.server import DEFAULT_KEY, Server

_BUSY = {429, 503, 529}
_PASSING = {408, 409, 425}
_UNFIT = {400, 413, 422}
_DECLINED = {"content_filter", "content_policy_violation"}
_CONNECT_S = 20.0


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why an attempt brought no answer.

    - `refused`: the server does not take this request as it is.
    - `fatal`: no request will fare better.
    - `busy`: the server has too much to do.
    - `unreachable`: nobody was there to hear the request.
    - `failed`: the server says so itself, and charges nothing.
    - `lost`: the request was sent and its answer did not arrive whole; it may be charged.
    """

    kind: Literal["refused", "fatal", "busy", "unreachable", "failed", "lost"]
    reason: str
    retry_after_s: float | None = None


class Connection:
    """The SDK's client with its own retries off: it takes one request at a time to one address."""

    def __init__(self, server: Server, openai: Any, client: Any, key: str | None) -> None:
        self._server = server
        self._openai = openai
        self._client = client
        self._key = key

    async def attempt(self, request: Question) -> Reply | Failure:
        """Ask once."""
        body, is_chat = request.body(), request.endpoint == "chat/completions"
        if is_chat:
            body[self._server.limit_field] = body.pop("max_tokens")
        known = {name: body.pop(name) for name in ("messages" if is_chat else "prompt", "model")}
        endpoint = self._client.chat.completions if is_chat else self._client.completions
        try:
            async with asyncio.timeout(self._server.timeout_s):
                raw = await endpoint.with_raw_response.create(**known, extra_body=body)
            return read_completion(raw.http_response.text, self._key, is_chat=is_chat)
        except self._openai.APIStatusError as exc:
            return self._refused(exc)
        except self._openai.APIConnectionError as exc:
            return self._unconnected(exc.__cause__)
        except TimeoutError:
            return Failure(kind="lost", reason=f"no answer within {self._server.timeout_s:g} seconds")
        except ValueError as exc:
            return Failure(kind="lost", reason=f"the answer makes no sense: {exc}")

    def _unconnected(self, cause: BaseException | None) -> Failure:
        name = type(cause).__name__
        reason = f"{name} {one_line(str(cause or ''), self._key)}".rstrip()
        return Failure(kind="unreachable" if name in ("ConnectError", "ConnectTimeout") else "lost", reason=reason)

    def _refused(self, exc: Any) -> Reply | Failure:
        status, code = exc.status_code, exc.code
        if status == 400 and code in _DECLINED:
            return Reply(status="refusal", finish_reason=code)
        reason = f"status {status}: {_said(exc.body, self._key)}"
        after_s = retry_after_s(exc.response.headers)
        # Some say "too many requests" for an empty account, which no patience fills.
        if status in _BUSY and code != "insufficient_quota":
            return Failure(kind="busy", reason=reason, retry_after_s=after_s)
        if status in _PASSING or status >= 500:
            return Failure(kind="failed", reason=reason, retry_after_s=after_s)
        kind: Literal["refused", "fatal"] = "refused" if status in _UNFIT else "fatal"
        return Failure(kind=kind, reason=f"{reason} {self._advice(status)}".rstrip())

    def _advice(self, status: int) -> str:
        if status in (401, 403):
            name = self._server.api_key_env or DEFAULT_KEY
            return f"The key is taken from the environment variable {name}; --api-key-env names another."
        if status == 404:
            return "Check --model, and --base-url, which mostly ends in /v1."
        return ""


@contextlib.asynccontextmanager
async def connected(server: Server) -> AsyncIterator[Connection]:
    """A client for the server's address and no other: redirections are not followed.

    Raises:
        ConfigError: The SDK takes the address for none.
        MissingExtraError: The SDK is not installed.
    """
    openai = require("openai", install="ice-eval[api]", purpose="to ask a server")
    key = server.key()
    # What goes to this machine is no business of a proxy.
    http = openai.DefaultAsyncHttpxClient(follow_redirects=False, trust_env=not server.is_local)
    try:
        client = openai.AsyncOpenAI(
            base_url=server.base_url,
            api_key=key or "none",  # the SDK would look for one by itself
            max_retries=0,
            timeout=openai.Timeout(server.timeout_s, connect=min(server.timeout_s, _CONNECT_S)),
            http_client=http,
        )
    except Exception as exc:  # names of hosts that cannot be; the error's type depends on the SDK's own client
        raise server.no_address() from exc
    async with client:
        yield Connection(server, openai, client, key)


def _said(body: object, key: str | None) -> str:
    """The message of an error, in the shapes that servers give it."""
    if isinstance(body, dict):
        body = body.get("message") or body.get("detail") or body
    return one_line(str(body), key) or "no message"
