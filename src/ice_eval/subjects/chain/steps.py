r"""A response as a chain of steps: sentences, items of lists, formulas and code, as spans of the text.

A step is what a person would strike out in one go:

- lines, items of lists and sentences are steps of their own;
- code blocks, tables and displayed formulas (over several lines, too) are never cut;
- headings, and whatever ends in a colon, announce the next step and are joined with it;
- the statement of the final answer is no step but the answer part. Explicit markers open it:

    \boxed{42}     #### 42     <answer>42</answer>     Answer: 42     So the correct choice is (B)     答案是 42
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import regex

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
_OPENING = regex.compile(rf"<(?:{_TAG}|seed:think)>|\[THINK\]|<\|channel\|>analysis<\|message\|>")
_CLOSING = regex.compile(
    rf"</(?:{_TAG}|seed:think)>|\[/THINK\]"
    r"|(?:<\|end\|>)?(?:<\|start\|>assistant)?<\|channel\|>final<\|message\|>"
)

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
    """Return whether a response ends inside a `<think>` block: nothing in it was meant as the answer yet."""
    opening = _OPENING.search(response)
    return opening is not None and _CLOSING.search(response, opening.end()) is None


def thinking(response: str) -> str | None:
    """Return what a response marks as thinking; None if it marks nothing."""
    if not (_OPENING.search(response) or _CLOSING.search(response)):
        return None
    start, end, _ = _reasoning(response)
    return response[start:end].strip()


def visible(response: str) -> str:
    """Return a response without what it marks as thinking."""
    if thinking(response) is None:
        return response
    opening = _OPENING.search(response)
    return response[: opening.start() if opening else 0] + response[_reasoning(response)[2] :]


def given_steps(texts: Sequence[str]) -> Chain:
    """Return the chain of a response that is in steps already; the answer that they end with is split off."""
    spans: list[Span] = []
    for text in texts:
        start = spans[-1][1] + 1 if spans else 0
        spans.append((start, start + len(text)))
    response = "\n".join(texts)
    first = _first_of_answer(response, spans)
    return _chain(response, spans[:first], spans[first:])


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, without joining what announces with what follows; answers are read from these."""
    return [text[start:end] for start, end in _pieces(text, 0, len(text))]


def _chain(response: str, steps: list[Span], answer: list[Span]) -> Chain:
    stated = [span for span in answer if span[0] < span[1]]
    whole = [(stated[0][0], stated[-1][1])] if stated else []
    made = [Step(response[start:end], start, end) for start, end in (*steps, *whole)]
    return Chain(response, tuple(made[: len(steps)]), made[-1] if whole else None)


def _reasoning(response: str) -> tuple[int, int, int]:
    """Return where the chain starts and ends (all of the response, or its tagged part), and where the rest begins."""
    opening = _OPENING.search(response)
    start = opening.end() if opening else 0
    closings = [match.span() for match in _CLOSING.finditer(response) if match.start() >= start]
    end, after = closings[-1] if closings else (len(response), len(response))  # the last one: a model may think twice
    return start, end, after


def _pieces(response: str, start: int, end: int) -> Iterator[Span]:
    """Yield sentences, line by line; lines without a letter, a digit or a formula are ornament."""
    masked = _masked(response[start:end])
    for line in regex.finditer(r"[^\n\r]+", masked):
        for a, b in _sentences_of(line[0]):
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
    """Join announcements with what they announce, and formulas with the lines that go on with them."""
    joined: list[Span] = []
    for start, end in pieces:
        if joined and (_announces(response[slice(*joined[-1])]) or _goes_on(response, joined[-1], start)):
            joined[-1] = joined[-1][0], end
        else:
            joined.append((start, end))
    return joined


def _announces(text: str) -> bool:
    """Return whether a step so far ends in a heading, a line all in bold type, or a colon."""
    last = text.rpartition("\n")[2].strip()
    heading = _HEADING.match(last) and not ends_chain(last)
    return bool(heading or _BOLD_LINE.fullmatch(last) or _COLON_END.search(last))


