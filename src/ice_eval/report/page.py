"""What the page says, as plain values: the template only lays it out."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ice_eval import __version__
from ice_eval.analysis.measures import measures
from ice_eval.report.browser import BUDGET, browser_data
from ice_eval.report.chains import chain_verdict
from ice_eval.report.drawing import OF_CHAINS, Drawings, drawings
from ice_eval.report.measures import measure_tables, measured
from ice_eval.report.overview import notes, tables
from ice_eval.report.provenance import CITATION, command, provenance
from ice_eval.report.summaries import cost_table
from ice_eval.report.tables import Table
from ice_eval.report.verdicts import in_first_setting, lead, place_of, verdicts
from ice_eval.results import RunFolder, Summary


def page(folders: Sequence[RunFolder], *, budget: int = BUDGET) -> dict[str, Any]:
    """Everything that a report over some runs shows."""
    browser, drawn = browser_data(folders, budget=budget), drawings(folders)
    summaries = [folder.summary() for folder in folders]
    # Over several runs what differs between them becomes a column, and p-values are adjusted jointly.
    shown = [*tables(summaries), *_of_eraser(folders)]
    of_chains = [summary.chains is not None for summary in summaries]
    figures = [{name: figure[name] for name in ("name", "title", "caption")} for figure in drawn.figures]
    return {
        "title": f"ICE report: {', '.join(dict.fromkeys(run['title'] for run in browser['runs']))}",
        "version": __version__,
        "citation": CITATION,
        "chains": any(of_chains),
        "only_chains": all(of_chains),
        "explained": any(summary.configurations for summary in summaries),
        "lead": lead(summaries),
        "runs": [
            _run(folder, record, summary)
            for folder, record, summary in zip(folders, browser["runs"], summaries, strict=True)
        ],
        "tables": shown,
        "numbered": any("run" in table.header for table in shown),
        "figures": [figure for figure in figures if not figure["name"].startswith(OF_CHAINS)],
        "chain_figures": [figure for figure in figures if figure["name"].startswith(OF_CHAINS)],
        "missing": drawn.missing,
        "library": drawn.library,
        "drawn": _drawn(drawn),
        "browser": browser,
    }


def _run(folder: RunFolder, record: dict[str, Any], summary: Summary) -> dict[str, Any]:
    manifest = folder.manifest()
    return {
        "title": record["title"],
        "chains": None if summary.chains is None else chain_verdict(summary),
        "verdicts": verdicts(summary),
        "notes": notes(_of_first_setting(summary)),
        "tables": [table for table in [cost_table(manifest)] if table.rows],
        "provenance": provenance(manifest),
        "command": command(manifest),
        "shown": len(record["examples"]),
        "total": record["total"],
        "folder": record["folder"],
    }


def _of_eraser(folders: Sequence[RunFolder]) -> list[Table]:
    """ERASER's measures of the runs that have rows for them, with the numbers that runs have in the other tables."""
    if not any(folder.manifest().config.eraser for folder in folders):
        return []
    return measure_tables(measured({"eraser": measures.get("eraser")()}, folders), folders)


def _of_first_setting(summary: Summary) -> Summary:
    """With the disagreements in the first setting of each attribution: the browser finds those in the others."""
    first = in_first_setting(summary.agreement)
    return replace(summary, agreement=tuple(line for line in summary.agreement if place_of(line) in first))


def _drawn(found: Drawings) -> dict[str, Any]:
    """What the script reads that draws the figures."""
    return {"themes": found.themes, "specs": {each["name"]: each["spec"] for each in found.figures}}
