"""`ice validate`."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ice_eval.cli._evaluation import task_from_flags
from ice_eval.cli._options import Json

if TYPE_CHECKING:
    from ice_eval.analysis import ExplanationCheck


def validate(
    file: Annotated[Path, typer.Argument(help="Explanations: .jsonl, ERASER's .jsonl, or .json saved by inseq.")],
    model: Annotated[str, typer.Option(help="The model that was explained; see `ice run --help`.")],
    task: Annotated[str | None, typer.Option(help="A name from `ice list tasks`.")] = None,
    data: Annotated[Path | None, typer.Option(help=".jsonl or .csv with the examples that were explained.")] = None,
    prompt: Annotated[str | None, typer.Option(help="Prompt with fields, for a file.")] = None,
    labels: Annotated[str | None, typer.Option(help="Label words, comma-separated, for a file.")] = None,
    explain: Annotated[str | None, typer.Option(help="Fields to explain, comma-separated.")] = None,
    n: Annotated[int, typer.Option(help="Examples, from the first on.")] = 500,
    unit: Annotated[str, typer.Option(help="token or word.")] = "token",
    chat: Annotated[bool, typer.Option("--chat", help="Make the prompt a user turn of the chat template.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, …")] = "auto",
    as_json: Json = False,
) -> None:
    """Say whether explanations in a file fit the examples, before a run: exit 0 if all do, 2 if one does not."""
    from dataclasses import replace

    from ice_eval.analysis import check_explanations
    from ice_eval.cli._output import print_json
    from ice_eval.errors import ConfigError
    from ice_eval.interop import read
    from ice_eval.models import load_model

    if unit not in {"token", "word"}:
        raise ConfigError(f"--unit {unit}: token or word is expected.")
    chosen = task_from_flags(task, data, prompt, labels, explain)
    examples = chosen.examples(limit=n)
    next(read(file), None)  # a bad file is told before a model is loaded
    chosen = replace(chosen, chat=chat or chosen.chat)
    found = check_explanations(load_model(model, device=device), chosen, examples, file, unit=unit)  # type: ignore[arg-type]
    if as_json:
        print_json({"fits": found.fits, **asdict(found)})
    else:
        print("\n".join(_lines(found)))
    if not found.fits:
        raise typer.Exit(2)


def _lines(found: "ExplanationCheck") -> Iterator[str]:
    yield f"examples:  {found.covered} of {found.examples} have an explanation that fits"
    yield f"units:     {found.units_covered} of {found.units} are covered; the others count as 0"
    if found.cut:
        yield f"cut:       {found.cut} explanations end before the text does"
    if found.unused:
        yield f"unused:    {found.unused} explanations belong to none of these examples"
    if found.missing:
        more = " …" if len(found.missing) > 5 else ""
        yield f"missing:   {len(found.missing)} examples have none: {', '.join(found.missing[:5])}{more}"
    if found.mismatches:
        yield f"mismatch:  {len(found.mismatches)} do not fit their text; the first:\n\n{found.mismatches[0]}"
