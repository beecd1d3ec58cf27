"""The interface of attributions, and the lens through which they see a model."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ice_eval._registry import Registry, from_spec
from ice_eval.errors import ConfigError, DataError
from ice_eval.models import AttentionMaps, EmbeddedText, Generated, Gradients, Labels, Model, Prior
from ice_eval.nulls import counts_of
from ice_eval.operators import Blacklist
from ice_eval.records import Answer, Encoded, KeepMasks, PerToken, PerUnit, Span, Unit
from ice_eval.seeding import rng_for

_Class = TypeVar("_Class", bound="type[Attribution]")
PerRow = NDArray[np.float64]  # (rows,)
Prober = Callable[[Sequence[Encoded], Sequence[KeepMasks], int], list[PerRow]]
"""Keep-masks of each example, and which repeat -> log-odds of the explained label for each row."""

OF_EVERY_MODEL = frozenset({"citations", "counts", "human", "lexicon", "retrieval", "values"})
"""Needs that the data or the run meet, whatever the model."""
NEEDS = frozenset({"attention_maps", "attentions", "embeddings", "generate", "gradients"}) | OF_EVERY_MODEL
"""Needs that an attribution may declare."""
LOOKS = frozenset({"attentions", "gradients"})
"""Needs that one observation of an example meets, for all attributions together."""
MOST_PROBES = 1_000_000
"""Most probes, samples or words that an option may ask for."""


@dataclass(frozen=True)
class DataView:
    """The part of the data that a lens shows; empty where no attribution of the run needs it."""

    counts: Mapping[str, int] = field(default_factory=dict)
    """Number of occurrences of units, as returned by `nulls.unit_counts`."""
    lexicon: Blacklist | None = None
    """Units that reveal a label: label words, the task's lexicon, tokens that gold labels use differently."""
    human: Mapping[str, tuple[Span, ...]] = field(default_factory=dict)
    """Example id -> the characters that a person marked as decisive."""
    cited: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Example id -> the passages that a claim cites, as names of fields."""
    retrieval: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Example id -> passage -> its score in the retrieval."""


class Label(NamedTuple):
    labels: Labels
    place: int

    @property
    def name(self) -> str:
        return self.labels.names[self.place]


