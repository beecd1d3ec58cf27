"""How a server can be asked for the log-probabilities of labels: found out by asking, never taken for granted.

```text
 prompts     token ids, where we have the tokenizer and the server takes them; else text
 top         the 20 likeliest next tokens, or as many as the server names
 longer      the 1000 likeliest, then 10,000, for a row in which a label is not among the first
 echo        the log-probabilities of the prompt's own tokens: trusted only if they repeat what `top` says
```
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ice_eval.errors import ConfigError, RefusedError
from ice_eval.models._served_line import Line
from ice_eval.servers import Continuation, Logprobs, Response

_TOPS = (20, 5)
"""Tokens to be named: what vLLM allows unless told otherwise, and what less generous servers do."""
_MORE, _MOST = (1000, 100, 50), 10_000
_BY_ID: Mapping[str, Any] = {"return_tokens_as_token_ids": True}
"""vLLM then names tokens by id: several may spell the same."""
_NOT_LAST: Mapping[str, Any] = {"min_tokens": 1}
"""Where the likeliest token ends the text, some servers name none; it does not matter to the odds of labels."""
_SAME = 0.1
"""Log-probabilities of one token that differ by no more are the same number, computed twice in half precision."""

Prompt = str | tuple[int, ...]
LabelTokens = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Means:
    """What a server takes and gives."""

    line: Line
    model: str
    sample: Prompt
    """Some prompt of the task, to try things with: token ids where prompts are."""
    top: int
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def by_ids(self) -> bool:
        """Whether prompts are token ids."""
        return not isinstance(self.sample, str)

    def question(self, prompt: Prompt, *, repeat: int = 0, **changes: Any) -> Continuation:
        """What comes next?"""
        chosen: dict[str, Any] = {"logprobs": self.top, "extra": self.extra, **changes}
        return Continuation(prompt=prompt, model=self.model, repeat=repeat, **chosen)

    def ask(self, prompts: Sequence[Prompt], *, repeat: int = 0) -> list[Response]:
        """The likeliest next tokens of each prompt."""
        answers = self.line.ask([self.question(prompt, repeat=repeat) for prompt in prompts])
        silent = [index for index, answer in enumerate(answers) if not top_of(answer)]
        if silent and self._names_unless_last:
            extra = {**self.extra, **_NOT_LAST}
            asked = [self.question(prompts[index], repeat=repeat, extra=extra) for index in silent]
            for index, answer in zip(silent, self.line.ask(asked), strict=True):
                answers[index] = answer
        return answers

    def ask_longer(self, prompts: Sequence[Prompt], many: int, *, repeat: int = 0) -> list[Response]:
        """Many more of the next tokens of each prompt."""
        return self.line.ask([self.question(prompt, repeat=repeat, logprobs=many) for prompt in prompts])

    def ask_echo(self, prompts: Sequence[Prompt], *, repeat: int = 0) -> list[Response]:
        """The tokens of each prompt and their log-probabilities."""
        return self.line.ask([self.echo(prompt, repeat=repeat) for prompt in prompts])

    def echo(self, prompt: Prompt, *, repeat: int = 0) -> Continuation:
        """What does the prompt consist of?"""
        return self.question(prompt, repeat=repeat, logprobs=1, echo=True)

    def longer(self) -> Iterator[int]:
        """Lengths of longer lists that the server gives, found out when somebody asks."""
        if self._more is not None:
            yield self._more
        if self._more == _MORE[0] and self._names_most:
            yield _MOST

    @cached_property
    def _more(self) -> int | None:
        return next((many for many in _MORE if self.line.takes(self.question(self.sample, logprobs=many))), None)

    @cached_property
    def _names_most(self) -> bool:
        return self.line.takes(self.question(self.sample, logprobs=_MOST))

    @cached_property
    def _names_unless_last(self) -> bool:
        return self.line.takes(self.question(self.sample, extra={**self.extra, **_NOT_LAST}))


def top_of(answer: Response) -> Mapping[str, float]:
    """The likeliest next tokens; none where the server names none."""
    return {} if answer.logprobs is None else answer.logprobs.top


def find_means(line: Line, model: str, *, text: str, ids: tuple[int, ...] | None) -> tuple[Means, Response]:
    """Ask for the likeliest tokens after one prompt, in ever more modest ways, and notice if they do not come.

    Args:
        line: To the server.
        model: Its name there.
        text: The prompt.
        ids: The same as token ids; None where we have no tokenizer.

    Raises:
        ConfigError: The server is not there, or gives no log-probabilities.
    """
    refusal: RefusedError | None = None
    for top in _TOPS:
        ways = [Means(line, model, text, top)]
        if ids is not None:
            ways = [Means(line, model, ids, top, _BY_ID), Means(line, model, ids, top), *ways]
        for means in ways:
            try:
                [answer] = line.try_to_ask([means.question(means.sample)])
            except RefusedError as exc:
                refusal = exc
                continue
            if not top_of(answer):
                [answer] = means.ask([means.sample])
            if not top_of(answer):
                raise _nothing_named(line, means, answer)
            return means, answer
    raise ConfigError(f"{refusal} Log-probabilities of the next token were asked for: {_asked(top)}. {_WHO}")


_WHO = (
    "Servers that give them: vLLM, SGLang, llama.cpp (llama-server, or llama_cpp.server with --logits_all true); "
    "`transformers serve` does not."
)


def _asked(top: int) -> str:
    return f"POST /completions with max_tokens=1 and logprobs={top}"


def _nothing_named(line: Line, means: Means, answer: Response) -> ConfigError:
    came = "no logprobs" if answer.logprobs is None else "logprobs that name no token"
    return ConfigError(
        f"{line.server.base_url} gives no log-probabilities: {_asked(means.top)} was answered with the text "
        f"{answer.text!r:.40} and {came}. Labels cannot be scored without them. {_WHO}"
    )


def find_label_tokens(
    means: Means,
    first: Response,
    words: Sequence[str],
    ids: Sequence[tuple[int, ...]] | None,
    spelled: Callable[[int], str],
) -> tuple[LabelTokens, bool]:
    """The tokens of each label as the server names them, and whether its echo can be trusted.

    Args:
        means: How it is asked.
        first: Its answer to the sample prompt.
        words: What the labels are, as they follow a prompt.
        ids: Their token ids, where we have the tokenizer.
        spelled: What a token id spells.

    Raises:
        ConfigError: The server does not show how its tokenizer cuts a label.
    """
    tokens, echoes = _by_echo(means, words, ids)
    if ids is not None and any(token.startswith("token_id:") for token in top_of(first)):
        tokens = [tuple(f"token_id:{index}" for index in each) for each in ids]
    elif tokens is None:
        tokens = [_whole(word, top_of(first)) or _whole(word, _long_list(means)) for word in words]
        if ids is not None:
            pairs = zip(tokens, ids, strict=True)
            tokens = [seen if seen and len(own) == 1 else tuple(map(spelled, own)) for seen, own in pairs]
    for word, each in zip(words, tokens, strict=True):
        if not each:
            raise ConfigError(
                f"the server does not show how its tokenizer cuts the label {word!r}: it repeats no prompt, and the "
                "word is not among the likeliest tokens; give --tokenizer, the model's hub id or a folder."
            )
    return tuple(tokens), _is_trusted(means, first, tokens, echoes)


def _by_echo(
    means: Means, words: Sequence[str], ids: Sequence[tuple[int, ...]] | None
) -> tuple[list[tuple[str, ...]] | None, list[Logprobs]]:
    """Labels as the server cuts them, from prompts that end in a label; None where it does not repeat them."""
    asked = [means.echo(followed(means.sample, word, own)) for word, own in _paired(words, ids)]
    if not means.line.takes(asked[0]):
        return None, []
    answers = means.line.ask(asked)
    said = [answer.logprobs for answer in answers if answer.logprobs is not None]
    if len(said) < len(answers):
        return None, []
    found = [_tail(each.tokens, word, own) for each, (word, own) in zip(said, _paired(words, ids), strict=True)]
    if any(place is None for place in found):
        return None, []
    return [each.tokens[place] for each, place in zip(said, found, strict=True) if place is not None], said


def _paired(words: Sequence[str], ids: Sequence[tuple[int, ...]] | None) -> list[tuple[str, tuple[int, ...] | None]]:
    return list(zip(words, ids if ids is not None else [None] * len(words), strict=True))


def followed(prompt: Prompt, word: str, ids: tuple[int, ...] | None) -> Prompt:
    """A prompt and a label after it."""
    return prompt + word if isinstance(prompt, str) else (*prompt, *(ids or ()))


def _tail(tokens: Sequence[str], word: str, ids: tuple[int, ...] | None) -> slice | None:
    """Where a label stands at the end of a prompt's tokens; after it may stand one token that was written."""
    named = None if ids is None else [f"token_id:{index}" for index in ids]
    for end in (len(tokens) - 1, len(tokens)):
        found = None
        for start in reversed(range(max(end, 0))):
            own = list(tokens[start:end])
            spells = "".join(own)
            if own == named or (spells.strip() == word.strip() and len(spells) <= len(word)):
                found = slice(start, end)  # a space before the word may be a token of its own: look on
            elif len(spells) > len(word) and named is None:
                break
        if found is not None:
            return found
    return None


