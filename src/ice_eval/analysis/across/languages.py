"""Win rates by language, beside how finely a tokenizer cuts each of them."""

from collections.abc import Iterator
from typing import Any

from ice_eval.analysis.across._base import GridResults, GridRun
from ice_eval.analysis.measures import Column, Found, Missing, Part, naming
from ice_eval.results import SummaryLine
from ice_eval.results.outcomes import ALL

_ENGLISH = "en"
_PLACE = ("null", "direction", "k")


def languages(grid: GridResults) -> Found | Missing:
    """Tokens per word and character, and win rates, of every language under every model."""
    if not grid.several("language"):
        return Missing("the grid has one language")
    rates = dict.fromkeys(_column(each.line) for each in grid.configurations if each.line.operator != ALL)
    columns = (
        *naming("language", "prompt", *_PLACE),
        Column("tokens_median", "median tokens", "number"),
        Column("tokens_per_word", "tokens per word", "number"),
        Column("tokens_per_character", "per character", "number"),
        Column("expansion", "against English", "number"),
        *(Column(name, name, "percent") for name in rates),
    )
    lines = tuple(line for run in grid.runs for line in _lines(run, grid, list(rates)))
    notes = ["Data sets differ between languages: a column compares models, and a row does not compare languages."]
    if any(line["expansion"] is not None for line in lines):
        notes.append("Against English: tokens per character, over those of the model's English texts in the grid.")
    return Found((Part("Languages", columns, lines),), tuple(notes))


def _lines(run: GridRun, grid: GridResults, names: list[str]) -> Iterator[dict[str, Any]]:
    places: dict[tuple[Any, ...], dict[str, float | None]] = {}
    for line in grid.lines_of(run):
        if line.operator != ALL:
            places.setdefault((line.null, line.direction, line.k), {})[_column(line)] = line.win_rate
    for place, rates in places.items():
        given = dict(zip(_PLACE, place, strict=True))
        yield {**run.head, **given, **_tokens(run, grid), **{name: rates.get(name) for name in names}}


def _column(line: SummaryLine) -> str:
    return f"{line.attribution} {line.operator}"


def _tokens(run: GridRun, grid: GridResults) -> dict[str, float | None]:
    if run.texts is None:
        return dict.fromkeys(("tokens_median", "tokens_per_word", "tokens_per_character", "expansion"))
    english = [
        each.texts.tokens_per_character
        for each in grid.runs
        if (each.model, each.language) == (run.model, _ENGLISH) and each.texts is not None
    ]
    return {
        "tokens_median": run.texts.tokens_median,
        "tokens_per_word": run.texts.tokens_per_word,
        "tokens_per_character": run.texts.tokens_per_character,
        "expansion": run.texts.tokens_per_character / (sum(english) / len(english)) if english else None,
    }
