"""The command `ice`. One file per command: parse, call, print."""

import io
import os
import signal
import sys
import threading

from ice_eval._controls import without_controls
from ice_eval.cli._app import app
from ice_eval.errors import ConfigError, IceError

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line: exit 0 when done, 1 when a run failed, 2 for bad input."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # texts have characters that a locale may not know
    interrupts = list[int]()

    def interrupted(number: int, frame: object) -> None:
        interrupts.append(number)
        print("\ninterrupted; the same command again continues where it was.", file=sys.stderr)
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
        if exc.errno is None:  # libraries raise it for what no system said
            raise
        where = "" if exc.filename is None else f"{exc.filename}: "
        _fail(f"{where}{exc.strerror}; the same command again continues.", code=1)
    except SystemExit:
        if interrupts:  # libraries that wait for other processes may end with an exit of their own
            sys.exit(128 + interrupts[0])
        raise


def _check_arguments() -> None:
    """Refuse what is no UTF-8: nothing that names it could be written to a file or shown.

    Raises:
        ConfigError: An argument holds such bytes.
    """
    for argument in sys.argv[1:]:
        try:
            os.fsencode(argument).decode("utf-8")  # whatever the locale made of its bytes
        except UnicodeError:
            raise ConfigError(f"{argument!r} is not UTF-8 text; rename the file, or use a UTF-8 terminal.") from None


def _fail(reason: object, *, code: int) -> None:
    print(without_controls(f"ice: {reason}"), file=sys.stderr)
    sys.exit(code)
