"""F-Fidelity (Zheng et al., 2025): a run's tests repeated on a copy of its classifier adapted to removed units.

Removing units makes inputs that a model was not trained on, so its answers may reflect odd inputs more than the
explanation. The copy is fine-tuned on such inputs; the tests show if the results hold for it.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ice_eval.attributions import Given, method_of
from ice_eval.errors import ConfigError, ModelError
from ice_eval.models import Labels, Model
from ice_eval.operators import Operator
from ice_eval.pipeline import Adapted, Reporter, Silent, TextSubject, examples_read, finish, prepare, score
from ice_eval.pipeline.engine import Engine
from ice_eval.pipeline.manifest import identity
from ice_eval.pipeline.subject import Pool
from ice_eval.rationales import DYNAMIC, keep_mask, set_size
from ice_eval.records import NO_IDS, Encoded, Example, Inputs
from ice_eval.results import InputRow, RunFolder
from ice_eval.results.records import Adaptation
from ice_eval.scoring import Scorer
from ice_eval.seeding import rng_for
from ice_eval.settings import RunConfig
from ice_eval.tasks import Task

if TYPE_CHECKING:
    from ice_eval.models.classifier import SequenceClassifier

TRAINING_ROWS = 2000
"""Largest number of examples that a copy is trained on."""
_ENOUGH = 32
"""With fewer other examples, evaluated ones are used for training too."""
_SAME = ("weights", "dtype", "data", "chat", "system", "prompt", "lexicon")
"""Parts of model, task and data that must equal those of the run."""
_PURPOSE = "f-fidelity"
_WEIGHT_DECAY, _LARGEST_GRADIENT = 0.01, 1.0


@dataclass(frozen=True, kw_only=True)
class Training:
    """Settings of the fine-tuning."""

    share: float
    """Largest share of units removed from an input; shares are drawn uniformly from 0 to this."""
    epochs: int = 3
    lr: float = 5e-5
    batch_size: int = 16
    seed: int = 0
    """Defines the order of the examples, the removed units, and the dropout."""

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} = {getattr(self, name)}: at least 1 is needed.")
        if not 0 < self.share <= 1:
            raise ConfigError(f"share = {self.share}: a share of units above 0 and at most 1 is expected, e.g. 0.8.")
        if not 0 < self.lr < 1:
            raise ConfigError(f"lr = {self.lr}: a learning rate between 0 and 1 is expected, such as 5e-5.")


class TrainingExample(NamedTuple):
    """An example with its label."""

    item: Encoded
    label: int


@dataclass(frozen=True)
class Removal:
    """Removes random units of an example by a random one of a run's operators."""

    operators: Mapping[str, Operator]
    pool: Pool | None
    """None if no operator writes fills."""
    share: float
    seed: int

    def from_item(self, item: Encoded, epoch: int) -> Inputs:
        """Return the input of an epoch; its fills are not those of any test."""
        rng = rng_for(self.seed, item.example_id, _PURPOSE, epoch)
        usable, n_units = self._usable(item), item.n_units
        operator = usable[rng.integers(len(usable))]
        most = n_units - set_size(n_units, 1 - self.share)
        kept = rng.choice(n_units, n_units - int(rng.integers(most + 1)), replace=False)
        fills = self.pool.draw(item, rng).ids if self.pool is not None and operator.needs_fills else NO_IDS
        mask = keep_mask(tuple(sorted(int(unit) for unit in kept)), n_units)
        return operator.build(item, mask[None], fills=fills)

    def can_remove(self, item: Encoded) -> bool:
        """Return True if the example has two units, and the run an operator that can remove one."""
        return item.n_units > 1 and bool(self._usable(item))

    def _usable(self, item: Encoded) -> list[Operator]:
        fillable = self.pool is not None and self.pool.can_fill(item)
        return [operator for operator in self.operators.values() if fillable or not operator.needs_fills]


def trainable(model: Model) -> "SequenceClassifier":
    """Return the model; raise ConfigError unless it is a sequence classifier whose weights can be trained."""
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


