"""Reading files, with errors that name them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ice_eval.errors import DataError
from ice_eval.tasks import jsonl_rows


def text_of(path: Path) -> str:
    """The text of a file.

    Raises:
        DataError: It cannot be read, or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as exc:
        raise DataError(f"{path} is not UTF-8 text ({exc.reason} at byte {exc.start}); save it as UTF-8.") from exc
    except OSError as exc:
        raise DataError(f"{path} cannot be read: {exc.strerror}.") from exc


def json_of(path: Path) -> Any:
    """The content of a JSON file.

    Raises:
        DataError: It is no JSON.
    """
    try:
        return json.loads(text_of(path))
    except json.JSONDecodeError as exc:
        raise DataError(f"{path} is not JSON ({exc.msg} at line {exc.lineno}, column {exc.colno}).") from exc


def rows_of(path: Path) -> Sequence[Any]:
    """The objects of a file with one per line, or of one JSON list.

    Raises:
        DataError: It is neither.
    """
    if path.suffix.lower() == ".json":
        content = json_of(path)
        return content if isinstance(content, list) else [content]
    return list(jsonl_rows(text_of(path).split("\n"), str(path)))


def first_row(path: Path) -> Any:
    """What tells a format: the first object of a file with one per line or a list of them; None where there is none."""
    try:
        return next(iter(rows_of(path)), None)
    except DataError:
        return None
