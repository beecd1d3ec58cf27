"""The command line: what it prints, where, and how it ends."""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ice_eval
from ice_eval.report.example import quoted
from ice_eval.results import RunFolder

PROMPT = r"Review: {text}\nSentiment:"
ANSI = re.compile(r"\x1b\[")


@pytest.fixture
def run(ice, reviews, tmp_path):
    """`ice run` of the toy model on the file of reviews; later options replace earlier ones."""

    def call(*more, data=reviews, prompt=PROMPT, labels="negative,positive", out=tmp_path / "run"):
        options = {"--model": "toy", "--data": data, "--prompt": prompt, "--labels": labels, "--m": 6, "--out": out}
        given = [part for name, value in options.items() if value is not None for part in (name, value)]
        return ice("run", *given, *more)

    return call


@pytest.fixture
def finished(run, tmp_path):
    assert run().code == 0
    return tmp_path / "run"


def assert_refused(done, *words, written_to=None, code=2):
    assert (done.code, done.out) == (code, "")
    assert "Traceback" not in done.err
    message = done.err.strip().split("\n")[-1]
    assert message.startswith("ice: ")
    assert len(re.findall("^ice: ", done.err, re.MULTILINE)) == 1
    for word in words:
        assert word in message
    if written_to is not None:
        assert list(written_to.iterdir()) == []


# --- bad input ----------------------------------------------------------------------------------------------------


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
    "no fill": (["--n-fills", "0"], "n_fills = 0: at least 1 is needed"),
    "unknown target": (["--target", "golden"], "target 'golden'; did you mean 'gold'? Expected: predicted, gold"),
    "unknown fills": (["--fills", "mine"], "fills 'mine'. Expected: shared, own"),
    "unknown label scoring": (["--label-scoring", "last"], "label-scoring 'last'"),
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
    assert_refused(run(), "is there and holds no run; choose an --out that is empty or new")
    assert [p.name for p in (tmp_path / "run").iterdir()] == ["letter.txt"]


def test_a_file_in_place_of_the_folder_exits_2(run, tmp_path):
    (tmp_path / "run").write_text("dear")
    assert_refused(run(), "is there and holds no run")
    assert_refused(run(out=tmp_path / "run" / "deeper"), "run")
    assert (tmp_path / "run").read_text() == "dear"


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


@pytest.mark.parametrize("command", [["report"], ["rescore"], ["show", "--example", "0"]])
def test_commands_on_a_folder_without_a_run_exit_2(ice, tmp_path, command):
    (tmp_path / "empty").mkdir()
    for folder in ("empty", "missing"):
        assert_refused(ice(command[0], folder, *command[1:]), f"{folder} holds no run")
    assert [p.name for p in tmp_path.rglob("*")] == ["empty"]


def test_the_folder_around_a_run_is_refused_with_the_name_of_the_run(ice, tmp_path):
    for name in ("second", "first"):
        (tmp_path / "around" / name).mkdir(parents=True)
        (tmp_path / "around" / name / "manifest.json").write_text("{}")
    assert_refused(
        ice("report", "around"), "around holds no run (no manifest.json there); a folder in it does: around/first."
    )


@pytest.mark.parametrize("command", [["report"], ["rescore"], ["show", "--example", "0"]])
def test_commands_on_an_unfinished_run_exit_2(ice, finished, command):
    for path in [*finished.glob("*.jsonl"), *finished.glob("summary.*"), *finished.rglob("*.parquet")]:
        path.unlink()
    manifest = json.loads((finished / "manifest.json").read_text())
    (finished / "manifest.json").write_text(json.dumps({**manifest, "status": "running"}))
    done = ice(command[0], finished, *command[1:])
    assert_refused(done)
    assert "unfinished run" in done.err or "no example" in done.err


def test_a_damaged_manifest_exits_2(ice, finished):
    (finished / "manifest.json").write_text('{"schema": 1')
    assert_refused(ice("report", finished), "manifest.json is damaged")


def test_an_unknown_example_gets_a_suggestion(ice, run, finished, tmp_path_factory):
    assert_refused(ice("show", finished, "--example", "8"), "no example '8'", "It holds 8, from '0' to '7'")
    path = tmp_path_factory.mktemp("named") / "d.jsonl"
    path.write_text("".join(json.dumps({"id": f"review-{i}", "text": "a dull slow film"}) + "\n" for i in range(3)))
    assert run("--operators", "delete", data=path, out=finished.parent / "named").code == 0
    done = ice("show", finished.parent / "named", "--example", "revew-1")
    assert_refused(done, "no example 'revew-1'", "did you mean 'review-1'?")