def adapt(
    model: Model,
    labels: Labels,
    examples: Sequence[TrainingExample],
    *,
    removal: Removal,
    training: Training,
    progress: Callable[[int], None] = lambda rows: None,
) -> tuple["SequenceClassifier", list[float]]:
    """Fine-tune a copy of a classifier on inputs with units removed; return it and the mean loss of every epoch.

    The loss is the cross-entropy over `labels`; `progress` is called with the number of rows just trained on. Raises
    ModelError if training diverges.
    """
    import torch

    deployed, losses = trainable(model), []
    # Half-precision weights would round off the small steps of training.
    copy = deployed.copied(name=deployed.name, dtype="float32")
    weights = [each.requires_grad_(True) for each in copy.model.parameters()]
    optimizer = torch.optim.AdamW(weights, lr=training.lr, weight_decay=_WEIGHT_DECAY)
    with torch.random.fork_rng(devices=[copy.device] if copy.device.startswith("cuda") else []), torch.enable_grad():
        torch.manual_seed(training.seed)
        copy.model.train(True)
        for epoch in range(training.epochs):
            total = 0.0
            order = rng_for(training.seed, _PURPOSE, "order", epoch).permutation(len(examples))
            for start in range(0, len(order), training.batch_size):
                batch = [examples[index] for index in order[start : start + training.batch_size]]
                inputs = Inputs.join([removal.from_item(each.item, epoch) for each in batch])
                scores = copy.trainable_scores(inputs, labels)
                right = torch.tensor([each.label for each in batch], device=scores.device)
                loss = torch.nn.functional.cross_entropy(scores, right)
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_(weights, _LARGEST_GRADIENT)
                optimizer.step()
                total += loss.item() * len(batch)
                progress(len(batch))
            losses.append(total / len(examples))
    if not np.isfinite(losses).all():
        raise ModelError(f"training diverged (losses {losses}); give a smaller --lr than {training.lr:g}.")
    copy.model.requires_grad_(False)
    return copy.copied(name=f"{deployed.name}+{_PURPOSE}", dtype=deployed.dtype), losses


def f_fidelity(
    run: RunFolder,
    *,
    model: Model,
    task: Task,
    out: Path,
    share: float | None = None,
    training: Mapping[str, Any] | None = None,
    save_model: Path | None = None,
    reporter: Reporter | None = None,
) -> RunFolder:
    """Adapt a copy of a run's model, and repeat the run's tests on it: same explanations, targets, sets and fills.

    `share` is the largest share of units that training removes, by default the largest that the run's tests remove;
    `training` holds further fields of `Training`. The copy is written to `save_model`, or discarded.
    """
    reporter = reporter or Silent()
    require_adaptable(run)
    manifest = run.manifest()
    config = RunConfig(**{each.name: getattr(manifest.config, each.name) for each in fields(RunConfig)})
    if config.adaptive == "dataset":  # a pilot chose the number of random sets: they are as many again
        config = replace(config, adaptive=None)
    settings = Training(share=_removed(run) if share is None else share, **(training or {}))
    deployed = trainable(model)
    if save_model is not None and save_model.exists() and (not save_model.is_dir() or any(save_model.iterdir())):
        raise ConfigError(f"{save_model} already exists; choose a --save-model that is empty or new.")
    n_read = examples_read(config.n)
    read = task.examples(limit=max(config.n + TRAINING_ROWS, n_read))
    examples = read[:n_read]
    _check_same(run, config, deployed, task, examples)
    rows = [row for part in run.parts() for row in run.inputs(part)]
    budget, own_size = manifest.token_budget, manifest.config.own_size
    assert budget is not None, "a run of a classifier has a budget"
    methods = {name: _stored(name, rows, own_size=name in own_size) for name in config.attributions}
    engine = prepare(config, deployed, TextSubject(task), methods, examples)
    data = _training_data(engine, settings, read, budget=budget)
    _check_out(out, data.description)
    copy, record = _trained(engine, data, reporter)
    record |= {"of": deployed.name, "weights": deployed.fingerprint, "run": str(run.path)}
    targets = {row.example_id: row.target for row in rows if row.target is not None}
    adapted = Adapted(how=data.description, targets=targets, record=Adaptation(**record))
    given: dict[str, Any] = {"subject": TextSubject(task), "examples": examples, "attributions": methods}
    given |= {"token_budget": budget, "out": out, "reporter": reporter, "adapted": adapted}
    folder = finish(score(config, model=copy, **given))
    if save_model is not None:
        copy.model.save_pretrained(save_model)
        copy.codec.tokenizer.save_pretrained(save_model)
    return folder


def require_adaptable(run: RunFolder) -> None:
    """Raise ConfigError for an unfinished run, or one with quantised weights, before its model is loaded."""
    run.require_complete()
    load_in = run.manifest().identity.get("load_in")
    if load_in is not None:
        raise ConfigError(
            f"{run.path} is a run of a model with quantised weights (--load-in {load_in}), which cannot be trained; "
            "evaluate the model without --load-in first."
        )


def _removed(run: RunFolder) -> float:
    """Return the largest share of units that the tests of a run remove; 1 if rationales set their own size."""
    config = run.manifest().config
    known = [k for k in config.k if k != DYNAMIC]
    if config.own_size or len(known) < len(config.k):
        return 1.0
    return float(max({"sufficiency": 1 - min(known), "necessity": max(known)}[each] for each in config.directions))


