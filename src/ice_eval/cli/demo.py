"""`ice demo`."""

from pathlib import Path
from typing import Annotated

import typer

from ice_eval.cli._options import Json


def demo(
    out: Annotated[Path, typer.Option(help="Run folder.")] = Path("ice-demo"),
    as_json: Json = False,
) -> None:
    """Evaluate attention, gradient and a random control on a small language model, end to end.

    60 short reviews, SmolLM2 with four worked examples in the prompt, 16 random sets per rationale. A second run
    continues the first: all is there, so only the tables are printed again.
    """
    from ice_eval.api import evaluate
    from ice_eval.api.progress import Bar
    from ice_eval.cli._output import print_run

    run = evaluate("smollm2", "demo", n=60, m=16, out=out, reporter=Bar())
    run.report()
    print_run(run.folder, as_json=as_json)
