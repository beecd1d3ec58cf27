"""The published tables, laid out as the paper prints them; its figures, and a user's run, beside them."""

from collections.abc import Callable, Sequence

from ice_eval.analysis.paper import (
    BesidePaper,
    BesidePublished,
    Claim,
    Discrepancy,
    PaperTable,
    model_of,
    paper_table,
    task_of,
)
from ice_eval.report.tables import EMPTY, Column, Table, interval, naming, percent, points, table_of, word_of_rate


def paper_layout(table: PaperTable) -> Table:
    """One table; a field whose values are columns in the paper has them as columns here."""
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
    """What `ice paper TABLE` knows."""
    rows = [(table.name, ", ".join(table.labels), table.title) for table in tables]
    return _plain("Published tables", ("table", "in the paper", "what it holds"), rows)


def claims_table(claims: Sequence[Claim]) -> Table:
    """Every figure that the paper states, beside what its tables give."""
    rows = [
        (claim.says, claim.where, _stated(claim), f"{claim.recomputed:.4g}", "yes" if claim.agrees else "no")
        for claim in claims
    ]
    return _plain("Figures that the paper states", ("figure", "where", "stated", "from the tables", "holds"), rows)


def discrepancies_table(discrepancies: Sequence[Discrepancy]) -> Table:
    """Where the paper says one thing in two ways."""
    rows = [(" / ".join(value or EMPTY for value in each.values), each.note) for each in discrepancies]
    return _plain("Discrepancies", ("values", "what differs"), rows)


def beside_table(found: BesidePaper) -> Table:
    """The win rates of a run beside the published ones; without rows where the paper has none of them."""
    columns: list[Column[BesidePublished]] = [
        *naming("attribution", "operator", "k", "n", get=getattr),
        ("win rate", lambda line: percent(line.win_rate)),
        ("95 % CI", lambda line: interval(line.win_rate_ci)),
        ("published", lambda line: percent(line.published)),
        ("difference", lambda line: points(line.difference)),
        ("in the interval", lambda line: {True: "yes", False: "no", None: EMPTY}[line.covered]),
        ("word", lambda line: line.taxonomy),
        ("published word", lambda line: line.published_taxonomy),
    ]
    coloured: dict[str, Callable[[BesidePublished], str | None]] = {
        "win rate": lambda line: word_of_rate(line.win_rate, line.verdict),
        "published": lambda line: line.published_taxonomy,
    }
    return table_of("Beside the paper", found.configurations, columns, coloured=coloured)


def beside_notes(found: BesidePaper) -> list[str]:
    """How a run was done otherwise than the paper's, and what of it the paper does not have."""
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


def _stated(claim: Claim) -> str:
    sign = {"equal": "", "above": "> ", "below": "< "}[claim.relation]
    return f"{sign}{claim.stated:g}"


def _words(names: Sequence[str]) -> list[str]:
    return [name.replace("_", " ") for name in names]


def _plain(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    return Table(title, tuple(header), tuple(tuple(cell or EMPTY for cell in row) for row in rows))
