"""Writes docs/cli.md, the reference of the command line, from the program itself: python tools/cli_reference.py."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from ice_eval.cli import app

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"

_HEAD = """\
# Command line

This page is written by the program (`make docs`). `ice COMMAND --help` prints the same. For `ice run`, `ice plan` and
`ice validate` it prints the everyday options, and `--help-all` prints all. Exit codes: 0 done, 1 the run failed, 2 bad
input. A `--config FILE` is YAML: the other options of its command, by name and without the two dashes.
`--set NAME=VALUE` takes the same names. Options of the command line precede `--set`, and `--set` precedes the file.
"""


def reference() -> str:
    """The whole page: a section for each command, in the order of `ice --help`."""
    return "\n".join([_HEAD, *_sections(typer.main.get_command(app), "ice")])


def _sections(group: Any, name: str) -> Iterator[str]:
    for word, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _sections(command, f"{name} {word}")
        else:
            yield _section(command, f"{name} {word}")


def _section(command: Any, name: str) -> str:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option" and _is_shown(each)]
    usage = " ".join([name, *map(_in_usage, arguments), *(["[OPTIONS]"] if options else [])])
    parts = [f"## {name}", _in_markdown(command.help), f"```text\n{usage}\n```"]
    if arguments:
        parts.append(_table("argument", [(f"`{_shown_name(each)}`", each) for each in arguments]))
    if options:
        parts.append(_table("option", [(_flags(each), each) for each in options]))
    return "\n\n".join(parts) + "\n"


def _is_shown(option: Any) -> bool:
    """Tell whether `--help` or `--help-all` shows an option: one that is only for `--help-all` has a heading."""
    return not option.hidden or option.rich_help_panel is not None


def _table(kind: str, rows: list[tuple[str, Any]]) -> str:
    lines = [f"| {kind} | | default |", "|---|---|---|"]
    lines += [f"| {name} | {_in_cell(each.help)} | {_default(each)} |" for name, each in rows]
    return "\n".join(lines)


def _shown_name(argument: Any) -> str:
    return str(argument.metavar or argument.name).upper()


def _in_usage(argument: Any) -> str:
    name = _shown_name(argument) + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _flags(option: Any) -> str:
    value = f" {option.metavar}" if option.metavar else ""
    return ", ".join(f"`{flag}{value}`" for flag in [*option.opts, *option.secondary_opts])


def _default(param: Any) -> str:
    if param.required:
        return "required"
    nothing = param.default is None or param.default is False or param.default == ()
    return "" if nothing or not param.show_default else f"`{param.default}`"


def _in_markdown(text: str | None) -> str:
    """Help text with its paragraphs; what Markdown could read as a tag is written out."""
    return (text or "").replace("<", "&lt;").strip()


def _in_cell(text: str | None) -> str:
    return " ".join(_in_markdown(text).split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
