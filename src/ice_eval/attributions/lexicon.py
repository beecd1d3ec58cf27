"""The control that knows which words give a label away."""

from collections.abc import Sequence
from dataclasses import dataclass

from ice_eval.attributions._base import Attribution, attribution
from ice_eval.attributions._lens import Lens
from ice_eval.records import Encoded, PerUnit


@attribution("lexicon", needs={"lexicon"})
@dataclass(frozen=True, kw_only=True)
class Lexicon(Attribution):
    """A control: 1 for units that give a label away, else 0.

    These are the units that infill never writes: label words in all their forms, the words of the task's `lexicon`, and
    tokens that are used differently under different gold labels. Which label they speak for is not asked.
    """

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        return [lens.lexicon(item) for item in batch]