def test_a_format_that_is_unknown_or_would_be_ignored_exits_2(ice, finished):
    assert_refused(ice("report", finished, "--format", "xls"), "no format 'xls'; use md, csv, latex")
    assert_refused(ice("report", finished, "--format", "md", "--json"), "--format and --json exclude each other")
    assert_refused(ice("report", finished, "--format", "md", "--html", "x.html"), "--format and --html exclude")
    assert_refused(ice("report", finished, "--format", "md", "--figures", "x"), "--format and --figures exclude")


def test_a_page_that_cannot_be_written_exits_2(ice, finished, reviews):
    assert_refused(ice("report", finished, "--html", finished), str(finished))
    assert_refused(ice("report", finished, "--html", reviews / "page.html"), str(reviews))
    assert not [path for path in finished.parent.rglob("*") if "draft" in path.name]


def test_an_unknown_list_exits_2(ice):
    assert_refused(ice("list", "operator"), "cannot list 'operator'; did you mean 'operators'? Known: tasks, models")


def test_an_error_message_holds_no_control_character(run):
    done = run("--operators", "dele\x1b]0;owned\x07te")
    assert_refused(done, "owned")
    assert not set("\x1b\x07") & set(done.err)


# --- good paths ---------------------------------------------------------------------------------------------------


def test_a_run_prints_tables_and_where_it_wrote(run, tmp_path):
    done = run()
    assert done.code == 0
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
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["schema"] == 1


def test_a_run_says_what_several_attributions_cost(run, tmp_path):
    assert "What each attribution cost" not in run().out
    done = run("--attributions", "occlusion,lime,random")
    assert done.code == 0 and "What each attribution cost" in done.out
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert set(manifest["attribution_rows"]) == {"occlusion", "lime"}
    assert f"{manifest['attribution_rows']['lime']:,}" in done.out
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
    config = manifest["config"]
    assert (config["attributions"], config["operators"], config["k"]) == (["random"], ["infill"], [0.3, 0.5])
    assert (config["n"], config["m"], config["seed"]) == (5, 7, 11)
    assert (config["target"], config["fills"], config["n_fills"]) == ("gold", "own", 2)
    assert (config["label_scoring"], manifest["token_budget"]) == ("first", 99)


def test_escapes_in_a_prompt_are_new_lines_and_tabs(run, tmp_path):
    assert run(prompt=r"Review:\t{text}\nSentiment:").code == 0
    assert RunFolder.existing(tmp_path / "run").manifest()["prompt"] == "Review:\t{text}\nSentiment:"


def test_a_task_can_be_given_other_data(ice, reviews, tmp_path):
    arguments = ["--model", "toy", "--task", "sst2", "--data", reviews, "--m", "5", "--out", tmp_path / "run"]
    done = ice("run", *arguments, "--json")
    assert done.code == 0
    assert {line["task"] for line in json.loads(done.out)["configurations"]} == {"sst2"}
    manifest = RunFolder.existing(tmp_path / "run").manifest()
    assert manifest["data"] == {"origin": str(reviews), "examples": 8}


def test_a_csv_file_gives_the_same_numbers(run, reviews, tmp_path, tmp_path_factory):
    path = tmp_path_factory.mktemp("csv") / "reviews.csv"
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, ["text", "label"])
        writer.writeheader()
        writer.writerows(json.loads(line) for line in reviews.read_text().splitlines())
    first, second = run(out=tmp_path / "a"), run(data=path, out=tmp_path / "b")
    assert first.code == second.code == 0
    one, other = ((tmp_path / name / "examples.jsonl").read_bytes() for name in "ab")
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


LISTS = {
    "tasks": "demo", "models": "toy", "attributions": "random", "operators": "infill", "nulls": "size",
    "formats": "jsonl", "measures": "eraser", "executors": "local", "presets": "quick", "cot-tasks": "gsm8k",
    "cot-operators": "delete", "cot-attributions": "position",
}  # fmt: skip
"""Everything that can be listed, and a name in it."""


@pytest.mark.parametrize("kind", LISTS)
def test_a_list_names_everything_with_a_line_on_each(ice, kind):
    plain, as_json = ice("list", kind), ice("list", kind, "--json")
    assert plain.code == as_json.code == 0
    found = json.loads(as_json.out)
    lines = {name: entry if isinstance(entry, str) else entry["description"] for name, entry in found.items()}
    assert LISTS[kind] in lines and all(lines.values())
    for name, line in lines.items():
        assert re.search(rf"^{re.escape(name)} +{re.escape(line)}$", plain.out, re.MULTILINE)


