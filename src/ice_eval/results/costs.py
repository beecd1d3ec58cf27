"""What the rows of a run cost: per example, and per random set."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ice_eval.records import NOT_SET, Ids, Kind
from ice_eval.results.examples import Examples
from ice_eval.results.folder import RunFolder
from ice_eval.results.records import RunSettings
from ice_eval.results.summary import configurations, names_of

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
    config = folder.manifest().config
    n_rows = n_examples = n_random = n_sets = 0
    lengths, capacities = np.zeros(2, dtype=np.int64), list[int]()
    for part in folder.parts():
        examples = folder.columns(part)
        ledger = folder.ledger(part, names_of(config, examples.ids), inputs=True)
        head, tokens = ledger.head, ledger.inputs.lengths
        place = _places(head)
        # The tokens of probes are those of attributions.
        lengths += [tokens[head["kind"] != Kind.PROBE].sum(), tokens[place > 0].sum()]
        reached = np.zeros(len(examples), dtype=np.int64)
        np.maximum.at(reached, head["example"], place)
        n_rows, n_random, n_sets = n_rows + len(head), n_random + int((place > 0).sum()), n_sets + int(reached.sum())
        n_examples += len(np.unique(head["example"]))
        capacities += _capacities(examples, np.flatnonzero(reached), config)
    n_sets, n = max(n_sets, 1), max(n_examples, 1)
    # What rows share is computed once; it is spread over them by their length.
    of_random = total["tokens"] * int(lengths[1]) / max(int(lengths[0]), 1)
    sizes = [path.stat().st_size for path in folder.path.glob("*/*.parquet")]
    return Cost(
        rows_example=(n_rows - n_random) / n,
        rows_set=n_random / n_sets,
        tokens_example=(total["tokens"] - of_random + total["attribution_tokens"]) / n,
        tokens_set=of_random / n_sets,
        tokens_attribution=total["attribution_tokens"] / n,
        seconds_attribution=attribution_seconds / n,
        seconds_token=max(total["seconds"] - attribution_seconds, 0.0) / max(total["tokens"], 1),
        bytes_row=sum(sizes) / max(n_rows, 1),
        capacities=tuple(capacities) or (_MANY,),
    )


def _capacities(examples: Examples, chosen: Ids, config: RunSettings) -> list[int]:
    """Return how many other sets of the size of a rationale each example has."""
    cells = {(cell.attribution, cell.k) for cell, _ in configurations(config)}
    sizes = [examples.sizes(name, k, magnitude=name in config.by_magnitude) for name, k in cells]
    return [
        min(max(math.comb(int(examples.n_units[place]), int(size[place])) - 1 for size in sizes), _MANY)
        for place in chosen
    ]


def _places(head: NDArray[Any]) -> Ids:
    """Return which of the sets that a rationale is compared with each row is, from 1 on; 0 for any other row.

    Of the sets that all attributions share one more is scored than they are compared with, in place of a rationale that
    is among them.
    """
    shared = head["attribution"] == NOT_SET
    place: Ids = np.where(head["kind"] == Kind.RANDOM, np.where(shared, head["set"], head["set"] + 1), 0)
    return place
