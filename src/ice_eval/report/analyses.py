"""Tables and notes of the analyses: measures and grids of runs, audits of infill, the paper's numbers."""

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, get_args

from ice_eval.analysis import AuditedUnit, FillAudit, GridLine, InfillAudit, paper
from ice_eval.analysis.infill_audit import LOOSE_COUNT, LOOSE_Z, N_SHUFFLES, ContaminationEffect, PieceKind
from ice_eval.analysis.measures import Found, Measured, Missing, Part
from ice_eval.choices import protocol_of
from ice_eval.files import as_text
from ice_eval.report.colours import word_of, word_of_line
from ice_eval.report.data import DataTable, Row, data_table
from ice_eval.results import Plan, RunFolder, SummaryLine
from ice_eval.results.outcomes import ALL
from ice_eval.table import EMPTY, Column, Table, columns, estimate, naming, percent, table_of

_MOST_LINES = 50
_STAR = 0.05
_OF_RUN, _OF_LINE = ("model", "task", "language", "prompt"), ("direction", "null", "k")


def measure_tables(results: Sequence[Measured], folders: Sequence[RunFolder]) -> list[Table]:
    configs = [folder.manifest().config for folder in folders]
    names = [(config.model, config.task) for config in configs]
    alike = len(set(names)) < len(names)
    tables = []
    for result in results:
        gathered: dict[str, tuple[Part, list[Mapping[str, Any]]]] = {}
        for number, ((model, task), found) in enumerate(zip(names, result.of_runs, strict=True), start=1):
            head = {"run": str(number) if alike else "", "model": model, "task": task}
            for part in found.parts if isinstance(found, Found) else ():
                _, lines = gathered.setdefault(part.title, (part, []))
                lines += [{**head, **line} for line in part.lines]
        tables += [_part_table(part, lines) for part, lines in gathered.values()]
        tables += [_part_table(part, part.lines) for part in (result.across.parts if result.across else ())]
    return tables


def measure_data(results: Sequence[Measured], folders: Sequence[RunFolder]) -> list[DataTable]:
    """Return the same parts as data, each named after its measure and title; lines of single runs name their folder."""
    found: dict[str, list[Row]] = {}
    for result in results:
        heads = [
            {"folder": as_text(folder.path), "model": config.model, "task": config.task}
            for folder, config in ((folder, folder.manifest().config) for folder in folders)
        ]
        for head, of_run in [*zip(heads, result.of_runs, strict=True), (dict[str, str](), result.across)]:
            for part in of_run.parts if isinstance(of_run, Found) else ():
                name = "_".join(re.findall(r"[a-z0-9]+", f"{result.name} {part.title}".lower()))
                found.setdefault(name, []).extend(data_table("", part.lines, **head).rows)
    return [DataTable(name, rows) for name, rows in found.items()]


def measure_notes(results: Sequence[Measured], folders: Sequence[RunFolder]) -> list[str]:
    """Return notes beside the tables, and a line for every measure that does not apply to a run."""
    notes = []
    for result in results:
        found = [each for each in (*result.of_runs, result.across) if isinstance(each, Found)]
        notes += [f"{result.name}: {note}" for each in found for note in each.notes]
        for folder, of_run in zip(folders, result.of_runs, strict=True):
            if isinstance(of_run, Missing):
                where = "" if len(folders) == 1 else f" for {folder.path}"
                notes.append(f"{result.name}: no result{where}: {of_run.reason}.")
    return list(dict.fromkeys(notes))


def _part_table(part: Part, lines: Sequence[Mapping[str, Any]]) -> Table:
    heads = [name for name in ("run", "model", "task") if all(name in line for line in lines)]
    return table_of(part.title, lines, (*naming(*heads), *part.columns))


def variance_table(plan: Plan) -> Table:
    """Return the origin of the variance of an example's win rate, for every configuration of a plan."""
    several = [name for name in ("direction", "k", "null") if len({getattr(each, name) for each in plan.variances}) > 1]
    shown = (
        *naming("attribution", "operator", *several),
        Column("variance", "variance", "fraction"),
        *(Column(name, name, "percent") for name in ("examples", "fills", "sets")),
    )
    return table_of("Variance of a win rate, as asked, by source", plan.variances, shown)


def grid_plan_table(lines: Sequence[Mapping[str, Any]], *, rows: str = "rows") -> Table:
    shown = (
        *naming("model", "task", "prompt", "language"),
        Column("n", "examples", "count"),
        Column("rows", rows, "count"),
        *([Column("cost", "cost (at most)", "fraction")] if any(line["cost"] is not None for line in lines) else []),
        Column("minutes", "minutes", "decimal"),
        *naming("status"),
    )
    return table_of("Plan", lines, shown)


