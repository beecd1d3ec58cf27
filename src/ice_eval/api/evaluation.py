"""`evaluate` and `plan`: run an evaluation from user arguments, or estimate its cost."""

import contextlib
import inspect
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple, Never

import numpy as np
from numpy.typing import ArrayLike

from ice_eval._registry import did_you_mean
from ice_eval.api.progress import watched
from ice_eval.api.run import Run
from ice_eval.attributions import Attribution, Computed, Given, explained, method_of
from ice_eval.choices import (
    Adaptive,
    AnswerStep,
    Calibration,
    ChainFrom,
    Direction,
    FillMode,
    Hint,
    LabelScoring,
    Order,
    Pose,
    ProtocolName,
    Scope,
    Share,
    Sign,
    Unit,
    Until,
)  # fmt: skip
from ice_eval.errors import ConfigError, DataError
from ice_eval.executors import Executor, executor_named
from ice_eval.interop import Explanation
from ice_eval.interop import formats as explanation_formats
from ice_eval.models import DeviceMap, MaxMemory, Model, ModelRef, Served, is_function, load_model, load_reader
from ice_eval.operators import operators as operator_registry
from ice_eval.operators.steps import Arrangement
from ice_eval.pipeline import (
    Replicas,
    Reporter,
    Subject,
    TextSubject,
    examples_read,
    finish,
    load_replicas,
    score,
)
from ice_eval.records import Example
from ice_eval.results import Plan, RunFolder
from ice_eval.results import plan as plan_from
from ice_eval.results.planning import PILOT_SETS
from ice_eval.settings import LOADING, RunConfig, chain_fields, refuse_others, run_config, values_of
from ice_eval.subjects.chain import GivenChain, Problem, ReasoningTask, given_task, read_given
from ice_eval.subjects.chain.subject import ChainPlan, ChainSubject
from ice_eval.subjects.context import CitedAnswer
from ice_eval.subjects.context.judged import Judge, scoring_claims
from ice_eval.subjects.context.subject import ANSWERS, CITED, ContextSubject
from ice_eval.subjects.context.tasks import CitationTask
from ice_eval.tasks import (
    AnyTask,
    DataSource,
    FileData,
    Task,
    as_functions_read,
    in_chat,
    named_task,
    read_as,
    tasks,
    with_file,
)

AttributionSpec = Attribution | ArrayLike | Callable[..., ArrayLike] | str | Path | Explanation | None
"""Also accepted: objects of the libraries that `ice_eval.interop` knows, and sequences or mappings of any of them."""


def _refuse(unknown: Mapping[str, object], function: Callable[..., object]) -> None:
    """Raise ConfigError if a keyword argument is unknown; the message lists the known ones."""
    known = [name for name in inspect.signature(function).parameters if name != "unknown"]
    for name in unknown:
        raise ConfigError(
            f"{function.__name__}() got an unexpected keyword argument '{name}'{did_you_mean(name, known)} "
            f"Its settings are {', '.join(known)}."
        )


