"""One request to a server, and what came back."""

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Self

from ice_eval.errors import ConfigError, DataError

Status = Literal["ok", "refusal", "truncated", "empty", "error"]
"""`refusal`: the server or the model declined; `truncated`: the token limit cut the text; `error`: nothing arrived."""


class Message(NamedTuple):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


class Tokens(NamedTuple):
    """Tokens that were read and written, the two things that servers charge for."""

    prompt: int
    completion: int

    def plus(self, other: "Tokens") -> "Tokens":
        return Tokens(self.prompt + other.prompt, self.completion + other.completion)

    def times(self, count: int) -> "Tokens":
        return Tokens(self.prompt * count, self.completion * count)


NO_TOKENS = Tokens(0, 0)


class Question(ABC):
    """Something to ask a server. Equal questions are asked once for each `repeat`."""

    endpoint: ClassVar[Literal["chat/completions", "completions"]]
    """Where it goes, after the base URL."""
    repeat: int
    """Which of several independent answers to the same question this is."""

    @abstractmethod
    def body(self) -> dict[str, Any]:
        """The fields that the server gets."""

    @abstractmethod
    def most_tokens(self) -> Tokens:
        """What the answer may cost, rather too much: a token per three bytes, and all the tokens that are allowed."""

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the question as canonical JSON; `repeat` is no part of it."""
        text = json.dumps(self.body(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    @property
    def key(self) -> str:
        """The name under which the answer is kept."""
        return f"{self.hash}-{self.repeat}"


@dataclass(frozen=True, kw_only=True)
class Request(Question):
    """A question to a chat model.

    Raises:
        ConfigError: A number makes no sense, or a message is no text.
    """

    endpoint = "chat/completions"
    messages: tuple[Message, ...]
    model: str
    max_tokens: int
    temperature: float | None = None
    """None leaves it to the server; some models accept no other value."""
    seed: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the request, for what only some servers know."""
    repeat: int = 0

    def __post_init__(self) -> None:
        _check_numbers(self.max_tokens, self.repeat)
        for message in self.messages:
            _check_text(message.content)

    def body(self) -> dict[str, Any]:
        chosen = {"temperature": self.temperature, "seed": self.seed}
        return {
            **self.extra,
            **_given(chosen),
            "messages": [message._asdict() for message in self.messages],
            "model": self.model,
            "max_tokens": self.max_tokens,
        }

    def most_tokens(self) -> Tokens:
        return Tokens(sum(4 + _most(message.content) for message in self.messages), self.max_tokens)


@dataclass(frozen=True, kw_only=True)
class Continuation(Question):
    """A text, or the ids of its tokens, that a model is to go on with, and the log-probabilities of what comes next.

    Raises:
        ConfigError: A number makes no sense, or the prompt is no text.
    """

    endpoint = "completions"
    prompt: str | tuple[int, ...]
    model: str
    max_tokens: int = 1
    temperature: float | None = 0.0
    logprobs: int | None = None
    """How many of the likeliest tokens are to be named at every place, with their log-probabilities."""
    echo: bool = False
    """Whether the tokens of the prompt are to be named too."""
    stop: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the request, for what only some servers know."""
    repeat: int = 0

    def __post_init__(self) -> None:
        _check_numbers(self.max_tokens, self.repeat)
        if isinstance(self.prompt, str):
            _check_text(self.prompt)

    def body(self) -> dict[str, Any]:
        chosen = {
            "temperature": self.temperature,
            "logprobs": self.logprobs,
            "echo": self.echo or None,
            "stop": self.stop,
        }
        prompt = self.prompt if isinstance(self.prompt, str) else list(self.prompt)
        return {
            **self.extra,
            **_given(chosen),
            "prompt": prompt,
            "model": self.model,
            "max_tokens": self.max_tokens,
        }

    def most_tokens(self) -> Tokens:
        return Tokens(_most(self.prompt) if isinstance(self.prompt, str) else len(self.prompt), self.max_tokens)


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is left to the server."""
    return {name: value for name, value in fields.items() if value is not None}


def _most(text: str) -> int:
    return math.ceil(len(text.encode("utf-8")) / 3)


def _check_numbers(max_tokens: int, repeat: int) -> None:
    if max_tokens < 1 or repeat < 0:
        raise ConfigError(f"a request needs max_tokens ≥ 1 and repeat ≥ 0, not {max_tokens}, {repeat}.")


def _check_text(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as exc:
        raise DataError(f"a message holds half a character (a lone surrogate): {exc.object!r}.") from exc


class Logprobs(NamedTuple):
    """What a server says of the likelihood of tokens, written as it writes them."""

    tokens: tuple[str, ...]
    """Those of the answer, after the last of the prompt where they were asked for."""
    values: tuple[float | None, ...]
    """Log-probability of each; None where the server does not say."""
    top: Mapping[str, float]
    """The likeliest tokens at the last place; what is not finite is left out."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What was answered, or why nothing was."""

    status: Status
    text: str = ""
    reasoning: str | None = None
    """What a reasoning model thought, where the server tells it apart from the text."""
    finish_reason: str | None = None
    logprobs: Logprobs | None = None
    """Where they were asked for and given."""
    usage: Tokens | None = None
    """As the server counted; None where it does not say."""
    model: str | None = None
    """The model that the server says has answered."""
    fingerprint: str | None = None
    """The server's name for its configuration; where it changes, answers at temperature 0 may too."""
    error: str | None = None
    """Why there is no answer."""


@dataclass(frozen=True, kw_only=True)
class Response(Reply):
    """What became of a request: one line of `responses.jsonl`."""

    key: str
    request: str
    """Hash of the request."""
    repeat: int
    server: str | None = None
    """The address that was asked; None for a model on this machine."""
    time: str
    """When it arrived, in UTC."""
    lost: int = 0
    """Attempts before that may have been charged although no answer arrived."""
    billed: Tokens = NO_TOKENS
    """What counts against the budget: the answer and the lost attempts; an estimate where the server does not say."""
    content: Mapping[str, Any] | None = None
    """The request itself, where the store keeps requests."""

    @classmethod
    def to(
        cls,
        request: Question,
        reply: Reply,
        *,
        keep_request: bool,
        server: str | None = None,
        lost: int = 0,
        billed: Tokens = NO_TOKENS,
    ) -> Self:
        """The response to a request, which has arrived just now; the reply may be that to another repeat."""
        return cls(
            **{field.name: getattr(reply, field.name) for field in fields(Reply)},
            key=request.key,
            request=request.hash,
            repeat=request.repeat,
            server=server,
            time=datetime.now(UTC).isoformat(timespec="milliseconds"),
            lost=lost,
            billed=billed,
            content=request.body() if keep_request else None,
        )

    @property
    def answered(self) -> bool:
        """Whether the server was heard: then it is never asked again. What failed is asked again by the next run."""
        return self.status != "error"

    def to_json(self) -> dict[str, Any]:
        """As it stands in the file."""
        return {
            **asdict(self),
            "logprobs": self.logprobs and self.logprobs._asdict(),
            "usage": self.usage and self.usage._asdict(),
            "billed": self.billed._asdict(),
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        usage, logprobs = record["usage"], record["logprobs"]
        return cls(
            **{
                **record,
                "logprobs": logprobs and Logprobs(**{**logprobs, **_tuples(logprobs)}),
                "usage": usage and Tokens(**usage),
                "billed": Tokens(**record["billed"]),
            }
        )


def _tuples(logprobs: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    return {name: tuple(logprobs[name]) for name in ("tokens", "values")}
