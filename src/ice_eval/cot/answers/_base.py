"""What every kind of answer shares: an answer that was read, one that was not, and where texts are searched first."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import regex

from ice_eval.cot._markers import last_marked
from ice_eval.cot.steps import sentences


@dataclass(frozen=True)
class Answer:
    """An answer that was read."""

    value: str
    """In the form of its kind: `3/4`, `-1234.50`, `25%`, `B`, `positive`."""
    by: Literal["whole", "marker", "last"]
    """How: the text is nothing else, an explicit marker stands before it, or it is what the text says last."""


@dataclass(frozen=True)
class Unreadable:
    """No answer could be read: neither right nor wrong, and counted apart."""

    reason: str


Reading = Answer | Unreadable

_GIVES_UP = regex.compile(
    r"\b(?:cannot|can't|can not|could not|couldn't|unable to)\s+(?:be\s+)?(?:\w+\s+)?"
    r"(?:determine|tell|answer|say|know|solve|calculate|find|decide)"
    r"|not enough information|insufficient information|impossible to (?:say|tell|determine|know)"
    r"|\bI(?: do not|'m not| don't| am not) (?:know|sure)\b",
    regex.IGNORECASE,
)


class Kind(ABC):
    """One kind of answer: how it is read, and when two are the same."""

    def read(self, text: str) -> Reading:
        """The final answer of a text.

        The last explicit marker decides, even if what follows it cannot be read. Without one it is the whole text, if
        that is nothing but an answer, else the last sentence that holds one, unless the text gives up after it.
        """
        marked = last_marked(text)
        if marked is not None:
            return self._as_reading(self._value(marked, marked=True), "marker")
        if not text.strip():
            return Unreadable("the text is empty")
        whole = self._whole(text.strip())
        if whole is not None:
            return Answer(whole, "whole")
        for sentence in reversed(sentences(text)):
            if _GIVES_UP.search(sentence):
                return Unreadable("the text says that there is no answer to be had")
            if self._mentions(sentence):
                return self._as_reading(self._value(sentence, marked=False), "last")
        return Unreadable(f"the text does not hold {self.noun}")

    def gold(self, value: str) -> Answer | None:
        """The answer that a field of a file gives, or None where it holds none."""
        whole = self._whole(value.strip())
        return None if whole is None else Answer(whole, "whole")

    @property
    @abstractmethod
    def noun(self) -> str:
        """What a message calls it, with its article."""

    @property
    @abstractmethod
    def form(self) -> str:
        """How a model is to write it on its last line, behind `Answer:`."""

    @abstractmethod
    def same(self, one: Answer, other: Answer) -> bool:
        """Whether two answers mean the same."""

    @abstractmethod
    def states(self, step: str, answer: Answer, *, given: str = "") -> bool:
        """Whether a step gives the answer away: whoever reads it need not think any more.

        Args:
            step: The text of the step.
            answer: The final answer of the chain.
            given: The question; what it holds already gives nothing away.
        """

    @abstractmethod
    def _whole(self, text: str) -> str | None:
        """The value of a text that is nothing but an answer."""

    @abstractmethod
    def _mentions(self, sentence: str) -> bool:
        """Whether a sentence holds anything of the kind."""

    @abstractmethod
    def _value(self, text: str, *, marked: bool) -> "str | Unreadable":
        """The value in a text behind a marker, or in a sentence."""

    @staticmethod
    def _as_reading(value: "str | Unreadable", by: Literal["marker", "last"]) -> Reading:
        return value if isinstance(value, Unreadable) else Answer(value, by)


_NEGATION = regex.compile(
    r"(?:\b(?:not|no|never|neither|nor|hardly|cannot|without|incorrect|wrong|rather than|instead of|less|un|non)"
    r"|n't|n’t)[\s-]*(?:\w+\s+){0,3}[(\[\"'“*]*\Z",
    regex.IGNORECASE,
)
_DENIED_AFTER = regex.compile(
    r"[)\]\"'”*.:]*\s*(?:\w+\s+)?(?:is|are|was|would be|can be|does|do|seems?)\s*"
    r"(?:not\b|n't|n’t|incorrect|wrong|false|ruled)",
    regex.IGNORECASE,
)


_NEAR = 200
"""Characters before some words in which they may be denied: a long text is not searched again for each of its words."""


def is_negated(text: str, start: int, end: int) -> bool:
    """Whether the words at `text[start:end]` are denied: "not positive", "B is wrong"."""
    return bool(_NEGATION.search(text[max(0, start - _NEAR) : start]) or _DENIED_AFTER.match(text, end))


CONCLUDES = regex.compile(
    r"\b(?:therefore|thus|hence|so|answer|correct|conclu\w+|overall|best|most|must be|in summary|consequently|based on|"
    r"given|analysis|choose|select\w*|sentiment|label|topic|category|categor\w+|classif\w+|belongs?)\b",
    regex.IGNORECASE,
)
"""Words that a sentence with a conclusion holds: options and labels are also named where they are only weighed."""


def contained(needles: Iterable[str], text: str) -> list[tuple[str, int, int]]:
    """Where the needles stand in a text as whole words, none inside a longer one; case does not matter."""
    found = [
        (needle, match.start(), match.end())
        for needle in needles
        if needle
        for match in regex.finditer(rf"(?<!\w){regex.escape(needle)}(?!\w)", text, regex.IGNORECASE)
    ]
    found.sort(key=lambda hit: (hit[1], -hit[2]))
    outer: list[tuple[str, int, int]] = []
    for hit in found:
        if not outer or hit[2] > outer[-1][2] or hit[1:] == outer[-1][1:]:
            outer.append(hit)
    return outer
