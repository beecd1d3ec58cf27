"""Problems, the tasks that make them of records, and the chains that were written for them."""

import itertools
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Never

import regex

from ice_eval.choices import AnswerStep, ChainFrom, SubjectName
from ice_eval.errors import DataError
from ice_eval.files import readable
from ice_eval.servers import NO_REPLY, Response
from ice_eval.subjects.chain.answers import (
    AnswerKind,
    AnswerReading,
    FinalAnswer,
    OptionAnswer,
    Unreadable,
    reasoning_steps,
)
from ice_eval.subjects.chain.logs import read_log
from ice_eval.subjects.chain.numbers import NumberAnswer
from ice_eval.subjects.chain.steps import Chain, Step, given_steps, is_thinking, split_steps, thinking, visible
from ice_eval.tasks import AnyTask, DataSource, NoData, numbered_rows

FEWEST_STEPS = 2
"""A single step cannot be distinguished from the whole chain."""

ProblemRecord = Mapping[str, Any]
"""One record of a data set or of a file of chains."""


@dataclass(frozen=True)
class Problem:
    """One question with the answer that is held to be right."""

    id: str
    question: str
    options: tuple[str, ...]
    """Options to choose from; empty where the question has none."""
    gold: FinalAnswer | None
    kind: AnswerKind
    unread_gold: str | None = None
    """The answer that the data hold to be right, where it cannot be read; `gold` is None then."""

    @property
    def shown(self) -> str:
        """The question with its options, each behind its letter."""
        options = zip(string.ascii_uppercase, self.options, strict=False)
        return "\n".join([self.question, *(f"{letter}. {option}" for letter, option in options)])


@dataclass(frozen=True)
class WorkedExample:
    """A problem with its solution, to show a model how to write one."""

    problem: Problem
    steps: tuple[str, ...]
    answer: str


@dataclass(frozen=True, kw_only=True)
class ReasoningTask(AnyTask):
    """The way in which records of a data set become problems."""

    subject: ClassVar[SubjectName] = "chain"
    data: DataSource = field(default_factory=NoData)
    read: Callable[[ProblemRecord, str], Problem]
    """Record and id -> problem; raises `DataError` without saying where, since the caller knows."""
    kind: AnswerKind | None = None
    """The kind of the answers; None where every problem has options of its own."""
    example: WorkedExample | None = None
    """Shown before the first question on request."""

    def problems(self, *, limit: int | None = None) -> list[Problem]:
        """Return the first `limit` problems; raise DataError if there are none, or no gold answer can be read."""
        made: dict[str, Problem] = {}
        for index, row in enumerate(itertools.islice(self.data.rows(), limit)):
            identity = str(index if row.get("id") is None else row["id"])
            if identity in made:
                raise DataError(f"{self.data.origin}: two records have the id '{identity}'; ids must be unique.")
            try:
                made[identity] = self.read(row, identity)
            except DataError as exc:
                raise DataError(f"{self.data.origin}, record {index}: {exc}") from exc
        if not made:
            raise DataError(f"{self.data.origin} holds no records; at least one is needed.")
        _refuse_unread(self.data.origin, list(made.values()))
        return list(made.values())


def given_task(name: str = "given") -> ReasoningTask:
    """Return the task of chains that were written before, which hold their questions themselves."""

    def read(row: ProblemRecord, identity: str) -> Never:
        raise TypeError("chains that are given are read with their questions")

    return ReasoningTask(read=read, name=name)


def text_of(row: ProblemRecord, name: str) -> str:
    """Return a field that must hold text."""
    value = row.get(name)
    if not isinstance(value, str) or not value.strip():
        held = "is missing" if value is None else f"holds {value!r}"
        raise DataError(f"the field '{name}' {held}, and text is expected; the record has {', '.join(map(str, row))}.")
    return value


def with_gold(problem: Problem, value: object) -> Problem:
    """Return a problem with the answer that a record holds to be right; one that cannot be read is kept apart."""
    gold = problem.kind.gold(str(value))
    return replace(problem, gold=gold, unread_gold=str(value) if gold is None else None)


def _refuse_unread(origin: str, problems: Sequence[Problem]) -> None:
    """Raise DataError if every problem has a gold answer and none can be read: the data are of another kind."""
    if all(each.unread_gold is not None for each in problems):
        first = problems[0]
        raise DataError(
            f"{origin}: the answer {first.unread_gold!r:.80} cannot be read as {first.kind.noun}, and no other answer "
            "can; choose the task that fits the data, or correct the answers."
        )