def grid_plan_notes(lines: Sequence[Mapping[str, Any]], *, of_chains: bool = False) -> list[str]:
    """Return the cost of all runs together, and why some cannot start."""
    rows = [line["rows"] for line in lines if line["rows"]]
    found = list(dict.fromkeys(f"{line['task']} cannot start: {line['problem']}" for line in lines if line["problem"]))
    if found:
        found.append("Data that the hub does not give may come from a folder: --data-dir DIR takes DIR/TASK.jsonl.")
    counted, by = "requests to ask" if of_chains else "rows to score", "words are counted as units"
    by = "six steps are assumed for unwritten chains" if of_chains else by
    found += [f"{len(lines)} runs, about {sum(rows):,} {counted} in {len(rows)} of them ({by})."]
    costs = [line["cost"] for line in lines if line["cost"] is not None]
    if costs:
        found.append(f"They cost at most about {sum(costs):.2f}, in the currency of the prices.")
    found += [
        f"{line['model']} on {line['task']} exceeds the limit of {line['exceeds']}: the run stops there."
        for line in lines
        if line["exceeds"] is not None
    ]
    known = [line["minutes"] for line in lines if line["minutes"] is not None and line["rows"]]
    if known and len(known) == len(rows):
        found.append(f"About {sum(known):.0f} minutes, at the pace of the runs that are finished.")
    elif rows:
        found.append("Minutes are known once a run of the model is finished; `ice plan` measures one run beforehand.")
    return found


def grid_runs_table(runs: Sequence[Mapping[str, Any]]) -> Table:
    known = ("confidence", "tokens_median", "accuracy")
    lines = [dict.fromkeys(known) | {**run, "error": run.get("error") or None} for run in runs]
    of_chains = any("accuracy" in run for run in runs)
    of_texts = (Column("confidence", "confidence", "percent"), Column("tokens_median", "median tokens", "shortest"))
    shown = (
        Column("name", "run", "text"),
        *naming("status"),
        *((Column("accuracy", "accuracy", "percent"),) if of_chains else of_texts),
        *(naming("error") if any(line["error"] for line in lines) else ()),
    )
    return table_of("Runs", lines, shown)


def grid_table(lines: Sequence[GridLine[SummaryLine]]) -> Table:
    """Return the win rates of a grid, attributions and operators side by side; a star where adjusted p is small."""
    single = [each.line for each in lines if each.line.operator != ALL]
    across = dict.fromkeys(f"{line.attribution} {line.operator}" for line in single)
    return table_of("Win rates", grid_places(lines), (*naming(*_OF_RUN, *_OF_LINE), *map(_rate_column, across)))


def grid_places(lines: Sequence[GridLine[SummaryLine]]) -> list[dict[str, Any]]:
    """Return the rows of a grid: names of a run and of a setting, and a line for each `attribution operator`."""
    places: dict[tuple[object, ...], dict[str, Any]] = {}
    for each in lines:
        line = each.line
        named = {name: getattr(each.run, name) for name in _OF_RUN} | {name: getattr(line, name) for name in _OF_LINE}
        place = places.setdefault(tuple(named.values()), {**named, "run": each.run.name})
        place[f"{line.attribution} {line.operator}"] = line
    return list(places.values())


def _rate_column(name: str) -> Column:
    def rate(line: SummaryLine) -> str:
        return percent(line.win_rate) + (" *" if line.p_adjusted is not None and line.p_adjusted <= _STAR else "")

    def of_row(of_line: Callable[[SummaryLine], str | None]) -> Callable[[Mapping[str, Any]], str | None]:
        return lambda row: of_line(row[name]) if name in row else None

    return Column(name, name, "text", get=of_row(rate), word=of_row(word_of_line))


def grid_table_note(lines: Sequence[GridLine[SummaryLine]]) -> str:
    known = [each.line for each in lines if each.line.p_value is not None]
    method = "Benjamini–Hochberg" if known and all(protocol_of(line.flags).fdr for line in known) else "Holm"
    return (
        f"Win rates: * marks p ≤ {_STAR}, adjusted over all {len(known)} configurations of the grid ({method}); "
        "intervals, verdicts and the average over operators are in bench.json."
    )


def answer_tables(answers: Mapping[str, Found | Missing]) -> list[Table]:
    """Return a table for every part of the answers of a grid to some questions; very long ones are shortened."""
    return [_part_table(part, part.lines[:_MOST_LINES]) for part in _parts(answers)]


def answer_notes(answers: Mapping[str, Found | Missing]) -> list[str]:
    """Return notes beside these tables, and the reason why some questions have no answer."""
    notes = []
    for name, answer in answers.items():
        said = [f"no result: {answer.reason}."] if isinstance(answer, Missing) else answer.notes
        notes += [f"{name.replace('_', '-')}: {note}" for note in said]
    long = [part for part in _parts(answers) if len(part.lines) > _MOST_LINES]
    return notes + [f"{part.title}: {len(part.lines) - _MOST_LINES} further lines are in bench.json." for part in long]


