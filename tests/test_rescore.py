"""All statistics again, in a process that has no model library, for every kind of run."""

import subprocess
import sys

import pytest
from tests.results.test_schemas import assert_conforms
from tests.small_runs import files_of, picks, results_of, run, texts

from ice_eval.report import notes, tables

KINDS = {
    "fixed": {"m": 12, "k": [0.2, 0.35]},
    "matched": {"m": 12, "nulls": ["size", "contiguity", "position", "frequency", "sub-word"]},
    "examples": {"adaptive": "examples", "nulls": ["size", "position"]},
    "dataset": {"adaptive": "dataset"},
    "paper": {"adaptive": "examples", "protocol": "paper"},
}
WITHOUT = """
import sys

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"torch", "transformers", "tokenizers", "datasets", "accelerate"}:
            raise ImportError(f"{name} is not installed here")

sys.meta_path.insert(0, Refused())
from ice_eval.cli import main

folders = sys.argv[1:]
for folder in folders:
    sys.argv = ["ice", "rescore", folder, "--json"]
    try:
        main()
    except SystemExit as exc:
        if exc.code:
            sys.exit(f"{folder}: {exc.code}")
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of every kind, and its results."""
    root = tmp_path_factory.mktemp("kinds")
    methods = {"hat": picks("hat"), "strong": picks("strong", towards=4)}
    data = [{"text": text, "label": i % 2} for i, text in enumerate([*texts(10, words=(14, 20)), "one", ""])]
    runs = {
        name: run(data, attributions=methods, operators=["delete", "infill"], out=root / name, **settings)
        for name, settings in KINDS.items()
    }
    return {name: (each, results_of(each)) for name, each in runs.items()}


def test_rescoring_without_a_model_library_gives_the_same_bytes(finished):
    folders = [each.path for each, _ in finished.values()]
    before = {folder: {p: c for p, c in files_of(folder).items() if p.suffix == ".parquet"} for folder in folders}
    for folder in folders:
        for name in ("summary.json", "examples.parquet"):
            (folder / name).write_text("")
    done = subprocess.run([sys.executable, "-c", WITHOUT, *folders], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for name, (each, results) in finished.items():
        assert results_of(each) == results, name
    assert before == {
        folder: {p: c for p, c in files_of(folder).items() if p.suffix == ".parquet"} for folder in folders
    }


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_run_conforms_to_the_schemas(finished, kind):
    found, _ = finished[kind]
    assert {line.error is not None for line in found.folder.examples()} == {True, False}
    assert_conforms(found.path)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_run_can_be_reported(finished, kind):
    found, _ = finished[kind]
    summary = found.folder.summary()
    assert [table.title for table in tables([summary])] == [
        "Faithfulness",
        "Head to head",
        "Differences between attributions",
        "Operator agreement",
        "Over all operators",
    ]
    flags = {flag for line in summary.configurations for flag in line.flags}
    told = " ".join(notes(summary))
    assert all(f"{flag}" in told for flag in flags)
    page = found.report().read_text()
    assert "Over all operators" in page


def test_several_kinds_of_runs_are_reported_side_by_side(finished):
    summaries = [each.folder.summary() for each, _ in finished.values()]
    table = tables(summaries)[0]
    assert "null" in table.header and len(table.rows) == sum(len(each.configurations) for each in summaries)
    assert notes(*summaries)
