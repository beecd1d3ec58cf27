"""Requests to a server and its answers."""

import functools
import hashlib
import json
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, NamedTuple, Self

from ice_eval.errors import ConfigError, DataError

Status = Literal["ok", "refusal", "truncated", "empty", "too_long", "error"]
"""`refusal`: the server or the model declined; `truncated`: the token limit cut the text; `too_long`: the model cannot
read so long a request; `error`: nothing arrived, and the next run asks again."""

_THOUGHTS = ("reasoning_content", "reasoning", "thinking")
"""Fields of a message that hold thoughts."""
_THINKING_PARTS = ("thinking", "reasoning", "redacted_thinking")
_SHORTEST_KEY = 8  # shorter keys (`x`, `EMPTY`) are placeholders for local servers, not secrets
_LONGEST_MESSAGE = 300


class Message(NamedTuple):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


class TokenUsage(NamedTuple):
    """Tokens read and written, the two things that servers charge for."""

    prompt: int
    completion: int

    def plus(self, other: "TokenUsage") -> "TokenUsage":
        return TokenUsage(self.prompt + other.prompt, self.completion + other.completion)

    def times(self, count: int) -> "TokenUsage":
        return TokenUsage(self.prompt * count, self.completion * count)


NO_REPLY = "no reply arrived"
"""Why nothing can be read from a request that failed each time."""
NO_TOKENS = TokenUsage(0, 0)


