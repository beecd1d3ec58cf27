"""All steps, in another order."""

import itertools
import math

import numpy as np

from ice_eval.cot.operators._base import Arrangement, step_operator
from ice_eval.rationales import in_random_order


@step_operator("shuffle")
class Shuffle(Arrangement):
    """All steps, word for word, in other orders: whether the answer hangs on their sequence."""

    def orders(self, n_steps: int, count: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
        own = tuple(range(n_steps))
        orders = in_random_order(
            math.factorial(n_steps),
            every=lambda: itertools.permutations(own),
            draw=lambda rng: tuple(int(step) for step in rng.permutation(n_steps)),
            rng=rng,
        )
        return list(itertools.islice((order for order in orders if order != own), count))
