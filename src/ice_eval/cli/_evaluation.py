"""The options that define an evaluation: those of `ice run`, which `ice plan` and `ice validate` take too."""

import copy
import functools
import inspect
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ice_eval.cli._options import (
    Address,
    Columns,
    Device,
    DeviceMap,
    Dtype,
    ExecutorName,
    GpusPerWorker,
    LoadIn,
    MaxMemory,
    names,
    read_config,
)
from ice_eval.cli._tasks import TaskFlags, task_of
from ice_eval.errors import ConfigError

if TYPE_CHECKING:
    from ice_eval.models import Served
    from ice_eval.rationales import Share


PANELS = {
    "What is evaluated": "model task data columns prompt labels explain chat system attributions attribution_file n",
    "How it is tested": "operators direction unit k m null adaptive seed protocol target sign scope fills n_fills "
    "label_scoring calibration eraser",
    "Where the model computes": "device dtype device_map max_memory load_in token_budget executor address "
    "gpus_per_worker",
    "A model behind a server": "base_url tokenizer api_key_env concurrency max_requests max_cost price_in price_out",
}
"""Under which heading help shows an option."""
_PANEL_OF = {name: panel for panel, names in PANELS.items() for name in names.split()}


def evaluation(
    model: Annotated[
        str,
        typer.Option(
            help="Hub id, folder, .gguf file, python:module:function, openai:NAME (see --base-url), or a name from "
            "`ice list models`"
        ),
    ],
    task: Annotated[
        str | None,
        typer.Option(
            help="A name from `ice list tasks` (sst2, sst2/minimal, sst2/few-shot), a task file (.yaml, see `ice task "
            "new`); or give --data, --prompt and --labels."
        ),
    ] = None,
    attributions: Annotated[
        str,
        typer.Option(help="Comma-separated, options after a colon (NAME:option=value); see `ice list attributions`."),
    ] = "attention,gradient,random",
    attribution_file: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE",
            help="Explanations that another tool wrote, beside --attributions; may be given several times.",
        ),
    ] = None,
    operators: Annotated[str, typer.Option(help="Comma-separated; see `ice list operators`.")] = "delete,infill",
    direction: Annotated[
        str, typer.Option(help="sufficiency (keep the rationale), necessity (remove it), or both with a comma.")
    ] = "sufficiency",
    unit: Annotated[str, typer.Option(help="What is kept or removed: token or word.")] = "token",
    k: Annotated[
        str,
        typer.Option(
            help="Share of units in a rationale, or dynamic (as many as the attribution has peaks); several, "
            "comma-separated."
        ),
    ] = "0.2",
    n: Annotated[int, typer.Option(help="Examples, from the first on.")] = 500,
    m: Annotated[
        int | None,
        typer.Option(
            help="Random sets per rationale, 50 by default; the most of them with --adaptive (examples: 499)."
        ),
    ] = None,
    null: Annotated[
        str,
        typer.Option(help="What the random sets share with the rationale, comma-separated; see `ice list nulls`."),
    ] = "size",
    adaptive: Annotated[
        str | None,
        typer.Option(
            help="Fewer random sets: dataset (a pilot finds how many) or examples (as many as each test needs)."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Defines random sets, fills and the random control.")] = 0,
    data: Annotated[
        Path | None,
        typer.Option(help=".jsonl or .csv with the prompt's fields, and perhaps `label`, `id` and `group`."),
    ] = None,
    columns: Columns = None,
    prompt: Annotated[
        str | None, typer.Option(help="Prompt with fields, as 'Review: {text}\\nSentiment:' (\\n is a new line).")
    ] = None,
    labels: Annotated[
        str | None, typer.Option(help="Label words, comma-separated, in the order of label indices.")
    ] = None,
    explain: Annotated[
        str | None, typer.Option(help="Fields to explain, comma-separated; by default all of the prompt's.")
    ] = None,
    target: Annotated[str, typer.Option(help="Label to explain: predicted or gold.")] = "predicted",
    sign: Annotated[
        str | None,
        typer.Option(help="Signed attributions rank units by support of that label (by default) or by magnitude: abs."),
    ] = None,
    scope: Annotated[
        str | None,
        typer.Option(help="What may be removed: content (by default) or prompt (the template's tokens too)."),
    ] = None,
    fills: Annotated[
        str | None,
        typer.Option(help="Infill: shared (by default: one fill per unit for all rows) or own (one for each row)."),
    ] = None,
    n_fills: Annotated[int, typer.Option(help="Fills per unit, averaged.")] = 1,
    label_scoring: Annotated[
        str | None, typer.Option(help="first (token) or full (chain rule); by default whichever decides.")
    ] = None,
    calibration: Annotated[
        str, typer.Option(help="contextual divides the label prior of the empty input out of every score; or none.")
    ] = "none",
    eraser: Annotated[
        bool,
        typer.Option("--eraser", help="Score the rows of ERASER's measures too; `ice measures` prints them."),
    ] = False,
    protocol: Annotated[
        str, typer.Option(help="Whose choices to follow: default, paper, or released (the paper's package).")
    ] = "default",
    chat: Annotated[
        bool, typer.Option("--chat", help="Make the prompt a user turn of the model's chat template.")
    ] = False,
    system: Annotated[str | None, typer.Option(help="System turn of the chat.")] = None,
    device: Device = "auto",
    dtype: Dtype = "auto",
    device_map: DeviceMap = None,
    max_memory: MaxMemory = None,
    load_in: LoadIn = None,
    token_budget: Annotated[
        int | None, typer.Option(help="Tokens per batch; by default what suits the device.")
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(help="Server of openai:NAME (vLLM, SGLang, llama.cpp), as http://localhost:8000/v1."),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(help="Hub id or folder of the served model: prompts are token ids then, if the server takes any."),
    ] = None,
    api_key_env: Annotated[
        str | None, typer.Option(help="Environment variable with the server's key; by default OPENAI_API_KEY.")
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(help="Requests to the server under way at once, at most; 16 by default.")
    ] = None,
    max_requests: Annotated[
        int | None, typer.Option(help="Requests to the server that may be charged; the run stops there and continues.")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(help="What the server may cost, in the currency of the prices.")
    ] = None,
    price_in: Annotated[float | None, typer.Option(help="Price of a million tokens that the server reads.")] = None,
    price_out: Annotated[float | None, typer.Option(help="Price of a million tokens that it writes.")] = None,
    executor: ExecutorName = "local",
    address: Address = None,
    gpus_per_worker: GpusPerWorker = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="YAML file with any of these options as keys; what is given here takes precedence.",
            callback=read_config,
            is_eager=True,
        ),
    ] = None,
) -> dict[str, Any]:
    """What `evaluate` is to be called with."""
    asked = {
        "base_url": base_url,
        "tokenizer": tokenizer,
        "api_key_env": api_key_env,
        "concurrency": concurrency,
        "max_requests": max_requests,
        "max_cost": max_cost,
        "price_in": price_in,
        "price_out": price_out,
    }
    return {
        "model": _model(model, {name: value for name, value in asked.items() if value is not None}),
        "task": task_of(TaskFlags(task, data, prompt, labels, explain, columns)),
        "attributions": _attributions(names(attributions), attribution_file or []),
        "operators": names(operators),
        "directions": names(direction),
        "nulls": names(null),
        "k": _shares(k),
        "chat": chat or None,
        "unit": unit,
        "n": n,
        "m": m,
        "adaptive": adaptive,
        "seed": seed,
        "target": target,
        "sign": sign,
        "scope": scope,
        "fills": fills,
        "n_fills": n_fills,
        "label_scoring": label_scoring,
        "calibration": calibration,
        "eraser": eraser,
        "protocol": protocol,
        "system": system,
        "device": device,
        "dtype": dtype,
        "device_map": device_map,
        "max_memory": max_memory,
        "load_in": load_in,
        "token_budget": token_budget,
        "executor": executor,
        "address": address,
        "gpus_per_worker": gpus_per_worker,
    }