def test_all_that_can_be_listed_is_named_by_help_and_by_the_refusal_of_what_cannot(ice):
    refused = re.search("Known: (.*)\\.", ice("list", "nothing").err)
    assert set(refused[1].split(", ")) == set(LISTS)
    assert set(LISTS) <= set(re.findall(r"[a-z-]+", ice("list", "--help").out))


def test_the_version_is_printed(ice):
    assert ice("--version") == (0, f"ice-eval {ice_eval.__version__}\n", "")


def test_without_arguments_help_is_shown(ice):
    done = ice()
    for word in ("Usage: ice", "demo", "run", "rescore", "report", "show", "list"):
        assert word in done.out + done.err


@pytest.mark.parametrize("command", ["demo", "run", "rescore", "report", "show", "list"])
def test_every_command_has_help(ice, command):
    done = ice(command, "--help")
    assert done.code == 0 and f"Usage: ice {command}" in done.out and "--json" in done.out


def test_a_report_is_printed_as_tables(ice, finished):
    done = ice("report", finished)
    assert done.code == 0 and "Faithfulness" in done.out and "small_n" in done.out


def test_a_report_is_printed_as_json(ice, finished):
    done = ice("report", finished, finished, "--json")
    printed = json.loads(done.out)
    summary = json.loads((finished / "summary.json").read_text())
    [alone] = json.loads(ice("report", finished, "--json").out)
    assert alone == {"folder": str(finished), **summary}
    # Twice as many configurations are adjusted together; nothing else changes.
    for run in printed:
        assert run["folder"] == str(finished) and run["agreement"] == summary["agreement"]
        for line, own in zip(run["configurations"], summary["configurations"], strict=True):
            assert line["p_adjusted"] >= own["p_adjusted"]
            assert {**line, "p_adjusted": 0} == {**own, "p_adjusted": 0}


def test_a_report_is_printed_as_markdown(ice, finished):
    lines = ice("report", finished, "--format", "md").out.splitlines()
    assert lines[0] == "**Faithfulness**"
    table = [line for line in lines if line.startswith("|")]
    header = [cell.strip() for cell in table[0].strip("|").split("|")]
    assert header[:2] == ["attribution", "operator"] and "win rate" in header
    assert set(table[1]) == set("| -:")
    assert all(line.count("|") == table[0].count("|") for line in table[: 2 + 9])


def test_a_report_is_printed_as_csv(ice, finished):
    first, second, third = ice("report", finished, "--format", "csv").out.strip().split("\n\n")
    rows = list(csv.DictReader(first.splitlines()))
    assert [(row["attribution"], row["operator"]) for row in rows[:3]] == [
        ("attention", "delete"),
        ("attention", "infill"),
        ("attention", "all"),
    ]
    assert len(rows) == 9
    assert len(list(csv.DictReader(second.splitlines()))) == 3
    assert [row["conclusion"] for row in csv.DictReader(third.splitlines())] == ["inconclusive"] * 3


def test_a_report_is_printed_as_latex(ice, finished):
    text = ice("report", finished, "--format", "latex").out
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 3
    assert r"95 \% CI" in text
    assert all(line.startswith("% ") for line in text.splitlines() if re.search(r"(?<!\\)%", line))


def test_figures_are_written_and_listed(ice, finished, tmp_path, monkeypatch):
    from ice_eval.report import figures

    monkeypatch.setattr(figures, "figures", lambda folders, all_of=figures.figures: all_of(folders)[:1])
    target = tmp_path / "paper" / "figures"
    done = ice("report", finished, "--figures", target, "--json")
    printed = json.loads(done.out)
    assert done.code == 0 and printed["html"] is None
    names = [figure["name"] for figure in printed["figures"]]
    assert names == ["win-rate-heatmap"]
    assert all(figure["title"] and figure["caption"] for figure in printed["figures"])
    files = [file for figure in printed["figures"] for file in figure["files"]]
    assert files == [str(target / f"{name}.{kind}") for name in names for kind in ("svg", "pdf", "png")]
    assert sorted(files) == sorted(map(str, target.iterdir()))
    done = ice("report", finished, "--figures", target, "--html", tmp_path / "page.html")
    assert done.out.splitlines() == [str(tmp_path / "page.html"), *files]


