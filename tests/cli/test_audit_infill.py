"""`ice audit-infill`."""

import csv
import json
import shutil

import pytest
from tests.cli.commands import assert_refused

from ice_eval.api import evaluate


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "demo"
    evaluate("toy", "demo", n=24, m=4, attributions=["gradient"], operators=["infill"], out=path)
    return path


def test_the_pool_is_audited_without_a_run(ice):
    done = ice("audit-infill", "--model", "toy", "--task", "demo")
    assert done.code == 0
    assert "What survives the blacklist of infill" in done.out and "What infill wrote" not in done.out
    assert "held out" in done.out and "No model was asked" in done.out


def test_a_run_is_audited_with_its_fills(ice, finished):
    out = ice("audit-infill", finished).out
    assert "What infill wrote in this run" in out and "Win rates where fills tell the label" in out
    content = json.loads(ice("audit-infill", finished, "--json").out)
    assert [each["reference"] for each in content["counts"]] == ["words", "held out"]
    assert {each["attribution"] for each in content["effects"]} == {"gradient"}
    assert all(0 <= each["contaminated_fills"] <= each["fills"] for each in content["counts"])


def test_a_run_over_a_file_finds_its_task_again(ice, reviews, tmp_path):
    flags = ("--data", reviews, "--prompt", "Film: {text}\\nIt is", "--labels", "bad,good")
    done = ice(
        "run", "--model", "toy", *flags, "--operators", "infill", "--attributions", "random", "--m", 3, "--out", "r"
    )
    assert done.code == 0
    assert ice("audit-infill", "r").code == 0
    reviews.rename(tmp_path / "moved.jsonl")
    assert_refused(ice("audit-infill", "r"), "were not found; give them as --data FILE")
    assert ice("audit-infill", "r", "--data", tmp_path / "moved.jsonl").code == 0
    other = ("--data", tmp_path / "moved.jsonl", "--prompt", "Review: {text}\\nIt is")
    assert_refused(ice("audit-infill", "r", *other), "differs from that of")


def test_a_run_that_explains_some_fields_finds_them_again(ice, tmp_path):
    rows = [
        {"plot": f"a witty slow plot number {i}", "cast": f"an awful cast of {i}", "label": i % 2} for i in range(4)
    ]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = ("--data", "d.jsonl", "--prompt", "{cast}: {plot}\\nIt is", "--labels", "bad,good", "--explain", "plot")
    few = ("--operators", "infill", "--attributions", "random", "--m", 3)
    assert ice("run", "--model", "toy", *flags, *few, "--out", "r").code == 0
    assert ice("audit-infill", "r").code == 0
    assert_refused(ice("audit-infill", "r", "--explain", "plot,cast"), "differs from that of")


def test_a_run_with_another_prompt_of_a_task_finds_it_again(ice, reviews, tmp_path):
    flags = ("--model", "toy", "--data", reviews, "--operators", "infill", "--attributions", "random", "--m", 3)
    assert ice("run", *flags, "--task", "sst2/question/few-shot", "--out", "r").code == 0
    assert ice("audit-infill", "r").code == 0
    assert_refused(ice("audit-infill", "r", "--task", "sst2"), "differs from that of")
    assert_refused(
        ice("audit-infill", "r", "--task", "ag_news", "--labels", "a,b,c,d"), "the lexicon of the task 'ag_news'"
    )


def test_a_run_whose_model_is_not_found_by_its_name_asks_for_it(ice, finished, tmp_path):
    shutil.copytree(finished, tmp_path / "r")
    manifest = json.loads((tmp_path / "r/manifest.json").read_text())
    manifest["config"]["model"] = "no-such-folder"
    (tmp_path / "r/manifest.json").write_text(json.dumps(manifest))
    assert_refused(ice("audit-infill", "r"), "the run's model 'no-such-folder' was not found by its name; give --model")
    assert ice("audit-infill", "r", "--model", "toy").code == 0


def test_words_of_ones_own_and_other_formats(ice, tmp_path):
    (tmp_path / "words.txt").write_text("the\nand, of\n", encoding="utf-8")
    done = ice("audit-infill", "--model", "toy", "--task", "demo", "--words", "words.txt", "--format", "csv")
    [line] = [row for row in csv.DictReader(done.out.splitlines()) if row["reference"] == "words"]
    assert 0 < float(line["rate"]) < 1 and int(line["surviving"]) > 0
    done = ice(
        "audit-infill", "--model", "toy", "--task", "demo", "--words", "words.txt", "--format", "csv", "--out", "x"
    )
    assert done.out.split() == ["x/judged.csv", "x/units.csv"]
    units = list(csv.DictReader((tmp_path / "x/units.csv").read_text().splitlines()))
    assert units[0]["reference"] and {row["outcome"] for row in units} <= {"blocked", "surviving"}
    assert r"\begin{tabular}" in ice("audit-infill", "--model", "toy", "--task", "demo", "--format", "latex").out


def test_bad_input_exits_2(ice, finished, tmp_path):
    assert_refused(ice("audit-infill"), "neither a run nor a model was given")
    assert_refused(ice("audit-infill", "--model", "toy", "--task", "demo", "--format", "pdf"), "no format 'pdf'")
    assert_refused(
        ice("audit-infill", "--model", "toy", "--task", "demo", "--unit", "line"), "unit 'line'. Expected: token, word,"
    )
    assert_refused(
        ice("audit-infill", "--model", "toy", "--task", "demo", "--unit", "sentence"), "token or word are audited"
    )
    assert_refused(ice("audit-infill", finished, "--n", "5"), "a run has its own --n and --unit")
    (tmp_path / "none.txt").write_text(" \n", encoding="utf-8")
    assert_refused(
        ice("audit-infill", "--model", "toy", "--task", "demo", "--words", "none.txt"), "none.txt holds no words"
    )


def test_a_run_whose_column_has_a_comma_in_its_name_is_audited(ice, tmp_path):
    rows = [f"r{i},{word} film here,{mood}" for i, (word, mood) in enumerate([("a good", "yes"), ("a bad", "no")] * 4)]
    (tmp_path / "odd.csv").write_text("\n".join(['"Review, id",comment,mood', *rows]) + "\n")
    (tmp_path / "odd.yaml").write_text(
        'data: odd.csv\ncolumns: {id: "Review, id", label: mood}\nprompt: "{comment}:"\nlabels: ["no", "yes"]\n'
    )
    assert (
        ice("run", "--task", "odd.yaml", "--model", "toy", "--attributions", "random", "--m", 3, "--out", "run").code
        == 0
    )
    assert ice("audit-infill", "run").code == 0
    assert ice("report", "run", "--html", "page.html").code == 0
