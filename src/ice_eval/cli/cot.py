"""`ice cot run`."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ice_eval.cli._options import LOAD_IN_HELP, MAP_HELP, MEMORY_HELP, Json, names
from ice_eval.errors import ConfigError

if TYPE_CHECKING:
    from ice_eval.subjects.chain import ChainPlan

app = typer.Typer(no_args_is_help=True)

_SERVER, _MONEY, _MODEL = "Server", "Limits", "Model on this machine"


@app.callback()
def _root() -> None:
    """Chains of thought: does the answer depend on the steps?"""


@app.command("run")
def run(
    model: Annotated[
        str, typer.Option(help="Name of the model behind --base-url; without it a model as `ice run` takes it.")
    ],
    task: Annotated[
        str | None, typer.Option(help="Reasoning task (`ice list cot-tasks`); may be left out with --responses.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help=".jsonl or .csv file of problems, in the task's fields.")] = None,
    responses: Annotated[
        Path | None,
        typer.Option(help=".jsonl file of chains that are there already: question, steps or response, final, gold."),
    ] = None,
    n: Annotated[int, typer.Option(min=1, help="Problems, from the first on.")] = 100,
    p: Annotated[int, typer.Option(min=1, help="Random sets of steps of each size; all where there are no more.")] = 20,
    k: Annotated[str, typer.Option(help="Shares of steps that are removed or retained, comma-separated.")] = "0.2",
    operators: Annotated[
        str, typer.Option(help="delete, replace, shuffle, truncate (`ice list cot-operators`), comma-separated.")
    ] = "delete",
    attributions: Annotated[
        str,
        typer.Option(help="Who says which steps matter (`ice list cot-attributions`), comma-separated; or none."),
    ] = "self-report,position,length,random",
    answer_step: Annotated[
        str, typer.Option(help="Steps that state the final answer: drop or keep. Kept, every chain looks sufficient.")
    ] = "drop",
    repeats: Annotated[int, typer.Option(min=1, help="How often the full chain is asked, for the noise floor.")] = 3,
    temperature: Annotated[str, typer.Option(help="Of all requests; 'server' leaves it to the server.")] = "0",
    max_tokens: Annotated[int, typer.Option(min=1, help="Longest chain, in tokens.")] = 1024,
    answer_tokens: Annotated[int, typer.Option(min=1, help="Longest reply to some of the steps, in tokens.")] = 128,
    levels: Annotated[
        bool,
        typer.Option("--levels", help="Also test attention and gradient in tokens beside steps (no server)."),
    ] = False,
    worked_example: Annotated[
        bool,
        typer.Option("--worked-example", help="Show a solved problem before every question: small models need it."),
    ] = False,
    seed: Annotated[int, typer.Option(help="Of random sets, replacements and ties.")] = 0,
    base_url: Annotated[
        str | None,
        typer.Option(help="OpenAI-compatible server, as http://localhost:8000/v1.", rich_help_panel=_SERVER),
    ] = None,
    api_key_env: Annotated[
        str | None,
        typer.Option(help="Environment variable with the key; by default OPENAI_API_KEY.", rich_help_panel=_SERVER),
    ] = None,
    concurrency: Annotated[
        int, typer.Option(min=1, help="Requests under way at once, at most.", rich_help_panel=_SERVER)
    ] = 16,
    timeout: Annotated[float, typer.Option(help="Seconds that one attempt may take.", rich_help_panel=_SERVER)] = 300.0,
    limit_field: Annotated[
        str,
        typer.Option(
            help="How the server calls the limit of tokens: max_tokens or max_completion_tokens.",
            rich_help_panel=_SERVER,
        ),
    ] = "max_tokens",
    max_requests: Annotated[
        int | None, typer.Option(min=1, help="Most requests over all runs of the folder.", rich_help_panel=_MONEY)
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(help="Most that they may cost; needs both prices.", rich_help_panel=_MONEY)
    ] = None,
    price_in: Annotated[
        float | None, typer.Option(help="Price of a million tokens that the model reads.", rich_help_panel=_MONEY)
    ] = None,
    price_out: Annotated[
        float | None, typer.Option(help="Price of a million tokens that it writes.", rich_help_panel=_MONEY)
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, …", rich_help_panel=_MODEL)] = "auto",
    dtype: Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.", rich_help_panel=_MODEL)] = "auto",
    device_map: Annotated[str | None, typer.Option(metavar="MAP", help=MAP_HELP, rich_help_panel=_MODEL)] = None,
    max_memory: Annotated[str | None, typer.Option(metavar="SIZES", help=MEMORY_HELP, rich_help_panel=_MODEL)] = None,
    load_in: Annotated[str | None, typer.Option(metavar="BITS", help=LOAD_IN_HELP, rich_help_panel=_MODEL)] = None,
    out: Annotated[
        Path | None, typer.Option(help="Run folder; by default one under ice-runs/ named after the configuration.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be asked, and ask nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Does the model use its reasoning? Removes steps of its chains of thought and looks whether the answer changes.

    The same command again continues, and pays for nothing twice. Shares, operators and attributions may be added
    later; any other change needs another folder.
    """
    from ice_eval.api.progress import Bar
    from ice_eval.chains import evaluate_chains, plan_chains
    from ice_eval.cli._output import print_run
    from ice_eval.servers import Budget, Server

    budget = Budget(max_requests=max_requests, max_cost=max_cost, price_in=price_in, price_out=price_out)
    asked: dict[str, Any] = {
        "data": data, "responses": responses, "budget": budget, "n": n, "p": p, "k": _shares(k), "seed": seed,
        "operators": names(operators), "attributions": () if attributions == "none" else names(attributions),
        "answer_step": answer_step, "repeats": repeats, "temperature": _temperature(temperature), "levels": levels,
        "max_tokens": max_tokens, "answer_tokens": answer_tokens, "worked_example": worked_example,
    }  # fmt: skip
    if dry_run:
        _print_plan(plan_chains(model, task, **asked), assumed=responses is None, as_json=as_json)
        return
    server = None
    if base_url is not None:
        patience: dict[str, Any] = {"concurrency": concurrency, "timeout_s": timeout, "limit_field": limit_field}
        server = Server(base_url=base_url, api_key_env=api_key_env, **patience)
    asked |= {"device": device, "dtype": dtype, "device_map": device_map, "max_memory": max_memory, "load_in": load_in}
    found = evaluate_chains(model, task, server=server, out=out, default_out=True, reporter=Bar("requests"), **asked)
    found.report()
    print_run(found.folder, as_json=as_json)


def _print_plan(plan: "ChainPlan", *, assumed: bool, as_json: bool) -> None:
    """What would be asked; `assumed`: no chain is there yet, and a length was assumed for all."""
    from ice_eval.cli._output import print_json, print_text

    if as_json:
        print_json({**asdict(plan), "tokens": plan.tokens._asdict()})
        return
    print_text(str(plan))
    if assumed:
        print_text("Chains are not known yet: six steps are assumed.")


def _shares(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in names(text))
    except ValueError:
        raise ConfigError(f"--k '{text}': shares between 0 and 1 are expected, comma-separated, as 0.2,0.4.") from None


def _temperature(text: str) -> float | None:
    if text == "server":
        return None
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"--temperature '{text}': a number is expected, or 'server'.") from None
