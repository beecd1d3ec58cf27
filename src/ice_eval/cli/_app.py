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


_RUN, _READ, _PREPARE, _KNOW = "Evaluate", "Read a run", "Prepare a run", "Know the method"
app.command("demo", rich_help_panel=_RUN)(demo.demo)
app.command("run", rich_help_panel=_RUN)(run.run)
app.add_typer(cot.app, name="cot", rich_help_panel=_RUN)
app.command("bench", rich_help_panel=_RUN)(bench.bench)
app.command("f-fidelity", rich_help_panel=_RUN)(f_fidelity.f_fidelity)
app.command("report", rich_help_panel=_READ)(report.report)
app.command("show", rich_help_panel=_READ)(show.show)
app.command("compare", rich_help_panel=_READ)(compare.compare)
app.command("measures", rich_help_panel=_READ)(measures.measures)
app.command("audit-infill", rich_help_panel=_READ)(audit_infill.audit_infill)
app.command("rescore", rich_help_panel=_READ)(rescore.rescore)
app.add_typer(task.app, name="task", rich_help_panel=_PREPARE)
app.command("plan", rich_help_panel=_PREPARE)(plan.plan)
app.command("validate", rich_help_panel=_PREPARE)(validate.validate)
app.command("translate", rich_help_panel=_PREPARE)(translate.translate)
app.command("list", rich_help_panel=_KNOW)(listing.listing)
app.command("selftest", rich_help_panel=_KNOW)(selftest.selftest)
app.command("paper", rich_help_panel=_KNOW)(paper.paper)