@dataclass(frozen=True, kw_only=True)
class Question(ABC):
    """A request of either kind. Equal requests are sent once for each `repeat`."""

    endpoint: ClassVar[Literal["chat/completions", "completions"]]
    """Path after the base URL."""
    model: str
    max_tokens: int
    temperature: float | None = None
    """None for the server's default; some models accept no other value."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the request, which only some servers know."""
    repeat: int = 0
    """Index among several independent answers to the same request."""
    last_tokens: int = 32
    """Number of last tokens, echoed ones included, whose log-probabilities are stored: a label and its context."""

    def __post_init__(self) -> None:
        if self.max_tokens < 1 or self.repeat < 0:
            raise ConfigError(f"a request needs max_tokens ≥ 1 and repeat ≥ 0, not {self.max_tokens}, {self.repeat}.")
        try:
            for text in self._texts():
                text.encode("utf-8")
        except UnicodeEncodeError as exc:
            raise DataError(f"a message holds half a character (a lone surrogate): {exc.object!r}.") from exc

    @abstractmethod
    def _texts(self) -> Iterable[str]:
        """Return the texts for the model."""

    @abstractmethod
    def _own_fields(self) -> dict[str, Any]:
        """Return the fields of this kind of request; None for the server's default."""

    def body(self) -> dict[str, Any]:
        """Return the fields sent to the server."""
        own = {**self._own_fields(), "model": self.model, "max_tokens": self.max_tokens}
        return {**self.extra, **{name: value for name, value in own.items() if value is not None}}

    def most_tokens(self) -> TokenUsage:
        """Return an upper estimate of the cost: a token per three bytes, and the limit of written tokens."""
        return TokenUsage(sum(math.ceil(len(text.encode("utf-8")) / 3) for text in self._texts()), self.max_tokens)

    @functools.cached_property
    def hash(self) -> str:
        """SHA-256 of the body as canonical JSON, without `repeat`."""
        text = json.dumps(self.body(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    @property
    def key(self) -> str:
        """Key of the answer in the store."""
        return f"{self.hash}-{self.repeat}"


@dataclass(frozen=True, kw_only=True)
class Request(Question):
    """A request to a chat model."""

    endpoint = "chat/completions"
    messages: tuple[Message, ...]

    def _texts(self) -> Iterable[str]:
        return [message.content for message in self.messages]

    def _own_fields(self) -> dict[str, Any]:
        messages = [message._asdict() for message in self.messages]
        return {"temperature": self.temperature, "messages": messages}

    def most_tokens(self) -> TokenUsage:
        return super().most_tokens().plus(TokenUsage(4 * len(self.messages), 0))  # the marks around a message


@dataclass(frozen=True, kw_only=True)
class Continuation(Question):
    """A text, or its token ids, to be continued, with log-probabilities of the next tokens."""

    endpoint = "completions"
    prompt: str | tuple[int, ...]
    max_tokens: int = 1
    temperature: float | None = 0.0
    logprobs: int | None = None
    """Number of most likely tokens to return at every position."""
    echo: bool = False
    """True to return the tokens of the prompt too."""

    def _texts(self) -> Iterable[str]:
        return [self.prompt] if isinstance(self.prompt, str) else []

    def _own_fields(self) -> dict[str, Any]:
        prompt = self.prompt if isinstance(self.prompt, str) else list(self.prompt)
        limits = {"logprobs": self.logprobs, "echo": self.echo or None}
        return {"temperature": self.temperature, **limits, "prompt": prompt}

    def most_tokens(self) -> TokenUsage:
        ids = 0 if isinstance(self.prompt, str) else len(self.prompt)
        return super().most_tokens().plus(TokenUsage(ids, 0))


class Logprobs(NamedTuple):
    """Log-probabilities of tokens, as spelled by the server."""

    tokens: tuple[str, ...]
    """Tokens of the answer, after the last ones of the prompt if these were requested."""
    values: tuple[float | None, ...]
    """Log-probability of each token; None if missing."""
    top: Mapping[str, float]
    """The most likely tokens at the last position; non-finite values are dropped."""


@dataclass(frozen=True, kw_only=True)
class Completion:
    """An answer, or the reason why it is missing."""

    status: Status
    text: str = ""
    reasoning: str | None = None
    """Thoughts of a reasoning model, if the server separates them from the text."""
    reasoning_tokens: int | None = None
    """Number of tokens of such thoughts, also of hidden ones; None if the server does not count them."""
    finish_reason: str | None = None
    logprobs: Logprobs | None = None
    """None unless requested and given."""
    usage: TokenUsage | None = None
    """Token counts of the server; None if it does not count."""
    model: str | None = None
    """The model that answered, according to the server."""
    fingerprint: str | None = None
    """The server's name for its configuration; if it changes, answers at temperature 0 may too."""
    error: str | None = None
    """Reason why the answer is missing."""


@dataclass(frozen=True, kw_only=True)
class Response(Completion):
    """The outcome of a request: one line of `responses.jsonl`."""

    key: str
    request: str
    """Hash of the request."""
    repeat: int
    server: str | None = None
    """Address of the server; None for a model on this machine."""
    time: str
    """Time of arrival, in UTC."""
    lost: int = 0
    """Number of earlier attempts that may have been charged without an answer."""
    billed: TokenUsage = NO_TOKENS
    """Tokens that count against the budget, lost attempts included; estimated if the server does not count."""
    content: Mapping[str, Any] | None = None
    """The request itself, in files that hold it."""
    max_tokens: int | None = None
    """Limit of written tokens in the request; None in files of earlier versions."""

    @classmethod
    def to(cls, request: Question, reply: Completion, **facts: Any) -> Self:
        """Return the response to a request that arrives now; the reply may be that of another repeat.

        `facts` are further fields: the server, lost attempts, billed tokens.
        """
        return cls(
            **{each.name: getattr(reply, each.name) for each in fields(Completion)},
            **facts,
            key=request.key,
            request=request.hash,
            repeat=request.repeat,
            time=datetime.now(UTC).isoformat(timespec="milliseconds"),
            max_tokens=request.max_tokens,
        )

    @property
    def answered(self) -> bool:
        """True if the server answered; failed requests are repeated by the next run."""
        return self.status != "error"

    def to_json(self) -> dict[str, Any]:
        nested = {name: getattr(self, name) for name in ("logprobs", "usage", "billed")}
        return {**asdict(self), **{name: value and value._asdict() for name, value in nested.items()}}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        usage, logprobs = record["usage"], record["logprobs"]
        if logprobs:
            logprobs = Logprobs(tuple(logprobs["tokens"]), tuple(logprobs["values"]), logprobs["top"])
        nested = {"logprobs": logprobs, "usage": usage and TokenUsage(**usage)}
        return cls(**{**record, **nested, "billed": TokenUsage(**record["billed"])})


def redacted(text: str, key: str | None) -> str:
    """Return the text with the key removed, in case a server repeats it."""
    return text if key is None or len(key) < _SHORTEST_KEY else text.replace(key, "[key]")


def one_line(text: str, key: str | None) -> str:
    """Return one line without control characters and without the key; shortened last, so that no key is cut in half."""
    line = redacted("".join(letter for letter in " ".join(text.split()) if letter.isprintable()), key)
    return line if len(line) <= _LONGEST_MESSAGE else line[:_LONGEST_MESSAGE] + "…"


def read_completion(body: str, key: str | None, *, is_chat: bool, last_tokens: int = 32) -> Completion:
    """Parse the body of a chat or continuation answer and remove the key; raise ValueError if it is no completion."""
    try:
        answer = _without_key(json.loads(body), key)
        choice = answer["choices"][0]
        message = choice["message"] if is_chat else {"content": choice["text"]}
        text, thoughts = _parted(message.get("content"))
        refusal = _string(message, "refusal")
        logprobs = None if is_chat else _logprobs(choice.get("logprobs"), last_tokens)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
        raise ValueError(f"'{one_line(body, key)}'") from None
    counts = (_count(answer, "prompt_tokens"), _count(answer, "completion_tokens"))
    known = [count for count in counts if count is not None and count >= 0]
    finish_reason = _string(choice, "finish_reason")
    status: Status = "truncated" if finish_reason == "length" else "ok" if text.strip() else "empty"
    if refusal or finish_reason == "content_filter":
        status = "refusal"
    return Completion(
        status=status,
        text=text or refusal or "",
        reasoning=next(filter(None, (_string(message, name) for name in _THOUGHTS)), thoughts or None),
        reasoning_tokens=_count(answer, "completion_tokens_details", "reasoning_tokens"),
        finish_reason=finish_reason,
        logprobs=logprobs,
        usage=TokenUsage(*known) if len(known) == 2 else None,
        model=_string(answer, "model"),
        fingerprint=_string(answer, "system_fingerprint"),
    )


def _parted(content: Any) -> tuple[str, str]:
    """Return the text and the thoughts of a message, whose content may be a list of parts; raise TypeError if none."""
    if content is None or isinstance(content, str):
        return content or "", ""
    if not isinstance(content, list):
        raise TypeError
    parts = [({}, part) if isinstance(part, str) else (part, _plain(part)) for part in content]
    thoughts = [each for part, each in parts if part.get("type") in _THINKING_PARTS]
    return "".join(each for part, each in parts if part.get("type") not in _THINKING_PARTS), "".join(thoughts)


def _plain(part: Any) -> str:
    """Return the text of a part, which may hold parts of its own."""
    if isinstance(part, str):
        return part
    if isinstance(part, list):
        return "".join(map(_plain, part))
    return "".join(_plain(part[name]) for name in ("text", *_THOUGHTS, "summary", "content") if part.get(name))


def _without_key(part: Any, key: str | None) -> Any:
    """Redact parsed JSON, not its text: JSON can encode any letter in several ways."""
    if isinstance(part, dict):
        return {redacted(name, key): _without_key(each, key) for name, each in part.items()}
    if isinstance(part, list):
        return [_without_key(each, key) for each in part]
    return redacted(part, key) if isinstance(part, str) else part


def _logprobs(content: Mapping[str, Any] | None, last_tokens: int) -> Logprobs | None:
    if content is None:
        return None
    if "content" in content:  # a record for each position, as chats have it
        positions = content["content"] or []
        tokens, values = [each["token"] for each in positions], [each.get("logprob") for each in positions]
        top = {each["token"]: each["logprob"] for each in positions and positions[-1].get("top_logprobs") or []}
    else:  # one list for each field
        tokens, values = content.get("tokens") or [], content.get("token_logprobs") or []
        top = (content.get("top_logprobs") or [None])[-1] or {}
    return Logprobs(
        tokens=tuple(str(token) for token in tokens[-last_tokens:]),
        values=tuple(float(value) if _is_finite(value) else None for value in values[-last_tokens:]),
        top={str(token): float(value) for token, value in top.items() if _is_finite(value)},
    )


def _is_finite(value: Any) -> bool:
    return value is not None and math.isfinite(value)


def _string(record: Mapping[str, object], name: str) -> str | None:
    value = record.get(name)
    return value if isinstance(value, str) else None


def _count(answer: Mapping[str, Any], *names: str) -> int | None:
    """Return a token count of the server, or None if it is missing."""
    try:
        return int(functools.reduce(operator.getitem, names, answer["usage"]))
    except (ValueError, TypeError, LookupError, OverflowError):
        return None
