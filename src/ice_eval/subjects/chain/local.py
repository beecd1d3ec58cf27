r"""A language model on this machine: it writes chains, scores its own answer, and shows its attributions.

A chain of thought is an input of the model whose units are its tokens, or its steps:

```text
prompt of the chat …  ask_prompt(problem)  … assistant:   7 + 5 = 12 \n Half of 12 is 6 \n  Answer:   [ 6]
token units          -1                               0  1 2 3  4    5 …                     -1      scored
step units           -1                               0  0 0 0  0    1 …                     -1      scored
```

The model reads what it read and wrote when it answered: the prompt that asks for steps, the steps as its own turn, and
the beginning of the answer line. All but the steps is protected. The score is that of the answer that follows.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ice_eval.attributions import Lens, Observer, PerRow, method_of
from ice_eval.encoding import encode_text, following_ids
from ice_eval.errors import CapabilityError, ConfigError, DataError
from ice_eval.models import Conversation, Labels, Model
from ice_eval.models import Reply as ModelReply
from ice_eval.operators.delete import Delete
from ice_eval.records import PROTECTED, Encoded, Fills, Inputs, KeepMasks, PerUnit, Span
from ice_eval.scoring import Scorer
from ice_eval.seeding import rng_for
from ice_eval.servers import (
    NO_TOKENS,
    Budget,
    Completion,
    Request,
    RequestPlan,
    RequestProgress,
    Response,
    ResponseStore,
    TokenUsage,
    plan_requests,
)
from ice_eval.subjects.chain.attributions import Unexplained
from ice_eval.subjects.chain.problems import Case, Problem
from ice_eval.subjects.chain.rows import ask_prompt
from ice_eval.tasks import Piece

ChainUnit = Literal["token", "step"]

_CHAIN = "chain"
_ANSWER = "\nAnswer:"


@dataclass(frozen=True)
class EncodedChain:
    """A chain that a model wrote, cut in two ways, and the answer that it came to."""

    tokens: Encoded
    """With its tokens as units."""
    steps: Encoded
    """The same ids, with its steps as units; a line break belongs to the step before it."""
    answer: Labels
    """The tokens that are scored, each after those before it."""

    @property
    def problem_id(self) -> str:
        return self.tokens.example_id

    def cut_in(self, unit: ChainUnit) -> Encoded:
        return self.tokens if unit == "token" else self.steps


def encode_chain(model: Model, problem: Problem, steps: Sequence[str], answer: str) -> EncodedChain:
    """Encode a chain as the model read it.

    Args:
        model: A language model. Without a chat template the prompt is plain text, and the chain follows it.
        problem: The question.
        steps: The steps that are judged, in their order.
        answer: Text that the model wrote behind `Answer:`.

    Raises:
        CapabilityError: The model is no language model.
        DataError: There is no step or no answer, or they do not fit into what the model takes.
    """
    if "generate" not in model.offers:
        raise CapabilityError(f"'{model.name}' is no language model, so it has no probability of a written answer.")
    if not answer.strip() or not steps or not all(step.strip() for step in steps):
        raise DataError(f"problem '{problem.id}': a chain needs an answer and steps, none of them empty.")
    framed = model.chats
    before, after = model.codec.chat_frame(()) if framed else ("", "\n\n")
    pieces = [Piece(before + ask_prompt(problem) + after), Piece("\n".join(steps), _CHAIN), Piece(_ANSWER)]
    tokens = encode_text(model.codec, pieces, example_id=problem.id, framed=framed)
    text = "".join(piece.text for piece in pieces)
    ids = following_ids(model.codec, text, f" {answer.strip()}", framed=framed)
    labels = Labels((answer.strip(),), (ids,), scoring="full")
    length = len(tokens.ids) + labels.reserve
    if length > model.codec.max_tokens:
        raise DataError(
            f"problem '{problem.id}': prompt, chain and answer have {length} tokens, and the model takes "
            f"{model.codec.max_tokens}."
        )
    return EncodedChain(tokens, _in_steps(tokens, steps), labels)


def _in_steps(tokens: Encoded, steps: Sequence[str]) -> Encoded:
    """Join the units: each belongs to the step that it begins in."""
    starts = np.cumsum([0, *(len(step) + 1 for step in steps[:-1])])
    step_of = np.searchsorted(starts, [span.start for span in tokens.spans], side="right") - 1
    without = set(range(len(steps))) - set(step_of.tolist())
    if without:
        raise DataError(f"problem '{tokens.example_id}': the step '{steps[min(without)]}' has no token of its own.")
    spans = tuple(Span(_CHAIN, int(start), int(start) + len(step)) for start, step in zip(starts, steps, strict=True))
    unit_of = np.append(step_of, PROTECTED)[tokens.unit_of]  # index -1 reads the sentinel at the end
    return replace(tokens, unit_of=unit_of, spans=spans, texts=tuple(steps))


STEP_ATTRIBUTIONS = ("attention", "gradient")
"""Attributions that need one forward and backward pass."""
_OFFERED = frozenset({"attention_maps", "attentions", "embeddings", "gradients", "values"})
"""Needs of attributions that a chain offers; there are no other texts to count words in."""
_NO_FILLS: Fills = np.zeros(0, dtype=np.int64)


class AnswerScorer:
    """Scores the answers of chains with one model.

    The score is the log-probability of the answer's tokens by the chain rule, from a float32 head. What is not kept is
    deleted. Rows of a chain share what stands before it, equal rows are computed once, and batches are packed.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.notes: list[str] = []
        """Remarks for the user on how the model is run; filled by the first chain."""
        self._checked = False

    def scores(self, chain: EncodedChain, keep: KeepMasks, *, unit: ChainUnit) -> PerRow:
        """Return the log-probability of the answer when the units of each row stay, (rows,)."""
        return self.scores_of(chain, [(unit, keep)])

    def scores_of(self, chain: EncodedChain, rows: Sequence[tuple[ChainUnit, KeepMasks]]) -> PerRow:
        """Return the same for rows in several units, one after the other, in one stream of batches."""
        self._check(chain)
        inputs = Inputs.join([Delete().build(chain.cut_in(unit), keep, fills=_NO_FILLS) for unit, keep in rows])
        scorer = Scorer(self.model, chain.answer, budget=self.model.default_budget())
        found: PerRow = scorer.score(inputs, prefix=chain.tokens.content.start)[:, 0]
        return found

    def attributions(
        self,
        chain: EncodedChain,
        names: Sequence[str] = STEP_ATTRIBUTIONS,
        *,
        units: Sequence[ChainUnit] = ("step",),
        seed: int = 0,
    ) -> dict[ChainUnit, dict[str, PerUnit]]:
        """Return a number per token, or per step, where those of its tokens are summed, by unit and method.

        Attention is that of the last token before the answer. Gradients are those of the answer's log-probability. All
        methods and units share one forward and backward pass. Methods that probe (`occlusion`, `lime`) remove units of
        the kind asked for.

        Raises:
            ConfigError: A method is not known, or asks for what a chain does not offer.
        """
        self._check(chain)
        methods = {name: method_of(name) for name in names}
        for name, method in methods.items():
            if method.needs - _OFFERED or method.sized:
                raise ConfigError(f"the attribution '{name}' cannot be asked about a chain of thought.")
        needs = frozenset[str]().union(*(method.needs for method in methods.values()))
        observer = Observer(self.model, chain.answer, {chain.problem_id: 0}, needs & {"attentions", "gradients"})
        found: dict[ChainUnit, dict[str, PerUnit]] = {unit: {} for unit in units}
        for unit in units:

            def probe(_: Sequence[Encoded], masks: Sequence[KeepMasks], unit: ChainUnit = unit) -> list[PerRow]:
                return [self.scores(chain, np.asarray(keep), unit=unit) for keep in masks]

            for name, method in methods.items():
                lens = Lens(observer, method.needs, seed, name, prober=probe)
                [found[unit][name]] = method.attribute(lens, [chain.cut_in(unit)])
        return found

    def _check(self, chain: EncodedChain) -> None:
        """Compare fast and plain scores once before anything depends on them."""
        if not self._checked:
            self._checked, item = True, chain.tokens
            rows = Inputs.join([item.full(), item.empty()])
            self.notes = self.model.check(rows, chain.answer, prefix=item.content.start)


