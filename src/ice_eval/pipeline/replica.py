"""A model where it computes, and what a run asks of it there. A run has one, or several that are alike."""

import itertools
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ice_eval.attributions import OF_EVERY_MODEL, Attribution, Lens, Observer
from ice_eval.attributions import attributions as attribution_registry
from ice_eval.encoding import shared_prefix
from ice_eval.errors import CapabilityError, IceError, ModelError
from ice_eval.models import Model
from ice_eval.pipeline.engine import Engine
from ice_eval.pipeline.noise import noise_guard
from ice_eval.pipeline.part import PartInFlight, start_part
from ice_eval.pipeline.prepare import prepare
from ice_eval.records import Example, Inputs
from ice_eval.results.examples import InputRow
from ice_eval.results.ledger import Ledger
from ice_eval.scoring import Progress, Scorer
from ice_eval.settings import RunConfig
from ice_eval.tasks import Task

_CHECKED_EXAMPLES = 2
_TRIED_EXAMPLES = 16
"""The shortest of these is tried."""


class Card(NamedTuple):
    """What a run notes of its model."""

    name: str
    fingerprint: str
    dtype: str
    load_in: str | None
    places: str
    """Where the weights lie."""
    budget: int
    """Tokens per batch that suit the device."""
    part_size: int
    """Examples of a part."""

    @property
    def identity(self) -> dict[str, str | None]:
        """What of the model defines rows."""
        return {"id": self.name, "fingerprint": self.fingerprint, "dtype": self.dtype, "load_in": self.load_in}


@dataclass(frozen=True, kw_only=True)
class Order:
    """A run as a replica must know it, whatever process it lives in."""

    config: RunConfig
    task: Task
    examples: Sequence[Example] = field(repr=False)
    """Those to evaluate, and those that fill the pool of infill."""
    attributions: Mapping[str, Attribution] = field(repr=False)
    budget: int
    """Tokens per batch."""
    part_size: int
    """Examples of a part; a run that is continued keeps it."""
    lowered: Mapping[int, int]
    """Smaller budgets for rows of some lengths."""
    threads: int | None
    targets: Mapping[str, int] | None = field(repr=False)
    """Labels to explain, by example id, where the run of another model decided them."""
    weights: str
    """Fingerprint of the weights that the run is of."""
    checked: tuple[str, ...] | None = None
    """What the check of the model said, once one replica did it."""
    key: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Tells this order from others."""


@dataclass(frozen=True)
class Part:
    """Consecutive examples, and what the folder holds of them."""

    index: int
    config: RunConfig
    """What is asked for: a pilot asks for fewer sets than its run."""
    examples: Sequence[Example]
    inputs: Sequence[InputRow]
    ledger: Ledger


class Replica:
    """A model, and what it needs for the order at hand."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._card: Card | None = None
        self._engine: tuple[str, Engine] | None = None
        self._checked: tuple[str, tuple[str, ...]] | None = None

    def card(self) -> Card:
        """What the model is; the weights are read through once."""
        if self._card is None:
            model = self.model
            self._card = Card(
                name=model.name,
                fingerprint=model.fingerprint,
                dtype=model.dtype,
                load_in=model.load_in,
                places=model.devices,
                budget=model.default_budget(),
                part_size=model.part_size,
            )
        return self._card

    def engine(self, order: Order) -> Engine:
        """All that an order names, put together once."""
        if self._engine is None or self._engine[0] != order.key:
            engine = prepare(order.config, self.model, order.task, order.attributions, order.examples)
            scorer = Scorer(self.model, engine.scorer.labels, budget=order.budget, lowered=order.lowered)
            self._engine = order.key, replace(engine, scorer=scorer, targets=order.targets)
        return self._engine[1]

    def checked(self, order: Order) -> tuple[str, ...]:
        """Compare fast and plain scores on a few rows, once, before anything depends on them, and say what was found.

        Raises:
            ModelError: The weights are not those of the run, or another replica found otherwise.
        """
        if self._checked is None or self._checked[0] != order.key:
            if self.card().fingerprint != order.weights:
                raise ModelError(
                    f"a worker has other weights of '{self.model.name}' than the run; give all of them the same files."
                )
            self.model.use_threads(order.threads)
            self._checked = order.key, tuple(_check_model(self.engine(order), order.examples[: order.config.n]))
        found = self._checked[1]
        if order.checked is not None and found != order.checked:
            raise ModelError(
                f"workers compute '{self.model.name}' in different ways (one says: {' '.join(found) or 'nothing'}; "
                f"another: {' '.join(order.checked) or 'nothing'}); use machines of one kind."
            )
        return found

    def try_attributions(self, order: Order, done: Collection[str]) -> None:
        """Every attribution looks at one short example: what it cannot do with this model stops the run here.

        Raises:
            CapabilityError: The model does not show what an attribution needs.
            ConfigError: An option is out of the model's range.
        """
        engine = self.engine(order)
        first = order.examples[: order.config.n][:_TRIED_EXAMPLES]
        items = [item for item in map(engine.encode, first) if item.n_units > 1]
        if not items:
            return
        item = min(items, key=lambda each: len(each.ids))
        for name, method in engine.attributions.items():
            if name in done:
                continue
            needs, targets = method.needs - OF_EVERY_MODEL, {item.example_id: 0}
            observer = Observer(engine.model, engine.scorer.labels, targets, needs, chat=engine.in_turns)
            try:
                method.check(Lens(observer, method.needs, engine.config.seed, name, engine.data), item)
            except IceError as exc:
                if not isinstance(exc, CapabilityError):
                    raise
                raise _unable(name, engine.model, str(exc)) from exc
            except Exception as exc:  # models fail in their own ways when they are asked for what they do not foresee
                told = str(exc).strip().partition("\n")[0]
                raise _unable(name, engine.model, f"{type(exc).__name__}: {told}") from exc

    def start(self, order: Order, part: Part, progress: Progress) -> PartInFlight:
        """Send what is missing of a part to the model."""
        self.checked(order)
        engine = replace(self.engine(order), config=part.config)
        return start_part(engine, part.examples, part.inputs, part.ledger, progress)

    def notes(self) -> list[str]:
        """What a user should know of how the model is used."""
        return list(self.model.notes)

    def peak_memory(self) -> int | None:
        return self.model.peak_memory()

    def noise(self, order: Order, ledger: Ledger) -> dict[str, Any] | None:
        """Return how far scores move when their rows are scored alone."""
        return noise_guard(self.model, self.engine(order).scorer.labels, ledger, seed=order.config.seed)


def _check_model(engine: Engine, examples: Sequence[Example]) -> list[str]:
    evaluated = (item for item in map(engine.encode, examples) if item.n_units > 1)
    items = list(itertools.islice(evaluated, _CHECKED_EXAMPLES))
    if not items:
        return []
    rows = Inputs.join([row for item in items for row in (item.full(), item.empty())])
    return engine.model.check(rows, engine.scorer.labels, prefix=shared_prefix(items))


def _unable(name: str, model: Model, why: str) -> CapabilityError:
    probing = [known for known, method in attribution_registry.items() if "values" in method.needs]
    return CapabilityError(
        f"the attribution '{name}' does not work with the model '{model.name}' ({why.rstrip('.')}). Those that need "
        f"nothing but scores work with every model: {', '.join(probing)}."
    )
