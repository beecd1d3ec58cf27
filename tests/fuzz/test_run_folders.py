"""Run folders with any file changed are shown, or refused with one message, by every command that reads them."""

import json
import shutil

import pytest
from tests.cli.commands import called
from tests.fuzz.mutations import changed_bytes, changed_json, changed_table, generator
from tests.small_runs import run, texts

from ice_eval.errors import ConfigError

N_FOLDERS = {"ordinary": 7, "slow": 300}
COMMANDS = {
    "report": ("--full",), "report --html": ("--html", "page.html"), "report --format": ("--format", "jsonl"),
    "show": ("--example", "0"), "measures": (), "compare": (), "rescore": (),
}  # fmt: skip
FILES = ("manifest.json", "summary.json", "manifest.json", "examples.parquet", "ledger", "inputs", "parts.sha256")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    run(texts(6), attributions=["occlusion", "random"], operators=["delete", "infill"], m=6, out=folder)
    return folder


def fuzz(finished, folder, capsys, *, n_folders, fixed):
    """Change a file of a run and read the run with every command; returns how many commands there were, and failed."""
    rng, tried, refused = generator(11, fixed=fixed), 0, 0
    for number in range(n_folders):
        name, path = FILES[number % len(FILES)], folder / "run"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(finished, path)
        file = path / name if "." in name else next((path / name).glob("*.parquet"))
        changes = {".json": (changed_json, changed_json, changed_bytes), ".parquet": (changed_table, changed_bytes)}
        several = changes.get(file.suffix, (changed_bytes,))
        changed = several[rng.integers(len(several))](file.read_bytes(), rng)
        file.write_bytes(changed)
        if file.suffix == ".parquet":
            (path / "parts.sha256").unlink()  # else every change of a part is found at once
        for command, options in COMMANDS.items():
            others = [finished] if command == "compare" else []
            code = called(
                command.partition(" ")[0], *others, path, *(o.replace("page", str(path / "page")) for o in options)
            )
            said = capsys.readouterr().err
            assert code in (0, 2), (command, name, changed, said)
            assert "Traceback" not in said and said.count("ice: ") <= 3, (command, name, changed, said)
            assert code == 0 or said.count("ice: ") >= 1
            tried, refused = tried + 1, refused + (code == 2)
    return tried, refused


def test_every_changed_folder_is_read_or_refused(finished, tmp_path, capsys, record_property):
    tried, refused = fuzz(finished, tmp_path, capsys, n_folders=N_FOLDERS["ordinary"], fixed=True)
    assert tried == len(COMMANDS) * N_FOLDERS["ordinary"] and refused > tried / 4
    record_property("fuzz_cases", tried)


@pytest.mark.slow
def test_many_other_changed_folders_are_read_or_refused(finished, tmp_path, capsys, record_property):
    tried, refused = fuzz(finished, tmp_path, capsys, n_folders=N_FOLDERS["slow"], fixed=False)
    assert refused > tried / 4
    record_property("fuzz_cases", tried)


def continued(finished, folder, *, n_folders, fixed):
    """Change the manifest of a run and continue the run; returns how many were refused."""
    rng, refused = generator(5, fixed=fixed), 0
    for number in range(n_folders):
        path = folder / "run"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(finished, path)
        changed = changed_json((finished / "manifest.json").read_bytes(), rng)
        (path / "manifest.json").write_bytes(changed)
        methods = ["occlusion", "random", *(["longest-words"] if number % 2 else [])]
        try:
            run(texts(6), attributions=methods, operators=["delete", "infill"], m=6, out=path)
        except ConfigError as exc:
            assert str(exc).strip(), changed
            refused += 1
    return refused


def test_every_changed_run_is_continued_or_refused(finished, tmp_path, record_property):
    assert continued(finished, tmp_path, n_folders=40, fixed=True) > 20
    record_property("fuzz_cases", 40)


@pytest.mark.slow
def test_many_other_changed_runs_are_continued_or_refused(finished, tmp_path, record_property):
    assert continued(finished, tmp_path, n_folders=400, fixed=False) > 200
    record_property("fuzz_cases", 400)


def test_a_label_that_is_no_class_is_named_where_a_run_is_continued(finished, tmp_path):
    path = shutil.copytree(finished, tmp_path / "run")
    content = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps({**content, "label_ids": [[0], []]}))
    with pytest.raises(ConfigError, match="are the classes 0, none of the model, and here they are 0, 1; use another"):
        run(texts(6), attributions=["occlusion", "random"], operators=["delete", "infill"], m=6, out=path)


HAND_EDITS = {
    "labels that are a number": ("manifest.json", ["labels"], 3, "manifest.json is damaged: labels is 3 (a list is"),
    "settings that are a text": ("manifest.json", ["config"], "m = 6", "config is 'm = 6' (an object is expected)"),
    "an unknown version": ("manifest.json", ["schema"], 99, "is in format 99, and this version reads format 3"),
    "a version that is a text": ("manifest.json", ["schema"], "3", "is in format 3, and this version reads format 3"),
    "no sets": ("manifest.json", ["config", "m"], 0, "manifest.json is damaged: config: m = 0: at least 1 is needed"),
    "10^30 sets": ("manifest.json", ["config", "m"], 10**30, "config.m is a number of more than 64 bits"),
    "parts of no example": ("manifest.json", ["part_size"], 0, "damaged: part_size is 0 (a number from 1 on is"),
    "a budget of no token": ("manifest.json", ["token_budget"], -1, "damaged: token_budget is -1 (a number from 1 on"),
    "no operators": ("manifest.json", ["config", "operators"], [], "config: operators is empty"),
    "k of 3": ("manifest.json", ["config", "k"], [3.0], "config: k = 3.0: a share between 0 and 1 is expected"),
    "a text for a rate": ("summary.json", ["configurations", 0, "win_rate"], "high", "configurations.0.win_rate is"),
    "a rate of 10^400": ("summary.json", ["configurations", 0, "win_rate"], 10**400, "a finite number is expected"),
    "no method": ("manifest.json", ["attributions"], {"random": {}}, "it has no attributions."),
}


@pytest.mark.parametrize("name", HAND_EDITS)
def test_a_hand_edited_folder_is_refused_with_file_and_field(finished, tmp_path, capsys, name):
    file, place, value, message = HAND_EDITS[name]
    path = shutil.copytree(finished, tmp_path / "run")
    content = holder = json.loads((path / file).read_text())
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    (path / file).write_text(json.dumps(content))
    code = called("report", path, "--html", tmp_path / "page.html")
    said = capsys.readouterr().err
    assert code == 2 and message in said and "Traceback" not in said and not (tmp_path / "page.html").exists()
    if file == "manifest.json":
        assert called("rescore", path) == 2 and message in capsys.readouterr().err
