"""Requests for chains and for answers after some of their steps; and a model on this machine that answers them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from ice_eval.choices import Pose
from ice_eval.errors import ConfigError
from ice_eval.models import Model
from ice_eval.servers import NO_TOKENS, Asker, Completion, Message, Request, Response, ResponseStore, TokenUsage
from ice_eval.subjects.chain.problems import Problem, WorkedExample

ASK = """{question}

Work this out step by step, with one short step on each line. Then finish with one last line of the form
Answer: {form}"""

CONCLUDE = """{question}

These steps have been worked out already:
{steps}

Rely on them and give the final answer at once, with no further working, as a single line of the form
Answer: {form}"""

NEUTRAL = """{question}

Notes:
{steps}

Give the final answer, with no further working, as a single line of the form
Answer: {form}"""

BEGUN = "Answer:"
"""Last words of a turn that the model goes on with."""

Turns = tuple[Message, Message]
"""A question and its reply."""


def ask_prompt(problem: Problem, *, shown: str | None = None) -> str:
    """Return the prompt for a chain of steps and a final answer; `shown` is the question with more around it."""
    return ASK.format(question=shown or problem.shown, form=problem.kind.form)


def conclude_prompt(problem: Problem, steps: Sequence[str], *, pose: Pose = "user") -> str:
    """Return the prompt for the final answer alone, given some of the steps, in their order.

    Before a turn that the model goes on with (`prefill`) it is the prompt for the chain.
    """
    if pose == "prefill":
        return ask_prompt(problem)
    words = NEUTRAL if pose == "neutral" else CONCLUDE
    return words.format(question=problem.shown, steps="\n".join(steps) or "(none)", form=problem.kind.form)


def asked_turns(example: WorkedExample) -> Turns:
    """Return a worked example as question and reply, before a question for a chain."""
    reply = "\n".join([*example.steps, f"Answer: {example.answer}"])
    return Message("user", ask_prompt(example.problem)), Message("assistant", reply)


def concluded_turns(example: WorkedExample, *, pose: Pose = "user") -> Turns:
    """Return the same before a question for the answer alone."""
    asked = conclude_prompt(example.problem, example.steps, pose=pose)
    return Message("user", asked), Message("assistant", f"Answer: {example.answer}")


class LocalChat(Asker[Request]):
    """A model of transformers that chats.

    Answers depend neither on what is asked beside them nor on the order: in batches scores move by rounding, and only
    where two tokens are as likely to some 1e-6 may that show. Repeats of a request that nothing is drawn for have one
    answer, which is computed once. A chat that leaves no room for an answer gets a response with the status `too_long`.
    """

    def __init__(self, model: Model, store: ResponseStore) -> None:
        super().__init__(store)
        self.check(model)
        self._model = model

    @staticmethod
    def check(model: Model) -> None:
        """Raise ConfigError if a model does not chat."""
        if not model.chats:
            raise ConfigError(
                f"the model '{model.name}' has no chat template, so it cannot be asked anything; choose one that was "
                "trained to follow instructions (mostly called …-Instruct, …-Chat or …-it)."
            )

    def _ask_missing(self, missing: Sequence[Request], progress: Callable[[int], None]) -> None:
        for request in missing:
            if request.extra:
                fields = ", ".join(map(repr, request.extra))
                raise ConfigError(f"a model on this machine knows no field {fields} of a request; leave it out.")
            if request.temperature is not None and request.temperature < 0:
                raise ConfigError(f"the temperature is {request.temperature}; expected a number that is not negative.")
        try:
            for request, reply, billed in self._answered(missing):
                self.store.add(Response.to(request, reply, billed=billed))
                progress(1)
        except BaseException as exc:
            self._say_kept(exc)
            raise

    def _answered(self, missing: Sequence[Request]) -> Iterator[tuple[Request, Completion, TokenUsage]]:
        """Yield the answer to each request and its cost: nothing where it is the answer to another repeat."""
        answered = {each.request: each for each in self.store.responses.values() if each.answered}
        groups: dict[str, list[Request]] = {}
        for request in missing:
            draws = bool(request.temperature)  # tokens are drawn, so that repeats differ
            if not draws and request.hash in answered:
                yield request, answered[request.hash], NO_TOKENS
            else:
                groups.setdefault(request.key if draws else request.hash, []).append(request)
        asked = list(groups.values())
        for place, written in self._model.converse([first for first, *_ in asked]):
            first, *others = asked[place]
            reply = replace(written, model=self._model.name, fingerprint=self._fingerprint)
            yield first, reply, reply.usage or NO_TOKENS
            yield from ((other, reply, NO_TOKENS) for other in others)

    @cached_property
    def _fingerprint(self) -> str:
        """All weights are read for it, so once."""
        return self._model.fingerprint
