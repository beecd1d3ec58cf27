"""Every error that a user can meet, in one tree, and what no terminal or file may get.

    IceError
    ├── ConfigError         something a person can fix: a flag, a name, a file, a folder
    │   ├── DataError       the data: a missing field, a text that cannot be encoded, numbers that are not finite
    │   ├── DamagedPartError    a part file is not as written; the command of the run scores the part again
    │   ├── CapabilityError the model cannot provide what an attribution or an operator needs
    │   ├── MissingExtraError   an optional package is not installed
    │   └── RefusedError    a server does not accept a request
    ├── ModelError          the model itself failed: it could not be read from the disk or did not answer
    │   └── OutOfMemoryError    a batch did not fit on the device
    ├── StorageError        the disk is full or failing; existing files are whole, and the same command continues
    └── BudgetError         a limit on requests or cost is reached; a higher one continues

The command line prints a `ConfigError` without a traceback and exits with 2; any other `IceError` exits with 1.
Bugs stay `AssertionError` or `TypeError`.
"""

import contextlib
import importlib
import re
import signal
import unicodedata
from collections.abc import Iterator
from types import ModuleType


class IceError(Exception):
    """Base class of all errors raised on purpose."""


class ConfigError(IceError):
    """The request cannot be carried out; the message explains what to change."""


class DataError(ConfigError):
    """The data do not have the shape that the task or the test needs."""


class DamagedPartError(ConfigError):
    """A part file is lost, truncated or changed; the command of the run scores that part again."""

    def __init__(self, found: str, part: int) -> None:
        super().__init__(found, part)
        self.found = found
        """The file, and the damage."""
        self.part = part

    def __str__(self) -> str:
        return f"{self.found}. Run the same command again: only part {self.part} is repeated."


class CapabilityError(ConfigError):
    """A model does not provide what an attribution or an operator needs."""


class MissingExtraError(ConfigError):
    """An optional dependency is missing; the message holds the pip command."""


class RefusedError(ConfigError):
    """A server does not accept a request; the message has the reason, and another request may succeed."""


class ModelError(IceError):
    """A model could not be read from the disk, or failed while answering; damaged files are a `ConfigError`."""


class OutOfMemoryError(ModelError):
    """A batch did not fit into the memory of the device."""


class StorageError(IceError):
    """The disk is full or failing; earlier writes are whole."""


class BudgetError(IceError):
    """A limit on requests or cost is reached before the work is done; paid answers are kept."""


@contextlib.contextmanager
def reported(what: str, kind: type[IceError] = ModelError) -> Iterator[None]:
    """Report whatever a user's code raises in one line, even an exit; an interrupt of `ice` passes."""
    try:
        yield
    except (Exception, SystemExit) as exc:
        if isinstance(exc, SystemExit) and exc.code == 128 + signal.SIGINT:
            raise
        told = str(exc).strip().partition("\n")[0]
        raise kind(f"{what}: {type(exc).__name__}{': ' if told else ''}{told}") from exc


def require(module: str, *, install: str, purpose: str) -> ModuleType:
    """Import an optional module, or raise MissingExtraError.

    Args:
        module: Name to import, for example `datasets`.
        install: Argument of `pip install`, for example `"ice-eval[hub]"`.
        purpose: Its use, as the end of a sentence.
    """
    try:
        return importlib.import_module(module)
    except ImportError as exc:
        raise MissingExtraError(
            f"'{module}' is not installed, and is needed {purpose}. Install it: pip install '{install}'"
        ) from exc


_CLOSING = {"\u202a": "\u202c", "\u202b": "\u202c", **dict.fromkeys("\u2066\u2067\u2068", "\u2069")}
"""Embeddings and isolates: the character that begins one, and the one that ends it."""
_TURNS = re.compile("[\u202a-\u202e\u2066-\u2069]")


def without_controls(text: str, *, is_text: bool = False) -> str:
    """Replace control characters but new lines and tabs by `\ufffd`: a terminal would obey them.

    So do halves of characters (lone surrogates), as file names that are no UTF-8 have: they cannot be printed. So do
    characters that turn the direction of what follows: behind a name, numbers would read in another order. Where
    `is_text`, embeddings and isolates that are closed stay, since texts from right to left need them.
    """
    if text.isprintable():
        return text
    found = "".join("\ufffd" if unicodedata.category(c) in {"Cc", "Cs"} and c not in "\n\t" else c for c in text)
    kept = _closed(found) if is_text else set()
    return _TURNS.sub(lambda turn: turn[0] if turn.start() in kept else "\ufffd", found)


def without_turns(text: str) -> str:
    """Leave out what turns the direction of a text, for its beginning in a table: what is cut off may close it."""
    return _TURNS.sub("", text)


def _closed(text: str) -> set[int]:
    """Return the places where an embedding or an isolate begins or ends that is closed within the text."""
    opened, places = list[int](), set[int]()
    for turn in _TURNS.finditer(text):
        if turn[0] in _CLOSING:
            opened.append(turn.start())
        elif opened and _CLOSING[text[opened[-1]]] == turn[0]:
            places |= {opened.pop(), turn.start()}
    return places


def is_broken(text: str) -> bool:
    """Return whether a text holds half of a character (a lone surrogate), which UTF-8 cannot write."""
    return any("\ud800" <= c <= "\udfff" for c in text)