class Observer:
    """Observes the examples of a part once, for all attributions.

    Args:
        targets: Example id -> index of the label that is explained.
        needs: The needs of all attributions together.
        priors: Example id -> log-scores without a text, where scores are calibrated; then calibrated log-odds are
            explained, also by methods that request scores.
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
        self.model, self.chat = model, chat
        self._labels, self._targets, self._needs, self._priors = labels, targets, needs, priors
        self._seen: dict[str, tuple[Any, Any]] = {}

    def see(self, batch: Sequence[Encoded]) -> list[tuple[Any, Any]]:
        """Return attention and gradients of each example; None for what no attribution needs."""
        new = [item for item in batch if item.example_id not in self._seen]
        if new:
            targets = [self._targets[item.example_id] for item in new]
            priors = None if self._priors is None else [self._priors[item.example_id] for item in new]
            found = self.model.observe(new, targets, self._labels, self._needs, priors=priors)
            nothing = [None] * len(new)
            pairs = zip(found.attentions or nothing, found.gradients or nothing, strict=True)
            self._seen.update(zip((item.example_id for item in new), pairs, strict=True))
        return [self._seen[item.example_id] for item in batch]

    def label(self, item: Encoded) -> Label:
        return Label(self._labels, self._targets[item.example_id])

    def prior(self, item: Encoded) -> Prior | None:
        """Return the log-scores of an example without its text, where scores are calibrated."""
        return None if self._priors is None else self._priors[item.example_id]


@dataclass(frozen=True)
class Lens:
    """The view that one attribution has of a model: only its declared needs, for a batch, so that passes are shared."""

    observer: Observer
    needs: frozenset[str]
    seed: int
    name: str
    """Name of the attribution; its random numbers are its own."""
    data: DataView = field(default_factory=DataView)
    prober: Prober | None = None
    answers: dict[str, Answer] = field(default_factory=dict)
    """Answers of the model by example id, as `note` receives them; kept with the run."""

    def attentions(self, batch: Sequence[Encoded]) -> list[PerToken]:
        """Return the attention from the scoring position to every token, mean over layers and heads."""
        self._allow("attentions")
        return [attention for attention, _ in self.observer.see(batch)]

    def gradients(self, batch: Sequence[Encoded]) -> list[Gradients]:
        """Return the embedding of every token, and the gradient of the target's log-odds there."""
        self._allow("gradients")
        return [gradients for _, gradients in self.observer.see(batch)]

    def values(self, batch: Sequence[Encoded], masks: Sequence[KeepMasks], *, repeat: int = 0) -> list[PerRow]:
        """Return the explained label's log-odds for every row of the keep-masks, under the method's `operator`.

        A model that answers in words may answer anew: each `repeat` is another reply, and no row of the evaluation has
        one from 1 on.
        """
        self._allow("values")
        assert self.prober is not None, "a run offers what its attributions need"
        return self.prober(batch, masks, repeat)

    def counts(self, item: Encoded) -> PerUnit:
        """Return the number of occurrences of each unit in the data."""
        self._allow("counts")
        return np.array(counts_of(item.texts, self.data.counts), dtype=np.float64)

    def lexicon(self, item: Encoded) -> PerUnit:
        """Return 1 for the units that reveal a label, else 0."""
        self._allow("lexicon")
        assert self.data.lexicon is not None, "a run offers what its attributions need"
        units = zip(item.texts, item.unit_ids(), strict=True)
        return np.array([self.data.lexicon.blocks(text, ids.tolist()) for text, ids in units], dtype=np.float64)

    def human(self, item: Encoded) -> tuple[Span, ...]:
        """Return the characters that a person marked in an example; none without marks."""
        self._allow("human")
        return self.data.human.get(item.example_id, ())

    def cited(self, item: Encoded) -> PerUnit:
        """Return 1 for the units of passages that the claim cites, else 0."""
        self._allow("citations")
        cited = self.data.cited.get(item.example_id, ())
        return np.array([span.field in cited for span in item.spans], dtype=np.float64)

    def retrieval(self, item: Encoded) -> PerUnit:
        """Return the retrieval's score of the passage of each unit; NaN without one."""
        self._allow("retrieval")
        scores = self.data.retrieval.get(item.example_id, {})
        return np.array([scores.get(span.field, np.nan) for span in item.spans], dtype=np.float64)

    def label(self, item: Encoded) -> Label:
        return self.observer.label(item)

    def attention_maps(self, batch: Sequence[Encoded], *, gradients: bool = False) -> Iterator[AttentionMaps]:
        """Yield all attention of each example, one at a time (they are large), and gradients if requested."""
        self._allow("attention_maps")
        look, prior = self.observer.model.attention_maps, self.observer.prior
        pairs = ((item, self.label(item)) for item in batch)
        return (look(item, to.place, to.labels, gradients=gradients, prior=prior(item)) for item, to in pairs)

    def embeddings(self, batch: Sequence[Encoded]) -> Iterator[EmbeddedText]:
        """Yield the target's log-odds, and their gradient, at any embeddings of the tokens of units, per example."""
        self._allow("embeddings")
        look, prior = self.observer.model.embedded, self.observer.prior
        pairs = ((item, self.label(item)) for item in batch)
        return (look(item, to.place, to.labels, prior=prior(item)) for item, to in pairs)

    @property
    def chat(self) -> bool:
        """True if prompts of `generate` are turns of a chat."""
        return self.observer.chat

    def generate(
        self,
        prompts: Sequence[str],
        *,
        turns: Sequence[tuple[str, str]] = (),
        max_tokens: int,
        stop: str | None = None,
    ) -> list[Generated]:
        """Return the model's completion of each prompt, the likeliest token at every step.

        In a chat a prompt is the turn of a user, after `turns` (role and text); else it is plain text. Answers end
        before `stop`, and after `max_tokens`.
        """
        self._allow("generate")
        turns_before = turns if self.chat else None
        return self.observer.model.generate(prompts, turns=turns_before, max_tokens=max_tokens, stop=stop)

    def note(self, item: Encoded, answer: Answer) -> None:
        """Store the model's answer about an example, and the reason if it explains nothing."""
        self.answers[item.example_id] = answer

    def rng(self, item: Encoded) -> np.random.Generator:
        """Return random numbers that belong to this attribution and this example."""
        return rng_for(self.seed, item.example_id, f"attribution:{self.name}")

    def _allow(self, need: str) -> None:
        if need not in self.needs:
            raise TypeError(f"the attribution '{self.name}' did not declare needs={{'{need}'}}")