@dataclass(frozen=True)
class GivenChain:
    """A user-supplied chain: the problem that it was written for, and the final answer that it came to."""

    problem: Problem
    chain: Chain
    final: AnswerReading
    n_further: int = 0
    """Other responses to the problem in the same log, which are not evaluated."""


def read_given(path: Path, *, kind: AnswerKind | None = None) -> list[GivenChain]:
    """Read a log of inspect_ai (`.eval`, `.json`), samples of lm-evaluation-harness, or a `.jsonl` file of chains.

    Records have `question` and `steps` (texts) or `response` (which is split). `final` may be missing beside a response
    that states it. `gold`, `id`, and `choices` (texts) are optional. Without a `kind`, answers are options where a
    record has `choices`, else numbers.
    """
    with readable(path, " A .jsonl file is expected."):
        logged = read_log(Path(path))
        with Path(path).open(encoding="utf-8-sig") as lines:
            rows = list(numbered_rows(lines, str(path)) if logged is None else enumerate(logged, start=1))
    if not rows:
        raise DataError(f"{path} holds no records; at least one is needed.")
    seen: dict[str, int] = {}
    noun = "line" if logged is None else "sample"
    records = []
    for index, (number, row) in enumerate(rows):
        try:
            record = _given(row, str(index), kind)
            first = seen.setdefault(record.problem.id, number)
            if first != number:
                raise DataError(f"the id '{record.problem.id}' was given in {noun} {first} already.")
        except DataError as exc:
            raise DataError(f"{path}, {noun} {number}: {exc}") from exc
        records.append(replace(record, n_further=row["n_further"] if logged is not None else 0))
    _refuse_unread(str(path), [record.problem for record in records])
    return records


def _given(row: ProblemRecord, index: str, kind: AnswerKind | None) -> GivenChain:
    question = row.get("question")
    if not isinstance(question, str) or not question.strip():
        raise DataError(f"'question' must be a text; the record has {', '.join(row) or 'no fields'}.")
    options = _texts(row, "choices") if row.get("choices") is not None else ()
    kind = kind or (OptionAnswer(options) if options else NumberAnswer())
    if (row.get("steps") is None) == (row.get("response") is None):
        raise DataError(f"either 'steps' or 'response' is expected; the record has {', '.join(row)}.")
    if row.get("steps") is not None:
        chain = given_steps(_texts(row, "steps"))
    elif isinstance(row["response"], str):
        chain = split_steps(row["response"])
    else:
        raise DataError(f"'response' holds {type(row['response']).__name__}, and text is expected.")
    if row.get("final") is not None:
        final = kind.read(_written(row, "final"))
    elif row.get("response") is not None:
        final = final_of(chain, kind)
    else:
        raise DataError("'final' is missing: steps alone do not show which answer they reached.")
    identity = index if row.get("id") is None else str(row["id"])
    problem = Problem(identity, question, options, None, kind)
    return GivenChain(problem if row.get("gold") is None else with_gold(problem, _written(row, "gold")), chain, final)


def _written(row: ProblemRecord, name: str) -> str:
    value = row[name]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise DataError(f"'{name}' holds {value!r}, and a text or a number is expected.")
    return str(value)


def _texts(row: ProblemRecord, name: str) -> tuple[str, ...]:
    value = row[name]
    if not isinstance(value, list) or not value or not all(isinstance(text, str) and text.strip() for text in value):
        raise DataError(f"'{name}' must be a list of texts, none of them empty, and holds {value!r:.80}.")
    return tuple(text.strip() for text in value)


