"""Final answers: read from what a model wrote, compared, or found unreadable; and the steps that state them."""

import string
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import regex

from ice_eval.choices import AnswerStep
from ice_eval.subjects.chain.steps import Chain, Step, last_marked, sentences


@dataclass(frozen=True)
class FinalAnswer:
    """An answer that was read."""

    value: str
    """In the form of its kind: `3/4`, `-1234.50`, `25%`, `B`, `positive`."""
    by: Literal["whole", "marker", "last"]
    """How: the text is nothing else, an explicit marker stands before it, or it is what the text says last."""


@dataclass(frozen=True)
class Unreadable:
    """No answer could be read: neither right nor wrong, and counted apart."""

    reason: str


AnswerReading = FinalAnswer | Unreadable

_GIVES_UP = regex.compile(
    r"\b(?:cannot|can't|can not|could not|couldn't|unable to)\s+(?:be\s+)?(?:\w+\s+)?"
    r"(?:determine|tell|answer|say|know|solve|calculate|find|decide)"
    r"|not enough information|insufficient information|impossible to (?:say|tell|determine|know)"
    r"|\bI(?: do not|'m not| don't| am not) (?:know|sure)\b",
    regex.IGNORECASE,
)
_TAKES_BACK = regex.compile(
    r"(?:^|[.!?…])\W{0,4}+(?:(?:but|hmm|oh|no|ah)\b\W{0,4}){0,3}(?:wait|actually|hold on|correction|sorry"
    r"|on second thought|let me re\w+|I made an? (?:mistake|error))\b|\b(?:no,? wait|scratch that|I mean)\b",
    regex.IGNORECASE | regex.MULTILINE,
)
_MARKS = r"(?:[{>#:：=是为は]|\b(?:is|be|es|est|ist|è|lautet|that|then|thus|therefore|clearly|answer))[\s*_,:]*"
"""End of the text before a marked answer."""
LINKS = (
    r"(?:\b(?:or|and|but|nor|und|oder|ou|et|y|o|e|versus|vs)\b|\b(?:to|through|bis)\b(?=\W*\Z)|[&/、~〜或和到至与]"
    r"|または|と|か(?!ら)|から)"
)
"""Links that make two values a list or a range."""
_TWO_BOXES = regex.compile(rf"\\boxed\{{[^{{}}]{{0,99}}\}}[\s$]{{0,3}}(?:,|{LINKS})[\s$]{{0,3}}(?:\w\s?=\s?)?\\boxed")