@dataclass(frozen=True, kw_only=True)
class Attribution(ABC):
    """A method that gives every unit a number. Its fields are its configuration."""

    needs: ClassVar[frozenset[str]] = frozenset()
    units: ClassVar[tuple[Unit, ...]] = ("token", "word", "sentence", "passage")
    """Units that it can give numbers to."""
    signed: ClassVar[bool] = False
    """True if negative numbers count against the explained label, so that support and magnitude rank differently."""
    user_supplied: ClassVar[bool] = False
    """True if the numbers come from the user, so that a run folder must be checked to hold the same."""

    @property
    def has_signs(self) -> bool:
        """True if numbers may be negative against the label: those of signed methods, and of users."""
        return self.signed or self.user_supplied

    @property
    def sized(self) -> bool:
        """True if its rationale has its own size, the units with a positive number, whatever k."""
        return False

    @property
    def operator(self) -> str:
        """Operator on units that `lens.values` does not keep; a field where users choose."""
        return "delete"

    def n_probes(self, n_units: int) -> int:
        """Return the number of rows that the method requests from `lens.values`, for the progress of a run."""
        return 0

    def remark(self, n_units: Sequence[int]) -> str | None:
        """Return a note for the user before it explains texts of so many units."""
        return None

    @property
    def passes(self) -> int:
        """Return forward passes per example beside the shared observation; a backward pass counts as two."""
        return 0

    def check(self, lens: Lens, item: Encoded) -> None:
        """Try the method on one example before anything is written; methods that use no model need no trial.

        Any exception stops the run, such as `ConfigError` for a layer beyond the last. Methods with many passes
        override this with a shorter trial.
        """
        if self.needs - OF_EVERY_MODEL and "values" not in self.needs:
            self.attribute(lens, [item])

    @abstractmethod
    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        """Return one array per example: the importance of each unit."""


def one_per_unit(name: str, item: Encoded, values: PerUnit, *, advice: str = "") -> PerUnit:
    """Return the values if there is one for every unit; else raise an error with the units and the advice."""
    if values.shape != (item.n_units,):
        raise DataError(
            f"the attribution '{name}' gave {values.size} numbers for example '{item.example_id}', which has "
            f"{item.n_units} units: {' | '.join(item.texts[:20])}{' …' if item.n_units > 20 else ''}{advice}"
        )
    return values


attributions: Registry[type[Attribution]] = Registry("attribution", "ice_eval.attributions")


def attribution(name: str, *, needs: set[str] | None = None) -> Callable[[_Class], _Class]:
    """Register an attribution class with its `NEEDS`."""
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
    """Return the name and the settings of a method as JSON can hold them; other values by their type."""
    # A user-supplied method is just its class: its numbers are in the folder themselves.
    name = next((name for name, known in attributions.items() if known is type(method)), type(method).__name__)
    chosen = {} if method.user_supplied else {each.name: getattr(method, each.name) for each in fields(method)}
    plain: dict[str, Any] = json.loads(json.dumps(chosen, default=lambda value: type(value).__name__))
    return {"method": name, **plain}


def check_number(option: str, value: int, *, most: int = MOST_PROBES) -> None:
    """Raise ConfigError for a number of probes, points or words that is 0 or less, or that no array holds."""
    if value < 1:
        raise ConfigError(f"{option} = {value}; at least 1 is needed.")
    if value > most:
        raise ConfigError(f"{option} = {value}: at most {most:,} is possible.")


def method_of(spec: str) -> Attribution:
    """Return the attribution that `NAME` or `NAME:option=value:option=value` names; options are its fields."""
    return from_spec(spec, attributions)
