"""A language model behind a server that gives log-probabilities of the next token: vLLM, SGLang, llama.cpp, ….

Rows become prompts of the completions endpoint. Words are the units, as the server tokenizes texts in its own way. The
form of requests is found by trying:

```text
prompts     token ids, where we have the tokenizer and the server takes them; else text
top         the 20 likeliest next tokens, or as many as the server names
longer      the 1000 likeliest, then 10,000, for a row in which a label is not among the first
echo        the log-probabilities of the prompt's own tokens: trusted only if they agree with `top`
```

Given texts, such as the claims of an answer, are scored by `echo` alone.
"""

import contextlib
import itertools
import json
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ice_eval import servers
from ice_eval.encoding import Codec, encode, following_ids, label_ids, refuse_prefixes
from ice_eval.errors import CapabilityError, ConfigError, ModelError, RefusedError
from ice_eval.models.base import Generated, Labels, LabelScoring, Model, Pending, Turns, chosen_scoring, normalised
from ice_eval.models.function import TextCodec
from ice_eval.records import SCORED, Example, Ids, Inputs, LogScores, SpecialIds, Unit
from ice_eval.tasks import Task

SERVED = "openai:"
_OWN_FIELDS = frozenset(
    "messages model prompt max_tokens max_completion_tokens temperature seed logprobs echo stop stream n".split()
)
"""Fields of a request that no user may set: rows, limits and readings depend on them."""
_FEW_ATTEMPTS = 3
_TOPS = (20, 5)  # numbers of next tokens to request: the default limit of vLLM, and that of stricter servers
_MORE, _MOST = (1000, 100, 50), 10_000
_BY_ID: Mapping[str, Any] = {"return_tokens_as_token_ids": True}
"""Option with which vLLM names tokens by id: several may spell the same."""
_NOT_LAST: Mapping[str, Any] = {"min_tokens": 1}
"""Option for servers that name no tokens where the likeliest one ends the text; the odds of labels stay the same."""
_TOKEN_ID = "token_id:"
"""Beginning of such a name."""
_SAMPLE = "Question: What is the capital of France?\nAnswer:"
"""Prompt of trial requests where no task has one."""
_BROKEN = "\N{REPLACEMENT CHARACTER}"
"""A part of a character, in the text of a token."""
_SAME = 0.1  # largest difference of two log-probabilities of one token in half precision
_SERVERS = (
    "Servers that give them: vLLM, SGLang, llama.cpp (llama-server, or llama_cpp.server with --logits_all true); "
    "`transformers serve` does not."
)

Prompt = str | tuple[int, ...]
LabelTokens = tuple[str, ...]


@dataclass(frozen=True)
class Served:
    """A model behind a server, and limits on its cost.

    Raises:
        ConfigError: The address is invalid or holds a secret, or a number is out of range.
    """

    name: str
    """As the server knows it."""
    _: KW_ONLY
    base_url: str
    """The address before `/completions`, as in `http://localhost:8000/v1`."""
    tokenizer: str | None = None
    """Hub id or folder of the tokenizer and configuration: prompts are then token ids, if the server takes them."""
    api_key_env: str | None = None
    """The environment variable with the key; by default `OPENAI_API_KEY`, and no key where that is not set."""
    concurrency: int = 16
    """Largest number of requests at a time."""
    timeout_s: float = 300.0
    limit_field: servers.LimitField = "max_tokens"
    """The server's name for the token limit of a chat; OpenAI's newer models need `max_completion_tokens`."""
    extra_body: Mapping[str, Any] | str | None = None
    """Further fields of every request, as a mapping or as JSON: `{"reasoning_effort": "minimal"}`."""
    max_requests: int | None = None
    max_cost: float | None = None
    price_in: float | None = None
    """For a million tokens of prompt."""
    price_out: float | None = None
    """For a million tokens of answer."""

    def __post_init__(self) -> None:
        if not self.name:
            raise ConfigError(f"'{SERVED}' names no model; write {SERVED}NAME, as the server calls it.")
        self.server, self.budget, self.extra  # noqa: B018 - they check what was given

    @property
    def server(self) -> servers.Server:
        names = ("base_url", "api_key_env", "concurrency", "timeout_s", "limit_field")
        return servers.Server(**{name: getattr(self, name) for name in names})

    @property
    def extra(self) -> dict[str, Any]:
        """Further fields of every request."""
        given: Any = {} if self.extra_body is None else self.extra_body
        if isinstance(given, str):
            with contextlib.suppress(ValueError):
                given = json.loads(given)
        if not isinstance(given, Mapping):
            raise ConfigError(
                f"--extra-body {self.extra_body!r:.60}: a JSON object is expected, as "
                '\'{"reasoning_effort": "minimal"}\'.'
            )
        for name in _OWN_FIELDS & set(given):
            raise ConfigError(f"--extra-body holds '{name}', a field that ICE sets itself; leave it out there.")
        return dict(given)

    @property
    def extra_text(self) -> str | None:
        """The further fields as canonical JSON, for identities; None without any."""
        return json.dumps(self.extra, sort_keys=True, ensure_ascii=False) if self.extra else None

    @property
    def budget(self) -> servers.Budget:
        names = ("max_requests", "max_cost", "price_in", "price_out")
        return servers.Budget(**{name: getattr(self, name) for name in names})


