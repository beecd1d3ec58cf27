r"""A response as a chain of steps: sentences, items of lists, formulas and code, as spans of the text.

A step is what a person would strike out in one go:

- lines, items of lists and sentences are steps of their own;
- code blocks, tables and displayed formulas (over several lines, too) are never cut;
- headings, and whatever ends in a colon, announce the next step and are joined with it;
- talk that closes or opens a response ("I hope this helps!") is neither step nor answer;
- the statement of the final answer is no step but the answer part. Explicit markers open it:

    \boxed{42}     #### 42     <answer>42</answer>     Answer: 42     So the correct choice is (B)     答案是 42
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import regex

from ice_eval.words import FORMULA, line_sentences, stripped_span

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
    asides: tuple[Step, ...] = ()
    """Neither step nor answer: talk, and an answer that is stated first where the chain ends with one, too."""
    answer_first: bool = False
    """True if the answer is stated before the first step, so that the steps may only justify it."""


_TAG = "think|thinking|thought|reasoning|seed:think"
_OPENING = regex.compile(
    rf"<(?:{_TAG})>|\[THINK\]|<\|begin_of_thought\|>|<\|START_THINKING\|>|◁think▷"
    r"|(?:<\|start\|>assistant)?<\|channel\|>analysis<\|message\|>|\Aanalysis(?=\p{Lu}.*assistantfinal)",
    regex.DOTALL,
)
_FINAL_CHANNEL = r"(?:<\|start\|>assistant)?<\|channel\|>final<\|message\|>"
_CLOSING = regex.compile(
    rf"</(?:{_TAG})>|\[/THINK\]|<\|end_of_thought\|>\s*(?:<\|begin_of_solution\|>)?|<\|END_THINKING\|>|◁/think▷"
    rf"|(?:<\|end\|>\s*)?{_FINAL_CHANNEL}|<\|end\|>(?=<\|start\|>)|assistantfinal"
)
"""Tags around thinking: of most reasoning models, Magistral, Open-Thoughts, Command A, Kimi, and gpt-oss (channels)."""
_CONTROL = regex.compile(r"(?:\s*<\|(?:return|end|im_end|eot_id|endoftext|end_of_solution|END_RESPONSE)\|>)+\s*\Z")
"""Special tokens that were written out at the end of a response."""


# Stand-ins of one character each for what no boundary may cut: the text keeps its length, and spans stay true.
_BLOCK, _DISPLAY, _INLINE = "\ue000", FORMULA, "\ue002"
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
_REASON = regex.compile(
    r"\W*(?:because|since|as|this|that|these|so|therefore|thus|hence|however|but|note|I|let|if|we|here|hope|please|thank|"
    r"now|next|while|although|for|other|options?|choices?|[A-J])\b",
    regex.IGNORECASE,
)
"""Words that begin the sentence after an answer, unlike the text of an option."""


def split_steps(response: str) -> Chain:
    """Split a response into steps and answer part; nothing but spaces and ornament is lost between them.

    What a response marks as thinking (`<think>`) is the chain, and all that follows it belongs to the answer. The
    opening tag may be missing (some chat templates write it into the prompt), and so may the closing one (the response
    was cut short). What stands before the opening tag is neither.
    """
    start, end, after = _reasoning(response)
    spans = _joined(response, list(_pieces(response, start, end)))
    rest = _joined(response, list(_pieces(response, after, _stop(response))))
    return _chain(response, spans, rest)


def thinking(response: str) -> str | None:
    """Return what a response marks as thinking; None: nothing is marked."""
    start, end, after = _reasoning(response)
    return response[start:end].strip() if start or after > end else None


def visible(response: str) -> str:
    """Return a response without its thinking: what a user is shown."""
    start, end, after = _reasoning(response)
    if not start and after == end:
        return response
    opening = _OPENING.search(response)
    before = response[: opening.start()] if opening else ""
    return f"{before.rstrip()}\n{response[after : _stop(response)].lstrip()}".strip()


def is_thinking(response: str) -> bool:
    """Return whether a response ends inside its thinking: nothing in it was meant as the answer yet."""
    opening = _OPENING.search(response)
    return opening is not None and _CLOSING.search(response, opening.end()) is None


def given_steps(texts: Sequence[str]) -> Chain:
    """Return the chain of a response that is in steps already; the answer that they end with is split off."""
    starts = itertools.accumulate((len(text) + 1 for text in texts), initial=0)
    spans = [(start, start + len(text)) for start, text in zip(starts, texts, strict=False)]
    return _chain("\n".join(texts), spans, [])


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, without joining what announces with what follows; answers are read from these."""
    return [text[start:end] for start, end in _pieces(text, 0, len(text))]


