"""`ice audit-infill`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ice_eval.cli._evaluation import task_from_flags
from ice_eval.cli._options import Json, check_format
from ice_eval.errors import ConfigError

if TYPE_CHECKING:
    from ice_eval.models import Model
    from ice_eval.records import Encoded
    from ice_eval.results import RunFolder
    from ice_eval.tasks import Task


def audit_infill(
    folder: Annotated[
        Path | None, typer.Argument(metavar="[RUN]", help="A finished run with infill rows: what it wrote is read too.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Whose tokenizer to use (no weights are read); by default the run's.")
    ] = None,
    task: Annotated[str | None, typer.Option(help="A name from `ice list tasks`; by default the run's.")] = None,
    data: Annotated[Path | None, typer.Option(help="A .jsonl or .csv file; by default the run's.")] = None,
    prompt: Annotated[str | None, typer.Option(help="Prompt with fields, for a file.")] = None,
    labels: Annotated[str | None, typer.Option(help="Label words, comma-separated, for a file.")] = None,
    explain: Annotated[str | None, typer.Option(help="Fields to explain, comma-separated.")] = None,
    n: Annotated[
        int | None, typer.Option(min=2, help="Examples that fill the pool; by default 2,000, as in a run.")
    ] = None,
    unit: Annotated[str | None, typer.Option(help="token (by default) or word.")] = None,
    words: Annotated[
        Path | None,
        typer.Option(help="Text file of words that tell the label, in place of the list for the task's labels."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the shuffles that show what chance finds.")] = 0,
    style: Annotated[str | None, typer.Option("--format", help="Print the tables as md, csv or latex.")] = None,
    as_json: Json = False,
) -> None:
    """Show which label-indicative units infill may still write, and in a finished run whether that mattered.

    No model is asked: its tokenizer and the data are enough. With RUN, its fills are read from the ledger, and the win
    rates of examples with and without label-indicative fills are compared.
    """
    from ice_eval.analysis import audit_fills
    from ice_eval.analysis import audit_infill as audited
    from ice_eval.cli._output import print_json, print_tables, print_text
    from ice_eval.models import load_reader
    from ice_eval.operators import POOL_EXAMPLES
    from ice_eval.protocols import PROTOCOLS
    from ice_eval.report import audit_notes, audit_tables, formatted
    from ice_eval.results import RunFolder

    check_format(style, json=as_json)
    if unit not in (None, "token", "word"):
        raise ConfigError(f"unit '{unit}': token or word is expected.")
    run = None if folder is None else RunFolder.existing(folder)
    if run is not None:
        if n is not None or unit is not None:
            raise ConfigError("a run has its own --n and --unit; leave them out.")
        run.require_complete()
    elif model is None:
        raise ConfigError("neither a run nor a model was given: ice audit-infill RUN, or --model M --task T.")
    config = {} if run is None else run.manifest()["config"]
    chosen = (
        task_from_flags(task, data, prompt, labels, explain)
        if run is None
        else _task_of(run, task, data, prompt, labels, explain)
    )
    listed = None if words is None else _words(words)
    chosen.examples(limit=1)  # a bad file is told before a tokenizer is loaded
    if model is None and run is not None:
        _refuse_served(run)
    reader = load_reader(model) if model is not None else _model_of(config["model"])
    items = _encoded(reader, chosen, limit=max(n or POOL_EXAMPLES, config.get("n", 0)), unit=unit, config=config)
    found = audited(
        reader.codec,
        chosen,
        items[: n or POOL_EXAMPLES],
        model=reader.name,
        words=listed,
        label_words_only=PROTOCOLS[config.get("protocol", "default")].label_words_only,
        seed=seed,
    )
    fills = None if run is None else audit_fills(run, found, {item.example_id: item for item, _ in items})
    if as_json:
        print_json({**found.as_dict(), **({} if fills is None else {"run": str(folder), **fills.as_dict()})})
    elif style is not None:
        print_text("\n\n".join(formatted(table, style) for table in audit_tables(found, fills)))
    else:
        print_tables(audit_tables(found, fills), audit_notes(found, fills))


def _task_of(
    run: "RunFolder", task: str | None, data: Path | None, prompt: str | None, labels: str | None, explain: str | None
) -> "Task":
    """The task of a run: what was not given is taken from the manifest."""
    from ice_eval.pipeline.config import lexicon_hash
    from ice_eval.tasks import in_chat

    manifest = run.manifest()
    name = task or manifest["config"]["task"]
    known = _known(name, must=task is not None)
    origin = Path(manifest["data"]["origin"])
    if data is None and (known is None or manifest["data"]["origin"] != known.data.origin):
        if not origin.is_file():
            raise ConfigError(f"the data of {run.path} ({origin}) are not there; give them as --data FILE.")
        data = origin
    if prompt is None and (known is None or known.prompt != manifest["prompt"]):
        prompt = manifest["prompt"]
    if labels is None and (known is None or list(known.labels) != manifest["labels"]):
        labels = ",".join(manifest["labels"])
    chosen = task_from_flags(None if known is None else name, data, prompt, labels, explain)
    identity = manifest["identity"]
    if identity.get("lexicon", lexicon_hash(chosen)) != lexicon_hash(chosen):
        raise ConfigError(
            f"the lexicon of the task '{chosen.name}' is another than that of {run.path}; give its --task."
        )
    return in_chat(chosen, identity.get("chat"), identity.get("system"))


def _known(name: str, *, must: bool) -> "Task | None":
    """The task of that name; None for one that was made of flags."""
    from ice_eval.tasks import load_task

    try:
        return load_task(name)
    except ConfigError:
        if must:
            raise
        return None


def _refuse_served(run: "RunFolder") -> None:
    """A model behind a server reads texts as its tokenizer does, if the run had one, and as words otherwise."""
    server = run.manifest().get("server")
    if server is None:
        return
    if server["tokenizer"] is not None:
        raise ConfigError(f"{run.path} is of a served model; give its tokenizer: --model {server['tokenizer']}.")
    raise ConfigError(
        f"{run.path} is of a model behind a server that was evaluated without --tokenizer, and its fills are no tokens "
        "that could be audited; `ice audit-infill --model M --task T` audits the data as another model reads them."
    )


def _model_of(name: str) -> "Model":
    """The model of a run, by its name; that of a folder does not say where it is."""
    from ice_eval.models import load_reader

    try:
        return load_reader(name)
    except ConfigError as exc:
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
    reader: "Model", task: "Task", *, limit: int, unit: str | None, config: dict[str, Any]
) -> "list[tuple[Encoded, int | None]]":
    """The examples as the model sees them, and their gold labels."""
    from ice_eval.encoding import encode

    reserve = reader.labels(task, scoring=config.get("label_scoring")).reserve
    return [
        (
            encode(
                reader.codec,
                task,
                example,
                unit=config.get("unit", unit or "token"),
                scope=config.get("scope", "content"),
                reserve=reserve,
            ),
            example.gold,
        )
        for example in task.examples(limit=limit)
    ]
