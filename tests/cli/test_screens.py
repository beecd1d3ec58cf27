"""What commands print in a terminal of 80 columns: the conclusion, on one screen."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

import ice_eval

STYLE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\r")
MANY = (
    "--attributions", "attention,gradient,input-x-gradient,occlusion,longest-words,random",
    "--operators", "delete,infill,mask-unk", "--direction", "sufficiency,necessity", "--k", "0.1,0.2,0.3,0.4",
)  # fmt: skip
"""144 configurations."""
COMMANDS = {
    "run": ("run", "--model", "toy", "--task", "demo", "--n", "12", "--m", "5", *MANY, "--out", "many"),
    "report": ("report", "many"),
    "reports": ("report", "many", "few"),
    "compare": ("compare", "few", "other"),
    "plan": ("plan", "--model", "toy", "--task", "demo", "--n", "60", "--pilot", "8"),
    "list": ("list",),
    "show": ("show", "many"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("screens")
    for seed, name in enumerate(("few", "other")):
        ice_eval.evaluate("toy", "demo", n=12, m=5, seed=seed, out=found / name)
    return found


def screen(folder, arguments):
    """The lines that a command prints in a terminal of 80 columns, without progress."""
    leader, follower = pty.openpty()
    environment = {
        **os.environ,
        "COLUMNS": "80",
        "TERM": "xterm",
        "PYTHONPATH": str(Path(ice_eval.__file__).parents[1]),
    }
    command = [sys.executable, "-c", "from ice_eval.cli import main; main()", *arguments]
    done = subprocess.Popen(command, cwd=folder, env=environment, stdout=follower, stderr=subprocess.PIPE, text=True)
    os.close(follower)
    content = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # Linux says so when the command has ended
            part = b""
        if not part:
            break
        content += part
    os.close(leader)
    errors = done.communicate()[1]
    assert done.returncode == 0, errors
    return STYLE.sub("", content.decode()).rstrip("\n").split("\n"), errors


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_prints_at_most_one_screen(folder, name):
    if name in ("report", "reports", "show") and not (folder / "many").is_dir():
        screen(folder, COMMANDS["run"])
    lines, errors = screen(folder, COMMANDS[name])
    assert 3 < len(lines) <= 40
    assert max(map(cell_len, lines)) <= 80
    if name == "run":
        assert errors.startswith("loading toy …\n")
        assert lines[0].startswith("Attention is ") and "--full" in "\n".join(lines)
