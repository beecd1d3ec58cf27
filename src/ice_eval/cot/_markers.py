r"""Explicit markers of a final answer, and what they mark.

\boxed{42}     #### 42     <answer>42</answer>     Answer: 42     So the correct choice is (B)     答案是 42
"""

import regex

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
_OPENING = regex.compile(
    r"\W*(?:(?:based on|given|from|in)\b[^,.\n]{0,80},\s*)?"
    r"(?:(?:and|so|thus|therefore|hence|overall|finally|consequently|conclusion|最终|因此|所以|よって|したがって)\b|\W)*"
    r"(?:(?:the|my|our|la|die|der|el)\s+)?(?:(?:final|correct|right|best|overall|最终|正确)\s*)*",
    regex.IGNORECASE,
)
"""What may stand before the marker in a sentence that does nothing but state the answer."""


def last_marked(text: str) -> str | None:
    """What the last marker of a text marks; None: there is no marker.

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
    r"""Whether a step does nothing but state the final answer: it opens with a marker, or holds `\boxed{…}`."""
    if ends_chain(step) or _BOXED.search(step) or _TAGGED.search(step):
        return True
    return any(_OPENING.fullmatch(step[: match.start()]) for match in _WORDS.finditer(step))


def ends_chain(step: str) -> bool:
    """Whether a step is the line `#### 42`, after which no reasoning is expected (and `#### Step 2` is a heading)."""
    return bool(_HASHES.match(step)) and len(step) <= 60


def _braced(text: str, start: int) -> str:
    """What stands before the brace that closes the one before `start`; a brace that nothing closes holds its line."""
    depth = 1
    line = regex.compile(r"[^\n]{0,1000}").match(text, start)
    for match in regex.finditer(r"\\.|[{}]", line[0] if line else ""):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0:
            return text[start : start + match.start()].strip()
    return line[0].strip() if line else ""


def _rest(text: str) -> str:
    """The first line that holds more than ornament."""
    for line in text.split("\n"):
        if regex.search(r"[\p{L}\p{N}]", line):
            return line.strip()
    return ""
