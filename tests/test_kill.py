"""A run that is killed, however often and wherever, ends as if nothing had happened."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest
from tests import small_runs
from tests.rows import ledger_rows

from ice_eval.files import DRAFT
from ice_eval.pipeline import Silent
from ice_eval.results import RunFolder

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL and fork")

# Runs happen in forks of one process that has imported everything; that process kills them.
SETUP = """
import os, random, signal, sys, time
from pathlib import Path

import pandas, pyarrow.dataset  # pyarrow imports them on first use: once here, not after every fork
import ice_eval.api
from ice_eval.models.toy import Toy
from ice_eval.tasks import Records, Task

texts = [" ".join(f"w{(7 * i + j * j) % 211}" for j in range(7 + i % 4)) + " awful great dull" for i in range(96)]
task = Task(
    data=Records([{"text": text, "label": i % 2} for i, text in enumerate(texts)]),
    prompt="Review: {text}\\nSentiment:",
    label_words={"negative": " negative", "positive": " positive"},
    name="kill",
)

class Slow(Toy):
    pause = 0.0
    def log_scores(self, batch, labels, *, prefix=0):
        time.sleep(self.pause)
        return super().log_scores(batch, labels, prefix=prefix)

def run(out, **settings):
    settings = {"attributions": ["attention", "random"], "m": 10, "token_budget": 512} | settings
    return ice_eval.api.evaluate(Slow(), task, out=out, **settings)

def start(work):
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
        os._exit(0)
    except BaseException as exc:
        print(f"{type(exc).__name__}: {exc}", file=sys.stderr, flush=True)
        os._exit(1)