def test_figures_that_cannot_be_drawn_exit_2(ice, finished, reviews, monkeypatch):
    assert_refused(ice("report", finished, "--figures", reviews), f"figures cannot be written to {reviews}")
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    assert_refused(
        ice("report", finished, "--figures", "new"), "'vl_convert' is not installed", "pip install 'vl-convert-python'"
    )


def test_an_unwanted_verdict_exits_1_and_names_the_configurations(ice, finished):
    path = finished / "summary.json"
    summary = json.loads(path.read_text())
    for line in summary["configurations"]:
        line["verdict"] = "anti-faithful" if line["attribution"] == "gradient" else "faithful"
    path.write_text(json.dumps(summary))
    assert ice("report", finished, "--fail-if", "near-random", "--fail-if", "operators disagree").code == 0
    done = ice("report", finished, "--fail-if", "near-random,anti-faithful", "--json")
    assert done.code == 1 and json.loads(done.out)
    assert done.err.splitlines() == [
        f"ice: gradient under {operator} (k = 0.2, sufficiency): anti-faithful" for operator in ("delete", "infill")
    ]


def test_an_unknown_verdict_exits_2_before_anything_is_printed_or_written(ice, finished, tmp_path):
    done = ice("report", finished, "--fail-if", "unfaithful", "--html", tmp_path / "page.html")
    assert_refused(done, "no verdict 'unfaithful'", "anti-faithful, near-random, weakly faithful, faithful")
    assert not (tmp_path / "page.html").exists()


def test_a_report_is_written_as_a_page(ice, finished, tmp_path):
    done = ice("report", finished, "--html", tmp_path / "pages" / "report.html")
    assert done.out.strip() == str(tmp_path / "pages" / "report.html")
    page = (tmp_path / "pages" / "report.html").read_text()
    assert page.startswith("<!doctype html>") and "toy on reviews" in page


def test_a_page_escapes_what_users_wrote(run, ice, tmp_path, tmp_path_factory, reviews):
    path = tmp_path_factory.mktemp("odd") / "<script>alert(1)</script>.jsonl".replace("/", "_")
    path.write_bytes(reviews.read_bytes())
    assert run(data=path, prompt="<b>{text}</b> is", labels="<i>no</i>,yes").code == 0
    page = (tmp_path / "run" / "report.html").read_text()
    assert "&lt;script&gt;" in page and "<script>" not in page and "<b>" not in page and "<i>" not in page


def test_an_example_is_shown_as_text(ice, finished):
    done = ice("show", finished, "--example", "0", "--rows", "2")
    assert done.code == 0
    assert "text: a gorgeous witty film with a great cast and one dull scene" in done.out
    assert "explained label: positive, gold: positive" in done.out
    assert "[gorgeous]" in done.out
    assert "2 of 7 random rows under delete" in done.out and "2 of 7 random rows under infill" in done.out
    assert re.search(r"attention under delete, sufficiency, k = 0.2: win rate \d+ % of 6, p = 0\.\d{3}", done.out)
    assert done.out.count("6 random sets") == done.out.count("▲") == 6
    chosen = ice("show", finished, "--example", "0", "--attribution", "random", "--operator", "infill").out
    assert chosen.count("6 random sets") == 1 and "rows under delete" not in chosen


def test_an_example_is_shown_as_json(ice, finished):
    shown = json.loads(ice("show", finished, "--example", "3", "--json").out)
    assert shown["example_id"] == "3" and shown["fields"]["text"].startswith("a broken plot")
    assert len(shown["outcomes"]) == 9
    # Full and empty; 7 sets and 3 rationales under each of two operators.
    assert len(shown["rows"]) == 2 + 2 * (7 + 3)
    for row in shown["rows"]:
        assert sum(row["probabilities"].values()) == pytest.approx(1)
        assert len(row["input_ids"]) == len(row["segment_ids"])


def test_text_that_looks_like_markup_is_shown_as_it_is(run, ice, tmp_path, tmp_path_factory):
    path = tmp_path_factory.mktemp("odd") / "d.jsonl"
    path.write_text(json.dumps({"text": "a [bold]dull[/bold] film [/] :smile:"}) + "\n" + '{"text": "a fun film"}\n')
    assert run(data=path).code == 0
    assert "text: a [bold]dull[/bold] film [/] :smile:" in ice("show", tmp_path / "run", "--example", "0").out


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("می\u200cخواهم 👨\u200d👩\u200d👧", "'می\u200cخواهم 👨\u200d👩\u200d👧'"),  # joiners are part of the script
        ('it\'s\u3000\\ "so"', "'it's\u3000\\ \"so\"'"),
        ("a\nb\u2028c\x1b[1md\ud800", "'a\\nb\\u2028c\\x1b[1md\\ud800'"),
    ],
)
def test_a_row_is_quoted_as_it_is_written_but_on_one_line(text, shown):
    assert quoted(text) == shown


