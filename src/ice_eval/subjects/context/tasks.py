"""The task `citations`: how a question, its passages and an answer become a prompt."""

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from ice_eval.choices import SubjectName
from ice_eval.errors import ConfigError, DataError
from ice_eval.records import PASSAGE_FIELD
from ice_eval.subjects.context.answers import CitedAnswer, Claim, Passage
from ice_eval.subjects.context.readers import read_answers, read_answers_file
from ice_eval.tasks import ChatTask, DataSource, FileData, NoData, Piece, task

PROMPT = (
    "Answer the question with the help of the sources. Behind each statement, name the sources that it rests on by "
    "their numbers, in square brackets.\n\n{passages}Question: {question}"
)
PASSAGE = "[{name}] {text}\n\n"
BEFORE_ANSWER = "\nAnswer:"
"""End of a prompt that is no turn of a chat."""


class ClaimPrompt(NamedTuple):
    """A prompt up to the end of one claim of an answer."""

    pieces: list[Piece]
    scored: list[tuple[int, int]]
    """Characters of the claim, without its citations."""
    headings: list[tuple[int, int]]
    """Characters around the text of each passage: its number, and the line break before the next one."""


@dataclass(frozen=True, kw_only=True)
class CitationTask(ChatTask):
    """Answers that cite passages."""

    subject: ClassVar[SubjectName] = "context"
    data: DataSource = field(default_factory=NoData)
    prompt: str = PROMPT
    """Text around `{passages}` and `{question}`."""
    passage: str = PASSAGE
    """Text around the `{text}` of a passage, with its `{name}` if citations need one."""
    chat: bool | None = None

    def __post_init__(self) -> None:
        for name, part in (("prompt", "{passages}"), ("prompt", "{question}"), ("passage", "{text}")):
            text: str = getattr(self, name)
            if text.count(part) != 1:
                raise ConfigError(f"the {name} {text!r:.60} must hold {part} once.")

    def answers(self) -> list[CitedAnswer]:
        """Read all answers; raise DataError if there are none."""
        if isinstance(self.data, FileData):
            found = read_answers_file(self.data.path)
        else:
            found = read_answers(enumerate(self.data.rows(), start=1), self.data.origin)
        if not found:
            raise DataError(f"{self.data.origin} holds no answers; at least one is needed.")
        return found

    def question(self, answer: CitedAnswer) -> str:
        """Return the prompt with all passages, as a model that writes the answer reads it."""
        return "".join(piece.text for piece in self._pieces(answer))

    def _pieces(self, answer: CitedAnswer) -> list[Piece]:
        before, _, after = self.prompt.partition("{passages}")
        opening, _, closing = self.passage.partition("{text}")
        pieces = [Piece(before.replace("{question}", answer.question))]
        for passage in answer.passages:
            around = [Piece(text.replace("{name}", passage.name)) for text in (opening, closing)]
            pieces += [around[0], Piece(passage.text, field_of(passage)), around[1]]
        return [*pieces, Piece(after.replace("{question}", answer.question))]

    def claim_prompt(self, answer: CitedAnswer, claim: Claim, frame: tuple[str, str] | None) -> ClaimPrompt:
        """Return the prompt up to the end of a claim; `frame` are the texts around the turn of a chat."""
        assert answer.text is not None, "answers are written before their claims are scored"
        before, after = ("", BEFORE_ANSWER) if frame is None else frame
        start = 0 if frame is not None or after[-1:].isspace() else 1  # a space goes before an answer in plain text
        pieces = [Piece(before), *self._pieces(answer), Piece(after + " " * start)]
        headings, place = list[tuple[int, int]](), 0
        for index, piece in enumerate(pieces):
            if piece.field is not None:
                following = place + len(piece.text) + len(pieces[index + 1].text)
                headings.append((place - len(pieces[index - 1].text), following))
            place += len(piece.text)
        claimed = plain_text(answer.text, claim)
        # The spaces before a claim belong to its first token. Its own citations are left out: they would give it away.
        earlier = answer.text[: claim.start].rstrip()
        between = answer.text[len(earlier) : claim.start]
        end = place + len(earlier)
        scored = [(end - (start if not earlier else 0), end + len(between) + len(claimed))]
        return ClaimPrompt([*pieces, Piece(earlier + between + claimed)], scored, headings)


def plain_text(text: str, claim: Claim) -> str:
    """Return the text of a claim without its citations, and without the spaces before them."""
    found, start = "", claim.start
    for first, last in (*sorted(claim.marks), (claim.end, claim.end)):
        found += text[start:first]
        found = found.rstrip() if last > first else found
        start = max(start, last)
    return found.strip()


def field_of(passage: Passage) -> str:
    """Return the name of the field that holds the text of a passage."""
    return f"{PASSAGE_FIELD}{passage.name}"


@task("citations")
def citations() -> CitationTask:
    """Answers that cite passages: does the model use what it cites? Give your own with --data."""
    return CitationTask()
