"""Bad input exits with 2 and one message, and leaves nothing behind."""

import itertools
import json

import pytest
from tests.cli.commands import assert_refused

BAD_OPTIONS = {
    "unknown operator": (["--operators", "delet"], "no operator named 'delet'; did you mean 'delete'? Known:"),
    "unknown attribution": (
        ["--attributions", "atention"],
        "no attribution named 'atention'; did you mean 'attention'?",
    ),
    "an attribution twice": (["--attributions", "random,random"], "attributions names something twice"),
    "no attribution": (["--attributions", ","], "no attributions given; at least one is needed"),
    "no operator": (["--operators", ""], "no operators given; at least one is needed"),
    "k of 0": (["--k", "0"], "k = 0.0: a share between 0 and 1 is expected"),
    "k of 1": (["--k", "1"], "k = 1.0: a share between 0 and 1 is expected"),
    "k in percent": (["--k", "0.1,20"], "k = 20.0: a share between 0 and 1 is expected"),
    "negative k": (["--k", "-0.2"], "k = -0.2: a share between 0 and 1 is expected"),
    "k that is no number": (["--k", "a fifth"], "--k a fifth: numbers between 0 and 1 or dynamic are expected"),
    "k that is nan": (["--k", "nan"], "k = nan: a share between 0 and 1 is expected"),
    "m of 0": (["--m", "0"], "m = 0: at least 1 is needed"),
    "n of 0": (["--n", "0"], "n = 0: at least 1 is needed"),
    "negative n": (["--n", "-5"], "n = -5: at least 1 is needed"),
    "n of 10^30": (["--n", str(10**30)], f"n = {10**30}: at most 9,223,372,036,854,775,807 is possible"),
    "m beyond 64 bits": (["--m", str(2**63)], f"m = {2**63}: at most 9,223,372,036,854,775,807 is possible"),
    "a seed beyond 64 bits": (["--seed", str(-(10**30))], f"seed = {-(10**30)}: at most 9,223"),
    "min-confidence of nan": (["--min-confidence", "nan"], "min_confidence = nan: a finite number is expected"),
    "no fill": (["--n-fills", "0"], "n_fills = 0: at least 1 is needed"),
    "unknown target": (["--target", "golden"], "target 'golden'; did you mean 'gold'? Expected: predicted, gold"),
    "unknown fills": (["--fills", "mine"], "fills 'mine'. Expected: shared, own"),
    "unknown label scoring": (["--label-scoring", "last"], "label-scoring 'last'"),
    "path of no task": (["--task", "/dev/zero"], "no task named '/dev/zero'. Known: ag_news, "),
    "unknown prompt of an unknown task": (
        ["--task", "sst/plain"],
        "no task named 'sst/plain'; did you mean 'sst2'? Kn",
    ),
    "unknown task": (["--task", "sst-2"], "no task named 'sst-2'; did you mean 'sst2'? Known: ag_news, "),
    "unknown field to explain": (["--explain", "title"], "cannot explain 'title': the prompt has the fields text"),
    "no token budget": (["--token-budget", "0"], "budget"),
    "a layer that the model lacks": (
        ["--attributions", "random,attention:layer=99"],
        "layer = 99, and the model has 1 layers with attention: 0 … 0, or negative from the last",
    ),
    "a head that the model lacks": (["--attributions", "attention:head=-2"], "head = -2, and the model has 1 heads"),
}


@pytest.mark.parametrize("name", BAD_OPTIONS)
def test_a_bad_option_exits_2_with_one_message(run, tmp_path, name):
    options, message = BAD_OPTIONS[name]
    assert_refused(run(*options), message, written_to=tmp_path)


BAD_TASKS = {
    "no field": ({"prompt": "Review: text"}, "the prompt 'Review: text' has no field"),
    "a field that the data lack": ({"prompt": "{review}"}, "the prompt needs the field 'review', and the example has"),
    "an open brace": ({"prompt": "{text"}, "the prompt '{text' cannot be read"),
    "no prompt": ({"prompt": None}, "without --task, --prompt must be given too"),
    "no labels": ({"labels": None}, "without --task, --labels must be given too"),
    "no data": ({"data": None}, "without --task, --data must be given too"),
    "nothing": (
        {"data": None, "prompt": None, "labels": None},
        "without --task, --data, --prompt, --labels must be given too",
    ),
    "one label": ({"labels": "positive"}, "a task needs at least two labels"),
}