class StoredClient:
    """Sends requests to a server, each once, and stores the answers."""

    # Answers that arrive before there is a run folder (to requests that try the server) are kept in a temporary file
    # and move into the folder with the first row: a server that cannot be used leaves nothing behind.

    def __init__(self, served: Served) -> None:
        self.server, self.budget, self.extra = served.server, served.budget, served.extra
        draft = Path(tempfile.mkdtemp(prefix="ice-"))
        weakref.finalize(self, shutil.rmtree, draft, ignore_errors=True)
        self._draft = servers.ResponseStore(draft / servers.RESPONSES)
        self._kept: servers.ResponseStore | None = None
        self._taken: dict[str, bool] = {}

    def ask(self, questions: Sequence[servers.Question], *, trying: bool = False) -> list[servers.Response]:
        """Return an answer to every question, in order; with `trying`, one that fails each time counts as refused."""
        server = replace(self.server, attempts=_FEW_ATTEMPTS) if trying else self.server
        with contextlib.nullcontext(self._kept) if self._kept is not None else self._draft as store:
            found = servers.Chat(server, store, budget=self.budget).ask(questions)
        answers = [found[question.key] for question in questions]
        for answer in answers:
            if trying and (answer.error or "").startswith("status 500"):  # some servers' "bad request"
                raise RefusedError(f"{server.base_url} refused the request: {answer.error}")
            if not answer.answered:
                raise ModelError(
                    f"{server.base_url} did not answer a request after several attempts ({answer.error}); earlier "
                    "answers are kept, and the same command continues."
                )
        return answers

    def takes(self, question: servers.Question) -> bool:
        """Return True if the server takes a question; it is tried once."""
        if question.key not in self._taken:
            try:
                self._taken[question.key] = bool(self.ask([question], trying=True))
            except RefusedError:
                self._taken[question.key] = False
        return self._taken[question.key]

    def continues(self, folder: Path) -> None:
        """Load the answers that an earlier run stored in the folder."""
        kept = folder / servers.RESPONSES
        if kept.is_file():
            list(servers.read_responses(kept))  # an error names this file, not the copy
            shutil.copyfile(kept, self._draft.path)

    @contextlib.contextmanager
    def keeping(self, folder: Path) -> Iterator[None]:
        """Store answers in a folder, earlier ones included."""
        with servers.ResponseStore(folder / servers.RESPONSES) as store:
            for key, response in self._draft.responses.items():
                if key not in store.responses or (response.answered and not store.has_answer(key)):
                    store.add(response)
            self._kept = store
            try:
                yield
            finally:
                self._kept = None

    def addresses(self) -> dict[str, Any]:
        store = self._draft if self._kept is None else self._kept
        return {"base_url": self.server.base_url, **servers.addresses(store.responses.values())}


