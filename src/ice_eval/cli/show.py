"""`ice show`."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from ice_eval.cli._options import Json
from ice_eval.cli._output import console, print_json, print_line

if TYPE_CHECKING:
    from ice_eval.results import ExampleView, LedgerRow


def show(
    folder: Annotated[Path, Argument(help="Run folder.")],
    example: Annotated[str, Option(help="Id of the example; without an id of its own, its row, counted from 0.")],
    attribution: Annotated[str | None, Option(help="This attribution only.")] = None,
    operator: Annotated[str | None, Option(help="This operator only.")] = None,
    rows: Annotated[int, Option(help="Random rows to show per operator; -1 for all.")] = 3,
    as_json: Json = False,
) -> None:
    """Show one example: its text with each attribution, where its rationales lie in their nulls, and what was scored.

    In a terminal the strength of an attribution is a shade and the rationale is underlined; elsewhere the rationale
    is in brackets. The steps of a chain of thought are numbered and shaded by what their removal does.
    """
    from ice_eval.report.example import example_lines
    from ice_eval.results import RunFolder, view_example

    view = view_example(RunFolder.existing(folder), example, attribution=attribution, operator=operator)
    if as_json:
        print_json(_content(view))
        return
    out = console()
    has_colour = out.color_system is not None and not out.no_color
    for line in example_lines(view, n_random=rows, colour=has_colour):
        print_line(line, indent=4, out=out)


def _content(view: "ExampleView") -> dict[str, Any]:
    from ice_eval.results.json_files import as_json as json_of

    return {
        "example_id": view.example.example_id,
        "fields": dict(view.example.fields),
        **_steps(view),
        **({} if view.claim is None else {"claim": json_of(view.claim)}),
        "answers": {name: answer._asdict() for name, answer in view.example.answers.items()},
        "outcomes": [json_of(each.line) for each in view.compared],
        "rows": [_record(row, view) for row in view.rows],
    }


def _steps(view: "ExampleView") -> dict[str, Any]:
    """Return the effect of each step of a chain; empty for other examples."""
    from ice_eval.report.chain_view import chain_view, is_chain, operator_of

    if not is_chain(view) or view.example.skip_reason is not None:
        return {}
    found = chain_view(view.example, view.rows, operator_of(view))
    return {
        "steps": [{**step._asdict(), "replies": [reply._asdict() for reply in step.replies]} for step in found.steps],
        "removed": {"operator": found.operator, "alone": found.alone},
    }


def _record(row: "LedgerRow", view: "ExampleView") -> dict[str, Any]:
    from ice_eval.report.example import probabilities

    scores: dict[str, Any] = {"probabilities": probabilities(row, view.labels)}
    if view.is_open:
        scores = {"log_probability_per_token": row.scores[0] if math.isfinite(row.scores[0]) else None}
    return {
        **row.key._asdict(),
        "kind": row.key.kind.label,
        "kept": list(row.kept),
        "input_ids": list(row.input_ids),
        "segment_ids": list(row.segment_ids),
        **scores,
        "text": row.text,
    }
