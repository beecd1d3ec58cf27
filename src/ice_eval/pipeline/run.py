"""The whole pipeline, from a configuration to a finished run folder."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ice_eval.attributions import Attribution
from ice_eval.errors import ConfigError, DamagedPartError, ModelError
from ice_eval.models import PART_SIZE, Model
from ice_eval.pipeline.checks import checked, outlook, remarks
from ice_eval.pipeline.engine import estimated_rows
from ice_eval.pipeline.manifest import at_beginning, at_end, identity, lowered_budgets
from ice_eval.pipeline.part import names_of, start_part
from ice_eval.pipeline.replicas import Adapted, Job, ModelInfo, Replica, Replicas, RunPart, RunSpec
from ice_eval.pipeline.subject import Subject
from ice_eval.records import Example
from ice_eval.results import Manifest, RunFolder, content_hash, now, rescore, slug, stored_run
from ice_eval.results.examples import InputRow
from ice_eval.results.ledger import Ledger, Names
from ice_eval.results.planning import PILOT_EXAMPLES, PILOT_SETS, cost_of, sets_for, spreads_of
from ice_eval.results.records import PlannedSets
from ice_eval.results.summary import is_decided
from ice_eval.scoring import Reporter, Silent
from ice_eval.settings import LARGEST, RunConfig

_FIRST_LOOK, _MORE = 2, 1.5
"""Number of parts before the first look at the verdicts, and the growth from look to look."""


def score(
    config: RunConfig,
    *,
    model: Model | Replicas,
    subject: Subject,
    examples: Sequence[Example],
    attributions: Mapping[str, Attribution],
    out: Path | None = None,
    token_budget: int | None = None,
    reporter: Reporter | None = None,
    adapted: Adapted | None = None,
) -> "Scored":
    """Score all rows of a run that its folder lacks; `finish` computes the statistics.

    A caller can release examples and model in between.

    Args:
        config: The configuration.
        model: A loaded model, or replicas of one.
        subject: What the run is about: the texts of a task, or chains of thought.
        examples: The first examples of the task: those to evaluate, and those that fill the pool of infill.
        attributions: The attributions of `config`, by name, and any that the folder may hold.
        out: The run folder; by default one under `ice-runs/` named after the configuration, so that the same command
            continues.
        token_budget: Tokens per batch; by default chosen for the device.
        reporter: Receives progress and messages.
        adapted: Adaptation record and labels to explain, if the model is an adapted copy.

    Raises:
        ConfigError: The arguments are invalid; nothing has been written.
        ModelError: No example could be evaluated, or the model failed.
    """
    reporter = reporter or Silent()
    replicas = Replicas.here(model) if isinstance(model, Model) else model
    info = replicas.workers.ask(Replica.info)
    asked = identity(config, model=info.identity, subject=subject, examples=examples)
    asked |= {} if adapted is None else {"adaptation": adapted.how}
    name = f"{slug(subject.task.name)}-{slug(info.name)}-{content_hash(asked)[:8]}"
    folder = RunFolder(out or Path("ice-runs") / name)
    stored = stored_run(folder, asked)
    if stored is not None:
        replicas.reader.model.continues(folder.path)
    spec = RunSpec(
        config=config if stored is None else config.extended_by(stored.config),
        subject=subject if stored is None else subject.extended_by(stored),
        examples=examples,
        attributions=attributions,
        budget=_budget(token_budget, info, stored, reporter),
        part_size=_part_size(info, config, len(examples)) if stored is None else stored.part_size,
        lowered={} if stored is None else lowered_budgets(folder),
        threads=replicas.reader.model.use_threads(None if stored is None else stored.threads),
        targets=None if adapted is None else adapted.targets,
        weights=info.fingerprint,
    )
    engine = replicas.reader.engine(spec)
    job, notes, warnings = checked(
        Job(folder=folder, workers=replicas.workers, spec=spec, engine=engine, stored=stored, reporter=reporter)
    )
    manifest = replace(at_beginning(job, info, asked, notes=notes, adapted=adapted), warnings=warnings)
    for message in (*remarks(manifest, engine.config), *notes, *warnings, *outlook(engine, job.evaluated)):
        reporter.say(message)
    with folder.opened():
        if stored_run(folder, asked) != stored:
            raise ConfigError(f"another process wrote to {folder.path} in the meantime; run the same command again.")
        if stored is None:
            folder.write_manifest(manifest)
        with engine.model.keeping(folder.path):
            engine.subject.start(engine, reporter)
            if engine.config.adaptive == "dataset":
                job, manifest = with_enough_sets(job, manifest)
            if engine.config.until is None:
                score_parts(job, job.evaluated, manifest)
            else:
                manifest = score_until_decided(job, manifest)
            manifest = at_end(job, manifest)
        folder.write_manifest(manifest)
    return Scored(folder, manifest)


class Scored(NamedTuple):
    """A run whose rows are all written, without statistics."""

    folder: RunFolder
    manifest: Manifest


def finish(scored: Scored) -> RunFolder:
    """Compute all statistics and mark the run as complete; raise ModelError if no example could be evaluated."""
    folder = scored.folder
    with folder.opened():
        summary = rescore(folder)
        folder.write_manifest(replace(scored.manifest, status="complete", finished=now()))
    if summary.chains is not None and not summary.chains.problems.n_evaluated:
        reasons = "; ".join(f"{why} ({count})" for why, count in list(summary.chains.problems.skipped.items())[:3])
        raise ModelError(f"no chain could be evaluated: {reasons}; see {folder.path}.")
    if summary.chains is None and not any(line.n for line in summary.configurations):
        first = next(iter(folder.examples()))
        raise ModelError(
            f"no example could be evaluated (example '{first.example_id}': {first.error}); see {folder.path}."
        )
    return folder


def _part_size(info: ModelInfo, config: RunConfig, n_examples: int) -> int:
    """Return the number of examples per part: what suits the model, but at most a quarter of the run.

    A run that may stop early has smaller ones, since it looks at its verdicts after whole parts.
    """
    return min(info.part_size, max(PART_SIZE, min(config.n, n_examples) // (4 if config.until is None else 16)))


def _budget(asked: int | None, info: ModelInfo, stored: Manifest | None, reporter: Reporter) -> int:
    """Return the tokens per batch; unchanged when a run is continued, since scores would change by rounding."""
    if asked is not None and not 1 <= asked <= LARGEST:
        limit = "at least 1 is needed" if asked < 1 else f"at most {LARGEST:,} is possible"
        raise ConfigError(f"token budget = {asked}: {limit}.")
    if stored is None:
        return asked or info.budget
    assert stored.token_budget is not None, "a run with a model has a budget"
    kept = stored.token_budget
    if asked is not None and asked != kept:
        reporter.say(f"the run keeps its token budget of {kept}; {asked} is ignored.")
    return kept


def score_parts(job: Job, examples: Sequence[Example], manifest: Manifest, *, n_done: int = 0) -> None:
    """Score the missing rows of every part, after the first `n_done` examples; this process writes all files.

    Raises:
        KeyboardInterrupt: The user stopped the run; started parts are written.
    """
    estimate, reporter = estimated_rows(job.engine, examples[n_done:]), job.reporter
    per_example = estimate // max(len(examples) - n_done, 1)
    reporter.start(estimate, examples=len(examples) - n_done)
    parts, is_noted = _parts(job, examples, manifest, n_done), False
    try:
        for part, result, seconds in job.workers.map(partial(start_part, spec=job.spec), parts, reporter.advance):
            reporter.advance(result.n_wanted - result.cost["rows"], scored=False)
            estimate += result.n_wanted - len(part.examples) * per_example
            reporter.correct(estimate)
            if result.inputs:
                if not is_noted:  # a finished folder is called unfinished only when something is added to it
                    job.folder.write_manifest(manifest)
                    is_noted = True
                cost = {**result.cost, "seconds": round(seconds, 3)}
                job.folder.write_part(part.index, result.inputs, result.ledger, cost)
        if _asked_to_stop(job):
            raise KeyboardInterrupt
    finally:
        reporter.stop()


def score_until_decided(job: Job, manifest: Manifest) -> Manifest:
    """Score parts until every verdict is settled, and return the manifest with the number of examples.

    Looks are at fixed numbers of examples, so that the run ends at the same one on every executor and after every
    interruption. Intervals that hold at any time make looking free.
    """
    examples, size, n = job.evaluated, job.spec.part_size, 0
    # The examples of a pilot are in the folder, so that they are looked at together.
    first = math.ceil(PILOT_EXAMPLES / size) if job.engine.config.adaptive == "dataset" else 0
    while n < len(examples):
        before, n = n, min(len(examples), size * max(_FIRST_LOOK, first, math.ceil(_MORE * n / size)))
        score_parts(job, examples[:n], manifest, n_done=before)
        if n == len(examples) or is_decided(job.folder, manifest.config, n_parts=math.ceil(n / size)):
            break
        job.reporter.say(f"after {n} examples not every verdict is settled.")
    return replace(manifest, data=replace(manifest.data, examples=n))


def _parts(job: Job, examples: Sequence[Example], manifest: Manifest, n_done: int) -> Iterator[RunPart]:
    """Yield parts until the user stops the run."""
    size = job.spec.part_size
    for start in range(n_done, len(examples), size):
        index = start // size
        if _asked_to_stop(job):
            return
        own = examples[start : start + size]
        inputs, ledger = _known(job, index, names_of(job.engine, own), manifest)
        yield RunPart(index, job.engine.config, own, inputs, ledger)


def _asked_to_stop(job: Job) -> bool:
    """Return True after a first Ctrl-C, which lets a part be finished, unless its answers are stored one by one."""
    return not job.engine.subject.stores_answers and job.reporter.asked_to_stop()


def _known(job: Job, index: int, names: Names, manifest: Manifest) -> tuple[list[InputRow], Ledger]:
    """Return the stored rows of a part; one that is damaged or outdated is discarded, to be scored again."""
    try:
        inputs, ledger = job.folder.inputs(index), job.folder.ledger(index, names, inputs=True)
        if not job.engine.subject.is_outdated(inputs, ledger):
            return inputs, ledger
    except DamagedPartError as exc:
        job.reporter.say(f"{exc.found}; only part {index} is scored again.")
    job.folder.write_manifest(manifest)  # before anything goes: a folder that lacks a part is not finished
    job.folder.discard(index)
    return [], Ledger.empty(names)


def with_enough_sets(job: Job, manifest: Manifest) -> tuple[Job, Manifest]:
    """Return the run with as many random sets as its first examples show to be enough for the data set.

    The sets of an example have one order, so those that the pilot scored are reused. The number depends on the spread
    of win rates, which is the same for an explanation and for its opposite: the choice favours neither.
    """
    found = None if job.stored is None else job.stored.planned
    if found is None:
        found = _found_by_pilot(job, manifest)
    return _with_sets(job, found.m), replace(manifest, planned=found, config=replace(manifest.config, m=found.m))


def _found_by_pilot(job: Job, manifest: Manifest) -> PlannedSets:
    asked, first = job.engine.config.m, job.evaluated[:PILOT_EXAMPLES]
    # The rows of ERASER's measures are no part of what random sets cost beside.
    pilot = _with_sets(job, min(PILOT_SETS, asked), eraser=False)
    m = pilot.engine.config.m
    job.reporter.say(f"pilot: {len(first)} examples with {m} random sets each.")
    score_parts(pilot, first, manifest)
    spreads = spreads_of(job.folder, replace(manifest.config, m=m))
    enough = sets_for(list(spreads.values()), cost_of(job.folder), m=asked)
    job.reporter.say(
        f"the run continues with {enough.m} random sets: intervals become at most about {100 * enough.wider:.0f} % "
        f"wider than with {asked}."
    )
    return PlannedSets(pilot_n=len(first), pilot_m=m, **vars(enough))


def _with_sets(job: Job, m: int, **changes: Any) -> Job:
    return replace(job, engine=replace(job.engine, config=replace(job.engine.config, m=m, **changes)))
