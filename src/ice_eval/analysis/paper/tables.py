"""The published tables as data, their win rates as cells of a grid, and a run beside the matching cells."""

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, cast

from ice_eval import stats
from ice_eval._registry import did_you_mean
from ice_eval.analysis.grid import Cell, TextLength
from ice_eval.choices import PROTOCOLS
from ice_eval.errors import ConfigError, DataError
from ice_eval.nulls import SIZE
from ice_eval.results import RunSettings, Summary
from ice_eval.tasks import tasks

Row = Mapping[str, str]

UNSTATED = "unstated"
_PRINTED = "sst2/paper"
"""Task with the only prompt that the paper prints."""
_N, _M, _K = 500, 50, 0.2
_PAPER = {"unit": "token", "scope": "content", "target": "predicted", "calibration": "none"}
_STYLES = {"yes/no": "yes-no", "T/F/U": "true-false-unknown"}
"""The paper's names of prompts, and ours where they differ."""
_TUNED = re.compile(r"instruct|chat|-it\b", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?\d*\.?\d+")


# --- tables -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """One table of the paper, with every cell as printed."""

    name: str
    labels: Sequence[str]
    """Tables and figures of the paper that show these numbers."""
    title: str
    unit: str
    n: int | None
    """Examples, M and k of the protocol; None where the paper does not state them, or they have no meaning."""
    m: int | None
    k: float | None
    note: str = ""
    rows: Sequence[Row]
    """One per line of the file, all with the same columns. An empty cell has no value in the paper."""
    columns: str | None = None
    """Field whose values are the columns of the printed table; None where the file has the printed layout."""
    values: Sequence[str] = ()
    """Fields that are printed in those columns."""

    def where(self, **known: str) -> list[Row]:
        return _matching(self.rows, known)

    def as_dict(self) -> dict[str, Any]:
        """Return the table as JSON holds it: numbers as numbers, empty cells as null."""
        head = {name: getattr(self, name) for name in ("name", "labels", "title", "unit", "n", "m", "k", "note")}
        rows = [
            {name: float(cell) if _NUMBER.fullmatch(cell) else cell or None for name, cell in row.items()}
            for row in self.rows
        ]
        return {**head, "rows": rows}


def _matching(rows: Sequence[Row], known: Mapping[str, str]) -> list[Row]:
    return [row for row in rows if all(row[name] == value for name, value in known.items())]


@cache
def paper_tables() -> Mapping[str, PaperTable]:
    """Return all tables by name, in the order of the index."""
    return {entry["name"]: _table(entry) for entry in read_json("tables.json")}


def paper_table(name: str) -> PaperTable:
    """Return one table; raise `ConfigError` for an unknown name."""
    known = paper_tables()
    if name in known:
        return known[name]
    raise ConfigError(f"the paper has no table '{name}'{did_you_mean(name, list(known))} Known: {', '.join(known)}.")


def referred(reference: str, row: Row) -> str:
    """Return the cell of a reference: `english.win_rate`, or `english.win_rate:operator=delete`."""
    # It is in the one row that has the same values in all columns shared by both tables, except the referenced one, and
    # the values that the reference gives.
    place, _, given = reference.partition(":")
    table, _, column = place.partition(".")
    rows = _read_csv(table)
    shared = {name: value for name, value in row.items() if name in rows[0] and not value.startswith("=")}
    wanted = {**shared, **dict(part.split("=") for part in given.split(",") if part)}
    wanted.pop(column, None)
    found = _matching(rows, wanted)
    if len(found) != 1:
        raise DataError(f"the reference '{reference}' fits {len(found)} rows; exactly one is expected")
    return _resolved(found[0], column)


def _resolved(row: Row, column: str) -> str:
    return referred(row[column][1:], row) if row[column].startswith("=") else row[column]


def _table(entry: Mapping[str, Any]) -> PaperTable:
    rows = [{name: _resolved(row, name) for name in row} for row in _read_csv(entry.get("of", entry["name"]))]
    chosen = _matching(rows, entry.get("where", {}))
    if "difference" in entry:
        first, second = entry["difference"]
        chosen = [{**row, "difference": f"{float(row[first]) - float(row[second]):+.1f}"} for row in chosen]
    kept = {name: value for name, value in entry.items() if name not in {"of", "where", "difference"}}
    return PaperTable(**kept, rows=chosen)


@cache
def _read_csv(name: str) -> tuple[Row, ...]:
    text = files("ice_eval.analysis.paper").joinpath("tables", f"{name}.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


def read_json(name: str) -> Any:
    return json.loads(files("ice_eval.analysis.paper").joinpath(name).read_text(encoding="utf-8"))


# --- cells --------------------------------------------------------------------------------------------------------


def english_cells() -> Sequence[Cell]:
    """Return seven models, four data sets, attention and gradient, deletion and infill."""
    return cells("english")


def multilingual_cells() -> Sequence[Cell]:
    """Return attention in six languages under both operators, and the printed cells of gradient."""
    return (*cells("multilingual"), *cells("multilingual_gradient"))


def prompt_cells() -> Sequence[Cell]:
    """Return GPT-2 under several prompts; the operator is not stated."""
    return cells("prompts")


@cache
def cells(name: str) -> tuple[Cell, ...]:
    """Return the win rates of a table as cells of a grid; the operator may be `UNSTATED`."""
    table, methods = paper_table(name), ("attention", "gradient")
    rows = table.rows
    if "win_rate" not in rows[0]:  # attributions are columns
        rows = [{**row, "attribution": each, "win_rate": row[each]} for row in rows for each in methods]
    lengths = {row["task"]: cast(TextLength, row["text_length"]) or None for row in paper_table("datasets").rows}
    return tuple(
        Cell(
            **{name: row[name] for name in ("model", "task", "attribution")},
            operator=row.get("operator", UNSTATED),
            win_rate=float(row["win_rate"]) / 100,
            k=float(row["k"]) if "k" in row else cast(float, table.k),
            prompt=row.get("prompt", ""),
            text_length=lengths[row["task"]],
            n=table.n,
        )
        for row in rows
        if row["win_rate"]
    )


def published(
    model: str, task: str, attribution: str, operator: str, *, k: float | None = _K, direction: str = "sufficiency"
) -> Cell | None:
    """Return the win rate that the paper prints for a configuration, or None.

    Models and tasks are found by the paper's names and by hub ids, folders and files of the same model or data set
    (`meta-llama/Llama-3.1-8B@main`, `french_allocine`). `sst2/minimal` is the paper's minimal prompt. `sst2/paper`
    belongs to the main tables, as the standard one does. For other prompts and for another k than 0.2 the paper does
    not name the operator; the cell records that, and is used for deletion and infill alike.
    """
    found_model, found_task, prompt = model_of(model), task_of(task), _parted(task)[1]
    if found_model is None or found_task is None or direction != "sufficiency":
        return None
    known: Sequence[Cell] = (*english_cells(), *multilingual_cells(), *cells("operator_ablation"), *cells("k_sweep"))
    if prompt and prompt != _PRINTED.partition("/")[2]:
        styles = {(row["task"], row["prompt"]): row["style"] for row in paper_table("prompts").rows}
        named = [(cell, styles[cell.task, cell.prompt]) for cell in prompt_cells()]
        known = [cell for cell, style in named if _STYLES.get(style, style) == prompt]
    wanted = (found_model["model"], found_task, attribution, k)
    operators = (operator, UNSTATED) if operator in ("delete", "infill") else (operator,)
    fitting = (cell for cell in known if (cell.model, cell.task, cell.attribution, cell.k) == wanted)
    return next((cell for cell in fitting if cell.operator in operators), None)


def model_of(model: str) -> Row | None:
    """Return the line of the paper's table of models for a name, a hub id, a folder or a file."""
    name = _name_of(model)
    rows = paper_table("models").rows
    return next((row for row in rows if _is_called(name, row, "model") or _says_size(name, row)), None)


def task_of(task: str) -> str | None:
    """Return our name for the paper's data set, given a task, in any of its prompts, or a hub id."""
    name = _name_of(_parted(task)[0])
    return next((row["task"] for row in paper_table("datasets").rows if _is_called(name, row, "task")), None)


def _parted(task: str) -> tuple[str, str]:
    """Return a task and its prompt: `sst2/minimal` is `sst2` and `minimal`. Other names have no prompt."""
    name, _, prompt = task.partition("/")
    return (name, prompt) if name in tasks and prompt else (task, "")


def _is_called(name: str, row: Row, field: str) -> bool:
    return name in (_name_of(row[field]), *row["also_called"].split())


def _says_size(name: str, row: Row) -> bool:
    return name.startswith(tuple(row["ids_begin_with"].split()))


def _name_of(identifier: str) -> str:
    """Return letters and digits of a name, in lower case, without folder and revision: `llama318b`."""
    return "".join(filter(str.isalnum, identifier.rstrip("/").rpartition("/")[2].partition("@")[0].lower()))


# --- a run beside the paper ---------------------------------------------------------------------------------------


def protocol_differences(config: RunSettings, cell: Cell) -> list[str]:
    """Return the differences between the settings of a run and those of a published cell, a sentence each."""
    return list(_differences(config, cell))


def _differences(config: RunSettings, cell: Cell) -> Iterator[str]:
    model, row = config.model, model_of(config.model)
    if row is None or row["model"] != cell.model:
        yield f"model: {model} here, {cell.model} in the paper."
    elif not _says_size(_name_of(model), row):
        yield f"model: the paper's {cell.model} has {row['size']} parameters; '{model}' does not say how many it has."
    if row is not None and row["model"] == cell.model and bool(_TUNED.search(model)) != (row["type"] != "base"):
        yield f"model: the paper's {cell.model} is of the type '{row['type']}'; '{model}' does not look like it."
    if cell.k not in config.k:
        yield f"k: {', '.join(map(str, config.k))} here, {cell.k:g} in the paper."
    if config.n != (cell.n or _N):
        yield f"n: {config.n} examples here at most, {cell.n or _N} in the paper."
    if config.m != _M or config.adaptive:
        chosen = ", chosen adaptively" if config.adaptive else ""
        yield f"m: {config.m} random sets here{chosen}, {_M} in the paper."
    for name, value in _PAPER.items():
        if getattr(config, name) != value:
            yield f"{name}: {getattr(config, name)} here, {value} in the paper."
    if config.sign != "abs":
        yield "sign: units are ranked by support here, by magnitude in the paper; attention and gradient have no sign."
    if cell.operator == "infill" and config.fills != "own":
        yield "fills: the same in every row here, own ones in the paper, which pulls win rates towards one half."
    if cell.operator == "infill" and config.n_fills != 1:
        yield f"n-fills: win rates are averaged over {config.n_fills} fills here, 1 is drawn in the paper."
    protocol = PROTOCOLS[config.protocol]
    if not protocol.strict:
        yield "ties: half a win here, lost in the paper."
    if protocol.by_clipped_nsr:
        yield "order: sets are ranked by clipped NSR here, by NSR in the paper."
    yield f"prompt: the paper prints one, as an example ({_PRINTED}), and win rates move with prompts."
    if cell.operator == UNSTATED:
        yield f"operator: the paper does not name that of its table by {'prompt' if cell.prompt else 'k'}."


@dataclass(frozen=True, kw_only=True)
class BesidePublished:
    """One configuration of a run, and the matching published cell."""

    attribution: str
    operator: str
    k: float
    n: int
    win_rate: float
    win_rate_ci: stats.Interval | None
    """95 % interval; None where it is undefined."""
    verdict: stats.Verdict
    taxonomy: str
    """The paper's word for the run's win rate."""
    published: float
    published_n: int | None
    """Number of examples of the paper, if stated."""
    published_taxonomy: str
    difference: float
    covered: bool | None
    """True if the published win rate is in the run's interval; None without an interval."""


@dataclass(frozen=True)
class BesidePaper:
    """A run beside the cells of the paper that measured the same."""

    model: str
    task: str
    configurations: tuple[BesidePublished, ...]
    n_without: int
    """Number of configurations without a published cell."""
    protocol: tuple[str, ...]
    """Differences between the settings of the run and of the paper, a sentence each."""

    def as_dict(self) -> dict[str, Any]:
        lines = [{**vars(line), "verdict": str(line.verdict)} for line in self.configurations]
        return {**vars(self), "configurations": lines}


def beside_paper(summary: Summary, config: RunSettings) -> BesidePaper:
    """Compare a run, given by its summary and the `config` of its manifest, with the published tables."""
    found, protocol = list[BesidePublished](), dict[str, None]()
    # Data may hold fewer examples than requested.
    done = replace(config, n=min(config.n, max((line.n for line in summary.configurations), default=0)))
    for line in summary.configurations:
        if line.null != SIZE or line.win_rate is None or line.verdict is None or not isinstance(line.k, float):
            continue
        cell = published(config.model, config.task, line.attribution, line.operator, k=line.k, direction=line.direction)
        if cell is None:
            continue
        same, interval = ("attribution", "operator", "k", "n", "win_rate", "win_rate_ci", "verdict"), line.win_rate_ci
        found.append(
            BesidePublished(
                **{name: getattr(line, name) for name in same},
                taxonomy=stats.taxonomy(line.win_rate),
                published=cell.win_rate,
                published_n=cell.n,
                published_taxonomy=stats.taxonomy(cell.win_rate),
                difference=line.win_rate - cell.win_rate,
                covered=None if interval is None else interval[0] <= cell.win_rate <= interval[1],
            )
        )
        protocol.update(dict.fromkeys(protocol_differences(done, cell)))
    n_without = len(summary.configurations) - len(found)
    return BesidePaper(config.model, config.task, tuple(found), n_without, tuple(protocol))
