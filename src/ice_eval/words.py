"""Words, sentences and characters as people count them, in any script."""

from collections.abc import Iterator, Sequence

import numpy as np
import regex
from numpy.typing import NDArray

_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}]"
"""Scripts that are written without spaces: each character is a word."""
_LETTER = rf"(?:(?!{_UNSPACED})[\w\p{{M}}\u200c\u200d])"
_WORD = regex.compile(
    # don't · well-made · 3.14 are one word; any other mark, emoji or unspaced character is one by itself
    rf"{_LETTER}+(?:['’\-]{_LETTER}+|(?<=\d)[.,](?=\d){_LETTER}+)*|(?!\s)\X"
)
_CLUSTER = regex.compile(r"\X")
TAIL = 8
"""Number of characters that hold the last letter of a text and its accents."""
_PLAIN = rf"(?!{_UNSPACED}|[\p{{M}}\u200c\u200d])\w"
_ENDS_IN_WORD, _BEGINS_WORD = regex.compile(rf"{_PLAIN}(?:(?!{_UNSPACED})\p{{M}})*\Z"), regex.compile(_PLAIN)


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of words: non-space runs with punctuation split off, or single unspaced characters.

    Words consist of whole characters: a first accent includes the space that carries it.
    """
    found = [match.span() for match in _WORD.finditer(text)]
    if text.isascii():
        return found
    starts = [*character_starts(text).tolist(), len(text)]
    words: list[tuple[int, int]] = []
    for start, end in found:
        start = starts[start]
        while starts[end] < end:
            end += 1
        if words and start < words[-1][1]:
            start, _ = words.pop()
        words.append((start, end))
    return words


def runs_on(before: str, after: str) -> bool:
    """Return True if two adjacent texts would form one word: letters or digits of a script that has spaces."""
    return _ENDS_IN_WORD.search(before[-TAIL:]) is not None and _BEGINS_WORD.match(after) is not None


def character_starts(text: str) -> NDArray[np.int64]:
    """Return, for each code point, the start of its character: a letter with accents, an emoji with its skin tone."""
    starts = np.arange(len(text))
    if text.isascii():
        return starts  # "\r\n" is one character to Unicode, but may be split
    for match in _CLUSTER.finditer(text):
        starts[match.start() : match.end()] = match.start()
    return starts


# Sentences.

FORMULA = "\ue001"
"""Stand-in for the characters of a displayed formula, which a caller masks so that no sentence ends inside."""
_FORMULA_END = regex.compile(rf"{FORMULA}(?=\s+(?:[-*•]\s+|\d{{1,2}}[.)]\s+)?[*_\"(]*\p{{Lu}})")
"""A displayed formula that a new sentence or item follows without any mark."""
_LINE = regex.compile(r"[^\n\r\u2028\u2029]+")
_END = regex.compile(
    # The lookbehinds let a run of marks be tried once, not from each of its marks: a model may write dots to its limit.
    r"(?<![.!?])(?P<latin>[.!?]++)(?P<close>[\"'”“’)\]*_»]*)(?=\s)"
    r"|(?P<wide>[。！？｡]+)[」』”’）)]*"  # Chinese and Japanese: no space follows
    r"|(?<![।؟۔။።])(?P<other>[।؟۔။።]++)(?=\s)"  # Hindi, Arabic, Urdu, Burmese, Amharic
)
_LOOSE_END = regex.compile(
    rf"(?<={_UNSPACED})(?P<unspaced>[.!?]++)(?={_UNSPACED})"  # Chinese with the marks of another keyboard
    r"|(?<![।؟۔။።])(?P<other>[।؟۔။።][।؟۔။።.!?]*+)[\"'”’)\]»]*"  # no word holds one of these, so no space need follow
    r"|(?<=\p{Ll}\p{Ll})(?P<close>[.!?]++[\"”»]?)(?=[\"“«]?\p{Lu}[\p{Ll}'’])"  # "a good film.The cast"
    r"|(?<!\.)(?P<pause>\.{2,}+|…)[\"'”’)\]»]*(?=\s+[\"'“‘«(]?\p{Lu})"  # "I waited... Then"
    r"|(?<![.!?])(?P<before>[.!?]++[\"'”’)\]»]*)(?=\s+(?:[#@]|https?:))"
)
"""Further ends of sentences as people write them on the web."""
_RUN = regex.compile(r"[\w@:/.~%?#=&+-]++", regex.ASCII)
_LINK = regex.compile(r"://|www\.|\w@\w|\.(?:com|org|net|de|fr|html?|jpg|php)\b", regex.ASCII | regex.IGNORECASE)
"""Marks of an address."""
_CAPITAL_NEXT = regex.compile(r"[.!?]\s+[\"'“‘«(]*[\p{Lu}\p{Lt}]")
_SMALL_NEXT = regex.compile(r"(?<=\p{L}\p{L})[.!?]++[\"'”’)\]»]*(?=\s+[\"'“‘«(]*\p{Ll})")
_NEXT = regex.compile(r"\s+(?:[-*•–+«]\s+)?[*_\"'“„‘«(\[¿¡<`]*[\p{Lu}\p{Lt}\p{Lo}\p{N}\p{So}\p{Co}$€£¥₹\\✓-]")
_ONLY_MARK = regex.compile(
    r"\W*(?:(?:step|part|case|option|example|question|claim|stage|phase)\s+)?"
    r"[(\[]?(?:\d{1,3}|\p{L}|[ivx]{1,4}|[IVX]{1,4})[)\]]?[.:)]*[*_)]*",
    regex.IGNORECASE,
)
"""`2.`, `(b)`, `Step 3.`: what an item of a list begins with."""
_DOTTED = regex.compile(r"(?:\p{L}\.)+\p{L}|[Pp]h\.[Dd]")
"""`U.S`, `a.m`, `Ph.D`: the last full stop stands behind."""
_TITLES = frozenset(
    "mr mrs ms dr prof sr sra st mt fr rev gen col sgt capt hon vs cf viz approx ca e.g i.e e.g., fig eq resp".split()
)
"""Abbreviations that never end a sentence."""
_BEFORE_NUMBERS = frozenset("no nos p pp vol ch sec art par nr ex thm prop lem def tab figs eqs pg".split())
_ALSO_TITLES = frozenset("inc corp co ltd jr etc usw al dept est".split())
"""Abbreviations of documents, which end a sentence only before a capital letter."""
_GERMAN = frozenset("bzw ca evtl ggf inkl min mind mio mrd nr std str tel vgl zzgl wg".split())
_REACH = 80
"""Characters around a mark that say whether a sentence ends there."""
_SPACED_PAIRS = frozenset({
    ("z", "b"), ("d", "h"), ("u", "a"), ("o", "ä"), ("s", "o"), ("s", "u"), ("u", "u"), ("v", "a"), ("i", "d"),
    ("d", "r"), ("n", "chr"), ("v", "chr"), ("ee", "uu"),
})  # fmt: skip
"""`z. B.`, `d. h.`: letters that abbreviate together."""
_MONTHS = frozenset("jan feb mar apr jun jul aug sept sep oct nov dec".split())
_AFTER_ORDINALS = frozenset(
    "januar februar märz april mai juni juli august september oktober november dezember jahrhundert jahrhunderts "
    "weltkrieg weltkriegs jh".split()
)
"""German words after which a number with a full stop is an ordinal."""
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


def sentence_spans(text: str, *, loose: bool = False) -> list[tuple[int, int]]:
    """Return the spans of the sentences of a text, without the space around them; a line break ends a sentence.

    Every character but spaces is in exactly one of them. With `loose`, sentences also end as people write them on the
    web: without a space or a capital letter after the mark, or with dots.
    """
    spans = [
        stripped_span(text, line.start() + start, line.start() + end)
        for line in _LINE.finditer(text)
        for start, end in line_sentences(line[0], loose=loose)
    ]
    return [(start, end) for start, end in spans if start < end]


def stripped_span(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a span without the space at its ends."""
    end -= len(text[start:end]) - len(text[start:end].rstrip())
    return end - len(text[start:end].lstrip()), end