def wait(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

os.fsync = lambda handle: None  # a killed process loses nothing that it wrote; only a crash of the machine does
root = Path(sys.argv[1])
"""

AT_RANDOM = """
Slow.pause = 0.02
began = time.monotonic()
assert wait(start(lambda: run(root / "reference"))) == 0
whole = time.monotonic() - began
moments = random.Random(20240601)
for _ in range(int(sys.argv[2])):
    pid = start(lambda: run(root / "killed"))
    time.sleep(moments.uniform(0.05, float(sys.argv[3])) * whole)
    os.kill(pid, signal.SIGKILL)
    print("killed" if wait(pid) == -signal.SIGKILL else "too late", len(list((root / "killed").glob("inputs/part-*"))))
print("continued", wait(start(lambda: run(root / "killed"))))
"""

# Every file is renamed into place, so the moments just before and just after each rename are all the states that a
# kill can leave.
AT_EVERY_RENAME = """
def die_at(count, after):
    rename, seen = Path.replace, [0]
    def replace(self, target):
        seen[0] += 1
        if seen[0] == count and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        done = rename(self, target)
        if seen[0] == count and after:
            os.kill(os.getpid(), signal.SIGKILL)
        return done
    Path.replace = replace

small = {"n": 20, "operators": ["delete"], "attributions": ["random"]}

def killed(out, count, after):
    die_at(count, after)
    run(out, **small)

assert wait(start(lambda: run(root / "reference", **small))) == 0
for count in range(1, 100):
    for after in (False, True):
        out = root / f"{count:02d}-{'after' if after else 'before'}"
        code = wait(start(lambda: killed(out, count, after)))
        if code == 0:
            print("renames", count - 1)
            sys.exit(0)
        assert code == -signal.SIGKILL, code
        print(out.name, wait(start(lambda: run(out, **small))))
"""

INTERRUPTED = """
from ice_eval.cli import main
plain = Toy.log_scores
out = Path(sys.argv[-1])
def log_scores(self, batch, labels, *, prefix=0):
    if list(out.glob("inputs/*.parquet")):
        out.with_suffix(".second").touch()  # the second part is in hand
    time.sleep(float(os.environ["PAUSE"]))
    return plain(self, batch, labels, prefix=prefix)
Toy.log_scores = log_scores
main()
"""


def forks(code, root, *arguments):
    """The words of each line that a program of forks prints, and what the forks said on standard error."""
    # Without threads of its own a process can be forked safely.
    quiet = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-c", SETUP + code, root, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=quiet)
    assert done.returncode == 0, done.stderr
    return [tuple(line.split(" ")) for line in done.stdout.splitlines()], done.stderr


def assert_same_run(path, reference):
    for name in ("summary.json", "examples.parquet"):
        assert (path / name).read_bytes() == (reference / name).read_bytes(), path / name
    assert not list(path.rglob(f"{DRAFT}*"))
    ours, theirs = RunFolder.existing(path), RunFolder.existing(reference)
    assert ours.damage() == []
    found, expected = (ledger_rows(run) for run in (ours, theirs))
    assert set(Counter(row.key for row in found).values()) == {1}, path
    assert sorted(found, key=repr) == sorted(expected, key=repr), path
    assert [ours.inputs(part) for part in ours.parts()] == [theirs.inputs(part) for part in theirs.parts()]
    assert ours.manifest().status == "complete"
    assert ours.manifest().cost.rows_by_kind == theirs.manifest().cost.rows_by_kind


def assert_kills_change_nothing(root, n_kills, *, reach):
    """Kill a run again and again, each time up to `reach` of its whole time after it was continued."""
    [*kills, continued], errors = forks(AT_RANDOM, root, n_kills, reach)
    assert len(kills) == n_kills
    n_parts = [int(parts) for _, parts in kills]
    assert sum(how == "killed" for how, _ in kills) >= n_kills / 2, "the run ended before most kills"
    assert len(set(n_parts)) >= 2, f"all kills found the run at the same part: {n_parts}"
    assert continued == ("continued", "0"), errors
    assert_same_run(root / "killed", root / "reference")


def test_ten_kills_at_random_moments_change_nothing(tmp_path):
    assert_kills_change_nothing(tmp_path, 10, reach=0.4)


@pytest.mark.slow
def test_a_hundred_kills_at_random_moments_change_nothing(tmp_path):
    # Most come before a part is finished, and the run gets on little by little.
    assert_kills_change_nothing(tmp_path, 100, reach=0.2)


@pytest.fixture(scope="module")
def killed_at_renames(tmp_path_factory):
    root = tmp_path_factory.mktemp("renames")
    [*points, (_, n_renames)], errors = forks(AT_EVERY_RENAME, root)
    # At least: manifest, ledger and inputs of two parts, manifest, examples, summary.
    assert int(n_renames) >= 8
    assert len(points) == 2 * int(n_renames)
    return root, dict(points), errors


def test_a_kill_at_any_rename_can_be_continued(killed_at_renames):
    _, codes, errors = killed_at_renames
    assert set(codes.values()) == {"0"}, errors


def test_a_kill_at_any_rename_changes_nothing(killed_at_renames):
    root, codes, _ = killed_at_renames
    for name in codes:
        assert_same_run(root / name, root / "reference")


def test_an_interrupt_says_how_to_continue_and_the_same_command_does(tmp_path):
    def command(out, pause):
        arguments = ["run", "--model", "toy", "--task", "demo", "--m", "10", "--operators", "delete", "--out", out]
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        code = [sys.executable, "-c", SETUP + INTERRUPTED, *arguments]
        return subprocess.Popen(code, env={**os.environ, "PAUSE": str(pause)}, **options)

    out = tmp_path / "run"
    child = command(out, 0.2)
    deadline = time.monotonic() + 60
    while not out.with_suffix(".second").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    stdout, stderr = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "Traceback" not in stderr and stdout == ""
    assert not (out / "summary.json").exists()
    said = " ".join(stderr.split())
    assert "finishing this part" in said and "run the same command to continue" in said
    assert 2 <= len(RunFolder(out).parts()) < 4, "the part in hand is written, and no other one begins"

    both = [command(folder, 0) for folder in (out, tmp_path / "whole")]
    for child in both:
        _, stderr = child.communicate(timeout=60)
        assert child.returncode == 0, stderr
    assert_same_run(out, tmp_path / "whole")


class Impatient(Silent):
    """Asks a run to stop as soon as it has scored a row."""

    rows = 0

    def advance(self, rows, *, scored=True):
        self.rows += rows

    def asked_to_stop(self):
        return self.rows > 0


def test_a_run_that_is_asked_to_stop_finishes_the_part_in_hand(tmp_path):
    out, found = tmp_path / "run", small_runs.texts(40)
    with pytest.raises(KeyboardInterrupt):
        small_runs.run(found, m=5, out=out, reporter=Impatient())
    assert RunFolder(out).parts() == [0] and RunFolder(out).manifest().status == "running"
    small_runs.run(found, m=5, out=out)
    small_runs.run(found, m=5, out=tmp_path / "whole")
    assert_same_run(out, tmp_path / "whole")
