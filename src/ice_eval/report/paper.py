"""The published tables, laid out as the paper prints them, and its figures beside what the tables give."""

from collections.abc import Sequence

from ice_eval.analysis.paper import Claim, Discrepancy, PaperTable
from ice_eval.report.tables import Table

_EMPTY = "–"


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
    rows = [(" / ".join(value or _EMPTY for value in each.values), each.note) for each in discrepancies]
    return _plain("Discrepancies", ("values", "what differs"), rows)


def _stated(claim: Claim) -> str:
    sign = {"equal": "", "above": "> ", "below": "< "}[claim.relation]
    return f"{sign}{claim.stated:g}"


def _words(names: Sequence[str]) -> list[str]:
    return [name.replace("_", " ") for name in names]


def _plain(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    return Table(title, tuple(header), tuple(tuple(cell or _EMPTY for cell in row) for row in rows))
