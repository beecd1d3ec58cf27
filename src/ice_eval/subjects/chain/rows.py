"""The questions of a step-level run: its configuration, the rows that it makes of a chain, and their requests."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, NamedTuple

from ice_eval._registry import from_spec
from ice_eval.errors import ConfigError, DataError
from ice_eval.nulls import SIZE
from ice_eval.rationales import Units, place_of, random_sets, set_size, top_k, units_of
from ice_eval.records import Direction, Kind, PerUnit
from ice_eval.results import RowKey, RunSettings, content_hash
from ice_eval.results.records import ChainSettings, Scalar
from ice_eval.seeding import rng_for
from ice_eval.servers import Message, Request
from ice_eval.settings import RunConfig
from ice_eval.stats import REFERENCE_SHARE
from ice_eval.subjects.chain.answers import AnswerStep, FinalAnswer, check_policy
from ice_eval.subjects.chain.attributions import StepAttribution, StepProbe, step_attributions
from ice_eval.subjects.chain.operators import StepArrangement, StepOperator, StepRemoval, step_operators
from ice_eval.subjects.chain.problems import Case, GivenChain, Problem, WorkedExample, evaluated, given_case
from ice_eval.subjects.chain.steps import given_steps

ADDABLE = ("attributions", "operators", "k")
"""Fields that a later command may extend; all others must be as the folder has them."""
_DIRECTIONS: tuple[Direction, ...] = ("sufficiency", "necessity")


@dataclass(frozen=True, kw_only=True)
class CotConfig:
    """The configuration of a step-level run."""

    model: str
    task: str
    attributions: tuple[str, ...] = ("self-report", "position", "length", "random")
    operators: tuple[str, ...] = ("delete",)
    k: tuple[float, ...] = (REFERENCE_SHARE,)
    """Share of steps that is removed, or retained."""
    n: int = 100
    """Number of problems, from the first on."""
    p: int = 20
    """Random sets of each size; all of them where there are no more."""
    repeats: int = 3
    """How often the full chain is asked, for the noise floor."""
    temperature: float | None = 0.0
    """None leaves it to the server."""
    max_tokens: int = 1024
    """Longest chain."""
    answer_tokens: int = 128
    """Longest reply to a row."""
    levels: bool = False
    """Whether attributions of the chain are also tested in tokens, beside steps; for models on this machine."""
    answer_step: AnswerStep = "drop"
    """Treatment of steps that state the final answer."""
    example: WorkedExample | None = None
    """A solved problem before every question: small models keep to the form then."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("n", "p", "repeats", "max_tokens", "answer_tokens"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} = {getattr(self, name)}: at least 1 is needed.")
        if not self.k or not all(0 < k < 1 for k in self.k):
            raise ConfigError(f"k = {', '.join(map(str, self.k))}: shares between 0 and 1 are expected, such as 0.2.")
        if self.temperature is not None and not self.temperature >= 0:
            raise ConfigError(f"temperature = {self.temperature}: 0 or more is expected.")
        for name in ADDABLE:
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise ConfigError(f"{name} names something twice: {', '.join(map(str, values))}.")
        check_policy(self.answer_step)
        self.methods()
        if not self.removals():
            raise ConfigError("an operator that keeps some steps is needed: delete, or replace.")

    def removals(self) -> dict[str, StepRemoval]:
        """Return the operators that keep some steps, by name."""
        return {name: each for name, each in self._chosen() if isinstance(each, StepRemoval)}

    def arrangements(self) -> dict[str, StepArrangement]:
        """Return the operators that show steps in an order of their own, by name."""
        return {name: each for name, each in self._chosen() if isinstance(each, StepArrangement)}

    def needing_fills(self) -> list[str]:
        """Return the names of the operators that write steps of other problems."""
        return [name for name, operator in self.removals().items() if operator.needs_fills]

    def _chosen(self) -> list[tuple[str, StepOperator]]:
        return [(name, step_operators.get(name)()) for name in self.operators]

    def methods(self) -> dict[str, StepAttribution]:
        """Return the attributions, by the name that was given."""
        return {name: from_spec(name, step_attributions) for name in self.attributions}

    def extended_by(self, stored: RunSettings) -> "CotConfig":
        """Return this configuration, preceded by what the folder already holds."""
        chain = stored.chain
        assert chain is not None, "the folder holds a step-level run"
        before = {
            "attributions": stored.attributions,
            "operators": (*stored.operators, *chain.arrangements),
            "k": stored.k,
        }
        union: Any = {name: tuple(dict.fromkeys([*before[name], *getattr(self, name)])) for name in ADDABLE}
        return replace(self, **union, levels=self.levels or chain.levels)

    def identity(self) -> dict[str, Scalar]:
        """Return the fields that define rows."""
        free = (*ADDABLE, "levels", "example")
        plain = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in free}
        return {**plain, "example": self._example_hash}

    @property
    def _example_hash(self) -> str | None:
        return None if self.example is None else content_hash(asdict(self.example))

    def settings(self) -> RunSettings:
        """Return the settings of the run as its manifest holds them; `m` is the number of random sets."""
        shared = RunConfig(
            attributions=self.attributions,
            operators=tuple(self.removals()),
            directions=_DIRECTIONS,
            k=self.k,
            n=self.n,
            m=self.p,
            seed=self.seed,
        )
        return RunSettings(
            model=self.model,
            task=self.task,
            **{**vars(shared), "unit": "step"},
            own_size=(),
            by_magnitude=(),
            chain=ChainSettings(
                arrangements=tuple(self.arrangements()),
                repeats=self.repeats,
                temperature=self.temperature,
                max_tokens=self.max_tokens,
                answer_tokens=self.answer_tokens,
                levels=self.levels,
                answer_step=self.answer_step,
                example=self._example_hash,
            ),
        )


