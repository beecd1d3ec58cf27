"""Colours of words and operators, the same in the page, the figures and the terminal."""
# Words run from vermilion over sand to teal, which people with any colour blindness can distinguish, and get darker
# towards both ends, so that a print in grey still shows how far from chance a cell is.

from collections.abc import Iterable, Mapping

from ice_eval import stats
from ice_eval.choices import protocol_of
from ice_eval.results import SummaryLine
from ice_eval.results.summary import CONTROL
from ice_eval.table import EMPTY, percent

WORD_COLOURS: Mapping[str | None, str] = {
    "anti-faithful": "#b5400e",
    "undecidable": "#b8b8b8",
    "not distinguishable from random": "#ecd9a5",
    "random within ±5 pp": "#ecd9a5",
    "near-random": "#ecd9a5",
    "better than random": "#b4d3c0",
    "weakly faithful": "#8fc6bb",
    "faithful": "#0f6b62",
    "noisy": "#b8b8b8",
    "parametric": "#ecd9a5",
    "decorative": "#ecd9a5",
    "redundant": "#b4d3c0",
    "obedient": "#b4d3c0",
    "scaffolding": "#8fc6bb",
    "genuine": "#0f6b62",
}
"""Fill of every word in a table; for steps of a chain, the deeper the teal the more they matter."""
CLAIM_COLOURS: Mapping[str | None, str] = {
    "faithful": "#0f6b62",
    "uncited but used": "#9dbfe3",
    "post-rationalised": "#b5400e",
    "parametric": "#ecd9a5",
    "undetermined": "#b8b8b8",
}
FILLS: Mapping[str | None, str] = {**WORD_COLOURS, **CLAIM_COLOURS}
SUPPORT, AGAINST = FILLS["faithful"], FILLS["anti-faithful"]
"""Shades of units for and against the explained label; they alone are dark."""
WHITE, BLACK, UNKNOWN_COLOUR = "#ffffff", "#1c1c1c", "#b8b8b8"
INKS: Mapping[str | None, str] = {word: WHITE if fill in (SUPPORT, AGAINST) else BLACK for word, fill in FILLS.items()}
"""Text colour on that fill; the contrast is at least 4.5."""

OPERATOR_COLOURS: Mapping[str, str] = {
    "delete": "#c44e00",
    "blank": "#a87c00",
    "infill": "#0072b2",
    "mask": "#8462b0",
    "mask-unk": "#a65f8f",
    "mask-pad": "#4d7c2e",
    "replace": "#0072b2",
    "mistake": "#8462b0",
    "filler": "#a65f8f",
    "paraphrase": "#4d7c2e",
    "all": "#707070",
}
"""Delete warm and infill cool, as in the paper; all are visible on white and on a dark page."""


def operator_colour(name: str) -> str:
    """Return the colour of an operator, the same in every pose; grey for that of a plug-in."""
    return OPERATOR_COLOURS.get(name.partition("@")[0], "#7a7a7a")


def word_of(attribution: str, verdict: stats.Verdict | None) -> stats.Word | None:
    """Return the word that colours a win rate, everywhere: that of its verdict; None (grey) for the random control."""
    return None if attribution == CONTROL or verdict is None else verdict.word


def word_of_line(line: SummaryLine) -> stats.Word | None:
    return word_of(line.attribution, line.verdict)


def is_strict(line: SummaryLine) -> bool:
    """Return True where ties count as lost, by the protocol that the flags name."""
    return protocol_of(line.flags).strict


def chance(line: SummaryLine) -> float:
    """Return the win rate of a random explanation: one half, less half of the ties where these count as lost."""
    return stats.CHANCE - (line.tie_rate or 0.0) / 2 if is_strict(line) else stats.CHANCE


def expected(lines: Iterable[SummaryLine]) -> str:
    return " and ".join(dict.fromkeys(f"{100 * chance(line):.3g} %" for line in lines))


def verdict_of(line: SummaryLine) -> str:
    """Return the verdict on a line; the random control reads `control: 47.0 %, expected 50 %`."""
    if line.attribution == CONTROL:
        return f"control: {percent(line.win_rate)}, expected {expected([line])}"
    return EMPTY if line.verdict is None else str(line.verdict)
