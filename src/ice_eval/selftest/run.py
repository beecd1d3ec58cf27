"""The self-test: the whole method on models with known truth."""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ice_eval import pipeline
from ice_eval.attributions import Attribution, attributions
from ice_eval.models.toy import ToyReader
from ice_eval.nulls import SIZE
from ice_eval.nulls import nulls as null_registry
from ice_eval.operators import operators as operator_registry
from ice_eval.results import RunFolder
from ice_eval.results.summary import outcomes_by_configuration
from ice_eval.seeding import rng_for
from ice_eval.selftest import checks
from ice_eval.selftest.checks import About, Check, Trials, simulated
from ice_eval.selftest.known import SHARE, KnownModel, cited_answers, planted, toy
from ice_eval.settings import run_config
from ice_eval.subjects.context.subject import CITED, ContextSubject

DIRECTIONS = ("sufficiency", "necessity")
M = 19
"""Random sets per rationale: p-values are multiples of 0.05."""
M_DISCOVERIES, M_SEQUENTIAL = 99, 499
NOISE = (1.0, 2.0, 4.0, 8.0)
"""Standard deviations of the noise, relative to those of the truth."""
RANDOM, TRUTH, NEGATED, MIXTURE = "random", "truth", "negated truth", "mixture"

_WEAKENED = ("delete", "infill")
"""Operators under which the signal is weakened: those of a default run."""
_MIXED = 10
"""Number of examples in a mixed data set; one of them has the true explanation."""


@dataclass(frozen=True)
class Sizes:
    """Numbers of examples and data sets of each part; a part with none is skipped."""

    random: int = 0
    truth: int = 0
    weakened: int = 0
    mixture: int = 0
    covered: int = 0
    matched: int = 0
    sequential: int = 0
    simulated: int = 0
    citations: int = 0


FULL = Sizes(
    random=800, truth=200, weakened=300, mixture=600, covered=400, matched=400, sequential=400, simulated=400,
    citations=400,
)  # fmt: skip
QUICK = Sizes(
    random=200, truth=100, weakened=50, mixture=200, covered=100, matched=100, sequential=60, simulated=60,
    citations=100,
)  # fmt: skip


@dataclass(frozen=True)
class Report:
    checks: tuple[Check, ...]
    seed: int
    skipped: tuple[str, ...]
    """Models that could not be tested here, and the reason."""
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
        return {
            "ok": self.ok,
            "seed": self.seed,
            "limit": checks.LIMIT,
            "n_guarantees": len(self.guarantees),
            "n_failed": len(self.failed),
            "skipped": list(self.skipped),
            "seconds": round(self.seconds, 1),
            "checks": [check.as_dict() for check in self.checks],
        }


def selftest(
    *,
    seed: int = 0,
    sizes: Sizes = FULL,
    operators: Sequence[str] | None = None,
    with_transformer: bool = True,
    say: Callable[[str], None] = lambda message: None,
) -> Report:
    """Test the method on models with known truth; `say` gets a line before each part."""
    started, skipped = time.monotonic(), []
    names = tuple(operators or (name for name, each in operator_registry.items() if "token" in each.units))
    models: list[KnownModel] = [toy()]
    if with_transformer:
        try:
            models.append(planted())
        except ImportError as exc:
            skipped.append(f"the transformer is skipped: {exc.name} is not installed.")
    found = []
    # Sets that are listed and shuffled, and sets that are drawn because there are too many to list.
    for n_units, size in ((8, 2), (30, 6)) if sizes.random else ():
        rng = rng_for(seed, "selftest", "sampler", n_units)
        found.append(checks.uniform_sets(n_units, size, n=sizes.random, seed=seed, rng=rng))
    if sizes.simulated:
        say("simulated win rates …")
        found += simulated(sizes.simulated, rng=rng_for(seed, "selftest", "simulated"))
    with tempfile.TemporaryDirectory(prefix="ice-selftest-") as folder:
        for known in models:
            bench = _Bench(known, names, sizes, seed, Path(folder) / known.name, say)
            found += bench.checks()
        if sizes.citations:
            say(f"toy-reader: citations, {sizes.citations} claims …")
            found += _citations(sizes.citations, seed, Path(folder))
    return Report(tuple(found), seed, tuple(skipped), time.monotonic() - started)