def evaluate(
    model: ModelRef | Replicas,
    task: str | AnyTask | None = None,
    *,
    data: str | Path | DataSource | None = None,
    chat: bool | None = None,
    system: str | None = None,
    attributions: str | Sequence[str] | Mapping[str, AttributionSpec] | None = None,
    operators: str | Sequence[str] | None = None,
    directions: Direction | Sequence[Direction] | None = None,
    k: Share | Sequence[Share] = 0.2,
    n: int | None = None,
    m: int | None = None,
    nulls: str | Sequence[str] = "size",
    adaptive: Adaptive | None = None,
    until: Until | None = None,
    seed: int = 0,
    unit: Unit | None = None,
    scope: Scope | None = None,
    target: str = "predicted",
    versus: str | None = None,
    sign: Sign | None = None,
    fills: FillMode | None = None,
    n_fills: int | None = None,
    label_scoring: LabelScoring | None = None,
    calibration: Calibration = "none",
    order: Order | None = None,
    max_characters: int | None = None,
    min_confidence: float | None = None,
    eraser: bool = False,
    protocol: ProtocolName = "default",
    responses: str | Path | None = None,
    repeats: int = 3,
    temperature: float | Literal["server"] = 0.0,
    max_tokens: int = 1024,
    answer_tokens: int = 128,
    chain_from: ChainFrom = "auto",
    answer_step: AnswerStep = "drop",
    poses: Pose | Sequence[Pose] = "user",
    hints: Hint | Sequence[Hint] = (),
    levels: bool = False,
    worked_example: bool = False,
    whole_answer: bool = False,
    device: str = "auto",
    dtype: str = "auto",
    device_map: DeviceMap | None = None,
    max_memory: MaxMemory | None = None,
    load_in: str | None = None,
    token_budget: int | None = None,
    executor: str = "local",
    address: str | None = None,
    gpus_per_worker: float | None = None,
    out: str | Path | None = None,
    default_out: bool = False,
    reporter: Reporter | None = None,
    judge: Judge | None = None,
    **unknown: Never,
) -> Run:
    """Compare explanations of a model with random ones of equal size, under several operators.

    The task says what is explained: texts (`sst2`), chains of thought (`gsm8k`) or answers that cite passages
    (`citations`). The other settings are those of the command line: `ice run --help-all` describes each.

    Main arguments:
        model: A hub id, a folder, a `.gguf` file, a known name (`smollm2`, `gpt2-xl`), a pair of a transformers
            model and its tokenizer, a function from texts to label probabilities, or a `Served` model.
        task: A known task (`sst2`), perhaps with another of its prompts (`sst2/minimal`, `sst2/minimal/few-shot`), a
            task file (`mine.yaml`), or a `Task`; None if `responses` are given.
        data: A `.jsonl` or `.csv` file in place of the task's own data, or a `FileData` that names its columns.
        chat: True to make the prompt a user turn of the model's chat template; the default depends on the task.
        attributions: Names (`"attention"`, or with options `"attention:layer=-1"`), or a mapping from names to sources.
            None selects the built-in method. Numbers are an array per example: a sequence, or a mapping from ids. A
            function takes an encoded example (`item.texts` are its units) and returns a number per unit. A source may
            also be a file, or what shap, captum, lime, inseq, ferret or interpreto return. By default `attention`,
            `gradient` and `random`; for chains `self-report`, `position`, `length` and `random`.
        operators: By default `delete` and `infill`; for chains `delete`.
        directions: `sufficiency` (the default) keeps the rationale, `necessity` removes it; chains have both.
        k: Share of units in a rationale, or `"dynamic"`: one unit per peak of the attribution. Several may be given.
        n: Number of examples, from the first on; by default 500 texts or 100 chains.
        m: Number of random sets per rationale, by default 50, or 20 for chains; with `adaptive` the largest number.
        until: `decided` stops before `n` examples, as soon as every verdict is settled.
        responses: Existing chains of thought: a `.jsonl` file, or a log of inspect_ai or lm_eval.
        device_map: Distribution of the model over several devices: `auto`, `balanced`, `balanced_low_0` or
            `sequential`, a JSON file, or a mapping from modules to devices (a GPU's number, `cpu`, `disk`).
        max_memory: Memory limit of each device in such a map, e.g. `"0=20GiB,cpu=60GiB"`.
        executor: `local` (this process) or `ray` (replicas on a Ray cluster); scores do not depend on it.
        out: The run folder, continued if it holds the same run. By default a temporary one, deleted with the result.
        default_out: Without `out`, use a folder under `ice-runs/` that is named after the configuration.
        reporter: Receives progress and messages; by default only a terminal or a notebook shows them.
        judge: For `citations` of a served model: a function of a claim and a reply that returns True if the reply
            states the claim. The model then answers again for every row. By default, it does so only if the server
            gives no log-probabilities of a prompt, and claims are compared word by word.

    Raises:
        ConfigError: The arguments are invalid; nothing has been written.
        BudgetError: A limit of a served model is reached; the same call with a higher one continues.
        ModelError: The model failed, or no example could be evaluated.
    """
    _refuse(unknown, evaluate)
    given = {name: value for name, value in locals().items() if name != "unknown"}
    place = executor_named(executor, address=address, gpus_per_worker=gpus_per_worker)
    asked = _asked(given)
    temporary = _Temporary() if out is None and not default_out else None
    reporter = reporter or watched(continues=temporary is None)
    with _replicas(model, asked.subject, place, values_of(LOADING, given), reporter) as replicas:
        loaded = replicas.reader.model
        scoring = scoring_claims(loaded, asked.subject.task, judge=judge, max_tokens=max_tokens)
        replicas = replicas if scoring is loaded else Replicas.here(scoring)
        if isinstance(asked.subject, ContextSubject) and asked.subject.unwritten:
            if out is not None and RunFolder(Path(out)).is_foreign:
                raise ConfigError(f"{out} exists but is not a run folder; choose an --out that is empty or new.")
            written = asked.subject.written_by(
                replicas.reader.model,
                max_tokens,
                folder=None if out is None else Path(out),
                store=None if temporary is not None else Path("ice-runs" if out is None else out) / ANSWERS,
                reporter=reporter,
            )
            asked = _asked(given, written)
        scored = score(
            asked.config,
            model=replicas,
            subject=asked.subject,
            examples=asked.examples,
            attributions=asked.methods,
            out=temporary.path / "run" if temporary is not None else None if out is None else Path(out),
            token_budget=token_budget,
            reporter=reporter,
        )
    del asked, replicas, loaded, scoring, given  # released before statistics are computed
    run = Run(finish(scored).path)
    run.folder.keeps = temporary  # a temporary folder exists as long as the run object
    return run