class AnswerKind(ABC):
    """One kind of answer: how it is read, and when two are the same."""

    noun: ClassVar[str]
    """Its name in messages, with an article."""

    def read(self, text: str) -> AnswerReading:
        """Return the final answer of a text.

        The last explicit marker decides, even if what follows it cannot be read. Without one it is the whole text, if
        that is nothing but an answer, else the last sentence that holds one, unless the text gives up after it.
        """
        marked = last_marked(text)
        if marked is not None:
            if _GIVES_UP.search(marked):
                return Unreadable(_NO_ANSWER)
            if _TWO_BOXES.search(text):
                return Unreadable("several answers are marked alike")
            value = self._value(marked, marked=True)
            if self._is_taken_back(value, text, marked):
                return Unreadable("the text takes its answer back, and no marker follows")
            return value if isinstance(value, Unreadable) else FinalAnswer(value, "marker")
        if not text.strip():
            return Unreadable("the text is empty")
        whole = self._whole(text.strip())
        if whole is not None:
            return FinalAnswer(whole, "whole")
        for sentence in reversed(sentences(text)):
            if _GIVES_UP.search(sentence):
                return Unreadable(_NO_ANSWER)
            if self._mentions(sentence):
                value = self._value(sentence, marked=False)
                return value if isinstance(value, Unreadable) else FinalAnswer(value, "last")
        return Unreadable(f"the text does not hold {self.noun}")

    def gold(self, value: str) -> FinalAnswer | None:
        """Return the answer that a field of a file gives, or None where it holds none."""
        whole = self._whole(value.strip())
        return None if whole is None else FinalAnswer(whole, "whole")

    @property
    def choices(self) -> tuple[str, ...]:
        """All values that an answer may have; empty where there is no end of them."""
        return ()

    @property
    @abstractmethod
    def form(self) -> str:
        """The form in which a model is asked to write it, behind `Answer:`."""

    def same(self, one: FinalAnswer, other: FinalAnswer) -> bool:
        """Return whether two answers mean the same."""
        return one.value == other.value

    @abstractmethod
    def states(self, step: str, answer: FinalAnswer, *, given: str = "") -> bool:
        """Return whether a step gives the answer away: whoever reads it need not think any more.

        What the question holds already (`given`) gives nothing away.
        """

    def _is_taken_back(self, value: str | Unreadable, text: str, marked: str) -> bool:
        """Return whether what follows a "wait" finds an answer wrong, or names another: `12. Wait, that is wrong`."""
        places = [match.start() for match in regex.finditer(_MARKS + regex.escape(marked[:60]), text)]
        wait = _TAKES_BACK.search(text, places[-1] if places else max(0, text.rfind(marked)))
        later = text[wait.end() :] if wait else ""
        again = self._value(later, marked=True)
        if again != value and not (isinstance(again, Unreadable) and again.reason.startswith("no ")):
            return True
        return regex.search(r"\b(?:wrong|mistake|incorrect|error)\b", later) is not None

    @abstractmethod
    def _whole(self, text: str) -> str | None:
        """Return the value of a text that is nothing but an answer."""

    @abstractmethod
    def _mentions(self, sentence: str) -> bool:
        """Return whether a sentence holds anything of the kind."""

    @abstractmethod
    def _value(self, text: str, *, marked: bool) -> str | Unreadable:
        """Return the value in a text behind a marker, or in a sentence."""


_NO_ANSWER = "the text says that there is no answer to be had"
_NEGATION = regex.compile(
    r"(?:\b(?:not|no|never|neither|nor|hardly|cannot|without|incorrect|wrong|rather than|instead of|less|un|non"
    r"|if|whether|except|(?:anything|everything|all) but|other than|doubt)"
    r"|n't|n’t)[\s-]*(?:\w+\s+){0,3}[(\[\"'“*]*\Z",
    regex.IGNORECASE,
)
_DENIED_AFTER = regex.compile(
    r"[)\]\"'”*.:]*\s*(?:\w+\s+)?(?:is|are|was|would be|can be|does|do|seems?)\s*"
    r"(?:not\b|n't|n’t|incorrect|wrong|false|ruled)",
    regex.IGNORECASE,
)


Hit = tuple[str, int, int]
"""A value that a text names, and where."""
_NO_NOUN = regex.compile(r"(?<!\ba\s)no\s+(?!because|since|as\b|or\b|and\b)\p{L}", regex.IGNORECASE)
_DENIED = " is named only to deny it"
_NEAR = 200
"""Characters before some words in which they may be denied: a long text is not searched again for each of its words."""


_CONCLUDES = regex.compile(
    r"\b(?:therefore|thus|hence|so|answer(?! choices| options)|correct|conclu\w+|overall|best|most|must be|in summary|"
    r"consequently|based on|"
    r"given|analysis|choose|select\w*|sentiment|label|topic|category|categor\w+|classif\w+|belongs?)\b",
    regex.IGNORECASE,
)
"""Words that a sentence with a conclusion holds: options and labels are also named where they are only weighed."""


def _contained(needles: Iterable[str], text: str) -> list[Hit]:
    """Return the places of the needles in a text, as whole words, none inside a longer one; case does not matter."""
    found: list[Hit] = []
    for needle in filter(None, needles):
        before = after = ""
        if not regex.match(r"[\p{Han}\p{Hiragana}\p{Katakana}]", needle):  # these are written without spaces
            before = r"(?<![\w−-]|\d[.,])" if needle[:1].isdigit() else r"(?<!\w)"  # no `5` in `-5`, `1.5` or `5%`
            after = r"(?!\w|[.,/]\d|\s?%)" if needle[-1:].isdigit() else r"(?!\w)"
        matches = regex.finditer(before + regex.escape(needle) + after, text, regex.IGNORECASE)
        found += [(needle, *match.span()) for match in matches]
    found.sort(key=lambda hit: (hit[1], -hit[2]))
    outer: list[Hit] = []
    for hit in found:
        if not outer or hit[2] > outer[-1][2] or hit[1:] == outer[-1][1:]:
            outer.append(hit)
    return outer


