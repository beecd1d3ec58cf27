"""The lens through which an attribution sees a model, and the one look that all attributions of a run share."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ice_eval.attributions._data import DataView
from ice_eval.models import AttentionMaps, EmbeddedText, Generated, Gradients, Labels, Model, Prior
from ice_eval.nulls import counts_of
from ice_eval.records import Answer, Encoded, KeepMasks, PerToken, PerUnit, Span
from ice_eval.seeding import rng_for

PerRow = NDArray[np.float64]  # (rows,)
Prober = Callable[[Sequence[Encoded], Sequence[KeepMasks]], list[PerRow]]
"""Keep-masks of each example -> log-odds of the explained label for each row."""


class Seen(NamedTuple):
    """What a model showed of one example; None what nobody needs."""

    attention: Any
    gradients: Any


class Label(NamedTuple):
    """The label that an example's explanation is about."""

    labels: Labels
    place: int
    """Its place among the labels."""

    @property
    def name(self) -> str:
        return self.labels.names[self.place]


class Observer:
    """Looks at the examples of a part once, for all attributions that will ask.

    Args:
        model: What is looked at.
        labels: Its labels.
        targets: Example id -> index of the label that is explained.
        needs: What the attributions need, all together.
        chat: Whether the model is asked in turns of a chat.
        priors: Example id -> log-scores without a text, where scores are calibrated: explained are calibrated log-odds,
            as they are to methods that ask for scores.
    """

    def __init__(
        self,
        model: Model,
        labels: Labels,
        targets: Mapping[str, int],
        needs: Collection[str],
        *,
        chat: bool = False,
        priors: Mapping[str, Prior] | None = None,
    ) -> None:
        self._model, self._labels, self._targets, self._needs = model, labels, targets, needs
        self.chat, self._priors = chat, priors
        self._seen: dict[str, Seen] = {}

    def see(self, batch: Sequence[Encoded]) -> list[Seen]:
        """What the model showed of each example."""
        new = [item for item in batch if item.example_id not in self._seen]
        if new:
            targets = [self._targets[item.example_id] for item in new]
            priors = None if self._priors is None else [self._priors[item.example_id] for item in new]
            found = self._model.observe(new, targets, self._labels, self._needs, priors=priors)
            nothing = [None] * len(new)
            pairs = zip(new, found.attentions or nothing, found.gradients or nothing, strict=True)
            self._seen.update({item.example_id: Seen(attention, slopes) for item, attention, slopes in pairs})
        return [self._seen[item.example_id] for item in batch]

    def label(self, item: Encoded) -> Label:
        """What an example's explanation is about."""
        return Label(self._labels, self._targets[item.example_id])

    def attention_maps(self, batch: Sequence[Encoded], *, gradients: bool) -> Iterator[AttentionMaps]:
        """All attention of each example, one after the other: they are too large to keep."""
        for item in batch:
            target, prior = self._explained(item)
            yield self._model.attention_maps(item, target, self._labels, gradients=gradients, prior=prior)

    def embedded(self, batch: Sequence[Encoded]) -> Iterator[EmbeddedText]:
        """Each example as points in the space of embeddings, one after the other."""
        for item in batch:
            target, prior = self._explained(item)
            yield self._model.embedded(item, target, self._labels, prior=prior)

    def _explained(self, item: Encoded) -> tuple[int, Prior | None]:
        return self._targets[item.example_id], None if self._priors is None else self._priors[item.example_id]

    def generate(
        self, prompts: Sequence[str], *, turns: Sequence[tuple[str, str]], max_tokens: int, stop: str | None
    ) -> list[Generated]:
        """What the model writes after each prompt; `turns` stand before it in a chat."""
        return self._model.generate(prompts, turns=turns if self.chat else None, max_tokens=max_tokens, stop=stop)


