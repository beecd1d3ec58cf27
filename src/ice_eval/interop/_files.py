"""Reading files, compressed by gzip or not, with errors that name them."""

import gzip
import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ice_eval.errors import DataError
from ice_eval.files import why_no_json
from ice_eval.tasks import numbered_rows

_GZIP = b"\x1f\x8b"
"""What a compressed file begins with, whatever it is called."""


def ending_of(path: Path) -> str:
    """What a file's name says of its content: `.json` for `out.json` and for `out.json.gz`."""
    bare = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return bare.suffix.lower()


def bytes_of(path: Path, *, most: int = -1) -> bytes:
    """The bytes of a file, or the first of them; uncompressed.

    Raises:
        DataError: It cannot be read.
    """
    try:
        with path.open("rb") as file:
            compressed = file.read(len(_GZIP)) == _GZIP
        with gzip.open(path) if compressed else path.open("rb") as content:
            return content.read(most)
    except (OSError, EOFError, zlib.error) as exc:
        raise DataError(f"{path} cannot be read: {getattr(exc, 'strerror', None) or exc}.") from exc


def text_of(path: Path) -> str:
    """The text of a file.

    Raises:
        DataError: It cannot be read, or is not UTF-8.
    """
    try:
        return bytes_of(path).decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise DataError(f"{path} is not UTF-8 text ({exc.reason} at byte {exc.start}); save it as UTF-8.") from exc


def json_of(path: Path) -> Any:
    """The content of a JSON file.

    Raises:
        DataError: It is no JSON.
    """
    try:
        return json.loads(text_of(path))
    except (ValueError, RecursionError) as exc:
        raise DataError(f"{path} is not JSON ({why_no_json(exc)}).") from exc


def rows_of(path: Path) -> Sequence[tuple[str, Any]]:
    """The objects of a file with one per line, or of one JSON list, each after the place that errors name.

    Raises:
        DataError: It is neither.
    """
    if ending_of(path) == ".json":
        content = json_of(path)
        several = content if isinstance(content, list) else [content]
        return [(f"{path}, explanation {place}", row) for place, row in enumerate(several)]
    return [(f"{path}, line {line}", row) for line, row in numbered_rows(text_of(path).split("\n"), str(path))]


def first_row(path: Path) -> Any:
    """What tells a format: the first object of a file with one per line or a list of them; None where there is none."""
    try:
        return next((row for _, row in rows_of(path)), None)
    except DataError:
        return None
