"""`ice run`: what it prints, what it takes, and the same command again."""

import csv
import json
import re

from tests.cli.commands import PROMPT

from ice_eval.results import RunFolder


def test_a_run_prints_the_columns_of_the_paper_if_asked_or_by_its_protocol(run, ice, tmp_path):
    plain, asked = run(), run("--columns", "paper")
    assert plain.code == asked.code == 0
    assert "d_null" not in plain.out and "d_null" in asked.out
    assert "d_null" in (tmp_path / "run" / "report.html").read_text()
    by_protocol = run("--protocol", "paper", out=tmp_path / "paper")
    assert "d_null" in by_protocol.out and "p (BH)" in by_protocol.out
    assert "d_null" not in run("--protocol", "paper", "--columns", "default", out=tmp_path / "paper").out
    wrong = run("--columns", "papr")
    assert wrong.code == 2 and "NAME=COLUMN is expected" in wrong.err


def test_a_run_ends_with_its_conclusion_and_prints_all_tables_if_asked(run, tmp_path):
    short, done = run(), run("--full")
    assert (short.code, done.code) == (0, 0)
    assert short.out.startswith("Attention is not distinguishable from random under delete and infill: it ")
    assert done.out.endswith(re.sub(r"^\d+ notes and all tables: ice report .* --full\n", "", short.out, flags=re.M))
    assert "The random control is at " in short.out and "Operator agreement" not in short.out
    assert len(short.out.splitlines()) <= 20
    for word in (
        "Faithfulness",
        "Operator agreement",
        "attention",
        "gradient",
        "random",
        "delete",
        "infill",
        "verdict",
    ):
        assert word in done.out
    assert f"Run folder: {tmp_path / 'run'}" in done.out
    assert (tmp_path / "run" / "report.html").is_file()
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["schema"] == 3


def test_a_run_says_what_several_attributions_cost(run, tmp_path):
    assert "What each attribution cost" not in run("--full").out
    done = run("--attributions", "occlusion,lime,random", "--full")
    assert done.code == 0 and "What each attribution cost" in done.out
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert set(manifest["cost"]["attribution_rows"]) == {"occlusion", "lime"}
    assert f"{manifest['cost']['attribution_rows']['lime']:,}" in done.out
    assert "What each attribution cost" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")


def test_json_on_standard_output_is_the_summary(run, tmp_path):
    done = run("--json")
    printed = json.loads(done.out)
    assert printed.pop("folder") == str(tmp_path / "run")
    assert printed == json.loads((tmp_path / "run" / "summary.json").read_text())
    assert "rows" in done.err  # progress and messages go elsewhere


def test_every_option_reaches_the_run(run, tmp_path):
    options = {"attributions": "random", "operators": "infill", "k": "0.3,0.5", "n": 5, "m": 7, "seed": 11}
    rest = {"target": "gold", "fills": "own", "n-fills": 2, "label-scoring": "first", "token-budget": 99}
    given = [str(part) for name, value in (options | rest).items() for part in (f"--{name}", value)]
    assert run(*given).code == 0
    manifest = RunFolder.existing(tmp_path / "run").manifest()
    config = manifest.config
    assert (config.attributions, config.operators, config.k) == (("random",), ("infill",), (0.3, 0.5))
    assert (config.n, config.m, config.seed) == (5, 7, 11)
    assert (config.target, config.fills, config.n_fills) == ("gold", "own", 2)
    assert (config.label_scoring, manifest.token_budget) == ("first", 99)


def test_escapes_in_a_prompt_are_new_lines_and_tabs(run, tmp_path):
    assert run(prompt=r"Review:\t{text}\nSentiment:").code == 0
    assert RunFolder.existing(tmp_path / "run").manifest().prompt == "Review:\t{text}\nSentiment:"


def test_a_task_can_be_given_other_data(ice, reviews, tmp_path):
    arguments = ["--model", "toy", "--task", "sst2", "--data", reviews, "--m", "5", "--out", tmp_path / "run"]
    done = ice("run", *arguments, "--json")
    assert done.code == 0
    assert {line["task"] for line in json.loads(done.out)["configurations"]} == {"sst2"}
    manifest = RunFolder.existing(tmp_path / "run").manifest()
    assert (manifest.data.origin, manifest.data.examples, manifest.data.columns) == (str(reviews), 8, {})


def test_a_csv_file_gives_the_same_numbers(run, reviews, tmp_path, tmp_path_factory):
    path = tmp_path_factory.mktemp("csv") / "reviews.csv"
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, ["text", "label"])
        writer.writeheader()
        writer.writerows(json.loads(line) for line in reviews.read_text().splitlines())
    first, second = run(out=tmp_path / "a"), run(data=path, out=tmp_path / "b")
    assert first.code == second.code == 0
    one, other = ((tmp_path / name / "examples.parquet").read_bytes() for name in "ab")
    assert one == other


def test_without_out_the_folder_is_named_after_the_run_and_continued(run, tmp_path):
    assert run(out=None).code == 0
    [folder] = (tmp_path / "ice-runs").iterdir()
    assert folder.name.startswith("reviews-toy-")
    again = run(out=None, prompt=PROMPT)
    assert again.code == 0 and "rows/s" not in again.err
    assert run("--seed", "1", out=None).code == 0
    assert len(list((tmp_path / "ice-runs").iterdir())) == 2


def test_the_same_command_again_prints_the_same(run):
    assert run("--json").out == run("--json").out


def test_rescoring_prints_the_same_summary(run, ice, tmp_path):
    before = json.loads(run("--json").out)
    done = ice("rescore", tmp_path / "run", "--json")
    assert done.code == 0 and json.loads(done.out) == before


def test_a_second_run_says_that_nothing_is_left_to_do(ice, tmp_path):
    command = ("run", "--model", "toy", "--task", "demo", "--n", "4", "--m", "3", "--out", tmp_path / "run")
    assert "nothing left to score" not in ice(*command).err
    assert "nothing left to score: all rows are in the folder." in ice(*command).err


FAILING = """
def predict(texts):
    shares = [0.1 + len(text) % 7 / 10 if "film" not in text else float("nan") for text in texts]
    return [[share, 1 - share] for share in shares]
"""


def test_failed_examples_are_named_first_and_too_many_exit_with_1(ice, reviews, tmp_path, monkeypatch):
    (tmp_path / "failing_run.py").write_text(FAILING)
    monkeypatch.syspath_prepend(tmp_path)
    labels = ("--prompt", "{text}", "--labels", "negative,positive")
    given = ("--model", "python:failing_run:predict", "--data", reviews, *labels, "--attributions", "random")
    options = ("--m", 6, "--operators", "delete", "--out", tmp_path / "run")
    done = ice("run", *given, *options)
    sentence, problem, *_ = done.out.splitlines()
    assert done.code == 1 and sentence.endswith("2 of 8 examples have no result.")
    assert problem.startswith("! 2 of 8 examples have no result (25.0 %): ")
    assert done.err.splitlines()[-1] == "ice: 2 of 8 examples (25.0 %) have no result, more than --max-dropped 0.1"
    assert ice("report", tmp_path / "run").code == 1
    assert ice("report", tmp_path / "run", "--max-dropped", 0.25).code == 0
    assert ice("run", *given, *options, "--max-dropped", 0.25).code == 0
    assert ice("report", tmp_path / "run", "--max-dropped", 2).code == 2
