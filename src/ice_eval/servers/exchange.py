"""One request to a chat server, and what came back."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

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


@dataclass(frozen=True, kw_only=True)
class Request:
    """A question to a chat model. Equal requests are one question, asked once for each `repeat`.

    Raises:
        ConfigError: A number makes no sense, or a message is no text.
    """

    messages: tuple[Message, ...]
    model: str
    max_tokens: int
    temperature: float | None = None
    """None leaves it to the server; some models accept no other value."""
    seed: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the request, for what only some servers know."""
    repeat: int = 0
    """Which of several independent answers to the same question this is."""

    def __post_init__(self) -> None:
        if self.max_tokens < 1 or self.repeat < 0:
            raise ConfigError(f"a request needs max_tokens ≥ 1 and repeat ≥ 0, not {self.max_tokens}, {self.repeat}.")
        try:
            "".join(message.content for message in self.messages).encode("utf-8")
        except UnicodeEncodeError as exc:
            raise DataError(f"a message holds half a character (a lone surrogate): {exc.object!r}.") from exc

    def body(self) -> dict[str, Any]:
        """The fields that the server gets."""
        chosen = {"temperature": self.temperature, "seed": self.seed}
        return {
            **self.extra,
            **{name: value for name, value in chosen.items() if value is not None},
            "messages": [message._asdict() for message in self.messages],
            "model": self.model,
            "max_tokens": self.max_tokens,
        }

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the question as canonical JSON; `repeat` is no part of it."""
        text = json.dumps(self.body(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    @property
    def key(self) -> str:
        """The name under which the answer is kept."""
        return f"{self.hash}-{self.repeat}"

    def most_tokens(self) -> Tokens:
        """What the answer may cost, rather too much: a token per three bytes, and all the tokens that are allowed."""
        prompt = sum(4 + math.ceil(len(message.content.encode("utf-8")) / 3) for message in self.messages)
        return Tokens(prompt, self.max_tokens)


@dataclass(frozen=True, kw_only=True)
class Response:
    """What became of a request: one line of `responses.jsonl`."""

    key: str
    request: str
    """Hash of the request."""
    repeat: int
    status: Status
    text: str = ""
    reasoning: str | None = None
    """What a reasoning model thought, where the server tells it apart from the text."""
    finish_reason: str | None = None
    usage: Tokens | None = None
    """As the server counted; None where it does not say."""
    model: str | None = None
    """The model that the server says has answered."""
    fingerprint: str | None = None
    """The server's name for its configuration; where it changes, answers at temperature 0 may too."""
    time: str
    """When it arrived, in UTC."""
    lost: int = 0
    """Attempts before that may have been charged although no answer arrived."""
    billed: Tokens = NO_TOKENS
    """What counts against the budget: the answer and the lost attempts; an estimate where the server does not say."""
    error: str | None = None
    """Why there is no answer."""
    content: Mapping[str, Any] | None = None
    """The request itself, where the store keeps requests."""

    @property
    def answered(self) -> bool:
        """Whether the server was heard: then it is never asked again. What failed is asked again by the next run."""
        return self.status != "error"

    def to_json(self) -> dict[str, Any]:
        """As it stands in the file."""
        return {**asdict(self), "usage": self.usage and self.usage._asdict(), "billed": self.billed._asdict()}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        usage = record.get("usage")
        return cls(**{**record, "usage": usage and Tokens(**usage), "billed": Tokens(**record["billed"])})
