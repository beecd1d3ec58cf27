"""`ice plan`."""

import math
from typing import Annotated, Any

import typer

from ice_eval.cli._evaluation import takes_evaluation
from ice_eval.cli._options import Json
from ice_eval.errors import ConfigError


@takes_evaluation
def plan(
    arguments: dict[str, Any],
    width: Annotated[
        float | None, typer.Option(help="How wide the 95 % intervals may be, as 0.05 for 5 percentage points.")
    ] = None,
    detect: Annotated[
        float | None, typer.Option(help="Smallest win rate that is to be told from chance, as 0.55.")
    ] = None,
    pilot: Annotated[int, typer.Option(help="Examples that are scored to find out.")] = 32,
    hourly_price: Annotated[float | None, typer.Option(help="What an hour of this machine costs, in dollars.")] = None,
    as_json: Json = False,
) -> None:
    """Say what a run would take: rows, tokens, minutes, memory, and how sure its answer would be.

    Takes the options of `ice run`, scores a small pilot with them, and keeps nothing. With --width or --detect it also
    says how many examples and random sets give what is wanted at the least cost.
    """
    from ice_eval.api import plan as make_plan
    from ice_eval.api.progress import Bar
    from ice_eval.cli._output import print_plan

    if hourly_price is not None and not 0 <= hourly_price < math.inf:
        raise ConfigError(f"--hourly-price {hourly_price}: dollars are expected, such as 2.5.")
    found = make_plan(**arguments, width=width, detect=detect, pilot=pilot, reporter=Bar())
    print_plan(found, as_json=as_json, hourly_price=hourly_price)
