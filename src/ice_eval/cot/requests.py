"""What is asked of the model: for a chain, for a row, for a probe; and what that would cost."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from ice_eval.cot.answers import Answer
from ice_eval.cot.attributions import Probe
from ice_eval.cot.cases import Case, evaluated, given_case
from ice_eval.cot.config import CotConfig
from ice_eval.cot.fills import step_fills
from ice_eval.cot.given import Given
from ice_eval.cot.prompts import Role, ask_prompt, asked_turns, conclude_prompt, concluded_turns
from ice_eval.cot.rows import StepRow, arranged_rows, random_rows, reference_rows
from ice_eval.cot.steps import given_steps
from ice_eval.cot.tasks import Problem, Worked
from ice_eval.servers import Message, Request

USUAL_STEPS, _USUAL_STEP = 6, "So many words stand in one usual step, with 3 + 4 = 7 and what follows from it."
"""A chain before any is known: for plans."""


def chain_request(problem: Problem, config: CotConfig) -> Request:
    """For a chain of steps and an answer."""
    return _request(ask_prompt(problem), config.max_tokens, 0, config, before=asked_turns)


def row_request(case: Case, row: StepRow, config: CotConfig) -> Request:
    """For the answer to some of the steps."""
    prompt = conclude_prompt(case.problem, row.shown)
    return _request(prompt, config.answer_tokens, row.repeat, config, before=concluded_turns)


def probe_request(case: Case, probe: Probe, config: CotConfig) -> Request:
    """For what an attribution wants to know."""
    tokens = probe.max_tokens or config.answer_tokens
    if probe.kept is None:
        return _request(probe.prompt, tokens, probe.repeat, config)
    prompt = conclude_prompt(case.problem, [case.texts[step] for step in probe.kept])
    return _request(prompt, tokens, probe.repeat, config, before=concluded_turns)


def fills_of(cases: Sequence[Case], config: CotConfig) -> Mapping[str, tuple[str, ...]]:
    """Steps of other problems for every case, where an operator needs them."""
    if not any(operator.needs_fills for operator in config.removals().values()):
        return {case.id: () for case in cases}
    return step_fills(cases, seed=config.seed)


def first_rows(case: Case, config: CotConfig, fills: Sequence[str]) -> Iterator[StepRow]:
    """All rows that are known before any attribution is."""
    yield from reference_rows(case, config)
    yield from random_rows(case, config, fills)
    yield from arranged_rows(case, config)


def probes_of(case: Case, config: CotConfig) -> dict[str, list[Probe]]:
    """What every attribution asks."""
    return {name: method.probes(case) for name, method in config.methods().items()}


def requests_of(
    case: Case, rows: Sequence[StepRow], probes: Mapping[str, Sequence[Probe]], config: CotConfig
) -> Iterator[Request]:
    """Rows and probes of a case, as requests."""
    yield from (row_request(case, row, config) for row in rows)
    yield from (probe_request(case, probe, config) for asked in probes.values() for probe in asked)


def expected_requests(problems: Sequence[Problem | Given], config: CotConfig) -> list[Request]:
    """About what a run will ask: chains that are not there yet are taken to have six usual steps."""
    requests = [chain_request(problem, config) for problem in problems if isinstance(problem, Problem)]
    cases = [
        given_case(each, policy=config.answer_step) if isinstance(each, Given) else _usual(each) for each in problems
    ]
    for case in evaluated(cases):
        rows = list(first_rows(case, config, fills=(_USUAL_STEP,) * len(case.steps)))
        requests += requests_of(case, rows, probes_of(case, config), config)
    return requests


def _usual(problem: Problem) -> Case:
    steps = [f"{number}. {_USUAL_STEP}" for number in range(USUAL_STEPS)]
    chain = given_steps(steps)
    return Case(problem, chain, problem.gold or Answer("7", "whole"), chain.steps)


def _request(
    prompt: str,
    max_tokens: int,
    repeat: int,
    config: CotConfig,
    before: Callable[[Worked], Sequence[tuple[Role, str]]] | None = None,
) -> Request:
    turns = before(config.example) if before is not None and config.example is not None else ()
    return Request(
        messages=(*(Message(role, text) for role, text in turns), Message("user", prompt)),
        model=config.model,
        max_tokens=max_tokens,
        temperature=config.temperature,
        repeat=repeat,
    )