def _chain(response: str, spans: list[Span], rest: list[Span]) -> Chain:
    """Return the chain of some spans; `rest` follows the thinking, and all of it but talk is answer."""
    texts = [response[start:end] for start, end in spans]
    begin = next((index for index, text in enumerate(texts) if not _OPENS.fullmatch(text)), 0)
    end = len(spans) if rest else _first_of_talk(response, spans)
    until = _first_of_talk(response, rest)
    first = max(begin, _first_of_answer(response, spans[:end]))
    is_first = begin + 1 < first and _opens_with_answer(response, spans[begin])
    stated, asides = [*spans[first:end], *rest[:until]], [*spans[:begin], *spans[end:], *rest[until:]]
    if is_first:
        (asides if stated else stated).append(spans[begin])
    answer = [(stated[0][0], stated[-1][1])] if stated else []
    steps, answers, others = (
        tuple(Step(response[slice(*span)], *span) for span in each)
        for each in (spans[begin + is_first : first], answer, sorted(asides))
    )
    return Chain(response, steps, answers[0] if answers else None, others, is_first)


def _reasoning(response: str) -> tuple[int, int, int]:
    """Return where the chain starts and ends (all of the response, or its tagged part), and where the rest begins."""
    opening = _OPENING.search(response)
    start = opening.end() if opening else 0
    closings = [match.span() for match in _CLOSING.finditer(response) if match.start() >= start]
    # The last one: a model may think twice.
    end, after = closings[-1] if closings else (_stop(response), _stop(response))
    return start, end, after


def _stop(response: str) -> int:
    """Return where a response ends but for control tokens."""
    control = _CONTROL.search(response)
    return control.start() if control else len(response)


def _pieces(response: str, start: int, end: int) -> Iterator[Span]:
    """Yield sentences, line by line; lines without a letter, a digit or a formula are ornament."""
    masked = response[start:end]
    for stand_in, pattern in _UNCUT:
        masked = pattern.sub(lambda match, to=stand_in: to * len(match[0]), masked)  # type: ignore[misc]
    for line in regex.finditer(r"[^\n\r]+", masked):
        for a, b in line_sentences(line[0]):
            a, b = stripped_span(response, start + line.start() + a, start + line.start() + b)
            if _CONTENT.search(masked, a - start, b - start):
                yield a, b


def _joined(response: str, pieces: list[Span]) -> list[Span]:
    """Join announcements with what they announce, and formulas with the lines that go on with them."""
    joined = pieces[:1]
    for last, piece in itertools.pairwise(pieces):
        goes_on = _announces(response[slice(*last)]) or _goes_on(response, joined[-1], piece[0])
        if goes_on or _names_option(response, last, piece):
            joined[-1] = joined[-1][0], piece[1]
        else:
            joined.append(piece)
    return joined


def _announces(text: str) -> bool:
    """Return whether a piece ends in a heading, a line all in bold type, or a colon; an answer announces nothing."""
    last = text.rpartition("\n")[2].strip()
    if not (_HEADING.match(last) or _BOLD_LINE.fullmatch(last) or _COLON_END.search(last)):
        return False
    return not (ends_chain(last) or (is_final_answer(last) and last_marked(last)))


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


def _names_option(response: str, before: Span, piece: Span) -> bool:
    """Return whether a piece is the text of an option whose letter was just stated: "The answer is A. Earth turns."."""
    if "\n" in response[before[1] : piece[0]] or not _ends_line(response, piece[1]):
        return False
    is_letter = regex.fullmatch(r"[*_(]*[A-J][)*_]*\.[*_]*", last_marked(response[slice(*before)]) or "")
    return bool(is_letter) and not _REASON.match(response, piece[0])


def _first_of_answer(response: str, spans: list[Span]) -> int:
    """Return the index of the first span of the answer: a `####` line, or the statements that the chain ends with."""
    texts = [response[start:end] for start, end in spans]
    first = next((index for index, text in enumerate(texts) if ends_chain(text)), None)
    if first is not None:
        return first
    first = len(texts)
    while first and (is_final_answer(texts[first - 1]) or (first < len(texts) and _announces(texts[first - 1]))):
        first -= 1
    return first


def _opens_with_answer(response: str, span: Span) -> bool:
    """Return whether a response begins with its answer: `Answer: 20`, unlike `Answer: There are 20 trees. Then …`."""
    text = response[slice(*span)]
    marked = last_marked(text) if is_final_answer(text) else None
    if not marked:
        return False
    n_words = len(regex.findall(r"\p{L}+", marked))
    if _VALUE.match(marked) and (n_words <= 4 or not marked.strip("*_ ($")[:1].isdigit()):
        return True
    return 0 < n_words <= 6 and _ends_line(response, span[1])


def _ends_line(response: str, end: int) -> bool:
    return regex.compile(r"[ \t]*(?:[\r\n]|\Z)").match(response, end) is not None


# Talk around a chain.

