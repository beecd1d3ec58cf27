"""`ice reproduce`."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from ice_eval.cli._options import Json, model_names, takes
from ice_eval.cli._output import print_json, print_line, print_tables, print_text
from ice_eval.errors import ConfigError
from ice_eval.settings import EXECUTION, LOADING, SERVING, names_of, values_of

if TYPE_CHECKING:
    from ice_eval.reproduce import ExperimentCost, Made, Progress

_MOST_MISSING = 3
_OF_SERVERS = tuple(each for each in SERVING if each.name not in {"base_url", "tokenizer"})


@takes(*names_of((*LOADING, *EXECUTION, *_OF_SERVERS)))
def reproduce(
    values: dict[str, Any],
    targets: Annotated[
        list[str] | None,
        Argument(
            metavar="[TABLE|FIGURE|EXPERIMENT|all]...",
            help="Labels of the paper (tab:ksweep), experiments (english), or all.",
        ),
    ] = None,
    models: Annotated[
        list[str] | None,
        Option(
            metavar="MODELS",
            help="In place of the paper's, comma-separated; EXPERIMENT=MODELS or EXPERIMENT/TASK=MODELS for a part.",
        ),
    ] = None,
    n: Annotated[int | None, Option(min=1, help="Examples of every run, in place of the paper's.")] = None,
    m: Annotated[int | None, Option(min=1, help="Random sets of every run of texts.")] = None,
    protocol: Annotated[
        str | None, Option(help="Protocol of runs about texts: paper (by default), released, authors or default.")
    ] = None,
    data_dir: Annotated[Path | None, Option(metavar="DIR", help="Folder of data: TASK.jsonl or TASK.csv.")] = None,
    base_url: Annotated[str | None, Option(help="Server of models that begin with openai:.")] = None,
    out: Annotated[Path, Option(help="Folder of grids, tables and figures; an existing one is continued.")] = Path(
        "ice-reproduce"
    ),
    show: Annotated[bool, Option("--list", help="List all tables and figures with their state, and stop.")] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Print the cost, and stop.")] = False,
    gpu_price: Annotated[float, Option(min=0, help="Dollars for an hour of an H200.")] = 4.0,
    as_json: Json = False,
) -> None:
    """Run the grids of the paper's tables and figures, and write them in the paper's layout.

    OUT/tables gets LaTeX, CSV, SVG and PDF, beside the published numbers with differences and intervals. Run
    the same command to continue, with the options of the folder. If a run fails, the others continue, and the exit
    code is 1.

    Example: ice reproduce tab:ksweep --models smollm2 --n 40 --data-dir DATA
    """
    from ice_eval.api.progress import Bar
    from ice_eval.choices import PROTOCOLS
    from ice_eval.executors import executor_named
    from ice_eval.files import home_expanded
    from ice_eval.reproduce import Reproduction, chosen

    items = chosen(targets or [])
    if targets is None and not show and not dry_run:
        raise ConfigError("a table, a figure or 'all' is expected; `ice reproduce --list` shows them.")
    if protocol is not None and protocol not in PROTOCOLS:
        raise ConfigError(f"no protocol '{protocol}'. Known: {', '.join(PROTOCOLS)}.")
    folder = None if data_dir is None else home_expanded(data_dir).resolve()
    if folder is not None and not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}; --data-dir holds a TASK.jsonl or TASK.csv for each task.")
    given = {
        "models": _models(models),
        "n": n,
        "m": m,
        "protocol": protocol,
        "data_dir": None if folder is None else str(folder),
        "base_url": base_url,
        "loading": {each.name: values[each.name] for each in LOADING if values[each.name] != each.default} or None,
        "serving": {each.name: values[each.name] for each in _OF_SERVERS if values[each.name] is not None} or None,
    }
    work = Reproduction.opened(home_expanded(out), given)
    if show:
        _list(work.progress(items), as_json=as_json)
        return
    if dry_run:
        _costs(work.costs(items), gpu_price, as_json=as_json)
        return
    execution = values_of(EXECUTION, values)
    reporter, place = Bar(), executor_named(execution.pop("executor"), **execution)
    work.run(items, executor=place, reporter=reporter)
    made = work.written(items, reporter)
    findings = [each._asdict() for each in work.findings(items)]
    progress = work.progress(items)
    if as_json:
        values = {each.item.label: [value.row() for value in each.values] for each in made}
        print_json({"folder": str(work.path), "items": [asdict(x) for x in progress], "values": values,
                    "findings": findings})  # fmt: skip
    else:
        _results(made, progress, findings)
        print_text(f"Tables and figures: {work.path / 'tables'} ({len(made)} written)")
    if any(each.failed for each in progress):
        raise typer.Exit(1)


def _results(made: "list[Made]", progress: "list[Progress]", findings: list[dict[str, str]]) -> None:
    """Print the table if there is one, the state of all, and the paper's statements about them."""
    if len(made) == 1:
        print_tables([made[0].table.flat(made[0].item.title)], [made[0].item.note] if made[0].item.note else [])
    _list(progress, as_json=False)
    if findings:
        print_text("\nStatements of the paper, and whether they hold for these runs")
        for each in findings:
            print_line(
                f"{each['holds']}: {each['statement']}. Paper: {each['published']}; here: {each['ours']}.", indent=2
            )
        print_text("")


