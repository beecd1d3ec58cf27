"""What captum returns: a tensor per text, or the result of an attribution of a language model."""

from collections.abc import Iterator
from typing import Any

from ice_eval.interop._formats import Format, explanation_format, is_from
from ice_eval.interop._numbers import numbers
from ice_eval.interop._records import Explanation, Piece


@explanation_format("captum")
class Captum(Format):
    """A tensor (texts, tokens) or (texts, tokens, width), whose width is summed; or an `LLMAttributionResult`."""

    def reads(self, source: object) -> bool:
        return is_from(source, "captum", "LLMAttributionResult") or is_from(source, "torch", "Tensor")

    def explanations(self, source: Any) -> Iterator[Explanation]:
        if is_from(source, "captum", "LLMAttributionResult"):
            yield Explanation(numbers(source.seq_attr), tuple(Piece(str(token)) for token in source.input_tokens))
            return
        values = numbers(source)
        # (tokens,), (texts, tokens) or (texts, tokens, width); a single text keeps its first dimension.
        for each in [values] if values.ndim == 1 else values:
            yield Explanation(each if each.ndim == 1 else each.sum(axis=tuple(range(1, each.ndim))))
