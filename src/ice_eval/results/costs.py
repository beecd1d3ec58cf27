"""What the rows of a run cost: per example, and per random set."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ice_eval.rationales import Share, rationale_size
from ice_eval.results.folder import RunFolder
from ice_eval.results.schema import PROBE, SHARED_NULL, InputRow, RowKey, is_probe
from ice_eval.results.summary import configurations

_MANY = 10**9
"""Sets of an example that has more than anybody asks for."""


@dataclass(frozen=True)
class Cost:
    """What an example of a run cost, apart from its random sets, and what each set cost, under all operators."""

    rows_example: float
    rows_set: float
    tokens_example: float
    """Tokens through the model; a backward pass counts as two forward passes."""
    tokens_set: float
    seconds_attribution: float
    """Per example."""
    seconds_token: float
    """Per token of a row."""
    tokens_attribution: float
    bytes_row: float
    """On disk."""
    capacities: tuple[int, ...]
    """Random sets that each example has at most: short texts have few."""

    def sets(self, m: int) -> float:
        """Random sets of an example, if m are asked for, on average."""
        return float(np.minimum(m, self.capacities).mean())

    def rows(self, m: int) -> float:
        """Of an example with m random sets; the one that is scored beside them is a row of the example."""
        return self.rows_example + self.sets(m) * self.rows_set


def cost_of(folder: RunFolder) -> Cost:
    """What the rows of a folder cost, per example and per random set."""
    costs = folder.costs()
    total = {
        name: sum(cost.get(name, 0) for cost in costs) for name in ("rows", "tokens", "attribution_tokens", "seconds")
    }
    attribution_seconds = sum(sum(cost["attribution_seconds"].values()) for cost in costs)
    rows = [row for part in folder.parts() for row in folder.ledger(part, inputs=True)]
    examples = {row.key.example_id for row in rows}
    random = [row for row in rows if _place(row.key)]
    reached: dict[str, int] = {}
    for row in random:
        reached[row.key.example_id] = max(reached.get(row.key.example_id, 0), _place(row.key))
    n_sets = max(sum(reached.values()), 1)
    # The tokens of probes are those of attributions.
    others = [row for row in rows if not is_probe(row.key.kind)]
    lengths = {"all": sum(len(row.input_ids) for row in others), "random": sum(len(row.input_ids) for row in random)}
    # What rows share is computed once; it is spread over them by their length.
    of_random = total["tokens"] * lengths["random"] / max(lengths["all"], 1)
    n = max(len(examples), 1)
    sizes = [path.stat().st_size for path in folder.path.rglob("*.parquet")]
    return Cost(
        rows_example=(len(rows) - len(random)) / n,
        rows_set=len(random) / n_sets,
        tokens_example=(total["tokens"] - of_random + total["attribution_tokens"]) / n,
        tokens_set=of_random / n_sets,
        tokens_attribution=total["attribution_tokens"] / n,
        seconds_attribution=attribution_seconds / n,
        seconds_token=max(total["seconds"] - attribution_seconds, 0.0) / max(total["tokens"], 1),
        bytes_row=sum(sizes) / max(len(rows), 1),
        capacities=_capacities(folder, reached),
    )


def _capacities(folder: RunFolder, reached: Mapping[str, int]) -> tuple[int, ...]:
    """How many other sets of the size of a rationale every example has."""
    config = folder.manifest()["config"]
    cells = {(cell.attribution, cell.k) for cell, _ in configurations(config)}
    inputs = {row.example_id: row for part in folder.parts() for row in folder.inputs(part)}
    found = [max(_n_others(inputs[name], *cell, config) for cell in cells) for name in reached]
    return tuple(min(count, _MANY) for count in found) or (_MANY,)


def _n_others(example: InputRow, attribution: str, k: Share | None, config: Mapping[str, Any]) -> int:
    vector = example.attributions.get(attribution, ())
    size = rationale_size(vector, k, magnitude=attribution in config.get("by_magnitude", ()))
    return math.comb(len(example.spans), size) - 1


def _place(key: RowKey) -> int:
    """Which of the sets that a rationale is compared with a row is, from 1 on; 0 for rows that every example has.

    Of the sets that all attributions share one more is scored than they are compared with, in place of a rationale that
    is among them.
    """
    if key.set_index is None or key.kind.startswith(PROBE):
        return 0
    return key.set_index if key.kind == SHARED_NULL else key.set_index + 1
