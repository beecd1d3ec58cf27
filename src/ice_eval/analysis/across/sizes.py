"""How far win rates of a grid move with the size of a rationale."""

from ice_eval.analysis.across._base import GridResults
from ice_eval.analysis.measures import Column, Found, Missing, Part, naming
from ice_eval.analysis.sensitivity import spreads

_PLACE = ("prompt", "attribution", "null", "operator", "direction")
_COLUMNS = (
    *naming(*_PLACE),
    Column("lowest", "lowest", "percent"),
    Column("lowest_k", "at k", "share"),
    Column("highest", "highest", "percent"),
    Column("highest_k", "at k ", "share"),
    Column("width", "range", "points"),
    Column("increases", "grows with k", "text"),
)


def sizes(grid: GridResults) -> Found | Missing:
    """Lowest and highest win rate over all k, the widest range first."""
    # Rationales of their own size, and those of a dynamic k, are on no scale of sizes.
    found = spreads((cell for cell in grid.cells if isinstance(cell.k, float)), over="k")
    if not found:
        return Missing("the grid has one k; give two or more")
    lines = [
        {
            **{name: getattr(each.lowest, name) for name in ("model", "task", *_PLACE)},
            "lowest": each.lowest.win_rate,
            "lowest_k": each.lowest.k,
            "highest": each.highest.win_rate,
            "highest_k": each.highest.k,
            "width": each.width,
            "increases": "yes" if each.increases else "no",
        }
        for each in found
    ]
    return Found((Part("Sensitivity to k", _COLUMNS, tuple(lines)),))
