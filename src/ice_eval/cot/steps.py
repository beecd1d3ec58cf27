"""A response as a chain of steps: sentences, items of lists, formulas and code, as spans of the text.

The unit that a chain of thought is judged by is what a person would strike out in one go, so

- lines, items of lists and sentences are steps of their own;
- code blocks, tables and displayed formulas (over several lines, too) are never cut;
- headings, and whatever ends in a colon, announce the next step and belong to it: alone they say nothing, and the next
  step removed must not leave them pointing at something else;
- the statement of the final answer is no step: it is the answer part.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import regex

from ice_eval.cot._markers import ends_chain, is_final_answer
from ice_eval.cot._sentences import boundaries

Span = tuple[int, int]


@dataclass(frozen=True)
class Step:
    """One step: `text` is exactly `response[start:end]`."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Chain:
    """A response in parts: the steps in order, and the part that states the final answer (None: there is none)."""

    response: str
    steps: tuple[Step, ...]
    answer: Step | None


_TAG = "think|thinking|thought|reasoning"
_OPENING, _CLOSING = regex.compile(rf"<(?:{_TAG})>"), regex.compile(rf"</(?:{_TAG})>")

# Stand-ins of one character each for what no boundary may cut: the text keeps its length, and spans stay true.
_BLOCK, _DISPLAY, _INLINE = "\ue000", "\ue001", "\ue002"
_UNCUT = [
    (_BLOCK, regex.compile(r"```.*?(?:```|\Z)", regex.DOTALL)),
    (_BLOCK, regex.compile(r"^[ \t]*\|[^\n]*(?:\n[ \t]*\|[^\n]*)+", regex.MULTILINE)),
    (_DISPLAY, regex.compile(r"\\\[.*?\\\]|\$\$.+?\$\$|\\begin\{(\w+\*?)\}.*?\\end\{\1\}", regex.DOTALL)),
    (_INLINE, regex.compile(r"\\\(.*?\\\)", regex.DOTALL)),
    # A dollar sign opens a formula only where no price begins: as in Pandoc, and no sentence may end inside.
    (_INLINE, regex.compile(r"(?<![\\\w])\$(?=\S)(?:\\.|(?![.!?]\s+\p{Lu})[^$\n\\])+(?<=\S)\$(?!\d)")),
    (_INLINE, regex.compile(r"`[^`\n]+`")),
]

_CONTENT = regex.compile(rf"[\p{{L}}\p{{N}}{_BLOCK}{_DISPLAY}{_INLINE}]")
_HEADING = regex.compile(r"#{1,6}\s")
_BOLD_LINE = regex.compile(r"(?:\d+[.)]\s+|[-*•]\s+)?\*\*[^*]+\*\*[:：]?")
_COLON_END = regex.compile(r"[:：][*_]*\Z")
_CONTINUES = regex.compile(r"[=≈+×÷⇒→]|\\(?:approx|implies|Rightarrow|times|Longrightarrow)\b")


def split_steps(response: str) -> Chain:
    """Split a response into steps and answer part; nothing but spaces and ornament is lost between them.

    A reasoning model's `<think>` block is the chain, and all that follows it belongs to the answer. The opening tag may
    be missing (some chat templates write it into the prompt), and so may the closing one (the response was cut short).
    What stands before the opening tag is neither.
    """
    start, end, after = _reasoning(response)
    spans = _joined(response, list(_pieces(response, start, end)))
    first = _first_of_answer(response, spans)
    return _chain(response, spans[:first], [*spans[first:], _stripped(response, after, len(response))])


def is_thinking(response: str) -> bool:
    """Whether a response ends inside a reasoning model's `<think>` block: nothing in it was meant as the answer yet."""
    opening = _OPENING.search(response)
    return opening is not None and _CLOSING.search(response, opening.end()) is None


