"""Area under the curve over k: one number for a run over several sizes of rationale."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ice_eval.analysis._runs import explained, groups_of, interval_off_scale
from ice_eval.analysis.measures._base import Found, Measure, Missing, Part, measure
from ice_eval.results import RunFolder
from ice_eval.results.outcomes import ALL
from ice_eval.seeding import rng_for
from ice_eval.table import Column, naming

_PLACE = ("attribution", "operator", "direction", "null")
_COLUMNS = (
    *naming(*_PLACE),
    Column("n", "n", "count"),
    Column("auc_drop", "AUC of the drop", "signed"),
    Column("auc_drop_ci", "95 % CI", "signed interval"),
    Column("auc_win_rate", "AUC of the win rate", "percent"),
    Column("auc_win_rate_ci", "95 % CI of win rate", "percent interval"),
)


def area(shares: Sequence[float], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the area under curves over k, by trapezoids, over the width of k: a mean height. `values`: (…, shares)."""
    areas: NDArray[np.float64] = np.asarray(np.trapezoid(values, shares, axis=-1))
    return areas / (shares[-1] - shares[0])


@measure("k-sweep")
@dataclass(frozen=True, kw_only=True)
class KSweep(Measure):
    """Area under the curve over k, of what is lost of the probability and of the win rate."""

    needs = "two shares k or more"

    def of(self, folder: RunFolder) -> Found | Missing:
        config = folder.manifest().config
        shares = sorted(k for k in config.k if isinstance(k, float))
        if len(shares) < 2:
            return Missing("it has one k; run the same command again with further ones, as --k 0.1,0.2,0.4")
        rows = {row.example_id: row for row in explained(folder)}
        lines = []
        for place, curves in _curves(folder, shares).items():
            # Examples that were evaluated at every k.
            whole = {name: [curve[k] for k in shares] for name, curve in curves.items() if len(curve) == len(shares)}
            if not whole:
                continue
            line: dict[str, Any] = {**dict(zip(_PLACE, place, strict=True)), "k": list(shares), "n": len(whole)}
            groups = groups_of([rows[name] for name in whole])
            values = np.array(list(whole.values()))  # (examples, shares, 2)
            for index, name in enumerate(("auc_drop", "auc_win_rate")):
                areas, rng = area(shares, values[..., index]), rng_for(config.seed, "measures", name)
                line |= {name: float(areas.mean()), f"{name}_ci": interval_off_scale(areas, rng=rng, groups=groups)}
            lines.append(line)
        if not lines:
            return Missing("no example was evaluated at every k")
        return Found((Part(f"Over k from {shares[0]:g} to {shares[-1]:g}", _COLUMNS, tuple(lines)),))


def _curves(
    folder: RunFolder, shares: Sequence[float]
) -> dict[tuple[str, ...], dict[str, dict[float, tuple[float, float]]]]:
    """Return drop and win rate by attribution, operator, direction and null, example, and k."""
    found: dict[tuple[str, ...], dict[str, dict[float, tuple[float, float]]]] = {}
    for line in folder.examples():
        if line.error is None and isinstance(line.k, float) and line.k in shares and line.operator != ALL:
            curves = found.setdefault((line.attribution, line.operator, line.direction, line.null), {})
            curves.setdefault(line.example_id, {})[line.k] = line.score_full - line.score, line.win_rate
    return found