def summed_over_steps(scorer: AnswerScorer, case: Case, name: str, *, seed: int) -> PerUnit:
    """Return a token attribution of the model's own answer after its own chain, summed over each step.

    Raises:
        Unexplained: The chain is too long for the model.
    """
    try:
        chain = encode_chain(scorer.model, case.problem, case.texts, case.own.value)
    except DataError as exc:
        raise Unexplained(str(exc)) from exc
    return scorer.attributions(chain, (name,), seed=seed)["step"][name]


class LocalChat:
    """A model of transformers and the file that keeps its answers; an `Asker`, as `ice_eval.servers.Chat` is.

    Without a temperature, or at 0, the likeliest token is taken at every step. Else tokens are drawn by numbers that
    belong to the request and its repeat, so an answer depends neither on what is asked beside it nor on the order.
    In batches scores move by rounding: only where two tokens are as likely to some 1e-6 may that show.

    `with ResponseStore(path) as store: answers = LocalChat(load_model("smollm2"), store).ask(requests)`

    Raises:
        ConfigError: The model does not chat: it has no chat template, or writes nothing.
    """

    def __init__(self, model: Model, store: ResponseStore, *, keep_requests: bool = False) -> None:
        if not model.chats:
            raise ConfigError(
                f"the model '{model.name}' has no chat template, so it cannot be asked anything; choose one that was "
                "trained to follow instructions (mostly called …-Instruct, …-Chat or …-it)."
            )
        self._model = model
        self._store = store
        self._keep_requests = keep_requests

    def plan(self, requests: Iterable[Request]) -> RequestPlan:
        """Estimate the cost of some requests; asks nothing. There are no prices."""
        return plan_requests(requests, self._store, Budget())

    def ask(
        self, requests: Iterable[Request], *, progress: Callable[[RequestProgress], None] | None = None
    ) -> dict[str, Response]:
        """Return the response to every request, by its key, from the store or from the model.

        Repeats of a request that nothing is drawn for have one answer, which is computed once. A chat that leaves no
        room for an answer gets a response with the status `error`.

        Args:
            requests: Requests, in any order.
            progress: Called after every response.

        Raises:
            ConfigError: A request has fields that only servers know, or a negative temperature.
        """
        distinct = {request.key: request for request in requests}
        missing = self._store.missing(distinct)
        for request in missing:
            _check(request)
        if missing:
            assert self._store.is_open, "enter the store first: what is answered must be kept"
            try:
                self._ask_missing(missing, n_requests=len(distinct), progress=progress or (lambda _: None))
            except BaseException as exc:
                exc.add_note(f"What was answered is kept in {self._store.path}; asking again continues.")
                raise
        return {key: self._store.responses[key] for key in distinct}

    def _ask_missing(
        self, missing: Sequence[Request], *, n_requests: int, progress: Callable[[RequestProgress], None]
    ) -> None:
        n_done = n_requests - len(missing)

        def keep(request: Request, reply: Completion, *, billed: TokenUsage = NO_TOKENS) -> None:
            nonlocal n_done
            self._store.add(Response.to(request, reply, keep_request=self._keep_requests, billed=billed))
            n_done += 1
            progress(RequestProgress(n_done, n_requests, n_retries=0, concurrency=1, cost=None))

        answered = {each.request: each for each in self._store.responses.values() if each.answered}
        groups: dict[str, list[Request]] = {}
        for request in missing:
            if not _draws(request) and request.hash in answered:
                keep(request, answered[request.hash])
            else:
                groups.setdefault(request.key if _draws(request) else request.hash, []).append(request)
        asked = list(groups.values())
        for place, written in self._model.converse([_conversation(first) for first, *_ in asked]):
            first, *others = asked[place]
            reply = self._reply(written)
            keep(first, reply, billed=reply.usage or NO_TOKENS)
            for other in others:  # the same answer, and it took nothing
                keep(other, reply)

    def _reply(self, written: ModelReply) -> Completion:
        about = Completion(status="error", model=self._model.name, fingerprint=self._fingerprint)
        if written.text is None:
            room = self._model.codec.max_tokens
            return replace(about, error=f"the chat has {written.n_read} tokens, and the model takes {room} in all")
        return replace(
            about,
            status="truncated" if not written.ended else "ok" if written.text.strip() else "empty",
            text=written.text,
            finish_reason="stop" if written.ended else "length",
            usage=TokenUsage(written.n_read, written.n_written),
        )

    @cached_property
    def _fingerprint(self) -> str:
        """All weights are read for it, so once."""
        return self._model.fingerprint


def _draws(request: Request) -> bool:
    """Return whether tokens are drawn, so that repeats differ."""
    return bool(request.temperature)


def _check(request: Request) -> None:
    if request.extra:
        raise ConfigError(
            f"a model on this machine knows no field {', '.join(map(repr, request.extra))} of a request; leave it out."
        )
    if request.temperature is not None and request.temperature < 0:
        raise ConfigError(f"the temperature is {request.temperature}; expected a number that is not negative.")


def _conversation(request: Request) -> Conversation:
    def uniforms(n_steps: int) -> NDArray[np.float64]:
        # Without a seed every question still has numbers of its own: the hash is among what they depend on.
        return rng_for(request.seed or 0, request.hash, request.repeat, "tokens").random(n_steps)

    return Conversation(request.messages, request.max_tokens, request.temperature or 0.0, uniforms)
