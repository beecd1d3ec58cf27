"""Step-delete and step-retain."""

from collections.abc import Sequence

from ice_eval.cot.operators._base import Removal, step_operator


@step_operator("delete")
class Delete(Removal):
    """Steps that are not kept are gone: the paper's step-delete (some removed) and step-retain (some kept)."""

    def show(self, steps: Sequence[str], kept: Sequence[int], fills: Sequence[str]) -> list[str]:
        return [steps[index] for index in kept]
