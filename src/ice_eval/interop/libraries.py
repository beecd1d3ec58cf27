"""Objects that the explainers of captum, ferret, inseq, interpreto and shap return."""

import base64
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ice_eval.errors import DataError
from ice_eval.interop._base import Explanation, Format, TextPart, explanation_format, numbers
from ice_eval.interop.jsonl import is_of_inseq, json_of


def _is_from(source: object, library: str, *names: str) -> bool:
    """Return True if an object is of one of a library's classes, by name, so that the library need not be imported."""
    return any(cls.__name__ in names and cls.__module__.partition(".")[0] == library for cls in type(source).__mro__)


def _pieces(tokens: Iterable[object]) -> tuple[TextPart, ...]:
    return tuple(TextPart(str(token)) for token in tokens)


@explanation_format("captum")
class Captum(Format):
    """A tensor (texts, tokens) or (texts, tokens, width), whose width is summed; or an `LLMAttributionResult`."""

    def reads(self, source: object) -> bool:
        return _is_from(source, "captum", "LLMAttributionResult") or _is_from(source, "torch", "Tensor")

    def explanations(self, source: Any) -> Iterator[Explanation]:
        if _is_from(source, "captum", "LLMAttributionResult"):
            yield Explanation(source.seq_attr, _pieces(source.input_tokens))
            return
        values = numbers(source)
        # (tokens,), (texts, tokens) or (texts, tokens, width); a single text keeps its first dimension.
        for each in [values] if values.ndim == 1 else values:
            yield Explanation(each if each.ndim == 1 else each.sum(axis=tuple(range(1, each.ndim))))


@explanation_format("ferret")
class Ferret(Format):
    """A `ferret` explanation: text, tokens and scores."""

    def reads(self, source: object) -> bool:
        return _is_from(source, "ferret", "Explanation", "ExplanationWithRationale")

    def explanations(self, source: Any) -> Iterator[Explanation]:
        yield Explanation(source.scores, _pieces(source.tokens), text=source.text)


@explanation_format("interpreto")
class Interpreto(Format):
    """An `AttributionOutput`: elements, and a row of scores per class, or per generated token, which are summed."""

    def reads(self, source: object) -> bool:
        return _is_from(source, "interpreto", "AttributionOutput")

    def explanations(self, source: Any) -> Iterator[Explanation]:
        if not isinstance(source.elements, list):
            raise DataError(
                "an AttributionOutput without texts for its elements; give a granularity of tokens or words."
            )
        rows = np.atleast_2d(numbers(source.attributions))
        pieces = _pieces(source.elements)
        if "GENERATION" in str(source.model_task).upper():
            # A generated token has no score for those after it: NaN.
            yield Explanation(np.nansum(rows, axis=0), pieces)
        elif len(rows) == 1:
            yield Explanation(rows[0], pieces)
        else:
            classes = numbers(source.targets).astype(np.int64).ravel()
            if sorted(classes.tolist()) != list(range(len(classes))):
                named = ", ".join(map(str, classes))
                raise DataError(f"an AttributionOutput of the classes {named}; one class is expected, or all.")
            yield Explanation(rows[np.argsort(classes)].T, pieces)


@explanation_format("shap")
class Shap(Format):
    """A `shap.Explanation` of one text or of several, for one class or for all."""

    def reads(self, source: object) -> bool:
        return _is_from(source, "shap", "Explanation")

    def explanations(self, source: Any) -> Iterator[Explanation]:
        one = len(source.data) > 0 and isinstance(source.data[0], str)
        texts, values = ([source.data], [source.values]) if one else (source.data, source.values)
        names = source.output_names
        classes = () if names is None or isinstance(names, str) else tuple(map(str, names))
        for text, scores in zip(texts, values, strict=True):
            yield Explanation(scores, _pieces(text), classes=classes if np.ndim(scores) > 1 else ())


@explanation_format("inseq")
class Inseq(Format):
    """A `FeatureAttributionOutput`, or the JSON file it saved: the source, or the prompt, with all generated tokens."""

    # Scores are (tokens, generated tokens, …). Further dimensions are aggregated as inseq does by default: the width of
    # embeddings by its norm, layers and heads by their mean, unless `aggregate` did so already. Generated tokens are
    # summed. Explained is the source of an encoder-decoder, or the prompt of a language model: the target up to the
    # first generated token.

    def reads(self, source: object) -> bool:
        names = ("FeatureAttributionOutput", "FeatureAttributionSequenceOutput")
        return is_of_inseq(source) or _is_from(source, "inseq", *names)

    def explanations(self, source: Any) -> Iterator[Explanation]:
        if isinstance(source, Path):
            yield from _saved(source)
        elif _is_from(source, "inseq", "FeatureAttributionOutput"):
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
