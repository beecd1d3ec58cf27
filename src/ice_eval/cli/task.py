"""`ice task`."""

import itertools
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ice_eval.cli._options import Columns, Device, DeviceMap, Json, LoadIn, MaxMemory
from ice_eval.cli._tasks import TaskFlags, task_of
from ice_eval.errors import ConfigError

if TYPE_CHECKING:
    from ice_eval.analysis import TaskCheck

app = typer.Typer(help="Make a task of your own, and look at a task before running it.", no_args_is_help=True)


@app.callback()
def _root() -> None:
    pass


@app.command("new")
def new(
    file: Annotated[Path, typer.Argument(help="Where to write it, as mine.yaml.")],
    data: Annotated[Path | None, typer.Option(help="Your .jsonl or .csv: its fields and labels are filled in.")] = None,
    as_json: Json = False,
) -> None:
    """Write the beginning of a task file, with a comment on each line; an existing file is never overwritten."""
    from ice_eval.cli._output import print_json, print_text
    from ice_eval.tasks import draft, is_task_file

    if not is_task_file(file.name):
        raise ConfigError(f"a task file ends in .yaml, as {file.with_suffix('.yaml')}, not in '{file.suffix}'.")
    text = draft(file, data)
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError as exc:
        raise ConfigError(f"{file} is there already, and is left as it is; choose another name.") from exc
    except OSError as exc:
        raise ConfigError(f"{file} cannot be written: {exc.strerror}.") from exc
    if as_json:
        print_json({"file": str(file)})
        return
    print_text(f"Wrote {file}. Fill it in, then: ice task check {file} --model MODEL")


@app.command("check")
def check(
    task: Annotated[
        str,
        typer.Argument(
            help="A name from `ice list tasks` (sst2, sst2/minimal), a task file, or a .jsonl or .csv file."
        ),
    ],
    model: Annotated[str, typer.Option(help="The model that is to read it; see `ice run --help`.")],
    prompt: Annotated[str | None, typer.Option(help="Prompt with fields, for a file.")] = None,
    labels: Annotated[str | None, typer.Option(help="Label words, comma-separated, for a file.")] = None,
    explain: Annotated[str | None, typer.Option(help="Fields to explain, comma-separated.")] = None,
    data: Annotated[Path | None, typer.Option(help="A file to use with a known task.")] = None,
    columns: Columns = None,
    unit: Annotated[str, typer.Option(help="token or word.")] = "token",
    chat: Annotated[bool, typer.Option("--chat", help="Make the prompt a user turn of the chat template.")] = False,
    device: Device = "auto",
    device_map: DeviceMap = None,
    max_memory: MaxMemory = None,
    load_in: LoadIn = None,
    as_json: Json = False,
) -> None:
    """Show three rendered prompts, what is protected in them, the label tokens, and how the model does on 50 rows."""
    from dataclasses import replace

    from ice_eval.analysis import check_task
    from ice_eval.cli._output import print_json
    from ice_eval.models import load_model

    is_file = Path(task).suffix.lower() in {".jsonl", ".csv"}
    named, file = (None, Path(task)) if is_file else (task, data)
    chosen = task_of(TaskFlags(named, file, prompt, labels, explain, columns))
    chosen.examples(limit=1)  # a bad file is told before a model is loaded
    loaded = load_model(model, device=device, device_map=device_map, max_memory=max_memory, load_in=load_in)
    found = check_task(loaded, replace(chosen, chat=chat or chosen.chat), unit=unit)  # type: ignore[arg-type]
    if as_json:
        print_json(asdict(found))
    else:
        _print(found)


_UNIT_STYLES = ("black on cyan", "black on yellow")
"""In turn, so that neighbours are told apart."""


def _print(found: "TaskCheck") -> None:
    from rich.text import Text

    from ice_eval.cli._output import console, print_line

    out = console()
    for number, prompt in enumerate(found.prompts, start=1):
        out.print(Text(f"prompt {number} (units in brackets, the rest is protected)", style="bold"))
        line, units = Text(), itertools.cycle(_UNIT_STYLES)
        for segment in prompt:
            shown = f"[{segment.text}]" if segment.kind == "unit" else segment.text
            line.append(shown, style=next(units) if segment.kind == "unit" else "dim")
        print_line(out, line)
        out.print()
    for text in _facts(found):
        print_line(out, Text(text), indent=4)


def _facts(found: "TaskCheck") -> list[str]:
    way = {"first": "by the first token", "full": "by all tokens"}[found.label_scoring]
    lines: list[Any] = [f"label scoring: {way if any(label.tokens for label in found.labels) else 'by class'}"]
    for label in found.labels:
        tokens = " ".join(repr(token) for token in label.tokens) or f"class {label.token_ids[0]}"
        lines.append(
            f"  {label.label}: {label.word!r} = {tokens}; said to an empty text with probability {label.prior:.2f}, "
            f"to {100 * label.predicted:.0f} % of {found.n} examples"
        )
    accuracy = "unknown (no gold labels)"
    if found.accuracy is not None and found.majority is not None:
        accuracy = f"{100 * found.accuracy:.0f} % (always the most frequent label: {100 * found.majority:.0f} %)"
    lines.append(f"accuracy on {found.n} examples: {accuracy}")
    lines.append(f"units per text: {found.median_units:g} in the median; texts cut to fit: {found.truncated}")
    if found.human:
        lines.append(f"examples with a human rationale: {found.human} of {found.n}")
    return [*lines, *found.notes]
