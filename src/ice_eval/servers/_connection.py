"""One attempt to get an answer out of a server, and what went wrong in words."""

import asyncio
import contextlib
import json
import math
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ice_eval._extras import require
from ice_eval.servers._rate import retry_after_s
from ice_eval.servers.exchange import Logprobs, Question, Reply, Status, Tokens
from ice_eval.servers.server import DEFAULT_KEY, Server, redacted

_BUSY = {429, 503, 529}
_PASSING = {408, 409, 425}
_UNFIT = {400, 413, 422}
_DECLINED = {"content_filter", "content_policy_violation"}
_LONGEST_MESSAGE = 300
_CONNECT_S = 20.0
_LAST_TOKENS = 32
"""Of the tokens of a prompt that a server repeats, the last are kept: a label and what stands before it."""


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
            return _parse(raw.http_response.text, self._key, is_chat=is_chat)
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
        reason = f"{name} {_one_line(str(cause or ''), self._key)}".rstrip()
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


def _parse(body: str, key: str | None, *, is_chat: bool) -> Reply:
    """What a completion says, or `ValueError`: a body that is not one is as good as none."""
    try:
        answer = _without_key(json.loads(body), key)
        choice = answer["choices"][0]
        message = choice["message"] if is_chat else {"content": choice["text"]}
        text, refusal = message.get("content") or "", _string(message, "refusal")
        if not isinstance(text, str):
            raise TypeError
        logprobs = None if is_chat else _logprobs(choice.get("logprobs"))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
        raise ValueError(f"'{_one_line(body, key)}'") from None
    finish_reason = _string(choice, "finish_reason")
    return Reply(
        status=_status(text, finish_reason, refusal),
        text=text or refusal or "",
        reasoning=_string(message, "reasoning_content") or _string(message, "reasoning"),
        finish_reason=finish_reason,
        logprobs=logprobs,
        usage=_usage(answer),
        model=_string(answer, "model"),
        fingerprint=_string(answer, "system_fingerprint"),
    )


def _logprobs(said: Mapping[str, Any] | None) -> Logprobs | None:
    """Log-probabilities in either shape that servers give them; None where there are none."""
    if said is None:
        return None
    if "content" in said:  # as chat completions do, a record for each token
        places = said["content"] or []
        tokens, values = [place["token"] for place in places], [place.get("logprob") for place in places]
        top = {each["token"]: each["logprob"] for each in (places[-1].get("top_logprobs") or [])} if places else {}
    else:
        tokens, values = said.get("tokens") or [], said.get("token_logprobs") or []
        top = (said.get("top_logprobs") or [None])[-1] or {}
    return Logprobs(
        tokens=tuple(str(token) for token in tokens[-_LAST_TOKENS:]),
        values=tuple(_number(value) for value in values[-_LAST_TOKENS:]),
        top={str(token): float(value) for token, value in top.items() if _number(value) is not None},
    )


def _number(value: Any) -> float | None:
    """A finite number, or None."""
    return None if value is None or not math.isfinite(value) else float(value)


def _without_key(part: Any, key: str | None) -> Any:
    """A part of an answer without the key; looked for after parsing, as JSON may write any letter in several ways."""
    if isinstance(part, dict):
        return {redacted(name, key): _without_key(each, key) for name, each in part.items()}
    if isinstance(part, list):
        return [_without_key(each, key) for each in part]
    return redacted(part, key) if isinstance(part, str) else part


def _string(record: Mapping[str, object], name: str) -> str | None:
    value = record.get(name)
    return value if isinstance(value, str) else None


def _usage(answer: Mapping[str, Any]) -> Tokens | None:
    """What the server counted; an answer is not thrown away because it does not."""
    try:
        tokens = Tokens(int(answer["usage"]["prompt_tokens"]), int(answer["usage"]["completion_tokens"]))
    except (ValueError, TypeError, LookupError, OverflowError):
        return None
    return tokens if min(tokens) >= 0 else None


def _status(text: str, finish_reason: str | None, refusal: str | None) -> Status:
    if refusal or finish_reason == "content_filter":
        return "refusal"
    if finish_reason == "length":
        return "truncated"
    return "ok" if text.strip() else "empty"


def _said(body: object, key: str | None) -> str:
    """The message of an error, in the shapes that servers give it."""
    if isinstance(body, dict):
        body = body.get("message") or body.get("detail") or body
    return _one_line(str(body), key) or "no message"


def _one_line(text: str, key: str | None) -> str:
    """On one line, without what would move a terminal's cursor, without the key, and only then shortened."""
    line = redacted("".join(letter for letter in " ".join(text.split()) if letter.isprintable()), key)
    return line if len(line) <= _LONGEST_MESSAGE else line[:_LONGEST_MESSAGE] + "…"