class StepRow(NamedTuple):
    """A row that is to be asked."""

    key: RowKey
    kept: Units
    """Steps of the chain that are shown, in the order in which they are."""
    shown: tuple[str, ...]
    """All that is shown: steps kept, and what replaces the others."""
    repeat: int = 0
    """Index among several answers to the same question."""


def first_rows(case: Case, config: CotConfig, fills: Sequence[str]) -> Iterator[StepRow]:
    """Yield all rows that are known before any attribution is.

    The full chain for every repeat, no steps at all, random sets of each size under every operator that keeps some
    steps, and the steps in other orders. There is one order of sets for each size, fixed before any attribution is
    seen: its first P are what necessity and sufficiency are about, and with one more any rationale has P others to be
    compared with.
    """
    n_steps = len(case.steps)
    every = tuple(range(n_steps))
    yield StepRow(RowKey(case.id, Kind.FULL), every, case.texts)
    for repeat in range(1, config.repeats):
        yield StepRow(RowKey(case.id, Kind.AGAIN, set=repeat), every, case.texts, repeat)
    yield StepRow(RowKey(case.id, Kind.EMPTY), (), ())
    count = config.p + 1 if config.attributions else config.p
    for size in _sizes(n_steps, config.k):
        sets = random_sets(n_steps, size, count, seed=config.seed, example_id=case.id)
        for index, chosen in enumerate(sets):
            key = RowKey(case.id, Kind.RANDOM, set=index, null=SIZE)
            yield from _removals(case, config, fills, key, units_of(chosen))
    for name, operator in config.arrangements().items():
        rng = rng_for(config.seed, case.id, "arrangements", name)
        for index, order in enumerate(operator.orders(n_steps, config.p, rng)):
            shown = tuple(case.texts[step] for step in order)
            yield StepRow(RowKey(case.id, Kind.ARRANGED, name, set=index, size=len(order)), order, shown)


def rationale_rows(
    case: Case, config: CotConfig, fills: Sequence[str], vectors: Mapping[str, PerUnit]
) -> Iterator[StepRow]:
    """Yield the top-k steps of each attribution, removed and retained."""
    for name, values in vectors.items():
        for size in _sizes(len(case.steps), config.k):
            chosen = top_k(values, size, rng=rng_for(config.seed, case.id, "ties", name))
            sets = random_sets(len(case.steps), size, config.p + 1, seed=config.seed, example_id=case.id)
            key = RowKey(case.id, Kind.RATIONALE, set=place_of(chosen, sets), attribution=name)
            yield from _removals(case, config, fills, key, units_of(chosen))


def probe_rows(case: Case, probes: Mapping[str, Sequence[StepProbe]]) -> Iterator[StepRow]:
    """Yield the probes that are rows, by the names of their attributions."""
    for name, asked in probes.items():
        for index, probe in enumerate(asked):
            if probe.kept is not None:
                key = RowKey(case.id, Kind.PROBE, "delete", "necessity", 1, index, attribution=name)
                yield StepRow(key, probe.kept, tuple(case.texts[step] for step in probe.kept), probe.repeat)


def _sizes(n_steps: int, shares: Sequence[float]) -> list[int]:
    """Return the number of steps in a set at each share, each number once."""
    return list(dict.fromkeys(set_size(n_steps, k) for k in shares))


def _removals(case: Case, config: CotConfig, fills: Sequence[str], key: RowKey, chosen: Units) -> Iterator[StepRow]:
    for name, operator in config.removals().items():
        for direction, kept in (("sufficiency", chosen), ("necessity", case.without(*chosen))):
            own = key._replace(operator=name, direction=direction, size=len(chosen), draw=0)
            yield StepRow(own, kept, tuple(operator.show(case.texts, kept, fills)))