@dataclass(frozen=True)
class Completions:
    """Requests for next tokens in the form that a server takes."""

    client: StoredClient
    model: str
    sample: Prompt  # a prompt of the task for trial requests; token ids if prompts are token ids
    top: int
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def by_ids(self) -> bool:
        return not isinstance(self.sample, str)

    def question(self, prompt: Prompt, *, repeat: int = 0, **changes: Any) -> servers.Continuation:
        chosen: dict[str, Any] = {"logprobs": self.top, "extra": self.extra, **changes}
        chosen["extra"] = {**self.client.extra, **chosen["extra"]}
        return servers.Continuation(prompt=prompt, model=self.model, repeat=repeat, **chosen)

    def echo(self, prompt: Prompt, *, repeat: int = 0, **changes: Any) -> servers.Continuation:
        """Build a request for the tokens of the prompt itself."""
        return self.question(prompt, repeat=repeat, logprobs=1, echo=True, **changes)

    def ask(self, prompts: Sequence[Prompt], *, repeat: int = 0) -> list[servers.Response]:
        """Return the likeliest next tokens of each prompt."""
        answers = self.client.ask([self.question(prompt, repeat=repeat) for prompt in prompts])
        silent = [index for index, answer in enumerate(answers) if not _top(answer)]
        extra = {**self.extra, **_NOT_LAST}
        if silent and self.client.takes(self.question(self.sample, extra=extra)):
            asked = [self.question(prompts[index], repeat=repeat, extra=extra) for index in silent]
            for index, answer in zip(silent, self.client.ask(asked), strict=True):
                answers[index] = answer
        return answers

    def longer(self) -> Iterator[int]:
        """Lengths of longer lists that the server gives, tried on first use."""

        def takes(many: int) -> bool:
            return self.client.takes(self.question(self.sample, logprobs=many))

        more = next(filter(takes, _MORE), None)
        if more is not None:
            yield more
        if more == _MORE[0] and takes(_MOST):
            yield _MOST

    def longer_list(self) -> Mapping[str, float]:
        """Return many likely tokens after the sample prompt; none where the server names few."""
        asked = [self.question(self.sample, logprobs=many) for many in itertools.islice(self.longer(), 1)]
        return _top(self.client.ask(asked)[0]) if asked else {}


def _top(answer: servers.Response) -> Mapping[str, float]:
    """Return the likeliest next tokens; none where the server names none."""
    return {} if answer.logprobs is None else answer.logprobs.top


def find_completions(
    client: StoredClient, model: str, *, text: str, ids: tuple[int, ...] | None
) -> tuple[Completions, servers.Response]:
    """Request the likeliest tokens after a prompt, in ever simpler forms; raise `CapabilityError` if none works."""
    refusal: RefusedError | None = None
    for top in _TOPS:
        asked = f"POST /completions with max_tokens=1 and logprobs={top}"
        forms = [Completions(client, model, text, top)]
        if ids is not None:
            forms = [Completions(client, model, ids, top, _BY_ID), Completions(client, model, ids, top), *forms]
        for form in forms:
            try:
                [answer] = client.ask([form.question(form.sample)], trying=True)
            except RefusedError as exc:
                refusal = exc
                continue
            if not _top(answer):
                [answer] = form.ask([form.sample])
            if not _top(answer):
                came = "no logprobs" if answer.logprobs is None else "logprobs that name no token"
                raise CapabilityError(
                    f"{client.server.base_url} gives no log-probabilities: {asked} was answered with the text "
                    f"{answer.text!r:.40} and {came}. Labels cannot be scored without them. {_SERVERS}"
                )
            return form, answer
    raise CapabilityError(f"{refusal} Log-probabilities of the next token were asked for: {asked}. {_SERVERS}")


class LabelText(NamedTuple):
    """A label as it follows a prompt."""

    word: str
    ids: tuple[int, ...] | None  # where we have the tokenizer

    def after(self, prompt: Prompt) -> Prompt:
        return prompt + self.word if isinstance(prompt, str) else (*prompt, *(self.ids or ()))


def find_label_tokens(
    completions: Completions, first: servers.Response, labels: Sequence[LabelText], spelled: Callable[[int], str]
) -> tuple[list[LabelTokens], bool]:
    """Return the tokens of each label as the server names them, and True if its echo can be trusted."""
    # `first` is its answer to the sample prompt; `spelled` returns the text of a token id.
    tokens, echoes = _tokens_by_echo(completions, labels)
    if any(token.startswith(_TOKEN_ID) for token in _top(first)) and labels[0].ids is not None:
        tokens = [tuple(f"{_TOKEN_ID}{index}" for index in label.ids or ()) for label in labels]
    elif tokens is None:
        tokens = []
        for word, ids in labels:
            listed = _one_token(word, _top(first)) or _one_token(word, completions.longer_list())
            tokens.append(listed if ids is None or (listed and len(ids) == 1) else tuple(map(spelled, ids)))
    for label, each in zip(labels, tokens, strict=True):
        if not each:
            raise ConfigError(
                f"the server does not show how its tokenizer cuts the label {label.word!r}: it repeats no prompt, and "
                "the word is not among the likeliest tokens; give --tokenizer, the model's hub id or a folder."
            )
    return tokens, _is_echo_trusted(completions, first, tokens, echoes)


