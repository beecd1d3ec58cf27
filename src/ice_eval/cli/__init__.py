"""The command `ice`: parse, call, print. Heavy packages are imported when a command runs, so `ice --help` is fast."""

import errno
import functools
import inspect
import io
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from ice_eval import __version__
from ice_eval.cli import _output, method, prepare, report, reproduce, run, show
from ice_eval.errors import ConfigError, IceError
from ice_eval.files import folder_in_place

__all__ = ["app", "main"]

app = typer.Typer(
    name="ice",
    help="Is this explanation faithful to the model, or does it only look so?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        _output.print_text(f"ice-eval {__version__}")
        raise typer.Exit()


@app.callback()
def _root(
    version: Annotated[
        bool, Option("--version", help="Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


def _command(function: Callable[..., None], name: str, panel: str) -> None:
    """Add a command whose help wraps at the width of the terminal, not where its docstring does."""
    paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
    text = "\n\n".join(" ".join(each.split()) for each in paragraphs)
    app.command(name, help=text, rich_help_panel=panel)(_explained(function) if panel == _READ else function)


def _explained(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command that reads runs; where it fails on files that contradict each other, it says so."""

    @functools.wraps(function)
    def command(**given: object) -> None:
        try:
            function(**given)
        except (IceError, OSError, typer.Exit):
            raise
        except Exception as exc:
            from ice_eval.results.summary import contradiction

            named = [each for value in given.values() for each in (value if isinstance(value, list) else [value])]
            for path in (each for each in named if isinstance(each, Path) and each.is_dir()):
                for folder in report.run_folders([path]):
                    if (problem := contradiction(folder)) is not None:
                        raise ConfigError(problem) from exc
            raise  # the files are sound: it is a bug

    return command


_RUN, _READ, _PREPARE, _KNOW = "Evaluate", "Read a run", "Prepare a run", "Know the method"
_command(run.demo, "demo", _RUN)
_command(run.run, "run", _RUN)
_command(run.bench, "bench", _RUN)
_command(run.f_fidelity, "f-fidelity", _RUN)
_command(report.report, "report", _READ)
_command(show.show, "show", _READ)
_command(report.compare, "compare", _READ)
_command(show.view, "view", _READ)
_command(report.measures, "measures", _READ)
_command(show.audit_infill, "audit-infill", _READ)
_command(report.rescore, "rescore", _READ)
app.add_typer(prepare.app, name="task", rich_help_panel=_PREPARE)
_command(run.plan, "plan", _PREPARE)
_command(prepare.validate, "validate", _PREPARE)
_command(prepare.translate, "translate", _PREPARE)
_command(method.listing, "list", _KNOW)
_command(method.selftest, "selftest", _KNOW)
_command(method.paper, "paper", _KNOW)
_command(reproduce.reproduce, "reproduce", _RUN)


def main() -> None:
    """Run the command line: exit 0 when done, 1 when a run failed, 2 for bad input."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # texts have characters that a locale may not know
    interrupts = list[int]()

    def interrupted(number: int, frame: object) -> None:
        interrupts.append(number)
        _output.print_text("\ninterrupted; run the same command to continue.", error=True)
        sys.exit(128 + number)

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, interrupted)
        if hasattr(signal, "SIGPIPE"):
            # `ice report … | head`: end quietly with the reader, as other tools do, instead of failing.
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        _check_arguments()
        app(prog_name="ice")
    except ConfigError as exc:
        _fail(exc, code=2)
    except IceError as exc:
        _fail(exc, code=1)
    except OSError as exc:
        if exc.errno is None:  # raised by a library, not by the system
            raise
        if isinstance(exc, IsADirectoryError) and exc.filename is not None:
            _fail(folder_in_place(exc.filename), code=2)
        if exc.errno == errno.ENAMETOOLONG:
            _fail(f"{exc.filename}: {exc.strerror}; give a shorter one.", code=2)
        where = "" if exc.filename is None else f"{exc.filename}: "
        _fail(f"{where}{exc.strerror}; run the same command to continue.", code=1)
    except SystemExit:
        if interrupts:  # libraries that wait for other processes may end with an exit of their own
            sys.exit(128 + interrupts[0])
        raise


def _check_arguments() -> None:
    """Raise ConfigError for an argument that is not UTF-8, which could not be written to a file or shown."""
    for argument in sys.argv[1:]:
        try:
            os.fsencode(argument).decode("utf-8")  # whatever the locale made of its bytes
        except UnicodeError:
            raise ConfigError(f"{argument!r} is not UTF-8 text; rename the file, or use a UTF-8 terminal.") from None


def _fail(reason: object, *, code: int) -> None:
    _output.print_text(f"ice: {reason}", error=True)
    sys.exit(code)