def plan(
    model: ModelRef, task: str | AnyTask | None = None, *,
    width: float | None = None, detect: float | None = None, pilot: int = 32,
    data: str | Path | DataSource | None = None, chat: bool | None = None, system: str | None = None,
    attributions: str | Sequence[str] | Mapping[str, AttributionSpec] | None = None,
    operators: str | Sequence[str] | None = None, directions: Direction | Sequence[Direction] | None = None,
    k: Share | Sequence[Share] = 0.2, n: int | None = None, m: int | None = None, nulls: str | Sequence[str] = "size",
    adaptive: Adaptive | None = None, until: Until | None = None, seed: int = 0, unit: Unit | None = None,
    scope: Scope | None = None, target: str = "predicted", versus: str | None = None,
    sign: Sign | None = None,
    fills: FillMode | None = None, n_fills: int | None = None,
    label_scoring: LabelScoring | None = None, calibration: Calibration = "none", order: Order | None = None,
    max_characters: int | None = None, min_confidence: float | None = None, eraser: bool = False,
    protocol: ProtocolName = "default", responses: str | Path | None = None, repeats: int = 3,
    temperature: float | Literal["server"] = 0.0, max_tokens: int = 1024, answer_tokens: int = 128,
    chain_from: ChainFrom = "auto", answer_step: AnswerStep = "drop", poses: Pose | Sequence[Pose] = "user",
    hints: Hint | Sequence[Hint] = (), levels: bool = False, worked_example: bool = False, whole_answer: bool = False,
    device: str = "auto", dtype: str = "auto", device_map: DeviceMap | None = None,
    max_memory: MaxMemory | None = None, load_in: str | None = None, token_budget: int | None = None,
    executor: str = "local", address: str | None = None, gpus_per_worker: float | None = None,
    reporter: Reporter | None = None, judge: Judge | None = None,
    **unknown: Never,
) -> Plan | ChainPlan:  # fmt: skip
    """Estimate the cost and the power of an evaluation from a small pilot, which is not kept.

    For chains of thought, no request is sent: the plan counts requests and tokens, and has no power.

    With `width` (width of the 95 % intervals, e.g. 0.05) or `detect` (smallest detectable win rate, e.g. 0.55), it also
    finds the cheapest numbers of examples and sets that reach it. `pilot` is the number of examples of the pilot. All
    other arguments are those of `evaluate`.

    Raises:
        ConfigError: The arguments are invalid.
    """
    _refuse(unknown, plan)
    given = {name: value for name, value in locals().items() if name not in ("width", "detect", "pilot", "unknown")}
    _check_goals(pilot, width, detect)
    chosen = _task_of(given)
    refuse_others(given, chosen.subject, chosen.name)
    if isinstance(chosen, ReasoningTask):
        if width is not None or detect is not None:
            raise ConfigError("--width and --detect need a pilot, and a plan of chains of thought asks nothing.")
        found = _asked(given)
        assert isinstance(found.subject, ChainSubject)
        ref = model if isinstance(model, Served) else load_reader(model)
        return found.subject.plan(ref, found.config, found.methods)
    asked = _config_of(given, chosen)
    if isinstance(chosen, Task):
        chosen = read_as(chosen, **asked.reading)
    n, limit = asked.n, examples_read(asked.n)
    n_examples = len(chosen.examples(limit=limit)) if isinstance(chosen, Task) else _n_claims(given)
    shown = reporter or watched(continues=False)
    if isinstance(model, Served):
        shown.say(f"the pilot sends requests to {model.base_url}: they are charged, and their answers are not kept.")
    elif isinstance(model, str):
        shown.say(f"loading {model} …")
    given |= {"task": chosen, "data": None, "adaptive": None, "reporter": _without_messages(shown)}
    # One random set shows no spread.
    given |= {"n": min(n, pilot), "m": min(max(asked.m, 2), PILOT_SETS)}
    tried = evaluate(**given)
    for message in tried.folder.manifest().messages:
        shown.say(message)
    return plan_from(
        tried.folder,
        n=min(n, n_examples),
        m=asked.m,
        adaptive=asked.adaptive,
        width=width,
        detect=detect,
        available=n_examples if n_examples < limit or not isinstance(chosen, Task) else None,
    )


