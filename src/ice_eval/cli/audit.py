"""`ice audit-infill`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ice_eval.cli._options import TASK, Format, Json, check_format, takes
from ice_eval.cli._output import print_json, print_tables
from ice_eval.cli._tasks import TaskFlags, task_of, task_of_run
from ice_eval.errors import ConfigError

if TYPE_CHECKING:
    from ice_eval.models import Model
    from ice_eval.records import Encoded, Unit
    from ice_eval.results import RunFolder, RunSettings
    from ice_eval.tasks import Task


@takes(*TASK)
def audit_infill(
    values: dict[str, Any],
    folder: Annotated[
        Path | None, typer.Argument(metavar="[RUN]", help="A finished run with infill rows: what it wrote is read too.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Whose tokenizer to use (no weights are read); by default the run's.")
    ] = None,
    n: Annotated[
        int | None, typer.Option(min=2, help="Examples that fill the pool; by default 2,000, as in a run.")
    ] = None,
    unit: Annotated[str | None, typer.Option(help="token (by default) or word.")] = None,
    words: Annotated[
        Path | None,
        typer.Option(help="Text file of words that tell the label, in place of the list for the task's labels."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the shuffles that show what chance finds.")] = 0,
    style: Format = None,
    as_json: Json = False,
) -> None:
    """Show which label-indicative units infill may still write, and in a finished run whether that mattered.

    No model is asked: its tokenizer and the data are enough. With RUN, its fills are read from the ledger, and the win
    rates of examples with and without label-indicative fills are compared. Its task and data are the run's, unless
    others are given.
    """
    from ice_eval.analysis import audit_fills
    from ice_eval.analysis import audit_infill as audited
    from ice_eval.operators import POOL_EXAMPLES
    from ice_eval.protocols import PROTOCOLS
    from ice_eval.report import audit_notes, audit_tables

    check_format(style, json=as_json)
    run = _run(folder, model, n, unit)
    config = None if run is None else run.manifest().config
    flags = TaskFlags(**values)
    chosen = task_of(flags) if run is None else task_of_run(run, flags)
    listed = None if words is None else _words(words)
    chosen.examples(limit=1)  # a bad file is told before a tokenizer is loaded
    reader = _reader(model, run)
    items = _encoded(
        reader, chosen, limit=max(n or POOL_EXAMPLES, 0 if config is None else config.n), unit=unit, config=config
    )
    found = audited(
        reader.codec,
        chosen,
        items[: n or POOL_EXAMPLES],
        model=reader.name,
        words=listed,
        label_words_only=PROTOCOLS["default" if config is None else config.protocol].label_words_only,
        seed=seed,
    )
    fills = None if run is None else audit_fills(run, found, {item.example_id: item for item, _ in items})
    if as_json:
        print_json({**found.as_dict(), **({} if fills is None else {"run": str(folder), **fills.as_dict()})})
    else:
        print_tables(audit_tables(found, fills), audit_notes(found, fills), style=style)


def _run(folder: Path | None, model: str | None, n: int | None, unit: str | None) -> "RunFolder | None":
    """Return the run that is audited; None where a model and a task are."""
    from ice_eval.results import RunFolder

    if unit not in (None, "token", "word"):
        raise ConfigError(f"unit '{unit}': token or word is expected.")
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
    """A model behind a server reads texts as its tokenizer does, if the run had one, and as words otherwise."""
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
    """Return a model that reads texts: the one that is named, or the run's."""
    from ice_eval.models import load_reader

    if model is not None:
        return load_reader(model)
    assert run is not None, "without a run a model is given"
    _refuse_served(run)
    name = run.manifest().config.model
    try:
        return load_reader(name)
    except ConfigError as exc:  # that of a folder does not say where it is
        raise ConfigError(f"the run's model '{name}' was not found by its name; give --model ({exc})") from exc


def _words(path: Path) -> list[str]:
    try:
        found = path.read_text(encoding="utf-8").replace(",", " ").split()
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{path} cannot be read as text: {exc}.") from exc
    if not found:
        raise ConfigError(f"{path} holds no words; words with spaces or lines between are expected.")
    return found


def _encoded(
    reader: "Model", task: "Task", *, limit: int, unit: str | None, config: "RunSettings | None"
) -> "list[tuple[Encoded, int | None]]":
    """The examples as the model sees them, and their gold labels."""
    from ice_eval.encoding import encode

    reserve = reader.labels(task, scoring=None if config is None else config.label_scoring).reserve
    cut_into: Unit = "word" if (unit if config is None else config.unit) == "word" else "token"
    return [
        (
            encode(
                reader.codec,
                task,
                example,
                unit=cut_into,
                scope="content" if config is None else config.scope,
                reserve=reserve,
            ),
            example.gold,
        )
        for example in task.examples(limit=limit)
    ]
