"""The command as a process of its own: plain output, one line for bad input, no library that is not needed."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.cli.commands import PROMPT

import ice_eval
from ice_eval.results import RunFolder

ANSI = re.compile(r"\x1b\[")


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
