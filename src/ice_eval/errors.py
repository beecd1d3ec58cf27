"""Every error that a user can meet, in one tree.

    IceError
    ├── ConfigError         something a person can fix: a flag, a name, a file, a folder
    │   ├── DataError       the data: a missing field, a text that cannot be encoded, numbers that are not finite
    │   ├── DamagedPartError    a file of a part is not what was written; the command of the run does the part again
    │   ├── CapabilityError the model cannot give what an attribution or an operator needs
    │   ├── MissingExtraError   an optional package is not installed
    │   └── RefusedError    a server does not take a request as it is
    ├── ModelError          the model itself failed: it could not be loaded or did not answer
    │   └── OutOfMemoryError    a batch did not fit on the device
    ├── StorageError        the disk is full or failing; what is there is whole, and the same command continues
    └── BudgetError         a limit on requests or cost is reached; a higher one continues

The command line prints a `ConfigError` without a traceback and exits with 2; any other `IceError` exits with 1.
Bugs stay `AssertionError` or `TypeError`.
"""

import importlib
from types import ModuleType


class IceError(Exception):
    """Base class of all errors raised on purpose."""


class ConfigError(IceError):
    """What was asked for cannot be done as asked; the message says what to change."""


class DataError(ConfigError):
    """The data do not have the shape that the task or the test needs."""


class DamagedPartError(ConfigError):
    """A file of a part is lost, cut off or changed; the command that made the run does that part again."""

    def __init__(self, found: str, part: int) -> None:
        super().__init__(found, part)
        self.found = found
        """The file, and what is wrong with it."""
        self.part = part

    def __str__(self) -> str:
        return (
            f"{self.found}. The command that made this run, given again, does part {self.part} again and nothing else."
        )


class CapabilityError(ConfigError):
    """A model does not offer what an attribution or an operator needs."""


class MissingExtraError(ConfigError):
    """An optional dependency is missing; the message holds the pip command."""


class RefusedError(ConfigError):
    """A server does not take a request as it is: its message says why, and another request may fare better."""


class ModelError(IceError):
    """A model could not be loaded, or failed while it answered."""


class OutOfMemoryError(ModelError):
    """A batch did not fit into the memory of the device."""


class StorageError(IceError):
    """The disk is full or failing; what was written before is whole."""


class BudgetError(IceError):
    """The limit that was set on requests or cost is reached before the work is done; what was paid for is kept."""


def require(module: str, *, install: str, purpose: str) -> ModuleType:
    """Import an optional module.

    Args:
        module: Name to import, for example `datasets`.
        install: What pip installs to get it, for example `"ice-eval[hub]"`.
        purpose: What it is needed for, as the end of a sentence.

    Raises:
        MissingExtraError: The module is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as exc:
        raise MissingExtraError(
            f"'{module}' is not installed, and is needed {purpose}. Install it: pip install '{install}'"
        ) from exc
