"""A disk that is full, failing or read-only: one message, nothing half-written, and the same command continues."""

import errno
import itertools
import json
import os
import subprocess
import sys

import pytest
from tests.small_runs import files_of, results_of, rows_of, run, texts

from ice_eval import files
from ice_eval.cli import main
from ice_eval.errors import ConfigError, StorageError
from ice_eval.files import DRAFT
from ice_eval.results import RunFolder

TEXTS = texts(20)
ARGUMENTS = {"m": 5}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return run(TEXTS, **ARGUMENTS, out=tmp_path_factory.mktemp("whole") / "run")


def failing(function, *, after, error):
    """A function of the system that works `after` times, and then no more."""
    calls = itertools.count()

    def call(*arguments, **options):
        if next(calls) >= after:
            raise OSError(error, os.strerror(error))
        return function(*arguments, **options)

    return call


class FullStream:
    """A file whose bytes do not all fit."""

    def __init__(self, stream):
        self._stream = stream

    def __getattr__(self, name):
        return getattr(self._stream, name)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._stream.close()

    def write(self, content):
        self._stream.write(content[: len(content) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def full_from(after):
    calls = itertools.count()

    def opened(*arguments, **options):
        stream = os.fdopen(*arguments, **options)
        return FullStream(stream) if next(calls) >= after else stream

    return opened


WAYS = {
    "half of the bytes fit": lambda patch, n: patch.setattr(files, "os", _PatchedOs(fdopen=full_from(n))),
    "bytes do not reach the disk": lambda patch, n: patch.setattr(
        files, "os", _PatchedOs(fsync=failing(os.fsync, after=n, error=errno.EIO))
    ),
}


class _PatchedOs:
    """The module `os` with one function of its own."""

    def __init__(self, **changed):
        vars(self).update(changed)

    def __getattr__(self, name):
        return getattr(os, name)


@pytest.mark.parametrize("way", WAYS)
def test_a_disk_that_fills_up_at_any_write_leaves_whole_files_and_the_run_continues(whole, tmp_path, way):
    for n_writes in itertools.count():
        folder = RunFolder(tmp_path / f"run-{n_writes}")
        with pytest.MonkeyPatch.context() as patch:
            WAYS[way](patch, n_writes)
            try:
                run(TEXTS, **ARGUMENTS, out=folder.path)
                break
            except StorageError as exc:
                assert str(exc).count("\n") == 0 and "free some space, then run the same command to continue" in str(
                    exc
                )
        assert not list(folder.path.rglob(f"{DRAFT}*"))
        assert folder.damage() == []
        for path in folder.path.glob("*.json"):
            json.loads(path.read_bytes())
        if n_writes % 4 == 0:
            continued = run(TEXTS, **ARGUMENTS, out=folder.path)
            assert rows_of(continued) == rows_of(whole) and results_of(continued) == results_of(whole)
    assert n_writes >= 8, "manifest, ledger and inputs of two parts, manifest, examples, summary"


RUN = "run --model toy --task demo --n 20 --m 5 --attributions random --operators delete".split()


@pytest.mark.skipif(os.name != "posix", reason="limits are POSIX limits")
def test_a_limit_of_the_system_ends_the_command_with_one_message_and_exit_1(tmp_path, monkeypatch):
    import resource

    def little_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (8_000, resource.RLIM_INFINITY))

    out = tmp_path / "run"
    command = [sys.executable, "-c", "from ice_eval.cli import main; main()", *RUN, "--out", out]
    failed = subprocess.run(command, capture_output=True, text=True, preexec_fn=little_room, timeout=120)
    assert failed.returncode == 1 and failed.stdout == ""
    said = [line for line in failed.stderr.splitlines() if line.startswith("ice: ")]
    assert len(said) == 1 and "part-000000-000.parquet cannot be written: File too large" in said[0]
    assert "Traceback" not in failed.stderr
    assert not list(out.rglob(f"{DRAFT}*")) and RunFolder(out).damage() == []
    monkeypatch.setattr(sys, "argv", ["ice", *RUN, "--out", str(out)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert not stopped.value.code and len(RunFolder(out).parts()) == 2


def test_a_read_only_folder_is_refused_before_anything_is_scored(whole, monkeypatch):
    before = files_of(whole.path)

    def opened(path, *arguments, **options):
        if os.path.basename(path) == ".lock":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return plain(path, *arguments, **options)

    plain = os.open
    monkeypatch.setattr(os, "open", opened)
    with pytest.raises(ConfigError, match=r"run cannot be written to: Read-only file system; choose another --out"):
        run(TEXTS, **ARGUMENTS, attributions=["first-k"], out=whole.path)
    with pytest.raises(ConfigError, match="cannot be written to: Read-only file system"):
        whole.rescore()
    assert files_of(whole.path) == before


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_refused(tmp_path):
    tmp_path.chmod(0o555)
    with pytest.raises(ConfigError, match="cannot be made: Permission denied; choose another --out"):
        run(TEXTS, **ARGUMENTS, out=tmp_path / "run")
    tmp_path.chmod(0o755)


def test_a_disk_that_becomes_read_only_in_the_middle_ends_with_one_message(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(files.tempfile, "mkstemp", failing(files.tempfile.mkstemp, after=2, error=errno.EROFS))
    monkeypatch.setattr(sys, "argv", ["ice", *RUN, "--out", str(tmp_path / "run")])
    with pytest.raises(SystemExit) as stopped:
        main()
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("ice: ")]
    assert stopped.value.code == 1 and said == ["ice: Read-only file system; run the same command to continue."]
