"""Where things are kept that are made once and used by many runs."""

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """`$ICE_CACHE`, else `ice-eval` in the platform's user cache."""
    if given := os.environ.get("ICE_CACHE"):
        return Path(os.path.expanduser(given))
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "ice-eval"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "ice-eval"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ice-eval"
