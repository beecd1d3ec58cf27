"""An answer, the passages that it was written from, and its claims with their citations."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import regex

from ice_eval.words import sentence_spans


@dataclass(frozen=True)
class Passage:
    """A source that the model reads."""

    name: str
    """Name that citations use, as `3`: shown in brackets before its text."""
    text: str
    score: float | None = None
    """Its score in the retrieval, if given."""


@dataclass(frozen=True)
class Claim:
    """A part of an answer that is tested: characters `start` to `end` (exclusive) of its text."""

    start: int
    end: int
    cites: tuple[int, ...]
    """Indices of the passages that it cites, sorted."""
    marks: tuple[tuple[int, int], ...] = ()
    """Characters of the answer that only cite, as `[3]` or `([1], [2])`: never scored."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """Further fields of the data, as an expert's judgement of support."""
    number: int | None = None
    """Its number in the data, where claims are given; None: its place among the claims."""


@dataclass(frozen=True)
class CitedAnswer:
    """A question, the passages shown with it, and an answer that cites them."""

    id: str
    question: str
    passages: tuple[Passage, ...]
    text: str | None
    """The whole answer, with its citations; None if the model is to write it."""
    claims: tuple[Claim, ...] = ()
    """In their order; they do not overlap."""
    problems: tuple[str, ...] = ()
    """Claims and citations that could not be used, one message each: they are counted."""


def as_one_claim(answer: CitedAnswer) -> CitedAnswer:
    """Return an answer whose claims are one, with the citations of all."""
    if len(answer.claims) < 2:
        return answer
    first, last = answer.claims[0], answer.claims[-1]
    cites = tuple(sorted({index for claim in answer.claims for index in claim.cites}))
    marks = tuple(mark for claim in answer.claims for mark in claim.marks)
    return replace(answer, claims=(Claim(first.start, last.end, cites, marks),))


@dataclass(frozen=True)
class GivenClaim:
    """A claim as the data give it: its text, the names of the passages that it cites, and further fields."""

    text: str
    cites: Sequence[str]
    notes: Mapping[str, str] = field(default_factory=dict)


class ReadClaims(NamedTuple):
    claims: tuple[Claim, ...]
    """In order."""
    problems: tuple[str, ...]
    """A message for each claim or citation that cannot be used."""


class _Mark(NamedTuple):
    """Characters of an answer that only cite, and the names in them."""

    start: int
    end: int
    names: tuple[str, ...]


_BRACKETED = regex.compile(
    r"\[(?P<inside>[^\[\]\n]{1,300})\](?:\(https?://[^\s()]+\))?|【(?P<inside>[^【】\n]{1,300})】"
)
_ROUND = regex.compile(r"\((?P<inside>[\d\s,;–-]{1,60})\)")
_FIRST_ITEM = regex.compile(r"(?:^[ \t*•-]*|(?<!\))[:;,]\s(?:and\s|or\s)?)\(\d+\)[ \t]+[*_\"“]*\w", regex.MULTILINE)
"""Number of a list, `(1) Add. (2) Stop.` or `two ways: (1) adding, (2) stopping`: no number behind it cites."""
_RAISED = regex.compile(
    # No exponents (10², x², km²), charges (Cu²⁺) or isotopes (¹⁴C).
    r"(?<![\d)¹²³⁰⁴-⁹⁻⁺]|\b(?:\p{L}|[cdkmn]m|ft|mc))(?P<inside>[¹²³⁰⁴-⁹]{1,9}+(?:[,˒⁻–][¹²³⁰⁴-⁹]{1,9}+){0,9}+)"
    r"(?![¹²³⁰⁴-⁹⁺⁻\p{L}])"
)
_LOWERED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻˒", "0123456789-,")
_RANGE = regex.compile(r"(\d+)\s*[-–—]\s*(\d+)")
_AROUND_NAME = regex.compile(r"^\^|^(?:passage|document|doc|source|context)s?\s+(?:id\s+)?|\s*†.*$", regex.IGNORECASE)
"""Parts of a mark that are no name: `^1`, `Passage 1`, `1†source`."""
_REFERENCES = regex.compile(
    r"^[ \t#*_]*(?:references|sources|citations|bibliography)[ \t:*_]*$|^\[\^[^\]\n]+\]:|^\[[^\]\n]+\]:\s*<?https?:",
    regex.MULTILINE | regex.IGNORECASE,
)
"""First line of a list of sources behind an answer."""
_BREAK = regex.compile(r"[\n\r\u2028\u2029]")


def claims_in(text: str, names: Sequence[str]) -> ReadClaims:
    """Read the claims of an answer: its sentences, with the passages that their citations name.

    A citation behind a sentence belongs to it; at the start of a line, to the sentence that follows. A list of sources
    at the end holds no claims.
    """
    references = _REFERENCES.search(text)
    if references is not None and text[: references.start()].strip():
        text = text[: references.start()]
    marks = _marks(text, names)
    # Where an answer begins with a citation, each belongs to what follows it.
    leads = bool(marks) and not text[: marks[0].start].strip()
    characters = list(text)
    for mark in marks:
        characters[mark.start : mark.end] = " " * (mark.end - mark.start)
    plain = "".join(characters)
    spans = [span for span in sentence_spans(plain) if regex.search(r"\w", plain[slice(*span)])]
    marks_of: dict[int, list[_Mark]] = {index: [] for index in range(-1, len(spans))}
    for mark in marks:  # it belongs to the sentence before it (-1: there is none), or to the one that follows
        before = bisect_right(spans, mark.start, key=lambda span: span[0]) - 1
        begins_line = before < 0 or _BREAK.search(text, spans[before][1], mark.start) is not None
        begins_line |= leads and before >= 0 and mark.start >= spans[before][1]
        follows = begins_line and before + 1 < len(spans) and not _BREAK.search(text, mark.end, spans[before + 1][0])
        marks_of[before + follows].append(mark)
    problems = [f"[{name}] is before the first claim" for mark in marks_of[-1] for name in mark.names]
    claims = []
    for index, (start, end) in enumerate(spans):
        own = marks_of[index]
        cites, unknown = _cites([name for mark in own for name in mark.names], names)
        problems += [_no_passage(index + 1, name) for name in unknown]
        start, end = min([start, *(mark.start for mark in own)]), max([end, *(mark.end for mark in own)])
        claims.append(Claim(start, end, cites, tuple((mark.start, mark.end) for mark in own)))
    return ReadClaims(tuple(claims), tuple(problems))


