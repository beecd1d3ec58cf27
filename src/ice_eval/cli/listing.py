"""`ice list`."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any, NamedTuple

from typer import Argument

from ice_eval._registry import did_you_mean
from ice_eval.choices import SUBJECTS
from ice_eval.cli._options import Json
from ice_eval.cli._output import print_json, print_line
from ice_eval.errors import ConfigError

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


def listing(what: Annotated[str | None, Argument(help=_KINDS)] = None, as_json: Json = False) -> None:
    """List what is known by name, with a line on each; without WHAT, names alone."""
    from rich.text import Text

    known = _lists()
    if what is None:
        every = {kind: [entry.name for entry in entries()] for kind, entries in known.items()}
        if as_json:
            print_json(every)
            return
        for kind, found in every.items():
            print_line(f"{kind + ':':<14}{', '.join(found)}", indent=14)
        print_line("\nice list KIND says what each is.")
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