@dataclass(frozen=True)
class _Bench:
    known: KnownModel
    operators: Sequence[str]
    sizes: Sizes
    seed: int
    folder: Path
    say: Callable[[str], None]

    def checks(self) -> Iterator[Check]:
        sizes, attribution = self.sizes, self.known.attribution
        weak = [name for name in self.operators if name in _WEAKENED]
        one_each = [[name] for name in weak]
        random = {RANDOM: attributions.get(RANDOM)()}
        known = {TRUTH: attribution(), NEGATED: attribution(sign=-1.0)}
        noisy = {f"truth + {x:g} noise": attribution(noise=x, seed=self.seed) for x in NOISE}
        matched = tuple(name for name in null_registry.names() if name != SIZE)
        # All operators in one run, so that the average over operators is tested too.
        null = self._run(RANDOM, random, [self.operators], n=sizes.random)
        true = self._run(TRUTH, known, [[name] for name in self.operators], n=sizes.truth)
        weakened = self._run("weakened", noisy, one_each, n=sizes.weakened, directions=DIRECTIONS[:1])
        others = self._run("matched", random, one_each, n=sizes.matched, directions=DIRECTIONS[:1], nulls=matched)
        # Random sets until every test has decided.
        others |= self._run("sequential", random, [weak], n=sizes.sequential, m=M_SEQUENTIAL, adaptive="examples")
        for trial in [*null.values(), *others.values()]:
            yield from checks.calibration(trial, rng=self._rng("calibration"))
        for about, trial in true.items():
            check = {TRUTH: checks.truth, NEGATED: checks.negated_truth}[about.attribution]
            exact = not operator_registry.get(about.operator).needs_fills
            yield from check(trial, exact=exact, unique=self.known.unique, rng=self._rng(about.attribution))
        for trial in weakened.values():
            yield from checks.power(trial, rng=self._rng("power"))
        yield from self._discoveries(null, true)
        # Where scores tie, null p-values are so large that the check could not fail.
        if self.known.unique and sizes.mixture:
            yield from self._mixture({**random, **known})
        yield from self._coverage([*null.values(), *true.values(), *weakened.values()])

    def _discoveries(self, null: Mapping[About, Trials], true: Mapping[About, Trials]) -> Iterator[Check]:
        """Check discoveries with few random sets, which needs a large level: 6 null and 2 true examples at 0.20."""
        for about, trial in true.items() if null else ():
            if about.attribution == TRUTH:
                ours, rng = null[replace(about, attribution=RANDOM)].p_value, self._rng("discoveries")
                mixed = replace(about, attribution=MIXTURE)
                yield from checks.false_discoveries(
                    mixed, ours, trial.p_value, n_null=6, n_signal=2, alpha=0.20, rng=rng
                )

    def _mixture(self, methods: Mapping[str, Attribution]) -> Iterator[Check]:
        """Check discoveries with many random sets, at a summary's level: one true explanation among nine random."""
        n, directions = self.sizes.mixture, DIRECTIONS[:1]
        found = self._run(MIXTURE, methods, [self.operators[:1]], n=n, m=M_DISCOVERIES, directions=directions)
        about = replace(next(iter(found)), attribution=MIXTURE)
        null, signal, opposite = (found[replace(about, attribution=name)] for name in methods)
        place = np.arange(len(null)) % _MIXED == 0
        counts = {"n_null": _MIXED - 1, "n_signal": 1}
        tails = {checks.UPPER: (null.p_value, signal.p_value), checks.LOWER: (null.p_lower, opposite.p_lower)}
        for tail, (ours, theirs) in tails.items():
            yield from checks.false_discoveries(
                about, ours[~place], theirs[place], **counts, alpha=0.10, rng=self._rng(MIXTURE), tail=tail
            )

    def _coverage(self, found: Sequence[Trials]) -> Iterator[Check]:
        for trial in found if self.sizes.covered else ():
            about = trial.about
            if about.direction == DIRECTIONS[0] and about.operator in _WEAKENED and about.attribution != NEGATED:
                for size in (50, 100):
                    n, rng = self.sizes.covered, self._rng("coverage")
                    yield checks.coverage(about, trial.win_rate, size=size, n_data_sets=n, rng=rng)

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
        """Run the whole pipeline on `n` fresh texts for each group of operators, and read its outcomes."""
        found: dict[About, Trials] = {}
        if n:
            self.say(f"{self.known.name}: {', '.join(methods)} ({purpose}), {n} texts …")
        for index, group in enumerate(groups if n else ()):
            asked = {"attributions": methods, "operators": group, "directions": directions, "k": SHARE}
            # Ranks are uniform under each fill, and not on the average of several.
            config = run_config({**asked, "n": n, "m": m, "n_fills": 1, "seed": self.seed, **settings})
            model, task = self.known.model, self.known.task(n, seed=self.seed, purpose=purpose)
            subject, examples, out = pipeline.TextSubject(task), task.examples(), self.folder / f"{purpose}-{index}"
            run = pipeline.finish(
                pipeline.score(config, model=model, subject=subject, examples=examples, attributions=methods, out=out)
            )
            found |= _trials(run, self.known.name)
        return found

    def _rng(self, purpose: str) -> np.random.Generator:
        # The same draws for every configuration: where two agree on every example, so do their checks.
        return rng_for(self.seed, "selftest", self.known.name, purpose)