def given_claims(text: str, claims: Sequence[GivenClaim], names: Sequence[str]) -> ReadClaims:
    """Find given claims in an answer, in order, and the citations inside them."""
    marks = _marks(text, names)
    read, problems, position = [], [], 0
    for number, claim in enumerate(claims, start=1):
        # A space in it may be any other space in the text.
        spaced = regex.compile(r"\s+".join(map(regex.escape, claim.text.split())))
        exact = regex.compile(regex.escape(claim.text.strip())).search(text, position)
        found = exact or spaced.search(text, position)
        if not claim.text.strip() or found is None:
            why = f"not found in the answer, in this order: {claim.text!r:.60}" if claim.text.strip() else "empty"
            problems.append(f"claim {number} is {why}")
            continue
        start, position = found.span()
        cites, unknown = _cites(claim.cites, names)
        problems += [_no_passage(number, name) for name in unknown]
        inside = [mark for mark in marks if mark.start < position and start < mark.end]
        spans = tuple((max(start, mark.start), min(position, mark.end)) for mark in inside)
        read.append(Claim(start, position, cites, spans, claim.notes, number))
    return ReadClaims(tuple(read), tuple(problems))


def _no_passage(number: int, name: str) -> str:
    return f"claim {number} cites [{name}], and there is no such passage"


def _cites(cited: Sequence[str], names: Sequence[str]) -> tuple[tuple[int, ...], list[str]]:
    """Return the indices of cited passages, and the cited names that no passage has."""
    known = {names.index(name) for name in cited if name in names}
    return tuple(sorted(known)), [name for name in dict.fromkeys(cited) if name not in names]


def _marks(text: str, names: Sequence[str]) -> list[_Mark]:
    """Return the citations of a text in order; those side by side, as `[1], [2]`, are one."""
    runs: list[_Mark] = []
    for mark in _single_marks(text, names):
        if runs and not text[runs[-1].end : mark.start].strip(" \t,;"):
            before = runs.pop()
            mark = _Mark(before.start, mark.end, before.names + mark.names)
        runs.append(mark)
    in_brackets = [text[run.start - 1 : run.start] + text[run.end : run.end + 1] == "()" for run in runs]
    return [_Mark(run.start - wider, run.end + wider, run.names) for run, wider in zip(runs, in_brackets, strict=True)]


def _single_marks(text: str, names: Sequence[str]) -> list[_Mark]:
    bracketed = [_Mark(*match.span(), _names_in(match["inside"], names)) for match in _BRACKETED.finditer(text)]
    marks = [mark for mark in bracketed if mark.names]
    if any(set(mark.names) & set(names) for mark in marks):
        return marks  # a year in brackets, `[2019]`, is no citation by itself
    unknown, marks = marks, []
    for line in regex.finditer(r"[^\n]+", text):
        item = _FIRST_ITEM.search(text, *line.span())
        for match in _ROUND.finditer(text, line.start(), item.start() if item else line.end()):
            cited = _names_in(match["inside"], names)
            if set(cited) <= set(names):
                marks.append(_Mark(*match.span(), cited))
    for match in _RAISED.finditer(text):
        inside = match["inside"].translate(_LOWERED)
        if inside not in names and set(inside) <= set(names):
            inside = ",".join(inside)  # ¹² cites 1 and 2 if there is no 12
        marks.append(_Mark(*match.span(), _names_in(inside, names)))
    return sorted(mark for mark in marks if mark.names) or unknown


def _names_in(inside: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names in a mark, of passages or not; none if the brackets hold something else than citations."""
    if inside.strip() in names:
        return (inside.strip(),)
    found: list[str] = []
    for part in map(str.strip, regex.split("[,;]", inside)):
        name = part if part in names else _AROUND_NAME.sub("", part)
        if name not in names and name.isdecimal():
            name = str(int(name))
        if name in names or name.isdecimal() or _shape(name) in map(_shape, names):
            found.append(name)
            continue
        ends = _RANGE.fullmatch(name)  # such as `1-3`: all of its names must exist
        if ends is None or not 0 < int(ends[2]) - int(ends[1]) < len(names):
            return ()
        numbers = [str(number) for number in range(int(ends[1]), int(ends[2]) + 1)]
        if not set(numbers) <= set(names):
            return ()
        found += numbers
    return tuple(found)


def _shape(name: str) -> str:
    """Return a name with equal digits and equal single letters: `doc_b` looks like `doc_a`, and `[sic]` does not."""
    return regex.sub(r"\d+", "0", regex.sub(r"(?<!\p{L})\p{L}(?!\p{L})", "a", name))
