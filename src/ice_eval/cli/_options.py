"""Options that several commands share."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ice_eval._registry import did_you_mean
from ice_eval.errors import ConfigError
from ice_eval.files import read_yaml

ExecutorName = Annotated[
    str,
    typer.Option(
        "--executor",
        help="Where models compute: local, or ray (replicas on the nodes of a cluster); see `ice list executors`.",
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        help="Of a Ray cluster that is there, or auto; by default what $RAY_ADDRESS says, else one is started here."
    ),
]
GpusPerWorker = Annotated[
    float | None,
    typer.Option(
        help="GPUs of each replica on the cluster, or a share of one; by default 1 where there are GPUs, else 0."
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="NAME=COLUMN",
        help="Columns of the data that have other names, as text=comment,label=sentiment,id=review_id.",
    ),
]
Format = Annotated[str | None, typer.Option("--format", help="Print the tables as md, csv or latex.")]
JSON_LINES = "jsonl"
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


MAP_HELP = (
    "Spread a large model over GPUs, memory and disk: auto, balanced, balanced_low_0, sequential, or a JSON file that "
    "says where each module goes."
)
MEMORY_HELP = "What --device-map auto may use, as 0=20GiB,cpu=60GiB."
LOAD_IN_HELP = "Quantise the weights: 8bit or 4bit (bitsandbytes), torchao-8bit, quanto-8bit, quanto-4bit."
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, …")]
Dtype = Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")]
DeviceMap = Annotated[str | None, typer.Option(metavar="MAP", help=MAP_HELP)]
MaxMemory = Annotated[str | None, typer.Option(metavar="SIZES", help=MEMORY_HELP)]
LoadIn = Annotated[str | None, typer.Option(metavar="BITS", help=LOAD_IN_HELP)]


def names(text: str) -> tuple[str, ...]:
    """`"a, b"` as a tuple."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def check_format(style: str | None, *, also: Sequence[str] = (), **others: bool) -> None:
    """Check that `--format` names a known format, and that no other option takes the place of the tables.

    Args:
        style: The value of `--format`.
        also: Formats that only this command has.
        others: Other options, by name, and whether they are given.

    Raises:
        ConfigError: It is unknown, or it would be ignored.
    """
    from ice_eval.report import FORMATS

    if style is None:
        return
    known = [*FORMATS, *also]
    if style not in known:
        raise ConfigError(f"no format '{style}'; use {', '.join(known)}.")
    for name in (name for name, given in others.items() if given):
        raise ConfigError(f"--format and --{name} exclude each other; give one of them.")


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Take the defaults of a command's options from a YAML file; what is given on the command line comes first.

    Raises:
        ConfigError: The file is not there, is no mapping, or has a key that is no option.
    """
    if path is None:
        return None
    known = {option.name: option for option in context.command.params if option.name not in {None, "config", "as_json"}}
    values: dict[str, Any] = {}
    for key, value in _mapping(path).items():
        name = str(key).replace("-", "_")
        if name not in known:
            flags = [str(option).replace("_", "-") for option in known]
            raise ConfigError(f"{path}: no option '{key}'{did_you_mean(str(key), flags)} Known: {', '.join(flags)}.")
        if getattr(known[name], "multiple", False):
            values[name] = list(map(str, value if isinstance(value, list) else [value]))
        else:
            values[name] = _as_flag(value)
    context.default_map = {**(context.default_map or {}), **values}
    return path


def _as_flag(value: Any) -> Any:
    """A value of a YAML file as the command line writes it: lists and mappings with commas."""
    if isinstance(value, dict):
        return ",".join(f"{name}={each}" for name, each in value.items())
    return ",".join(map(str, value)) if isinstance(value, list) else value


def _mapping(path: Path) -> dict[str, Any]:
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: keys and values are expected, as in 'model: smollm2'.")
    return content
