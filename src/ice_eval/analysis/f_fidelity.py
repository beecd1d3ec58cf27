"""F-Fidelity (Zheng et al., 2025): a copy of a classifier that has learnt to read inputs with units removed.

Removing units makes inputs that a model was not trained on, so its answers to them may tell more about odd inputs than
about the explanation. The copy has seen such inputs; whether the same tests come out the same on it is the question.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ice_eval.errors import ConfigError, ModelError
from ice_eval.models import Labels, Model
from ice_eval.operators import FillPool, Operator
from ice_eval.rationales import keep_mask, set_size
from ice_eval.records import Encoded, Fills, Inputs
from ice_eval.seeding import rng_for

if TYPE_CHECKING:
    from ice_eval.models.classifier import SequenceClassifier

_PURPOSE = "f-fidelity"
_WEIGHT_DECAY = 0.01
_LARGEST_GRADIENT = 1.0
_NO_FILLS: Fills = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class Training:
    """How a copy is adapted."""

    share: float
    """Share of units that may be removed from an input: from none to this, uniformly."""
    epochs: int = 3
    lr: float = 5e-5
    batch_size: int = 16
    seed: int = 0
    """Defines the order of the examples, what is removed, and the dropout."""

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} = {getattr(self, name)}: at least 1 is needed.")
        if not 0 < self.share <= 1:
            raise ConfigError(f"share = {self.share}: a share of units is expected, above 0 and at most 1, as 0.8.")
        if not 0 < self.lr < 1:
            raise ConfigError(f"lr = {self.lr}: a learning rate between 0 and 1 is expected, as 5e-5.")


class Lesson(NamedTuple):
    """An example to train on, and its label."""

    item: Encoded
    label: int


@dataclass(frozen=True)
class Removal:
    """Removes random units of an example by one of a run's operators, whichever is drawn."""

    operators: Mapping[str, Operator]
    pool: FillPool | None
    """None where no operator writes fills."""
    share: float
    seed: int

    def from_item(self, item: Encoded, epoch: int) -> Inputs:
        """The input that a lesson shows; its fills are not those that any test sees."""
        rng = rng_for(self.seed, item.example_id, _PURPOSE, epoch)
        act = self._usable(item)[rng.integers(len(self._usable(item)))]
        n_units = item.n_units
        most = n_units - set_size(n_units, 1 - self.share)
        kept = rng.choice(n_units, n_units - int(rng.integers(most + 1)), replace=False)
        fills = self.pool.draw(item, rng).ids if self.pool is not None and act.needs_fills else _NO_FILLS
        mask = keep_mask(tuple(sorted(int(unit) for unit in kept)), n_units)
        return act.build(item, mask[None], fills=fills)

    def can_teach(self, item: Encoded) -> bool:
        """Whether there is something to remove, and an operator that can."""
        return item.n_units > 1 and bool(self._usable(item))

    def _usable(self, item: Encoded) -> list[Operator]:
        fillable = self.pool is not None and self.pool.can_fill(item)
        return [act for act in self.operators.values() if fillable or not act.needs_fills]


def adapt(
    model: Model,
    labels: Labels,
    lessons: Sequence[Lesson],
    *,
    removal: Removal,
    training: Training,
    progress: Callable[[int], None] = lambda rows: None,
) -> tuple["SequenceClassifier", list[float]]:
    """A copy of a classifier, fine-tuned on inputs with units removed; the classifier itself is left as it was.

    Args:
        model: A sequence classifier.
        labels: What it is asked for; the loss is the cross-entropy over these.
        lessons: The examples.
        removal: What is removed from them.
        training: How long, and how fast.
        progress: Called with the number of rows just trained on.

    Returns:
        The copy, and the mean loss of every epoch.

    Raises:
        ConfigError: The model is no sequence classifier.
        ModelError: Training diverged.
    """
    import torch

    deployed = trainable(model)
    # Half-precision weights would swallow the small steps of training.
    copy = deployed.copied(name=deployed.name, dtype="float32")
    weights = [each.requires_grad_(True) for each in copy.model.parameters()]
    optimizer = torch.optim.AdamW(weights, lr=training.lr, weight_decay=_WEIGHT_DECAY)
    losses = []
    with torch.random.fork_rng(devices=[copy.device] if copy.device.startswith("cuda") else []), torch.enable_grad():
        torch.manual_seed(training.seed)
        copy.model.train(True)
        for epoch in range(training.epochs):
            total = 0.0
            for batch in _batches(lessons, training, epoch):
                scores = copy.trainable_scores(
                    Inputs.join([removal.from_item(lesson.item, epoch) for lesson in batch]), labels
                )
                right = torch.tensor([lesson.label for lesson in batch], device=scores.device)
                loss = torch.nn.functional.cross_entropy(scores, right)
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_(weights, _LARGEST_GRADIENT)
                optimizer.step()
                total += loss.item() * len(batch)
                progress(len(batch))
            losses.append(total / len(lessons))
    if not np.isfinite(losses).all():
        raise ModelError(f"training diverged (losses {losses}); give a smaller --lr than {training.lr:g}.")
    copy.model.requires_grad_(False)
    return copy.copied(name=f"{deployed.name}+{_PURPOSE}", dtype=deployed.dtype), losses


def trainable(model: Model) -> "SequenceClassifier":
    """The model, if it can be adapted.

    Raises:
        ConfigError: It is no sequence classifier of transformers, or its weights cannot be trained.
    """
    from ice_eval.models.classifier import SequenceClassifier

    if not isinstance(model, SequenceClassifier):
        raise ConfigError(
            f"'{model.name}' cannot be adapted: F-Fidelity fine-tunes a copy of a sequence classifier of transformers "
            "(…ForSequenceClassification), and neither language models nor functions."
        )
    if model.quantised is not None or model.is_spread:
        raise ConfigError(
            f"'{model.name}' cannot be adapted: F-Fidelity fine-tunes a copy, which takes weights that are not "
            "quantised and lie on one device."
        )
    return model


def _batches(lessons: Sequence[Lesson], training: Training, epoch: int) -> Iterator[list[Lesson]]:
    order = rng_for(training.seed, _PURPOSE, "order", epoch).permutation(len(lessons))
    for start in range(0, len(order), training.batch_size):
        yield [lessons[index] for index in order[start : start + training.batch_size]]