@pytest.mark.parametrize("name", BAD_TASKS)
def test_a_bad_task_exits_2_with_one_message(run, tmp_path, name):
    options, message = BAD_TASKS[name]
    assert_refused(run(**options), message, written_to=tmp_path)


BAD_FILES = {
    "empty": ("d.jsonl", "", "holds no examples; at least one is needed"),
    "blank": ("d.jsonl", "\n\n", "holds no examples; at least one is needed"),
    "not json": ("d.jsonl", '{"text": "a b"}\n{"text": ', "d.jsonl, line 2: not JSON"),
    "a list": ("d.jsonl", '["a b"]\n', "d.jsonl, line 1: a JSON object is expected"),
    "missing field": ("d.jsonl", '{"text": "a b"}\n{"txt": "c"}\n', "example 1: the prompt needs the field 'text'"),
    "a number": ("d.jsonl", '{"text": 7}\n', "the field 'text' holds int, and text is expected"),
    "unknown label": ("d.jsonl", '{"text": "a", "label": "good"}\n', "the label 'good' is none of negative, positive"),
    "an id twice": ("d.jsonl", '{"text": "a", "id": 1}\n{"text": "b", "id": "1"}\n', "two examples have the id '1'"),
    "header only": ("d.csv", "text,label\n", "holds no examples; at least one is needed"),
    "too many cells": ("d.csv", "text\na,b\n", "d.csv, row 2: the number of cells differs from the header's"),
    "another format": ("d.txt", "a b\n", "is neither .jsonl nor .csv"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_exits_2_with_one_message(run, tmp_path, tmp_path_factory, name):
    file, content, message = BAD_FILES[name]
    path = tmp_path_factory.mktemp("bad") / file
    path.write_text(content)
    assert_refused(run(data=path), message, written_to=tmp_path)


def test_a_missing_file_exits_2(run, tmp_path):
    assert_refused(run(data="nowhere.jsonl"), "no such file: nowhere.jsonl. --data takes a .jsonl or .csv file")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_text_exits_2(run, tmp_path, tmp_path_factory):
    path = tmp_path_factory.mktemp("bad") / "d.jsonl"
    path.write_bytes(b'{"text": "caf\xe9"}\n')
    assert_refused(run(data=path), "is not UTF-8 text", written_to=tmp_path)


def test_a_folder_that_holds_another_run_exits_2_and_is_left_alone(run, finished):
    before = {p: p.read_bytes() for p in finished.rglob("*") if p.is_file()}
    assert_refused(
        run("--m", "7", "--seed", "1"), "holds another run: m is 6 there and 7 here; seed is 0 there and 1 here"
    )
    assert {p: p.read_bytes() for p in finished.rglob("*") if p.is_file()} == before


def test_a_folder_that_holds_other_files_exits_2_and_is_left_alone(run, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "letter.txt").write_text("dear")
    assert_refused(run(), "exists but is not a run folder; choose an --out that is empty or new")
    assert [p.name for p in (tmp_path / "run").iterdir()] == ["letter.txt"]


def test_a_file_in_place_of_the_folder_exits_2(run, tmp_path):
    (tmp_path / "run").write_text("dear")
    assert_refused(run(), "exists but is not a run folder")
    assert_refused(run(out=tmp_path / "run" / "deeper"), "run")
    assert (tmp_path / "run").read_text() == "dear"


@pytest.mark.parametrize("option", ["--out", "--data", "--model"])
def test_a_name_that_no_file_can_have_exits_2(ice, tmp_path, option):
    options = {"--out": "run", "--model": "toy", "--task": "demo", "--n": "2", option: "a" * 300}
    done = ice("run", *itertools.chain.from_iterable(options.items()))
    assert_refused(done, "File name too long", written_to=tmp_path)


def test_a_task_of_the_hub_without_a_hub_names_data(ice, tmp_path):
    done = ice("run", "--model", "toy", "--task", "sst2", "--attributions", "random")
    assert done.code == 2 and "Traceback" not in done.err and done.out == ""
    assert "--data" in done.err
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_model_gets_a_suggestion(ice, reviews, tmp_path):
    done = ice("run", "--model", "smolm2", "--task", "demo")
    assert_refused(done, "no model 'smolm2'; did you mean 'smollm2'?", "Known names: smollm2, toy", written_to=tmp_path)


def test_a_missing_gguf_file_exits_2(ice, tmp_path):
    assert_refused(ice("run", "--model", "no.gguf", "--task", "demo"), "no such file: no.gguf", written_to=tmp_path)


def test_a_run_without_any_usable_example_exits_1(run, tmp_path_factory):
    path = tmp_path_factory.mktemp("short") / "d.jsonl"
    path.write_text('{"text": "awful"}\n{"text": "good"}\n')
    done = run("--operators", "delete", data=path)
    assert_refused(done, "no example could be evaluated (example '0': the text has one unit", code=1)


@pytest.mark.parametrize("command", [["report"], ["rescore"], ["show", "--example", "0"]])
def test_commands_on_a_folder_without_a_run_exit_2(ice, tmp_path, command):
    (tmp_path / "empty").mkdir()
    for folder in ("empty", "missing"):
        assert_refused(ice(command[0], folder, *command[1:]), f"{folder} is not a run folder")
    assert [p.name for p in tmp_path.rglob("*")] == ["empty"]


def test_the_folder_around_a_run_is_refused_with_the_name_of_the_run(ice, tmp_path):
    for name in ("second", "first"):
        (tmp_path / "around" / name).mkdir(parents=True)
        (tmp_path / "around" / name / "manifest.json").write_text("{}")
    assert_refused(ice("report", "around"), "around is not a run folder: it has no manifest.json. Try around/first.")


@pytest.mark.parametrize("command", [["report"], ["rescore"], ["show", "--example", "0"]])
def test_commands_on_an_unfinished_run_exit_2(ice, finished, command):
    for path in [*finished.glob("*.jsonl"), *finished.glob("summary.*"), *finished.rglob("*.parquet")]:
        path.unlink()
    manifest = json.loads((finished / "manifest.json").read_text())
    (finished / "manifest.json").write_text(json.dumps({**manifest, "status": "running"}))
    done = ice(command[0], finished, *command[1:])
    assert_refused(done)
    assert "unfinished run" in done.err or "no example" in done.err


def test_a_folder_named_like_a_draft_stops_nothing(ice, finished):
    (finished / "ledger" / ".draft-mine").mkdir()
    assert ice("rescore", finished).code == 0
    assert (finished / "ledger" / ".draft-mine").is_dir()


@pytest.mark.parametrize("name", ["summary.json", "examples.parquet", "parts.sha256", ".lock"])
def test_a_folder_in_place_of_a_file_is_named_with_advice_that_helps(ice, finished, name):
    (finished / name).unlink()
    (finished / name).mkdir()
    assert_refused(
        ice("rescore", finished), f"{name}: a folder is in the place of this file. Move it away or rename it."
    )


def test_results_that_do_not_follow_from_the_ledger_are_named(ice, finished):
    content = json.loads((finished / "manifest.json").read_text())
    content["config"]["attributions"] = ["random"]
    (finished / "manifest.json").write_text(json.dumps(content))
    done = ice("report", finished, "--html", "page.html")
    assert_refused(done, "do not follow from its other files. `ice rescore", "writes them again")


def test_a_bug_keeps_its_traceback(ice, finished, monkeypatch):
    monkeypatch.setattr("ice_eval.report.data_of", lambda *_: {}["no such key"])
    with pytest.raises(KeyError, match="no such key"):
        ice("report", finished, "--format", "csv")


def test_a_damaged_manifest_exits_2(ice, finished):
    (finished / "manifest.json").write_text('{"schema": 1')
    assert_refused(ice("report", finished), "manifest.json is damaged")


def test_an_error_message_holds_no_control_character(run):
    done = run("--operators", "dele\x1b]0;owned\x07te")
    assert_refused(done, "owned")
    assert not set("\x1b\x07") & set(done.err)