def line_sentences(line: str, *, loose: bool = False) -> Iterator[tuple[int, int]]:
    """Yield the spans of the sentences of a line; full stops of abbreviations, numbers and lists end none."""
    numbers = list(_list_numbers(line))
    inside = {position for mark in numbers for position in range(mark.start(1), mark.end())}
    found = _loose_ends(line, list(_sentence_ends(line))) if loose else _sentence_ends(line)
    ends = {end for end in found if end - 1 not in inside}
    ends |= {mark.start(1) for mark in numbers[1:]} | {match.end() for match in _FORMULA_END.finditer(line)}
    if mark := regex.match(r"\s*([-•])\s", line):  # the items of a list in one line: `- One - Two`
        items = regex.finditer(rf"\s{regex.escape(mark[1])}\s+(?=[*_]*\p{{Lu}}\p{{Ll}})", line)
        ends |= {item.start() for item in items}
    start = 0
    for end in sorted(ends | {len(line)}):
        # A list mark alone is no sentence; it opens the next one.
        if end == len(line) or not _ONLY_MARK.fullmatch(line[start:end].strip()):
            yield start, end
            start = end


def _sentence_ends(line: str) -> Iterator[int]:
    for match in _END.finditer(line):
        is_end = match["latin"] is None or (_begins_next(line, match) and not _is_inside(line, match))
        if is_end and not _in_brackets(line, match.start()):
            yield match.end()


