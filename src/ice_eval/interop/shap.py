"""What shap's explainers return for texts."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ice_eval.interop._formats import Format, explanation_format, is_from
from ice_eval.interop._numbers import numbers
from ice_eval.interop._records import Explanation, Piece


@explanation_format("shap")
class Shap(Format):
    """A `shap.Explanation` of one text or of several, for one class or for all."""

    def reads(self, source: object) -> bool:
        return is_from(source, "shap", "Explanation")

    def explanations(self, source: Any) -> Iterator[Explanation]:
        one = len(source.data) > 0 and isinstance(source.data[0], str)
        texts, values = ([source.data], [source.values]) if one else (source.data, source.values)
        for text, scores in zip(texts, values, strict=True):
            pieces = [str(piece) for piece in text]
            yield Explanation(
                numbers(scores),
                tuple(map(Piece, pieces)),
                classes=_classes(source.output_names) if np.ndim(scores) > 1 else (),
            )


def _classes(names: Any) -> tuple[str, ...]:
    return () if names is None or isinstance(names, str) else tuple(map(str, names))
