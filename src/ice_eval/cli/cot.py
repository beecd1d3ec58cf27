"""`ice cot run`."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from ice_eval.cli._options import Json, takes
from ice_eval.cli._output import print_json, print_run, print_text
from ice_eval.cli._tasks import names
from ice_eval.errors import ConfigError
from ice_eval.settings import LOADING, names_of, values_of

if TYPE_CHECKING:
    from ice_eval.subjects.chain import ChainPlan

app = typer.Typer(no_args_is_help=True)
_SERVER = ("base_url", "api_key_env", "concurrency")
_LIMITS = ("max_requests", "max_cost", "price_in", "price_out")


@app.callback()
def _root() -> None:
    """Chains of thought: does the answer depend on the steps?"""


@app.command("run")
@takes(*_SERVER, *_LIMITS, *names_of(LOADING), panels=True)
def run(
    values: dict[str, Any],
    model: Annotated[
        str, Option(help="Name of the model behind --base-url; without it a model as `ice run` takes it.")
    ],
    task: Annotated[
        str | None, Option(help="Reasoning task (`ice list cot-tasks`); may be left out with --responses.")
    ] = None,
    data: Annotated[Path | None, Option(help=".jsonl or .csv file of problems, in the task's fields.")] = None,
    responses: Annotated[
        Path | None,
        Option(help=".jsonl file of chains that are there already: question, steps or response, final, gold."),
    ] = None,
    n: Annotated[int, Option(min=1, help="Problems, from the first on.")] = 100,
    p: Annotated[int, Option(min=1, help="Random sets of steps of each size; all where there are no more.")] = 20,
    k: Annotated[str, Option(help="Shares of steps that are removed or retained, comma-separated.")] = "0.2",
    operators: Annotated[
        str, Option(help="delete, replace, shuffle, truncate (`ice list cot-operators`), comma-separated.")
    ] = "delete",
    attributions: Annotated[
        str, Option(help="Who says which steps matter (`ice list cot-attributions`), comma-separated; or none.")
    ] = "self-report,position,length,random",
    answer_step: Annotated[
        str, Option(help="Steps that state the final answer: drop or keep. Kept, every chain looks sufficient.")
    ] = "drop",
    repeats: Annotated[int, Option(min=1, help="How often the full chain is asked, for the noise floor.")] = 3,
    temperature: Annotated[str, Option(help="Of all requests; 'server' leaves it to the server.")] = "0",
    max_tokens: Annotated[int, Option(min=1, help="Longest chain, in tokens.")] = 1024,
    answer_tokens: Annotated[int, Option(min=1, help="Longest reply to some of the steps, in tokens.")] = 128,
    levels: Annotated[
        bool, Option("--levels", help="Also test attention and gradient in tokens beside steps (no server).")
    ] = False,
    worked_example: Annotated[
        bool, Option("--worked-example", help="Show a solved problem before every question: small models need it.")
    ] = False,
    seed: Annotated[int, Option(help="Of random sets, replacements and ties.")] = 0,
    timeout: Annotated[float, Option(help="Seconds that one attempt may take.")] = 300.0,
    limit_field: Annotated[
        str, Option(help="How the server calls the limit of tokens: max_tokens or max_completion_tokens.")
    ] = "max_tokens",
    out: Annotated[
        Path | None, Option(help="Run folder; by default one under ice-runs/ named after the configuration.")
    ] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Say what would be asked, and ask nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Does the model use its reasoning? Removes steps of its chains of thought and looks whether the answer changes.

    The same command again continues, and pays for nothing twice. Shares, operators and attributions may be added
    later; any other change needs another folder.
    """
    from ice_eval.api.progress import Bar
    from ice_eval.chains import evaluate_chains, plan_chains
    from ice_eval.servers import Budget, Server

    budget = Budget(**{name: values[name] for name in _LIMITS})
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
    if values["base_url"] is not None:
        reached: dict[str, Any] = {name: values[name] for name in _SERVER if values[name] is not None}
        server = Server(**{**reached, "timeout_s": timeout, "limit_field": limit_field})
    asked |= values_of(LOADING, values)
    found = evaluate_chains(model, task, server=server, out=out, default_out=True, reporter=Bar("requests"), **asked)
    found.report()
    print_run(found.folder, as_json=as_json)


def _print_plan(plan: "ChainPlan", *, assumed: bool, as_json: bool) -> None:
    """Print the requests of a run; `assumed`: no chains exist yet, and their length is assumed."""
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
