"""The rows of one chain: which steps are shown, in which order."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ice_eval.cot.cases import Case
from ice_eval.cot.config import CotConfig
from ice_eval.nulls import SIZE
from ice_eval.rationales import Units, place_of, random_sets, set_size, top_k, units_of
from ice_eval.records import Kind, PerUnit
from ice_eval.results import RowKey
from ice_eval.seeding import rng_for


class StepRow(NamedTuple):
    """A row that is to be asked."""

    key: RowKey
    kept: Units
    """Steps of the chain that are shown, in the order in which they are."""
    shown: tuple[str, ...]
    """All that is shown: steps kept, and what stands in the place of the others."""
    repeat: int = 0
    """Which of several answers to the same question."""


def reference_rows(case: Case, config: CotConfig) -> Iterator[StepRow]:
    """The full chain, once for every repeat, and no steps at all."""
    every = tuple(range(len(case.steps)))
    yield StepRow(RowKey(case.id, Kind.FULL), every, case.texts)
    for repeat in range(1, config.repeats):
        yield StepRow(RowKey(case.id, Kind.AGAIN, set=repeat), every, case.texts, repeat)
    yield StepRow(RowKey(case.id, Kind.EMPTY), (), ())


def random_rows(case: Case, config: CotConfig, fills: Sequence[str]) -> Iterator[StepRow]:
    """Random sets of each size, removed and retained, under every operator that keeps some steps.

    One order of sets for each size, fixed before any attribution is seen: its first P are what necessity and
    sufficiency are about, and with one more any rationale has P others to be compared with.
    """
    count = config.p + 1 if config.attributions else config.p
    for size in sizes(len(case.steps), config.k):
        sets = random_sets(len(case.steps), size, count, seed=config.seed, example_id=case.id)
        for index, chosen in enumerate(sets):
            key = RowKey(case.id, Kind.RANDOM, set=index, null=SIZE)
            yield from _removals(case, config, fills, key, units_of(chosen))


def rationale_rows(
    case: Case, config: CotConfig, fills: Sequence[str], vectors: Mapping[str, PerUnit]
) -> Iterator[StepRow]:
    """The top-k steps of each attribution, removed and retained."""
    for name, values in vectors.items():
        for size in sizes(len(case.steps), config.k):
            chosen = top_k(values, size, rng=rng_for(config.seed, case.id, "ties", name))
            sets = random_sets(len(case.steps), size, config.p + 1, seed=config.seed, example_id=case.id)
            key = RowKey(case.id, Kind.RATIONALE, set=place_of(chosen, sets), attribution=name)
            yield from _removals(case, config, fills, key, units_of(chosen))


def arranged_rows(case: Case, config: CotConfig) -> Iterator[StepRow]:
    """The steps in other orders, and cut off."""
    for name, operator in config.arrangements().items():
        rng = rng_for(config.seed, case.id, "arrangements", name)
        for index, order in enumerate(operator.orders(len(case.steps), config.p, rng)):
            shown = tuple(case.texts[step] for step in order)
            yield StepRow(RowKey(case.id, Kind.ARRANGED, name, set=index, size=len(order)), order, shown)


def sizes(n_steps: int, shares: Sequence[float]) -> list[int]:
    """How many steps a set holds at each share, each number once."""
    return list(dict.fromkeys(set_size(n_steps, k) for k in shares))


def _removals(case: Case, config: CotConfig, fills: Sequence[str], key: RowKey, chosen: Units) -> Iterator[StepRow]:
    for name, operator in config.removals().items():
        for direction, kept in (("sufficiency", chosen), ("necessity", case.without(*chosen))):
            own = key._replace(operator=name, direction=direction, size=len(chosen), draw=0)
            yield StepRow(own, kept, tuple(operator.show(case.texts, kept, fills)))