def _goes_on(response: str, before: Span, start: int) -> bool:
    """Return whether what starts on a new line is the rest of a formula or of its sentence."""
    gap, rest = response[before[1] : start], response[start : start + 40]
    last = response[max(0, before[1] - 40) : before[1]]
    if _CONTINUES.match(rest):
        return True
    if rest.startswith(("\\[", "$$", "\\begin")):
        return not regex.search(r"[.!?。！？][*_)\"”]*\Z", last)
    after_display = regex.search(r"(?:\\\]|\$\$|\\end\{\w+\*?\})[.,;]?\Z", last)
    return bool("\n" in gap and after_display and regex.match(r"\p{Ll}", rest))


def _first_of_answer(response: str, spans: list[Span]) -> int:
    """Return the index of the first span of the answer: a `####` line, or the statements that the chain ends with."""
    for index, (start, end) in enumerate(spans):
        if ends_chain(response[start:end]):
            return index
    first = len(spans)
    while first and (
        is_final_answer(before := response[slice(*spans[first - 1])]) or (first < len(spans) and _announces(before))
    ):
        first -= 1
    return first


# Sentences within a line.

_END = regex.compile(
    # The lookbehinds let a run of marks be tried once, not from each of its marks: a model may write dots to its limit.
    r"(?<![.!?])(?P<latin>[.!?]++)(?P<close>[\"'”’)\]*_»]*)(?=\s)"
    r"|(?P<wide>[。！？｡]+)[」』”’）)]*"  # Chinese and Japanese: no space follows
    r"|(?<![।؟۔])(?P<other>[।؟۔]++)(?=\s)"  # Hindi, Arabic, Urdu
)
_NEXT = regex.compile(r"\s+(?:[-*•–+]\s+)?[*_\"'“‘«(\[¿¡<`]*[\p{Lu}\p{Lt}\p{Lo}\p{N}\p{So}\p{Co}$€£¥₹\\✓-]")
_ONLY_MARK = regex.compile(
    r"\W*(?:(?:step|part|case|option|example|question|claim|stage|phase)\s+)?"
    r"[(\[]?(?:\d{1,3}|\p{L}|[ivx]{1,4}|[IVX]{1,4})[)\]]?[.:)]*[*_)]*",
    regex.IGNORECASE,
)
"""`2.`, `(b)`, `Step 3.`: what an item of a list begins with."""

_DOTTED = regex.compile(r"(?:\p{L}\.)+\p{L}|[Pp]h\.[Dd]")
"""`U.S`, `a.m`, `Ph.D`: the last full stop stands behind."""
_TITLES = frozenset(
    "mr mrs ms dr prof st mt fr rev gen col sgt capt hon vs cf viz approx ca e.g i.e e.g., fig eq resp".split()
)
"""Abbreviations that never end a sentence."""
_BEFORE_NUMBERS = frozenset("no nos p pp vol ch sec art par nr ex thm prop lem def tab figs eqs pg".split())
_LONG_ABBREVIATIONS = frozenset("approx assoc depts incl".split())
_NAMED_BY_LETTER = frozenset(
    "option options choice answer answers case step part figure team type plan group point statement class vitamin "
    "hepatitis grade row column box line set angle train person company".split()
)
"""Words after which a single capital letter is a name, so that the full stop after it ends the sentence."""
_STARTERS = frozenset(
    "the this that these those it he she they we i you there here so then thus therefore hence since because if when "
    "while after before next now first second third finally in on at for from to by as and but or however each every "
    "all both his her their our its a an let what which who how one two not no".split()
)
"""Words that begin a sentence far more often than a name: what follows `U.S.` or `a.m.` decides."""


def _sentences_of(line: str) -> Iterator[Span]:
    """Yield the spans of the sentences of a line; full stops of abbreviations, numbers and lists end none."""
    numbers = list(_list_numbers(line))
    inside = {position for mark in numbers for position in range(mark.start(1), mark.end())}
    ends = {end for end in _sentence_ends(line) if end - 1 not in inside}
    ends |= {mark.start(1) for mark in numbers[1:]} | {*_after_formulas(line), *_bullets(line)}
    start = 0
    for end in sorted(ends | {len(line)}):
        # A list mark alone is no sentence; it opens the next one.
        if end == len(line) or not _ONLY_MARK.fullmatch(line[start:end].strip()):
            yield start, end
            start = end


