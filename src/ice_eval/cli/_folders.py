"""Run folders, as commands take them."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ice_eval.errors import ConfigError

if TYPE_CHECKING:
    from ice_eval.results import RunFolder


def run_folders(paths: Iterable[Path]) -> "list[RunFolder]":
    """The runs of some folders; a bench folder stands for all its finished runs.

    Raises:
        ConfigError: A folder holds neither a run nor a grid, or no run of the grid is finished.
    """
    from ice_eval.bench import BenchFolder
    from ice_eval.results import RunFolder

    found = []
    for path in paths:
        runs = BenchFolder(path).finished() if BenchFolder.is_one(path) else [RunFolder.existing(path)]
        if not runs:
            raise ConfigError(f"no run of the grid in {path} is finished; `ice bench {path}` goes on with it.")
        found += runs
    return found
