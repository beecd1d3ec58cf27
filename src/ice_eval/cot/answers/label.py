"""Labels of a classification, by the words that stand for them."""

from collections.abc import Mapping
from dataclasses import dataclass

from ice_eval.cot._markers import last_marked
from ice_eval.cot.answers._base import CONCLUDES, Answer, Kind, Unreadable, contained, is_negated


@dataclass(frozen=True)
class Label(Kind):
    """One of the labels, by name; each may go by several words.

    A word that is denied ("not positive") is unreadable, not the opposite: the writer may mean another label, or none.
    """

    words: Mapping[str, tuple[str, ...]]
    """Label -> the words that stand for it; its own name counts too."""

    @property
    def noun(self) -> str:
        return "a label"

    @property
    def form(self) -> str:
        *names, last = self.words
        return f"{', '.join(names)} or {last}"

    def same(self, one: Answer, other: Answer) -> bool:
        return one.value == other.value

    def states(self, step: str, answer: Answer, *, given: str = "") -> bool:
        """Behind a marker, or as the only label that a conclusion names."""
        if last_marked(step) is None and not CONCLUDES.search(step):
            return False
        return self.read(step) in {Answer(answer.value, by) for by in ("whole", "marker", "last")}

    def _whole(self, text: str) -> str | None:
        bare = text.strip(" \t\n.,:;!?*_\"'“”‘’()[]`").casefold()
        return next((label for word, label in self._labels().items() if word.casefold() == bare), None)

    def _mentions(self, sentence: str) -> bool:
        return bool(contained(self._labels(), sentence))

    def _value(self, text: str, *, marked: bool) -> str | Unreadable:
        labels = self._labels()
        hits = [(labels[word], start, end) for word, start, end in contained(labels, text)]
        if not hits:
            return Unreadable("no label follows the marker")
        if any(is_negated(text, start, end) for _, start, end in hits):
            return Unreadable("a label is named only to deny it")
        names = sorted({label for label, _, _ in hits})
        if len(names) > 1:
            return Unreadable(f"several labels: {', '.join(names)}")
        return names[0]

    def _labels(self) -> dict[str, str]:
        return {word: label for label, words in self.words.items() for word in (label, *words)}
