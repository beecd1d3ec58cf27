"""`ice compare`."""

import csv
import json
import re
from pathlib import Path

import pytest
from tests.cli.commands import assert_refused
from tests.small_runs import Waves, task_of, texts
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
    done = ice("compare", runs / "a", runs / "b", "--full")
    assert done.code == 0
    assert "Settings that differ" in done.out and "Win rates" in done.out
    header = next(line for line in done.out.splitlines() if line.startswith("attribution"))
    assert header.split("  ")[0] == "attribution" and "B − A" in header and "p adj." in header
    assert "seed   0  1" in done.out
    assert f"A is {runs / 'a'}." in done.out and f"B is {runs / 'b'}." in done.out
    assert "12 examples are the same as in A (12 there, 12 here). Differences are paired" in done.out
    assert "Fewer than 50 examples: the intervals assume nothing about the win rates" in done.out


def test_a_comparison_begins_with_its_answer_and_fits_on_a_screen(ice, runs):
    done = ice("compare", runs / "a", runs / "b")
    answer, settings, *table = done.out.splitlines()
    assert answer.startswith("The examples do not show whether A or B is better: the clearest difference is ")
    assert settings == f"A is {runs / 'a'}, B is {runs / 'b'}: seed 0 → 1."
    assert any(line.startswith("gradient ") for line in table) and not any("random" in line for line in table)
    assert f"B is {runs / 'a'}: the same settings." in ice("compare", runs / "a", runs / "a").out


def test_what_only_one_run_has_is_said(ice, runs):
    out = ice("compare", runs / "a", runs / "c", "--full").out
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


def test_the_page_is_written_in_place_of_the_tables(ice, runs, tmp_path):
    done = ice("compare", runs / "a", runs / "b", "--html", tmp_path / "new" / "page.html")
    assert (done.code, done.out) == (0, f"{tmp_path / 'new' / 'page.html'}\n")
    assert "The examples do not show" in (tmp_path / "new" / "page.html").read_text(encoding="utf-8")
    assert_refused(ice("compare", runs / "a", "--paper", "--html", tmp_path / "x.html"), "--html is about two runs")
    assert_refused(ice("compare", runs / "a", runs / "b", "--html", tmp_path / "x.html", "--format", "md"), "exclude")


def test_the_same_run_twice_has_no_differences(ice, runs):
    out = ice("compare", runs / "a", runs / "a", "--full").out
    assert "Settings that differ" not in out
    assert "A and B have the same settings." in out and "+0.0 pp" in out


def test_other_formats(ice, runs):
    found = json.loads(ice("compare", runs / "a", runs / "b", "--json").out)["comparisons"][0]
    rows = list(csv.DictReader(ice("compare", runs / "a", runs / "b", "--format", "csv").out.splitlines()))
    assert [row["attribution"] for row in rows] == ["gradient", "random"]
    for row, line in zip(rows, found["configurations"], strict=True):
        assert [float(row[f"difference_{end}"]) for end in ("low", "high")] == line["difference_ci"]
        assert (
            float(row["win_rate_second"]) == line["win_rate_second"] and row["verdict_first"] in line["verdict_first"]
        )
    done = ice("compare", runs / "a", runs / "b", "--format", "json", "--out", "data")
    assert done.out.split() == ["data/configurations.json", "data/settings.json"]
    [setting] = json.loads(Path("data/settings.json").read_text())
    assert (setting["field"], setting["value_first"], setting["value_second"]) == ("seed", 0, 1)
    assert "| attribution |" in ice("compare", runs / "a", runs / "b", "--format", "md").out
    assert r"\begin{tabular}" in ice("compare", runs / "a", runs / "b", "--format", "latex").out


def test_bad_input_exits_2(ice, runs, tmp_path):
    assert_refused(ice("compare", runs / "a"), "two or more are expected: ice compare DIR DIR")
    assert_refused(ice("compare", runs / "a", tmp_path), "is not a run folder")
    assert_refused(
        ice("compare", runs / "a", runs / "b", "--format", "html"),
        "no format 'html'; use md, latex, csv, parquet, json",
    )
    assert_refused(ice("compare", runs / "a", runs / "b", "--format", "md", "--json"), "--format and --json exclude")