def given_steps(texts: Sequence[str]) -> Chain:
    """The chain of a response that is in steps already: taken as they are, but for the answer that they end with."""
    spans: list[Span] = []
    for text in texts:
        start = spans[-1][1] + 1 if spans else 0
        spans.append((start, start + len(text)))
    response = "\n".join(texts)
    first = _first_of_answer(response, spans)
    return _chain(response, spans[:first], spans[first:])


def sentences(text: str) -> list[str]:
    """The sentences of a text, without joining what announces with what follows; answers are read from these."""
    return [text[start:end] for start, end in _pieces(text, 0, len(text))]


def _chain(response: str, steps: list[Span], answer: list[Span]) -> Chain:
    stated = [span for span in answer if span[0] < span[1]]
    whole = [(stated[0][0], stated[-1][1])] if stated else []
    made = [Step(response[start:end], start, end) for start, end in (*steps, *whole)]
    return Chain(response, tuple(made[: len(steps)]), made[-1] if whole else None)


def _reasoning(response: str) -> tuple[int, int, int]:
    """Where the chain starts and ends (between the tags of a reasoning model, or everywhere), and where it is left."""
    opening = _OPENING.search(response)
    start = opening.end() if opening else 0
    closings = [match.span() for match in _CLOSING.finditer(response) if match.start() >= start]
    end, after = closings[-1] if closings else (len(response), len(response))  # the last one: a model may think twice
    return start, end, after


def _pieces(response: str, start: int, end: int) -> Iterator[Span]:
    """Sentences, line by line; lines without a letter, a digit or a formula are ornament."""
    masked = _masked(response[start:end])
    for line in regex.finditer(r"[^\n\r]+", masked):
        for a, b in boundaries(line[0], display=_DISPLAY):
            a, b = _stripped(response, start + line.start() + a, start + line.start() + b)
            if _CONTENT.search(masked, a - start, b - start):
                yield a, b


def _masked(text: str) -> str:
    for stand_in, pattern in _UNCUT:
        text = pattern.sub(lambda match, to=stand_in: to * (match.end() - match.start()), text)  # type: ignore[misc]
    return text


def _stripped(text: str, start: int, end: int) -> Span:
    end -= len(text[start:end]) - len(text[start:end].rstrip())
    return end - len(text[start:end].lstrip()), end


def _joined(response: str, pieces: list[Span]) -> list[Span]:
    """Announcements joined with what they announce, and formulas with the lines that go on with them."""
    joined: list[Span] = []
    for start, end in pieces:
        if joined and (_announces(response[slice(*joined[-1])]) or _goes_on(response, joined[-1], start)):
            joined[-1] = joined[-1][0], end
        else:
            joined.append((start, end))
    return joined


def _announces(text: str) -> bool:
    """Whether a step so far ends in a heading, a line all in bold type, or a colon."""
    last = text.rpartition("\n")[2].strip()
    heading = _HEADING.match(last) and not ends_chain(last)
    return bool(heading or _BOLD_LINE.fullmatch(last) or _COLON_END.search(last))


def _goes_on(response: str, before: Span, start: int) -> bool:
    """Whether what starts on a new line is the rest of a formula or of its sentence."""
    gap, rest = response[before[1] : start], response[start : start + 40]
    last = response[max(0, before[1] - 40) : before[1]]
    if _CONTINUES.match(rest):
        return True
    if rest.startswith(("\\[", "$$", "\\begin")):
        return not regex.search(r"[.!?。！？][*_)\"”]*\Z", last)
    after_display = regex.search(r"(?:\\\]|\$\$|\\end\{\w+\*?\})[.,;]?\Z", last)
    return bool("\n" in gap and after_display and regex.match(r"\p{Ll}", rest))


def _first_of_answer(response: str, spans: list[Span]) -> int:
    """Index of the first span of the answer part: a `####` line, or the statements that the chain ends with."""
    for index, (start, end) in enumerate(spans):
        if ends_chain(response[start:end]):
            return index
    first = len(spans)
    while first and (
        is_final_answer(before := response[slice(*spans[first - 1])]) or (first < len(spans) and _announces(before))
    ):
        first -= 1
    return first
