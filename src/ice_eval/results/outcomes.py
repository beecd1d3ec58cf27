"""What is known of one example under one configuration, and what names a configuration."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ice_eval.nulls import SIZE
from ice_eval.rationales import Share, Units

ALL = "all"
"""Name of the several-operator average."""


class Configuration(NamedTuple):
    """What a summary line is about."""

    attribution: str
    operator: str
    direction: str
    k: Share | None
    """Share of units in a rationale, or `dynamic`; None: rationales have sizes of their own."""
    null: str = SIZE

    @classmethod
    def of(cls, line: Mapping[str, Any]) -> "Configuration":
        """That of a line of `summary.json` or `examples.jsonl`; earlier versions know one null, and do not name it."""
        return cls(**{name: line[name] for name in cls._fields if name in line})


@dataclass(frozen=True)
class Outcome:
    """One example under one configuration; `error` and no numbers where there are none."""

    example_id: str
    configuration: Configuration
    n_units: int
    target: int | None
    gold: int | None
    group: str | None = None
    predicted: int | None = None
    error: str | None = None
    rationale: Units = ()
    m: int = 0
    """Random sets that were looked at."""
    exact: bool = False
    """Whether they were all there are."""
    win_rate: float = np.nan
    win_rate_strict: float = np.nan
    tie_rate: float = np.nan
    p_value: float = np.nan
    p_lower: float = np.nan
    effect: float = np.nan
    """What is gained over the mean of the null, as a probability."""
    effect_size: float | None = None
    nsr: float | None = None
    score: float = np.nan
    """Probability of the target when the rationale is kept, or removed (necessity)."""
    score_full: float = np.nan
    score_empty: float = np.nan
    family: NDArray[np.float64] | None = None
    """Win rates of all scored sets of the example, the rationale's first; after a sequential test of those sets that
    are scored in any case."""
    halves: tuple[float, float] = (np.nan, np.nan)
    """Win rates against every other set of the null, and against the rest."""
    flags: tuple[str, ...] = ()

    @property
    def signal(self) -> float:
        """`s(x) - s(∅)`."""
        return self.score_full - self.score_empty

    def line(self) -> dict[str, Any]:
        """The line of `examples.jsonl`."""
        head = {
            "example_id": self.example_id,
            **self.configuration._asdict(),
            "n_units": self.n_units,
            "target": self.target,
            "gold": self.gold,
        }
        if self.error is not None:
            return {**head, "error": self.error}
        names = (
            "predicted", "m", "win_rate", "win_rate_strict", "tie_rate", "p_value", "p_lower", "effect",
            "effect_size", "nsr", "score", "score_full", "score_empty",
        )  # fmt: skip
        return {
            **head,
            **{n: getattr(self, n) for n in names},
            "flags": list(self.flags),
            "rationale": list(self.rationale),
        }


class Scores(NamedTuple):
    """What a rationale and its null scored, as log-odds of the target: the same order, and no saturation."""

    rationale: float
    null: NDArray[np.float64]
    sets: tuple[int, ...]
    """Places of the null's sets in their order, the `set_index` of their rows."""