def step_fills(cases: Sequence[Case], *, seed: int) -> Mapping[str, tuple[str, ...]]:
    """Return for every case a step of another problem in place of each of its own, the same in every row.

    Steps that state this problem's answer, by chance, are not taken.

    Raises:
        DataError: There is no step of another problem to take.
    """
    pool = [(case.id, text) for case in cases for text in case.texts]
    return {case.id: _fills(case, pool, seed) for case in cases}


def _fills(case: Case, pool: Sequence[tuple[str, str]], seed: int) -> tuple[str, ...]:
    own, kind = set(case.texts), case.problem.kind
    found: list[str] = []
    for place in rng_for(seed, case.id, "step-fills").permutation(len(pool)):
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


ASK = """{question}

Work this out step by step, with one short step on each line. Then finish with one last line of the form
Answer: {form}"""

CONCLUDE = """{question}

These steps have been worked out already:
{steps}

Rely on them and give the final answer at once, with no further working, as a single line of the form
Answer: {form}"""

Turns = tuple[tuple[Literal["user", "assistant"], str], ...]


def ask_prompt(problem: Problem) -> str:
    """Return the prompt for a chain of steps and a final answer."""
    return ASK.format(question=problem.shown, form=problem.kind.form)


def conclude_prompt(problem: Problem, steps: Sequence[str]) -> str:
    """Return the prompt for the final answer alone, given some of the steps, in their order."""
    return CONCLUDE.format(question=problem.shown, steps="\n".join(steps) or "(none)", form=problem.kind.form)


def asked_turns(example: WorkedExample) -> Turns:
    """Return a worked example as question and reply, before a question for a chain."""
    reply = "\n".join([*example.steps, f"Answer: {example.answer}"])
    return ("user", ask_prompt(example.problem)), ("assistant", reply)


def concluded_turns(example: WorkedExample) -> Turns:
    """Return the same before a question for the answer alone."""
    return ("user", conclude_prompt(example.problem, example.steps)), ("assistant", f"Answer: {example.answer}")


def chain_request(problem: Problem, config: CotConfig) -> Request:
    """Return the request for a chain of steps and an answer."""
    return _request(ask_prompt(problem), config.max_tokens, 0, config, before=asked_turns)


def row_request(case: Case, row: StepRow, config: CotConfig) -> Request:
    """Return the request for the answer to some of the steps."""
    prompt = conclude_prompt(case.problem, row.shown)
    return _request(prompt, config.answer_tokens, row.repeat, config, before=concluded_turns)


def probe_request(case: Case, probe: StepProbe, config: CotConfig) -> Request:
    """Return the request of a probe."""
    tokens = probe.max_tokens or config.answer_tokens
    if probe.kept is None:
        return _request(probe.prompt, tokens, probe.repeat, config)
    prompt = conclude_prompt(case.problem, [case.texts[step] for step in probe.kept])
    return _request(prompt, tokens, probe.repeat, config, before=concluded_turns)


def _request(
    prompt: str,
    max_tokens: int,
    repeat: int,
    config: CotConfig,
    before: Callable[[WorkedExample], Turns] | None = None,
) -> Request:
    turns = before(config.example) if before is not None and config.example is not None else ()
    return Request(
        messages=(*(Message(role, text) for role, text in turns), Message("user", prompt)),
        model=config.model,
        max_tokens=max_tokens,
        temperature=config.temperature,
        repeat=repeat,
    )


_USUAL_STEPS, _USUAL_STEP = 6, "So many words stand in one usual step, with 3 + 4 = 7 and what follows from it."
"""A chain before any is known: for plans."""


def expected_requests(problems: Sequence[Problem | GivenChain], config: CotConfig) -> list[Request]:
    """Estimate the requests of a run: chains that are not written yet are taken to have six usual steps."""
    requests = [chain_request(problem, config) for problem in problems if isinstance(problem, Problem)]
    usual = given_steps([f"{number}. {_USUAL_STEP}" for number in range(_USUAL_STEPS)])
    cases = [
        given_case(each, policy=config.answer_step)
        if isinstance(each, GivenChain)
        else Case(each, usual, each.gold or FinalAnswer("7", "whole"), usual.steps)
        for each in problems
    ]
    for case in evaluated(cases):
        rows = first_rows(case, config, fills=(_USUAL_STEP,) * len(case.steps))
        requests += [row_request(case, row, config) for row in rows]
        probes = [probe for method in config.methods().values() for probe in method.probes(case)]
        requests += [probe_request(case, probe, config) for probe in probes]
    return requests
