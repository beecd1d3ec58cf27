"""The explanations of a grid that random sets of equal size beat."""

from ice_eval.analysis.across._base import LEVEL, GridResults
from ice_eval.analysis.measures import Column, Found, Missing, Part, naming
from ice_eval.results import SummaryLine
from ice_eval.results.outcomes import ALL
from ice_eval.results.records import flat

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
    below = [each for each in grid.configurations if each.line.operator != ALL and each.line.taxonomy == _WORD]
    if not below:
        return Missing("no win rate is below 50 %")
    sure = sorted(
        (
            each
            for each in below
            if each.line.verdict is not None and each.line.verdict.word == _WORD and _holds(each.line)
        ),
        key=lambda each: each.line.win_rate or 0.0,
    )
    fields = ("model", "task", *(column.field for column in _COLUMNS))
    lines = tuple({name: {**flat(each.line), **each.run.head}[name] for name in fields} for each in sure)
    rest = (
        f"{len(below) - len(sure)} further win rates below 50 % cannot be told from chance, or not for sure: among so "
        f"many, p-values adjusted over the grid must be at most {LEVEL:g}."
    )
    return Found((Part("Anti-faithful", _COLUMNS, lines),) if lines else (), (rest,) if len(below) > len(sure) else ())


def _holds(line: SummaryLine) -> bool:
    return line.p_adjusted is not None and line.p_adjusted <= LEVEL
