"""The attributions of a part: those that the folder holds, and those that are computed now."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from ice_eval.attributions import LOOKS, OF_EVERY_MODEL, Lens, Observer, one_per_unit
from ice_eval.pipeline.engine import Engine
from ice_eval.pipeline.probes import Probes
from ice_eval.pipeline.queue import changed
from ice_eval.records import Answer, Encoded, PerUnit
from ice_eval.results.examples import InputRow


@dataclass(frozen=True)
class Attributed:
    """What the attributions of a part came to."""

    vectors: dict[tuple[str, str], PerUnit] = field(default_factory=dict)
    """(attribution, example) -> a number per unit."""
    answers: dict[tuple[str, str], Answer] = field(default_factory=dict)
    """(attribution, example) -> what the model said, where it was asked now."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Attribution -> what it took; the look that several share is divided among them equally."""

    @property
    def answer_tokens(self) -> dict[str, int]:
        """Tokens of questions and answers of each attribution."""
        names = dict.fromkeys(name for name, _ in self.answers)
        return {name: sum(each.tokens for (own, _), each in self.answers.items() if own == name) for name in names}


def attribute(
    engine: Engine,
    items: Sequence[Encoded],
    targets: Mapping[str, int],
    before: Mapping[str, InputRow],
    probes: Probes,
) -> Attributed:
    """Compute the attributions that are missing; what a user brings must be what the folder holds of it.

    Args:
        engine: The run.
        items: The examples that take part.
        targets: The label to explain of each.
        before: What the folder holds of them.
        probes: Asks for scores, for methods that want any.

    Raises:
        ConfigError: What was brought is not what the folder holds.
    """
    stored = {
        name: {e: np.array(row.attributions[name]) for e, row in before.items() if name in row.attributions}
        for name in engine.attributions
    }
    missing = {
        name: [item for item in items if method.user_supplied or item.example_id not in stored[name]]
        for name, method in engine.attributions.items()
    }
    looking = {name for name, todo in missing.items() if todo and engine.attributions[name].needs & LOOKS}
    observer, of_look = _looked(engine, items, targets, {n: todo for n, todo in missing.items() if todo}, probes)
    found = Attributed()
    for name, method in engine.attributions.items():
        if missing[name]:
            started = time.monotonic()
            lens = Lens(observer, method.needs, engine.config.seed, name, engine.data, partial(probes.values, name))
            for item, vector in zip(missing[name], method.attribute(lens, missing[name]), strict=True):
                found.vectors[name, item.example_id] = one_per_unit(name, item, np.asarray(vector, dtype=np.float64))
            found.answers.update({(name, example_id): answer for example_id, answer in lens.answers.items()})
            share = of_look / len(looking) if name in looking else 0.0
            found.seconds[name] = round(time.monotonic() - started + share, 3)
        for example_id, vector in stored[name].items():
            if not np.array_equal(vector, found.vectors.get((name, example_id), vector), equal_nan=True):
                raise changed(name, example_id)
            found.vectors[name, example_id] = vector
    return found


def _looked(
    engine: Engine,
    items: Sequence[Encoded],
    targets: Mapping[str, int],
    missing: Mapping[str, Sequence[Encoded]],
    probes: Probes,
) -> tuple[Observer, float]:
    """One look into the model for all methods that want one, and the seconds that it took."""
    needs = {need for name in missing for need in engine.attributions[name].needs}
    observer = Observer(
        engine.model,
        engine.scorer.labels,
        targets,
        needs - OF_EVERY_MODEL,
        chat=engine.in_turns,
        priors=probes.calibration(),
    )
    looking = [todo for name, todo in missing.items() if engine.attributions[name].needs & LOOKS]
    shown = {item.example_id for todo in looking for item in todo}
    started = time.monotonic()
    observer.see([item for item in items if item.example_id in shown])
    return observer, time.monotonic() - started


def attribution_tokens(engine: Engine, items: Sequence[Encoded], before: Mapping[str, InputRow]) -> int:
    """Tokens that attributions sent through the model: one pass for all that look, three for those that go back too.

    Methods that do more than look say so themselves.
    """
    total = 0
    for item in items:
        stored = before[item.example_id].attributions if item.example_id in before else {}
        new = [method for name, method in engine.attributions.items() if name not in stored]
        needs = {need for method in new for need in method.needs}
        looks = 3 if "gradients" in needs else 1 if "attentions" in needs else 0
        total += (looks + sum(method.passes for method in new)) * len(item.ids)
    return total