def _leading(hits: list[Hit], text: str) -> list[Hit]:
    """Return the value that a marker marks, without others that are only spoken of: `B, since A is too heavy`.

    It is the first one if something ends or explains it and no list or range goes on, else all of them.
    """
    other = next((hit for hit in hits if hit[0] != hits[0][0]), None)
    if other is None or regex.search(r"\w", regex.sub(_HEDGE, "", text[: hits[0][1]])):
        return hits
    own = [hit for hit in hits if hit[0] == hits[0][0]]
    gap = text[max(hit[2] for hit in own if hit[1] < other[1]) : other[1]]
    dot = "." if regex.search(r"\w", text[other[2] :]) else ""  # `B. C` names two, `B. C is too heavy` one
    goes_on = regex.fullmatch(rf"(?:[^\w{dot}]|{LINKS}|{_HEDGE})*+", gap)
    return own if _ENDS.match(gap) and not goes_on else hits


def _only_one(hits: list[Hit], text: str, kind: AnswerKind) -> str | Unreadable:
    """Return the one value that a text names, unless it names none or several, or denies it."""
    noun = kind.noun.split()[-1]
    if not hits:
        return Unreadable(f"no {noun} follows the marker")
    for _, start, end in hits:  # "not positive", "B is wrong"
        if _NEGATION.search(text[max(0, start - _NEAR) : start]) or _DENIED_AFTER.match(text, end):
            return Unreadable(f"{kind.noun}{_DENIED}")
    values = sorted({value for value, _, _ in hits})
    return values[0] if len(values) == 1 else Unreadable(f"several {noun}s: {', '.join(values)}")


_MOST, _HALF, _ASKED = 0.75, 0.5, 0.6
"""Share of an option's words that name it, also in a plain conclusion, and of a question's words that take it up."""
_THEREFORE = regex.compile(r"\W*(?:therefore|thus|hence|so|(?:in )?conclusion|in summary)\b", regex.IGNORECASE)
_APPROVES = regex.compile(
    r"(?<!\b(?:why|whether|if|how|that)\s)\b(?:this|that|it)\s+(?:(?:option|choice|answer|statement|one)\s+)?"
    r"(?:is|seems|must be)\s+(?:\w+ly\s+|indeed\s+)?(?:"
    r"(?:the\s+)?(?:correct|right)(?:\s+(?:answer|option|choice|one)|(?=\W*(?:$|[.!,;]|because|since|as)))"
    r"|the\s+(?:most|best|only)\s+(?:\w+\s+)?(?:answer|option|choice|outcome|explanation|candidate|match|fit)\b)"
    r"|\b(?:this|that|which)\s+(?:(?:option|choice|answer)\s+)?(?:\w+ly\s+)?"
    r"(?:matches|fits|aligns with|corresponds to)\b"
    r"|(?:^|[:.✓✔✅–—-]\s*)[*_(]*correct[*_)]*[.!]*\W*$",
    regex.IGNORECASE,
)
"""Words that approve of the option that a chain is just weighing."""
_SETTLES = regex.compile(
    r"\W*(?i:so|thus|therefore|hence|conclusion|finally|"
    r"(?:i|we)(?:['’]d|['’]ll| would| will)?\s+(?:choose|pick|select|go with))\b"
    r"[\s:,]*(?i:it(?:['’]s| is| must be)\s+)?(?i:option\s+|choice\s+)?\W*([A-J])\W*"
)
_DENIES = regex.compile(
    r"\b(?:not|no|never|neither|nor|cannot|incorrect|wrong|without|can|could|may|might|also)\b|n['’]t\b",
    regex.IGNORECASE,
)
_FUNCTION_WORDS = frozenset(
    "a an the to of in on at and or it its is are was were be been being by for with from that this these those they "
    "their them there will would can could do does did has have had as what which who whom when where why how "
    "following into than then so if most best".split()
)
_HEDGE = (
    r"(?i:\b(?:I think|I believe|probably|possibly|maybe|perhaps|likely|most|mostly|clearly|either|both|even|also|an?"
    r"|the|option|choice|answer|it is|it's|therefore|thus)\b)"
)
_ENDS = regex.compile(
    r"[*_\"”')\]]*\s*(?:[,.;:!(，。；：（—–-]|because|since|as\b|for\b|rather|instead|not\b|over\b|given)",
    regex.IGNORECASE,
)
"""Text after an answer that is complete."""