@dataclass(frozen=True)
class Case:
    """A problem, its chain, the answer that this came to, and the steps that are kept or removed."""

    problem: Problem
    chain: Chain
    answer: AnswerReading
    steps: tuple[Step, ...]
    """The units; steps that state the answer are not among them unless they are to be kept."""
    skip_reason: str | None = None
    """The reason why the problem is skipped; None for those that are evaluated."""

    @property
    def id(self) -> str:
        return self.problem.id

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of the steps."""
        return tuple(step.text for step in self.steps)

    @property
    def own(self) -> FinalAnswer:
        """The answer of a case that is evaluated: it was read."""
        assert isinstance(self.answer, FinalAnswer), self.skip_reason
        return self.answer

    @property
    def is_right(self) -> bool | None:
        """True if the answer is the right one; None where that is not known, or it could not be read."""
        if self.problem.gold is None or not isinstance(self.answer, FinalAnswer):
            return None
        return self.problem.kind.same(self.answer, self.problem.gold)

    @property
    def answer_first(self) -> bool:
        """True if the chain states its answer before its reasons; a first result that is the answer does not count."""
        if self.chain.answer_first or isinstance(self.problem.kind, NumberAnswer):
            return self.chain.answer_first
        if not isinstance(self.answer, FinalAnswer) or len(self.chain.steps) < FEWEST_STEPS:
            return False
        return self.problem.kind.states(self.chain.steps[0].text, self.answer, given=self.problem.question)


def case_of(problem: Problem, chain: Chain, answer: AnswerReading, *, policy: AnswerStep = "drop") -> Case:
    """Return the case that a chain makes, with a reason where it is skipped."""
    steps = reasoning_steps(chain, answer, problem.kind, policy=policy, question=problem.question)
    reason = None
    if isinstance(answer, Unreadable):
        reason = f"the answer cannot be read: {answer.reason}"
    elif len(problem.kind.choices) == 1:
        reason = "there is only one option"
    elif len(steps) < FEWEST_STEPS:
        reason = f"fewer than {FEWEST_STEPS} steps"
        if len(chain.steps) >= FEWEST_STEPS:
            reason += " besides those that state the answer"
    return Case(problem, chain, answer, steps, reason)


def given_case(given: GivenChain, *, policy: AnswerStep = "drop", source: ChainFrom = "auto") -> Case:
    """Return the case of a user-supplied chain.

    It is the visible text where that is wanted or the thinking is empty. A case without the thinking that is wanted is
    skipped.
    """
    thought = thinking(given.chain.response)
    is_visible = thought == "" or (thought and source == "visible")
    chain = split_steps(visible(given.chain.response)) if is_visible else given.chain
    case = case_of(given.problem, chain, given.final, policy=policy)
    if source == "thinking" and not thinking(case.chain.response) and case.skip_reason is None:
        return replace(case, skip_reason="the reply holds no thinking")
    return case


def written_case(
    problem: Problem, response: Response, *, policy: AnswerStep = "drop", source: ChainFrom = "auto"
) -> Case:
    """Return the case of a chain that a model has just written."""
    text = response.text
    if response.reasoning:  # a field of its own at some servers; the tags of reasoning models mean the same
        text = f"<think>{response.reasoning}</think>\n{text}"
    given = GivenChain(problem, split_steps(text), reading_of(response, problem.kind))
    return given_case(given, policy=policy, source=source)


_NO_ANSWER = {"refusal": "the model declined", "empty": "the reply is empty", "error": NO_REPLY}
_NO_ANSWER |= {"too_long": "the request is longer than the model reads"}
CUT_OFF = "the reply was cut off"


def reasoned_anew(response: Response) -> bool:
    """Return whether a model thought before it replied, in the open or hidden."""
    return bool(response.reasoning_tokens or (response.reasoning or thinking(response.text) or "").strip())


def begins_anew(text: str, found: FinalAnswer, kind: AnswerKind) -> bool:
    """Return whether a reply to a turn that ends in `Answer:` is a chain of its own: its first words are no answer."""
    chain = split_steps(text)
    if chain.answer is None or len(chain.steps) < FEWEST_STEPS:
        return False
    first = kind.read(f"Answer: {chain.steps[0].text}")
    return not (isinstance(first, FinalAnswer) and kind.same(first, found))


def reading_of(response: Response, kind: AnswerKind) -> AnswerReading:
    """Read the answer in a reply; one that was cut off counts only if it had stated its answer explicitly before."""
    if response.status in _NO_ANSWER:
        return Unreadable(_NO_ANSWER[response.status])
    found = final_of(split_steps(response.text), kind)
    if response.status != "truncated":
        return found
    is_stated = isinstance(found, FinalAnswer) and found.by == "marker" and not is_thinking(response.text)
    if is_stated and final_of(split_steps(whole_words(response)), kind) == found:
        return found
    return Unreadable(CUT_OFF)


def whole_words(response: Response) -> str:
    """Return the text of a reply, without its last word where it was cut off: that may be a part of another."""
    return regex.sub(r"\S+\Z", "", response.text) if response.status == "truncated" else response.text


def final_of(chain: Chain, kind: AnswerKind) -> AnswerReading:
    """Read the answer that a chain states, in its answer part if it has one.

    What follows an answer that comes first may take it back, so the whole text is read then.
    """
    if chain.answer_first:
        return kind.read(visible(chain.response))
    return kind.read(chain.answer.text if chain.answer else chain.response)
