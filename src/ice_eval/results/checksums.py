"""`parts.sha256`: the checksum of every part file, as `sha256sum --check` reads it."""

import hashlib
import re
from collections.abc import Collection, Mapping
from pathlib import Path

from ice_eval.files import append, write_atomically

CHECKSUMS = "parts.sha256"
_LINE = re.compile(r"([0-9a-f]{64})  ((?:ledger|inputs)/part-\d{6}-\d{3}\.parquet)")


def checksum(content: bytes) -> str:
    """SHA-256, as hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


class Checksums:
    """A line for every part file: its checksum, and its path within the run folder.

    A line is added when its file is in place, so a file without one is of a process that was killed just then, and a
    line without a file means that the file was lost.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / CHECKSUMS
        self._read: dict[str, str] | None = None

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def names(self) -> Collection[str]:
        """Paths of all files that have a checksum."""
        return self._known.keys()

    def fits(self, name: str, content: bytes) -> bool:
        """Whether a file is what was written; one without a checksum is believed."""
        found = checksum(content)
        if self._known.get(name, found) == found:
            return True
        self._read = None  # another process may have done the part again
        return self._known.get(name, found) == found

    def add(self, found: Mapping[str, str]) -> None:
        """Note files that are in place: path -> checksum."""
        lines = "".join(f"{digest}  {name}\n" for name, digest in found.items())
        append(self._path, ("" if self._ends_whole() else "\n").encode() + lines.encode())
        self._known.update(found)

    def adopt(self, names: Collection[str]) -> None:
        """Note files that have no checksum yet."""
        new = {name: checksum((self._folder / name).read_bytes()) for name in names if name not in self}
        if new:
            self.add(new)

    def drop(self, names: Collection[str]) -> None:
        """Forget files that were removed."""
        kept = {name: digest for name, digest in self._known.items() if name not in names}
        with write_atomically(self._path) as stream:
            stream.writelines(f"{digest}  {name}\n".encode() for name, digest in kept.items())
        self._read = kept

    @property
    def _known(self) -> dict[str, str]:
        if self._read is None:
            content = self._path.read_bytes() if self._path.exists() else b""
            lines = content.decode("utf-8", errors="replace").splitlines()
            found = (_LINE.fullmatch(line) for line in lines)  # a kill may have torn a line: its file has none
            self._read = {match[2]: match[1] for match in found if match}
        return self._read

    def _ends_whole(self) -> bool:
        """Whether the last line is whole; another one can follow it."""
        if not self._path.exists():
            return True
        with self._path.open("rb") as stream:
            size = stream.seek(0, 2)
            stream.seek(max(size - 1, 0))
            return stream.read() in (b"", b"\n")