_ARTICLE = r"(?!\s+(?!(?:and|or|is|because|since|as|und|oder|et|ou|y|o)\b)\p{Ll}(?<=[AI]\s+\p{Ll}))"


@dataclass(frozen=True)
class OptionAnswer(AnswerKind):
    """One of the options of a multiple-choice question, by letter or by text; its value is its letter."""

    noun = "an option"
    form = "the letter of the right option"
    options: tuple[str, ...]

    @property
    def letters(self) -> str:
        return string.ascii_uppercase[: len(self.options)]

    @property
    def choices(self) -> tuple[str, ...]:
        return tuple(self.letters)

    def states(self, step: str, answer: FinalAnswer, *, given: str = "") -> bool:
        """Return whether a step approves what it weighs, concludes on this option alone, or answers the question by it.

        Weighing an option is not stating it.
        """
        named = {letter for letter, _, _ in self._letters_in(step, bare=False)}
        if _APPROVES.search(step) and (not named or answer.value in named):
            return True
        if settled := _SETTLES.fullmatch(step):
            return settled[1] == answer.value
        without = step  # the words of an option's text conclude nothing
        for _, start, end in reversed(self._texts_in(step)):
            without = without[:start] + without[end:]
        if last_marked(step) is None and not _CONCLUDES.search(without):
            # Does a sentence put all of the option into the question's words, and neither deny nor hedge?
            asked = _stems((sentences(given) or [""])[-1])
            taken_up = [each for each in sentences(step) if len(asked & _stems(each)) >= _ASKED * max(1, len(asked))]
            return any(self._share(each, answer) == 1 and not _DENIES.search(each) for each in taken_up)
        reading = self.read(step)
        if isinstance(reading, FinalAnswer):
            return reading.value == answer.value
        if _THEREFORE.match(step) and not _DENIES.search(step):
            return self._share(step, answer) >= _HALF
        return not reading.reason.endswith(_DENIED) and self._share(step, answer) >= _MOST

    def _share(self, step: str, answer: FinalAnswer) -> float:
        """Return the share of the option's words in a step; 0 if it holds as much of another option."""
        whole = [letter for letter, option in self._texts() if f" {_folded(option)} " in f" {_folded(step)} "]
        if whole == [answer.value]:
            return 1
        words = _stems(step)
        shares = [len(words & option) / max(1, len(option)) for option in map(_stems, self.options)]
        own = shares.pop(self.letters.index(answer.value))
        return own if own > max(shares) else 0

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
        inside = {place for _, start, end in texts for place in range(start + 1, end)}
        letters = [hit for hit in letters if hit[1] not in inside]  # vitamin C
        hits = sorted(letters + texts, key=lambda hit: hit[1])
        return _only_one(_leading(hits, text) if marked and hits else hits, text, self)

    def _texts(self) -> list[tuple[str, str]]:
        return list(zip(self.letters, self.options, strict=True))

    def _letters_in(self, text: str, *, bare: bool) -> list[Hit]:
        """Return letters of options: `(B)`, `option B`; bare ones only behind a marker, never the article `A`."""
        letter = rf"(?P<letter>[{self.letters}])"
        link = rf"\)?\s*(?:[,/&]|{LINKS})\s*(?:(?:maybe|possibly|perhaps)\s+)?\(?"
        forms = (
            rf"\((?i:{letter})\)|(?i:\b(?:option|choice|answer)s?)\s+\"?{letter}\b"
            rf"|(?<!\w){letter}(?={link}[{self.letters}](?!\w))|{link}{letter}(?=\W*\Z)"  # `B or C`
        )
        if bare:
            forms += rf"|(?<!\p{{Latin}}|\d){letter}(?!\p{{Latin}}|\d|['’]\w){_ARTICLE}"
        return [(match["letter"].upper(), *match.span("letter")) for match in regex.finditer(forms, text)]

    def _texts_in(self, text: str) -> list[Hit]:
        """Return the places of options, as they would be written inside a sentence."""
        article = regex.compile(r"^(?:an?|the)\s+", regex.IGNORECASE)
        letter_of = {article.sub("", option.strip().rstrip(".!?")): letter for letter, option in self._texts()}
        return [(letter_of[needle], start, end) for needle, start, end in _contained(letter_of, text)]


