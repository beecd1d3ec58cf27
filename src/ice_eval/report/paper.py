"""The published tables as the paper prints them, its figures redrawn from them, and a run beside them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ice_eval.analysis.paper import (
    BesidePaper,
    Claim,
    Discrepancy,
    PaperTable,
    english_cells,
    model_of,
    paper_table,
    prompt_cells,
    task_of,
)
from ice_eval.report.colours import word_of_rate
from ice_eval.table import EMPTY, Column, Table, naming, table_of

if TYPE_CHECKING:
    from ice_eval.report.figures import Figure


def paper_layout(table: PaperTable) -> Table:
    """Return one table; a field whose values are columns in the paper has them as columns here."""
    if table.columns is None:
        header = tuple(table.rows[0])
        return _plain(table.title, _words(header), [[row[name] for name in header] for row in table.rows])
    kept = [name for name in table.rows[0] if name not in {table.columns, *table.values}]
    across = list(dict.fromkeys((row[table.columns], value) for row in table.rows for value in table.values))
    cells: dict[tuple[str, ...], dict[tuple[str, str], str]] = {}
    for row in table.rows:
        line = cells.setdefault(tuple(row[name] for name in kept), {})
        line.update({(row[table.columns], value): row[value] for value in table.values})
    several = len(table.values) > 1
    header = (*_words(kept), *(f"{column} {value}" if several else column for column, value in across))
    return _plain(table.title, header, [[*key, *(line[place] for place in across)] for key, line in cells.items()])


def paper_index(tables: Sequence[PaperTable]) -> Table:
    """Return the list of published tables that `ice paper` prints."""
    rows = [(table.name, ", ".join(table.labels), table.title) for table in tables]
    return _plain("Published tables", ("table", "in the paper", "what it holds"), rows)


def claims_table(claims: Sequence[Claim]) -> Table:
    """Return every figure that the paper states, beside the value from its tables."""
    signs = {"equal": "", "above": "> ", "below": "< "}
    columns = (
        Column("says", "figure", "text"),
        Column("where", "where", "text"),
        Column("stated", "stated", "text", get=lambda claim: f"{signs[claim.relation]}{claim.stated:g}"),
        Column("recomputed", "from the tables", "text", get=lambda claim: f"{claim.recomputed:.4g}"),
        Column("agrees", "holds", "yes/no"),
    )
    return table_of("Figures that the paper states", claims, columns)


def discrepancies_table(discrepancies: Sequence[Discrepancy]) -> Table:
    """Return the numbers that the paper gives in two different ways."""
    rows = [(" / ".join(value or EMPTY for value in each.values), each.note) for each in discrepancies]
    return _plain("Discrepancies", ("values", "what differs"), rows)


def beside_table(found: BesidePaper) -> Table:
    """Return the win rates of a run beside the published ones; without rows where the paper has none of them."""
    columns = (
        *naming("attribution", "operator", "k", "n"),
        Column("win_rate", "win rate", "percent", word=lambda line: word_of_rate(line.win_rate, line.verdict)),
        Column("win_rate_ci", "95 % CI", "percent interval"),
        Column("published", "published", "percent", word=lambda line: line.published_taxonomy),
        Column("difference", "difference", "points"),
        Column("covered", "in the interval", "yes/no"),
        Column("taxonomy", "word", "text"),
        Column("published_taxonomy", "published word", "text"),
    )
    return table_of("Beside the paper", found.configurations, columns)


def beside_notes(found: BesidePaper) -> list[str]:
    """Return differences between the protocols of run and paper, and the configurations that the paper lacks."""
    if not found.configurations:
        return [f"{_why_none(found)} So none of the run's {found.n_without} configurations has a published cell."]
    covered = [line.covered for line in found.configurations]
    notes = [f"{covered.count(True)} of {len(covered)} published win rates lie in the run's 95 % interval."]
    notes.append("Published win rates are estimates too, and are printed without intervals.")
    notes += [f"Otherwise than in the paper: {line}" for line in found.protocol]
    if found.n_without:
        notes.append(f"{found.n_without} further configurations of the run have no published cell.")
    return notes


def _why_none(found: BesidePaper) -> str:
    for kind, name, known in (("model", found.model, model_of(found.model)), ("task", found.task, task_of(found.task))):
        if known is None:
            rows = paper_table("models" if kind == "model" else "datasets").rows
            return f"The paper has no {kind} '{name}'; it has {', '.join(row[kind] for row in rows)}."
    return f"The paper has '{found.model}' on '{found.task}' with other attributions, operators or k."


def _words(names: Sequence[str]) -> list[str]:
    return [name.replace("_", " ") for name in names]


def _plain(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    return Table(title, tuple(header), tuple(tuple(cell or EMPTY for cell in row) for row in rows))


def paper_figures() -> "list[Figure]":
    """Return the English heatmap in four panels (the paper's figure 2), the languages (figure 3), and the prompts."""
    from ice_eval.report.figures import (
        LanguageWinRate,
        PromptWinRate,
        WinRate,
        language_heatmap,
        prompt_sensitivity,
        win_rate_panels,
    )

    english = [
        WinRate(model=c.model, dataset=c.task, attribution=c.attribution, operator=c.operator, win_rate=c.win_rate)
        for c in english_cells()
    ]
    languages = [
        LanguageWinRate(
            model=row["model"],
            language=row["task"],
            operator=row["operator"],
            win_rate=float(row["win_rate"]) / 100 if row["win_rate"] else None,
        )
        for row in paper_table("multilingual").rows
    ]
    prompts = [
        PromptWinRate(model=c.model, task=c.task, attribution=c.attribution, prompt=c.prompt, win_rate=c.win_rate)
        for c in prompt_cells()
    ]
    drawn = {
        "paper-english": win_rate_panels(english),
        "paper-languages": language_heatmap(languages),
        "paper-prompts": prompt_sensitivity(prompts),
    }
    return [replace(figure, name=name, title=f"{figure.title}, as published") for name, figure in drawn.items()]
