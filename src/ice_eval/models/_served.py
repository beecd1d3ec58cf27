"""A language model behind a server: vLLM, SGLang, llama.cpp, or whoever gives log-probabilities of the next token.

Rows become prompts of the completions endpoint, as token ids where both sides know them and as text elsewhere. Labels
are read off the likeliest next tokens. Words are the units: how the server cuts a text into tokens is its own affair.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ice_eval.encoding import Codec, encode, label_ids, refuse_prefixes
from ice_eval.errors import CapabilityError, ConfigError
from ice_eval.models._base import Model, normalised
from ice_eval.models._pieces import TextCodec
from ice_eval.models._records import Generated, Labels, LabelScoring, Pending
from ice_eval.models._served_line import Line
from ice_eval.models._served_means import LabelTokens, Means, Prompt, find_label_tokens, find_means
from ice_eval.models._served_scores import LabelReader
from ice_eval.records import Example, Ids, Inputs, LogScores, SpecialIds, Unit
from ice_eval.servers import Budget, Message, Request, Response, Server, Tokens
from ice_eval.tasks import Task

SERVED = "openai:"
"""How the name of a model behind a server begins."""


@dataclass(frozen=True)
class Served:
    """A model behind a server, and what asking it may cost.

    Raises:
        ConfigError: The address is none or holds a secret, or a number makes no sense.
    """

    name: str
    """As the server knows it."""
    _: KW_ONLY
    base_url: str
    """Up to what comes before `/completions`, as in `http://localhost:8000/v1`."""
    tokenizer: str | None = None
    """The model's hub id or a folder with its tokenizer and configuration: prompts are then token ids, if the server
    takes them."""
    api_key_env: str | None = None
    """The environment variable with the key; by default `OPENAI_API_KEY`, and no key where that is not set."""
    concurrency: int = 16
    """Requests under way at once, at most."""
    timeout_s: float = 300.0
    max_requests: int | None = None
    max_cost: float | None = None
    price_in: float | None = None
    """For a million tokens of prompt."""
    price_out: float | None = None
    """For a million tokens of answer."""

    def __post_init__(self) -> None:
        if not self.name:
            raise ConfigError(f"'{SERVED}' names no model; write {SERVED}NAME, as the server calls it.")
        self.server, self.budget  # noqa: B018 - they check what was given

    @property
    def server(self) -> Server:
        return Server(
            base_url=self.base_url,
            api_key_env=self.api_key_env,
            concurrency=self.concurrency,
            timeout_s=self.timeout_s,
        )

    @property
    def budget(self) -> Budget:
        names = ("max_requests", "max_cost", "price_in", "price_out")
        return Budget(**{name: getattr(self, name) for name in names})


class ServedModel(Model):
    """Asks a server for the scores of rows, many at a time, and for explanations in words."""

    offers = frozenset({"generate"})
    units: ClassVar[tuple[Unit, ...]] = ("word",)
    writes_in_turns: ClassVar[bool] = True
    device = "server"
    dtype = "as served"

    def __init__(self, served: Served, *, reader: Callable[[str], Model]) -> None:
        """Ask nobody yet.

        Args:
            served: Where it is.
            reader: Loads what reads texts as the model does, if a tokenizer is given.
        """
        self.name = SERVED + served.name
        self._served = served
        self._line = Line(served.server, served.budget)
        self._codec: Codec = TextCodec() if served.tokenizer is None else reader(served.tokenizer).codec
        if self._codec.reads_pairs:
            raise ConfigError(f"--tokenizer {served.tokenizer} belongs to a classifier; a language model is served.")
        self._said: dict[str, str | None] = {}
        self._means: Means | None = None
        self._reader: LabelReader | None = None

    @property
    def codec(self) -> Codec:
        return self._codec

    @property
    def fingerprint(self) -> str:
        """Its name, and what cuts its texts: a server shows no weights."""
        return f"{SERVED}{self._served.name}, texts cut by {self._served.tokenizer or 'words'}"

    @property
    def server(self) -> Mapping[str, Any]:
        means, reader = self._asked()
        return {
            **self._line.addresses(),
            "tokenizer": self._served.tokenizer,
            "prompts": "token ids" if means.by_ids else "text",
            "top_logprobs": means.top,
            "echo": reader.echo_is_trusted,
            "label_tokens": [list(tokens) for tokens in reader.tokens],
            "said": self._said,
        }

    @property
    def notes(self) -> Sequence[str]:
        means, reader = self._asked()
        how = "token ids" if means.by_ids else "text"
        spelled = ", ".join(repr("".join(tokens)) for tokens in reader.tokens)
        return [f"{self.name}: prompts go to {self._served.base_url} as {how}; the labels are its tokens {spelled}."]

    def labels(self, task: Task, *, scoring: LabelScoring | None = None) -> Labels:
        """How the server names the labels; it is asked for this, and heard for the first time."""
        known = None if self._served.tokenizer is None else label_ids(self._codec, task)
        sample = encode(self._codec, task, Example("", {name: "x" for name in task.template.fields}), unit="word")
        ids = None if known is None else tuple(sample.ids.tolist())
        means, first = find_means(self._line, self._served.name, text=self._text(sample.ids), ids=ids)
        self._said = {"model": first.model, "fingerprint": first.fingerprint}
        if not means.by_ids:
            self._read_as_text(task)
        words = task.answers
        tokens, trusted = find_label_tokens(means, first, words, known, self._spelled)
        refuse_prefixes(list(task.label_words), tokens)
        chosen = _scoring(words, tokens, scoring, trusted)
        own = known if means.by_ids else None
        self._means, self._reader = means, LabelReader(means, words, own, tokens, chosen, trusted)
        places = known if known is not None else tuple((index,) for index in range(len(words)))
        return Labels(task.labels, places, chosen, are_classes=known is None)

    def _read_as_text(self, task: Task) -> None:
        if task.chat:
            raise CapabilityError(
                f"--chat needs a server that takes token ids, and {self._served.base_url} takes text; leave it out."
            )
        # What spells a special token is text like any other to some servers, and the token to others: nobody writes it.
        self._codec.special = SpecialIds(every=self._codec.special.every)

    def log_scores(self, batch: Inputs, labels: Labels, *, prefix: int = 0) -> LogScores:
        return self.submit(batch, labels, prefix=prefix).collect()

    def again(self, batch: Inputs, labels: Labels, *, prefix: int = 0) -> LogScores:
        """The server is asked anew, in place of the file that remembers what it said."""
        return normalised(self._asked()[1].log_probabilities(self._prompts(batch), repeat=1).values)

    def submit(self, batch: Inputs, labels: Labels, *, prefix: int = 0) -> Pending:
        found = self._asked()[1].log_probabilities(self._prompts(batch))
        scores = normalised(found.values)
        return Pending(lambda: scores, found.tokens)

    def check(self, batch: Inputs, labels: Labels, *, prefix: int) -> list[str]:
        """A server takes no empty prompt, and what is removed must leave one."""
        if not all(self._prompts(batch)):
            raise ConfigError(
                f"without the words that may be removed nothing is left of the prompt, and {self.name} takes no empty "
                "one; put words around the text, and use --scope content."
            )
        return []

    def generate(
        self, prompts: Sequence[str], *, turns: Sequence[tuple[str, str]] | None, max_tokens: int, stop: str | None
    ) -> list[Generated]:
        """Answers of the chat endpoint, at temperature 0."""
        before = [Message(role, text) for role, text in turns or ()]  # type: ignore[arg-type]
        questions = [
            Request(
                messages=(*before, Message("user", prompt)),
                model=self._served.name,
                max_tokens=max_tokens,
                temperature=0.0,
            )
            for prompt in prompts
        ]
        answers = self._line.ask(questions)
        return [
            Generated(answer.text, _tokens(answer, question))
            for answer, question in zip(answers, questions, strict=True)
        ]

    def outlook(self, rows: int, inputs: Inputs) -> list[str]:
        """Requests, tokens and cost at most, if every row is asked for once; long labels need one for each."""
        means, reader = self._asked()
        most = [means.question(prompt).most_tokens() for prompt in self._prompts(inputs)]
        per_row = len(reader.tokens) if reader.scoring == "full" else 1
        tokens = Tokens(round(rows * per_row * float(np.mean([each.prompt for each in most]))), rows * per_row)
        cost = self._line.cost(tokens)
        price = "" if cost is None else f", at most about {cost:.2f}"
        return [
            f"about {rows * per_row:,} requests to {self._served.base_url}, {tokens.prompt:,} tokens to read and "
            f"{tokens.completion:,} to write{price}; rows that are alike are asked once, and answers in the folder not "
            "again."
        ]

    def continues(self, folder: Path) -> None:
        self._line.continues(folder)

    def keeping(self, folder: Path) -> AbstractContextManager[None]:
        return self._line.keeping(folder)

    def default_budget(self) -> int:
        """A few hundred rows: enough to keep many requests under way, and soon enough to say how far it is."""
        return 8_192

    def peak_memory(self) -> int | None:
        return None

    def _asked(self) -> tuple[Means, LabelReader]:
        assert self._means is not None and self._reader is not None, "labels come first"
        return self._means, self._reader

    def _prompts(self, batch: Inputs) -> list[Prompt]:
        """Each row as the server takes it."""
        rows = [batch.row(index) for index in range(len(batch))]
        return [tuple(row.tolist()) for row in rows] if self._asked()[0].by_ids else [self._text(row) for row in rows]

    def _text(self, ids: Ids) -> str:
        """What ids spell, without the special tokens before it, which the server adds itself."""
        special = np.isin(ids, list(self._codec.special.every))
        start = int(np.argmin(special)) if special.any() and not special.all() else 0
        return self._codec.decode([ids[start:]])[0]

    def _spelled(self, index: int) -> str:
        return self._codec.decode([np.array([index])])[0]


def _scoring(
    words: Sequence[str], tokens: LabelTokens, asked: LabelScoring | None, echo_is_trusted: bool
) -> LabelScoring:
    """The cheapest way that tells labels apart, or the one that was asked for, if the server can give it.

    Raises:
        ConfigError: It cannot.
    """
    named = ", ".join(map(repr, words))
    distinct = len({first for first, *_ in tokens}) == len(tokens)
    if asked == "first" and not distinct:
        raise ConfigError(f"the label words {named} do not differ in their first token; use --label-scoring full.")
    chosen: LabelScoring = asked or ("first" if distinct else "full")
    if chosen == "full" and max(map(len, tokens)) > 1 and not echo_is_trusted:
        raise ConfigError(
            f"all tokens of the label words {named} must be scored, and the server's log-probabilities of a prompt's "
            "own tokens (echo) are missing or contradict those of the next token; choose words that differ in their "
            "first token with --labels, or another server, such as vLLM."
        )
    return chosen


def _tokens(answer: Response, question: Request) -> int:
    return sum(answer.usage or question.most_tokens())
