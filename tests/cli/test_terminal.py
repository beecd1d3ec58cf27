"""What users' files and names hold is shown and never obeyed: no control character reaches a terminal."""

import ast
import json
import re
from pathlib import Path

import pytest

import ice_eval
import ice_eval.cli

NASTY = "\x1b]0;owned\x07\x1b[31m\x9b1m[red]y[_red]\x08\x7f\x85"
"""Sets the title of a window, turns the text red in two ways, rich's own included, and takes letters back."""
TEXTS = [
    "a gorgeous witty film with a great cast and one dull scene",
    "the worst film of the year boring cold and far too long",
    "warm and fun from the first scene to the very last one",
    "a broken plot a rude cast and a terrible ending to it all",
]
LABELS = [f"bad{NASTY}", f"good{NASTY}"]
STYLE = re.compile(r"\x1b\[[0-9;]*m")
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Data, explanations that fit and others that do not, two runs, a grid and configurations, all with nasty names."""
    root = tmp_path_factory.mktemp("nasty")
    names = {name: root / f"{name}{NASTY}.jsonl" for name in ("data", "fits", "misfits")}
    rows = [
        {"id": f"{place}{NASTY}", "text": f"{text} {NASTY}", "label": place % 2, f"more{NASTY}": "x"}
        for place, text in enumerate(TEXTS)
    ]
    spans = [{"id": row["id"], "spans": [[0, 3, 1.0], [5, 9, 0.5]]} for row in rows]
    misfits = [{"id": rows[0]["id"], "tokens": [f"zz{NASTY}"], "scores": [1]}, {"id": f"who{NASTY}", "scores": [1]}]
    for name, content in (("data", rows), ("fits", spans), ("misfits", misfits)):
        names[name].write_text("".join(json.dumps(row) + "\n" for row in content), encoding="utf-8")
    task = ice_eval.Task(
        data=ice_eval.FileData(names["data"]),
        prompt=f"Review{NASTY}: {{text}}\nSentiment:",
        label_words={label: f" {label}" for label in LABELS},
        name=f"task{NASTY}",
    )
    for seed, name in enumerate(("one", "two")):
        names[name] = root / f"{name}{NASTY}"
        ice_eval.evaluate(
            "toy", task, attributions={f"mine{NASTY}": names["fits"], "random": None}, operators=["delete", "infill"],
            m=5, seed=seed, out=names[name],
        )  # fmt: skip
    configs = {"bad value": {"n": f"x{NASTY}"}, "bad key": {f"n{NASTY}": 1}, "bad model": {"model": f"no{NASTY}"}}
    for name, config in configs.items():
        names[name] = root / f"{name}.yaml"
        names[name].write_text(json.dumps({"task": "demo", "model": "toy", **config}), encoding="utf-8")
    grid = {"name": f"../../grid{NASTY}", "models": ["toy"], "tasks": [{"task": "demo", "data": str(names["data"])}]}
    names["grid"] = root / f"grid{NASTY}.yaml"
    names["grid"].write_text(json.dumps(grid), encoding="utf-8")
    return {name: str(path) for name, path in names.items()}


EXAMPLE = f"0{NASTY}"
DATA = ["--model", "toy", "--data", "<data>", "--prompt", "Review: {text}", "--labels", ",".join(LABELS)]
QUICK = ["--operators", "delete", "--m", "5"]
SHOW, TABLES = ["show", "<one>", "--example", EXAMPLE], ["report", "<one>", "<two>"]
COMMANDS = [
    ["run", *DATA, *QUICK, "--attributions", "random", "--attribution-file", f"x{NASTY}=<fits>"],
    ["run", *DATA, *QUICK, "--attributions", "random", "--dry-run"],
    ["run", *DATA, *QUICK, "--attribution-file", f"x{NASTY}=<misfits>"],
    ["run", *DATA, "--out", "<data>"],
    ["run", "--task", f"no{NASTY}", "--model", "toy"],
    ["run", f"--no{NASTY}"],
    ["run", "--n", f"x{NASTY}"],
    *(["run", "--config", f"<{name}>"] for name in ("bad value", "bad key", "bad model")),
    SHOW,
    ["show", "<one>", "--example", EXAMPLE, "--json"],
    ["show", "<one>", "--example", f"no{NASTY}"],
    *(["report", "<one>", "--format", style] for style in ("md", "csv", "latex")),
    TABLES,
    ["report", "<one>", "--json"],
    ["report", "<one>", "--html", f"page{NASTY}.html"],
    ["report", "<one>", "--fail-if", f"no{NASTY}"],
    ["report", "<data>"],
    ["compare", "<one>", "<two>"],
    ["compare", "<one>", "<two>", "--format", "md"],
    ["compare", "<one>", "<two>", "--json"],
    ["compare", "<one>", "--paper"],
    ["validate", "<fits>", *DATA],
    ["validate", "<misfits>", *DATA],
    ["validate", "<misfits>", *DATA, "--json"],
    ["measures", "<one>"],
    ["measures", "<one>", "--json"],
    ["rescore", "<one>"],
    ["audit-infill", *DATA],
    ["plan", *DATA, *QUICK],
    ["bench", "<grid>", "--dry-run"],
    ["run", "--model", "toy", "--responses", "<data>"],
    ["run", "--model", "openai:m", "--task", f"no{NASTY}", "--base-url", "http://127.0.0.1:9/v1"],
    ["list", f"no{NASTY}"],
    ["task", "new", f"new{NASTY}.yaml", "--data", "<data>"],
    ["task", "check", "<data>", "--model", "toy", "--prompt", "{text}", "--labels", ",".join(LABELS)],
    [f"no{NASTY}"],
]


def named(command, files):
    return [re.sub("<(.*?)>", lambda found: files.get(found[1], found[0]), part) for part in command]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0][:2])
def test_no_control_character_is_printed(command, files, ice):
    done = ice(*named(command, files))
    assert done.code in {0, 1, 2}
    assert not CONTROL.search(done.out + done.err)
    assert "Traceback" not in done.err
    if "--json" in command:
        assert json.loads(done.out)  # what a program reads is the name itself


@pytest.mark.parametrize("command", [COMMANDS[0], SHOW, TABLES], ids=lambda command: command[0])
def test_in_a_terminal_there_are_styles_of_our_own_only(command, files, ice, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    # As other tests print: rich keeps the codes that it first wrote for a style, few colours ever after.
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    done = ice(*named(command, files))
    assert done.code == 0
    assert not CONTROL.search(STYLE.sub("", done.out + done.err))
    assert "[red]y" in done.out  # not taken for markup


def test_what_a_program_reads_is_what_the_file_holds(files, ice):
    shown = json.loads(ice("show", files["one"], "--example", EXAMPLE, "--json").out)
    assert shown["example_id"] == EXAMPLE
    assert shown["fields"]["text"] == f"{TEXTS[0]} {NASTY}"


def test_a_grid_cannot_choose_a_folder_elsewhere(files, ice, tmp_path):
    plan = json.loads(ice("bench", files["grid"], "--dry-run", "--json").out)
    assert Path(plan["folder"]).parent == Path("ice-bench")
    assert "grid" in Path(plan["folder"]).name


def test_all_that_commands_print_goes_through_one_module():
    """A bare `print` of a name would let it through: this finds one before a file with such a name does."""
    found = [
        f"{path.name}:{node.lineno}"
        for path in Path(ice_eval.cli.__file__).parent.rglob("*.py")
        if path.name not in {"_output.py", "__init__.py"}
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"print", "typer.echo", "sys.stdout.write"}
        if "__version__" not in ast.unparse(node)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("run", "--model", "toy", "--data", "x\udcff.jsonl"), 2, r"ice: 'x\\udcff.jsonl' is not UTF-8 text; rename"),
        (("run", "--model", "toy", "--task", "demo", "--prompt", "\udcff{text}"), 2, "is not UTF-8 text"),
        (
            ("run", "--model", "toy", "--task", "demo", "--n", "2", "--out", "a" * 300),
            2,
            "too long; give a shorter one",
        ),
        (("run", "--model", "~nobody-here/x", "--task", "demo"), 2, "no such folder: ~nobody-here/x"),
        (("bench", "--preset", "none", "--data-dir", "~nobody-here"), 2, "no preset 'none'"),
    ],
)
def test_names_that_no_file_can_have_are_told_in_a_line(ice, arguments, code, message):
    done = ice(*arguments)
    assert done.code == code
    assert re.search(message, done.err)
    assert "Traceback" not in done.err and not list(Path().iterdir())