def test_a_rationale_is_marked_in_each_field_by_its_name(run, ice, tmp_path, tmp_path_factory):
    path = tmp_path_factory.mktemp("pair") / "d.jsonl"
    rows = [{"plot": f"a witty plot {i}", "cast": f"an awful cast {i}", "note": "none"} for i in range(2)]
    path.write_text("\n".join(map(json.dumps, rows)))
    prompt = "{note} {plot}\n{cast}\nSentiment:"
    assert run("--explain", "plot,cast", "--k", "0.9", "--operators", "delete", data=path, prompt=prompt).code == 0
    shown = ice("show", tmp_path / "run", "--example", "0").out
    [plot, cast] = re.search("p = .*\n  plot: (.*)\n  cast: (.*)\n", shown).groups()
    assert plot.count("[") + cast.count("[") == 7  # of 8 words
    assert re.sub(r"[\[\]]", "", plot + cast) == "a witty plot 0an awful cast 0"


def test_an_example_that_takes_no_part_is_shown_with_the_reason(run, ice, tmp_path, tmp_path_factory):
    path = tmp_path_factory.mktemp("short") / "d.jsonl"
    path.write_text('{"text": "awful"}\n{"text": "a fun film"}\n')
    assert run("--operators", "delete", data=path).code == 0
    assert "takes no part: the text has one unit" in ice("show", tmp_path / "run", "--example", "0").out


def test_rescoring_prints_the_same_summary(run, ice, tmp_path):
    before = json.loads(run("--json").out)
    done = ice("rescore", tmp_path / "run", "--json")
    assert done.code == 0 and json.loads(done.out) == before


# --- through a pipe -----------------------------------------------------------------------------------------------


def piped(*arguments, cwd):
    clean = {k: v for k, v in os.environ.items() if k not in {"FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "COLUMNS"}}
    clean["PYTHONPATH"] = str(Path(ice_eval.__file__).parents[1])  # wherever it is imported from, in any folder
    command = [sys.executable, "-c", "from ice_eval.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=clean)


def test_output_through_a_pipe_is_plain_and_whole(reviews, tmp_path):
    arguments = ["--model", "toy", "--data", reviews, "--prompt", PROMPT, "--labels", "negative,positive", "--m", "6"]
    done = piped("run", *arguments, "--out", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not ANSI.search(done.stdout + done.stderr) and "\r" not in done.stdout + done.stderr
    assert "rows/s" in done.stderr and "rows/s" not in done.stdout
    # No cell is cut off for want of a terminal's width.
    for line in RunFolder.existing(tmp_path / "run").summary()["configurations"]:
        row = rf"^{line['attribution']}  +{line['operator']}  +.*  {line['verdict']} *$"
        assert re.search(row, done.stdout, re.MULTILINE)
    assert "…" not in done.stdout


def test_help_through_a_pipe_is_plain(tmp_path):
    done = piped("run", "--help", cwd=tmp_path)
    assert done.returncode == 0 and not ANSI.search(done.stdout) and "--attributions" in done.stdout


def test_bad_input_through_a_pipe_is_one_line(tmp_path):
    done = piped("list", "nothing", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("ice: cannot list 'nothing'")


WITH_IMPORTS = """
import sys
from ice_eval.cli import main
try:
    main()
finally:
    print("torch" in sys.modules, file=sys.stderr)
"""


def test_the_toy_path_imports_no_torch(tmp_path):
    arguments = ["run", "--model", "toy", "--task", "demo", "--n", "4", "--m", "3", "--out", tmp_path / "run"]
    command = [sys.executable, "-c", WITH_IMPORTS, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr.splitlines()[-1] == "False"


def test_a_second_run_says_that_nothing_is_left_to_do(ice, tmp_path):
    command = ("run", "--model", "toy", "--task", "demo", "--n", "4", "--m", "3", "--out", tmp_path / "run")
    assert "nothing left to score" not in ice(*command).err
    assert "nothing left to score: all rows are in the folder." in ice(*command).err
