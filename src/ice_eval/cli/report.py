"""Finished runs as tables, pages and figures: `ice report`, `ice compare`, `ice measures`, `ice rescore`."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from ice_eval._registry import from_spec
from ice_eval.cli._options import (
    MAX_DROPPED,
    Columns,
    DataFolder,
    Format,
    Full,
    Json,
    MaxDropped,
    check_format,
    check_share,
    names,
    table_columns,
)
from ice_eval.cli._output import (
    ROWS,
    capped,
    exit_if,
    is_data,
    print_conclusions,
    print_data,
    print_json,
    print_line,
    print_run,
    print_summaries,
    print_tables,
    print_text,
)
from ice_eval.errors import ConfigError, require
from ice_eval.files import as_text

if TYPE_CHECKING:
    from ice_eval.report.figures import FigureFiles
    from ice_eval.results import RunFolder, Summary

JSON_LINES = "jsonl"
Folders = Annotated[list[Path], Argument(help="Run folders, or bench folders with the runs of a grid.")]


def run_folders(paths: Iterable[Path]) -> "list[RunFolder]":
    """Return the runs of some folders, and all finished runs of bench folders; raise ConfigError if there is none."""
    from ice_eval.bench import BenchFolder
    from ice_eval.results import RunFolder

    found = []
    for path in paths:
        runs = BenchFolder(path).finished() if BenchFolder.is_one(path) else [RunFolder.existing(path)]
        if not runs:
            raise ConfigError(f"no run of the grid in {path} is finished; `ice bench {path}` continues it.")
        found += runs
    return found


def report(
    folders: Folders,
    html: Annotated[Path | None, Option(help="Write the report as one HTML file.")] = None,
    pdf: Annotated[
        Path | None, Option(metavar="FILE", help="Write an audit document as PDF; needs typst, the extra `pdf`.")
    ] = None,
    figures: Annotated[Path | None, Option(metavar="DIR", help="Write figures as SVG, PDF and PNG.")] = None,
    style: Annotated[
        str | None,
        Option(
            "--format",
            help="md or latex: tables. csv or json: configurations. jsonl: a line for every example and test.",
        ),
    ] = None,
    out: DataFolder = None,
    fail_if: Annotated[
        list[str] | None,
        Option(
            metavar="VERDICT",
            help="Exit with 1 if a verdict is one of these words, e.g. 'anti-faithful,operators disagree'. An unknown "
            "word lists the known ones. May be repeated.",
        ),
    ] = None,
    fail_for: Annotated[
        str | None,
        Option(help="Attributions that --fail-if is about; by default all but the control `random`."),
    ] = None,
    simultaneous: Annotated[
        bool,
        Option(
            "--simultaneous",
            help="Use intervals and verdicts that hold for all configurations at once.",
        ),
    ] = False,
    columns: Columns = None,
    max_dropped: MaxDropped = MAX_DROPPED,
    full: Full = False,
    as_json: Json = False,
) -> None:
    """Print the results of one or several runs, or write them as a page, a document or figures."""
    from ice_eval.report import data_of, failures, losses, tables, words_of, write_audit, write_html
    from ice_eval.report.figures import figures as figures_of
    from ice_eval.report.figures import write_figures
    from ice_eval.results.summary import simultaneous as with_simultaneous

    others = {"json": as_json, "html": html is not None, "pdf": pdf is not None, "figures": figures is not None}
    check_format(style, out, also=(JSON_LINES,), **others, full=full)
    check_share("--max-dropped", max_dropped)
    view = table_columns(columns)
    if pdf is not None:
        require("typst", install="ice-eval[pdf]", purpose="to write an audit document")
    unwanted = words_of(fail_if or ())
    if fail_for is not None and not unwanted:
        raise ConfigError("--fail-for limits --fail-if to some attributions; give --fail-if WORD too.")
    found = run_folders(folders)
    summaries = [folder.summary() for folder in found]
    shown = list(map(with_simultaneous, summaries)) if simultaneous else summaries
    failed = [*failures(shown, unwanted, attributions=names(fail_for or "")), *losses(summaries, max_dropped)]
    lost = _failed_runs(folders)
    for name, error in lost.items():
        print_text(f"ice: the run {name} failed: {error}", error=True)
    for damage in (each for folder in found for each in folder.damage()):
        print_text(f"ice: {damage}", error=True)
    drawn = [] if figures is None else write_figures(figures_of(found, simultaneous=simultaneous), figures)
    if pdf is not None:
        write_audit(found, pdf, simultaneous=simultaneous, columns=view)
    if html is not None:
        write_html(found, html, simultaneous=simultaneous, columns=view, failed=lost)
    if style == JSON_LINES:
        _print_examples(found)
    elif not (html is pdf is figures is None):
        _print_written(html, pdf, drawn, as_json=as_json)
    else:
        paths = [str(folder.path) for folder in found]
        if as_json:
            _print_json(summaries, paths)  # it has both intervals
        elif is_data(style):
            print_data(data_of(found, summaries), style, out)  # so have they
        elif style is not None:
            print_tables(tables(shown, simultaneous=simultaneous, columns=view), style=style)
        else:
            if full:
                print_summaries(shown, paths, simultaneous=simultaneous, columns=view)
                print_text("")
            print_conclusions(found, shown, simultaneous=simultaneous, full=full, columns=view)
    exit_if(failed)


def _failed_runs(paths: Iterable[Path]) -> dict[str, str]:
    """Return the errors of runs that failed, of all bench folders."""
    from ice_eval.bench import BenchFolder

    folders = [BenchFolder(path) for path in paths if BenchFolder.is_one(path)]
    return {name: error for folder in folders for name, error in folder.failed().items()}


def _print_json(summaries: "list[Summary]", folders: list[str]) -> None:
    from ice_eval.results.json_files import as_json
    from ice_eval.results.summary import adjusted_jointly

    together = zip(folders, adjusted_jointly(summaries), strict=True)
    print_json([{"folder": name, **as_json(summary)} for name, summary in together])


def _print_examples(folders: "list[RunFolder]") -> None:
    """Print one line per example and configuration."""
    from ice_eval.results.json_files import as_json

    for folder in folders:
        for line in folder.examples():
            content = {"folder": str(folder.path), **as_json(line)} if len(folders) > 1 else as_json(line)
            print_text(json.dumps(content, ensure_ascii=False, allow_nan=False))


def _print_written(html: Path | None, pdf: Path | None, drawn: "list[FigureFiles]", *, as_json: bool) -> None:
    """Print the paths of written files; figures as JSON have their captions."""
    pages = {"html": html, "pdf": pdf}
    if as_json:
        paths = {name: None if path is None else str(path) for name, path in pages.items()}
        print_json({**paths, "figures": figure_records(drawn)})
        return
    for path in [*filter(None, pages.values()), *(path for each in drawn for path in each.paths)]:
        print_text(str(path))


def figure_records(drawn: "Iterable[FigureFiles]") -> list[dict[str, Any]]:
    """Return written figures as JSON content."""
    return [
        {
            "name": each.figure.name,
            "title": each.figure.title,
            "caption": each.figure.caption,
            "files": [str(path) for path in each.paths],
        }
        for each in drawn
    ]


def compare(
    folders: Annotated[list[Path], Argument(help="Two run folders or more; each is compared with the first.")],
    paper: Annotated[bool, Option("--paper", help="Compare one run with the paper's win rates.")] = False,
    by_id: Annotated[bool, Option("--by-id", help="Pair examples by id alone, as for translations.")] = False,
    html: Annotated[Path | None, Option(help="Write the comparison as one HTML file.")] = None,
    style: Format = None,
    out: DataFolder = None,
    full: Full = False,
    as_json: Json = False,
) -> None:
    """Show what differs between runs: settings, verdicts, and win rates with the interval of their difference.

    Examples are paired by id and text. Where the runs share less than half of the smaller one, differences are
    unpaired.
    """
    from ice_eval.report import difference_data, difference_notes, difference_tables, write_comparison
    from ice_eval.report.comparison import comparison_lines, comparison_table
    from ice_eval.results import RunFolder, differences

    check_format(style, out, json=as_json, html=html is not None)
    if paper:
        if html is not None:
            raise ConfigError("--html is about two runs or more, and --paper about one; give one of them.")
        _compare_with_paper(folders, style, out, as_json=as_json)
        return
    if len(folders) < 2:
        raise ConfigError(f"one run ({folders[0]}) was given; two or more are expected: ice compare DIR DIR.")
    first, *others = (RunFolder.existing(path) for path in folders)
    found = differences(first, others, by_id=by_id)
    if html is not None:
        write_comparison(found, html)
        _print_written(html, None, [], as_json=as_json)
    elif as_json:
        print_json({"first": str(first.path), "comparisons": [each.as_dict() for each in found]})
    elif is_data(style):
        print_data(difference_data(found), style, out)
    elif full or style is not None:
        print_tables(difference_tables(found), difference_notes(found), style=style)
    else:
        for line in capped(comparison_lines(found), "lines", most=10):
            print_line(line)
        print_text("")
        print_tables([table for table in [comparison_table(found, most=ROWS)] if table.rows])
        print_line("All tables and notes: the same command with --full, or --html FILE.")


def _compare_with_paper(folders: list[Path], style: str | None, out: Path | None, *, as_json: bool) -> None:
    from ice_eval.analysis.paper import beside_paper
    from ice_eval.report import data_table
    from ice_eval.report.analyses import beside_notes, beside_table
    from ice_eval.results import RunFolder

    if len(folders) != 1:
        raise ConfigError(f"{len(folders)} runs were given; --paper takes one: ice compare DIR --paper.")
    folder = RunFolder.existing(folders[0])
    found = beside_paper(folder.summary(), folder.manifest().config)
    table = beside_table(found)
    if as_json:
        print_json({"run": str(folder.path), **found.as_dict()})
    elif is_data(style):
        head = {"folder": as_text(folder.path), "model": found.model, "task": found.task}
        print_data([data_table("configurations", found.configurations, **head)], style, out)
    elif table.rows:
        print_tables([table], beside_notes(found), style=style)
    else:
        print_tables([], beside_notes(found))


def measures(
    folders: Folders,
    only: Annotated[str | None, Option(metavar="NAMES", help="Compute only these; see `ice list measures`.")] = None,
    style: Format = None,
    out: DataFolder = None,
    as_json: Json = False,
) -> None:
    """Print other measures of finished runs, such as agreement with human rationales; no model is needed.

    If a measure cannot be computed, a line says what is missing.
    """
    from ice_eval.analysis.measures import measured
    from ice_eval.analysis.measures import measures as known
    from ice_eval.report.analyses import measure_data, measure_notes, measure_tables

    check_format(style, out, json=as_json)
    asked = {spec: from_spec(spec, known) for spec in (known.names() if only is None else names(only))}
    found = run_folders(folders)
    for folder in found:
        folder.require_complete()
    results = measured(asked, found)
    if as_json:
        print_json({"folders": [str(folder.path) for folder in found], "measures": [r.as_dict() for r in results]})
        return
    notes = measure_notes(results, found)
    if is_data(style):
        print_data(measure_data(results, found), style, out)
    else:
        print_tables(measure_tables(results, found), notes, style=style)
    for note in notes if style is not None else ():
        print_text(note, error=True)


def rescore(folder: Annotated[Path, Argument(help="Run folder.")], full: Full = False, as_json: Json = False) -> None:
    """Compute all statistics of a run again from its ledger, without a model."""
    from ice_eval.api import Run

    run = Run(folder)
    run.rescore()
    run.report()
    print_run(run.folder, as_json=as_json, full=full)
