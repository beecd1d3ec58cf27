"""Files that inseq's `FeatureAttributionOutput.save` writes.

Scores are (tokens, generated tokens, …). What follows the first two dimensions is joined as inseq does by default, the
width of embeddings by its norm and layers and heads by their mean; generated tokens are summed. The source of an
encoder-decoder is explained, or the prompt of a language model: the target up to the first generated token.
"""

import base64
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ice_eval.errors import DataError
from ice_eval.interop._files import json_of
from ice_eval.interop._formats import Format, explanation_format
from ice_eval.interop._records import Explanation, Piece

_HEAD = 4096
"""Characters of a file that tell the format."""


def is_saved(source: object) -> bool:
    """Whether a file was written by inseq."""
    if not isinstance(source, Path) or source.suffix.lower() != ".json":
        return False
    with source.open("rb") as file:
        head = file.read(_HEAD)
    return b"__instance_type__" in head and b"FeatureAttributionOutput" in head


@explanation_format("inseq")
class Inseq(Format):
    """A JSON file that inseq saved: the source, or the prompt, with the scores of all generated tokens."""

    def reads(self, source: object) -> bool:
        return is_saved(source)

    def explanations(self, source: Path) -> Iterator[Explanation]:
        for place, sequence in enumerate(json_of(source)["attributes"]["sequence_attributions"]):
            try:
                yield _explanation(sequence)
            except (KeyError, TypeError, ValueError) as exc:
                raise DataError(
                    f"{source}, sequence {place}: not as inseq saves it with scores in float32 or float16 ({exc!r})."
                ) from exc


def _explanation(sequence: Mapping[str, Any]) -> Explanation:
    content = sequence["attributes"]
    scores = _scores(content["source_attributions"] or content["target_attributions"])
    tokens = [each["attributes"]["token"] for each in content["source" if content["source_attributions"] else "target"]]
    if not content["source_attributions"]:
        prompt = int(content["attr_pos_start"])
        tokens, scores = tokens[:prompt], scores[:prompt]
    joined = _joined(scores, by_norm="Granular" in sequence["__instance_type__"][1])
    return Explanation(joined, tuple(map(Piece, tokens)))


def _scores(encoded: str) -> NDArray[np.float64]:
    from safetensors.numpy import load

    return load(base64.b64decode(encoded))["attribution"].astype(np.float64)


def _joined(scores: NDArray[np.float64], *, by_norm: bool) -> NDArray[np.float64]:
    """(tokens, steps, …) -> (tokens,)."""
    if by_norm:
        steps = np.linalg.norm(scores, axis=-1)
    else:
        steps = scores.mean(axis=tuple(range(2, scores.ndim))) if scores.ndim > 2 else scores
    total: NDArray[np.float64] = np.nansum(steps.reshape(len(steps), -1), axis=1)
    return total