def _n_claims(given: Mapping[str, Any]) -> int:
    """Return the number of claims in the data; raise ConfigError if the model has to write them first."""
    subject = _asked(given).subject
    assert isinstance(subject, ContextSubject)
    if subject.unwritten:
        raise ConfigError(
            "a plan needs answers, and these have to be written first; run a few questions (--n 5) instead."
        )
    return len(subject.examples)


def _without_messages(shown: Reporter) -> Any:
    """Return a reporter of progress alone: messages about a pilot do not apply to the run."""
    progress = {name: getattr(shown, name) for name in ("start", "advance", "correct", "stop", "asked_to_stop")}
    return SimpleNamespace(say=lambda message: None, **progress)


def _check_goals(pilot: int, width: float | None, detect: float | None) -> None:
    if pilot < 2:
        raise ConfigError(f"pilot = {pilot}: at least 2 examples are needed.")
    for name, goal, low, usual in (("width", width, 0.0, 0.05), ("detect", detect, 0.5, 0.55)):
        if goal is not None and not low < goal < 1:
            raise ConfigError(
                f"{name} = {goal}: a number between {low:g} and 1 is expected, such as {usual} for {100 * usual:.0f} %."
            )


class _Asked(NamedTuple):
    """The arguments of `evaluate`, checked."""

    config: RunConfig
    subject: Subject
    examples: Sequence[Example]
    methods: Mapping[str, Attribution]


def _asked(given: Mapping[str, Any], written: Sequence[CitedAnswer] | None = None) -> _Asked:
    """Check arguments and read all data: what is wrong shows before a model is loaded.

    Answers that the model has to write first are given as `written`.
    """
    task = _task_of(given)
    config = _config_of(given, task)
    refuse_others(given, task.subject, task.name)
    known = given["attributions"] if isinstance(given["attributions"], Mapping) else {}
    for name in (name for name in config.attributions if known.get(name) is None):
        method_of(name)
    subject: Subject
    if isinstance(task, ReasoningTask):
        subject, config = _chains(task, config, given)
        examples = subject.examples
    elif isinstance(task, CitationTask):
        answers = task.answers() if written is None else written
        if any(answer.text is None for answer in answers):
            answers = answers[: config.n]  # each has a claim at least
        subject = ContextSubject(
            task, answers, needs_citations=CITED in config.attributions, whole=given["whole_answer"]
        )
        examples = [] if subject.unwritten else subject.examples[: config.n]
    else:
        assert isinstance(task, Task)
        task = read_as(task, **config.reading)
        subject, examples = TextSubject(task), task.examples(limit=examples_read(config.n))
    methods = {name: _method(name, known.get(name), examples) for name in config.attributions}
    return _Asked(config, subject, examples, _Methods(methods))


def _config_of(given: Mapping[str, Any], task: AnyTask) -> RunConfig:
    language = task.language if isinstance(task, Task) else "und"
    return run_config(given, task.subject, task=task.name, language=language)


def _task_of(given: Mapping[str, Any]) -> AnyTask:
    """Return a known or user-supplied task, with its data replaced if `data` or `responses` are given."""
    task, data, responses = given["task"], given["data"], given["responses"]
    chosen = named_task(task) if isinstance(task, str) else task
    if responses is not None:
        if data is not None:
            raise ConfigError("problems and chains cannot both be given: --responses holds its questions itself.")
        chosen = chosen or given_task()
        return replace(chosen, data=FileData(Path(responses)))
    if chosen is None:
        raise ConfigError(f"no task is given; choose one of {', '.join(tasks.names())}, or give chains: --responses.")
    if data is not None:
        chosen = replace(chosen, data=data) if isinstance(data, DataSource) else with_file(chosen, Path(data))
    model = given["model"].reader.model if isinstance(given["model"], Replicas) else given["model"]
    if isinstance(chosen, Task) and is_function(model):
        chosen = as_functions_read(chosen)
    return in_chat(chosen, given["chat"], given["system"]) if isinstance(chosen, Task | CitationTask) else chosen