def _tokens_by_echo(
    completions: Completions, labels: Sequence[LabelText]
) -> tuple[list[LabelTokens] | None, list[servers.Logprobs]]:
    """Return labels as the server cuts them, from prompts that end in a label; None where it does not repeat them."""
    asked = [completions.echo(label.after(completions.sample)) for label in labels]
    answers = completions.client.ask(asked) if completions.client.takes(asked[0]) else []
    echoes = [answer.logprobs for answer in answers if answer.logprobs is not None]
    found = [_label_at_end(echo.tokens, label) for echo, label in zip(echoes, labels, strict=False)]
    return (found, echoes) if len(found) == len(labels) and all(found) else (None, [])


def _label_at_end(tokens: LabelTokens, label: LabelText) -> LabelTokens:
    """Return the label's tokens at the end of a prompt's tokens, perhaps before one generated token; else none."""
    word, named = label.word, None if label.ids is None else tuple(f"{_TOKEN_ID}{index}" for index in label.ids)
    for end in (len(tokens) - 1, len(tokens)):
        found: LabelTokens = ()
        for start in reversed(range(max(end, 0))):
            own = tokens[start:end]
            text = "".join(own)
            if own == named or (text.strip() == word.strip() and len(text) <= len(word)):
                found = own  # a space before the word may be a token of its own: continue
            elif len(text) > len(word) and named is None:
                break
        if found:
            return found
    return ()


def _one_token(word: str, top: Mapping[str, float]) -> LabelTokens:
    """Return a label that is one token, as the server writes it; tokenizers that mark spaces lose the one before it."""
    return next(((name,) for name in (word, word.lstrip()) if name in top), ())


def _is_echo_trusted(
    completions: Completions, first: servers.Response, tokens: Sequence[LabelTokens], echoes: Sequence[servers.Logprobs]
) -> bool:
    """Return True if the echo of a label's first token has the value of the list of next tokens."""
    if not echoes:
        return False
    top = _top(first) if any(each[0] in _top(first) for each in tokens) else completions.longer_list()
    pairs = [(top[each[0]], _echoed(echo, each)) for echo, each in zip(echoes, tokens, strict=True) if each[0] in top]
    return bool(pairs) and all(value is not None and abs(value - listed) <= _SAME for listed, value in pairs)


def _echoed(echo: servers.Logprobs, tokens: LabelTokens, *, first_only: bool = True) -> float | None:
    """Return the log-probability of a label at the end of an echo: of its first token, or of all; None if missing."""
    for end in (len(echo.tokens) - 1, len(echo.tokens)):
        start = end - len(tokens)
        if start >= 0 and echo.tokens[start:end] == tokens:
            values = echo.values[start : start + 1] if first_only else echo.values[start:end]
            return None if any(value is None for value in values) else sum(value or 0.0 for value in values)
    return None


