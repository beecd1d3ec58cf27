"""How many random sets are enough for a data set: a pilot finds out, and its rows are the first of the run."""

from dataclasses import replace
from typing import Any

from ice_eval.pipeline.job import Job
from ice_eval.pipeline.parts import score_parts
from ice_eval.results.planning import PILOT_EXAMPLES, PILOT_SETS, cost_of, sets_for, spreads_of
from ice_eval.results.records import Manifest, PlannedSets


def with_enough_sets(job: Job, manifest: Manifest) -> tuple[Job, Manifest]:
    """The same run with as many random sets as its first examples show to be enough for the data set.

    The sets of an example have one order, so those that the pilot scored are not lost. How many are enough depends on
    how win rates spread, which is the same for an explanation and for its opposite: the choice favours neither.
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
    enough = sets_for(spreads_of(job.folder, replace(manifest.config, m=m)), cost_of(job.folder), m=asked)
    job.reporter.say(
        f"the run goes on with {enough.m} random sets: intervals become at most about {100 * enough.wider:.0f} % "
        f"wider than with {asked}."
    )
    return PlannedSets(pilot_n=len(first), pilot_m=m, **vars(enough))


def _with_sets(job: Job, m: int, **changes: Any) -> Job:
    return replace(job, engine=replace(job.engine, config=replace(job.engine.config, m=m, **changes)))