def _folded(text: str) -> str:
    """Return letters and digits only, without a leading article: what makes two options the same."""
    words = regex.findall(r"(?<!\w)-(?=\d)|[\p{L}\p{N}]+", text.casefold().replace("−", "-"))
    return " ".join(words[1:] if words[:1] and words[0] in {"a", "an", "the"} and len(words) > 1 else words)


def _stems(text: str) -> set[str]:
    """Return the words of a text without endings (`drives` and `driving` are one); function words only if alone."""
    words = _folded(text).split()
    plain = [word for word in words if word not in _FUNCTION_WORDS] or words
    return {regex.sub(r"(?<=\p{L}{3})(?:ing|ed|es|e|s|ly|y)$", "", word) for word in plain}


@dataclass(frozen=True)
class LabelAnswer(AnswerKind):
    """One of the labels of a classification, by name; each may go by several words.

    A word that is denied ("not positive") is unreadable, not the opposite: the writer may mean another label, or none.
    """

    noun = "a label"
    words: Mapping[str, tuple[str, ...]]
    """Label -> the words that stand for it; its own name counts too."""

    @property
    def choices(self) -> tuple[str, ...]:
        return tuple(self.words)

    @property
    def form(self) -> str:
        *names, last = self.words
        return f"{', '.join(names)} or {last}"

    def states(self, step: str, answer: FinalAnswer, *, given: str = "") -> bool:
        """Return whether it is behind a marker, or the only label that a conclusion names."""
        if last_marked(step) is None and not _CONCLUDES.search(step):
            return False
        return self.read(step) in {FinalAnswer(answer.value, by) for by in ("whole", "marker", "last")}

    def _whole(self, text: str) -> str | None:
        bare = text.strip(" \t\n.,:;!?*_\"'“”‘’()[]`").casefold()
        return next((label for word, label in self._labels().items() if word.casefold() == bare), None)

    def _mentions(self, sentence: str) -> bool:
        return bool(self._hits(sentence))

    def _value(self, text: str, *, marked: bool) -> str | Unreadable:
        hits = self._hits(text)
        return _only_one(_leading(hits, text) if marked and hits else hits, text, self)

    def _hits(self, text: str) -> list[Hit]:
        """Return the places of labels; `no` before a noun is none."""
        labels = self._labels()
        found = [(labels[word], start, end) for word, start, end in _contained(labels, text)]
        return [hit for hit in found if not _NO_NOUN.match(text, hit[1])]

    def _labels(self) -> dict[str, str]:
        return {word: label for label, words in self.words.items() for word in (label, *words)}


def reasoning_steps(
    chain: Chain, answer: AnswerReading, kind: AnswerKind, *, policy: AnswerStep = "drop", question: str = ""
) -> tuple[Step, ...]:
    """Return the steps that are evaluated: all (`keep`), or those that do not state the answer (`drop`).

    Whoever is shown "so 560 + 280 = 840" can answer 840 without any of the other steps: the measure would say where the
    answer was written, not whether the reasoning carried it. The price of `drop` is that a last step which both reasons
    and concludes is lost with its reasoning, and that chains get shorter. An unreadable answer is stated nowhere, so
    all steps stay. Numbers that the question holds count only as results.
    """
    if policy == "keep" or not isinstance(answer, FinalAnswer):
        return chain.steps
    return tuple(step for step in chain.steps if not kind.states(step.text, answer, given=question))
