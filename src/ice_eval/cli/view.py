"""`ice view`."""

import contextlib
import logging
import os
import secrets
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from ice_eval.cli._options import Json
from ice_eval.cli._output import print_json, print_text
from ice_eval.errors import ConfigError, require
from ice_eval.files import as_text

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

GRACE_S = 3.0
"""Seconds that a question to a model may still take after Ctrl-C."""


def view(
    folder: Annotated[Path, Argument(help="Folder with runs, in it or below it.")] = Path("."),
    port: Annotated[int, Option(help="Port on this machine; 0 chooses a free one.", min=0, max=65535)] = 0,
    no_browser: Annotated[bool, Option("--no-browser", help="Print the address, and open no browser.")] = False,
    models: Annotated[
        Path | None, Option(metavar="DIR", help="Folder with local models by name, for questions to them.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show many runs in the browser: an index, their reports, comparisons, and what-if questions to a model.

    The server answers on this machine alone, to whoever has the printed address. It writes nothing. Ctrl-C ends it.
    """
    for module in ("starlette", "uvicorn"):
        require(module, install="ice-eval[view]", purpose="to show runs")
    os.environ["HF_HUB_OFFLINE"] = "1"  # before anything of the hub is imported
    from ice_eval.view import RunIndex, WhatIf
    from ice_eval.view.server import HOST, application

    if not folder.is_dir():
        raise ConfigError(f"{folder} is no folder; give one with runs: ice view FOLDER.")
    runs = RunIndex(folder)
    entries = runs.entries()
    if not entries:
        reasons = "".join(f" {name}: {reason}" for name, reason in runs.unreadable[:1])
        raise ConfigError(f"no finished run in {folder} or below it; `ice run --out FOLDER` makes one.{reasons}")
    places = [each for each in (models, folder, Path(".")) if each is not None]
    with _listening(HOST, port) as listening:
        port, token = listening.getsockname()[1], secrets.token_urlsafe(32)
        server = _server(application(runs, WhatIf(places), token=token, port=port))
        url = f"http://{HOST}:{port}/?token={token}"
        if as_json:
            print_json({"url": url, "runs": len(entries)})
        else:
            count = "1 run" if len(entries) == 1 else f"{len(entries)} runs"
            print_text(f"{count} in {as_text(folder.resolve())} (Ctrl-C ends the server)\n{url}")
        sys.stdout.flush()
        if not no_browser:
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
        server.run(sockets=[listening])


@contextlib.contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    """Open a socket, or raise `ConfigError` if the port is taken."""
    with socket.socket() as found:
        if os.name == "posix":  # the port of a server that has just ended
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((host, port))
            found.listen()
        except OSError as exc:
            raise ConfigError(f"port {port} cannot be used ({exc.strerror}); choose another --port, or none.") from exc
        yield found


def _server(app: "ASGIApp") -> "uvicorn.Server":
    """Return a server that answers until SIGINT or SIGTERM, and then ends as if it were done."""
    import uvicorn

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:  # uvicorn would raise them again when it has ended
            yield

    options: dict[str, Any] = {
        "log_level": "error",
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,
    }
    server = Server(uvicorn.Config(app, ws="none", lifespan="off", **options))

    def stop(number: int, frame: object) -> None:
        logging.disable()  # a request that is cut off is no error
        server.should_exit = server.force_exit = True
        last = threading.Timer(GRACE_S, os._exit, (0,))  # nothing is written, so a model may be left in mid-answer
        last.daemon = True
        last.start()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    return server
