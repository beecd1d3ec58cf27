"""What inseq attributes, in memory or as `FeatureAttributionOutput.save` writes it.

Scores are (tokens, generated tokens, …). What follows the first two dimensions is joined as inseq does by default, the
width of embeddings by its norm and layers and heads by their mean; where `aggregate` has joined it already, nothing is
left to join. Generated tokens are summed. The source of an encoder-decoder is explained, or the prompt of a language
model: the target up to the first generated token.
"""

import base64
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ice_eval.errors import DataError
from ice_eval.interop._files import bytes_of, ending_of, json_of
from ice_eval.interop._formats import Format, explanation_format, is_from
from ice_eval.interop._numbers import numbers
from ice_eval.interop._records import Explanation, Piece

_HEAD = 4096
"""Bytes of a file that tell the format."""


def is_saved(source: object) -> bool:
    """Whether a file was written by inseq."""
    if not isinstance(source, Path) or ending_of(source) != ".json":
        return False
    try:
        head = bytes_of(source, most=_HEAD)
    except DataError:  # a broken file; whoever reads it says so
        return False
    return b"__instance_type__" in head and b"FeatureAttributionOutput" in head


@explanation_format("inseq")
class Inseq(Format):
    """A `FeatureAttributionOutput`, or the JSON file it saved: the source, or the prompt, with all generated tokens."""

    def reads(self, source: object) -> bool:
        return is_saved(source) or is_from(
            source, "inseq", "FeatureAttributionOutput", "FeatureAttributionSequenceOutput"
        )

    def explanations(self, source: Any) -> Iterator[Explanation]:
        if isinstance(source, Path):
            yield from _saved(source)
        elif is_from(source, "inseq", "FeatureAttributionOutput"):
            yield from map(_in_memory, source.sequence_attributions)
        else:
            yield _in_memory(source)


@contextmanager
def _as_saved(where: str) -> Iterator[None]:
    """Whatever is missed or trips inside means that a file is not as inseq saves it."""
    from safetensors import SafetensorError

    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError, SafetensorError) as exc:
        raise DataError(f"{where}: not as inseq saves it ({exc!r}).") from exc


def _saved(path: Path) -> Iterator[Explanation]:
    with _as_saved(str(path)):
        sequences = list(json_of(path)["attributes"]["sequence_attributions"])
    for place, sequence in enumerate(sequences):
        with _as_saved(f"{path}, sequence {place}"):
            found = _in_file(sequence)
        yield found


def _in_file(sequence: Mapping[str, Any]) -> Explanation:
    content, kind = sequence["attributes"], sequence["__instance_type__"][1]
    side = "target" if content["source_attributions"] is None else "source"
    tokens = [each["attributes"]["token"] for each in content[side]]
    return _explanation(kind, side, tokens, _tensor(content[f"{side}_attributions"]), content["attr_pos_start"])


def _in_memory(sequence: Any) -> Explanation:
    side = "target" if sequence.source_attributions is None else "source"
    tokens = [each.token for each in getattr(sequence, side)]
    scores = numbers(getattr(sequence, f"{side}_attributions"))
    return _explanation(type(sequence).__name__, side, tokens, scores, sequence.attr_pos_start)


def _explanation(kind: str, side: str, tokens: list[str], scores: NDArray[np.float64], first: int) -> Explanation:
    """From the class of a sequence, what it explains, and where the first generated token is."""
    if side == "target":
        tokens, scores = tokens[:first], scores[:first]
    return Explanation(_joined(scores, by_norm="Granular" in kind), tuple(map(Piece, tokens)))


def _tensor(encoded: str) -> NDArray[np.float64]:
    from safetensors.torch import load  # NumPy has no float8

    return numbers(load(base64.b64decode(encoded))["attribution"])


def _joined(scores: NDArray[np.float64], *, by_norm: bool) -> NDArray[np.float64]:
    """(tokens, steps, …) -> (tokens,)."""
    if scores.ndim <= 2:
        steps = scores
    elif by_norm:
        steps = np.linalg.norm(scores, axis=-1)
    else:
        steps = scores.mean(axis=tuple(range(2, scores.ndim)))
    total: NDArray[np.float64] = np.nansum(steps.reshape(len(steps), -1), axis=1)
    return total
