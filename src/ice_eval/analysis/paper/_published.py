"""The published cell that a user's result belongs beside, and what keeps the two from being the same measurement."""

import re
from collections.abc import Iterator, Sequence

from ice_eval.analysis.grid import Cell
from ice_eval.analysis.paper._cells import (
    UNSTATED,
    ablation_cells,
    english_cells,
    k_cells,
    multilingual_cells,
    prompt_cells,
)
from ice_eval.analysis.paper._tables import Row, paper_table
from ice_eval.protocols import PROTOCOLS
from ice_eval.results import RunSettings
from ice_eval.tasks import tasks

_N, _M, _K = 500, 50, 0.2
_PAPER = {"unit": "token", "scope": "content", "target": "predicted", "calibration": "none"}
_STYLES = {"yes/no": "yes-no", "T/F/U": "true-false-unknown"}
"""The paper's names of prompts, and ours where they differ."""
_TUNED = re.compile(r"instruct|chat|-it\b", re.IGNORECASE)


def published(
    model: str, task: str, attribution: str, operator: str, *, k: float | None = _K, direction: str = "sufficiency"
) -> Cell | None:
    """The win rate that the paper prints for a configuration, or None.

    Models and tasks are found by the paper's names and by hub ids, folders and files of the same model or data set
    (`meta-llama/Llama-3.1-8B@main`, `french_allocine`); `sst2/minimal` is the paper's minimal prompt. For other prompts
    than the standard one and for another k than 0.2 the paper does not name the operator; the cell says so, and stands
    for deletion and infill alike.
    """
    found_model, found_task, way = model_of(model), task_of(task), _parted(task)[1]
    if found_model is None or found_task is None or direction != "sufficiency":
        return None
    cells: Sequence[Cell] = (*english_cells(), *multilingual_cells(), *ablation_cells(), *k_cells())
    if way:
        cells = [cell for cell in prompt_cells() if _style_of(cell) == way]
    wanted = (found_model["model"], found_task, attribution, k)
    operators = (operator, UNSTATED) if operator in ("delete", "infill") else (operator,)
    fitting = (cell for cell in cells if (cell.model, cell.task, cell.attribution, cell.k) == wanted)
    return next((cell for cell in fitting if cell.operator in operators), None)


def model_of(model: str) -> Row | None:
    """The line of the paper's table of models that a name, a hub id, a folder or a file stands for."""
    name = _name_of(model)
    for row in paper_table("models").rows:
        if name in (_squashed(row["model"]), *row["also_called"].split()) or _says_size(name, row):
            return row
    return None


def task_of(task: str) -> str | None:
    """The paper's data set that a task, in any of its prompts, or a hub id stands for, by our name for it."""
    name = _name_of(_parted(task)[0])
    for row in paper_table("datasets").rows:
        if name in (_squashed(row["task"]), *row["also_called"].split()):
            return row["task"]
    return None


def protocol_differences(config: RunSettings, cell: Cell) -> list[str]:
    """In what a run was done otherwise than the paper's, a sentence each.

    Args:
        config: The run's `config`, as in its manifest.
        cell: The published cell that the run is set beside.
    """
    return [*_of_model(config.model, cell), *_of_settings(config, cell), *_unknown(cell)]


def _of_model(model: str, cell: Cell) -> Iterator[str]:
    row = model_of(model)
    if row is None or row["model"] != cell.model:
        yield f"model: {model} here, {cell.model} in the paper."
        return
    if not _says_size(_name_of(model), row):
        yield f"model: the paper's {cell.model} has {row['size']} parameters; '{model}' does not say how many it has."
    if bool(_TUNED.search(model)) != (row["type"] != "base"):
        yield f"model: the paper's {cell.model} is of the type '{row['type']}'; '{model}' does not look like it."


def _of_settings(config: RunSettings, cell: Cell) -> Iterator[str]:
    if cell.k not in config.k:
        yield f"k: {', '.join(map(str, config.k))} here, {cell.k:g} in the paper."
    n = cell.n or _N
    if config.n != n:
        yield f"n: {config.n} examples here at most, {n} in the paper."
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
        yield f"n-fills: {config.n_fills} fills are averaged here, 1 is drawn in the paper."
    protocol = PROTOCOLS[config.protocol]
    if not protocol.strict:
        yield "ties: half a win here, lost in the paper."
    if protocol.by_clipped_nsr:
        yield "order: sets are ranked by clipped NSR here, by NSR in the paper."


def _unknown(cell: Cell) -> Iterator[str]:
    yield "prompt: the paper does not print its prompts, and win rates move with them."
    if cell.operator == UNSTATED:
        yield f"operator: the paper does not name that of its table by {'prompt' if cell.prompt else 'k'}."


def _parted(task: str) -> tuple[str, str]:
    """A task and the way it is asked: `sst2/minimal` is `sst2` and `minimal`. Other names have no such way."""
    name, _, way = task.partition("/")
    return (name, way) if name in tasks and way else (task, "")


def _style_of(cell: Cell) -> str:
    """What we call the prompt of a cell."""
    [row] = paper_table("prompts").where(task=cell.task, prompt=cell.prompt)
    return _STYLES.get(row["style"], row["style"])


def _says_size(name: str, row: Row) -> bool:
    return name.startswith(tuple(row["ids_begin_with"].split()))


def _name_of(identifier: str) -> str:
    """The last part of a hub id or path, without a revision, squashed."""
    return _squashed(identifier.rstrip("/").rpartition("/")[2].partition("@")[0])


def _squashed(name: str) -> str:
    """Letters and digits alone, in lower case: `Llama-3.1-8B` -> `llama318b`."""
    return "".join(character for character in name.lower() if character.isalnum())
