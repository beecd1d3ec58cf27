"""A model that is asked in words for the answer after some steps: to the engine it scores inputs as any other does."""

import contextlib
import functools
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ice_eval import servers
from ice_eval.encoding import Codec, Tokens
from ice_eval.errors import ConfigError
from ice_eval.models import SERVED, Generated, Labels, LabelScoring, Model, Pending, Served
from ice_eval.models.served import AskedModel, ServedModel
from ice_eval.records import Ids, Inputs, SpecialIds, Unit
from ice_eval.results.records import ChainInfo, TokenCount
from ice_eval.subjects.chain.local import AnswerScorer
from ice_eval.subjects.chain.problems import whole_words
from ice_eval.subjects.chain.steps import visible
from ice_eval.tasks import AnyTask

if TYPE_CHECKING:
    from ice_eval.subjects.chain.subject import ChainSubject

MOST_REPEATS = 1 << 20
"""Smaller ids are repeats and poses; those of problems and steps are hashes."""
LOOKS = frozenset({"attention_maps", "attentions", "embeddings", "gradients"})
"""Needs of attributions that look into the model."""


def rows_of(inputs: Inputs) -> list[Ids]:
    """Return the ids of each input."""
    return [inputs.row(index) for index in range(len(inputs))]


class StepCodec(Codec):
    """The ids of problems and steps: hashes of their texts, so that they mean the same in every run."""

    reads_pairs = False
    max_tokens = 1 << 30
    special = SpecialIds()

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}

    def id_of(self, text: str, *, kind: str = "step") -> int:
        digest = hashlib.blake2b(f"{kind}\0{text}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
        found = int.from_bytes(digest, "little") >> 1 | MOST_REPEATS
        self._texts[found] = text
        return found

    def text(self, index: int) -> str:
        return self._texts[index]

    def decode(self, rows: Sequence[Ids]) -> list[str]:
        return ["\n".join(self._texts.get(index, "") for index in row.tolist()) for row in rows]

    def tokenize(self, text: str, pair: str | None = None, *, framed: bool = False) -> Tokens:
        raise TypeError("a chain is split into steps, not tokens")

    def chat_frame(self, turns: Sequence[tuple[str, str]]) -> tuple[str, str]:
        raise TypeError("requests have turns of their own")


class LocalChat(servers.Asker[servers.Request]):
    """A model of transformers that chats.

    Answers depend neither on what is asked beside them nor on the order: in batches scores move by rounding, and only
    where two tokens are as likely to some 1e-6 may that show. Repeats of a request that nothing is drawn for have one
    answer, which is computed once. A chat that leaves no room for an answer gets a response with the status `too_long`.
    """

    def __init__(self, model: Model, store: servers.ResponseStore) -> None:
        super().__init__(store)
        self.check(model)
        self._model = model

    @staticmethod
    def check(model: Model) -> None:
        """Raise ConfigError if a model does not chat."""
        if not model.chats:
            raise ConfigError(
                f"the model '{model.name}' has no chat template, so it cannot answer questions; choose one that was "
                "trained to follow instructions (such as …-Instruct, …-Chat or …-it)."
            )

    def _ask_missing(self, missing: Sequence[servers.Request], progress: Callable[[int], None]) -> None:
        for request in missing:
            if request.extra:
                fields = ", ".join(map(repr, request.extra))
                raise ConfigError(f"a model on this machine does not support the request field {fields}; leave it out.")
            if request.temperature is not None and request.temperature < 0:
                raise ConfigError(f"the temperature is {request.temperature}; expected a number that is not negative.")
        try:
            for response in self._answered(missing):
                self.store.add(response)
                progress(1)
        except BaseException as exc:
            self._say_kept(exc)
            raise

    def _answered(self, missing: Sequence[servers.Request]) -> Iterator[servers.Response]:
        """Yield the response to each request; those to other repeats of a request cost nothing."""
        answered = {each.request: each for each in self.store.responses.values() if each.answered}
        groups: dict[str, list[servers.Request]] = {}
        for request in missing:
            draws = bool(request.temperature)  # tokens are drawn, so that repeats differ
            if not draws and request.hash in answered:
                yield servers.Response.to(request, answered[request.hash])
            else:
                groups.setdefault(request.key if draws else request.hash, []).append(request)
        asked = list(groups.values())
        for place, written in self._model.converse([first for first, *_ in asked]):
            first, *others = asked[place]
            reply = replace(written, model=self._model.name, fingerprint=self._fingerprint)
            yield servers.Response.to(first, reply, billed=reply.usage or servers.NO_TOKENS)
            yield from (servers.Response.to(other, reply) for other in others)

    @functools.cached_property
    def _fingerprint(self) -> str:
        """All weights are read for it, so once."""
        return self._model.fingerprint


class ChainModel(AskedModel):
    """A model that is asked in words, behind a server or on this machine; its tokens are steps."""

    units: ClassVar[tuple[Unit, ...]] = ("step",)
    part_size = 64

    def __init__(self, model: Model | Served, subject: "ChainSubject") -> None:
        """Take a model, and the subject that makes requests of inputs and reads the replies; nothing is asked."""
        self._subject = subject
        self.codec = subject.codec
        self._asker: servers.Asker[servers.Request] | None = None
        self.inner: Model | None = None
        self.scorer: AnswerScorer | None = None
        if isinstance(model, Model) and not isinstance(model, ServedModel):
            LocalChat.check(model)
            self._served, self.inner, self.scorer = None, model, AnswerScorer(model)
            self.name = self.asked_as = model.name
            self.device, self.dtype, self.load_in, self.commit = model.device, model.dtype, model.load_in, model.commit
            self.offers |= model.offers & LOOKS
            self.budget, self.extra, self.extra_text, self.base_url = servers.Budget(), dict[str, Any](), None, None
            return
        self._served = served = model.served if isinstance(model, ServedModel) else model
        self.name = model.name if isinstance(model, ServedModel) else SERVED + served.name  # a grid has its own names
        self.asked_as, self.budget, self.base_url = served.name, served.budget, served.base_url
        self.extra, self.extra_text = served.extra, served.extra_text

    @property
    def asker(self) -> servers.Asker[servers.Request]:
        """Answers requests while the run folder is open, and keeps the replies in it."""
        assert self._asker is not None, "the run folder keeps what is asked"
        return self._asker

    @property
    def fields_of_begun_turn(self) -> Mapping[str, bool]:
        """The fields of a request whose last turn is to be continued; some servers need them, others ignore them."""
        return {} if self._served is None else {"add_generation_prompt": False, "continue_final_message": True}

    @property
    def devices(self) -> str:
        return self.device if self.inner is None else self.inner.devices

    @property
    def fingerprint(self) -> str:
        return SERVED + self.asked_as if self.inner is None else self.inner.fingerprint

    @property
    def notes(self) -> Sequence[str]:
        if self.inner is None:
            return []
        return [f"{self.name} writes its replies here, on {self.devices}: the first may take minutes."]

    def labels(self, task: AnyTask, *, scoring: LabelScoring | None = None) -> Labels:
        raise TypeError("the labels of a chain are its subject's")

    def submit(self, batch: Inputs, labels: Labels, *, prefix: int = 0) -> Pending:
        rows = rows_of(batch)
        requests = [self._subject.request(row) for row in rows]
        replies = self.asker.ask(requests)
        found = [self._subject.score(row, replies[each.key]) for row, each in zip(rows, requests, strict=True)]
        tokens = sum(sum(replies[each.key].usage or ()) for each in requests)
        scores = np.array(found, dtype=np.float64).reshape(-1, len(labels.names))
        return Pending(lambda: scores, tokens)

    def generate(
        self, prompts: Sequence[str], *, turns: Sequence[tuple[str, str]] | None, max_tokens: int, stop: str | None
    ) -> list[Generated]:
        before = tuple(servers.Message(role, text) for role, text in turns or ())  # type: ignore[arg-type]
        alone = [self._subject.question(prompt, max_tokens) for prompt in prompts]
        asked = [self.settled(replace(each, messages=(*before, *each.messages))) for each in alone]
        replies = self.asker.ask(asked)
        return [
            Generated(visible(whole_words(reply)) if reply.answered else None, sum(reply.usage or ()))
            for reply in (replies[each.key] for each in asked)
        ]

    def settled(self, request: servers.Request) -> servers.Request:
        """Return the request with the limit of tokens under which its reply is known, if no other need be asked.

        A whole reply holds under every limit, one that was cut off under smaller ones, and a request that was too long
        is so under larger ones.
        """
        if self._asker is None:  # a plan before there is a run folder
            return request
        own, exact = request.max_tokens, self._asker.store.responses.get(request.key)
        if exact is not None and exact.status == "ok":  # mostly, and hashes take time
            return request
        known = self.replies(request)
        whole = [limit for limit, reply in known.items() if reply.status not in ("truncated", "too_long")]
        cut = [limit for limit, reply in known.items() if reply.status == "truncated" and limit >= own]
        too_long = [limit for limit, reply in known.items() if reply.status == "too_long" and limit <= own]
        return replace(request, max_tokens=next(iter([*whole, *cut, *too_long]), own))

    def replies(self, request: servers.Request) -> dict[int, servers.Response]:
        """Return the replies to a request that the folder holds, by their limits of tokens."""
        store = self.asker.store
        asked = {limit: replace(request, max_tokens=limit).key for limit in sorted(store.limits)}
        return {limit: store.responses[key] for limit, key in asked.items() if store.has_answer(key)}

    def reply(self, request: servers.Request) -> servers.Response:
        """Return a reply that the folder holds."""
        store = self.asker.store
        if request.key not in store.responses:
            raise ConfigError(
                f"{store.path} lacks a reply that rows of this folder were read from; put the file back, or use "
                "another --out."
            )
        return store.responses[request.key]

    @contextlib.contextmanager
    def keeping(self, folder: Path) -> Iterator[None]:
        with servers.ResponseStore(folder / servers.RESPONSES) as store:
            if self.inner is not None:
                self._asker = LocalChat(self.inner, store)
            elif self._served is not None:
                self._asker = servers.Chat(self._served.server, store, budget=self.budget)
            try:
                yield
            finally:
                self._asker = None

    def about(self, *, were_given: bool) -> ChainInfo:
        """Return the address, or the device and weights."""
        here: dict[str, Any] = {}
        if self.inner is not None:
            here = {"device": self.devices, "weights": self.inner.fingerprint}
        return ChainInfo(base_url=self.base_url, were_given=were_given, extra_body=self.extra_text, **here)

    def account(self, *, were_given: bool, **facts: Any) -> ChainInfo:
        """Return the counts and the addresses of the replies, too; `facts` are further fields."""
        store = self.asker.store
        replies = list(store.responses.values())
        served = servers.addresses(replies)
        return replace(
            self.about(were_given=were_given),
            base_url=served.get("base_url", self.base_url),
            base_urls=tuple(served.get("base_urls", ())),
            responses=dict(Counter(str(reply.status) for reply in replies)),
            served_models=tuple(sorted({reply.model for reply in replies if reply.model})),
            fingerprints=tuple(sorted({reply.fingerprint for reply in replies if reply.fingerprint})),
            tokens=TokenCount(**store.billed._asdict()),
            n_charged=store.n_charged,
            **facts,
        )

    def default_budget(self) -> int:
        """Return some hundred rows for a server, which answers many at once, and a few dozen here."""
        return 2_048 if self.inner is None else 256

    def peak_memory(self) -> int | None:
        return None if self.inner is None else self.inner.peak_memory()

    def use_threads(self, n_threads: int | None) -> int | None:
        return None if self.inner is None else self.inner.use_threads(n_threads)

    def release(self) -> None:
        if self.inner is not None:
            self.inner.release()
