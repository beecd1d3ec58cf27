"""`evaluate_chains`: whether a model uses the reasoning that it writes, for servers and models on this machine."""

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ice_eval.api import Run
from ice_eval.api.progress import watched
from ice_eval.errors import ConfigError
from ice_eval.models import DeviceMap, MaxMemory, Model, load_model
from ice_eval.pipeline import Reporter
from ice_eval.results.records import ChainInfo
from ice_eval.servers import RESPONSES, Budget, Chat, ResponseStore, Server, plan_requests
from ice_eval.subjects.chain import (
    ADDABLE,
    ChainPlan,
    ChatBackend,
    CotConfig,
    CotTask,
    LocalChat,
    ProblemSource,
    WorkedExample,
    cot_tasks,
    execute_chains,
    expected_requests,
    read_given,
    skipped_chains,
)
from ice_eval.tasks import DataSource, FileData

_NO_TASK = "given"
"""Name of the task where chains are brought and none is named."""


def evaluate_chains(
    model: str | Model,
    task: str | CotTask | None = None,
    *,
    base_url: str | None = None,
    data: str | Path | DataSource | None = None,
    responses: str | Path | None = None,
    server: Server | None = None,
    budget: Budget | None = None,
    device: str = "auto",
    dtype: str = "auto",
    device_map: DeviceMap | None = None,
    max_memory: MaxMemory | None = None,
    load_in: str | None = None,
    out: str | Path | None = None,
    default_out: bool = False,
    reporter: Reporter | None = None,
    **settings: Any,
) -> Run:
    """Evaluate the steps of chains of thought: does the answer depend on them?

    Args:
        model: Name of the model behind the server; without a server a model as `evaluate` takes it.
        task: Name of a reasoning task, or a `CotTask`; may be left out with `responses`.
        base_url: Address of an OpenAI-compatible server, as `http://localhost:8000/v1`.
        data: File of problems, in place of the task's own data.
        responses: File of chains that are there already: no chain is asked for.
        server: In place of `base_url`, with a key, a time limit and so on.
        budget: Limits on requests and cost.
        device: Of a model on this machine.
        dtype: Of a model on this machine.
        device_map: Of a model on this machine that is spread over several devices, as `evaluate` takes it.
        max_memory: What such a map may put on each device.
        load_in: How the weights of a model on this machine are quantised, as `evaluate` takes it.
        out: Run folder; the same call continues it. By default a temporary one.
        default_out: Whether the default is a folder under `ice-runs/` that the same call continues.
        reporter: Gets progress and messages; by default a terminal and a notebook show them, and nothing else does.
        settings: Fields of `CotConfig`: n, p, k, operators, attributions, repeats, temperature, answer_step, seed,
            max_tokens, answer_tokens, levels; and `worked_example`: whether a solved problem of the task stands before
            every question.

    Raises:
        ConfigError: Something is wrong with what was asked.
        BudgetError: The limit is reached; the same call with a higher one continues.
        ModelError: No problem could be evaluated, or the model did not answer.

    Example:
        >>> run = evaluate_chains("my-model", "gsm8k", base_url="http://localhost:8000/v1",   # doctest: +SKIP
        ...                       data="gsm8k.jsonl", n=50)
        >>> ice_eval.report.chain_verdict(run.folder.summary()).title   # doctest: +SKIP
        'The answer rests on the steps in part: scaffolding.'
    """
    config, source = _asked(model, task, data, responses, settings)
    loading = {"device": device, "dtype": dtype, "device_map": device_map, "max_memory": max_memory, "load_in": load_in}
    backend = _backend(model, _server(base_url, server), budget, loading)
    if backend.model is not None:
        config = replace(config, model=backend.model.name)
    folder = None if out is None else Path(out)
    if folder is None and not default_out:
        folder = Path(tempfile.mkdtemp(prefix="ice-cot-")) / "run"
    reporter = reporter or watched("requests", continues=out is not None or default_out)
    return Run(execute_chains(config, source, backend, out=folder, reporter=reporter).path)


def plan_chains(
    model: str | Model,
    task: str | CotTask | None = None,
    *,
    data: str | Path | DataSource | None = None,
    responses: str | Path | None = None,
    budget: Budget | None = None,
    **settings: Any,
) -> ChainPlan:
    """Estimate what `evaluate_chains` would ask; asks nothing."""
    config, source = _asked(model, task, data, responses, settings)
    nowhere = ResponseStore(Path(RESPONSES))  # never entered: nothing is read or written
    asked = plan_requests(expected_requests(source.problems, config), nowhere, budget or Budget())
    return ChainPlan(**vars(asked), n_problems=len(source.problems), skipped=skipped_chains(source.problems, config))


def _asked(
    model: str | Model,
    task: str | CotTask | None,
    data: str | Path | DataSource | None,
    responses: str | Path | None,
    settings: Mapping[str, Any],
) -> tuple[CotConfig, ProblemSource]:
    found = cot_tasks.get(task)() if isinstance(task, str) else task
    config = _config(model, found, settings)
    if responses is not None:
        if data is not None:
            raise ConfigError("problems and chains cannot both be given: --responses holds its questions itself.")
        given = read_given(Path(responses), kind=None if found is None else found.kind)
        return config, ProblemSource(given[: config.n], str(responses))
    if found is None:
        raise ConfigError(f"no task is named; choose one of {', '.join(cot_tasks.names())}, or bring chains.")
    source = found.source(FileData(Path(data)) if isinstance(data, str | Path) else data)
    return config, ProblemSource(found.problems(source, limit=config.n), source.origin)


def _config(model: str | Model, task: CotTask | None, settings: Mapping[str, Any]) -> CotConfig:
    """Return the configuration; a single share, operator or attribution may stand for a list of one."""
    given = dict(settings)
    example = _example(task) if given.pop("worked_example", False) else None
    for name in ADDABLE:
        if name in given:
            given[name] = (given[name],) if isinstance(given[name], str | float | int) else tuple(given[name])
    return CotConfig(
        model=model if isinstance(model, str) else model.name,
        task=_NO_TASK if task is None else task.name,
        example=example,
        **given,
    )


def _example(task: CotTask | None) -> WorkedExample:
    if task is None or task.example is None:
        raise ConfigError("a worked example comes from a task, and none with one is named; choose one with --task.")
    return task.example


def _server(base_url: str | None, server: Server | None) -> Server | None:
    if base_url is not None and server is not None:
        raise ConfigError("base_url and server exclude each other; give one of them.")
    return Server(base_url=base_url) if base_url is not None else server


def _backend(
    model: str | Model, server: Server | None, budget: Budget | None, loading: Mapping[str, Any]
) -> ChatBackend:
    if server is not None:
        if not isinstance(model, str):
            raise ConfigError("behind a server a model goes by its name; a loaded one needs no server.")
        return ChatBackend(lambda store: Chat(server, store, budget=budget), ChainInfo(base_url=server.base_url))
    if budget is not None and budget != Budget():
        raise ConfigError("a limit on requests or cost needs a server; a model on this machine costs nothing.")
    loaded = load_model(model, **loading)
    about = ChainInfo(device=loaded.devices, weights=loaded.fingerprint)
    return ChatBackend(lambda store: LocalChat(loaded, store), about, loaded)
