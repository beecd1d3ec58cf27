"""What a row of tokens spells, in every way that tokenizers write them.

Which way it is need not be known: a reading counts when it spells the text.

```text
as it is      a | gorgeous | film            words, and pieces that keep their spaces
with marks    ▁a | ▁gor | geous | <0xF0>     ▁ Ġ Ċ ## @@ </w> and the bytes of SentencePiece
byte level    Ġa | Ġgor | geous | ðŁĺ        a letter for every byte, as in GPT-2, Llama 3 and Qwen
```
"""

import itertools
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

SPECIAL = re.compile(
    r"\[(?:CLS|SEP|PAD|BOS|EOS|MASK)\]|<\|[^|<>]*\|>|<｜[^<>]*｜>|"
    r"</?s>|<(?:pad|bos|eos|cls|sep|mask|end|endoftext|start_of_turn|end_of_turn)>|\[/?INST\]"
)
"""Tokens that frame a text and belong to none."""
UNKNOWN = frozenset({"[UNK]", "<unk>", "<UNK>", "⁇", "▁⁇"})
WORD, RUN = "\U0010fffe", "\U0010ffff"
"""Stand in a stream for a token that does not say what it covers; no text holds them.

WordPiece gives up a whole word, SentencePiece a run of characters.
"""

_LONE_BYTES = "".join(map(chr, range(0xDC80, 0xDD00)))
"""How bytes are decoded that are no character."""
_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_SPACES = {"▁": " ", "Ġ": " ", "Ċ": "\n", "ĉ": "\t", "č": "\r"}


@dataclass(frozen=True)
class Stream:
    """The characters that tokens spell, and the part of them that each token has; a character may have several."""

    text: str
    parts: tuple[tuple[int, int], ...]

    def folded(self) -> "Stream":
        """The same without what tokenizers may change: case, accents, width."""
        places = self.folded_places()
        return Stream("".join(map(fold, self.text)), tuple((places[start], places[end]) for start, end in self.parts))

    def ended(self) -> "Stream":
        """The same without bytes at the end that are no whole character, where a cut went through one."""
        whole = len(self.text.rstrip(_LONE_BYTES))
        return Stream(self.text[:whole], tuple((min(start, whole), min(end, whole)) for start, end in self.parts))

    def folded_places(self) -> list[int]:
        """Where each character, and the end, is in the folded text."""
        return [0, *itertools.accumulate(len(fold(c)) for c in self.text)]


@cache
def fold(c: str) -> str:
    """A character without case, accents and width; control characters are nothing."""
    if c.isspace() or c in (WORD, RUN):
        return c
    plain = unicodedata.normalize("NFKD", c).casefold()
    kept = "".join(each for each in plain if unicodedata.category(each) not in {"Mn", "Cc", "Cf"})
    return kept.replace(" ", "")


def readings(tokens: Sequence[str]) -> Iterator[Stream]:
    """What the tokens may spell, the most literal reading first."""
    unknown = any(token in UNKNOWN for token in tokens)
    for stand_in in (None, WORD, RUN) if unknown else (None, WORD):
        for spell in (_literal, _marked, _byte_level):
            spelled = [_spelled(token, spell, stand_in) for token in tokens]
            if None not in spelled:
                yield _stream([each for each in spelled if each is not None])


def _spelled(token: str, spell: Callable[[str], bytes | None], stand_in: str | None) -> bytes | None:
    """The bytes of one token; with a stand-in for what is unknown, special tokens are left out."""
    if stand_in is not None and SPECIAL.fullmatch(token.strip("Ġ▁ ")):
        return b""
    if stand_in is not None and token in UNKNOWN:
        return stand_in.encode()
    return spell(token)


def _literal(token: str) -> bytes:
    return token.encode("utf-8", "surrogatepass")


def _marked(token: str) -> bytes:
    byte = _BYTE.fullmatch(token)
    if byte is not None:
        return bytes([int(byte.group(1), 16)])
    bare = token.removeprefix("##").removesuffix("@@").removesuffix("</w>")
    return _literal("".join(_SPACES.get(c, c) for c in bare))


def _byte_level(token: str) -> bytes | None:
    """The bytes that letters stand for; None where a letter stands for none."""
    known = _alphabet()
    return bytes(known[c] for c in token) if all(c in known for c in token) else None


@cache
def _alphabet() -> dict[str, int]:
    """The letter of every byte: itself where it can be printed, else one from 256 on."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {chr(b): b for b in shown} | {chr(256 + place): b for place, b in enumerate(hidden)}


def _stream(tokens: Sequence[bytes]) -> Stream:
    text = b"".join(tokens).decode("utf-8", "surrogateescape")
    character = [place for place, c in enumerate(text) for _ in c.encode("utf-8", "surrogateescape")]
    parts, done = [], 0
    for token in tokens:
        inside = character[done : done + len(token)]
        here = character[done] if done < len(character) else len(text)
        parts.append((inside[0], inside[-1] + 1) if inside else (here, here))
        done += len(token)
    return Stream(text, tuple(parts))
