"""Files that are there whole or not at all."""

import contextlib
import errno
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO

from ice_eval.errors import ConfigError, StorageError

MOST_VALUES = 100_000
"""In a YAML file, each counted as often as its aliases repeat it: a few lines can stand for billions."""
DRAFT = ".draft-"
"""Prefix of files that are being written; one that is left over belongs to a killed run and may be removed."""


_OF_THE_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Errors that no other path would have avoided: no room, no quota, a limit on the size of files, a failing disk."""


@contextlib.contextmanager
def told_of_the_disk(path: Path) -> Iterator[None]:
    """Say in one sentence that a disk is full or failing.

    Raises:
        StorageError: It is. Other errors of the system pass: whoever chose the path knows what to say of them.
    """
    try:
        yield
    except OSError as exc:
        if exc.errno not in _OF_THE_DISK:
            raise
        raise StorageError(
            f"{path} cannot be written: {exc.strerror}. What was written before is whole: make room, and the same "
            "command again continues."
        ) from exc


@contextlib.contextmanager
def write_atomically(path: Path) -> Iterator[BinaryIO]:
    """Write under another name in the same folder, flush to disk, rename: a kill leaves the old file or the new one.

    Raises:
        StorageError: The disk is full or failing; the old file is there.
    """
    with told_of_the_disk(path):
        handle, name = tempfile.mkstemp(prefix=DRAFT, dir=path.parent)
        draft = Path(name)
        try:
            with os.fdopen(handle, "wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            draft.chmod(0o644)  # mkstemp makes files that only their owner can read
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
        sync_folder(path.parent)


def append(path: Path, content: bytes) -> None:
    """Add to a file; on return it is on disk. A kill may leave the beginning of `content`.

    Raises:
        StorageError: The disk is full or failing; the beginning of `content` may be there.
    """
    with told_of_the_disk(path), path.open("ab", buffering=0) as stream:
        while content:
            content = content[stream.write(content) :]
        os.fsync(stream.fileno())


def home_expanded(path: str | Path) -> Path:
    """With the home folder in place of `~`; the name of a user who is not there stays as it is."""
    return Path(os.path.expanduser(path))


def write_json(path: Path, content: Any) -> None:
    """JSON in the given order of keys; NaN is an error, since other readers refuse it."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    with write_atomically(path) as stream:
        stream.write(text.encode("utf-8") + b"\n")


def as_text(path: Path) -> str:
    """A path as any file and page can hold it; its bytes may be no text, or none that the locale knows."""
    return os.fsencode(path).decode("utf-8", errors="replace")


def lock_out_others(stream: IO[Any], path: Path) -> None:
    """Refuse a second process that writes to `path`. The lock goes with the open file, however the process ends.

    Raises:
        ConfigError: Another process holds the lock.
    """
    if os.name != "posix":
        return
    import fcntl

    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as exc:
        raise ConfigError(f"another process is writing to {path}; wait for it or use another --out.") from exc


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Refuse a second process on the same folder. The lock goes with the process, however it ends.

    Raises:
        ConfigError: Another process holds it, or it cannot be written to.
    """
    try:
        stream = (folder / ".lock").open("w")
    except OSError as exc:
        raise ConfigError(f"{folder} cannot be written to: {exc.strerror}; choose another --out.") from exc
    with stream:
        lock_out_others(stream, folder)
        yield


def read_json(path: Path) -> dict[str, Any]:
    """The object of a JSON file.

    Raises:
        ConfigError: There is none.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as exc:  # not JSON, not text, not there
        raise ConfigError(f"{path} is damaged: {exc}.") from exc
    if not isinstance(content, dict):
        raise ConfigError(f"{path} is damaged: an object is expected, not {type(content).__name__}.")
    return content


def why_no_json(exc: ValueError | RecursionError) -> str:
    """What `json.loads` stumbled over, in a few words."""
    if isinstance(exc, json.JSONDecodeError):
        where = f"line {exc.lineno}, column {exc.colno}" if exc.lineno > 1 else f"column {exc.colno}"
        return f"{exc.msg} at {where}"
    return "it is nested too deeply" if isinstance(exc, RecursionError) else "a number has too many digits"


def read_yaml(path: Path, *, what: str = "", advice: str = "") -> object:
    """What a YAML file holds: plain values, never an object that could run code.

    Args:
        path: The file.
        what: What a message calls it, before its path.
        advice: What to do where it is not there.

    Raises:
        ConfigError: It cannot be read, is no YAML, or repeats its parts without end.
    """
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as exc:
        raise ConfigError(f"{what} {path} cannot be read: {exc.strerror}. {advice}".strip()) from exc
    except (yaml.YAMLError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{path} is not YAML: {exc}") from exc
    except Exception as exc:  # a date of month 99, a number of 5,000 digits: the library raises what it stumbles over
        raise ConfigError(f"{path} is not YAML: {type(exc).__name__}, {exc}.") from exc
    if _n_values(content, {}) > MOST_VALUES:
        raise ConfigError(f"{path} repeats its parts by aliases until they are more than {MOST_VALUES:,} values.")
    return content


def _n_values(content: object, known: dict[int, int]) -> int:
    """How many values there are if every alias is written out; what holds itself has no end."""
    if not isinstance(content, dict | list):
        return 1
    if id(content) not in known:
        known[id(content)] = MOST_VALUES + 1  # what it counts as inside itself
        parts = content.values() if isinstance(content, dict) else content
        known[id(content)] = 1 + sum(_n_values(part, known) for part in parts)
    return known[id(content)]


def sync_folder(folder: Path) -> None:
    """A rename is on disk only when the folder that holds the names is."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
