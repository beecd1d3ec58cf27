"""Words and characters as people count them, in any script."""

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
