"""Optional packages: imported where they are used, or an error that names the pip command."""

import importlib
from types import ModuleType

from ice_eval.errors import MissingExtraError


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
