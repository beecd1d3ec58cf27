"""`ice run`, `ice plan` and `ice demo`."""

import math
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from ice_eval.cli._options import (
    MAX_DROPPED,
    Full,
    Json,
    MaxDropped,
    arguments_of,
    check_share,
    takes_evaluation,
    without_view,
)
from ice_eval.cli._output import exit_if, print_plan, print_run
from ice_eval.errors import ConfigError


@takes_evaluation
def run(
    values: dict[str, Any],
    out: Annotated[Path | None, Option(metavar="DIR", help="Run folder; by default one under ice-runs/.")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Estimate the cost and stop, as `ice plan`.")] = False,
    max_dropped: MaxDropped = MAX_DROPPED,
    full: Full = False,
    as_json: Json = False,
) -> None:
    """Evaluate explanations of a model against random ones of equal size.

    The same command again continues. Attributions, operators, directions, nulls, k and --eraser may be added later;
    other changes need another folder.

    Example: ice run --model smollm2 --task sst2 --n 100 --out first
    """
    check_share("--max-dropped", max_dropped)
    from ice_eval.api import evaluate
    from ice_eval.api import plan as make_plan
    from ice_eval.api.progress import Bar
    from ice_eval.report import losses

    settings, view = without_view(values)
    arguments = arguments_of(settings)
    if dry_run:
        print_plan(make_plan(**arguments, reporter=Bar()), as_json=as_json)
        return
    result = evaluate(**arguments, out=out, default_out=True, reporter=Bar())
    result.report(columns=view)
    print_run(result.folder, as_json=as_json, full=full, columns=view)
    exit_if(losses([result.folder.summary()], max_dropped))


@takes_evaluation
def plan(
    values: dict[str, Any],
    width: Annotated[float | None, Option(help="Wanted width of the 95 % intervals, as 0.05.")] = None,
    detect: Annotated[float | None, Option(help="Wanted smallest detectable win rate, as 0.55.")] = None,
    pilot: Annotated[int, Option(help="Number of examples in the pilot.")] = 32,
    hourly_price: Annotated[float | None, Option(help="Price of an hour of this machine in dollars.")] = None,
    as_json: Json = False,
) -> None:
    """Estimate the cost and power of a run: rows, tokens, minutes, memory, and how sure its answer would be.

    Scores a small pilot and keeps nothing. With --width or --detect it also prints the cheapest numbers of examples
    and random sets.
    """
    from ice_eval.api import plan as make_plan
    from ice_eval.api.progress import Bar

    if hourly_price is not None and not 0 <= hourly_price < math.inf:
        raise ConfigError(f"--hourly-price {hourly_price}: dollars are expected, such as 2.5.")
    found = make_plan(**arguments_of(values), width=width, detect=detect, pilot=pilot, reporter=Bar())
    print_plan(found, as_json=as_json, hourly_price=hourly_price)


def demo(
    out: Annotated[Path, Option(help="Run folder.")] = Path("ice-demo"), full: Full = False, as_json: Json = False
) -> None:
    """Evaluate attention, gradient and a random control on a small language model, end to end.

    60 short reviews, SmolLM2 with four worked examples in the prompt, 16 random sets per rationale and 4 fills.
    """
    from ice_eval.api import evaluate
    from ice_eval.api.progress import Bar

    found = evaluate("smollm2", "demo", n=60, m=16, n_fills=4, out=out, reporter=Bar())
    found.report()
    print_run(found.folder, as_json=as_json, full=full)
