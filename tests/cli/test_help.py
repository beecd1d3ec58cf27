"""`ice --help`, and what is no command."""

import inspect

import pytest

import ice_eval
from ice_eval.cli import app
from ice_eval.cli._evaluation import PANELS, evaluation


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"],
        ["run", "--model", "toy", "--task", "demo", "--n", "many"],
        ["run", "--nonsense"],
        ["nonsense"],
        ["show"],
    ],
)
def test_bad_usage_exits_2_without_a_traceback(ice, tmp_path, arguments):
    done = ice(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err and "Usage: ice" in done.err
    assert list(tmp_path.iterdir()) == []


def test_the_version_is_printed(ice):
    assert ice("--version") == (0, f"ice-eval {ice_eval.__version__}\n", "")


def commands(group=app):
    """The words after `ice` of every command, those of groups included."""
    for each in group.registered_commands:
        yield [each.name]
    for each in group.registered_groups:
        yield from ([each.name, *inner] for inner in commands(each.typer_instance))


def test_without_arguments_help_is_shown(ice):
    done = ice()
    for word in ("Usage: ice", *(command[0] for command in commands())):
        assert word in done.out + done.err


@pytest.mark.parametrize("command", list(commands()), ids=" ".join)
def test_every_command_has_help_and_prints_json_if_asked(ice, command):
    done = ice(*command, "--help")
    assert done.code == 0 and f"Usage: ice {' '.join(command)}" in done.out and "--json" in done.out


def test_every_option_of_a_run_stands_under_one_heading(ice):
    named = [name for names in PANELS.values() for name in names.split()]
    assert sorted(named) == sorted(set(inspect.signature(evaluation).parameters) - {"config"})
    shown = ice("run", "--help").out
    assert all(f"─ {panel} " in shown for panel in PANELS)
