"""The seam that every attribution fills, and the lens through which it sees the model."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ice_eval._registry import Registry
from ice_eval._seeding import rng_for
from ice_eval._specs import from_spec
from ice_eval.attributions._data import DataView
from ice_eval.errors import DataError
from ice_eval.models import AttentionMaps, EmbeddedText, Generated, Gradients, Labels, Model, Prior
from ice_eval.nulls import counts_of
from ice_eval.records import Answer, Encoded, KeepMasks, PerToken, PerUnit, Span

_Class = TypeVar("_Class", bound="type[Attribution]")

OF_EVERY_MODEL = frozenset({"counts", "human", "lexicon", "values"})
"""What an attribution may declare whatever the model: the data or the run offer it."""
NEEDS = frozenset({"attention_maps", "attentions", "embeddings", "generate", "gradients"}) | OF_EVERY_MODEL
"""What an attribution may declare."""
LOOKS = frozenset({"attentions", "gradients"})
"""What one look at an example shows, for all attributions together."""


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

    observer: "Observer"
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


@dataclass(frozen=True, kw_only=True)
class Attribution(ABC):
    """A method that gives every unit a number. Its fields are its configuration."""

    needs: ClassVar[frozenset[str]] = frozenset()
    signed: ClassVar[bool] = False
    """Whether negative numbers speak against the explained label, so that support and magnitude rank differently."""
    brought: ClassVar[bool] = False
    """Whether the numbers come from the user, so that a run folder must be checked to hold the same."""

    @property
    def has_signs(self) -> bool:
        """Whether its numbers may be negative against the label: those of signed methods, and what users bring."""
        return self.signed or self.brought

    @property
    def sized(self) -> bool:
        """Whether its rationale is a set of its own size, the units with a positive number, whatever k."""
        return False

    @property
    def operator(self) -> str:
        """What happens to units that `lens.values` does not keep; a field where users choose."""
        return "delete"

    def n_probes(self, n_units: int) -> int:
        """Rows that the method asks `lens.values` for, so that a run can say how far it is."""
        return 0

    def remark(self, n_units: Sequence[int]) -> str | None:
        """What a user should know before it explains texts of so many units."""
        return None

    @property
    def passes(self) -> int:
        """Forward passes that an example costs beside the one look that all methods share; a way back counts as two."""
        return 0

    def check(self, lens: Lens, item: Encoded) -> None:
        """Try the method on one example before anything is written; one that looks at no model needs no trial.

        Whatever it raises stops the run. Methods that look many times override this with a shorter trial.

        Raises:
            ConfigError: A field asks for what the model has not, such as a layer beyond its last.
        """
        if self.needs - OF_EVERY_MODEL and "values" not in self.needs:
            self.attribute(lens, [item])

    @abstractmethod
    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        """One array per example: how much each unit matters."""


def one_per_unit(name: str, item: Encoded, values: PerUnit) -> PerUnit:
    """The values, if there is one for every unit.

    Raises:
        DataError: There is not; the message shows the units.
    """
    if values.shape != (item.n_units,):
        raise DataError(
            f"the attribution '{name}' gave {values.size} numbers for example '{item.example_id}', which has "
            f"{item.n_units} units: {' | '.join(item.texts[:20])}"
        )
    return values


attributions: Registry[type[Attribution]] = Registry("attribution", "ice_eval.attributions")


def attribution(name: str, *, needs: set[str] | None = None) -> Callable[[_Class], _Class]:
    """Register an attribution class, and what of `NEEDS` it asks a lens for."""
    unknown = (needs or set()) - NEEDS
    if unknown:
        raise TypeError(
            f"the attribution '{name}' needs {sorted(unknown)}, which no lens offers; known: {sorted(NEEDS)}"
        )

    def register(cls: _Class) -> _Class:
        cls.needs = frozenset(needs or ())
        attributions.add(name, cls)
        return cls

    return register


def fields_of(method: Attribution) -> dict[str, Any]:
    """What a method is and how it is set, as JSON can hold it: its name, and its frozen fields.

    Of what a user brings the class alone is told: its numbers stand in the folder themselves. A field that is neither
    number, word nor list is told by its type.
    """
    name = next((name for name, known in attributions.items() if known is type(method)), type(method).__name__)
    chosen = {} if method.brought else {each.name: getattr(method, each.name) for each in fields(method)}
    plain: dict[str, Any] = json.loads(json.dumps(chosen, default=lambda value: type(value).__name__))
    return {"method": name, **plain}


def method_of(spec: str) -> Attribution:
    """The known attribution that `NAME` or `NAME:option=value:option=value` stands for; options are its fields.

    Raises:
        ConfigError: There is no such attribution or option, or a value does not fit; the message lists what is known.
    """
    return from_spec(spec, attributions)
