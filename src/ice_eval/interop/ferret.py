"""What ferret's explainers return."""

from collections.abc import Iterator
from typing import Any

from ice_eval.interop._formats import Format, explanation_format, is_from
from ice_eval.interop._numbers import numbers
from ice_eval.interop._records import Explanation, Piece


@explanation_format("ferret")
class Ferret(Format):
    """A `ferret` explanation: text, tokens and scores."""

    def reads(self, source: object) -> bool:
        return is_from(source, "ferret", "Explanation", "ExplanationWithRationale")

    def explanations(self, source: Any) -> Iterator[Explanation]:
        yield Explanation(numbers(source.scores), tuple(Piece(str(token)) for token in source.tokens), text=source.text)
