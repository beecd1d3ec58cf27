"""Attributions of inseq, in memory or as `FeatureAttributionOutput.save` writes them.

Scores are (tokens, generated tokens, …). Further dimensions are aggregated as inseq does by default: the width of
embeddings by its norm, layers and heads by their mean, unless `aggregate` did so already. Generated tokens are summed.
Explained is the source of an encoder-decoder, or the prompt of a language model: the target up to the first generated
token.
"""

import base64
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ice_eval.errors import DataError
from ice_eval.interop._base import Explanation, Format, TextPart, explanation_format, numbers
from ice_eval.interop._files import bytes_of, ending_of, json_of
from ice_eval.interop.libraries import is_from

_HEAD = 4096
"""Number of first bytes that identify the format."""


def is_saved(source: object) -> bool:
    """Return True if a file was written by inseq."""
    if not isinstance(source, Path) or ending_of(source) != ".json":
        return False
    try:
        head = bytes_of(source, most=_HEAD)
    except DataError:  # a broken file; reading it raises the error
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
    """Report any failure in this context as an invalid file of inseq."""
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
    from safetensors.torch import load  # NumPy has no float8

    content, kind = sequence["attributes"], sequence["__instance_type__"][1]
    side = "target" if content["source_attributions"] is None else "source"
    tokens = [each["attributes"]["token"] for each in content[side]]
    scores = load(base64.b64decode(content[f"{side}_attributions"]))["attribution"]
    return _explanation(kind, side, tokens, numbers(scores), content["attr_pos_start"])


def _in_memory(sequence: Any) -> Explanation:
    side = "target" if sequence.source_attributions is None else "source"
    tokens = [each.token for each in getattr(sequence, side)]
    scores = numbers(getattr(sequence, f"{side}_attributions"))
    return _explanation(type(sequence).__name__, side, tokens, scores, sequence.attr_pos_start)


def _explanation(kind: str, side: str, tokens: list[str], scores: NDArray[np.float64], first: int) -> Explanation:
    """Return an explanation from the class of a sequence, its explained side, and its first generated token."""
    if side == "target":
        tokens, scores = tokens[:first], scores[:first]
    if scores.ndim > 2:  # (tokens, steps, …)
        by_norm = "Granular" in kind
        scores = np.linalg.norm(scores, axis=-1) if by_norm else scores.mean(axis=tuple(range(2, scores.ndim)))
    return Explanation(np.nansum(scores.reshape(len(scores), -1), axis=1), tuple(map(TextPart, tokens)))
