"""`ice report`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ice_eval.cli._folders import run_folders
from ice_eval.cli._options import JSON_LINES, Json, check_format, names
from ice_eval.errors import ConfigError

if TYPE_CHECKING:
    from ice_eval.report.figures import FigureFiles
    from ice_eval.results import RunFolder, Summary


def report(
    folders: Annotated[list[Path], typer.Argument(help="Run folders, or bench folders with the runs of a grid.")],
    html: Annotated[Path | None, typer.Option(help="Write the report as one HTML file.")] = None,
    figures: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write every figure as SVG, PDF and PNG (300 dpi) into a folder.")
    ] = None,
    style: Annotated[
        str | None,
        typer.Option(
            "--format", help="Print the tables as md, csv or latex; or, as jsonl, a line for every example and test."
        ),
    ] = None,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VERDICT",
            help="Exit with 1 if a verdict holds this word, or a word of this comma-separated list: a word of the "
            "taxonomy, 'not distinguishable from random', 'undetermined' or 'operators disagree'; of chains of thought "
            "'decorative', 'scaffolding' or 'genuine', which fail without any verdict, too. May be repeated.",
        ),
    ] = None,
    fail_for: Annotated[
        str | None,
        typer.Option(
            help="Attributions that --fail-if is about, comma-separated; by default all but the control `random`."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the tables of one or several runs, or write them as a page or as figures."""
    from ice_eval.cli._output import print_text
    from ice_eval.report import failures, words_of, write_html

    others = {"json": as_json, "html": html is not None, "figures": figures is not None}
    check_format(style, also=(JSON_LINES,), **others)
    unwanted = words_of(fail_if or ())
    if fail_for is not None and not unwanted:
        raise ConfigError("--fail-for says whom --fail-if is about; give both.")
    found = run_folders(folders)
    summaries = [folder.summary() for folder in found]
    failed = failures(summaries, unwanted, attributions=names(fail_for or ""))
    for damage in (each for folder in found for each in folder.damage()):
        print_text(f"ice: {damage}", error=True)
    drawn = [] if figures is None else _draw(found, figures)
    if html is not None:
        write_html(found, html)
    if style == JSON_LINES:
        _print_examples(found)
    elif html is not None or figures is not None:
        _print_written(html, drawn, as_json=as_json)
    else:
        _print_tables(summaries, [str(folder.path) for folder in found], style, as_json=as_json)
    for line in failed:
        print_text(f"ice: {line}", error=True)
    if failed:
        raise typer.Exit(1)


def _print_tables(summaries: "list[Summary]", folders: list[str], style: str | None, *, as_json: bool) -> None:
    from ice_eval.cli._output import print_formatted, print_json, print_summaries
    from ice_eval.report import tables
    from ice_eval.results.json_files import as_json as json_of
    from ice_eval.results.summary import adjusted_jointly

    if as_json:
        together = zip(folders, adjusted_jointly(summaries), strict=True)
        print_json([{"folder": name, **json_of(summary)} for name, summary in together])
    elif style is not None:
        print_formatted(tables(summaries), style)
    else:
        print_summaries(summaries, folders)


def _print_examples(folders: "list[RunFolder]") -> None:
    """Print every example under every configuration, a line each."""
    import json

    from ice_eval.cli._output import print_text
    from ice_eval.results.json_files import as_json

    for folder in folders:
        for line in folder.examples():
            content = {"folder": str(folder.path), **as_json(line)} if len(folders) > 1 else as_json(line)
            print_text(json.dumps(content, ensure_ascii=False, allow_nan=False))


def _draw(folders: "list[RunFolder]", target: Path) -> "list[FigureFiles]":
    from ice_eval.report.figures import figures, write_figures

    return write_figures(figures(folders), target)


def _print_written(html: Path | None, drawn: "list[FigureFiles]", *, as_json: bool) -> None:
    """The paths of what was written; figures as JSON carry their captions."""
    from ice_eval.cli._output import print_json, print_text

    if as_json:
        records = [
            {
                "name": each.figure.name,
                "title": each.figure.title,
                "caption": each.figure.caption,
                "files": [str(path) for path in each.paths],
            }
            for each in drawn
        ]
        print_json({"html": None if html is None else str(html), "figures": records})
        return
    for path in [*([] if html is None else [html]), *(path for each in drawn for path in each.paths)]:
        print_text(str(path))