@pytest.fixture(scope="module")
def like_the_paper(tmp_path_factory):
    """A run under names that the paper has; its numbers are those of a small model."""
    model = Waves()
    model.name = "openai-community/gpt2-xl"
    settings = {
        "attributions": ["gradient", "random"],
        "operators": ["delete", "mask-unk"],
        "nulls": ["size", "position"],
    }
    folder = tmp_path_factory.mktemp("paper") / "run"
    return evaluate(model, task_of(texts(20), name="sst2"), m=8, out=folder, **settings)


def test_a_run_is_set_beside_the_published_cells(ice, like_the_paper):
    content = json.loads(ice("compare", like_the_paper.path, "--paper", "--json").out)
    own = {
        line.operator: line
        for line in like_the_paper.folder.summary().configurations
        if (line.attribution, line.null) == ("gradient", "size")
    }
    lines = {line["operator"]: line for line in content["configurations"]}
    for operator, published, word in (("delete", 0.56, "weakly faithful"), ("mask-unk", 0.22, "anti-faithful")):
        line, (low, high) = lines[operator], own[operator].win_rate_ci
        assert line["published"] == pytest.approx(published) and line["published_taxonomy"] == word
        assert (line["n"], line["win_rate"], line["win_rate_ci"]) == (20, own[operator].win_rate, [low, high])
        assert line["difference"] == pytest.approx(line["win_rate"] - published)
        assert line["covered"] == (low <= published <= high)
    # random, the null by position and all operators together are not in the paper.
    assert content["n_without"] == len(like_the_paper.folder.summary().configurations) - 2
    assert [line.partition(":")[0] for line in content["protocol"]] == ["n", "m", "sign", "ties", "prompt", "n"]
    assert "n: 20 examples here at most, 500 in the paper." in content["protocol"]


def test_the_paper_beside_a_run_is_printed_with_the_differences_of_protocol(ice, like_the_paper):
    out = ice("compare", like_the_paper.path, "--paper").out
    [header] = [line for line in out.splitlines() if line.startswith("attribution")]
    assert "published word" in header and "in the interval" in header
    assert [line.split()[:2] for line in out.splitlines() if line.startswith("gradient")] == [
        ["gradient", "delete"],
        ["gradient", "mask-unk"],
    ]
    assert "• Different from the paper: m: 8 random sets here, 50 in the paper.\n" in out
    assert "further configurations of the run have no published cell." in out
    rows = list(csv.DictReader(ice("compare", like_the_paper.path, "--paper", "--format", "csv").out.splitlines()))
    assert [row["published"] for row in rows] == ["0.56", "0.22"]


def test_a_run_that_the_paper_does_not_have_is_told_so(ice, runs):
    out = ice("compare", runs / "a", "--paper").out
    assert "The paper has no model 'toy'; it has GPT-2, " in out
    assert "So none of the run's 2 configurations has a published cell." in out
    assert json.loads(ice("compare", runs / "a", "--paper", "--json").out)["configurations"] == []


def test_the_paper_is_compared_with_one_run(ice, runs):
    refused = "2 runs were given; --paper takes one: ice compare DIR --paper"
    assert_refused(ice("compare", runs / "a", runs / "b", "--paper"), refused)


def test_a_report_over_runs_that_are_alike_says_which_is_which(ice, runs):
    out = ice("report", runs / "a", runs / "b", "--full").out
    assert f"• run 1 is {runs / 'a'}\n• run 2 is {runs / 'b'}\n" in out
    assert "run 1 is" not in ice("report", runs / "a", "--full").out
    short = ice("report", runs / "a", runs / "b").out
    assert "--full" in short and all(re.search(rf"^toy \({name}\) on demo +gradient ", short, re.M) for name in "ab")


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
