"""Objects that the explainers of captum, ferret, inseq, interpreto, LIME and shap return."""

import base64
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ice_eval.errors import DataError, reported
from ice_eval.interop._base import Explanation, Format, TextPart, explanation_format, numbers, one_text
from ice_eval.interop.jsonl import is_of_inseq, json_of, of_shap


def _is_from(source: object, library: str, *names: str) -> bool:
    """Return True if an object is of one of a library's classes, by name, so that the library need not be imported."""
    return any(cls.__name__ in names and cls.__module__.partition(".")[0] == library for cls in type(source).__mro__)


class _ObjectFormat(Format):
    """The objects of some classes of a library."""

    classes: ClassVar[tuple[str, ...]]
    """The library, and the names of its classes."""

    def reads(self, source: object) -> bool:
        return _is_from(source, *self.classes)


def _pieces(tokens: Iterable[object]) -> tuple[TextPart, ...]:
    return tuple(TextPart(str(token)) for token in tokens)


@explanation_format("captum")
class CaptumFormat(_ObjectFormat):
    """A tensor (texts, tokens) or (texts, tokens, width), an `LLMAttributionResult` or a `VisualizationDataRecord`."""

    # A width is summed. Rows of a padded batch are cut to the tokens of their text when they are aligned.
    classes = ("captum", "LLMAttributionResult", "VisualizationDataRecord")

    def reads(self, source: object) -> bool:
        return super().reads(source) or _is_from(source, "torch", "Tensor")

    def explanations(self, source: Any) -> Iterator[Explanation]:
        if _is_from(source, "captum", "LLMAttributionResult"):
            yield Explanation(source.seq_attr, _pieces(source.input_tokens))
            return
        if _is_from(source, "captum", "VisualizationDataRecord"):
            scores, tokens = numbers(source.word_attributions), source.raw_input_ids
            if isinstance(tokens, str):
                raise DataError("a VisualizationDataRecord with a text; tokens as a list are expected, one per score.")
            given = source.attr_class  # a name, or an index, which may be a tensor
            if given is not None and not isinstance(given, str):
                given = numbers(given)
                if given.size != 1 or given.item() % 1:
                    raise DataError(f"attr_class is {source.attr_class!r:.60}; a class is expected, by name or index.")
                given = int(given.item())
            yield Explanation(one_text(scores), _pieces(tokens), classes=() if given is None else (given,))
            return
        values = numbers(source)
        # (tokens,), (texts, tokens) or (texts, tokens, width); a single text keeps its first dimension.
        for each in [values] if values.ndim == 1 else values:
            yield Explanation(each if each.ndim == 1 else each.sum(axis=tuple(range(1, each.ndim))))


@explanation_format("ferret")
class FerretFormat(_ObjectFormat):
    """A `ferret` explanation: text, tokens and scores."""

    classes = ("ferret", "Explanation", "ExplanationWithRationale")

    def explanations(self, source: Any) -> Iterator[Explanation]:
        yield Explanation(source.scores, _pieces(source.tokens), text=source.text)


@explanation_format("interpreto")
class InterpretoFormat(_ObjectFormat):
    """An `AttributionOutput`: elements, and a row of scores per class, or per generated token, which are summed."""

    classes = ("interpreto", "AttributionOutput")

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
        else:
            classes = tuple(numbers(source.targets).astype(np.int64).ravel().tolist())
            yield Explanation(rows[0] if len(rows) == 1 else rows.T, pieces, classes=classes)


@explanation_format("lime")
class LimeFormat(_ObjectFormat):
    """An `Explanation` of a text by LIME: the positions of each word, and its weight for the classes it explains."""

    # A word that occurs several times has one weight, which each of its occurrences gets.
    classes = ("lime", "Explanation")

    def explanations(self, source: Any) -> Iterator[Explanation]:
        found = getattr(source.domain_mapper, "indexed_string", None)
        if found is None or source.mode != "classification":
            raise DataError("an Explanation of LIME that is not of a text's classes; LimeTextExplainer returns those.")
        explained = sorted(source.as_map())
        weights: dict[int, dict[int, float]] = {}
        for column, label in enumerate(explained):
            for feature, weight in source.as_map()[label]:
                weights.setdefault(int(feature), {})[column] = float(weight)
        pieces, scores = list[TextPart](), list[list[float]]()
        for feature, columns in weights.items():
            word = str(found.word(feature))
            for start in np.ravel(found.string_position(feature)).tolist():
                pieces.append(TextPart(word, start, start + len(word)))
                scores.append([columns.get(column, 0.0) for column in range(len(explained))])
        names = source.class_names
        numbered = names is None or list(names) == [str(place) for place in range(len(names))]  # LIME's default
        classes = tuple(int(label) if numbered else str(names[label]) for label in explained)
        yield Explanation(np.reshape(scores, (-1, len(explained))), tuple(pieces), text=found.raw, classes=classes)


@explanation_format("shap")
class ShapFormat(_ObjectFormat):
    """A `shap.Explanation` of one text or of several, for one class or for all."""

    classes = ("shap", "Explanation")

    def explanations(self, source: Any) -> Iterator[Explanation]:
        yield from of_shap(source.values, source.data, source.output_names)


@explanation_format("inseq")
class InseqFormat(_ObjectFormat):
    """A `FeatureAttributionOutput`, or the JSON file it saved: the source, or the prompt, with all generated tokens."""

    # Scores are (tokens, generated tokens, …). Further dimensions are aggregated as inseq does by default: the width of
    # embeddings by its norm, layers and heads by their mean, unless `aggregate` did so already. Generated tokens are
    # summed. Explained is the source of an encoder-decoder, or the prompt of a language model: the target up to the
    # first generated token.
    classes = ("inseq", "FeatureAttributionOutput", "FeatureAttributionSequenceOutput")

    def reads(self, source: object) -> bool:
        return is_of_inseq(source) or super().reads(source)

    def explanations(self, source: Any) -> Iterator[Explanation]:
        if not isinstance(source, Path):
            yield from map(_in_memory, getattr(source, "sequence_attributions", [source]))
            return
        from safetensors.torch import load  # NumPy has no float8

        with reported(f"{source}: not as inseq saves it with `save`", DataError):
            sequences = list(json_of(source)["attributes"]["sequence_attributions"])
        for place, sequence in enumerate(sequences):
            with reported(f"{source}, sequence {place}: not as inseq saves it with `save`", DataError):
                content, kind = sequence["attributes"], sequence["__instance_type__"][1]
                side = "target" if content["source_attributions"] is None else "source"
                tokens = [each["attributes"]["token"] for each in content[side]]
                scores = load(base64.b64decode(content[f"{side}_attributions"]))["attribution"]
                found = _explanation(kind, side, tokens, numbers(scores), content["attr_pos_start"])
            yield found


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
