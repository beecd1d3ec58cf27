"""Writes docs/cli.md, the reference of the command line, from the program itself: python tools/cli_reference.py.

Every option is described once: settings of a run first, then options that several commands have, then each command with
its own arguments and the names of what it takes of the former.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer

from ice_eval.cli import app
from ice_eval.settings import REQUIRED, SETTINGS, Setting

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"

_HEAD = """\
# Command line

`ice COMMAND --help` prints the same. For `ice run`, `ice plan` and `ice validate` it prints the everyday options, and
`--help-all` prints all. Exit codes: 0 done; 1 the run failed, a gate failed or too many examples failed; 2 bad input;
130 interrupted. This page is generated from the program (`make docs`).
"""
_SETTINGS = """\
## Settings of a run

Each is an option, a key of a `--config` file (YAML, without the dashes), and a NAME of `--set NAME=VALUE`. Options on
the command line override `--set`, and `--set` overrides the file.
"""
_SHARED = """\
## Options of several commands
"""


def reference() -> str:
    """Return the whole page; commands follow in the order of `ice --help`."""
    commands = dict(_commands(typer.main.get_command(app), "ice"))
    counts = Counter(row for command in commands.values() for row in set(map(_row, _own(command))))
    shared = {row for row, n in counts.items() if n > 1}
    settings = [_panel(panel) for panel in dict.fromkeys(each.panel for each in SETTINGS.values())]
    common = _SHARED + "\n" + _table("option", sorted(shared)) + "\n"
    sections = [_section(command, name, shared) for name, command in commands.items()]
    return "\n".join([_HEAD, _SETTINGS, *settings, common, *sections])


def _commands(group: Any, name: str) -> Iterator[tuple[str, Any]]:
    for word, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{name} {word}")
        else:
            yield f"{name} {word}", command


def _panel(panel: str) -> str:
    rows = [_setting_row(each) for each in SETTINGS.values() if each.panel == panel]
    return f"### {panel}\n\n{_table('option', rows)}\n"


def _setting_row(each: Setting) -> tuple[str, str, str]:
    default = ",".join(map(str, each.default)) if isinstance(each.default, tuple) else each.default
    return _flag(each.option, each.metavar), _in_cell(each.help), "required" if default is REQUIRED else _text(default)


def _section(command: Any, name: str, shared: set[tuple[str, str, str]]) -> str:
    arguments = [_argument_row(each) for each in command.params if each.param_type_name == "argument"]
    rows = [_row(each) for each in _own(command)]
    own = [*arguments, *(row for row in rows if row not in shared)]
    parts = [f"## {name}", _in_markdown(command.help)]
    if own:
        parts.append(_table("argument" if arguments else "option", own))
    also = [*_settings_of(command), *(f"{row[0].split()[0].strip('`')}" for row in rows if row in shared)]
    if also:
        parts.append(f"Also: {', '.join(each if each.startswith('[') else f'`{each}`' for each in also)}.")
    return "\n\n".join(parts) + "\n"


def _settings_of(command: Any) -> list[str]:
    """Return the settings that a command takes: links to groups that it takes whole, else names of options."""
    taken = [SETTINGS[each.name] for each in _options(command) if _is_setting(each)]
    if len(taken) == len(SETTINGS):
        return ["[all settings of a run](#settings-of-a-run)"]
    found: list[str] = []
    for panel in dict.fromkeys(each.panel for each in taken):
        names = [each.option for each in taken if each.panel == panel]
        whole = len(names) == sum(each.panel == panel for each in SETTINGS.values())
        found += [f"[{panel}](#{panel.lower().replace(' ', '-')})"] if whole else names
    return found


def _options(command: Any) -> list[Any]:
    """Return what `--help` or `--help-all` shows: an option that is only for `--help-all` has a heading."""
    options = [each for each in command.params if each.param_type_name == "option"]
    return [each for each in options if not each.hidden or each.rich_help_panel is not None]


def _is_setting(option: Any) -> bool:
    return option.name in SETTINGS and option.help == SETTINGS[option.name].help


def _own(command: Any) -> list[Any]:
    return [each for each in _options(command) if not _is_setting(each)]


def _row(option: Any) -> tuple[str, str, str]:
    flags = ", ".join(_flag(flag, option.metavar) for flag in [*option.opts, *option.secondary_opts])
    default = "required" if option.required else _text(option.default if option.show_default else None)
    return flags, _in_cell(option.help), default


def _table(kind: str, rows: Iterable[tuple[str, str, str]]) -> str:
    """Return a table; the column of defaults is left out where there is none."""
    listed = [*rows]
    width = 3 if any(default for *_, default in listed) else 2
    lines = [f"| {' | '.join(row[:width])} |".replace("|  |", "| |") for row in ((kind, "", "default"), *listed)]
    return "\n".join([lines[0], f"|{'---|' * width}", *lines[1:]])


def _flag(flag: str, metavar: str | None) -> str:
    return f"`{flag} {metavar}`" if metavar else f"`{flag}`"


def _argument_row(argument: Any) -> tuple[str, str, str]:
    name = str(argument.metavar or argument.name).strip("[].").replace("|", "/").upper()
    default = "required" if argument.required else _text(argument.default)
    return f"`{name}{' ...' if argument.nargs == -1 else ''}`", _in_cell(argument.help), default


def _text(default: object) -> str:
    return "" if default is None or default is False or default in ((), "") else f"`{default}`"


def _in_markdown(text: str | None) -> str:
    """Return help with its paragraphs; what Markdown could read as a tag is escaped."""
    return (text or "").replace("<", "&lt;").strip()


def _in_cell(text: str | None) -> str:
    return " ".join(_in_markdown(text).split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
