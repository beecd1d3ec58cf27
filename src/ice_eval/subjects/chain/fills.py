"""Texts in place of the steps that are not kept: steps of other problems, dots, planted errors, and other words."""

from collections.abc import Callable, Mapping, Sequence
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


class StepPool:
    """The texts that replace the steps of chains: one per step and operator, the same in all rows."""

    knows_labels = True

    def __init__(self, subject: "ChainSubject", seed: int) -> None:
        self._subject, self._seed = subject, seed

    def can_fill(self, item: Encoded) -> bool:
        return True

    def draw(self, item: Encoded, rng: np.random.Generator, *, operator: str = "replace") -> DrawnFills:
        """Return the text in place of each step; nothing is drawn anew."""
        texts = self.texts(operator, item.example_id)
        return DrawnFills(np.array([*map(self._subject.codec.id_of, texts)], dtype=np.int64), texts)

    def texts(self, operator: str, example_id: str) -> tuple[str, ...]:
        """Return the text in place of each step of a chain; none for one that is skipped."""
        known, operator = self._subject.fills, operator.partition("@")[0]
        if operator not in known:
            known[operator] = self._found(operator)
        return known[operator].get(example_id, ())

    def _found(self, operator: str) -> Mapping[str, tuple[str, ...]]:
        cases, seed = self._subject.evaluated, self._seed
        if operator == "replace":
            return steps_of_others(cases, seed=seed)
        write: Mapping[str, Callable[[Case, int], str]] = {
            "filler": lambda case, step: filler(case.texts[step]),
            "mistake": lambda case, step: mistake(case, step, rng_for(seed, case.id, "mistakes", str(step))),
            "paraphrase": lambda case, step: self._subject.paraphrases.get(case.texts[step], case.texts[step]),
        }
        return {case.id: tuple(write[operator](case, step) for step in range(len(case.steps))) for case in cases}


def steps_of_others(cases: Sequence[Case], *, seed: int) -> Mapping[str, tuple[str, ...]]:
    """Return for every case a step of another problem in place of each of its own, the same in every row.

    Steps that state this problem's answer, by chance, are not taken.

    Raises:
        DataError: There is no step of another problem to take.
    """
    pool = [(case.id, text) for case in cases for text in case.texts]
    return {case.id: _of_others(case, pool, seed) for case in cases}


def _of_others(case: Case, pool: Sequence[tuple[str, str]], seed: int) -> tuple[str, ...]:
    own = set(case.texts)
    found: list[str] = []
    for place in rng_for(seed, case.id, "step-fills").permutation(len(pool)):
        owner, text = pool[place]
        if owner != case.id and text not in own and not _gives_away(case, text):
            found.append(text)
        if len(found) == len(case.steps):
            return tuple(found)
    if not found:
        raise DataError(
            f"the operator 'replace' needs steps of other problems, and there is none for '{case.id}'; evaluate more "
            "problems, or leave it out, in another folder."
        )
    return tuple(found[index % len(found)] for index in range(len(case.steps)))  # few problems: some serve twice


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
    start = len(_parted(text)[0])
    numbers = list(_NUMBER.finditer(text, start))
    if numbers:
        last = numbers[-1]
        for number in other_numbers(last[0], rng):
            changed = text[: last.start()] + number + text[last.end() :]
            if not _gives_away(case, changed):
                return changed
    said = text[start:]
    return f"{text[:start]}It is not true that {said[:1].lower()}{said[1:]}"


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
    end = mark.end() if mark else 0
    return text[:end], text[end:]
