"""Texts in place of the steps that are not kept: steps of other problems, dots, planted errors, and other words."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import TYPE_CHECKING

import numpy as np
import regex

from ice_eval.errors import DataError
from ice_eval.operators import DrawnFills
from ice_eval.records import Encoded
from ice_eval.seeding import rng_for
from ice_eval.servers import Response
from ice_eval.subjects.chain.problems import Case
from ice_eval.subjects.chain.steps import visible

if TYPE_CHECKING:
    from ice_eval.subjects.chain.subject import ChainSubject

PARAPHRASE = """Say the following sentence in other words. Keep its meaning, and keep every number as it is. Write the
new sentence and nothing else.

{step}"""
_NUMBER = regex.compile(r"\d+(?:[.,]\d+)*")
_LIST_MARK = regex.compile(r"\s*(?:[-*•]\s+|(?:step\s+)?\(?\d{1,3}[.):]+\s+)", regex.IGNORECASE)
"""Beginning of a list item: its number is no part of its text."""


@dataclass(frozen=True)
class StepPool:
    """The texts that replace the steps of chains: one per step and operator, the same in all rows."""

    subject: "ChainSubject"
    seed: int
    knows_labels = True

    def can_fill(self, item: Encoded) -> bool:
        return True

    def draw(self, item: Encoded, rng: np.random.Generator, *, operator: str = "replace") -> DrawnFills:
        """Return the text in place of each step; nothing is drawn anew."""
        texts = self.texts(operator, item.example_id)
        return DrawnFills(np.array([*map(self.subject.codec.id_of, texts)], dtype=np.int64), texts)

    def texts(self, operator: str, example_id: str) -> tuple[str, ...]:
        """Return the text in place of each step of a chain; none for one that is skipped."""
        known, operator = self.subject.fills, operator.partition("@")[0]
        if operator in known:
            return known[operator].get(example_id, ())
        cases, seed, words = self.subject.evaluated, self.seed, self.subject.paraphrases
        write: Mapping[str, Callable[[Case, int], str]] = {
            "filler": lambda case, step: filler(case.texts[step]),
            "mistake": lambda case, step: mistake(case, step, rng_for(seed, case.id, "mistakes", str(step))),
            "paraphrase": lambda case, step: words.get(case.texts[step], case.texts[step]),
        }
        known[operator] = (
            steps_of_others(cases, seed=seed)
            if operator == "replace"
            else {case.id: tuple(write[operator](case, step) for step in range(len(case.steps))) for case in cases}
        )
        return known[operator].get(example_id, ())


def steps_of_others(cases: Sequence[Case], *, seed: int) -> Mapping[str, tuple[str, ...]]:
    """Return for every case a step of another problem in place of each of its own, the same in every row.

    Steps that state this problem's answer, by chance, are not taken.
    """
    pool = [(case.id, text) for case in cases for text in case.texts]
    texts: dict[str, tuple[str, ...]] = {}
    for case in cases:
        own, order = set(case.texts), rng_for(seed, case.id, "step-fills").permutation(len(pool))
        others = (text for owner, text in map(pool.__getitem__, order) if owner != case.id and text not in own)
        found = list(islice((text for text in others if not _gives_away(case, text)), len(case.steps)))
        if not found:
            raise DataError(
                f"the operator 'replace' needs steps of other problems, and there is none for '{case.id}'; evaluate "
                "more problems, or leave it out, in another folder."
            )
        texts[case.id] = tuple(islice(cycle(found), len(case.steps)))  # few problems: some serve twice
    return texts


def _gives_away(case: Case, text: str) -> bool:
    return case.problem.kind.states(text, case.own, given=case.problem.question)


def filler(step: str) -> str:
    """Return three dots for every word of a step."""
    return " ".join(["..."] * len(step.split()))


def mistake(case: Case, step: int, rng: np.random.Generator) -> str:
    """Return a step with a planted error: its last number begins with another digit, or the step is denied.

    A number that would state the answer of the chain is not written.
    """
    text = case.texts[step]
    mark, said = _parted(text)
    for last in list(_NUMBER.finditer(text, len(mark)))[-1:]:
        for number in other_numbers(last[0], rng):
            changed = text[: last.start()] + number + text[last.end() :]
            if not _gives_away(case, changed):
                return changed
    return f"{mark}It is not true that {said[:1].lower()}{said[1:]}"


def other_numbers(number: str, rng: np.random.Generator) -> list[str]:
    """Return a written number with each other first digit, in random order."""
    place = next(index for index, letter in enumerate(number) if letter.isdigit())
    digits = [str(digit) for digit in rng.permutation(np.arange(1, 10)) if str(digit) != number[place]]
    return [number[:place] + digit + number[place + 1 :] for digit in digits]


def usable_paraphrase(step: str, reply: Response) -> str | None:
    """Return the other words for a step in a reply, on one line; None if they are missing or lose or add a number."""
    (mark, own), (_, other) = _parted(step), _parted(" ".join(visible(reply.text).split()).strip('"“”'))
    has_same = sorted(_NUMBER.findall(other)) == sorted(_NUMBER.findall(own))
    return f"{mark}{other}" if reply.status == "ok" and other and other != own and has_same else None


def _parted(text: str) -> tuple[str, str]:
    """Return the mark that an item of a list begins with, and the rest."""
    mark = _LIST_MARK.match(text)
    return (mark[0], text[mark.end() :]) if mark else ("", text)
