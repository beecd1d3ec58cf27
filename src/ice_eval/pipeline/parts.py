"""Part after part through the model, and into the folder."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from ice_eval.errors import DamagedPartError
from ice_eval.nulls import SIZE
from ice_eval.operators import operators
from ice_eval.pipeline.engine import Engine
from ice_eval.pipeline.part import PART_SIZE, PartInFlight, start_part
from ice_eval.pipeline.progress import Reporter
from ice_eval.rationales import DYNAMIC, ERASER_SHARES
from ice_eval.records import Example
from ice_eval.results import InputRow, LedgerRow, RunFolder

_USUAL_SEQUENTIAL = 85
"""Sets that a sequential test takes on average where the rationale is no better than random."""


def score_parts(
    folder: RunFolder, engine: Engine, examples: Sequence[Example], manifest: Mapping[str, Any], reporter: Reporter
) -> None:
    """Score what is missing of every part; on a GPU a part is written while the next one is computed.

    Raises:
        KeyboardInterrupt: The user asked to stop; what had begun is written.
    """
    estimate = estimated_rows(engine, examples)
    per_example = estimate // max(len(examples), 1)
    reporter.start(estimate)
    writer = _Writer(folder, manifest)
    try:
        for index, start in enumerate(range(0, len(examples), PART_SIZE)):
            if reporter.asked_to_stop():
                break
            batch = examples[start : start + PART_SIZE]
            known = _known(folder, index, manifest, reporter)
            part = start_part(engine, batch, *known, reporter.advance)
            reporter.advance(part.result.n_wanted - len(part), scored=False)
            estimate += part.result.n_wanted - len(batch) * per_example
            reporter.correct(estimate)
            writer.add(index, part)
            if not engine.model.works_ahead:
                writer.flush()
        writer.flush()
        if reporter.asked_to_stop():
            raise KeyboardInterrupt
    finally:
        reporter.stop()


def estimated_rows(engine: Engine, examples: Sequence[Example]) -> int:
    """Rows that some examples will take, about."""
    return len(examples) * (_rows_per_example(engine) + _probes_per_example(engine, examples[:PART_SIZE]))


def _known(
    folder: RunFolder, index: int, manifest: Mapping[str, Any], reporter: Reporter
) -> tuple[list[InputRow], list[LedgerRow]]:
    """What the folder holds of a part; a damaged one is thrown away, to be scored again as a whole."""
    try:
        return folder.inputs(index), folder.ledger(index, inputs=True)
    except DamagedPartError as exc:
        reporter.say(f"{exc.found}; part {index} is done again, and nothing else.")
        folder.write_manifest(manifest)  # before anything goes: a folder that lacks a part is not finished
        folder.discard(index)
        return [], []


class _Writer:
    """Writes a part while the device works on the next one, where it does so by itself."""

    def __init__(self, folder: RunFolder, manifest: Mapping[str, Any]) -> None:
        self._folder, self._manifest = folder, manifest
        self._waiting: tuple[int, PartInFlight] | None = None
        self._last = time.monotonic()

    def add(self, index: int, part: PartInFlight) -> None:
        self.flush()
        self._waiting = index, part

    def flush(self) -> None:
        if self._waiting is None:
            return
        index, part = self._waiting
        self._waiting = None
        result, now = part.finish(), time.monotonic()
        seconds, self._last = round(now - self._last, 3), now
        if result.inputs:
            # A finished folder is called unfinished only when something is added to it.
            self._folder.write_manifest(self._manifest)
            self._folder.write_part(index, result.inputs, result.ledger, {**result.cost, "seconds": seconds})


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
