"""Runs to look at, and into: `ice show`, `ice view` and `ice audit-infill`."""

import itertools
import math
import os
import secrets
import sys
import threading
import webbrowser
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from ice_eval.choices import PROTOCOLS, Unit
from ice_eval.cli._options import (
    TASK,
    DataFolder,
    Format,
    Json,
    TaskFlags,
    check_format,
    table_columns,
    takes,
    task_of,
    task_of_run,
)
from ice_eval.cli._output import console, is_data, print_data, print_json, print_line, print_tables, print_text
from ice_eval.errors import ConfigError, require, without_turns
from ice_eval.files import as_text
from ice_eval.settings import RunFields, run_config

if TYPE_CHECKING:
    from ice_eval.models import Model
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

    In a terminal attributions are shades and rationales are underlined; elsewhere rationales are in brackets.
    """
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


def view(
    folder: Annotated[Path, Argument(help="Folder with runs, in it or below it.")] = Path("."),
    port: Annotated[int, Option(help="Port on this machine; 0 chooses a free one.", min=0, max=65535)] = 0,
    no_browser: Annotated[bool, Option("--no-browser", help="Print the address without opening a browser.")] = False,
    models: Annotated[
        Path | None, Option(metavar="DIR", help="Folder with local models by name, for what-if questions.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show many runs in the browser: an index, their reports, comparisons, and what-if questions.

    Only this machine can open the printed address. The server writes nothing. Ctrl-C stops it.
    """
    for module in ("starlette", "uvicorn"):
        require(module, install="ice-eval[view]", purpose="to show runs")
    os.environ["HF_HUB_OFFLINE"] = "1"  # before anything of the hub is imported
    from ice_eval.view import RunIndex, WhatIf
    from ice_eval.view.server import HOST, application, listening_on, stoppable

    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder; give one with runs: ice view FOLDER.")
    runs = RunIndex(folder)
    entries = runs.entries()
    if not entries:
        reasons = "".join(f" {name}: {reason}" for name, reason in runs.unreadable[:1])
        raise ConfigError(f"no finished run in {folder} or below it; `ice run --out FOLDER` makes one.{reasons}")
    places = [each for each in (models, folder, Path(".")) if each is not None]
    with listening_on(HOST, port) as listening:
        port, token = listening.getsockname()[1], secrets.token_urlsafe(32)
        server = stoppable(application(runs, WhatIf(places), token=token, port=port))
        url = f"http://{HOST}:{port}/?token={token}"
        if as_json:
            print_json({"url": url, "runs": len(entries)})
        else:
            count = "1 run" if len(entries) == 1 else f"{len(entries)} runs"
            print_text(f"{count} in {as_text(folder.resolve())} (Ctrl-C stops the server)\n{url}")
        sys.stdout.flush()
        if not no_browser:
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
        server.run(sockets=[listening])


# --- ice audit-infill -----------------------------------------------------------------------------------------------


@takes(*TASK)
def audit_infill(
    values: dict[str, Any],
    folder: Annotated[Path | None, Argument(metavar="[RUN]", help="A finished run with infill rows.")] = None,
    model: Annotated[str | None, Option(help="Model whose tokenizer is used; by default the run's.")] = None,
    n: Annotated[int | None, Option(min=2, help="Examples of the pool; by default 2,000.")] = None,
    unit: Annotated[str | None, Option(help="token (by default) or word.")] = None,
    words: Annotated[
        Path | None, Option(help="Text file of label-indicative words, in place of the task's list.")
    ] = None,
    seed: Annotated[int, Option(help="Seed of the shuffles.")] = 0,
    style: Format = None,
    out: DataFolder = None,
    as_json: Json = False,
) -> None:
    """Show which label-indicative units infill may still write, and in a finished run whether that mattered.

    Needs no weights. With RUN, its fills are read from the ledger, and win rates with and without label-indicative
    fills are compared.
    """
    from ice_eval.analysis import audit_fills
    from ice_eval.analysis import audit_infill as audited
    from ice_eval.encoding import encode
    from ice_eval.operators import POOL_EXAMPLES
    from ice_eval.report.analyses import audit_data, audit_notes, audit_tables

    check_format(style, out, json=as_json)
    run = _audited_run(folder, model, n, unit)
    config: RunFields = run_config({"n": 1, "unit": unit}) if run is None else run.manifest().config
    if config.unit == "sentence":
        raise ConfigError(
            "infill of sentences writes whole ones of other texts; only units of token or word are audited."
        )
    flags = TaskFlags(**values)
    chosen = task_of(flags) if run is None else task_of_run(run, flags)
    listed = None if words is None else _words(words)
    chosen.examples(limit=1)  # a bad file is reported before a tokenizer is loaded
    reader = _reader(model, run)
    reserve = reader.labels(chosen, scoring=config.label_scoring).reserve
    cut_into: Unit = "word" if config.unit == "word" else "token"
    items = [
        (encode(reader.codec, chosen, each, unit=cut_into, scope=config.scope, reserve=reserve), each.gold)
        for each in chosen.examples(limit=max(n or POOL_EXAMPLES, config.n))
    ]
    alone = PROTOCOLS[config.protocol].label_words_only
    pool = items[: n or POOL_EXAMPLES]
    found = audited(reader.codec, chosen, pool, model=reader.name, words=listed, label_words_only=alone, seed=seed)
    fills = None if run is None else audit_fills(run, found, {item.example_id: item for item, _ in items})
    if as_json:
        print_json({**found.as_dict(), **({} if fills is None else {"run": str(folder), **fills.as_dict()})})
    elif is_data(style):
        print_data(audit_data(found, fills), style, out)
    else:
        print_tables(audit_tables(found, fills), audit_notes(found, fills), style=style)


def _audited_run(folder: Path | None, model: str | None, n: int | None, unit: str | None) -> "RunFolder | None":
    """Return the run to audit; None if a model and a task are given."""
    from ice_eval.results import RunFolder

    if folder is None:
        if model is None:
            raise ConfigError("neither a run nor a model was given: ice audit-infill RUN, or --model M --task T.")
        return None
    run = RunFolder.existing(folder)
    if n is not None or unit is not None:
        raise ConfigError("a run has its own --n and --unit; leave them out.")
    run.require_complete()
    return run


def _refuse_served(run: "RunFolder") -> None:
    server = run.manifest().server
    if server is None:
        return
    if server.tokenizer is not None:
        raise ConfigError(f"{run.path} is of a served model; give its tokenizer: --model {server.tokenizer}.")
    raise ConfigError(
        f"{run.path} is of a model behind a server that was evaluated without --tokenizer, and its fills are no tokens "
        "that could be audited; `ice audit-infill --model M --task T` audits the data as another model reads them."
    )


def _reader(model: str | None, run: "RunFolder | None") -> "Model":
    """Return a model that reads texts: the named one, or the run's."""
    from ice_eval.models import load_reader

    if model is not None:
        return load_reader(model)
    assert run is not None, "without a run a model is given"
    _refuse_served(run)
    name = run.manifest().config.model
    try:
        return load_reader(name)
    except ConfigError as exc:  # the name of a folder does not include its path
        raise ConfigError(f"the run's model '{name}' was not found by its name; give --model ({exc})") from exc


def _words(path: Path) -> list[str]:
    try:
        found = path.read_text(encoding="utf-8").replace(",", " ").split()
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{path} cannot be read as text: {exc}.") from exc
    if not found:
        raise ConfigError(f"{path} holds no words; words with spaces or lines between are expected.")
    return found