@dataclass(frozen=True)
class Lens:
    """What one attribution may ask of a model: only what it declared.

    Always for a batch of encoded examples, so that forward passes are shared.
    """

    observer: Observer
    needs: frozenset[str]
    seed: int
    name: str
    """The attribution that looks through this lens; its random numbers are its own."""
    data: DataView = field(default_factory=DataView)
    prober: Prober | None = None
    answers: dict[str, Answer] = field(default_factory=dict)
    """What the model said of examples, by their id, as `note` is told; kept with the run."""

    def attentions(self, batch: Sequence[Encoded]) -> list[PerToken]:
        """Attention from the scoring position to every token, mean over layers and heads."""
        self._allow("attentions")
        return [seen.attention for seen in self.observer.see(batch)]

    def gradients(self, batch: Sequence[Encoded]) -> list[Gradients]:
        """Embedding of every token, and the gradient of the target's log-odds there."""
        self._allow("gradients")
        return [seen.gradients for seen in self.observer.see(batch)]

    def values(self, batch: Sequence[Encoded], masks: Sequence[KeepMasks]) -> list[PerRow]:
        """Log-odds of the explained label for every row of each example's keep-masks, under the method's `operator`."""
        self._allow("values")
        assert self.prober is not None, "a run offers what its attributions need"
        return self.prober(batch, masks)

    def counts(self, item: Encoded) -> PerUnit:
        """How often each unit occurs in the data."""
        self._allow("counts")
        return np.array(counts_of(item.texts, self.data.counts), dtype=np.float64)

    def lexicon(self, item: Encoded) -> PerUnit:
        """1 for the units that give a label away, else 0."""
        self._allow("lexicon")
        assert self.data.lexicon is not None, "a run offers what its attributions need"
        units = zip(item.texts, item.unit_ids(), strict=True)
        return np.array([self.data.lexicon.blocks(text, ids.tolist()) for text, ids in units], dtype=np.float64)

    def human(self, item: Encoded) -> tuple[Span, ...]:
        """The characters that a person marked in an example; none where nobody did."""
        self._allow("human")
        return self.data.human.get(item.example_id, ())

    def label(self, item: Encoded) -> Label:
        """The label that is explained."""
        return self.observer.label(item)

    def attention_maps(self, batch: Sequence[Encoded], *, gradients: bool = False) -> Iterator[AttentionMaps]:
        """All attention of each example, by layer and head, and perhaps the gradient of the target's log-odds there."""
        self._allow("attention_maps")
        return self.observer.attention_maps(batch, gradients=gradients)

    def embeddings(self, batch: Sequence[Encoded]) -> Iterator[EmbeddedText]:
        """The target's log-odds, and their gradient, at any embeddings of the tokens of units; for paths and noise."""
        self._allow("embeddings")
        return self.observer.embedded(batch)

    @property
    def chat(self) -> bool:
        """Whether prompts of `generate` are turns of a chat."""
        return self.observer.chat

    def generate(
        self,
        prompts: Sequence[str],
        *,
        turns: Sequence[tuple[str, str]] = (),
        max_tokens: int,
        stop: str | None = None,
    ) -> list[Generated]:
        """What the model writes after each prompt, the likeliest token at every step.

        In a chat a prompt is the turn of a user, after `turns` (role and text); else it is plain text. Answers end
        before `stop`, and after `max_tokens`.
        """
        self._allow("generate")
        return self.observer.generate(prompts, turns=turns, max_tokens=max_tokens, stop=stop)

    def note(self, item: Encoded, answer: Answer) -> None:
        """Keep what the model said of an example, and why it explains nothing if it does not."""
        self.answers[item.example_id] = answer

    def rng(self, item: Encoded) -> np.random.Generator:
        """Random numbers that belong to this attribution and this example."""
        return rng_for(self.seed, item.example_id, f"attribution:{self.name}")

    def _allow(self, need: str) -> None:
        if need not in self.needs:
            raise TypeError(f"the attribution '{self.name}' did not declare needs={{'{need}'}}")