def _sentence_ends(line: str) -> Iterator[int]:
    for match in _END.finditer(line):
        if _in_brackets(line, match.start()):
            continue
        if match["latin"] is None or (_begins_next(line, match) and not _is_inside(line, match)):
            yield match.end()


def _begins_next(line: str, match: "regex.Match[str]") -> bool:
    """Return whether a sentence seems to follow; a small letter may begin it only after a long word."""
    if _NEXT.match(line, match.end()):
        return True
    if match[0] != ".":
        return False
    long_word = regex.search(r"(?<![\w.])\p{Ll}{5,}\Z", line[max(0, match.start() - 60) : match.start()])
    return bool(
        long_word and long_word[0] not in _LONG_ABBREVIATIONS and regex.match(r"\s+\p{Ll}{2,}", line[match.end() :])
    )


def _is_inside(line: str, match: "regex.Match[str]") -> bool:
    """Return whether the mark belongs to a word or a pause, not to the end of a sentence."""
    if "..." in match["latin"] or (match["latin"] == "." and line[: match.start()].endswith("…")):
        return True
    if match["latin"] != "." or match["close"]:
        return False
    before, word = _words_before(line[: match.start()])
    following = regex.match(r"\W*(\w*)", line[match.end() :])
    after = following[1] if following else ""
    return _is_abbreviation(word, after) or _is_initial(before, word, after)


def _is_abbreviation(word: str, after: str) -> bool:
    """Return True for `Dr.`, `No. 5`; `U.S.` and `a.m.` unless what follows begins a sentence."""
    low = word.casefold()
    if low in _TITLES or (low in _BEFORE_NUMBERS and after[:1].isdigit()):
        return True
    return bool(_DOTTED.fullmatch(word)) and after.casefold() not in _STARTERS


def _is_initial(before: str, word: str, after: str) -> bool:
    """Return True for `John F. Kennedy`, but neither `option B. Then` nor `Plan A. The`."""
    if len(word) != 1 or not all(part[:1].isupper() for part in (before, word, after)):
        return False
    return before.casefold() not in _NAMED_BY_LETTER and after.casefold() not in _STARTERS


def _words_before(text: str) -> tuple[str, str]:
    """Return the last two words of a text; the last keeps the full stops inside it."""
    words = regex.findall(r"[\p{L}\p{N}][\p{L}\p{N}.'’]*", text[-60:])
    if not words or not text.endswith(words[-1]):
        return "", ""
    return (words[-2] if len(words) > 1 else ""), words[-1]


def _in_brackets(line: str, position: int) -> bool:
    """Return whether a round bracket that opened before `position` closes soon after it."""
    opened = line.rfind("(", max(0, position - 300), position)
    if opened < 0 or ")" in line[opened:position]:
        return False
    closed = line.find(")", position, position + 300)
    # `(… .)` ends with its bracket, which is part of the mark itself.
    return closed > position + 1


def _after_formulas(line: str) -> Iterator[int]:
    """Yield the ends of displayed formulas that a new sentence or item follows without any mark."""
    for match in regex.finditer(rf"{_DISPLAY}(?=\s+(?:[-*•]\s+|\d{{1,2}}[.)]\s+)?[*_\"(]*\p{{Lu}})", line):
        yield match.end()


def _bullets(line: str) -> Iterator[int]:
    """Yield where the items of a list begin that was written in one line with bullets: `- One - Two`."""
    mark = regex.match(r"\s*([-•])\s", line)
    if mark:
        yield from (m.start() for m in regex.finditer(rf"\s{regex.escape(mark[1])}\s+(?=[*_]*\p{{Lu}}\p{{Ll}})", line))


def _list_numbers(line: str) -> "Iterator[regex.Match[str]]":
    """Yield the numbers of a list in one line, at its start or after a colon: `These are: 1. One 2. Two`."""
    mark = regex.search(r"(?:^|(?<!\b(?:is|answer|equals)):[*_]*\s)\s*((\d{1,2})[.)])\s", line)
    if mark is None or (mark.start() > 0 and mark[2] != "1"):
        return
    while mark:
        yield mark
        following = regex.compile(rf"\s(({int(mark[2]) + 1})[.)])\s+(?=[*_]*[\p{{L}}\p{{Co}}\\])")
        mark = following.search(line, mark.end() - 1)


# Markers of the final answer.

