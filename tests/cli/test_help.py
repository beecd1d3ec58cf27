"""`ice --help`, and what is no command."""

import re

import pytest

import ice_eval
from ice_eval.cli import app
from ice_eval.settings import HOW, SERVER, SETTINGS, WHAT, WHERE


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


def shown_options(text):
    return set(re.findall(r"^│ [*]? *(--[a-z-]+)", text, re.MULTILINE))


OF_RUN = {"--config", "--set", "--help-all", "--help", "--out", "--dry-run", "--max-dropped", "--full", "--json"}
EVERYDAY = {each.option for each in SETTINGS.values() if each.everyday}


@pytest.mark.parametrize("command", ["run", "plan", "validate"])
def test_short_help_fits_on_two_screens(ice, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "100")
    short = ice(command, "--help").out
    assert len(short.splitlines()) <= (54 if command == "plan" else 50)  # four options of its own
    assert shown_options(short) <= EVERYDAY | OF_RUN | {"--width", "--detect", "--pilot", "--hourly-price"}


def test_short_help_shows_everyday_options_and_the_long_one_all(ice):
    assert shown_options(ice("run", "--help").out) == EVERYDAY | OF_RUN
    whole = ice("run", "--help-all")
    assert whole.code == 0
    assert shown_options(whole.out) == {each.option for each in SETTINGS.values()} | OF_RUN
    assert all(f"─ {panel} " in whole.out for panel in (WHAT, HOW, WHERE, SERVER))


def test_help_of_validate_shows_what_matters_to_it(ice):
    whole = shown_options(ice("validate", "--help-all").out)
    assert {"--scope", "--load-in"} < whole and not whole & {"--m", "--operators", "--max-cost"}
