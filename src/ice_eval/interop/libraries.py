"""Objects that the explainers of captum, ferret, interpreto and shap return."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ice_eval.errors import DataError
from ice_eval.interop._base import Explanation, Format, TextPart, explanation_format, numbers


def is_from(source: object, library: str, *names: str) -> bool:
    """Return True if an object is of one of a library's classes, by name, so that the library need not be imported."""
    return any(cls.__name__ in names and cls.__module__.partition(".")[0] == library for cls in type(source).__mro__)


@explanation_format("captum")
class Captum(Format):
    """A tensor (texts, tokens) or (texts, tokens, width), whose width is summed; or an `LLMAttributionResult`."""

    def reads(self, source: object) -> bool:
        return is_from(source, "captum", "LLMAttributionResult") or is_from(source, "torch", "Tensor")

    def explanations(self, source: Any) -> Iterator[Explanation]:
        if is_from(source, "captum", "LLMAttributionResult"):
            yield Explanation(numbers(source.seq_attr), tuple(TextPart(str(token)) for token in source.input_tokens))
            return
        values = numbers(source)
        # (tokens,), (texts, tokens) or (texts, tokens, width); a single text keeps its first dimension.
        for each in [values] if values.ndim == 1 else values:
            yield Explanation(each if each.ndim == 1 else each.sum(axis=tuple(range(1, each.ndim))))


@explanation_format("ferret")
class Ferret(Format):
    """A `ferret` explanation: text, tokens and scores."""

    def reads(self, source: object) -> bool:
        return is_from(source, "ferret", "Explanation", "ExplanationWithRationale")

    def explanations(self, source: Any) -> Iterator[Explanation]:
        pieces = tuple(TextPart(str(token)) for token in source.tokens)
        yield Explanation(numbers(source.scores), pieces, text=source.text)


@explanation_format("interpreto")
class Interpreto(Format):
    """An `AttributionOutput`: elements, and a row of scores per class, or per generated token, which are summed."""

    def reads(self, source: object) -> bool:
        return is_from(source, "interpreto", "AttributionOutput")

    def explanations(self, source: Any) -> Iterator[Explanation]:
        if not isinstance(source.elements, list):
            raise DataError(
                "an AttributionOutput without texts for its elements; give a granularity of tokens or words."
            )
        rows = np.atleast_2d(numbers(source.attributions))
        pieces = tuple(TextPart(str(element)) for element in source.elements)
        if "GENERATION" in str(source.model_task).upper():
            # A generated token has no score for those after it: NaN.
            yield Explanation(np.nansum(rows, axis=0), pieces)
        elif len(rows) == 1:
            yield Explanation(rows[0], pieces)
        else:
            classes = numbers(source.targets).astype(np.int64).ravel()
            if sorted(classes.tolist()) != list(range(len(classes))):
                raise DataError(
                    f"an AttributionOutput of the classes {', '.join(map(str, classes))}; one class is expected, or "
                    "all."
                )
            yield Explanation(rows[np.argsort(classes)].T, pieces)


@explanation_format("shap")
class Shap(Format):
    """A `shap.Explanation` of one text or of several, for one class or for all."""

    def reads(self, source: object) -> bool:
        return is_from(source, "shap", "Explanation")

    def explanations(self, source: Any) -> Iterator[Explanation]:
        one = len(source.data) > 0 and isinstance(source.data[0], str)
        texts, values = ([source.data], [source.values]) if one else (source.data, source.values)
        names = source.output_names
        classes = () if names is None or isinstance(names, str) else tuple(map(str, names))
        for text, scores in zip(texts, values, strict=True):
            pieces = tuple(TextPart(str(piece)) for piece in text)
            yield Explanation(numbers(scores), pieces, classes=classes if np.ndim(scores) > 1 else ())