def _loose_ends(line: str, found: Sequence[int]) -> Iterator[int]:
    """Yield the ends of sentences in a line of a document, from those that stricter rules `found`."""
    linked = np.zeros(len(line) + 1, dtype=bool)
    for run in _RUN.finditer(line):
        if _LINK.search(run[0].rstrip(".?")):
            linked[run.start() + 1 : run.end()] = True
    matches = [*_LOOSE_END.finditer(line)]
    if not _CAPITAL_NEXT.search(line):  # the writer uses no capitals
        matches += [each for each in _SMALL_NEXT.finditer(line) if "..." not in each[0]]
    more = {each.end() for each in matches if not _in_brackets(line, each.start())}
    for end in sorted({*found, *more}):
        before, after = line[max(0, end - _REACH) : end], line[end : end + _REACH]
        mark = regex.search(r"[.!?।؟۔…]+\W*\Z", before)
        if not linked[end] and not (mark and mark[0][0] == "." and _is_dotted(before[: mark.start()], after)):
            yield end


def _is_dotted(head: str, tail: str) -> bool:
    """Return whether the full stop after `head` belongs to an abbreviation, `z. B.`, or to an ordinal, `3. Mai`."""
    before, word, after = _words_around(head, tail)
    low, pairs = (
        word.casefold(),
        {(before.rstrip(".").casefold(), word.casefold()), (word.casefold(), after.casefold())},
    )
    if word.isdigit():
        return after.casefold() in _AFTER_ORDINALS
    if pairs & _SPACED_PAIRS or word == "v" or (low in _MONTHS and after[:1].isdigit()):
        return True
    if low in _GERMAN:
        return after.casefold() not in _STARTERS
    return (low in _ALSO_TITLES and after[:1].islower()) or _is_abbreviation(word, after)


def _begins_next(line: str, match: "regex.Match[str]") -> bool:
    """Return whether a sentence seems to follow; a small letter may begin it only after a long word."""
    if _NEXT.match(line, match.end()) or match[0] != ".":
        return _NEXT.match(line, match.end()) is not None
    long_word = regex.search(r"(?<![\w.])\p{Ll}{5,}\Z", line[max(0, match.start() - 60) : match.start()])
    is_long = long_word is not None and long_word[0] not in _LONG_ABBREVIATIONS
    return is_long and regex.match(r"\s+\p{Ll}{2,}", line[match.end() :]) is not None


def _is_inside(line: str, match: "regex.Match[str]") -> bool:
    """Return whether the mark belongs to a word or a pause, not to the end of a sentence."""
    if "..." in match["latin"] or (match["latin"] == "." and line[: match.start()].endswith("…")):
        return True
    if match["latin"] != "." or match["close"]:
        return False
    before, word, after = _words_around(line[: match.start()], line[match.end() :])
    # `John F. Kennedy`, but neither `option B. Then` nor `Plan A. The`
    is_initial = len(word) == 1 and all(part[:1].isupper() for part in (before, word, after))
    is_named = before.casefold() in _NAMED_BY_LETTER or after.casefold() in _STARTERS
    return _is_abbreviation(word, after) or (is_initial and not is_named)


def _is_abbreviation(word: str, after: str) -> bool:
    """Return True for `Dr.`, `No. 5`; `U.S.` and `a.m.` unless what follows begins a sentence."""
    low = word.casefold()
    if low in _TITLES or (low in _BEFORE_NUMBERS and after[:1].isdigit()):
        return True
    return bool(_DOTTED.fullmatch(word)) and after.casefold() not in _STARTERS


def _words_around(head: str, tail: str) -> tuple[str, str, str]:
    """Return the last two words of a text, of which the last keeps its full stops, and the first of what follows."""
    words = ["", *regex.findall(r"[\p{L}\p{N}][\p{L}\p{N}.'’]*", head[-60:])]
    before, word = words[-2:] if len(words) > 1 and head.endswith(words[-1]) else ("", "")
    return before, word, regex.match(r"\W*(\w*)", tail)[1]  # type: ignore[index]


def _in_brackets(line: str, position: int) -> bool:
    """Return whether a round bracket that opened before `position` closes soon after it."""
    opened = line.rfind("(", max(0, position - 300), position)
    if opened < 0 or ")" in line[opened:position]:
        return False
    closed = line.find(")", position, position + 300)
    # `(… .)` ends with its bracket, which is part of the mark itself.
    return closed > position + 1


def _list_numbers(line: str) -> "Iterator[regex.Match[str]]":
    """Yield the numbers of a list in one line, at its start or after a colon: `These are: 1. One 2. Two`."""
    mark = regex.search(r"(?:^|(?<!\b(?:is|answer|equals)):[*_]*\s)\s*((\d{1,2})[.)])\s", line)
    if mark is None or (mark.start() > 0 and mark[2] != "1"):
        return
    while mark:
        yield mark
        following = regex.compile(rf"\s(({int(mark[2]) + 1})[.)])\s+(?=[*_]*[\p{{L}}\p{{Co}}\\])")
        mark = following.search(line, mark.end() - 1)
