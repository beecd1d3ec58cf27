"""The explanations of a grid that random sets of equal size beat."""

from ice_eval.analysis.across._base import LEVEL, GridResults, Line
from ice_eval.analysis.measures import Column, Found, Missing, Part, naming
from ice_eval.results.outcomes import ALL
from ice_eval.stats import taxonomy

_WORD = "anti-faithful"
_COLUMNS = (
    *naming("prompt", "attribution", "null", "operator", "direction", "k"),
    Column("n", "n", "count"),
    Column("win_rate", "win rate", "percent"),
    Column("win_rate_ci", "95 % CI", "percent interval"),
    Column("p_adjusted", "p adj.", "p-value"),
    Column("verdict", "verdict", "text"),
)


def worse_than_random(grid: GridResults) -> Found | Missing:
    """Those whose verdict says so and whose p-value holds over the whole grid, the worst first; others are counted."""
    below = [
        line
        for line in grid.configurations
        if line["operator"] != ALL and line["win_rate"] is not None and taxonomy(line["win_rate"]) == _WORD
    ]
    if not below:
        return Missing("no win rate is below 50 %")
    sure = sorted(
        (line for line in below if line["verdict"] == _WORD and _holds(line)),
        key=lambda line: float(line["win_rate"]),
    )
    fields = ("model", "task", *(column.field for column in _COLUMNS))
    lines = tuple({name: line[name] for name in fields} for line in sure)
    rest = (
        f"{len(below) - len(sure)} further win rates below 50 % cannot be told from chance, or not for sure: among so "
        f"many, p-values adjusted over the grid must be at most {LEVEL:g}."
    )
    return Found((Part("Anti-faithful", _COLUMNS, lines),) if lines else (), (rest,) if len(below) > len(sure) else ())


def _holds(line: Line) -> bool:
    return line["p_adjusted"] is not None and line["p_adjusted"] <= LEVEL
