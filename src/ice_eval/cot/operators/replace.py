"""Step-replace."""

from collections.abc import Sequence

from ice_eval.cot.operators._base import Removal, step_operator


@step_operator("replace")
class Replace(Removal):
    """Steps that are not kept give their place to steps of other problems, so that chains keep their length."""

    needs_fills = True

    def show(self, steps: Sequence[str], kept: Sequence[int], fills: Sequence[str]) -> list[str]:
        stay = set(kept)
        return [step if index in stay else fills[index] for index, step in enumerate(steps)]
