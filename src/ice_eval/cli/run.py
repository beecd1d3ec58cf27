"""Evaluations: `ice run`, `ice plan`, `ice demo`, `ice bench` and `ice f-fidelity`."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from ice_eval.cli._options import (
    MAX_DROPPED,
    TASK,
    Full,
    Json,
    MaxDropped,
    TaskFlags,
    arguments_of,
    check_share,
    model_names,
    takes,
    takes_evaluation,
    task_of_run,
    without_view,
)
from ice_eval.cli._output import (
    capped,
    exit_if,
    print_json,
    print_line,
    print_plan,
    print_run,
    print_tables,
    print_text,
)
from ice_eval.errors import ConfigError
from ice_eval.files import home_expanded
from ice_eval.settings import EXECUTION, names_of, refuse_others

if TYPE_CHECKING:
    from ice_eval.bench import BenchFolder, Grid
    from ice_eval.results import RunFolder


@takes_evaluation
def run(
    values: dict[str, Any],
    out: Annotated[Path | None, Option(metavar="DIR", help="Run folder; by default one under ice-runs/.")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Estimate the cost and stop, as `ice plan`.")] = False,
    max_dropped: MaxDropped = MAX_DROPPED,
    full: Full = False,
    as_json: Json = False,
) -> None:
    """Evaluate explanations of a model against random ones of equal size.

    Run the same command to continue. Attributions, operators, directions, nulls, k and --eraser may be added later;
    other changes need another folder.

    Example: ice run --model smollm2 --task sst2 --n 100 --out first
    """
    check_share("--max-dropped", max_dropped)
    from ice_eval.api import evaluate
    from ice_eval.api import plan as make_plan
    from ice_eval.api.progress import Bar
    from ice_eval.report import losses

    settings, view = without_view(values)
    arguments = arguments_of(settings)
    if dry_run:
        print_plan(make_plan(**arguments, reporter=Bar()), as_json=as_json)
        return
    result = evaluate(**arguments, out=out, default_out=True, reporter=Bar())
    result.report(columns=view)
    print_run(result.folder, as_json=as_json, full=full, columns=view)
    exit_if(losses([result.folder.summary()], max_dropped))


@takes_evaluation
def plan(
    values: dict[str, Any],
    width: Annotated[float | None, Option(help="Wanted width of the 95 % intervals, e.g. 0.05.")] = None,
    detect: Annotated[float | None, Option(help="Wanted smallest detectable win rate, e.g. 0.55.")] = None,
    pilot: Annotated[int, Option(help="Number of examples in the pilot.")] = 32,
    hourly_price: Annotated[float | None, Option(help="Price of an hour of this machine in dollars.")] = None,
    as_json: Json = False,
) -> None:
    """Estimate the cost and power of a run: rows, tokens, minutes, memory, and detectable win rates.

    Scores a small pilot and keeps nothing. With --width or --detect it also prints the cheapest numbers of examples
    and random sets.
    """
    from ice_eval.api import plan as make_plan
    from ice_eval.api.progress import Bar

    if hourly_price is not None and not 0 <= hourly_price < math.inf:
        raise ConfigError(f"--hourly-price {hourly_price}: dollars are expected, such as 2.5.")
    found = make_plan(**arguments_of(values), width=width, detect=detect, pilot=pilot, reporter=Bar())
    print_plan(found, as_json=as_json, hourly_price=hourly_price)


def demo(
    out: Annotated[Path, Option(help="Run folder.")] = Path("ice-demo"), full: Full = False, as_json: Json = False
) -> None:
    """Evaluate attention, gradient and a random control on a small language model, end to end.

    60 short reviews, SmolLM2 with four worked examples in the prompt, 16 random sets per rationale and 4 fills.
    """
    from ice_eval.api import evaluate
    from ice_eval.api.progress import Bar

    found = evaluate("smollm2", "demo", n=60, m=16, n_fills=4, out=out, reporter=Bar())
    found.report()
    print_run(found.folder, as_json=as_json, full=full)


# --- ice bench ------------------------------------------------------------------------------------------------------

_GUIDELINES = 6
"""Guidelines that fit on the screen; the report has all."""


@takes(*names_of(EXECUTION))
def bench(
    execution: dict[str, Any],
    grid: Annotated[Path | None, Argument(help="A grid as a YAML file, or a bench folder to continue.")] = None,
    preset: Annotated[str | None, Option(help="A grid of the package; see `ice list presets`.")] = None,
    models: Annotated[str | None, Option(help="Models in place of the grid's, comma-separated.")] = None,
    n: Annotated[int | None, Option(help="Examples of every run, in place of the grid's.")] = None,
    data_dir: Annotated[Path | None, Option(metavar="DIR", help="Folder of data: TASK.jsonl or TASK.csv.")] = None,
    base_url: Annotated[
        str | None, Option(metavar="URL", help="Server of openai:NAME models without one in the grid.")
    ] = None,
    out: Annotated[Path | None, Option(help="Bench folder; by default one under ice-bench/.")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Print the plan and stop.")] = False,
    max_dropped: MaxDropped = MAX_DROPPED,
    full: Full = False,
    as_json: Json = False,
) -> None:
    """Run a grid of models, tasks and prompts, and summarise its results.

    If a run fails, the others continue, and the exit code is 1. Run the same command to continue and to retry failed
    runs.
    """
    check_share("--max-dropped", max_dropped)
    from ice_eval.api.progress import Bar
    from ice_eval.bench import finished_runs, plan_grid, run_grid
    from ice_eval.executors import executor_named
    from ice_eval.report import losses
    from ice_eval.report.analyses import grid_plan_notes, grid_plan_table

    absolute = None if data_dir is None else str(home_expanded(data_dir).resolve())
    named = None if models is None else model_names(models)
    chosen, folder = _chosen_grid(grid, preset, out, models=named, n=n, data_dir=absolute, base_url=base_url)
    refuse_others(execution, chosen.subject, chosen.tasks[0].task.name)
    place = executor_named(execution.pop("executor"), **execution)
    of_chains = chosen.subject == "chain"
    lines = [line.as_dict() for line in plan_grid(chosen, folder)]
    if dry_run and as_json:
        print_json({"grid": chosen.name, "folder": str(folder.path), "left_out": list(chosen.left_out), "runs": lines})
        return
    if not as_json:
        plan = [grid_plan_table(lines, rows="requests" if of_chains else "rows")] if full or dry_run else []
        print_tables(plan, [*grid_plan_notes(lines, of_chains=of_chains), *_left_out(chosen)])
    if dry_run:
        return
    if all(line["problem"] for line in lines):
        raise ConfigError(f"no run of the grid can start: {lines[0]['problem']}")
    done = run_grid(chosen, folder.path, executor=place, reporter=Bar())
    _print_grid(folder, chosen, as_json=as_json, full=full)
    exit_if(losses([run.folder.summary() for run in finished_runs(chosen, folder)], max_dropped))
    if done.failed():
        raise typer.Exit(1)


def _chosen_grid(path: Path | None, preset: str | None, out: Path | None, **changes: Any) -> "tuple[Grid, BenchFolder]":
    """Return the chosen grid and its bench folder."""
    from ice_eval.bench import BenchFolder, load_grid
    from ice_eval.bench import preset as load_preset
    from ice_eval.results import slug

    if (path is None) == (preset is None):
        raise ConfigError("give a grid, such as `ice bench GRID.yaml`, or --preset NAME; see `ice list presets`.")
    if path is not None and BenchFolder.is_one(path):
        if out is not None:
            raise ConfigError(f"{path} is a bench folder, which is continued in place; leave out --out.")
        return BenchFolder(path).grid(**changes), BenchFolder(path)
    if path is not None and path.is_dir():
        raise ConfigError(
            f"{path} is a folder without a grid; give a YAML file, or the folder of an earlier `ice bench`."
        )
    chosen = load_grid(path, **changes) if path is not None else load_preset(str(preset), **changes)
    return chosen, BenchFolder(out or Path("ice-bench") / slug(chosen.name))


def _left_out(grid: "Grid") -> list[str]:
    names = ", ".join(grid.left_out)
    return [f"Skipped without data: {names}. Put their files into DIR and add --data-dir DIR."] if names else []


def _print_grid(folder: "BenchFolder", grid: "Grid", *, as_json: bool, full: bool) -> None:
    """Print what a grid shows on one screen, with `full` below all its tables and notes."""
    from ice_eval.analysis.measures import Found
    from ice_eval.bench import answers, finished_runs, results_of
    from ice_eval.report.analyses import answer_notes, answer_tables, grid_runs_table, grid_table, grid_table_note
    from ice_eval.report.grid_page import GridContent, grid_page, range_table
    from ice_eval.results.outcomes import ALL

    summary = folder.summary()
    if as_json:
        print_json({"folder": str(folder.path), **summary})
        return
    results = results_of(finished_runs(grid, folder))
    if full or not results.runs:
        print_tables([grid_runs_table(summary["runs"])])
    if not results.runs:
        return
    found = answers(results)
    if full:
        tables = [grid_table(results.configurations), *answer_tables(found)]
        print_tables(tables, [grid_table_note(results.configurations), *answer_notes(found)])
    page = grid_page(GridContent(results, found, grid.name, folder.failed()), (), folder.path)
    patterns = found.get("reasoning_patterns")
    of_chains = {"reasoning_patterns": patterns} if isinstance(patterns, Found) else {}
    said = [*(patterns.notes if isinstance(patterns, Found) else ()), *page.sentences]
    print_line(f"\n{page.subject}. {' '.join(said)}")
    for problem in capped(page.problems, "problems"):
        print_line(f"! {problem}", indent=2)
    for use, where, reason in page.guidelines[:_GUIDELINES]:
        print_line(f"• {f'Use {use}' if use else 'Not settled'}: {where}{f' ({reason})' if reason else ''}", indent=2)
    print_text("")
    ranges = range_table([each for each in results.configurations if each.line.operator != ALL])
    print_tables([*answer_tables(of_chains), *([ranges] if ranges.rows else [])])
    if not full:
        print_line("All tables and notes: the same command with --full, or the report.")
    print_text(f"Bench folder: {folder.path}\nSummary:      {folder.path / 'bench.json'}")
    print_text(f"Report:       {folder.path / 'report.html'}")


# --- ice f-fidelity --------------------------------------------------------------------------------------------------


@takes(*TASK, "device")
def f_fidelity(
    values: dict[str, Any],
    run: Annotated[Path, Argument(help="The folder of a finished run of a sequence classifier.")],
    out: Annotated[Path, Option(help="Folder of the new run, of the adapted copy.")],
    model: Annotated[str | None, Option(help="The run's model, if it is not found by its name.")] = None,
    epochs: Annotated[int, Option(help="Passes over the training examples.")] = 3,
    share: Annotated[float | None, Option(help="Largest share of units to remove in training.")] = None,
    lr: Annotated[float, Option(help="Learning rate.")] = 5e-5,
    batch_size: Annotated[int, Option(help="Examples per step of training.")] = 16,
    seed: Annotated[int, Option(help="Seed of removed units, their order and dropout.")] = 0,
    save_model: Annotated[Path | None, Option(metavar="DIR", help="Where to write the adapted copy.")] = None,
    as_json: Json = False,
) -> None:
    """Repeat a run on a copy of its classifier that was fine-tuned on inputs with units removed.

    Explanations, labels, random sets and fills are those of the run (F-Fidelity, Zheng et al. 2025). Options of the
    task are needed only if the manifest does not name it.
    """
    from ice_eval.api.progress import Bar
    from ice_eval.f_fidelity import f_fidelity as adapted_run
    from ice_eval.f_fidelity import require_adaptable
    from ice_eval.models import load_model
    from ice_eval.report import write_html
    from ice_eval.results import RunFolder

    deployed = RunFolder.existing(run)
    require_adaptable(deployed)
    manifest = deployed.manifest()
    device = values.pop("device")
    chosen = task_of_run(deployed, TaskFlags(**values))
    loaded = load_model(model or manifest.config.model, device=device, dtype=str(manifest.identity["dtype"]))
    found = adapted_run(
        deployed,
        model=loaded,
        task=chosen,
        out=out,
        share=share,
        training={"epochs": epochs, "lr": lr, "batch_size": batch_size, "seed": seed},
        save_model=save_model,
        reporter=Bar(),
    )
    write_html([found], found.path / "report.html")
    _print_adapted(deployed, found, as_json=as_json)


def _print_adapted(deployed: "RunFolder", found: "RunFolder", *, as_json: bool) -> None:
    from ice_eval.analysis.checks import answered
    from ice_eval.report import adaptation_notes, adaptation_table, difference_notes, difference_tables
    from ice_eval.results import differences
    from ice_eval.results.json_files import as_json as json_of

    [compared] = differences(deployed, [found])
    lines = answered(deployed, found)
    adaptation = found.manifest().adaptation
    assert adaptation is not None, "the run is of an adapted model"
    if as_json:
        print_json(
            {
                "deployed": str(deployed.path),
                "adapted": str(found.path),
                "adaptation": json_of(adaptation),
                "answers": [{**vars(line), "learnt": line.learnt} for line in lines],
                "comparison": compared.as_dict(),
            }
        )
        return
    tables = [*difference_tables([compared]), adaptation_table(lines)]
    print_tables(tables, [*difference_notes([compared]), *adaptation_notes(adaptation, lines)])