_BOXED = regex.compile(r"\\f?boxed\s*\{")
_TAGGED = regex.compile(r"<answer>(.*?)(?:</answer>|\Z)", regex.DOTALL | regex.IGNORECASE)
_HASHES = regex.compile(r"^[ \t]*####[ \t]*((?:[-+]?[$€£]?[ \t]*[\d.]|\\|\(?[A-J]\b)[^\n]*)", regex.MULTILINE)
_IS = r"(?:[:：=][*_]*|\b(?:is|would be|must be|should be)\b(?:\s+(?:therefore|thus|then|that|clearly))*[:,]?)"
_CLASS = r"(?:choice|option|sentiment|topic|category|label)"
_WORDS = regex.compile(
    rf"\banswer\b(?:\s+to\s+(?:the|this)\s+\w+)?[*_\"]*\s*{_IS}"
    rf"|\b(?:correct|right|best|final|overall|most likely)\s+{_CLASS}[*_]*\s*{_IS}"
    rf"|\bthe\s+(?:sentiment|topic|category|label)\s*{_IS}"
    rf"|^[^\w\n]*{_CLASS}[*_]*\s*[:：=][*_]*"
    r"|^[^\w\n]*(?:final\s+)?answer[*_]*[ \t]*$"  # a heading
    r"|\b(?:réponse|respuesta|antwort|risposta)\b[\w ]{0,12}?(?:[:：]|\b(?:est|es|ist|lautet|è)\b)[*_]*"
    r"|答案(?:应该)?(?:是|为|[:：])|答え(?:は|[:：])",
    regex.IGNORECASE | regex.MULTILINE,
)
_OTHER = regex.compile(
    r"\b(?:not the|incorrect|wrong|other|possible|each|first|second|previous|this)\s*\Z", regex.IGNORECASE
)
_PREAMBLE = regex.compile(
    r"\W*(?:(?:based on|given|from|in)\b[^,.\n]{0,80},\s*)?"
    r"(?:(?:and|so|thus|therefore|hence|overall|finally|consequently|conclusion|最终|因此|所以|よって|したがって)\b|\W)*"
    r"(?:(?:the|my|our|la|die|der|el)\s+)?(?:(?:final|correct|right|best|overall|最终|正确)\s*)*",
    regex.IGNORECASE,
)
"""Words that may precede the marker in a sentence that does nothing but state the answer."""


def last_marked(text: str) -> str | None:
    """Return what the last marker of a text marks; None: there is no marker.

    Behind words (`Answer:`) that is the rest of the line or, where nothing is left of it, the next line that holds
    something.
    """
    found = [(match.start(), _braced(text, match.end())) for match in _BOXED.finditer(text)]
    found += [(match.start(), match[1].strip()) for match in (*_TAGGED.finditer(text), *_HASHES.finditer(text))]
    for match in _WORDS.finditer(text):
        if not _OTHER.search(text[max(0, match.start() - 20) : match.start()]):
            found.append((match.start(), _rest(text[match.end() :])))
    return max(found, key=lambda item: item[0])[1] if found else None


def is_final_answer(step: str) -> bool:
    r"""Return whether a step does nothing but state the final answer: it opens with a marker, or holds `\boxed{…}`."""
    if ends_chain(step) or _BOXED.search(step) or _TAGGED.search(step):
        return True
    return any(_PREAMBLE.fullmatch(step[: match.start()]) for match in _WORDS.finditer(step))


def ends_chain(step: str) -> bool:
    """Return whether a step is the line `#### 42`, after which no reasoning is expected (unlike `#### Step 2`)."""
    return bool(_HASHES.match(step)) and len(step) <= 60


def _braced(text: str, start: int) -> str:
    """Return the text before the brace that closes the one before `start`, or the line where nothing closes it."""
    depth = 1
    line = regex.compile(r"[^\n]{0,1000}").match(text, start)
    for match in regex.finditer(r"\\.|[{}]", line[0] if line else ""):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0:
            return text[start : start + match.start()].strip()
    return line[0].strip() if line else ""


def _rest(text: str) -> str:
    """Return the first line that holds more than ornament."""
    for line in text.split("\n"):
        if regex.search(r"[\p{L}\p{N}]", line):
            return line.strip()
    return ""