def _parts(answers: Mapping[str, Found | Missing]) -> list[Part]:
    return [part for each in answers.values() if isinstance(each, Found) for part in each.parts]


def audit_tables(audit: InfillAudit, fills: FillAudit | None) -> list[Table]:
    """Return the units that survive the blacklist; for a run also the fills that infill wrote, and their effect."""
    judged = (
        Column("task", "task", "text", get=lambda _: audit.task),
        *naming("reference"),
        Column("considered", "indicative", "count"),
        Column("blocked", "blocked", "text", get=lambda each: _counted(each.blocked.values())),
        Column("surviving", "surviving", "text", get=lambda each: _counted(each.surviving.values())),
        Column("surviving_by_chance", "by chance", "rounded"),
        Column("rate", "est. rate", "text", get=lambda each: _rate(each.rate)),
        Column("rate_by_chance", "rate by chance", "text", get=lambda each: _rate(each.rate_by_chance)),
        Column("p_value", "p", "p-value"),
        Column("rate_per_example", "per example", "percent"),
        Column("named", "most frequent of these", "text", get=lambda each: _named(each.surviving.values())),
    )
    # The task is named although it is the same in every row: tables of several audits are put together.
    tables = [table_of("What survives the blacklist of infill", audit.judged, judged, whole=True)]
    if fills is None:
        return tables
    estimated = {each.reference: each.rate for each in audit.judged}
    counts = (
        *naming("reference"),
        Column("rate", "est. rate", "text", get=lambda each: _rate(estimated[each.reference])),
        *(Column(name, name, "text", get=partial(_contaminated, name=name)) for name in ("fills", "rows", "examples")),
    )
    tables.append(table_of("What infill wrote in this run", fills.counts, counts))
    effects = (
        *naming("attribution", "operator", "null", "direction", "k", "reference"),
        *(Column(name, name, "text", get=partial(_of_group, group=name)) for name in ("contaminated", "clean")),
        *estimate("difference", "difference", "points"),
        *columns("p-value", p_value="p", p_adjusted="p adj."),
    )
    return [*tables, table_of("Win rates where fills tell the label, and where none does", fills.effects, effects)]


def audit_data(audit: InfillAudit, fills: FillAudit | None) -> list[DataTable]:
    """Return the same tables as data; the units are a table of their own."""
    head, outcomes = {"model": audit.model, "task": audit.task}, ("blocked", "surviving")
    judged = [
        {name: value for name, value in each.as_dict().items() if name not in outcomes}
        | {outcome: len(getattr(each, outcome)) for outcome in outcomes}
        for each in audit.judged
    ]
    units = [
        {"reference": each.reference, "outcome": outcome, **vars(unit)}
        for each in audit.judged
        for outcome in outcomes
        for unit in getattr(each, outcome).values()
    ]
    tables = [data_table("judged", judged, **head), data_table("units", units, **head)]
    if fills is not None:
        tables += [data_table("fills", fills.counts, **head), data_table("effects", fills.effects, **head)]
    return tables


def audit_notes(audit: InfillAudit, fills: FillAudit | None) -> list[str]:
    listed = f" and the list '{audit.word_list}'" if audit.word_list else ""
    found = [
        f"{audit.n} examples give {audit.units:,} units to the pool; {audit.units_blocked:,} of them "
        f"({percent(audit.units_blocked / audit.units)}) are blocked. No model was asked.",
        f"words: label words, the task's lexicon{listed}, {audit.n_words} words in all; units that belong to them "
        "in at least half of their occurrences. The blacklist is the task's own.",
    ]
    if any(each.reference == "held out" for each in audit.judged):
        found.append(
            f"held out: tokens with |z| > {LOOSE_Z} and count ≥ {LOOSE_COUNT} in one half of the data, against the "
            f"blacklist of the other half. By chance: the mean of {N_SHUFFLES} shuffles of the gold labels; p: share "
            "of shuffles with a rate as high."
        )
    blocked = [(each.reference, _named(each.blocked.values())) for each in audit.judged if each.blocked]
    found += [f"{reference}, blocked, the most frequent: {units}." for reference, units in blocked]
    if fills is not None:
        found.append(
            "An example is contaminated where a fill around its rationale is among the surviving units. Long texts "
            "have more fills, so contaminated examples are longer ones too."
        )
    return [*found, *audit.notes]


def _of_group(line: ContaminationEffect, group: str) -> str:
    return f"{percent(getattr(line, f'win_rate_{group}'))} ({getattr(line, f'n_{group}')})"


def _counted(pieces: Collection[AuditedUnit]) -> str:
    kinds = [(sum(piece.kind == kind for piece in pieces), kind) for kind in get_args(PieceKind)]
    named = ", ".join(f"{n} {kind}{'' if n == 1 else 'es' if kind == 'prefix' else 's'}" for n, kind in kinds if n)
    return f"{len(pieces):,} ({named})" if named else "0"


