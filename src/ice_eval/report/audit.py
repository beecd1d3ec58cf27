"""Runs as a PDF for auditors: scope, prompt, exclusions, verdicts and limits, with the hash on every page."""

import contextlib
import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from ice_eval import __version__
from ice_eval.choices import TableColumns
from ice_eval.errors import ConfigError, require, without_controls
from ice_eval.files import as_text, write_atomically
from ice_eval.report.colours import FILLS, INKS
from ice_eval.report.conclusion import conclude
from ice_eval.report.page import asset, unbroken
from ice_eval.report.provenance import CITATION, PROMPTS, command, provenance
from ice_eval.report.sentences import SCOPE, Note, lead, notes
from ice_eval.report.tables import run_names, tables
from ice_eval.results import Manifest, RunFolder
from ice_eval.results.outcomes import ALL
from ice_eval.results.summary import simultaneous as with_simultaneous
from ice_eval.table import Table

_NAMED = 30
"""Ids of excluded examples that are printed for each reason."""


def write_audit(
    folders: Sequence[RunFolder], path: Path, *, simultaneous: bool = False, columns: TableColumns | None = None
) -> Path:
    """Write a document on each run into one PDF.

    With `simultaneous`, intervals and verdicts are those that hold for all configurations of a run at once. `columns`
    are those of `summary_table`.

    Raises:
        ConfigError: The file cannot be written.
        MissingExtraError: typst is not installed.
    """
    typst = require("typst", install="ice-eval[pdf]", purpose="to write a PDF")
    names = [f"{model} on {task}" for model, task in run_names(folders)]
    runs = [
        _run(folder, name, simultaneous=simultaneous, columns=columns)
        for folder, name in zip(folders, names, strict=True)
    ]
    # Texts are data: the template shows them and never reads them as markup.
    content = {"title": ", ".join(dict.fromkeys(names)), "runs": runs, "version": __version__, "citation": CITATION}
    finished = max(_seconds(folder.manifest()) for folder in folders)
    pdf = typst.compile(
        asset("audit.typ").encode(),
        sys_inputs={"data": json.dumps(_clean(content), ensure_ascii=False)},
        timestamp=finished,  # the same run gives the same file
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(path) as stream:
            stream.write(pdf)
    except OSError as exc:
        raise ConfigError(f"{path} cannot be written: {exc.strerror}.") from exc
    return path


def _seconds(manifest: Manifest) -> int:
    """Return the end of a run, or its start, in seconds since 1970; 0 where somebody changed both to no time."""
    for time in (manifest.finished, manifest.started):
        with contextlib.suppress(ValueError, OverflowError):
            if time:
                return max(int(datetime.fromisoformat(time).timestamp()), 0)
    return 0


def _run(folder: RunFolder, name: str, *, simultaneous: bool, columns: TableColumns | None) -> dict[str, Any]:
    summary, manifest = folder.summary(), folder.manifest()
    summary = with_simultaneous(summary) if simultaneous else summary
    found = conclude(summary, manifest)
    facts = [(name, value) for name, value in provenance(manifest) if name not in PROMPTS]
    return {
        "name": name,
        "hash": manifest.config_hash,
        "folder": as_text(Path(folder.path.name)),
        "sentences": found.sentences,
        "problems": found.problems,
        "facts": facts,
        "prompts": _prompts(manifest),
        "exclusions": list(_exclusions(folder)),
        "examples": manifest.data.examples,
        "tables": [_table(table) for table in tables([summary], simultaneous=simultaneous, columns=columns)],
        "lead": lead([summary], simultaneous=simultaneous).replace("`", "") if summary.configurations else "",
        "limits": [each for each in (SCOPE, found.silence, *map(_plain, notes(summary, columns=columns))) if each],
        "command": command(manifest) or "",
    }


def _plain(note: str) -> str:
    """Return a note as a document has it: without the names of flags and the marks of code."""
    return (note.plain if isinstance(note, Note) else note).replace("`", "")


def _prompts(manifest: Manifest) -> list[tuple[str, str]]:
    """Return everything that the model reads beside the data, with a name each."""
    system = manifest.identity.get("system")
    read = manifest.prompt if manifest.classifier_text is None else manifest.classifier_text
    has_labels = manifest.chains is None and manifest.target_text is None and len(manifest.labels) > 1
    labels = ", ".join(map(repr, manifest.labels)) if has_labels else ""
    worked = ((f"worked example {number}", text) for number, text in enumerate(manifest.worked, start=1))
    parts = [("system turn", str(system) if system else ""), *worked, ("prompt", read), ("labels", labels)]
    return [(name, text) for name, text in parts if text]


def _exclusions(folder: RunFolder) -> Iterator[tuple[str, int, str]]:
    """Yield each reason why examples have no result, their number, and their ids."""
    reasons: dict[str, dict[str, None]] = {}
    failed: dict[tuple[str, str], tuple[dict[str, None], dict[str, None]]] = {}
    for part in folder.parts():
        for row in folder.inputs(part):
            if row.skip_reason is not None:
                reasons.setdefault(row.skip_reason, {})[row.example_id] = None
    skipped = {each for ids in reasons.values() for each in ids}
    for line in folder.examples():
        if line.error is not None and line.operator != ALL and line.example_id not in skipped:
            methods, ids = failed.setdefault((line.error, line.operator), ({}, {}))
            methods[line.attribution] = ids[line.example_id] = None
    reasons |= {f"{why} ({', '.join(names)} under {operator})": ids for (why, operator), (names, ids) in failed.items()}
    for reason, ids in reasons.items():
        more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
        yield reason, len(ids), ", ".join(list(ids)[:_NAMED]) + more


def _table(table: Table) -> dict[str, Any]:
    words = table.words or [(None,) * len(table.header)] * len(table.rows)
    cells = [
        {"text": cell, "fill": FILLS.get(word) if word else None, "ink": INKS.get(word) if word else None}
        for row, own in zip(table.rows, words, strict=True)
        for cell, word in zip(row, own, strict=True)
    ]
    return {"title": table.title, "header": table.header, "numbers": table.are_numbers, "cells": cells}


def _clean(content: Any, *, is_text: bool = False) -> Any:
    if isinstance(content, str):
        return unbroken(without_controls(content, is_text=is_text))
    if isinstance(content, dict):
        return {name: _clean(each, is_text=name == "prompts") for name, each in content.items()}
    return [_clean(each, is_text=is_text) for each in content] if isinstance(content, list | tuple) else content
