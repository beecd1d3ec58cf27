"""The whole pipeline: from a configuration to a finished run folder."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ice_eval.attributions import Attribution
from ice_eval.errors import ConfigError, ModelError
from ice_eval.models import Model
from ice_eval.pipeline.adapted import Adapted
from ice_eval.pipeline.checks import checked, outlook, remarks
from ice_eval.pipeline.enough_sets import with_enough_sets
from ice_eval.pipeline.identity import identity
from ice_eval.pipeline.job import Job
from ice_eval.pipeline.manifest import at_beginning, at_end, lowered_budgets
from ice_eval.pipeline.parts import score_parts
from ice_eval.pipeline.progress import Reporter, Silent
from ice_eval.pipeline.replica import Card, Order, Replica
from ice_eval.pipeline.replicas import Replicas
from ice_eval.records import Example
from ice_eval.results import Manifest, RunFolder, config_hash, now, rescore, slug, stored_run
from ice_eval.settings import RunConfig
from ice_eval.tasks import Task


def score(
    config: RunConfig,
    *,
    model: Model | Replicas,
    task: Task,
    examples: Sequence[Example],
    attributions: Mapping[str, Attribution],
    out: Path | None = None,
    token_budget: int | None = None,
    reporter: Reporter | None = None,
    adapted: Adapted | None = None,
) -> "Scored":
    """Score all rows of a run that its folder does not hold; `finish` computes the statistics.

    In between a caller can let go of examples and model.

    Args:
        config: What to evaluate.
        model: A loaded model, or replicas of one.
        task: Its data and prompt.
        examples: The first examples of the task: those to evaluate, and those that fill the pool of infill.
        attributions: The attributions of `config`, by name, and any that the folder may hold.
        out: The run folder; by default one under `ice-runs/` whose name tells the configuration, so that the same
            command continues.
        token_budget: Tokens per batch; by default what suits the device.
        reporter: Gets progress and messages.
        adapted: Where the model is an adapted copy of another one: how, and the labels to explain.

    Raises:
        ConfigError: Something is wrong with what was asked; nothing has been written.
        ModelError: No example could be evaluated, or the model failed.
    """
    reporter = reporter or Silent()
    replicas = Replicas.here(model) if isinstance(model, Model) else model
    card = replicas.crew.ask(Replica.card)
    asked = identity(config, model=card.identity, task=task, examples=examples)
    asked |= {} if adapted is None else {"adaptation": adapted.how}
    folder = RunFolder(out or Path("ice-runs") / f"{slug(task.name)}-{slug(card.name)}-{config_hash(asked)[:8]}")
    stored = stored_run(folder, asked)
    if stored is not None:
        replicas.reader.model.continues(folder.path)
    order = Order(
        config=config if stored is None else config.extended_by(stored.config),
        task=task,
        examples=examples,
        attributions=attributions,
        budget=_budget(token_budget, card, stored, reporter),
        part_size=card.part_size if stored is None else stored.part_size,
        lowered={} if stored is None else lowered_budgets(folder),
        threads=replicas.reader.model.use_threads(None if stored is None else stored.threads),
        targets=None if adapted is None else adapted.targets,
        weights=card.fingerprint,
    )
    engine = replicas.reader.engine(order)
    job, notes = checked(
        Job(folder=folder, crew=replicas.crew, order=order, engine=engine, stored=stored, reporter=reporter)
    )
    manifest = at_beginning(job, card, asked, notes=notes, adapted=adapted)
    for message in (*remarks(manifest, engine.config), *notes, *outlook(engine, job.evaluated)):
        reporter.say(message)
    with folder.opened():
        if stored_run(folder, asked) != stored:
            raise ConfigError(f"another process wrote to {folder.path} in the meantime; run the same command again.")
        if stored is None:
            folder.write_manifest(manifest)
        with engine.model.keeping(folder.path):
            if engine.config.adaptive == "dataset":
                job, manifest = with_enough_sets(job, manifest)
            score_parts(job, job.evaluated, manifest)
            manifest = at_end(job, manifest)
        folder.write_manifest(manifest)
    return Scored(folder, manifest)


class Scored(NamedTuple):
    """A run whose rows are all written, and nothing else yet."""

    folder: RunFolder
    manifest: Manifest


def finish(scored: Scored) -> RunFolder:
    """Compute all statistics, and call the run complete.

    Raises:
        ModelError: No example could be evaluated.
    """
    folder = scored.folder
    with folder.opened():
        summary = rescore(folder)
        folder.write_manifest(replace(scored.manifest, status="complete", finished=now()))
    if not any(line.n for line in summary.configurations):
        first = next(iter(folder.examples()))
        raise ModelError(
            f"no example could be evaluated (example '{first.example_id}': {first.error}); see {folder.path}."
        )
    return folder


def _budget(asked: int | None, card: Card, stored: Manifest | None, reporter: Reporter) -> int:
    """Tokens per batch; they stay the same when a run is continued, or scores would move by rounding."""
    if asked is not None and asked < 1:
        raise ConfigError(f"token budget = {asked}: at least 1 is needed.")
    if stored is None:
        return asked or card.budget
    assert stored.token_budget is not None, "a run with a model has a budget"
    kept = stored.token_budget
    if asked is not None and asked != kept:
        reporter.say(f"the run goes on with its token budget of {kept}, not {asked}.")
    return kept
