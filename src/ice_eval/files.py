"""Files on disk: atomic writes, locks, and plain values read from JSON and YAML."""

import contextlib
import errno
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from ice_eval.errors import ConfigError, DataError, StorageError

MOST_VALUES = 100_000
"""Limit of values in a YAML file, aliases expanded: a few lines can expand to billions."""
DRAFT = ".draft-"
"""Prefix of unfinished files; a left-over one belongs to a killed run and may be removed."""
_DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Errors that are independent of the path: no space, no quota, a limit on file sizes, a failing disk."""


def cache_folder() -> Path:
    """Return `$ICE_CACHE`, else `ice-eval` in the platform's user cache."""
    if given := os.environ.get("ICE_CACHE"):
        return home_expanded(given)
    import platformdirs

    return platformdirs.user_cache_path("ice-eval", appauthor=False, opinion=False)


def home_expanded(path: str | Path) -> Path:
    """Return the path with `~` expanded; the name of an unknown user stays unchanged."""
    return Path(os.path.expanduser(path))


def as_text(path: Path) -> str:
    """Return a path as valid text; its bytes may be invalid in the locale's encoding."""
    return os.fsencode(path).decode("utf-8", errors="replace")


@contextlib.contextmanager
def readable(path: object, expected: str = "") -> Iterator[None]:
    """Turn errors of a file that cannot be read as UTF-8 into DataError."""
    try:
        yield
    except UnicodeDecodeError as exc:
        raise DataError(f"{path} is not UTF-8 text ({exc.reason} at byte {exc.start}); save it as UTF-8.") from exc
    except OSError as exc:
        raise DataError(f"{path} cannot be read: {exc.strerror}.{expected}") from exc


def json_in(text: str, origin: object) -> Any:
    """Return the JSON value of a text; raise DataError if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise DataError(f"{origin} is not JSON ({why_no_json(exc)}).") from exc


@contextlib.contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn errors of a full or failing disk into StorageError; other errors pass, since callers can explain them."""
    try:
        yield
    except OSError as exc:
        if exc.errno not in _DISK_ERRORS:
            raise
        raise StorageError(
            f"{path} cannot be written: {exc.strerror}. Earlier files are intact: free some space, then run "
            "the same command to continue."
        ) from exc


def folder_in_place(path: object) -> ConfigError:
    return ConfigError(f"{path}: a folder is in the place of this file. Move it away or rename it.")


def check_target(path: Path) -> None:
    """Raise ConfigError if a folder, a pipe or a device has the name of a file to write: it would be replaced."""
    if path.is_dir():
        raise folder_in_place(path)
    if path.exists() and not path.is_file():
        raise ConfigError(
            f"{path} is a pipe or a device, and a file is written and put in its place. Give the name of a file, and "
            "pass that on afterwards."
        )


@contextlib.contextmanager
def write_atomically(path: Path) -> Iterator[BinaryIO]:
    """Write under another name in the same folder, flush to disk, rename: a kill leaves the old file or the new one.

    Raises:
        ConfigError: Something else than a file has this name.
        StorageError: The disk is full or failing; the old file is unchanged.
    """
    check_target(path)
    with disk_errors(path):
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


def write_asked(path: Path, content: bytes) -> None:
    """Write a file under a path that a person gave, and make its folder; raise `ConfigError` if that fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(path) as stream:
            stream.write(content)
    except OSError as exc:
        raise ConfigError(f"{path} cannot be written: {exc.strerror}.") from exc


def append(path: Path, content: bytes) -> None:
    """Append to a file and flush to disk; a kill or a StorageError may leave only the beginning of `content`."""
    check_target(path)
    with disk_errors(path), path.open("ab", buffering=0) as stream:
        while content:
            content = content[stream.write(content) :]
        os.fsync(stream.fileno())


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to disk; without it a rename may be lost."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold a lock against other writers, or raise ConfigError. It ends with the process, even if that is killed."""
    import filelock

    # A file of its own: on Windows a lock on the data would keep readers out too.
    lock = path / ".lock" if path.is_dir() else path.with_name(f".{path.name}.lock")
    holder = filelock.FileLock(lock, timeout=0, thread_local=False)
    try:
        holder.acquire()
    except filelock.Timeout as exc:
        raise ConfigError(f"another process is writing to {path}; wait for it or use another --out.") from exc
    except OSError as exc:
        if lock.is_dir():
            raise folder_in_place(lock) from exc
        raise ConfigError(f"{path} cannot be written to: {exc.strerror}; choose another --out.") from exc
    try:
        yield
    finally:
        holder.release()


def write_json(path: Path, content: Any) -> None:
    """Write JSON in the given order of keys; NaN is an error, since other readers refuse it."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    with write_atomically(path) as stream:
        stream.write(text.encode("utf-8") + b"\n")


def read_json(path: Path) -> dict[str, Any]:
    """Return the object of a JSON file, or raise ConfigError."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as exc:
        raise ConfigError(f"{path} is gone.") from exc
    except (ValueError, OSError, RecursionError) as exc:  # not JSON, or not text
        raise ConfigError(f"{path} is damaged: {exc}.") from exc
    if not isinstance(content, dict):
        raise ConfigError(f"{path} is damaged: an object is expected, not {type(content).__name__}.")
    return content


def why_no_json(exc: ValueError | RecursionError) -> str:
    """Return a short description of an error of `json.loads`."""
    if isinstance(exc, json.JSONDecodeError):
        where = f"line {exc.lineno}, column {exc.colno}" if exc.lineno > 1 else f"column {exc.colno}"
        return f"{exc.msg} at {where}"
    return "it is nested too deeply" if isinstance(exc, RecursionError) else "a number has too many digits"


def read_yaml(path: Path, *, what: str = "", advice: str = "") -> object:
    """Return the plain values of a YAML file, or raise ConfigError; no tag can run code.

    Messages call the file `what`, and end with `advice` if it does not exist.
    """
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as exc:
        raise ConfigError(f"{what} {path} cannot be read: {exc.strerror}. {advice}".strip()) from exc
    except (yaml.YAMLError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{path} is not YAML: {exc}") from exc
    except Exception as exc:  # month 99, a number of 5,000 digits: the library raises whatever it runs into
        raise ConfigError(f"{path} is not YAML: {type(exc).__name__}, {exc}.") from exc
    if _n_values(content, {}) > MOST_VALUES:
        raise ConfigError(f"{path} repeats its parts by aliases until they are more than {MOST_VALUES:,} values.")
    return content


def _n_values(content: object, known: dict[int, int]) -> int:
    """Return the number of values with every alias expanded; above `MOST_VALUES` for a part that contains itself."""
    if not isinstance(content, dict | list):
        return 1
    if id(content) not in known:
        known[id(content)] = MOST_VALUES + 1  # what it counts as inside itself
        parts = content.values() if isinstance(content, dict) else content
        known[id(content)] = 1 + sum(_n_values(part, known) for part in parts)
    return known[id(content)]
