"""What makes a run the run it is: the fields that define its rows."""

import datetime
import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ice_eval._registry import plugin_packages
from ice_eval.errors import ConfigError
from ice_eval.results.folder import RunFolder
from ice_eval.results.records import Manifest, Scalar

_LONGEST = 80
"""Bytes of a name in that of a file; file systems take 255 for all of it."""
_RESERVED = frozenset(
    ["CON", "PRN", "AUX", "NUL", *(f"{port}{number}" for port in ("COM", "LPT") for number in range(1, 10))]
)
"""Names that Windows keeps for devices, whatever follows a full stop after them."""


def content_hash(content: Any) -> str:
    """Tells one content, as JSON writes it, from others."""
    return hashlib.sha256(_canonical(content)).hexdigest()[:32]


def content_hash_of_all(items: Iterable[Any]) -> str:
    """`content_hash` of the list of items, one at a time: data may be large."""
    digest = hashlib.sha256(b"[")
    for place, item in enumerate(items):
        digest.update((b"," if place else b"") + _canonical(item))
    digest.update(b"]")
    return digest.hexdigest()[:32]


def _canonical(content: Any) -> bytes:
    return json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode()


def config_hash(identity: Mapping[str, object]) -> str:
    """Names a run; the default folder carries it."""
    return content_hash(identity)


def refuse_other_run(path: object, stored: Mapping[str, Scalar], asked: Mapping[str, Scalar]) -> None:
    """A folder continues only the run it holds.

    Raises:
        ConfigError: It holds another one; every field that differs is named.
    """
    differ = [
        f"{name} is {stored.get(name)!r} there and {asked.get(name)!r} here"
        for name in dict.fromkeys([*asked, *stored])
        if stored.get(name) != asked.get(name)
    ]
    if differ:
        raise ConfigError(
            f"{path} holds another run: {'; '.join(differ)}. Use another --out, or the same settings to continue it."
        )


def stored_run(folder: RunFolder, asked: Mapping[str, Scalar]) -> Manifest | None:
    """The manifest of the run that is to be continued, if the folder holds one.

    Raises:
        ConfigError: The folder holds another run, or what no run left there.
    """
    if folder.is_new:
        if folder.is_foreign:
            raise ConfigError(f"{folder.path} is there and holds no run; choose an --out that is empty or new.")
        return None
    manifest = RunFolder.existing(folder.path).manifest()
    refuse_other_run(folder.path, manifest.identity, asked)
    return manifest


def versions_of(packages: Sequence[str]) -> dict[str, str]:
    """Versions of Python, of this package, of others that are installed, and of all that bring plug-ins."""
    found = {"python": platform.python_version()}
    for name in ("ice-eval", *packages, *plugin_packages()):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def slug(name: str) -> str:
    """A name as part of a file's, which any file system takes: no separators or controls, not hidden, long or empty."""
    kept = "".join(c if c.isalnum() or c in "-_." else "-" for c in name).strip("-.")
    cut = kept.encode("utf-8")[:_LONGEST].decode("utf-8", "ignore").rstrip("-.")
    return f"run-{cut}" if cut.partition(".")[0].upper() in _RESERVED else cut or "run"


def now() -> str:
    """The time, in UTC."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
