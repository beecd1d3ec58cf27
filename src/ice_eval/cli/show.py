"""Runs to look at: `ice show` and `ice view`."""

import contextlib
import itertools
import logging
import math
import os
import secrets
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from ice_eval.cli._options import Json, table_columns
from ice_eval.cli._output import console, print_json, print_line, print_tables, print_text
from ice_eval.errors import ConfigError, require, without_turns
from ice_eval.files import as_text

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

    from ice_eval.results import Configuration, ExampleView, InputRow, LedgerRow, RunFolder


_LINES = 40
"""Lines of a screen, where the output is no terminal."""
_ABOUT = 50
"""Columns that a list needs beside win rates."""
_WORDS = 60
"""Characters of a text that a list shows."""


def show(
    folder: Annotated[Path, Argument(help="Run folder.")],
    example: Annotated[
        str | None,
        Option(help="Id of the example, or its row, counted from 0. Without it, all are listed."),
    ] = None,
    attribution: Annotated[str | None, Option(help="This attribution only.")] = None,
    operator: Annotated[str | None, Option(help="This operator only.")] = None,
    rows: Annotated[int, Option(help="Random rows to show per operator; -1 for all.")] = 3,
    columns: Annotated[
        str | None,
        Option(metavar="NAME", help="Numbers of each rationale: default, or paper; by default those of the protocol."),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the examples of a run, or show one: text, attributions, rationales in their nulls, rows.

    In a terminal attributions are shades and rationales are underlined; elsewhere rationales are in brackets. Steps of
    chains are shaded by the effect of their removal.
    """
    from ice_eval.choices import PROTOCOLS
    from ice_eval.report.example import example_lines
    from ice_eval.results import RunFolder, view_example

    asked = table_columns(columns)
    if example is None:
        _list(RunFolder.existing(folder), attribution=attribution, operator=operator, as_json=as_json)
        return
    view = view_example(RunFolder.existing(folder), example, attribution=attribution, operator=operator)
    if as_json:
        print_json(_content(view))
        return
    out = console()
    has_colour = out.color_system is not None and not out.no_color
    asked = asked or PROTOCOLS[RunFolder.existing(folder).manifest().config.protocol].columns
    for line in example_lines(view, n_random=rows, colour=has_colour, paper=asked == "paper"):
        print_line(line, indent=4, out=out)


def _list(folder: "RunFolder", *, attribution: str | None, operator: str | None, as_json: bool) -> None:
    """Print a line for every example, at most one screen of them, and how to choose one."""
    from ice_eval.results.outcomes import ALL
    from ice_eval.results.view import chosen_configurations
    from ice_eval.table import Column, columns, table_of

    folder.require_complete()
    cells = chosen_configurations(folder, attribution=attribution, operator=operator)
    names = [cell.operator for cell in cells]
    shown = ALL if ALL in names else names[0] if names else ""
    place: dict[str, Configuration] = {}
    for cell in cells:
        if cell.operator == shown:
            place.setdefault(cell.attribution, cell)
    rates: dict[str, dict[str, float | None]] = {}
    for line in folder.examples():
        if line.configuration == place.get(line.attribution):
            rates.setdefault(line.example_id, {})[line.attribution] = None if line.error else line.win_rate
    labels = folder.manifest().labels
    rows = [row for part in folder.parts() for row in folder.inputs(part)]
    lines = [
        {"example_id": row.example_id, **_beginning(row, labels), "win_rates": rates.get(row.example_id, {})}
        for row in rows
    ]
    if as_json:
        print_json(lines)
        return
    out = console()
    most = max((out.size.height if out.is_terminal else _LINES) - 8, 5)
    ends = dict(zip(place, itertools.accumulate(max(len(name), 7) + 2 for name in place), strict=True))
    fitting = [name for name, end in ends.items() if end <= out.width - _ABOUT]
    head = max((len(line["example_id"]) + len(line["prediction"] or "") for line in lines[:most]), default=0) + 10
    words = max(min(out.width - head - max(map(ends.__getitem__, fitting), default=0), _WORDS), 20)
    found = [Column(name, name, "percent", get=partial(_rate, name=name)) for name in fitting]
    about = columns("text", example_id="example", prediction="prediction")
    table = table_of(
        f"Examples of {folder.path}{place and f', win rates under {shown}'}",
        [line | {"text": _cut(without_turns(line["text"]), words)} for line in lines[:most]],
        [*about, *found, Column("text", "text", "text")],
    )
    notes = [f"One of them: ice show {folder.path} --example {rows[0].example_id}"]
    left = {"examples": len(lines) - most, "attributions": len(place) - len(fitting)}
    if counts := " and ".join(f"{n} more {name if n > 1 else name[:-1]}" for name, n in left.items() if n > 0):
        notes.insert(0, f"{counts} are not shown; `--json` has all.")
    print_tables([table], notes)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _rate(line: dict[str, Any], *, name: str) -> float | None:
    rate: float | None = line["win_rates"].get(name)
    return rate


def _beginning(row: "InputRow", labels: tuple[str, ...]) -> dict[str, Any]:
    """Return the prediction and the text of an example on one line."""
    from ice_eval.results.chains import LABELS
    from ice_eval.results.view import ANSWER, CLAIM, is_open

    fields = dict(row.fields)
    said = None if row.target is None or is_open(labels) else labels[row.target]
    if labels == LABELS:
        said = fields.get(ANSWER)
    text = fields.get(CLAIM) or " / ".join(fields.values())
    return {"prediction": row.skip_reason and "skipped" or said, "text": " ".join(text.split())}


def _content(view: "ExampleView") -> dict[str, Any]:
    from ice_eval.results.json_files import as_json as json_of

    return {
        "example_id": view.example.example_id,
        "fields": dict(view.example.fields),
        **_steps(view),
        **({} if view.claim is None else {"claim": json_of(view.claim)}),
        "answers": {name: answer._asdict() for name, answer in view.example.answers.items()},
        "outcomes": [json_of(each.line) for each in view.compared],
        "rows": [_record(row, view) for row in view.rows],
    }


def _steps(view: "ExampleView") -> dict[str, Any]:
    """Return the effect of each step of a chain; empty for other examples."""
    from ice_eval.report.example import chain_view, is_chain, operator_of

    if not is_chain(view) or view.example.skip_reason is not None:
        return {}
    found = chain_view(view.example, view.rows, operator_of(view))
    return {
        "steps": [{**step._asdict(), "replies": [reply._asdict() for reply in step.replies]} for step in found.steps],
        "removed": {"operator": found.operator, "alone": found.alone},
    }


def _record(row: "LedgerRow", view: "ExampleView") -> dict[str, Any]:
    from ice_eval.report.example import probabilities

    scores: dict[str, Any] = {"probabilities": probabilities(row, view.labels)}
    if view.is_open:
        scores = {"log_probability_per_token": row.scores[0] if math.isfinite(row.scores[0]) else None}
    return {
        **row.key._asdict(),
        "kind": row.key.kind.label,
        "kept": list(row.kept),
        "input_ids": list(row.input_ids),
        "segment_ids": list(row.segment_ids),
        **scores,
        "text": row.text,
    }


# --- ice view -------------------------------------------------------------------------------------------------------

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
