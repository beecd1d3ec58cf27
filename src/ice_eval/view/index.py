"""The runs below a folder, read from their manifests and summaries alone, and their tables."""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ice_eval.errors import ConfigError, without_controls
from ice_eval.files import as_text
from ice_eval.report.chains import chain_verdict
from ice_eval.report.citations import leading
from ice_eval.report.conclusion import Conclusion, Method, conclude, short_verdict
from ice_eval.report.sentences import setting_of
from ice_eval.results import Manifest, RunFolder, Summary
from ice_eval.results.json_files import read_record
from ice_eval.results.summary import dropped
from ice_eval.table import EMPTY, Column, Table, columns, percent, table_of

_MANIFEST, _SUMMARY = "manifest.json", "summary.json"
_SKIPPED = {"node_modules", "site-packages", "__pycache__"}
"""Folders that are not searched, beside hidden ones."""


@dataclass(frozen=True)
class RunEntry:
    id: str
    """Name in addresses; it says nothing about the path."""
    name: str
    """Path from the folder of the index."""
    folder: RunFolder
    manifest: Manifest
    summary: Summary
    conclusion: Conclusion
    stamp: tuple[int, ...]
    """Times of manifest and summary."""

    @property
    def best(self) -> Method | None:
        """The method with the highest win rate; the control only if there is no other."""
        return next(iter(self.conclusion.first.methods), None) if self.conclusion.first is not None else None

    @property
    def verdict(self) -> str:
        if self.summary.chains is not None:
            return ", ".join(dict.fromkeys(each.verdict for each in chain_verdict(self.summary).operators)) or EMPTY
        if self.summary.citations is not None:
            line = leading(self.summary.citations)
            own, random = (None, None) if line is None else (line.carried, line.carried_random)
            return f"{percent(own)} of claims carried, {percent(random)} by random passages"
        return EMPTY if self.best is None else short_verdict(self.best)


class RunIndex:
    """Finished runs below a folder; one that has not changed is not read again."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: dict[str, RunEntry] = {}
        self.unreadable: list[tuple[str, str]] = []
        """Name of each folder with a manifest that is not in the index, and the reason."""

    def entries(self) -> list[RunEntry]:
        """Return all finished runs, the newest first."""
        known, unreadable = dict[str, RunEntry](), list[tuple[str, str]]()
        for path in _run_folders(self.root):
            name = as_text(path.relative_to(self.root)) if path != self.root else as_text(Path(path.resolve().name))
            try:
                entry = self._entry(path, name)
                known[entry.id] = entry
            except Exception as exc:  # a summary that contradicts itself must not hide the other runs
                said = f"its files disagree ({type(exc).__name__}: {exc}); `ice rescore` writes the summary again."
                said = str(exc) if isinstance(exc, ConfigError | OSError) else said
                unreadable.append((name, without_controls(said)))
        self._known, self.unreadable = known, unreadable
        return sorted(known.values(), key=lambda each: each.manifest.finished or "", reverse=True)

    def __contains__(self, run_id: object) -> bool:
        return run_id in self._known

    def __getitem__(self, run_id: str) -> RunEntry:
        """Return a run of the last `entries`, as it is now."""
        known = self._known[run_id]
        return self._entry(known.folder.path, known.name)

    def _entry(self, path: Path, name: str) -> RunEntry:
        stamp = tuple((path / file).stat().st_mtime_ns for file in (_MANIFEST, _SUMMARY) if (path / file).is_file())
        run_id = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        known = self._known.get(run_id)
        if known is not None and known.stamp == stamp:
            return known
        folder = RunFolder(path)
        manifest = folder.manifest()
        if manifest.status != "complete":
            raise ConfigError("the run is not finished; run the same command to finish it.")
        summary = read_record(path / _SUMMARY, Summary)
        return RunEntry(run_id, name, folder, manifest, summary, conclude(summary, manifest), stamp)


def _run_folders(root: Path) -> Iterator[Path]:
    """Yield folders with a manifest; no run lies within another, and links are not followed."""
    for path, folders, files in os.walk(root):
        if _MANIFEST in files:
            folders.clear()
            yield Path(path)
        else:
            folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)


def runs_table(entries: Sequence[RunEntry]) -> Table:
    shown = (
        *columns("text", **{"name": "run", "manifest.config.model": "model", "manifest.config.task": "task"}),
        Column("manifest.data.examples", "n", "count"),
        Column("best", "best method", "text", get=lambda each: each.best.attribution if each.best else EMPTY),
        *_rates(entries, lambda each: each.best),
        Column("verdict", "verdict", "text"),
        Column("dropped", "dropped", "count", get=lambda each: dropped(each.summary).n),
        Column(
            "finished", "finished", "text", get=lambda each: (each.manifest.finished or EMPTY)[:16].replace("T", " ")
        ),
    )
    return table_of("Runs", entries, shown, whole=True)  # a reader filters by them


def grid_table(entries: Sequence[RunEntry]) -> Table:
    """Return one row per run, method and setting, with the win rate under every operator."""
    lines = [
        {"entry": each, "method": method}
        for each in entries
        for ranking in (each.conclusion.first, *each.conclusion.others)
        if ranking is not None
        for method in ranking.methods
    ]
    shown = (
        Column("model", "model", "text", get=lambda each: each["entry"].manifest.config.model),
        Column("task", "task", "text", get=lambda each: each["entry"].manifest.config.task),
        Column("method", "method", "text", get=lambda each: each["method"].attribution),
        Column("setting", "setting", "text", get=lambda each: setting_of(each["method"].lines[0].configuration)),
        *_rates(entries, lambda each: each["method"]),
        Column("verdict", "verdict", "text", get=lambda each: short_verdict(each["method"]) or EMPTY),
        Column("run", "run", "text", get=lambda each: each["entry"].name),
    )
    return table_of("Win rates of all methods", lines, shown, whole=True)


def _rates(entries: Sequence[RunEntry], method_of: Callable[[Any], Method | None]) -> Iterator[Column]:
    """Yield a column for every operator of some runs, in the order of their first run."""

    def rate(line: Any, operator: str) -> float | None:
        method = method_of(line)
        lines = method.lines if method is not None else ()
        return next((each.win_rate for each in lines if each.operator == operator), None)

    for name in dict.fromkeys(name for each in entries for name in each.manifest.config.operators):
        yield Column(name, name, "percent", get=partial(rate, operator=name))