@dataclass(frozen=True)
class LabelReader:
    """Requests label scores in the cheapest way that gives all of them."""

    # The labels of a row come from one answer, or all from echoes, never from both: servers normalise over different
    # tokens. A label that no way finds is unknown, not improbable.

    completions: Completions
    labels: Sequence[LabelText]
    tokens: Sequence[LabelTokens]
    scoring: LabelScoring
    echo_is_trusted: bool

    @property
    def takes_all_tokens(self) -> bool:
        """True if a label is scored by several tokens (chain rule), which the list of next tokens does not show."""
        return self.scoring == "full" and max(map(len, self.tokens)) > 1

    def log_probabilities(self, prompts: Sequence[Prompt], *, repeat: int = 0) -> tuple[NDArray[np.float64], int]:
        """Return log-probabilities, (prompts, labels), and their cost in tokens; NaN where a label is not named."""
        if self.takes_all_tokens:
            return self._by_echo(prompts, repeat=repeat)
        answers = self.completions.ask(prompts, repeat=repeat)
        values, tokens = np.array([self._listed(_top(answer)) for answer in answers]), _cost(answers)
        unknown = _unknown(values)
        for many in self.completions.longer() if unknown else ():
            asked = [self.completions.question(prompts[index], repeat=repeat, logprobs=many) for index in unknown]
            longer = self.completions.client.ask(asked)
            for index, answer in zip(unknown, longer, strict=True):
                values[index] = self._listed(_top(answer), before=_top(answers[index]))
            tokens += _cost(longer)
            unknown = _unknown(values)
            if not unknown:
                break
        if unknown and self.echo_is_trusted:
            values[unknown], more = self._by_echo([prompts[index] for index in unknown], repeat=repeat)
            tokens += more
        return values, tokens

    def _listed(self, top: Mapping[str, float], before: Mapping[str, float] | None = None) -> list[float]:
        """Return the values of the first tokens of all labels in a list of next tokens; all NaN if one is missing."""
        # In a long list a rare token may replace a frequent one that spells the same; then the shorter list `before`,
        # where it has the label, gives another value.
        names, known = [tokens[0] for tokens in self.tokens], before or {}
        found = all(name in top and abs(top[name] - known.get(name, top[name])) <= _SAME for name in names)
        return [top[name] if found else np.nan for name in names]

    def _by_echo(self, prompts: Sequence[Prompt], *, repeat: int) -> tuple[NDArray[np.float64], int]:
        """Request an echo of each prompt with each label after it."""
        followed = [label.after(prompt) for prompt in prompts for label in self.labels]
        answers = self.completions.client.ask([self.completions.echo(each, repeat=repeat) for each in followed])
        first_only = not self.takes_all_tokens
        found = [
            answer.logprobs and _echoed(answer.logprobs, tokens, first_only=first_only)
            for answer, tokens in zip(answers, itertools.cycle(self.tokens), strict=False)
        ]
        values = np.array(found, dtype=np.float64).reshape(len(prompts), len(self.labels))
        values[_unknown(values)] = np.nan
        return values, _cost(answers)


class ScoredPrompt(NamedTuple):
    """A prompt that ends in a text to score."""

    prompt: Prompt
    spans: tuple[tuple[int, int], ...]
    """Scored characters, or ids, of the prompt, in order."""

    @property
    def last_tokens(self) -> int:
        """Largest number of tokens from the first scored one on; a server may cut a text into bytes."""
        end = self.prompt[self.spans[0][0] :]
        return len(end.encode("utf-8", "replace") if isinstance(end, str) else end) + 8

    def mean(self, echo: servers.Logprobs | None, spelled: Callable[[int], str]) -> float:
        """Return the mean log-probability of the scored tokens of an echo; NaN if it lacks one."""
        if echo is None or len(echo.tokens) != len(echo.values):
            return np.nan
        for n in (len(echo.tokens) - 1, len(echo.tokens)):  # mostly, the last token was generated
            if (bounds := self._bounds(echo.tokens[:n], spelled)) is not None:
                # A token that holds other characters too, as the bracket of a citation, is not scored.
                inside = [any(first <= begin and end <= last for first, last in self.spans) for begin, end in bounds]
                found = list(itertools.compress(reversed(echo.values[:n]), inside))
                values = [np.nan if value is None else value for value in found]
                return float(np.mean(values)) if values else np.nan
        return np.nan

    def _bounds(self, tokens: Sequence[str], spelled: Callable[[int], str]) -> list[tuple[int, int]] | None:
        """Return the places of the last tokens in the prompt, from its end to the first scored one; None: others.

        The offsets that servers give are not used: vLLM counts the marks before the text, and SGLang gives none.
        """
        start = self.spans[0][0]
        if isinstance(self.prompt, str):
            return _bounds_in_text(tokens, self.prompt, start)
        ids = self.prompt[start:]
        same = (
            token == f"{_TOKEN_ID}{index}" or _BROKEN in token or token.strip() == spelled(index).strip()
            for token, index in zip(reversed(tokens), reversed(ids), strict=False)
        )
        places = [(place - 1, place) for place in range(len(self.prompt), start, -1)]
        return places if len(tokens) >= len(ids) and all(same) else None


def _bounds_in_text(tokens: Sequence[str], text: str, start: int) -> list[tuple[int, int]] | None:
    """Return the places of tokens in a text, from its end back to `start`; None if they spell something else."""
    place, n_broken, bounds = len(text), 0, list[tuple[int, int]]()
    for token in reversed(tokens):
        if place <= start:
            break
        whole, end = token.strip(_BROKEN), place
        n_broken += token.endswith(_BROKEN)
        if whole:
            # Some tokenizers lose the spaces around a token; a part of a character does not say which one it is.
            tried = ((whole, place), (whole.strip(), len(text[:place].rstrip())))
            found = (
                (at, at - len(word))
                for word, last in tried
                for at in range(last, max(last - n_broken, 0) - 1, -1)
                if word and text.endswith(word, 0, at)
            )
            end, place = next(found, (0, -1))
            if place < 0:
                return None
            n_broken = int(token.startswith(_BROKEN))
        bounds.append((place, end))
    return bounds if place <= start else None


