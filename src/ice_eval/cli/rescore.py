"""`ice rescore`."""

from pathlib import Path
from typing import Annotated

import typer

from ice_eval.cli._options import Json


def rescore(
    folder: Annotated[Path, typer.Argument(help="Run folder.")],
    as_json: Json = False,
) -> None:
    """Compute all statistics of a run again from its ledger, without a model."""
    from ice_eval.api import Run
    from ice_eval.cli._output import print_run

    run = Run(folder)
    run.rescore()
    run.report()
    print_run(run.folder, as_json=as_json)
