"""`ice measures`."""

from pathlib import Path
from typing import Annotated

import typer

from ice_eval.cli._folders import run_folders
from ice_eval.cli._options import Format, Json, check_format, names


def measures(
    folders: Annotated[list[Path], typer.Argument(help="Run folders, or bench folders with the runs of a grid.")],
    only: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Some measures alone, as in 'ice list measures'.")
    ] = None,
    style: Format = None,
    as_json: Json = False,
) -> None:
    """Print what finished runs say beside win rates, such as agreement with human rationales; no model is needed.

    Every measure that the folders allow gets its tables, and every other one a line that says what is missing.
    """
    from ice_eval.analysis.measures import measured
    from ice_eval.analysis.measures import measures as known
    from ice_eval.cli._output import print_formatted, print_json, print_tables, print_text
    from ice_eval.report import measure_notes, measure_tables

    check_format(style, json=as_json)
    asked = {name: known.get(name)() for name in (known.names() if only is None else names(only))}
    found = run_folders(folders)
    for folder in found:
        folder.require_complete()
    results = measured(asked, found)
    if as_json:
        print_json({"folders": [str(folder.path) for folder in found], "measures": [r.as_dict() for r in results]})
    elif style is not None:
        print_formatted(measure_tables(results, found), style)
        for note in measure_notes(results, found):
            print_text(note, error=True)
    else:
        print_tables(measure_tables(results, found), measure_notes(results, found))
