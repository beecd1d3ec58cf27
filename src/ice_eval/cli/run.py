"""`ice run`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ice_eval.cli._evaluation import takes_evaluation
from ice_eval.cli._options import Json


@takes_evaluation
def run(
    arguments: dict[str, Any],
    out: Annotated[
        Path | None, typer.Option(help="Run folder; by default one under ice-runs/ named after the configuration.")
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Score a small pilot only and say what the run would take, as `ice plan`."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Evaluate explanations of a model against random ones of equal size.

    The same command again continues. Attributions, operators, directions, nulls, k and --eraser may be added later and
    score only what is missing; any other change needs another folder.
    """
    from ice_eval.api import evaluate, plan
    from ice_eval.api.progress import Bar
    from ice_eval.cli._output import print_plan, print_run

    if dry_run:
        print_plan(plan(**arguments, reporter=Bar()), as_json=as_json)
        return
    result = evaluate(**arguments, out=out, default_out=True, reporter=Bar())
    result.report()
    print_run(result.folder, as_json=as_json)