_OPENS = regex.compile(
    r"\W*(?:sure|certainly|of course|absolutely|hello|hi|hey|(?:great|good) question|thank you)\b(?:\s+\w+)?[\s,.!]*"
    r"(?:(?:let me|let['’]s|I['’]ll|I will|I can|I['’]d be|here)\b[^.!\d\n:]{0,80})?[.!]*"
    r"|I(?:['’]m| am|['’]ll| will| can)\b[^.\d\n]{0,30}\b(?:help|assist|answer|explain)\b[^.\d\n]{0,40}\byou"
    r"[^.\d\n]{0,60}\.?",
    regex.IGNORECASE,
)
_CLOSES = regex.compile(
    r"\W*(?:(?:I )?hope (?:this|that|it|my|you)\b|(?:please )?(?:let me know|feel free|do(?:n['’]t| not) hesitate)\b"
    r"|if (?:you|there)\b[^.\d]{0,40}\b(?:questions?|doubts?|help|clarification|explanation)\b"
    r"|(?:is there|do you have) any\w*\b[^.\d]{0,30}(?:else|questions?|help)\b"
    r"|would you like (?:me|to|another|more|help)\b|happy (?:to help|learning|studying|solving|calculating)"
    r"|good luck\b|have a (?:great|good|nice|wonderful) (?:day|time|week|evening|one)\b"
    r"|thanks?\b(?: you\b| for\b|[.!])|you(?:['’]re| are) welcome|best (?:regards|wishes)|(?:I['’]m )?glad (?:I|to)\b"
    r"|I(?:['’]m| am) (?:here|happy|glad) to (?:help|assist)|(?:great|good|nice) (?:job|work|question)[.!])",
    regex.IGNORECASE,
)
_NOTE = regex.compile(
    r"\W*(?:(?:please\s+)?note\b|remember\b|keep in mind\b|disclaimer\b|p\.?s\b"
    r"|(?:this|the)\s+(?:above\s+)?(?:answer|solution|result)\s+(?:assumes|is based|may)\b)",
    regex.IGNORECASE,
)
_REASONS_ON = regex.compile(r"\W*(?:so|thus|therefore|hence|then|now|next|but)\b", regex.IGNORECASE)
_LONGEST_TALK = 300
"""Characters; a longer sentence holds more than courtesy."""


def _first_of_talk(response: str, spans: list[Span]) -> int:
    """Return the index of the first span of the talk at the end.

    Notes are talk only behind an explicit answer, with the rest of their line unless that reasons on.
    """
    texts = [response[start:end] for start, end in spans]
    end = len(texts)
    while end and _CLOSES.match(texts[end - 1]) and len(texts[end - 1]) <= _LONGEST_TALK:
        end -= 1
    stated = next((index for index in reversed(range(end)) if is_final_answer(texts[index])), end - 1)
    place = stated + 1
    while place < end:
        is_same_line = place > stated + 1 and "\n" not in response[spans[place - 1][1] : spans[place][0]]
        is_rest = is_same_line and not _REASONS_ON.match(texts[place])
        if not (is_rest or _NOTE.match(texts[place]) or _CLOSES.match(texts[place])):
            return end
        place += 1
    return stated + 1


# Markers of the final answer.

_BOXED = regex.compile(r"\\f?boxed\s*\{")
_VALUE = regex.compile(r"[*_\s\"'(\[$€£\\]*(?:\\?f?boxed|[-+]?\d|[A-J](?![\p{L}'’]|\s+\p{Ll}))")
"""A number, or the letter of an option."""
_TAGGED = regex.compile(r"<answer>(.*?)(?:</answer>|\Z)", regex.DOTALL | regex.IGNORECASE)
_HASHES = regex.compile(r"^[ \t]*####[ \t]*((?:[-+]?[$€£]?[ \t]*[\d.]|\\|\(?[A-J]\b)[^\n]*)", regex.MULTILINE)
_IS = r"(?:[:：=][*_]*|\b(?:is|would be|must be|should be)\b(?:\s+(?:therefore|thus|then|that|clearly))*[:,]?)"
_CLASS = r"(?:choice|option|sentiment|topic|category|label)"
_WORDS = regex.compile(
    rf"\banswer\b(?:\s*\([^()\n]{{1,40}}\))?(?:\s+to\s+(?:the|this|your)\s+\w+)?[*_\"]*\s*{_IS}"
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
_CONNECTIVE = (
    r"(?:and|so|thus|therefore|hence|overall|finally|consequently|conclusion|最终|因此|所以|よって|したがって)\b"
)
_PREAMBLE = regex.compile(
    rf"(?:{_CONNECTIVE}|\W)*+(?:(?:based on|given|from|in|among|considering|to answer)\b[^,.\n]{{0,80}},\s*)?"
    rf"(?:{_CONNECTIVE}|\W)*+(?:(?:the|my|our|la|die|der|el)\s+)?(?:(?:final|correct|right|best|overall|最终|正确)\s*)*",
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
    announced, _, last = step.rpartition("\n")
    if _COLON_END.search(announced.rstrip()) and is_final_answer(last):
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
    return next((line.strip() for line in text.split("\n") if regex.search(r"[\p{L}\p{N}]", line)), "")
