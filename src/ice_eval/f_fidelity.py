"""The tests of a finished run again, on a copy of its model that was adapted to inputs with units removed."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ice_eval.analysis.f_fidelity import Lesson, Removal, Training, adapt, trainable
from ice_eval.attributions import Given, method_of
from ice_eval.errors import ConfigError
from ice_eval.models import Model
from ice_eval.pipeline import Adapted, Reporter, Silent, examples_read, finish, prepare, score
from ice_eval.pipeline.engine import Engine
from ice_eval.pipeline.identity import identity
from ice_eval.rationales import DYNAMIC
from ice_eval.records import Example, Inputs
from ice_eval.results import InputRow, RunFolder
from ice_eval.results.records import Adaptation
from ice_eval.scoring import Scorer
from ice_eval.settings import RunConfig
from ice_eval.tasks import Task

if TYPE_CHECKING:
    from ice_eval.models._hf_classifier import SequenceClassifier

TRAINING_ROWS = 2000
"""Examples that a copy is trained on, at most."""
_ENOUGH = 32
"""With fewer other examples than this, those that are evaluated are trained on too."""
_SAME = ("weights", "dtype", "data", "chat", "system", "prompt", "lexicon")
"""What of model, task and data must be as the run has it."""


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
    """Adapt a copy of a run's model, and do the run's tests on it: same explanations, targets, random sets and fills.

    Args:
        run: A finished run of a sequence classifier.
        model: Its model.
        task: Its task.
        out: The folder of the new run.
        share: Share of units that training may remove; by default as much as the run's tests remove.
        training: Further fields of `Training`.
        save_model: Where to write the copy, if anywhere.
        reporter: Gets progress and messages.

    Raises:
        ConfigError: The run is of another model, task or data, the model cannot be adapted, or a folder is taken.
    """
    reporter = reporter or Silent()
    require_adaptable(run)
    manifest, config = run.manifest(), _config_of(run)
    plan = Training(share=_removed(run) if share is None else share, **(training or {}))
    deployed = trainable(model)
    _check_free(save_model)
    n_read = examples_read(config.n)
    read = task.examples(limit=max(config.n + TRAINING_ROWS, n_read))
    examples = read[:n_read]
    _check_same(run, config, deployed, task, examples)
    rows = [row for part in run.parts() for row in run.inputs(part)]
    own_size, budget = manifest.config.own_size, manifest.token_budget
    assert budget is not None, "a run of a classifier has a budget"
    methods = {name: _stored(name, rows, own_size=name in own_size) for name in config.attributions}
    engine = prepare(config, deployed, task, methods, examples)
    school = _school(engine, plan, read, budget=budget)
    _check_out(out, school.how)
    copy, outcome = _trained(engine, school, reporter)
    adapted = Adapted(
        how=school.how,
        targets={row.example_id: row.target for row in rows if row.target is not None},
        record=Adaptation(of=deployed.name, weights=deployed.fingerprint, run=str(run.path), **outcome),
    )
    scored = score(
        config,
        model=copy,
        task=task,
        examples=examples,
        attributions=methods,
        out=out,
        token_budget=budget,
        reporter=reporter,
        adapted=adapted,
    )
    folder = finish(scored)
    if save_model is not None:
        copy.model.save_pretrained(save_model)
        copy.codec.tokenizer.save_pretrained(save_model)
    return folder


def require_adaptable(run: RunFolder) -> None:
    """Refuse a run whose model no copy can be trained of, before that model is loaded.

    Raises:
        ConfigError: The run is not finished, or its weights were quantised: those of a copy would be others.
    """
    run.require_complete()
    load_in = run.manifest().identity.get("load_in")
    if load_in is not None:
        raise ConfigError(
            f"{run.path} is a run of a model with quantised weights (--load-in {load_in}), which cannot be trained; "
            "evaluate the model without --load-in first."
        )


@dataclass(frozen=True)
class _School:
    """All that a copy is trained with."""

    plan: Training
    lessons: Sequence[Lesson]
    removal: Removal
    evaluated: bool
    """Whether examples that are evaluated are among the lessons."""

    @property
    def how(self) -> str:
        """One line that tells this training from others."""
        plan, which = self.plan, "evaluated" if self.evaluated else "other"
        return (
            f"epochs {plan.epochs}, {len(self.lessons)} {which} examples, up to {100 * plan.share:.0f} % removed by "
            f"{', '.join(self.removal.operators)}, lr {plan.lr:g}, batches of {plan.batch_size}, seed {plan.seed}"
        )


def _school(engine: Engine, plan: Training, read: Sequence[Example], *, budget: int) -> _School:
    """Lessons from examples that are not evaluated, or from all where these are too few."""
    evaluated = read[: engine.config.n]
    others = _others(evaluated, read[engine.config.n :])
    enough = len(others) >= _ENOUGH
    removal = Removal(engine.operators, engine.pool, plan.share, plan.seed)
    pupils = (others if enough else [*others, *evaluated])[:TRAINING_ROWS]
    return _School(plan, _lessons(engine, removal, pupils, budget=budget), removal, not enough)


def _trained(engine: Engine, school: _School, reporter: Reporter) -> "tuple[SequenceClassifier, dict[str, Any]]":
    """The adapted copy, and what the manifest says of its training."""
    reporter.say(f"training a copy of {engine.model.name}: {school.how}.")
    if school.evaluated:
        reporter.say(
            f"the data hold fewer than {_ENOUGH} other examples, so the copy is trained on those that are evaluated "
            "too: it may know their labels by heart."
        )
    started = time.monotonic()
    reporter.start(len(school.lessons) * school.plan.epochs)
    try:
        copy, losses = adapt(
            engine.model,
            engine.scorer.labels,
            school.lessons,
            removal=school.removal,
            training=school.plan,
            progress=reporter.advance,
        )
    finally:
        reporter.stop()
    reporter.say(f"loss by epoch: {', '.join(f'{loss:.3f}' for loss in losses)}.")
    return copy, {
        **vars(school.plan),
        "operators": tuple(school.removal.operators),
        "rows": len(school.lessons),
        "rows_evaluated": school.evaluated,
        "losses": tuple(round(loss, 6) for loss in losses),
        "seconds": round(time.monotonic() - started, 1),
    }


def _config_of(run: RunFolder) -> RunConfig:
    """The configuration of a run; where a pilot chose the number of random sets, they are as many again."""
    stored = run.manifest().config
    found = RunConfig(**{each.name: getattr(stored, each.name) for each in fields(RunConfig)})
    return replace(found, adaptive=None) if found.adaptive == "dataset" else found


def _removed(run: RunFolder) -> float:
    """The largest share of units that the tests of a run remove; 1 where rationales choose their own size."""
    config = run.manifest().config
    known = [k for k in config.k if k != DYNAMIC]
    if config.own_size or len(known) < len(config.k):
        return 1.0
    shares = {"sufficiency": 1 - min(known), "necessity": max(known)}
    return float(max(shares[direction] for direction in config.directions))


def _check_same(run: RunFolder, config: RunConfig, model: Model, task: Task, examples: Sequence[Example]) -> None:
    stored = run.manifest().identity
    card = {"id": model.name, "fingerprint": model.fingerprint, "dtype": model.dtype, "load_in": model.load_in}
    given = identity(config, model=card, task=task, examples=examples)
    differ = [name for name in _SAME if stored.get(name) != given[name]]
    if differ:
        raise ConfigError(
            f"{run.path} is a run with other {', '.join(differ)}: give --model, --task, --data, --prompt, --labels and "
            "--explain as they were in that run."
        )


def _check_free(save_model: Path | None) -> None:
    if save_model is not None and save_model.exists() and (not save_model.is_dir() or any(save_model.iterdir())):
        raise ConfigError(f"{save_model} is there already; choose a --save-model that is empty or new.")


def _check_out(out: Path, how: str) -> None:
    """A folder that cannot be used is told before the training."""
    folder = RunFolder(out)
    if folder.is_foreign:
        raise ConfigError(f"{out} is there and holds no run; choose an --out that is empty or new.")
    if not folder.is_new:
        stored = RunFolder.existing(out).manifest().identity.get("adaptation")
        if stored != how:
            was = "a run of no adapted model" if stored is None else f"a run of a model adapted otherwise ({stored})"
            raise ConfigError(f"{out} holds {was}, and this one is adapted with {how}; choose another --out.")


def _stored(name: str, rows: Sequence[InputRow], *, own_size: bool) -> Given:
    """An attribution as the run holds it, ranked as its method ranks; those of skipped examples are never looked at."""
    values = {row.example_id: row.attributions.get(name, np.zeros(len(row.spans))) for row in rows}
    return Given(values=values, has_signs=_has_signs(name), sized=own_size)


def _has_signs(name: str) -> bool:
    try:
        return method_of(name).has_signs
    except ConfigError:  # what a user brought may have signs
        return True


def _others(evaluated: Sequence[Example], further: Sequence[Example]) -> list[Example]:
    """Examples that share neither text nor passage with one that is evaluated."""
    texts = {tuple(sorted(example.fields.items())) for example in evaluated}
    groups = {example.group for example in evaluated} - {None}
    return [e for e in further if tuple(sorted(e.fields.items())) not in texts and e.group not in groups]


def _lessons(engine: Engine, removal: Removal, examples: Sequence[Example], *, budget: int) -> list[Lesson]:
    """Examples with their labels: the right one, or the deployed model's answer where the data do not say."""
    items = [(example, engine.encode(example)) for example in examples]
    items = [(example, item) for example, item in items if removal.can_teach(item)]
    if not items:
        raise ConfigError("no example has a unit that could be removed, so there is nothing to train on.")
    unknown = [item for example, item in items if example.gold is None]
    rows = Inputs.join([item.full() for item in unknown])
    scores = Scorer(engine.model, engine.scorer.labels, budget=budget).score(rows)
    predicted = {item.example_id: int(np.argmax(row)) for item, row in zip(unknown, scores, strict=True)}
    return [
        Lesson(item, predicted[item.example_id] if example.gold is None else example.gold) for example, item in items
    ]
