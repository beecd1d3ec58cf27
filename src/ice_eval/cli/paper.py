"""`ice paper`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from ice_eval.cli._options import DataFolder, Format, Json, check_format
from ice_eval.cli._output import is_data, print_data, print_json, print_line, print_tables, print_text
from ice_eval.cli.report import figure_records
from ice_eval.errors import ConfigError

DISCREPANCIES = "discrepancies"


def paper(
    table: Annotated[str | None, Argument(help="A table that `ice paper` lists, or 'discrepancies'.")] = None,
    style: Format = None,
    out: DataFolder = None,
    figures: Annotated[Path | None, Option(help="Redraw the paper's figures into this folder.")] = None,
    as_json: Json = False,
) -> None:
    """Print the paper's published tables, and its headline figures computed again from them."""
    check_format(style, out, json=as_json)
    if figures is not None and (table is not None or style is not None):
        raise ConfigError("--figures draws all figures and prints no table; leave out TABLE and --format.")
    if figures is not None:
        _figures(figures, as_json=as_json)
    elif table is None:
        _overview(style, out, as_json=as_json)
    else:
        _one(table, style, out, as_json=as_json)


def _overview(style: str | None, out: Path | None, *, as_json: bool) -> None:
    from ice_eval.analysis.paper import claims, discrepancies, headline, paper_tables, step_capacities
    from ice_eval.report import data_table
    from ice_eval.report.analyses import claims_table, paper_index
    from ice_eval.stats import reasoning_word

    if as_json:
        capacities = [
            {"model": model, "unit": unit, "src": round(src, 4), "word": reasoning_word(src)}
            for model, unit, src in step_capacities()
        ]
        print_json(
            {
                **headline(),
                "claims": [asdict(claim) for claim in claims()],
                "step_reasoning_capacity": capacities,
                "discrepancies": [asdict(each) for each in discrepancies()],
                "tables": list(paper_tables()),
            }
        )
        return
    if style is not None and is_data(style):
        known = [{"table": each.name, "title": each.title} for each in paper_tables().values()]
        print_data([data_table("claims", claims()), data_table("tables", known)], style, out)
        return
    print_tables([paper_index(list(paper_tables().values())), claims_table(claims())], style=style)
    if style is None:
        print_line(f"`ice paper TABLE` prints a table, `ice paper {DISCREPANCIES}` where the paper contradicts itself.")


def _figures(folder: Path, *, as_json: bool) -> None:
    from ice_eval.cli._output import print_json
    from ice_eval.report.figures import paper_figures, write_figures

    written = write_figures(paper_figures(), folder)
    if as_json:
        print_json(figure_records(written))
        return
    for each in written:
        print_text("\n".join(map(str, each.paths)))


def _one(name: str, style: str | None, out: Path | None, *, as_json: bool) -> None:
    from ice_eval.analysis.paper import discrepancies, paper_table
    from ice_eval.report import data_table
    from ice_eval.report.analyses import discrepancies_table, paper_layout

    if name == DISCREPANCIES:
        found = discrepancies()
        content: Any = [asdict(each) for each in found]
        shown, note = discrepancies_table(found), ""
    else:
        chosen = paper_table(name)
        content, shown, note = chosen.as_dict(), paper_layout(chosen), f"Unit: {chosen.unit}. {chosen.note}".strip()
    if as_json:
        print_json(content)
        return
    if style is not None and is_data(style):
        print_data([data_table(name, content if name == DISCREPANCIES else content["rows"])], style, out)
        return
    print_tables([shown], style=style)
    if note and style is None:
        print_line(note)