@dataclass(frozen=True)
class TextReader:
    """Requests log-probabilities of texts at the end of prompts."""

    completions: Completions
    name: str
    """Noun for the texts, as `claim`."""
    spelled: Callable[[int], str]
    scoring: ClassVar[str] = "given"
    tokens: ClassVar[Sequence[LabelTokens]] = ()
    echo_is_trusted: ClassVar[bool] = True

    def log_probabilities(self, prompts: Sequence[ScoredPrompt], *, repeat: int = 0) -> tuple[LogScores, int]:
        """Return mean log-probabilities, (prompts, 1), and their cost in tokens; NaN where one is missing."""
        asked = [self.completions.echo(each.prompt, repeat=repeat, last_tokens=each.last_tokens) for each in prompts]
        answers = self.completions.client.ask(asked)
        pairs = zip(prompts, answers, strict=True)
        return np.array([[each.mean(answer.logprobs, self.spelled)] for each, answer in pairs]), _cost(answers)


def _unknown(values: NDArray[np.float64]) -> list[int]:
    return list(np.flatnonzero(np.isnan(values).any(axis=1)))


def _cost(answers: Sequence[servers.Response]) -> int:
    return sum(sum(answer.usage or answer.billed) for answer in answers)


class AskedModel(Model):
    """A model that is asked for the scores of rows by requests; `submit` makes them."""

    offers = frozenset({"generate"})
    writes_in_turns: ClassVar[bool] = True
    device = "server"
    dtype = "as served"

    def log_scores(self, batch: Inputs, labels: Labels, *, prefix: int = 0) -> LogScores:
        return self.submit(batch, labels, prefix=prefix).collect()

    def peak_memory(self) -> int | None:
        return None