def _named(pieces: Iterable[AuditedUnit], most: int = 8) -> str:
    shown = itertools.islice(pieces, most)
    return ", ".join(f"{piece.text or '␣'} ({piece.count})" for piece in shown) or EMPTY


def _rate(value: float | None) -> str | None:
    return None if value is None else f"{100 * value:.2f} %"


def _contaminated(line: Any, name: str) -> str | None:
    part, whole = getattr(line, f"contaminated_{name}"), getattr(line, name)
    return f"{part:,} of {whole:,} ({_rate(part / whole)})" if whole else None


def paper_layout(table: paper.PaperTable) -> Table:
    """Return one table; a field whose values are columns in the paper has them as columns here."""
    if table.columns is None:
        header = [name.replace("_", " ") for name in table.rows[0]]
        return _plain(table.title, header, [list(row.values()) for row in table.rows])
    kept = [name for name in table.rows[0] if name not in {table.columns, *table.values}]
    across = list(dict.fromkeys((row[table.columns], value) for row in table.rows for value in table.values))
    cells: dict[tuple[str, ...], dict[tuple[str, str], str]] = {}
    for row in table.rows:
        line = cells.setdefault(tuple(row[name] for name in kept), {})
        line.update({(row[table.columns], value): row[value] for value in table.values})
    header = [name.replace("_", " ") for name in kept]
    header += [f"{column} {value}" if len(table.values) > 1 else column for column, value in across]
    return _plain(table.title, header, [[*key, *(line[place] for place in across)] for key, line in cells.items()])


def paper_index(tables: Sequence[paper.PaperTable]) -> Table:
    rows = [(table.name, ", ".join(table.labels), table.title) for table in tables]
    return _plain("Published tables", ("table", "in the paper", "what it holds"), rows)


def claims_table(claims: Sequence[paper.StatedFigure]) -> Table:
    """Return every figure that the paper states, beside the value from its tables."""
    signs = {"equal": "", "above": "> ", "below": "< "}
    shown = (
        *columns("text", says="figure", where="where"),
        Column("stated", "stated", "text", get=lambda claim: f"{signs[claim.relation]}{claim.stated:g}"),
        Column("recomputed", "from the tables", "text", get=lambda claim: f"{claim.recomputed:.4g}"),
        Column("agrees", "holds", "yes/no"),
    )
    return table_of("Figures that the paper states", claims, shown)


def discrepancies_table(discrepancies: Sequence[paper.Discrepancy]) -> Table:
    """Return the numbers that the paper gives in two different ways."""
    rows = [(" / ".join(value or EMPTY for value in each.values), each.note) for each in discrepancies]
    return _plain("Discrepancies", ("values", "what differs"), rows)


def beside_table(found: paper.BesidePaper) -> Table:
    """Return the win rates of a run beside the published ones; without rows where the paper has none of them."""
    shown = (
        *naming("attribution", "operator", "k", "n"),
        Column("win_rate", "win rate", "percent", word=lambda line: word_of(line.attribution, line.verdict)),
        Column("win_rate_ci", "95 % CI", "percent interval"),
        Column("published", "published", "percent", word=lambda line: line.published_taxonomy),
        Column("difference", "difference", "points"),
        Column("covered", "in the interval", "yes/no"),
        *columns("text", taxonomy="word", published_taxonomy="published word"),
    )
    return table_of("Beside the paper", found.configurations, shown)


def beside_notes(found: paper.BesidePaper) -> list[str]:
    """Return differences between the protocols of run and paper, and the configurations that the paper lacks."""
    if not found.configurations:
        return [f"{_why_none(found)} So none of the run's {found.n_without} configurations has a published cell."]
    covered = [line.covered for line in found.configurations]
    further = f"{found.n_without} further configurations of the run have no published cell."
    return [
        f"{covered.count(True)} of {len(covered)} published win rates lie in the run's 95 % interval.",
        "Published win rates are estimates too, and are printed without intervals.",
        *(f"Different from the paper: {line}" for line in found.protocol),
        *([further] if found.n_without else []),
    ]


def _why_none(found: paper.BesidePaper) -> str:
    model, task = paper.model_of(found.model), paper.task_of(found.task)
    if model is None or task is None:
        kind, table, name = ("model", "models", found.model) if model is None else ("task", "datasets", found.task)
        known = ", ".join(row[kind] for row in paper.paper_table(table).rows)
        return f"The paper has no {kind} '{name}'; it has {known}."
    return f"The paper has '{found.model}' on '{found.task}' with other attributions, operators or k."


def _plain(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    return Table(title, tuple(header), tuple(tuple(cell or EMPTY for cell in row) for row in rows))