def _chains(task: ReasoningTask, config: RunConfig, given: Mapping[str, Any]) -> tuple[ChainSubject, RunConfig]:
    """Return the chains of a task, or given ones, and the configuration with the operators that keep some steps.

    Operators that only reorder steps are the subject's. In every pose but the first each operator has its own name.
    """
    fields = chain_fields(given)
    arranged = [name for name in config.operators if issubclass(operator_registry.get(name), Arrangement)]
    removing = tuple(name for name in config.operators if name not in arranged)
    if any("@" in name for name in config.operators):
        raise ConfigError("poses have a setting of their own: give operators by their plain names, and --poses.")
    if not removing:
        raise ConfigError("an operator that keeps some steps is needed: delete, or replace.")
    problems: Sequence[Problem | GivenChain]
    if given["responses"] is not None:
        problems = read_given(Path(given["responses"]), kind=task.kind)[: config.n]
    else:
        problems = task.problems(limit=config.n)
    in_poses = [f"{name}@{pose}" for pose in fields["poses"][1:] for name in removing]
    subject = ChainSubject(
        task,
        problems,
        fields=fields,
        arrangements=arranged,
        worked_example=given["worked_example"],
    )
    return subject, replace(config, operators=(*removing, *in_poses))


@contextlib.contextmanager
def _replicas(
    model: ModelRef | Replicas, subject: Subject, place: Executor, loading: Mapping[str, Any], reporter: Reporter
) -> Iterator[Replicas]:
    """Load a model where it computes, and release it afterwards; replicas of a caller stay loaded."""
    if isinstance(model, Replicas):
        if isinstance(subject, ChainSubject):
            model = Replicas.here(subject.answered_by(model.reader.model))
        yield model
        return
    with place.opened():
        if isinstance(model, str):
            reporter.say(f"loading {model} …")
        if isinstance(subject, ChainSubject):
            loaded = model if isinstance(model, Served) else load_model(model, **loading)
            replicas = Replicas.here(subject.answered_by(loaded), owned=not isinstance(model, Model))
        else:
            replicas = load_replicas(model, place, reporter=reporter, **loading)
        try:
            yield replicas
        finally:
            replicas.release()


class _Temporary:
    """A folder that is deleted with the last reference to it, or at exit."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="ice-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


class _Methods(dict[str, Attribution]):
    """Attributions by name, plus every known method, since stored ones need not be named again."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or _is_known(str(name))

    def __missing__(self, name: str) -> Attribution:
        return method_of(name)


def _is_known(name: str) -> bool:
    try:
        method_of(name)
    except ConfigError:
        return False
    return True


_EXPECTED = "a file with explanations, numbers or a function are expected, or None for a known method"


def _method(name: str, spec: AttributionSpec, examples: Sequence[Example]) -> Attribution:
    """Return the user's value for a name as an `Attribution`, or raise ConfigError or DataError."""
    if spec is None:
        return method_of(name)
    if isinstance(spec, Attribution):
        return spec
    if _is_known(name.partition(":")[0]):
        raise ConfigError(
            f"'{name}' is the name of a known attribution, but these scores were not computed by it; choose another "
            "name to avoid confusion."
        )
    if isinstance(spec, str | Path) and not Path(spec).is_file():
        raise DataError(f"the attribution '{name}' is '{spec}', and there is no such file; {_EXPECTED}.")
    if _is_explanation(spec):
        return explained(name, spec, examples)
    if callable(spec):
        return Computed(function=spec)
    if isinstance(spec, Mapping):
        return Given(values={str(identity): values for identity, values in spec.items()})
    if not isinstance(spec, Iterable):
        raise DataError(f"the attribution '{name}' is {spec!r:.60}; {_EXPECTED}.")
    rows = list(spec)
    if len(rows) > len(examples):
        raise DataError(f"the attribution '{name}' has {len(rows)} arrays, and the data hold {len(examples)} examples.")
    return Given(values={example.id: row for example, row in zip(examples, rows, strict=False)})


def _is_explanation(spec: object) -> bool:
    """Return True for a file or an object of a known library, alone or several in a sequence or mapping."""
    if isinstance(spec, str | Path) or _is_readable(spec):
        return True
    several = list(spec.values()) if isinstance(spec, Mapping) else spec
    return isinstance(several, list | tuple) and bool(several) and _is_readable(several[0])


def _is_readable(spec: object) -> bool:
    if isinstance(spec, Explanation | np.ndarray):
        return isinstance(spec, Explanation)
    return any(known().reads(spec) for _, known in explanation_formats.items())