def _trials(run: RunFolder, model: str) -> dict[About, Trials]:
    """Return the outcomes of a finished run, by configuration."""
    config, found = run.manifest().config, dict[About, Trials]()
    sequential = config.adaptive == "examples"
    for cell, outcomes in outcomes_by_configuration(run, config).items():
        # A rationale may be alone in its class; nothing else may go wrong with these texts.
        assert cell.null != SIZE or not outcomes.errors, outcomes.errors
        null = "" if cell.null == SIZE else f", null of {cell.null}"
        label = f"{cell.attribution}{null}{', sequential' if sequential else ''}"
        about = About(model, cell.operator, cell.direction, label)
        used = outcomes.select(outcomes.sound)
        columns = {name: used.column(name) for name in ("p_value", "p_lower", "win_rate", "tie_rate")}
        m_used = used.column("m").astype(np.int64)
        found[about] = Trials(about, **columns, m=m_used, families=used.families.rates(), sequential=sequential)
    return found


def _citations(n: int, seed: int, folder: Path) -> Iterator[Check]:
    """Check that random citations win half of the time at the level of their tests, and planted ones nearly always."""
    for kind in (RANDOM, "planted"):
        task = cited_answers(n, seed=seed, planted=kind != RANDOM)
        subject, methods = ContextSubject(task, task.answers()), {CITED: attributions.get(CITED)()}
        config = run_config({"attributions": CITED, "operators": "delete", "n": n, "m": M, "seed": seed}, "context")
        scored = pipeline.score(
            config,
            model=ToyReader(),
            subject=subject,
            examples=subject.examples,
            attributions=methods,
            out=folder / f"citations-{kind}",
        )
        for trial in _trials(pipeline.finish(scored), "toy-reader").values():
            trial = replace(trial, about=replace(trial.about, attribution=f"{kind} citations"))
            rng = rng_for(seed, "selftest", "citations", kind)
            yield from checks.calibration(trial, rng=rng) if kind == RANDOM else [checks.wins(trial)]