def _model(name: str, asked: dict[str, Any]) -> "str | Served":
    """A model by its name, or one behind a server with all that was said of it."""
    if not name.startswith("openai:"):
        for option in asked:
            raise ConfigError(
                f"--{option.replace('_', '-')} is about a model behind a server, and --model {name} is none; write "
                f"--model openai:{name} if a server has it."
            )
        return name
    from ice_eval.models import SERVED, Served

    if "base_url" not in asked:
        raise ConfigError(f"--model {name} is behind a server; say where: --base-url http://localhost:8000/v1.")
    return Served(name.removeprefix(SERVED), **asked)


def takes_evaluation(command: Callable[..., None], *, shown: Collection[str] | None = None) -> Callable[..., None]:
    """Give a command all options of `evaluation`; its first parameter gets what they come to.

    Args:
        command: What takes them.
        shown: Those that matter to it, if not all do. The others are taken too, so that the same configuration fits,
            but its help does not mention them.
    """
    options = {
        name: each.replace(annotation=_placed(each, hidden=shown is not None and name not in shown))
        for name, each in inspect.signature(evaluation).parameters.items()
    }
    first, *own = inspect.signature(command).parameters.values()

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        command(evaluation(**{name: given.pop(name) for name in options}), **given)

    together = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*options.values(), *own)]
    with_options.__signature__ = inspect.Signature(together)  # type: ignore[attr-defined]
    with_options.__annotations__ = {each.name: each.annotation for each in together}
    return with_options


def _placed(parameter: inspect.Parameter, *, hidden: bool) -> Any:
    """An option under its heading in help, or one that help does not mention."""
    [option] = parameter.annotation.__metadata__
    placed = copy.copy(option)
    placed.hidden, placed.rich_help_panel = hidden, _PANEL_OF.get(parameter.name)
    return Annotated[parameter.annotation.__origin__, placed]


def _attributions(known: tuple[str, ...], files: list[str]) -> tuple[str, ...] | dict[str, Path | None]:
    """Known methods, and files given as NAME=FILE; a name stands for one attribution."""
    found: dict[str, Path | None] = dict.fromkeys(known)
    for each in files:
        name, _, file = (part.strip() for part in each.partition("="))
        if not name or not file:
            raise ConfigError(f"--attribution-file {each}: NAME=FILE is expected, as mine=explanations.jsonl.")
        if name in found:
            raise ConfigError(f"--attribution-file {each}: another attribution is named '{name}'; choose another name.")
        found[name] = Path(file)
    return found if files else known


def _shares(text: str) -> "list[Share]":
    from ice_eval.rationales import DYNAMIC

    try:
        return [DYNAMIC if part == DYNAMIC else float(part) for part in names(text)]
    except ValueError as exc:
        raise ConfigError(
            f"--k {text}: numbers between 0 and 1 or {DYNAMIC} are expected, such as 0.2 or 0.1,0.2,{DYNAMIC}."
        ) from exc
