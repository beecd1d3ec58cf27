"""`ice report`."""

from pathlib import Path
from typing import Annotated

import typer

from ice_eval.cli._options import Json
from ice_eval.errors import ConfigError


def report(
    folders: Annotated[list[Path], typer.Argument(help="Run folders.")],
    html: Annotated[Path | None, typer.Option(help="Write the report as one HTML file.")] = None,
    style: Annotated[str | None, typer.Option("--format", help="Print the tables as md, csv or latex.")] = None,
    as_json: Json = False,
) -> None:
    """Print the tables of one or several runs, or write them as a page."""
    from ice_eval.cli._output import print_json, print_summaries
    from ice_eval.report import FORMATS, formatted, jointly, tables, write_html
    from ice_eval.results import RunFolder

    if style is not None and style not in FORMATS:
        raise ConfigError(f"no format '{style}'; use {', '.join(FORMATS)}, or --html FILE for a page.")
    found = [RunFolder.existing(path) for path in folders]
    summaries = [folder.summary() for folder in found]
    if html is not None:
        print(write_html(found, html))
    elif as_json:
        print_json(
            [{"folder": str(folder.path), **summary} for folder, summary in zip(found, jointly(summaries), strict=True)]
        )
    elif style is not None:
        print("\n\n".join(formatted(table, style) for table in tables(summaries)))
    else:
        print_summaries(summaries)