def _check_same(run: RunFolder, config: RunConfig, model: Model, task: Task, examples: Sequence[Example]) -> None:
    stored = run.manifest().identity
    info = {"id": model.name, "fingerprint": model.fingerprint, "dtype": model.dtype, "load_in": model.load_in}
    given = identity(config, model=info, subject=TextSubject(task), examples=examples)
    differ = [name for name in _SAME if stored.get(name) != given[name]]
    if differ:
        raise ConfigError(
            f"{run.path} is a run with other {', '.join(differ)}: give --model, --task, --data, --prompt, --labels and "
            "--explain as they were in that run."
        )


def _check_out(out: Path, description: str) -> None:
    """Raise ConfigError before the training if the folder holds something else."""
    folder = RunFolder(out)
    if folder.is_foreign:
        raise ConfigError(f"{out} exists but is not a run folder; choose an --out that is empty or new.")
    if not folder.is_new:
        stored = RunFolder.existing(out).manifest().identity.get("adaptation")
        if stored != description:
            was = "a run of no adapted model" if stored is None else f"a run of a model adapted otherwise ({stored})"
            raise ConfigError(f"{out} holds {was}, and this one is adapted with {description}; choose another --out.")


def _stored(name: str, rows: Sequence[InputRow], *, own_size: bool) -> Given:
    """Return a stored attribution, ranked as its method ranks; those of skipped examples are unused."""
    values = {row.example_id: row.attributions.get(name, np.zeros(len(row.spans))) for row in rows}
    try:
        has_signs = method_of(name).has_signs
    except ConfigError:  # user-supplied ones may have signs
        has_signs = True
    return Given(values=values, has_signs=has_signs, sized=own_size)


class _TrainingData(NamedTuple):
    settings: Training
    examples: Sequence[TrainingExample]
    removal: Removal
    evaluated: bool
    """True if evaluated examples are among them."""

    @property
    def description(self) -> str:
        """One line that distinguishes this training from others."""
        settings, which = self.settings, "evaluated" if self.evaluated else "other"
        return (
            f"epochs {settings.epochs}, {len(self.examples)} {which} examples, up to {100 * settings.share:.0f} % "
            f"removed by {', '.join(self.removal.operators)}, lr {settings.lr:g}, batches of {settings.batch_size}, "
            f"seed {settings.seed}"
        )


def _training_data(engine: Engine, settings: Training, read: Sequence[Example], *, budget: int) -> _TrainingData:
    """Choose examples that share neither text nor passage with evaluated ones, or all if these are too few.

    Labels are the gold ones, or the deployed model's predictions if the data have none.
    """
    evaluated, further = read[: engine.config.n], read[engine.config.n :]
    texts = {tuple(sorted(example.fields.items())) for example in evaluated}
    groups = {example.group for example in evaluated} - {None}
    others = [e for e in further if tuple(sorted(e.fields.items())) not in texts and e.group not in groups]
    enough = len(others) >= _ENOUGH
    removal = Removal(engine.operators, engine.pool, settings.share, settings.seed)
    chosen = (others if enough else [*others, *evaluated])[:TRAINING_ROWS]
    golds = {example.id: example.gold for example in chosen}
    items = [item for item in map(engine.encode, chosen) if removal.can_remove(item)]
    if not items:
        raise ConfigError("no example has a unit that could be removed, so there is nothing to train on.")
    unknown = [item for item in items if golds[item.example_id] is None]
    scorer = Scorer(engine.model, engine.scorer.labels, budget=budget)
    scores = scorer.score(Inputs.join([item.full() for item in unknown]))
    golds |= {item.example_id: int(np.argmax(row)) for item, row in zip(unknown, scores, strict=True)}
    labelled = [TrainingExample(item, gold) for item in items if (gold := golds[item.example_id]) is not None]
    return _TrainingData(settings, labelled, removal, not enough)


def _trained(engine: Engine, data: _TrainingData, reporter: Reporter) -> "tuple[SequenceClassifier, dict[str, Any]]":
    """Return the adapted copy, and the record of its training for the manifest."""
    reporter.say(f"training a copy of {engine.model.name}: {data.description}.")
    if data.evaluated:
        reporter.say(
            f"the data hold fewer than {_ENOUGH} other examples, so the copy is trained on those that are evaluated "
            "too: it may have memorised their labels."
        )
    started, settings, removal, labels = time.monotonic(), data.settings, data.removal, engine.scorer.labels
    reporter.start(len(data.examples) * settings.epochs)
    try:
        progress = reporter.advance
        copy, losses = adapt(engine.model, labels, data.examples, removal=removal, training=settings, progress=progress)
    finally:
        reporter.stop()
    reporter.say(f"loss by epoch: {', '.join(f'{loss:.3f}' for loss in losses)}.")
    return copy, {
        **vars(settings),
        "operators": tuple(removal.operators),
        "rows": len(data.examples),
        "rows_evaluated": data.evaluated,
        "losses": tuple(round(loss, 6) for loss in losses),
        "seconds": round(time.monotonic() - started, 1),
    }
