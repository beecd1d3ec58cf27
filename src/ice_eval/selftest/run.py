"""The self-test: the whole method on models with known truth."""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ice_eval.attributions import Attribution, attributions
from ice_eval.nulls import SIZE
from ice_eval.nulls import nulls as null_registry
from ice_eval.operators import operators as operator_registry
from ice_eval.seeding import rng_for
from ice_eval.selftest import checks
from ice_eval.selftest._known import KnownModel, toy
from ice_eval.selftest._trials import DIRECTIONS, About, Trials, trials
from ice_eval.selftest.checks import Check

M = 19
"""Random sets per rationale: p-values are multiples of 0.05."""
M_DISCOVERIES, M_SEQUENTIAL = 99, 499
DATA_SET = 25
NOISE = (1.0, 2.0, 4.0, 8.0)
"""Standard deviation of what is added to the truth, in spreads of the truth."""
RANDOM, TRUTH, NEGATED, MIXTURE = "random", "truth", "negated truth", "mixture"

_WEAKENED = ("delete", "infill")
"""Operators under which the signal is weakened: those of a default run."""
_SPREAD_OUT = (RANDOM, "truth + 4 noise")
"""Attributions whose win rates do not pile up at 1: there a bootstrap interval of 100 examples has its level."""
_MIXED = 10
"""Examples in a mixed data set; the explanation of one of them is the truth."""


@dataclass(frozen=True)
class Sizes:
    """How many examples and data sets each part draws; a part that draws none is left out."""

    random: int = 0
    truth: int = 0
    weakened: int = 0
    mixture: int = 0
    covered: int = 0
    matched: int = 0
    sequential: int = 0


FULL = Sizes(random=800, truth=200, weakened=300, mixture=600, covered=400, matched=400, sequential=400)
QUICK = Sizes(random=200, truth=100, weakened=50, mixture=200, covered=100, matched=100, sequential=60)


@dataclass(frozen=True)
class Report:
    """What the self-test found."""

    checks: tuple[Check, ...]
    seed: int
    skipped: tuple[str, ...]
    """What could not be tested here, and why."""
    seconds: float

    @property
    def guarantees(self) -> list[Check]:
        return [check for check in self.checks if check.is_guarantee]

    @property
    def failed(self) -> list[Check]:
        return [check for check in self.checks if not check.ok]

    @property
    def ok(self) -> bool:
        return not self.failed

    def content(self) -> dict[str, Any]:
        """All of it, as plain data."""
        return {
            "ok": self.ok,
            "seed": self.seed,
            "limit": checks.LIMIT,
            "n_guarantees": len(self.guarantees),
            "n_failed": len(self.failed),
            "skipped": list(self.skipped),
            "seconds": round(self.seconds, 1),
            "checks": [_plain(check) for check in self.checks],
        }


def _plain(check: Check) -> dict[str, Any]:
    fields = asdict(check)
    return {**fields.pop("about"), **fields, "is_guarantee": check.is_guarantee, "ok": check.ok}


Say = Callable[[str], None]


def selftest(
    *,
    seed: int = 0,
    sizes: Sizes = FULL,
    operators: Sequence[str] | None = None,
    with_transformer: bool = True,
    say: Say = lambda message: None,
) -> Report:
    """Test the method on models whose truth is known.

    Args:
        seed: Defines texts, noise, random sets and draws.
        sizes: How much is drawn.
        operators: By default all that are registered.
        with_transformer: Whether the transformer is tested beside the toy model.
        say: Gets a line before each part.
    """
    started, skipped = time.monotonic(), []
    names = tuple(operators or operator_registry.names())
    models: list[KnownModel] = [toy()]
    if with_transformer:
        try:
            from ice_eval.selftest._planted import planted

            models.append(planted())
        except ImportError as exc:
            skipped.append(f"the transformer is skipped: {exc.name} is not installed.")
    found = list(_of_sampler(sizes, seed))
    with tempfile.TemporaryDirectory(prefix="ice-selftest-") as folder:
        for known in models:
            bench = _Bench(known, names, sizes, seed, Path(folder) / known.name, say)
            found += bench.checks()
    return Report(tuple(found), seed, tuple(skipped), time.monotonic() - started)


def _of_sampler(sizes: Sizes, seed: int) -> Iterator[Check]:
    """Sets that are listed and shuffled, and sets that are drawn because there are too many to list."""
    for n_units, size in ((8, 2), (30, 6)) if sizes.random else ():
        rng = rng_for(seed, "selftest", "sampler", n_units)
        yield checks.uniform_sets(n_units, size, n=sizes.random, seed=seed, rng=rng)


