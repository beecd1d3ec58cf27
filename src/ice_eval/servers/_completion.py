"""The body of an answer, in the shapes that servers give it, as a reply."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from ice_eval.servers._shown import one_line, redacted
from ice_eval.servers.exchange import Logprobs, Reply, Status, Tokens

_LAST_TOKENS = 32
"""Of the tokens of a prompt that a server repeats, the last are kept: a label and what stands before it."""


def read_completion(body: str, key: str | None, *, is_chat: bool) -> Reply:
    """What a completion says.

    Args:
        body: As the server sent it.
        key: Left out wherever the server repeats it.
        is_chat: Whether it answers a chat, or goes on with a text.

    Raises:
        ValueError: The body is no completion, and as good as none.
    """
    try:
        answer = _without_key(json.loads(body), key)
        choice = answer["choices"][0]
        message = choice["message"] if is_chat else {"content": choice["text"]}
        text, refusal = message.get("content") or "", _string(message, "refusal")
        if not isinstance(text, str):
            raise TypeError
        logprobs = None if is_chat else _logprobs(choice.get("logprobs"))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
        raise ValueError(f"'{one_line(body, key)}'") from None
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
    tokens, values, top = _by_place(said["content"] or []) if "content" in said else _by_column(said)
    return Logprobs(
        tokens=tuple(str(token) for token in tokens[-_LAST_TOKENS:]),
        values=tuple(_number(value) for value in values[-_LAST_TOKENS:]),
        top={str(token): float(value) for token, value in top.items() if _number(value) is not None},
    )


def _by_place(places: Sequence[Mapping[str, Any]]) -> tuple[list[Any], list[Any], Mapping[str, Any]]:
    """Tokens, their values, and the likeliest at the last place, from a record for each place, as chats have it."""
    top = (places[-1].get("top_logprobs") or []) if places else []
    return (
        [place["token"] for place in places],
        [place.get("logprob") for place in places],
        {each["token"]: each["logprob"] for each in top},
    )


def _by_column(said: Mapping[str, Any]) -> tuple[list[Any], list[Any], Mapping[str, Any]]:
    """The same from a list each."""
    top = (said.get("top_logprobs") or [None])[-1]
    return said.get("tokens") or [], said.get("token_logprobs") or [], top or {}


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
