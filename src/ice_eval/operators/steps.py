"""Operators on the steps of a chain of thought: replaced by other texts, reordered, or cut off."""

import itertools
import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from ice_eval.operators._base import Operator, operator
from ice_eval.operators.infill import Infill
from ice_eval.rationales import Units, in_random_order
from ice_eval.records import Encoded, Fills, Inputs, KeepMasks


@operator("replace")
@dataclass(frozen=True, kw_only=True)
class Replace(Infill):
    """Steps that are not kept are replaced by steps of other problems, so that chains keep their length."""

    units = ("step",)


@operator("filler")
@dataclass(frozen=True, kw_only=True)
class Filler(Replace):
    """Steps that are not kept become rows of dots, as many as they have words: length without content."""


@operator("mistake")
@dataclass(frozen=True, kw_only=True)
class Mistake(Replace):
    """Steps that are not kept get a planted error: another last number, or a denial where they hold no number."""


@operator("paraphrase")
@dataclass(frozen=True, kw_only=True)
class Paraphrase(Replace):
    """Steps that are not kept are said in other words, which the model itself writes: an answer should not change."""

    keeps_meaning = True


@dataclass(frozen=True, kw_only=True)
class Arrangement(Operator):
    """Shows steps in another order; nothing is compared with a rationale."""

    units = ("step",)

    @abstractmethod
    def orders(self, n_steps: int, count: int, rng: np.random.Generator) -> list[Units]:
        """Return up to `count` different lists of steps in the order in which they are shown."""

    def build(self, item: Encoded, keep: KeepMasks, *, fills: Fills) -> Inputs:
        raise TypeError("an arrangement keeps no chosen steps; see `orders`")


@operator("shuffle")
@dataclass(frozen=True, kw_only=True)
class Shuffle(Arrangement):
    """All steps in other orders, to see whether the answer depends on their sequence."""

    def orders(self, n_steps: int, count: int, rng: np.random.Generator) -> list[Units]:
        own = tuple(range(n_steps))
        orders = in_random_order(
            math.factorial(n_steps),
            every=lambda: itertools.permutations(own),
            draw=lambda rng: tuple(int(step) for step in rng.permutation(n_steps)),
            rng=rng,
        )
        return list(itertools.islice((order for order in orders if order != own), count))


@operator("truncate")
@dataclass(frozen=True, kw_only=True)
class Truncate(Arrangement):
    """The chain cut off after each step, to see from which one on the answer is settled (Lanham et al., 2023)."""

    def orders(self, n_steps: int, count: int, rng: np.random.Generator) -> list[Units]:
        # No step, and all of them, are asked in any case. Every cut counts, so `count` does not limit them.
        return [tuple(range(length)) for length in range(1, n_steps)]