@dataclass(frozen=True)
class _Bench:
    """One known model under test."""

    known: KnownModel
    operators: Sequence[str]
    sizes: Sizes
    seed: int
    folder: Path
    say: Say

    def checks(self) -> Iterator[Check]:
        null, true = self._random(), self._truth()
        weakened = self._weakened()
        for trial in null.values():
            yield from checks.calibration(trial, data_set=DATA_SET, rng=self._rng("calibration"))
        for trial in [*self._matched().values(), *self._sequential().values()]:
            yield from checks.calibration(trial, data_set=DATA_SET, rng=self._rng("calibration"))
        yield from self._of_truth(true)
        for trial in weakened.values():
            yield from checks.power(trial, data_set=DATA_SET, rng=self._rng("power"))
        yield from self._discoveries(null, true)
        yield from self._mixture()
        yield from self._coverage([*null.values(), *true.values(), *weakened.values()])

    def _random(self) -> dict[About, Trials]:
        # Together, so that the average over operators is tested too.
        return self._run(RANDOM, {RANDOM: attributions.get(RANDOM)()}, [self.operators], n=self.sizes.random)

    def _matched(self) -> dict[About, Trials]:
        """Every null that is matched on more than size."""
        names = tuple(name for name in null_registry.names() if name != SIZE)
        chosen = [name for name in self.operators if name in _WEAKENED]
        methods = {RANDOM: attributions.get(RANDOM)()}
        alone = [[name] for name in chosen]
        return self._run("matched", methods, alone, n=self.sizes.matched, directions=DIRECTIONS[:1], nulls=names)

    def _sequential(self) -> dict[About, Trials]:
        """Random sets until every test has decided."""
        chosen = [name for name in self.operators if name in _WEAKENED]
        methods = {RANDOM: attributions.get(RANDOM)()}
        return self._run("sequential", methods, [chosen], n=self.sizes.sequential, m=M_SEQUENTIAL, adaptive="examples")

    def _truth(self) -> dict[About, Trials]:
        methods = {TRUTH: self.known.attribution(), NEGATED: self.known.attribution(sign=-1.0)}
        return self._run(TRUTH, methods, [[name] for name in self.operators], n=self.sizes.truth)

    def _weakened(self) -> dict[About, Trials]:
        methods = {f"truth + {x:g} noise": self.known.attribution(noise=x, seed=self.seed) for x in NOISE}
        chosen = [[name] for name in self.operators if name in _WEAKENED]
        return self._run("weakened", methods, chosen, n=self.sizes.weakened, directions=DIRECTIONS[:1])

    def _of_truth(self, true: Mapping[About, Trials]) -> Iterator[Check]:
        for about, trial in true.items():
            check = {TRUTH: checks.truth, NEGATED: checks.negated_truth}[about.attribution]
            exact = not operator_registry.get(about.operator).needs_fills
            yield from check(
                trial, exact=exact, unique=self.known.unique, data_set=DATA_SET, rng=self._rng(about.attribution)
            )

    def _discoveries(self, null: Mapping[About, Trials], true: Mapping[About, Trials]) -> Iterator[Check]:
        """With few random sets only a large level lets anything be rejected: 6 null and 2 true ones at 0.20."""
        for about, trial in true.items() if null else ():
            if about.attribution == TRUTH:
                yield from checks.false_discoveries(
                    replace(about, attribution=MIXTURE),
                    null[replace(about, attribution=RANDOM)].p_value,
                    trial.p_value,
                    n_null=6,
                    n_signal=2,
                    alpha=0.20,
                    rng=self._rng("discoveries"),
                )

    def _mixture(self) -> Iterator[Check]:
        """With many random sets, at the level of a summary: one true explanation among nine random ones."""
        # Where scores tie, null p-values are so large that the check could not fail.
        if not (self.known.unique and self.sizes.mixture):
            return
        random, true, negated = attributions.get(RANDOM)(), self.known.attribution(), self.known.attribution(sign=-1.0)
        found = self._run(
            MIXTURE,
            {RANDOM: random, TRUTH: true, NEGATED: negated},
            [self.operators[:1]],
            n=self.sizes.mixture,
            m=M_DISCOVERIES,
            directions=DIRECTIONS[:1],
        )
        about = replace(next(iter(found)), attribution=MIXTURE)
        null, signal, opposite = (found[replace(about, attribution=name)] for name in (RANDOM, TRUTH, NEGATED))
        place = np.arange(len(null)) % _MIXED == 0
        for tail, ours, theirs in (
            ("upper", null.p_value, signal.p_value),
            ("lower", null.p_lower, opposite.p_lower),
        ):
            counts = {"n_null": _MIXED - 1, "n_signal": 1}
            yield from checks.false_discoveries(
                about, ours[~place], theirs[place], **counts, alpha=0.10, rng=self._rng(MIXTURE), tail=tail
            )

    def _coverage(self, found: Sequence[Trials]) -> Iterator[Check]:
        for trial in found if self.sizes.covered else ():
            about = trial.about
            if about.direction == DIRECTIONS[0] and about.operator in _WEAKENED and about.attribution != NEGATED:
                for size in (50, 100):
                    yield checks.coverage(
                        about,
                        trial.win_rate,
                        size=size,
                        n_data_sets=self.sizes.covered,
                        promised=size == 100 and about.attribution in _SPREAD_OUT,
                        rng=self._rng("coverage"),
                    )

    def _run(
        self,
        purpose: str,
        methods: Mapping[str, Attribution],
        groups: Sequence[Sequence[str]],
        *,
        n: int,
        m: int = M,
        directions: Sequence[str] = DIRECTIONS,
        **settings: Any,
    ) -> dict[About, Trials]:
        """One run of the pipeline for each group of operators; none where there are no examples."""
        if not n:
            return {}
        self.say(f"{self.known.name}: {', '.join(methods)} ({purpose}), {n} texts …")
        found: dict[About, Trials] = {}
        for index, group in enumerate(groups):
            found |= trials(
                self.known,
                methods,
                n=n,
                m=m,
                seed=self.seed,
                purpose=purpose,
                operators=group,
                directions=directions,
                folder=self.folder / f"{purpose}-{index}",
                **settings,
            )
        return found

    def _rng(self, purpose: str) -> np.random.Generator:
        # The same draws for every configuration: where two agree on every example, so do their checks.
        return rng_for(self.seed, "selftest", self.known.name, purpose)
