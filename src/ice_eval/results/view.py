"""One example of a run with all that is known of it, for people to look at."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ice_eval._registry import did_you_mean
from ice_eval.errors import ConfigError
from ice_eval.results.comparisons import ExampleLedger
from ice_eval.results.folder import RunFolder
from ice_eval.results.outcomes import Configuration, Scores
from ice_eval.results.schema import InputRow, LedgerRow, is_probe
from ice_eval.results.summary import configurations


@dataclass(frozen=True)
class Compared:
    """One configuration of an example."""

    line: Mapping[str, Any]
    """As `examples.jsonl` has it."""
    scores: Scores | None
    """What the rationale and the sets of its null scored; None where nothing was compared."""


@dataclass(frozen=True)
class ExampleView:
    """One example: its text, every row that was scored, and what its rationales were compared with."""

    example: InputRow
    labels: tuple[str, ...]
    rows: tuple[LedgerRow, ...]
    compared: tuple[Compared, ...]

    @property
    def target(self) -> str:
        """The label that is explained."""
        return self.labels[self.example.target or 0]


def view_example(
    folder: RunFolder,
    example_id: str,
    *,
    attribution: str | None = None,
    operator: str | None = None,
    direction: str | None = None,
    k: float | None = None,
    null: str | None = None,
) -> ExampleView:
    """Look at one example, under all configurations or those that are chosen.

    Raises:
        ConfigError: The run is not finished, or holds no such example or configuration.
    """
    folder.require_complete()
    manifest = folder.manifest()
    config = manifest["config"]
    chosen = {"attribution": attribution, "operator": operator, "direction": direction, "k": k, "null": null}
    cells = _chosen(folder, config, {name: value for name, value in chosen.items() if value is not None})
    example, rows = _find(folder, example_id)
    ledger = ExampleLedger.of(example, [row for row in rows if not is_probe(row.key.kind)], config)
    operators = dict(configurations(config))
    compared = []
    for line in folder.examples():
        cell = Configuration.of(line)
        if line["example_id"] == example_id and cell in cells:
            scores = None if "error" in line else ledger.scores(cell, operators[cell], config["m"])
            compared.append(Compared(line, None if scores is None else _looked_at(scores, line["m"])))
    return ExampleView(example, tuple(manifest["labels"]), tuple(rows), tuple(compared))


def _chosen(folder: RunFolder, config: Mapping[str, Any], wanted: Mapping[str, Any]) -> set[Configuration]:
    cells = [cell for cell, _ in configurations(config)]
    for name, value in wanted.items():
        # A rationale of its own size has no k: it is chosen by its attribution.
        known = [each for each in dict.fromkeys(getattr(cell, name) for cell in cells) if each is not None]
        if value not in known:
            names = [str(each) for each in known]
            meant = did_you_mean(value, names) if isinstance(value, str) else "."
            raise ConfigError(f"{folder.path} has no {name} '{value}'{meant} It has {', '.join(names)}.")
    return {cell for cell in cells if all(getattr(cell, name) == value for name, value in wanted.items())}


def _find(folder: RunFolder, example_id: str) -> tuple[InputRow, list[LedgerRow]]:
    known: list[str] = []
    for part in folder.parts():
        for row in folder.inputs(part):
            if row.example_id == example_id:
                return row, [r for r in folder.ledger(part, inputs=True) if r.key.example_id == example_id]
            known.append(row.example_id)
    raise ConfigError(
        f"no example '{example_id}' in {folder.path}{did_you_mean(example_id, known)} "
        f"It holds {len(known)}, from '{known[0]}' to '{known[-1]}'."
    )


def _looked_at(scores: Scores, m: int) -> Scores:
    """A sequential test may stop before the last set that was scored."""
    return Scores(scores.rationale, scores.null[:m], scores.sets[:m])
