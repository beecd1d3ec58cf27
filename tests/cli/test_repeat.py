"""The command that the report prints gives the same run again."""

import json
import shlex

import pytest

from ice_eval.report.provenance import command
from ice_eval.results import RunFolder

SMALL = ["--model", "toy", "--operators", "delete", "--attributions", "random", "--n", "2", "--m", "3"]
ADHOC = ["--data", "pairs.jsonl", "--prompt", r"{a}\n\t{b}:", "--labels", "no,yes"]
RUNS = {
    "defaults": ["--task", "demo"],
    "the paper's protocol": ["--task", "demo", "--protocol", "paper"],
    "a protocol without its scope": ["--task", "demo", "--protocol", "released", "--scope", "content"],
    "a protocol's own choices": ["--task", "demo", "--protocol", "released"],
    "adaptive data set": ["--task", "demo", "--adaptive", "dataset", "--m", "40"],
    "adaptive examples": ["--task", "demo", "--adaptive", "examples", "--m", "500"],
    "data of the name of a known task": ["--data", "sst2.jsonl", "--prompt", "{text}", "--labels", "no,yes"],
    "one field of two": [*ADHOC, "--explain", "b"],
    "fields in another order": [*ADHOC, "--explain", "b,a"],
    "all fields": ADHOC,
    "columns of other names": [*ADHOC[:3], "{text}", *ADHOC[4:], "--columns", "text=b,id=a"],
    "columns of a known task": ["--task", "demo", "--data", "pairs.jsonl", "--columns", "text=a"],
    "other words": ["--task", "sst2/minimal/few-shot", "--data", "reviews.jsonl"],
    "another prompt and other labels": [
        "--task", "demo", "--data", "reviews.jsonl", "--prompt", "{text} =", "--labels", "bad,good",
    ],
    "many settings": [
        "--task", "demo", "--k", "dynamic,0.3", "--sign", "abs", "--eraser", "--null", "size,position", "--seed", "7",
        "--direction", "necessity", "--unit", "word", "--calibration", "contextual", "--target", "gold",
        "--n-fills", "2", "--fills", "own", "--label-scoring", "full",
    ],
}  # fmt: skip


@pytest.fixture
def data(tmp_path):
    texts = ["a good and warm film", "a bad and cold plot"]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps({"a": t, "b": t[::-1]}) + "\n" for t in texts))
    for name in ("reviews", "sst2"):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in texts))


@pytest.mark.parametrize("options", RUNS.values(), ids=RUNS)
def test_the_printed_command_is_the_same_run(ice, data, tmp_path, options):
    assert ice("run", *SMALL, *options, "--out", "first").code == 0
    first = RunFolder.existing(tmp_path / "first").manifest()
    [program, *words] = shlex.split(command(first).replace("\\\n", " "))
    assert program == "ice"
    done = ice(*words, "--out", "again")
    assert done.code == 0, done.err
    again = RunFolder.existing(tmp_path / "again").manifest()
    assert again.config_hash == first.config_hash
    assert again.config == first.config


def test_a_task_file_that_says_more_than_flags_has_no_command(ice, data, tmp_path):
    lines = ["data: reviews.jsonl", 'prompt: "{text}:"', "labels: {'no': ' never', 'yes': ' always'}"]
    (tmp_path / "reviews.yaml").write_text("\n".join(lines))
    assert ice("run", *SMALL, "--task", "reviews.yaml", "--out", "first").code == 0
    assert command(RunFolder.existing(tmp_path / "first").manifest()) is None