def _whole(word: str, top: Mapping[str, float]) -> tuple[str, ...]:
    """A label that is one token, as the server writes it; tokenizers that mark spaces lose the one before it."""
    return next(((name,) for name in (word, word.lstrip()) if name in top), ())


def _long_list(means: Means) -> Mapping[str, float]:
    """What the server says of many tokens after the sample prompt; nothing where it names few."""
    many = next(means.longer(), None)
    return {} if many is None else top_of(means.ask_longer([means.sample], many)[0])


def _is_trusted(means: Means, first: Response, tokens: Sequence[tuple[str, ...]], echoes: Sequence[Logprobs]) -> bool:
    """Whether the echo of a label's first token says what the list of next tokens says of it."""
    if not echoes:
        return False
    top = top_of(first) if any(each[0] in top_of(first) for each in tokens) else _long_list(means)
    pairs = [(top[each[0]], value_of(echo, each)) for echo, each in zip(echoes, tokens, strict=True) if each[0] in top]
    return bool(pairs) and all(value is not None and is_same(value, said) for said, value in pairs)


def is_same(one: float, other: float) -> bool:
    """Whether two log-probabilities are one number, computed twice."""
    return abs(one - other) <= _SAME


def value_of(echo: Logprobs, tokens: Sequence[str], *, first_only: bool = True) -> float | None:
    """Log-probability of a label at the end of an echo: of its first token, or of all; None where it is not there."""
    for end in (len(echo.tokens) - 1, len(echo.tokens)):
        start = end - len(tokens)
        if start >= 0 and echo.tokens[start:end] == tuple(tokens):
            values = echo.values[start : start + 1] if first_only else echo.values[start:end]
            return None if any(value is None for value in values) else sum(value or 0.0 for value in values)
    return None
