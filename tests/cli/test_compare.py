"""`ice compare`."""

import csv
import json

import pytest
from tests.cli.test_cli import assert_refused
from typer.main import get_command

from ice_eval.api import evaluate
from ice_eval.cli import app


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Three runs of the toy: another seed, and other operators."""
    root = tmp_path_factory.mktemp("runs")
    common = {"n": 12, "m": 8, "attributions": ["gradient", "random"]}
    evaluate("toy", "demo", **common, operators=["delete"], out=root / "a")
    evaluate("toy", "demo", **common, operators=["delete"], seed=1, out=root / "b")
    evaluate("toy", "demo", **common, operators=["delete", "mask-unk"], out=root / "c")
    return root


def test_two_runs_are_compared_in_tables(ice, runs):
    done = ice("compare", runs / "a", runs / "b")
    assert done.code == 0
    assert "Settings that differ" in done.out and "Win rates" in done.out
    header = next(line for line in done.out.splitlines() if line.startswith("attribution"))
    assert header.split("  ")[0] == "attribution" and "B − A" in header and "p adj." in header
    assert "seed   0  1" in done.out
    assert f"A is {runs / 'a'}." in done.out and f"B is {runs / 'b'}." in done.out
    assert "12 examples are the same as in A (12 there, 12 here). Differences are paired" in done.out


def test_what_only_one_run_has_is_said(ice, runs):
    out = ice("compare", runs / "a", runs / "c").out
    assert "Only B has, for sufficiency, k = 0.2: gradient under mask-unk/all, random under mask-unk/all." in out
    assert "Only A" not in out


def test_several_runs_are_compared_with_the_first(ice, runs):
    content = json.loads(ice("compare", runs / "a", runs / "b", runs / "c", "--json").out)
    assert content["first"] == str(runs / "a")
    assert [each["second"] for each in content["comparisons"]] == [str(runs / "b"), str(runs / "c")]
    line = content["comparisons"][1]["configurations"][0]
    assert (line["attribution"], line["difference"], line["p_value"], line["paired"]) == ("gradient", 0, 1, True)
    out = ice("compare", runs / "a", runs / "b", runs / "c").out
    assert [line.split()[0] for line in out.splitlines() if "gradient  " in line] == ["B", "C"]


def test_the_same_run_twice_has_no_differences(ice, runs):
    out = ice("compare", runs / "a", runs / "a").out
    assert "Settings that differ" not in out
    assert "A and B have the same settings." in out and "+0.0 pp" in out


def test_other_formats(ice, runs):
    settings, rates = ice("compare", runs / "a", runs / "b", "--format", "csv").out.strip().split("\n\n")
    assert [row for row in csv.DictReader(settings.splitlines())] == [{"field": "seed", "A": "0", "B": "1"}]
    assert [row["attribution"] for row in csv.DictReader(rates.splitlines())] == ["gradient", "random"]
    assert "| attribution |" in ice("compare", runs / "a", runs / "b", "--format", "md").out
    assert r"\begin{tabular}" in ice("compare", runs / "a", runs / "b", "--format", "latex").out


def test_bad_input_exits_2(ice, runs, tmp_path):
    assert_refused(ice("compare", runs / "a"), "two or more are expected: ice compare DIR DIR")
    assert_refused(ice("compare", runs / "a", tmp_path), "holds no run")
    assert_refused(ice("compare", runs / "a", runs / "b", "--format", "html"), "no format 'html'; use md, csv, latex")


def test_a_report_over_runs_that_are_alike_says_which_is_which(ice, runs):
    out = ice("report", runs / "a", runs / "b").out
    assert f"• run 1 is {runs / 'a'}\n• run 2 is {runs / 'b'}\n" in out
    assert "run 1 is" not in ice("report", runs / "a").out


def commands(group, name=""):
    for key, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{name} {key}")
        else:
            yield f"{name} {key}".strip(), command


def test_every_command_prints_json_if_asked():
    found = dict(commands(get_command(app)))
    assert {"list", "show", "report", "compare", "plan", "rescore", "run", "demo", "task check"} <= set(found)
    without = [name for name, command in found.items() if not any("--json" in p.opts for p in command.params)]
    assert without == []
