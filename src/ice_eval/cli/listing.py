"""`ice list`."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from ice_eval._registry import did_you_mean
from ice_eval.cli._options import Json
from ice_eval.errors import ConfigError


def listing(
    what: Annotated[str, typer.Argument(help="tasks, models, attributions, operators, nulls, formats or measures.")],
    as_json: Json = False,
) -> None:
    """List what is known by name, with a line on each."""
    from rich.text import Text

    from ice_eval.cli._output import console, print_json, print_line

    known = _registries()
    if what not in known:
        raise ConfigError(f"cannot list '{what}'{did_you_mean(what, list(known))} Known: {', '.join(known)}.")
    lines = {name: (item.__doc__ or "").strip().partition("\n")[0] for name, item in known[what].items()}
    if as_json:
        print_json(lines)
        return
    out, width = console(), max(map(len, lines))
    for name, line in lines.items():
        print_line(out, Text(f"{name:<{width}}  {line}"), indent=width + 2)
    if what == "models":
        print_line(out, Text("\nAny hub id, folder of transformers, or .gguf file works too."))


def _registries() -> Mapping[str, Any]:
    from ice_eval.analysis.measures import measures
    from ice_eval.attributions import attributions
    from ice_eval.interop import formats
    from ice_eval.models import models
    from ice_eval.nulls import nulls
    from ice_eval.operators import operators
    from ice_eval.tasks import tasks

    return {
        "tasks": tasks,
        "models": models,
        "attributions": attributions,
        "operators": operators,
        "nulls": nulls,
        "formats": formats,
        "measures": measures,
    }
