"""Pieces of lines of text that all kinds of examples share."""

import unicodedata

from rich.style import Style

from ice_eval.nulls import SIZE
from ice_eval.report.highlight import AGAINST, SUPPORT
from ice_eval.report.tables import share
from ice_eval.results import ExampleOutcome

_FAINT = 0.1
"""Weaker attributions have no shade."""
_GREY = "#6b6b6b"
"""What shades begin with: as dark as the full ones, so that a weak unit stands out on no background."""


def title_of(line: ExampleOutcome) -> str:
    """The configuration in words."""
    null = "" if line.null == SIZE else f", null {line.null}"
    return f"{line.attribution} under {line.operator}, {line.direction}, k = {share(line.k)}{null}"


def numbers_of(line: ExampleOutcome) -> str:
    """Win rate and p-value in words."""
    return f"win rate {100 * line.win_rate:.0f} % of {line.m}, p = {line.p_value:.3f}"


def quoted(text: str) -> str:
    """On one line, in quotes. `repr` would also escape the joiners of emoji and of Persian or Hindi words."""
    escaped = (repr(c)[1:-1] if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"} else c for c in text)
    return f"'{''.join(escaped)}'"


def shade(strength: float) -> Style:
    """The background of something of a strength between -1 and 1; none for next to nothing."""
    if abs(strength) < _FAINT:
        return Style()
    full = SUPPORT if strength > 0 else AGAINST
    mixed = (round(a + (b - a) * abs(strength)) for a, b in zip(_rgb(_GREY), _rgb(full), strict=True))
    return Style(color="#ffffff", bgcolor="#" + "".join(f"{part:02x}" for part in mixed))


def _rgb(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[place : place + 2], 16) for place in (1, 3, 5))