def _models(given: list[str] | None) -> dict[str, list[str]] | None:
    """Return models by experiment, those of all under an empty name; paths are made absolute."""
    found: dict[str, list[str]] = {}
    for each in given or ():
        experiment, equals, rest = each.partition("=")
        found.setdefault(experiment if equals else "", []).extend(model_names(rest if equals else each))
    return found or None


def _list(progress: "list[Progress]", *, as_json: bool) -> None:
    from ice_eval.table import naming, table_of

    if as_json:
        print_json({"items": [asdict(each) for each in progress]})
        return
    lines = [
        {
            **asdict(each),
            "grids": ", ".join(each.experiments),
            "runs": f"{each.finished} of {each.planned}" if each.planned else "–",
        }
        for each in progress
    ]
    shown = naming("label", "title", "grids", "state", "runs")
    print_tables([table_of("Tables and figures of the paper", lines, shown)])
    for each in progress:
        if each.state in ("done, no result", "partly done", "failed", "needs data"):
            more = len(each.missing) - _MOST_MISSING
            missing = "; ".join(each.missing[:_MOST_MISSING]) + (f"; and {more} more" if more > 0 else "")
            print_line(f"{each.label}: {'missing: ' + missing if missing else each.needs}", indent=2)


def _costs(costs: "list[ExperimentCost]", gpu_price: float, *, as_json: bool) -> None:
    from ice_eval.table import Column, columns, naming, table_of

    lines = [
        {**asdict(each), "dollars": each.price if each.gpu_hours is None else each.gpu_hours * gpu_price}
        for each in costs
    ]
    if as_json:
        print_json({"experiments": lines, "gpu_price": gpu_price})
        return
    shown: tuple[Column, ...] = (
        *naming("experiment"),
        *columns("count", runs="runs left", rows="rows"),
        *columns("fraction", gpu_hours="H200 hours", dollars="dollars", hours="hours here"),
    )
    if len(lines) > 1:
        known = {c.field: [x[c.field] for x in lines if x[c.field] is not None] for c in shown[1:]}
        complete = all(len(own) == len(lines) for own in known.values())
        name = "total" if complete else "total of what is known"
        lines.append({"experiment": name, **{key: sum(own) if own else None for key, own in known.items()}})
    print_tables([table_of("Cost of the runs that are left", lines, shown)])
    for each in costs:
        for problem in each.problems:
            print_line(f"{each.experiment}: {problem}", indent=2)
    print_line(
        "Rows are counted with words for units. H200 hours are from parameters, rows and words at the measured rate of "
        "500 TFLOP/s in bfloat16, without loading; hours here are at the pace of finished runs of this folder. Behind "
        "a server, rows are requests, and dollars the most that they may cost at --price-in and --price-out."
    )
