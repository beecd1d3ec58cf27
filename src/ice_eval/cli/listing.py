"""`ice list`."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from ice_eval._registry import did_you_mean
from ice_eval.cli._options import Json
from ice_eval.errors import ConfigError


@dataclass(frozen=True)
class Entry:
    """One line of a list."""

    line: str
    more: str = ""
    """What stands below the line."""
    facts: Mapping[str, Any] | None = None
    """For `--json`, in place of the line alone."""


def listing(
    what: Annotated[
        str,
        typer.Argument(
            help="tasks, models, attributions, operators, nulls, formats, measures, executors, presets, cot-tasks, "
            "cot-operators or cot-attributions."
        ),
    ],
    as_json: Json = False,
) -> None:
    """List what is known by name, with a line on each."""
    from rich.text import Text

    from ice_eval.cli._output import console, print_json, print_line

    known = _lists()
    if what not in known:
        raise ConfigError(f"cannot list '{what}'{did_you_mean(what, list(known))} Known: {', '.join(known)}.")
    entries = dict(known[what]())
    if as_json:
        print_json({name: entry.line if entry.facts is None else dict(entry.facts) for name, entry in entries.items()})
        return
    out, width = console(), max(map(len, entries))
    for name, entry in entries.items():
        print_line(out, Text(f"{name:<{width}}  {entry.line}"), indent=width + 2)
        if entry.more:
            print_line(out, Text(" " * (width + 2) + entry.more, style="dim"), indent=width + 2)
    if what in _BELOW:
        print_line(out, Text(f"\n{_BELOW[what]}"))


_BELOW = {
    "models": "Any hub id, folder of transformers, or .gguf file works too.",
    "presets": "ice bench --preset NAME runs one; ice bench GRID.yaml a grid of your own.",
    "tasks": "Another prompt is --task sst2/minimal, and worked examples before it --task sst2/minimal/few-shot. A "
    "task of your own is a YAML file, which `ice task new` writes.",
}


def _lists() -> Mapping[str, Callable[[], Iterator[tuple[str, Entry]]]]:
    from ice_eval.analysis.measures import measures
    from ice_eval.attributions import attributions
    from ice_eval.executors import executors
    from ice_eval.interop import formats
    from ice_eval.nulls import nulls
    from ice_eval.operators import operators
    from ice_eval.subjects.chain import step_attributions, step_operators

    plain = {
        "attributions": attributions,
        "operators": operators,
        "nulls": nulls,
        "formats": formats,
        "measures": measures,
        "executors": executors,
        "cot-operators": step_operators,
        "cot-attributions": step_attributions,
    }
    described = {name: lambda registry=registry: _described(registry) for name, registry in plain.items()}
    return {"tasks": _tasks, "models": _models, **described, "presets": _presets, "cot-tasks": _cot_tasks}


def _described(registry: Any) -> Iterator[tuple[str, Entry]]:
    for name, item in registry.items():
        yield name, Entry((item.__doc__ or "").strip().partition("\n")[0])


def _tasks() -> Iterator[tuple[str, Entry]]:
    from ice_eval.tasks import load_task, tasks

    for name in tasks.names():
        task = load_task(name)
        facts = {
            "description": task.description,
            "language": task.language,
            "fields": task.template.fields,
            "explained": task.explained,
            "labels": task.labels,
            "prompts": task.ways,
            "data": task.data.origin,
        }
        yield name, Entry(task.description, f"{task.language}; prompts: {', '.join(task.ways)}", facts)


def _cot_tasks() -> Iterator[tuple[str, Entry]]:
    from ice_eval.subjects.chain import cot_tasks

    for name, make in cot_tasks.items():
        yield name, Entry(make().description)


def _presets() -> Iterator[tuple[str, Entry]]:
    from ice_eval.bench import presets

    for name, line in presets().items():
        yield name, Entry(line)


def _models() -> Iterator[tuple[str, Entry]]:
    from ice_eval.models import SUITE, models

    for name, entry in _described(models):
        yield name, Entry(entry.line, facts={"description": entry.line})
    for model in SUITE:
        yield model.name, Entry(model.line, facts={"description": model.line, **asdict(model)})
