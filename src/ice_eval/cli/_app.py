"""The commands, put together. Heavy packages are imported when a command runs, so `ice --help` is instant."""

from typing import Annotated

import typer

from ice_eval import __version__
from ice_eval.cli import (
    audit_infill,
    bench,
    compare,
    cot,
    demo,
    f_fidelity,
    listing,
    measures,
    paper,
    plan,
    report,
    rescore,
    run,
    selftest,
    show,
    task,
    translate,
    validate,
)

app = typer.Typer(
    name="ice",
    help="Is this explanation faithful to the model, or does it only look so?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"ice-eval {__version__}")
        raise typer.Exit()


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


app.command("demo")(demo.demo)
app.command("run")(run.run)
app.command("plan")(plan.plan)
app.command("bench")(bench.bench)
app.command("rescore")(rescore.rescore)
app.command("report")(report.report)
app.command("compare")(compare.compare)
app.command("audit-infill")(audit_infill.audit_infill)
app.command("measures")(measures.measures)
app.command("f-fidelity")(f_fidelity.f_fidelity)
app.command("show")(show.show)
app.command("list")(listing.listing)
app.command("translate")(translate.translate)
app.command("validate")(validate.validate)
app.command("paper")(paper.paper)
app.command("selftest")(selftest.selftest)
app.add_typer(cot.app, name="cot")
app.add_typer(task.app, name="task")
