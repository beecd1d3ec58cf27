"""Cited answers as the subject of a run: passages, or their sentences, are kept or removed."""

import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ice_eval.attributions import DataView
from ice_eval.encoding import encode_text
from ice_eval.errors import CapabilityError, DataError
from ice_eval.files import write_atomically
from ice_eval.models import Labels, Model
from ice_eval.operators import LongUnitPool
from ice_eval.pipeline import Reporter, Subject
from ice_eval.pipeline.engine import Engine
from ice_eval.records import NO_IDS, SCORED, Encoded, Example, LogScores
from ice_eval.results import content_hash
from ice_eval.results.citations import CITED as CITED
from ice_eval.results.folder import ANSWERS as ANSWERS
from ice_eval.results.view import ANSWER, CLAIM, QUESTION
from ice_eval.settings import RunConfig
from ice_eval.subjects.context.answers import CitedAnswer, Claim, as_one_claim
from ice_eval.subjects.context.judged import JudgedModel
from ice_eval.subjects.context.readers import with_claims
from ice_eval.subjects.context.tasks import BEFORE_ANSWER, CitationTask, field_of, plain_text
from ice_eval.tasks import numbered_rows

_MOST_PROBLEMS = 3


@dataclass(frozen=True, eq=False)
class ContextSubject(Subject):
    """The claims of answers that cite passages. Each claim is an example, and its answer the group."""

    task: CitationTask
    answers: Sequence[CitedAnswer]
    needs_citations: bool = True
    """True if claims that cite nothing are left out."""
    whole: bool = False
    """True if an answer is one claim."""
    _too_long: dict[str, str] = field(default_factory=dict)
    """Example id -> the reason why it does not fit into the model, or is not stated by it."""

    @property
    def unwritten(self) -> list[CitedAnswer]:
        """Questions whose answers the model has to write first."""
        return [answer for answer in self.answers if answer.text is None]

    def written_by(
        self, model: Model, max_tokens: int, *, folder: Path | None, store: Path | None, reporter: Reporter
    ) -> list[CitedAnswer]:
        """Return all answers; those that are missing are written by the model.

        `store` is a file that keeps them for later runs, and `folder` the run folder for replies that are paid for.
        """
        if "generate" not in model.offers:
            raise CapabilityError(f"'{model.name}' writes no answers; choose a language model, or give `answer`s.")
        missing, chat = self.unwritten, model.writes_in_turns or self._in_chat(model)
        prompts = [self.task.question(answer) + ("" if chat else BEFORE_ANSWER) for answer in missing]
        keys = [content_hash([model.fingerprint, prompt, max_tokens, self.task.system]) for prompt in prompts]
        known: dict[str, str] = {}
        if store is not None and store.is_file():
            with store.open(encoding="utf-8") as stored:
                known = {str(row["key"]): str(row["answer"]) for _, row in numbered_rows(stored, str(store))}
        asked = [place for place, key in enumerate(keys) if key not in known]
        if asked:
            reporter.say(f"{len(asked)} answers are written by {model.name} first.")
            with nullcontext() if folder is None else model.keeping(folder):
                replies = model.generate(
                    [prompts[place] for place in asked],
                    turns=self._turns if chat else None,
                    max_tokens=max_tokens,
                    stop=None if chat else "\n\n",
                )
            for place, reply in zip(asked, replies, strict=True):
                known[keys[place]] = (reply.text or "").rpartition("</think>")[2].strip()
            if store is not None:
                store.parent.mkdir(parents=True, exist_ok=True)
                with write_atomically(store) as file:
                    lines = (json.dumps({"key": key, "answer": known[key]}) + "\n" for key in known)
                    file.write("".join(lines).encode())
        texts = {answer.id: known[key] for answer, key in zip(missing, keys, strict=True)}
        return [with_claims(replace(each, text=texts[each.id])) if each.id in texts else each for each in self.answers]

    @property
    def _turns(self) -> list[tuple[str, str]]:
        return [] if self.task.system is None else [("system", self.task.system)]

    def _in_chat(self, model: Model) -> bool:
        return not _answers_again(model) and (model.chats if self.task.chat is None else self.task.chat)

    @cached_property
    def _every_claim(self) -> list[tuple[str, CitedAnswer, Claim]]:
        """All claims, each with its id and its answer."""
        answers = [as_one_claim(answer) for answer in self.answers] if self.whole else self.answers
        numbered = ((answer, *pair) for answer in answers for pair in enumerate(answer.claims, start=1))
        return [(f"{answer.id}#{claim.number or number}", answer, claim) for answer, number, claim in numbered]

    @cached_property
    def _claims(self) -> dict[str, tuple[CitedAnswer, Claim]]:
        """The claims that are evaluated, by the ids of their examples."""
        every = self._every_claim
        return {name: (answer, claim) for name, answer, claim in every if claim.cites or not self.needs_citations}

    @cached_property
    def examples(self) -> list[Example]:
        """All claims to evaluate; raise DataError if there are none."""
        found = []
        for name, (answer, claim) in self._claims.items():
            assert answer.text is not None
            fields = {QUESTION: answer.question, ANSWER: answer.text, CLAIM: answer.text[claim.start : claim.end]}
            passages = {field_of(each): each.text for each in answer.passages}
            found.append(Example(name, {**claim.notes, **fields, **passages}, group=answer.id))
        if not found:
            raise DataError(f"{self.task.data.origin}: no claim can be evaluated. {' '.join(self.notes(()))}".rstrip())
        return found

    def identity(self) -> dict[str, Any]:
        task, prompt = self.task, content_hash([self.task.prompt, self.task.passage])
        fields = {"task": task.name, "task_version": task.version, "chat": task.chat, "system": task.system}
        return {**fields, "prompt": prompt, "whole_answer": self.whole}

    def labels(self, model: Model, config: RunConfig) -> Labels:
        return model.text_labels(CLAIM)

    def described(self, model: Model) -> dict[str, Any]:
        return {"prompt": self.task.prompt.replace("{passages}", self.task.passage), "explained": ("passages",)}

    def notes(self, examples: Sequence[Example]) -> list[str]:
        n_claims, found = len(self._every_claim), list[str]()
        if len(self._claims) < n_claims:
            found.append(f"{n_claims - len(self._claims)} of {n_claims} claims cite nothing and are not evaluated.")
        problems = [f"{answer.id}: {problem}" for answer in self.answers for problem in answer.problems]
        if problems:
            more = f" (and {len(problems) - _MOST_PROBLEMS} more)" if len(problems) > _MOST_PROBLEMS else ""
            noun = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
            found.append(f"{noun} in the data: {'; '.join(problems[:_MOST_PROBLEMS])}{more}.")
        return found

    def pool(self, engine: Engine, examples: Sequence[Example]) -> LongUnitPool:
        """Return the passages of other answers; the claims of an answer share theirs."""
        items = [(str(example.group), engine.encode(example)) for example in examples]
        return LongUnitPool(items, engine.model.codec.decode)

    def data(self, engine: Engine, examples: Sequence[Example]) -> DataView:
        needs = {need: name for name, method in engine.attributions.items() for need in method.needs}
        if "human" in needs or "lexicon" in needs:
            name = needs.get("human", needs.get("lexicon"))
            raise CapabilityError(f"the attribution '{name}' is about labels of texts; leave it out for citations.")
        scores = {
            name: {field_of(each): each.score for each in answer.passages if each.score is not None}
            for name, (answer, _) in self._claims.items()
        }
        if "retrieval" in needs and not any(scores.values()):
            name = needs["retrieval"]
            raise CapabilityError(f"the attribution '{name}' needs a `score` of the passages, and the data have none.")
        cited = {
            name: frozenset(field_of(answer.passages[index]) for index in claim.cites)
            for name, (answer, claim) in self._claims.items()
        }
        return DataView(cited=cited, retrieval=scores)

    def encode(self, model: Model, config: RunConfig, example: Example, *, reserve: int) -> Encoded:
        answer, claim = self._claims[example.id]
        chat, claimed = self._in_chat(model), plain_text(answer.text or "", claim)
        prompt = self.task.claim_prompt(answer, claim, model.codec.chat_frame(self._turns) if chat else None)
        if _answers_again(model):  # the claim follows the question, without the claims before it
            alone = replace(answer, text=claimed)
            prompt = self.task.claim_prompt(alone, Claim(0, len(alone.text or ""), claim.cites), ("", "\n"))
        pieces, scored, headings = prompt
        item = encode_text(
            model.codec, pieces, example_id=example.id, framed=chat, unit=config.unit, scored=scored, headings=headings
        )
        n_tokens, limit = len(item.ids), model.codec.max_tokens
        if n_tokens > limit:
            self._too_long[example.id] = f"passages and answer have {n_tokens} tokens, and the model reads {limit}"
        elif not (item.segments == SCORED).any():
            self._too_long[example.id] = "the claim has no token to score"
        else:
            return replace(item, fields={**item.fields, QUESTION: answer.question, CLAIM: claimed})
        return Encoded(example.id, NO_IDS, NO_IDS, NO_IDS, (), ())

    def start(self, engine: Engine, reporter: Reporter) -> None:
        if isinstance(engine.model, JudgedModel) and engine.model.answers_again:
            items = [engine.encode(example) for example in self.examples[: engine.config.n]]
            self._too_long.update(engine.model.skip_reasons([item for item in items if item.n_units]))

    def skip_reason(self, example: Example) -> str | None:
        return self._too_long.get(example.id)

    def target(self, config: RunConfig, example: Example, full: LogScores, empty: LogScores) -> int:
        return 0


def _answers_again(model: Model) -> bool:
    return isinstance(model, JudgedModel) and model.answers_again
