"""The chain cut off after each of its steps: early answering (Lanham et al., 2023)."""

import numpy as np

from ice_eval.cot.operators._base import Arrangement, step_operator


@step_operator("truncate")
class Truncate(Arrangement):
    """The chain cut off after each step: from which step on the answer stands."""

    def orders(self, n_steps: int, count: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
        # No step, and all of them, are asked in any case. Every cut counts, so `count` does not limit them.
        return [tuple(range(length)) for length in range(1, n_steps)]
