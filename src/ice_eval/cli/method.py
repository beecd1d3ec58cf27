"""The method itself: `ice list`, `ice paper` and `ice selftest`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.text import Text
from typer import Argument, Option

from ice_eval._registry import did_you_mean
from ice_eval.choices import SUBJECTS
from ice_eval.cli._options import DataFolder, Format, Json, check_format
from ice_eval.cli._output import is_data, print_data, print_json, print_line, print_tables, print_text
from ice_eval.cli.report import figure_records
from ice_eval.errors import ConfigError

if TYPE_CHECKING:
    from ice_eval.report import Table
    from ice_eval.selftest import Check, Report


_BELOW = {
    "models": "Any hub id, folder of transformers, or .gguf file works too.",
    "presets": "ice bench --preset NAME runs one; ice bench GRID.yaml a grid of your own.",
    "tasks": "Another prompt is --task sst2/minimal, and worked examples before it --task sst2/minimal/few-shot. A "
    "task of your own is a YAML file, which `ice task new` writes.",
}
_KINDS = "tasks, models, attributions, operators, nulls, formats, measures, executors or presets."


class Entry(NamedTuple):
    """One line of a list."""

    name: str
    line: str
    more: str = ""
    """Shown below the line."""
    facts: Mapping[str, Any] | None = None
    """For `--json`, in place of the line alone."""


def listing(what: Annotated[str | None, Argument(metavar="[KIND]", help=_KINDS)] = None, as_json: Json = False) -> None:
    """List built-in names of a KIND with a line on each; without KIND, all names."""
    known = _lists()
    if what is None:
        every = {kind: [entry.name for entry in entries()] for kind, entries in known.items()}
        if as_json:
            print_json(every)
            return
        for kind, found in every.items():
            print_line(f"{kind + ':':<14}{', '.join(found)}", indent=14)
        print_line("\nice list KIND describes each.")
        return
    if what not in known:
        raise ConfigError(f"cannot list '{what}'{did_you_mean(what, list(known))} Known: {', '.join(known)}.")
    entries = list(known[what]())
    if as_json:
        print_json({each.name: each.line if each.facts is None else dict(each.facts) for each in entries})
        return
    width = max(len(each.name) for each in entries)
    for each in entries:
        print_line(f"{each.name:<{width}}  {each.line}", indent=width + 2)
        if each.more:
            print_line(Text(" " * (width + 2) + each.more, style="dim"), indent=width + 2)
    if what in _BELOW:
        print_line(f"\n{_BELOW[what]}")


def _lists() -> Mapping[str, Callable[[], Iterator[Entry]]]:
    from ice_eval.analysis.measures import measures
    from ice_eval.attributions import attributions
    from ice_eval.bench import presets
    from ice_eval.executors import executors
    from ice_eval.interop import formats
    from ice_eval.nulls import nulls
    from ice_eval.operators import operators

    plain = {
        "attributions": attributions,
        "operators": operators,
        "nulls": nulls,
        "formats": formats,
        "measures": measures,
        "executors": executors,
    }
    return {
        "tasks": _tasks,
        "models": _models,
        **{name: partial(_described, registry) for name, registry in plain.items()},
        "presets": lambda: (Entry(name, line) for name, line in presets().items()),
    }


def _described(registry: Any) -> Iterator[Entry]:
    for name, item in registry.items():
        line = (item.__doc__ or "").strip().partition("\n")[0]
        units = getattr(item, "units", None)
        yield Entry(name, line, f"works on {', '.join(f'{unit}s' for unit in units)}" if units else "")


def _tasks() -> Iterator[Entry]:
    from ice_eval.tasks import Task, named_task, tasks

    for name in tasks.names():
        task = named_task(name)
        if not isinstance(task, Task):
            subject = SUBJECTS[task.subject]
            about = {"description": task.description, "data": task.data.origin, "about": subject}
            yield Entry(name, task.description, subject, about)
            continue
        facts = {
            "description": task.description,
            "language": task.language,
            "fields": task.template.fields,
            "explained": task.explained,
            "labels": task.labels,
            "prompts": task.ways,
            "data": task.data.origin,
        }
        yield Entry(name, task.description, f"{task.language}; prompts: {', '.join(task.ways)}", facts)


def _models() -> Iterator[Entry]:
    from ice_eval.models import SUITE, models

    for entry in _described(models):
        yield entry._replace(facts={"description": entry.line})
    for model in SUITE:
        yield Entry(model.name, model.line, facts={"description": model.line, **asdict(model)})


# --- ice paper ------------------------------------------------------------------------------------------------------

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
        _write_figures(figures, as_json=as_json)
    elif table is None:
        _print_overview(style, out, as_json=as_json)
    else:
        _print_table(table, style, out, as_json=as_json)


def _print_overview(style: str | None, out: Path | None, *, as_json: bool) -> None:
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
    if is_data(style):
        known = [{"table": each.name, "title": each.title} for each in paper_tables().values()]
        print_data([data_table("claims", claims()), data_table("tables", known)], style, out)
        return
    print_tables([paper_index(list(paper_tables().values())), claims_table(claims())], style=style)
    if style is None:
        print_line(f"`ice paper TABLE` prints a table, `ice paper {DISCREPANCIES}` where the paper contradicts itself.")


def _write_figures(folder: Path, *, as_json: bool) -> None:
    from ice_eval.report.figures import paper_figures, write_figures

    written = write_figures(paper_figures(), folder)
    if as_json:
        print_json(figure_records(written))
        return
    for each in written:
        print_text("\n".join(map(str, each.paths)))


def _print_table(name: str, style: str | None, out: Path | None, *, as_json: bool) -> None:
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
    if is_data(style):
        print_data([data_table(name, content if name == DISCREPANCIES else content["rows"])], style, out)
        return
    print_tables([shown], style=style)
    if note and style is None:
        print_line(note)


# --- ice selftest ---------------------------------------------------------------------------------------------------


def selftest(
    seed: Annotated[int, Option(help="Seed of texts, random sets and all other draws.")] = 0,
    quick: Annotated[bool, Option("--quick", help="Use few examples: finds only large errors.")] = False,
    full: Annotated[bool, Option("--full", help="Print the worst check of each kind.")] = False,
    every: Annotated[bool, Option("--all", help="Print every check.")] = False,
    as_json: Json = False,
) -> None:
    """Test the method itself on models whose correct explanations are known.

    Random explanations must pass no more often than stated, true ones must be found, and negated ones must be called
    anti-faithful. Exits with 1 if a guarantee fails: p < 0.001. Takes three to five minutes on two cores.
    """
    print_text("loading the self-test …", error=True)
    from ice_eval import selftest as tests
    from ice_eval.api.progress import Bar

    report = tests.selftest(seed=seed, sizes=tests.QUICK if quick else tests.FULL, say=Bar().say)
    if as_json:
        print_json(report.content())
    else:
        _print_report(report, full=full, every=every)
    if not report.ok:
        raise typer.Exit(1)


def _print_report(report: "Report", *, full: bool, every: bool) -> None:
    if not (full or every):
        print_tables([_by_model(report)])
    else:
        measured = [check for check in report.checks if not check.is_guarantee]
        for title, checks in (("Guarantees", report.guarantees), ("Measured", measured)):
            print_tables([_of_checks(title, [[check] for check in checks] if every else list(_alike(checks)))])
    for line in (*report.skipped, *_conclusion(report)):
        print_line(line, indent=2)


def _by_model(report: "Report") -> "Table":
    """Return a row for every model, with the number of guarantees and the least likely of them."""
    from ice_eval.report import Table

    found: dict[str, list[Check]] = {}
    for check in report.guarantees:
        found.setdefault(check.about.model, []).append(check)
    rows = []
    for model, checks in found.items():
        worst = min(checks, key=lambda check: 1.0 if check.p is None else check.p)
        holds = "yes" if all(check.ok for check in checks) else "NO"
        rows.append((model, str(len(checks)), holds, f"{worst.about.attribution}: {worst.name}", _p_value(worst.p)))
    return Table("Guarantees", ("model", "checks", "hold", "least likely", "p"), tuple(rows))


def _alike(checks: "Sequence[Check]") -> "Iterator[list[Check]]":
    """Yield checks of the same name, model and attribution, the worst first."""
    groups: dict[tuple[str, str, str], list[Check]] = {}
    for check in checks:
        groups.setdefault((check.name, check.about.model, check.about.attribution), []).append(check)
    for group in groups.values():
        # Of those that are equally likely, the one that is furthest on the bad side.
        worse = -1 if group[0].bound.startswith("≤") else 1
        yield sorted(group, key=lambda check: (1.0 if check.p is None else check.p, worse * check.observed))


def _of_checks(title: str, groups: "Sequence[Sequence[Check]]") -> "Table":
    from ice_eval.report import Table

    promised = title == "Guarantees"
    header = ("model", "explanation", "what", "checks", "expected", "worst", "95 % CI", "where", "n")
    rows = tuple(_row(group, promised=promised) for group in groups)
    return Table(title, (*header, *(("p", "holds") if promised else ())), rows)


def _row(group: "Sequence[Check]", *, promised: bool) -> tuple[str, ...]:
    worst = group[0]
    about, where = worst.about, f"{worst.about.operator}, {worst.about.direction}"
    end = (_p_value(worst.p), "yes" if all(check.ok for check in group) else "NO") if promised else ()
    named = (about.model, about.attribution, worst.name, str(len(group)), worst.bound)
    return (*named, _observed(worst), _interval(worst), where, str(worst.n), *end)


def _observed(check: "Check") -> str:
    return f"{check.observed:.1f}" if check.low is None else f"{100 * check.observed:.1f} %"


def _interval(check: "Check") -> str:
    from ice_eval.table import interval

    return interval(None if check.low is None or check.high is None else (check.low, check.high))


def _p_value(value: float | None) -> str:
    return "–" if value is None else f"{value:.2g}"


def _conclusion(report: "Report") -> Iterator[str]:
    """Yield every guarantee that fails, or that all hold."""
    n = len(report.guarantees)
    if report.ok:
        yield f"All {n} guarantees hold (seed {report.seed}, {report.seconds:.0f} s)."
        return
    for check in report.failed:
        yield (
            f"fails: {check.name} ({check.about}): {_observed(check)} {_interval(check)} of {check.n}, expected "
            f"{check.bound}, p = {_p_value(check.p)}"
        )
    yield f"{len(report.failed)} of {n} guarantees fail (seed {report.seed}, {report.seconds:.0f} s)."
