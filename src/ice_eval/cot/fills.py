"""Steps of other problems, to stand in the place of removed ones."""

from collections.abc import Mapping, Sequence

from ice_eval.cot.cases import Case
from ice_eval.errors import DataError
from ice_eval.seeding import rng_for


def step_fills(cases: Sequence[Case], *, seed: int) -> Mapping[str, tuple[str, ...]]:
    """For every case a step of another problem in place of each of its own; drawn once, the same in every row.

    Steps that state this problem's answer, by chance, are not taken.

    Raises:
        DataError: There is no step of another problem to take.
    """
    pool = [(case.id, text) for case in cases for text in case.texts]
    return {case.id: _fills(case, pool, seed) for case in cases}


def _fills(case: Case, pool: Sequence[tuple[str, str]], seed: int) -> tuple[str, ...]:
    own, kind = set(case.texts), case.problem.kind
    order = rng_for(seed, case.id, "step-fills").permutation(len(pool))
    found: list[str] = []
    for place in order:
        owner, text = pool[place]
        if owner != case.id and text not in own and not kind.states(text, case.own, given=case.problem.question):
            found.append(text)
        if len(found) == len(case.steps):
            return tuple(found)
    if not found:
        raise DataError(
            f"the operator 'replace' needs steps of other problems, and there is none for '{case.id}'; evaluate more "
            "problems, or leave it out, in another folder."
        )
    return tuple(found[index % len(found)] for index in range(len(case.steps)))  # few problems: some serve twice