class ServedModel(AskedModel):
    """Requests scores of rows from a server, many at a time, and explanations in words."""

    units: ClassVar[tuple[Unit, ...]] = ("word",)

    def __init__(self, served: Served, *, reader: Callable[[str], Model]) -> None:
        """Prepare the model without a request; `reader` loads the tokenizer."""
        self.name, self.served = SERVED + served.name, served
        self._client = StoredClient(served)
        local = None if served.tokenizer is None else reader(served.tokenizer)
        self.codec: Codec = TextCodec() if local is None else local.codec
        self._has_template = local is not None and local.chats
        if self.codec.reads_pairs:
            raise ConfigError(f"--tokenizer {served.tokenizer} belongs to a classifier; a language model is served.")
        self._said: dict[str, str | None] = {"model": None, "fingerprint": None}
        self._found_reader: LabelReader | TextReader | None = None

    @property
    def fingerprint(self) -> str:
        """Return its name, tokenizer and further fields of requests: a server shows no weights."""
        extra = "" if self.served.extra_text is None else f", asked with {self.served.extra_text}"
        return f"{SERVED}{self.served.name}, texts cut by {self.served.tokenizer or 'words'}{extra}"

    @property
    def _reader(self) -> LabelReader | TextReader:
        assert self._found_reader is not None, "labels come first"
        return self._found_reader

    @property
    def _prompts_are(self) -> str:
        return "token ids" if self._reader.completions.by_ids else "text"

    @property
    def server(self) -> Mapping[str, Any]:
        reader = self._found_reader  # None: rows are chats
        return {
            **self._client.addresses(),
            "tokenizer": self.served.tokenizer,
            "extra_body": self.served.extra_text,
            "prompts": "text" if reader is None else self._prompts_are,
            "top_logprobs": 0 if reader is None else reader.completions.top,
            "echo": reader is not None and reader.echo_is_trusted,
            "label_tokens": [list(tokens) for tokens in (reader.tokens if reader is not None else ())],
            "said": self._said,
        }

    @property
    def notes(self) -> Sequence[str]:
        if isinstance(self._reader, TextReader):
            read = f"scores are log-probabilities of the {self._reader.name}s, from the server's echo"
        else:
            spelled = ", ".join(repr("".join(tokens)) for tokens in self._reader.tokens)
            read = f"the labels are its tokens {spelled}"
        return [f"{self.name}: prompts go to {self.served.base_url} as {self._prompts_are}; {read}."]

    @property
    def chats(self) -> bool:
        """True if prompts are token ids and the tokenizer has a chat template."""
        return self._has_template and self._reader.completions.by_ids

    def labels(self, task: Task, *, scoring: LabelScoring | None = None) -> Labels:
        """Send the first requests, to find how the server names the labels."""
        known = None if self.served.tokenizer is None else label_ids(self.codec, task)
        sample = encode(self.codec, task, Example("", {name: "x" for name in task.template.fields}), unit="word")
        ids = None if known is None else tuple(sample.ids.tolist())
        completions, first = self._find(self.text(sample.ids), ids)
        if task.chat and not completions.by_ids:
            raise CapabilityError(
                f"--chat needs a server that takes token ids, and {self.served.base_url} takes text; leave it out."
            )
        words = task.answers
        labels = [LabelText(word, None if known is None else known[place]) for place, word in enumerate(words)]
        tokens, trusted = find_label_tokens(completions, first, labels, self._spelled)
        refuse_prefixes(list(task.label_words), tokens)
        chosen = chosen_scoring(scoring, words, tokens)
        self._found_reader = reader = LabelReader(completions, labels, tokens, chosen, trusted)
        if reader.takes_all_tokens and not trusted:
            raise ConfigError(
                f"the server's log-probabilities of a prompt's own tokens (echo) are missing or contradict those of "
                f"the next token. The label words {', '.join(map(repr, words))} need them, since all their tokens are "
                "scored. Choose words that differ in their first token with --labels, or another server, such as vLLM."
            )
        places = known if known is not None else tuple((index,) for index in range(len(words)))
        return Labels(task.labels, places, chosen, are_classes=known is None)

    def text_labels(self, name: str) -> Labels:
        """Send the first requests, to find out whether the server's echo can be trusted."""
        ids = None if self.served.tokenizer is None else tuple(self.codec.tokenize(_SAMPLE).ids.tolist())
        completions, first = self._find(_SAMPLE, ids)
        likely = self._likely(_top(first), by_ids=completions.by_ids)
        tokens, echoes = _tokens_by_echo(completions, likely) if len(likely) > 1 else (None, [])
        if tokens is None or not _is_echo_trusted(completions, first, tokens, echoes):
            raise CapabilityError(
                f"the probability of a text is needed, and {self.served.base_url} gives no log-probabilities of a "
                "prompt's own tokens (echo), or some that contradict those of the next token; use a server such as "
                "vLLM."
            )
        self._found_reader = TextReader(completions, name, self._spelled)
        return Labels((name,), ((),), "given")

    def _find(self, text: str, ids: tuple[int, ...] | None) -> tuple[Completions, servers.Response]:
        """Return the form of requests that the server takes, and its answer to a prompt."""
        completions, first = find_completions(self._client, self.served.name, text=text, ids=ids)
        self._said = {"model": first.model, "fingerprint": first.fingerprint}
        if not completions.by_ids:
            # The name of a special token is text like any other to some servers, and the token to others: none is used.
            self.codec.special = SpecialIds(every=self.codec.special.every)
        return completions, first

    def _likely(self, top: Mapping[str, float], *, by_ids: bool) -> list[LabelText]:
        """Return two likely next tokens of different probability: an echo that is off by one has one value for both."""
        found: dict[str, LabelText] = {}
        for token in sorted(top, key=lambda each: -top[each]):
            label = LabelText(f" {token.strip()}", None)
            if by_ids and token.startswith(_TOKEN_ID):
                label = LabelText("", (int(token.removeprefix(_TOKEN_ID)),))
            elif by_ids:
                label = LabelText(token, following_ids(self.codec, _SAMPLE, token, framed=False))
            is_one = token.strip().isalnum() if label.ids is None else len(label.ids) == 1
            if is_one and all(top[other] - top[token] > 4 * _SAME for other in found):
                found[token] = label
        return list(found.values())[:2]

    def again(self, batch: Inputs, labels: Labels, *, prefix: int = 0) -> LogScores:
        """Send requests anew, ignoring stored answers."""
        return self._scores(batch, repeat=1)[0]

    def submit(self, batch: Inputs, labels: Labels, *, prefix: int = 0) -> Pending:
        scores, tokens = self._scores(batch)
        return Pending(lambda: scores, tokens)

    def _scores(self, batch: Inputs, *, repeat: int = 0) -> tuple[LogScores, int]:
        if isinstance(self._reader, TextReader):
            return self._reader.log_probabilities(self._scored_prompts(batch), repeat=repeat)
        values, tokens = self._reader.log_probabilities(self._prompts(batch), repeat=repeat)
        return normalised(values), tokens

    def check(self, batch: Inputs, labels: Labels, *, prefix: int) -> list[str]:
        """Raise for empty prompts: a server takes none."""
        if not all(self._prompts(batch)):
            raise ConfigError(
                f"without the removable words the prompt is empty, which {self.name} does not "
                "accept; put words around the text, and use --scope content."
            )
        return []

    def generate(
        self, prompts: Sequence[str], *, turns: Turns | None, max_tokens: int, stop: str | None
    ) -> list[Generated]:
        """Return answers of the chat endpoint, at temperature 0."""
        questions = self.chat_requests(prompts, turns=turns, max_tokens=max_tokens)
        pairs = zip(self.replies(questions), questions, strict=True)
        return [Generated(answer.text, sum(answer.usage or question.most_tokens())) for answer, question in pairs]

    def chat_requests(
        self, prompts: Sequence[str], *, turns: Turns | None, max_tokens: int, repeat: int = 0
    ) -> list[servers.Request]:
        """Return requests to the chat endpoint, at temperature 0."""
        before = [servers.Message(role, text) for role, text in turns or ()]  # type: ignore[arg-type]
        options: dict[str, Any] = {"model": self.served.name, "max_tokens": max_tokens, "temperature": 0.0}
        options |= {"extra": self.served.extra, "repeat": repeat}
        return [servers.Request(messages=(*before, servers.Message("user", prompt)), **options) for prompt in prompts]

    def replies(self, requests: Sequence[servers.Request]) -> list[servers.Response]:
        """Return the reply to each request, from the store or from the server."""
        answers = self._client.ask(requests)
        if answers and self._found_reader is None:
            self._said = {"model": answers[0].model, "fingerprint": answers[0].fingerprint}
        return answers

    def outlook(self, rows: int, inputs: Inputs) -> list[str]:
        """Return the largest number of requests and tokens, and the cost, with one request per row (or per label)."""
        reader = self._reader
        per_row = len(reader.tokens) if reader.scoring == "full" else 1
        return self.estimate(rows * per_row, [reader.completions.question(prompt) for prompt in self._prompts(inputs)])

    def estimate(self, n_asked: int, like: Sequence[servers.Question]) -> list[str]:
        """Return the largest number of tokens, and the cost, of requests like some."""
        read, written = (
            round(n_asked * float(np.mean(each))) for each in zip(*(q.most_tokens() for q in like), strict=True)
        )
        cost = self.served.budget.cost(servers.TokenUsage(read, written))
        price = "" if cost is None else f", at most about {cost:.2f}"
        return [
            f"about {n_asked:,} requests to {self.served.base_url}, {read:,} tokens to read and {written:,} "
            f"to write{price}; equal rows are sent once, and rows with answers in the folder are not sent."
        ]

    def continues(self, folder: Path) -> None:
        self._client.continues(folder)

    def keeping(self, folder: Path) -> AbstractContextManager[None]:
        return self._client.keeping(folder)

    def default_budget(self) -> int:
        """Return a few hundred rows: enough to keep many requests going, and few enough to report progress often."""
        return 8_192

    def _spelled(self, token: int) -> str:
        return self.codec.decode([np.array([token])])[0]

    def _prompts(self, batch: Inputs) -> list[Prompt]:
        rows = [batch.row(index) for index in range(len(batch))]
        return [tuple(row.tolist()) if self._reader.completions.by_ids else self.text(row) for row in rows]

    def _scored_prompts(self, batch: Inputs) -> list[ScoredPrompt]:
        found = []
        for index, prompt in enumerate(self._prompts(batch)):
            ids, scored = batch.row(index), batch.take([index]).segments == SCORED
            bounds = np.flatnonzero(np.diff(scored, prepend=False, append=False)).tolist()
            if isinstance(prompt, str):
                bounds = [len(self.text(ids[:bound])) for bound in bounds]
            found.append(ScoredPrompt(prompt, tuple(zip(bounds[::2], bounds[1::2], strict=True))))
        return found

    def text(self, ids: Ids) -> str:
        """Return the text of ids, without the special tokens before it, which the server adds itself."""
        special = np.isin(ids, list(self.codec.special.every))
        start = int(np.argmin(special)) if special.any() and not special.all() else 0
        return self.codec.decode([ids[start:]])[0]
