"""Views for notebooks: a run as a small table, an example as its text with attributions."""
# Styles are in the elements, so that nothing leaks into the rest of the notebook. Text has the notebook's own colour on
# transparent shades, so that dark themes work; cells with a word's colour have their own text colour.

from typing import Any

from ice_eval.report.chains import ALWAYS, REPLIES, capacity_table, chain_view, is_chain, operator_of
from ice_eval.report.colours import AGAINST, SUPPORT, WORD_COLOURS, WORD_TEXT_COLOURS
from ice_eval.report.example import (
    TextPiece,
    example_lines,
    harmless,
    histogram,
    numbers_of,
    pieces,
    rgb,
    shown,
    title_of,
)
from ice_eval.report.page import template
from ice_eval.report.sentences import notes
from ice_eval.report.tables import summary_table
from ice_eval.results import ComparedOutcome, ExampleView, RunFolder

_STRONGEST = 0.6
"""Opacity of the strongest shade: text on it is readable in light and dark themes."""


def summary_html(folder: RunFolder) -> str:
    """Return the summary of a run as a table with notes, for notebooks."""
    summary = folder.summary()
    table = capacity_table(summary) if summary.chains is not None else summary_table([summary])
    config = folder.manifest().config
    rows = [
        [(cell, _cell_style(word)) for cell, word in zip(row, words, strict=True)]
        for row, words in zip(table.rows, table.words, strict=True)
    ]
    title = f"{config.model} on {config.task}"
    return template("notebook_run.html").render(title=title, header=table.header, rows=rows, notes=notes(summary))


class ShownExample:
    """One example of a run: its text with attributions in a notebook, lines of text elsewhere."""

    def __init__(self, view: ExampleView) -> None:
        self.view = view

    def __repr__(self) -> str:
        return "\n".join(harmless(line).plain for line in example_lines(self.view))

    def _repr_html_(self) -> str:
        example = self.view.example
        if is_chain(self.view) and example.skip_reason is None:
            return _chain(self.view)
        return template("notebook_example.html").render(
            view=self.view,
            gold=None if example.gold is None else self.view.labels[example.gold],
            compared=[_content(each, self.view) for each in shown(self.view)],
        )


def _chain(view: ExampleView) -> str:
    """Return a chain with its steps shaded by the effect of their removal."""
    found = chain_view(view.example, view.rows, operator_of(view))
    steps = [(step, _piece_style(TextPiece(step.text, step.effect or 0.0, False))) for step in found.steps]
    return template("notebook_chain.html").render(
        id=view.example.example_id, chain=found, steps=steps, words=REPLIES, always=ALWAYS
    )


def _content(each: ComparedOutcome, view: ExampleView) -> dict[str, Any]:
    line = each.line
    head = {"title": title_of(line), "error": line.error}
    if line.error is not None:
        return head
    found = None if each.scores is None else histogram(each.scores)
    return {
        **head,
        "numbers": numbers_of(line),
        "fields": [(name, [(p.text, _piece_style(p), _hint(p)) for p in parts]) for name, parts in pieces(view, line)],
        "null": found,
        "bars": () if found is None else [(x, n / max(found.counts)) for x, n in enumerate(found.counts) if n],
        "less_is_better": line.direction == "necessity",
    }


def _hint(piece: TextPiece) -> str:
    return f"{piece.strength:+.2f} of the largest" if piece.strength else ""


def _piece_style(piece: TextPiece) -> str:
    colour = SUPPORT if piece.strength > 0 else AGAINST
    red, green, blue = rgb(colour)
    opacity = _STRONGEST * abs(piece.strength)
    shade = f"background:rgba({red},{green},{blue},{opacity:.2f});" if opacity > 0 else ""
    return shade + ("outline:2px solid currentColor;border-radius:2px;font-weight:600;" if piece.in_rationale else "")


def _cell_style(word: str | None) -> str:
    return "" if word not in WORD_COLOURS else f"background:{WORD_COLOURS[word]};color:{WORD_TEXT_COLOURS[word]};"
