"""Part after part through the model, and into the folder."""

from collections.abc import Iterator, Sequence
from functools import partial

from ice_eval.errors import DamagedPartError
from ice_eval.models import PART_SIZE
from ice_eval.nulls import SIZE
from ice_eval.operators import operators
from ice_eval.pipeline.engine import Engine
from ice_eval.pipeline.job import Job
from ice_eval.pipeline.part import PartInFlight, names_of
from ice_eval.pipeline.replica import Order, Part, Replica
from ice_eval.rationales import DYNAMIC, ERASER_SHARES
from ice_eval.records import Example
from ice_eval.results.examples import InputRow
from ice_eval.results.ledger import Ledger, Names
from ice_eval.results.records import Manifest
from ice_eval.scoring import Progress

_USUAL_SEQUENTIAL = 85
"""Sets that a sequential test takes on average where the rationale is no better than random."""


def score_parts(job: Job, examples: Sequence[Example], manifest: Manifest) -> None:
    """Score what is missing of every part; whoever scores, all files are written here.

    Args:
        job: The run.
        examples: All that are to be evaluated, or the first of them.
        manifest: What the folder is told when something is added to it.

    Raises:
        KeyboardInterrupt: The user asked to stop; what had begun is written.
    """
    estimate, reporter = estimated_rows(job.engine, examples), job.reporter
    per_example = estimate // max(len(examples), 1)
    reporter.start(estimate)
    parts, is_noted = _parts(job, examples, manifest), False
    try:
        for part, result, seconds in job.crew.map(partial(_start, job.order), parts, reporter.advance):
            reporter.advance(result.n_wanted - result.cost["rows"], scored=False)
            estimate += result.n_wanted - len(part.examples) * per_example
            reporter.correct(estimate)
            if result.inputs:
                if not is_noted:  # a finished folder is called unfinished only when something is added to it
                    job.folder.write_manifest(manifest)
                    is_noted = True
                cost = {**result.cost, "seconds": round(seconds, 3)}
                job.folder.write_part(part.index, result.inputs, result.ledger, cost)
        if reporter.asked_to_stop():
            raise KeyboardInterrupt
    finally:
        reporter.stop()


def estimated_rows(engine: Engine, examples: Sequence[Example]) -> int:
    """Rows that some examples will take, about."""
    return len(examples) * (_rows_per_example(engine) + _probes_per_example(engine, examples[:PART_SIZE]))


def _parts(job: Job, examples: Sequence[Example], manifest: Manifest) -> Iterator[Part]:
    """Part after part, until the user asks to stop."""
    size = job.order.part_size
    for index, start in enumerate(range(0, len(examples), size)):
        if job.reporter.asked_to_stop():
            return
        own = examples[start : start + size]
        inputs, ledger = _known(job, index, names_of(job.engine, own), manifest)
        yield Part(index, job.engine.config, own, inputs, ledger)


def _known(job: Job, index: int, names: Names, manifest: Manifest) -> tuple[list[InputRow], Ledger]:
    """Return what the folder holds of a part; a damaged one is discarded, to be scored again as a whole."""
    try:
        return job.folder.inputs(index), job.folder.ledger(index, names, inputs=True)
    except DamagedPartError as exc:
        job.reporter.say(f"{exc.found}; part {index} is done again, and nothing else.")
        job.folder.write_manifest(manifest)  # before anything goes: a folder that lacks a part is not finished
        job.folder.discard(index)
        return [], Ledger.empty(names)


def _start(order: Order, replica: Replica, part: Part, progress: Progress) -> PartInFlight:
    return replica.start(order, part, progress)


def _rows_per_example(engine: Engine) -> int:
    """Rows of an example that has more sets than it needs; short texts have fewer."""
    config, n_own = engine.config, len(engine.own_size)
    by_share = len(config.attributions) - n_own
    rationales = by_share * len(config.k) + n_own
    dynamic = DYNAMIC in config.k
    sizes = (len(config.k) - dynamic) * (by_share > 0) + by_share * dynamic + n_own
    m = min(config.m, _USUAL_SEQUENTIAL) if config.adaptive == "examples" else config.m
    matched = m * rationales * len([null for null in config.nulls if null != SIZE])
    null = (m * rationales if config.choices.own_null else (m + 1) * sizes * (SIZE in config.nulls)) + matched
    per_operator = (null + rationales) * len(config.directions)
    draws = sum(config.n_fills if operators.get(name).needs_fills else 1 for name in config.operators)
    of_eraser = 2 * (by_share * len({*ERASER_SHARES, *config.k}) + n_own) if config.eraser else 0
    return 2 + (per_operator + of_eraser) * draws


def _probes_per_example(engine: Engine, examples: Sequence[Example]) -> int:
    """Rows that attributions ask for, about, from the lengths of some examples."""
    asking = [engine.attributions[name] for name in engine.probing]
    lengths = [engine.encode(example).n_units for example in examples] if asking else []
    return sum(method.n_probes(n) for method in asking for n in lengths) // max(len(lengths), 1)
