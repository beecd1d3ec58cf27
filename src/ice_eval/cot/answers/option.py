"""Options of a multiple-choice question, by letter or by text."""

import string
from dataclasses import dataclass

import regex

from ice_eval.cot._markers import last_marked
from ice_eval.cot.answers._base import CONCLUDES, Answer, Kind, Unreadable, contained, is_negated

_DENIED = "an option is named only to deny it"
_MOST = 0.75


@dataclass(frozen=True)
class Option(Kind):
    """One of the options, as its letter: A for the first."""

    options: tuple[str, ...]

    @property
    def noun(self) -> str:
        return "an option"

    @property
    def letters(self) -> str:
        return string.ascii_uppercase[: len(self.options)]

    @property
    def form(self) -> str:
        return "the letter of the right option"

    def same(self, one: Answer, other: Answer) -> bool:
        return one.value == other.value

    def states(self, step: str, answer: Answer, *, given: str = "") -> bool:
        """Behind a marker, or as the only option that a conclusion names; those that are only weighed do not count."""
        if last_marked(step) is None and not CONCLUDES.search(step):
            return False
        reading = self.read(step)
        if isinstance(reading, Answer):
            return reading.value == answer.value
        if reading.reason == _DENIED:
            return False
        # The option in the words of the sentence: most of its words, and more than of any other.
        words = set(_folded(step).split())
        shares = [len(words & set(option)) / len(option) for option in map(str.split, map(_folded, self.options))]
        own = shares.pop(self.letters.index(answer.value))
        return own >= _MOST and own > max(shares)

    def _whole(self, text: str) -> str | None:
        letter = regex.fullmatch(rf"\W*([{self.letters}])\W*", text, regex.IGNORECASE)
        if letter:
            return letter[1].upper()
        named = regex.match(rf"\W*(?:option\s+)?([{self.letters}])\s*[).:\]]", text)
        rest = _folded(text[named.end() :]) if named else ""
        texts = [letter for letter, option in self._texts() if _folded(option) in (_folded(text), rest)]
        if named and (not rest or texts == [named[1]]):
            return named[1]
        return texts[0] if len(texts) == 1 and not named else None

    def _mentions(self, sentence: str) -> bool:
        return bool(self._letters_in(sentence, bare=False) or self._texts_in(sentence))

    def _value(self, text: str, *, marked: bool) -> str | Unreadable:
        whole = self._whole(text)
        if whole is not None:
            return whole
        letters, texts = self._letters_in(text, bare=marked), self._texts_in(text)
        if marked and letters:  # `B, since A is too small`: the first one is what the marker marks
            letters = letters[:1]
            texts = [hit for hit in texts if regex.fullmatch(r"(?i)\W*(?:an?|the)?\W*", text[letters[0][2] : hit[1]])]
        hits = letters + texts
        if not hits:
            return Unreadable("no option follows the marker")
        if any(is_negated(text, start, end) for _, start, end in hits):
            return Unreadable(_DENIED)
        names = sorted({letter for letter, _, _ in hits})
        if len(names) > 1:
            return Unreadable(f"several options: {', '.join(names)}")
        return names[0]

    def _texts(self) -> list[tuple[str, str]]:
        return list(zip(self.letters, self.options, strict=True))

    def _letters_in(self, text: str, *, bare: bool) -> list[tuple[str, int, int]]:
        """Letters that stand for options: `(B)`, `option B`; bare ones only behind a marker, never the article `A`."""
        forms = (
            rf"\(([{self.letters.lower()}{self.letters}])\)|(?i:\b(?:option|choice|answer)s?)\s+\"?([{self.letters}])\b"
        )
        if bare:
            forms += rf"|(?<!\w)([{self.letters}])(?!\w|['’]\w)(?!\s+\p{{Ll}}(?<=A\s+\p{{Ll}}))"
        found = regex.finditer(forms, text)
        return [((m[1] or m[2] or (m[3] if bare else "")).upper(), m.start(), m.end()) for m in found]

    def _texts_in(self, text: str) -> list[tuple[str, int, int]]:
        letter_of = {_bare(option): letter for letter, option in self._texts()}
        return [(letter_of[needle], start, end) for needle, start, end in contained(letter_of, text)]


def _folded(text: str) -> str:
    """Letters and digits only, without a leading article: what makes two options the same."""
    words = regex.findall(r"[\p{L}\p{N}]+", text.casefold())
    return " ".join(words[1:] if words[:1] and words[0] in {"a", "an", "the"} and len(words) > 1 else words)


def _bare(option: str) -> str:
    """An option as it would stand inside a sentence."""
    return regex.sub(r"^(?:an?|the)\s+", "", option.strip().rstrip(".!?"), flags=regex.IGNORECASE)
