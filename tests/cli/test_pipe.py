"""The command as a process of its own: plain output, one line for bad input, no library that is not needed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ice_eval
from ice_eval.report.colours import verdict_of
from ice_eval.results import RunFolder

ANSI = re.compile(r"\x1b\[")


COMMAND = "from ice_eval.cli import main; main()"
THEN_TORCH = """
import sys
from ice_eval.cli import main
try:
    main()
finally:
    print("torch" in sys.modules, file=sys.stderr)
"""


def piped(*arguments, cwd, code=COMMAND):
    clean = {k: v for k, v in os.environ.items() if k not in {"FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "COLUMNS"}}
    clean["PYTHONPATH"] = str(Path(ice_eval.__file__).parents[1])  # wherever it is imported from, in any folder
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=clean)


@pytest.fixture(scope="module")
def toy_run(tmp_path_factory):
    """A folder with a run of the toy in it, what was printed, and whether torch was loaded."""
    folder = tmp_path_factory.mktemp("piped")
    done = piped(
        "run", "--model", "toy", "--task", "demo", "--m", "6", "--full", "--out", "run", cwd=folder, code=THEN_TORCH
    )
    assert done.returncode == 0, done.stderr
    *messages, torch = done.stderr.splitlines()
    return folder, done.stdout, "\n".join(messages), torch


def test_output_through_a_pipe_is_plain_and_whole(toy_run):
    folder, out, err, _ = toy_run
    assert not ANSI.search(out + err) and "\r" not in out + err
    assert "rows/s" in err and "rows/s" not in out
    # No cell is cut off for want of a terminal's width.
    for line in RunFolder.existing(folder / "run").summary().configurations:
        row = rf"^{line.attribution}  +{line.operator}  +.*  {verdict_of(line)} *$"
        assert re.search(row, out, re.MULTILINE)
    assert "…" not in out


def test_a_run_of_the_toy_and_its_report_load_no_torch(toy_run):
    assert toy_run[-1] == "False"


def test_help_through_a_pipe_is_plain(tmp_path):
    done = piped("run", "--help", cwd=tmp_path)
    assert done.returncode == 0 and not ANSI.search(done.stdout) and "--attributions" in done.stdout


def test_bad_input_through_a_pipe_is_one_line(tmp_path):
    done = piped("list", "nothing", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("ice: cannot list 'nothing'")
