"""`ice compare`."""

from pathlib import Path
from typing import Annotated

import typer

from ice_eval.cli._options import Format, Json, check_format
from ice_eval.errors import ConfigError


def compare(
    folders: Annotated[list[Path], typer.Argument(help="Two run folders or more; each is compared with the first.")],
    paper: Annotated[
        bool, typer.Option("--paper", help="Compare one run with the win rates that the paper publishes.")
    ] = False,
    by_id: Annotated[
        bool, typer.Option("--by-id", help="Pair examples by their ids although their texts differ: translations, say.")
    ] = False,
    style: Format = None,
    as_json: Json = False,
) -> None:
    """Say what changed from one run to another: settings, win rates with the interval of their difference, verdicts.

    Differences are paired over the examples that both runs hold (same id, same text), and unpaired where they share
    less than half of the smaller run. With --by-id the id alone decides. With --paper, one run is set
    beside the published tables.
    """
    from ice_eval.cli._output import print_formatted, print_json, print_tables
    from ice_eval.report import difference_notes, difference_tables
    from ice_eval.results import RunFolder, differences

    check_format(style, json=as_json)
    if paper:
        _with_paper(folders, style, as_json=as_json)
        return
    if len(folders) < 2:
        raise ConfigError(f"one run ({folders[0]}) was given; two or more are expected: ice compare DIR DIR.")
    first, *others = (RunFolder.existing(path) for path in folders)
    found = differences(first, others, by_id=by_id)
    if as_json:
        print_json({"first": str(first.path), "comparisons": [each.as_dict() for each in found]})
    elif style is not None:
        print_formatted(difference_tables(found), style)
    else:
        print_tables(difference_tables(found), difference_notes(found))


def _with_paper(folders: list[Path], style: str | None, *, as_json: bool) -> None:
    from ice_eval.analysis.paper import beside_paper
    from ice_eval.cli._output import print_formatted, print_json, print_tables
    from ice_eval.report import beside_notes, beside_table
    from ice_eval.results import RunFolder

    if len(folders) != 1:
        raise ConfigError(f"{len(folders)} runs were given; --paper takes one: ice compare DIR --paper.")
    folder = RunFolder.existing(folders[0])
    found = beside_paper(folder.summary(), folder.manifest().config)
    table = beside_table(found)
    if as_json:
        print_json({"run": str(folder.path), **found.as_dict()})
    elif style is not None and table.rows:
        print_formatted([table], style)
    else:
        print_tables([table] if table.rows else [], beside_notes(found))
