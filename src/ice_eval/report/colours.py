"""The colours of the words and of the operators: the same in the page, the figures and the terminal.

The words run from vermilion over sand to teal, which people with any colour blindness can tell apart, and get darker
towards both ends, so that a print in grey still shows how far from chance a cell lies.
"""

from collections.abc import Mapping
from types import MappingProxyType

from ice_eval.stats import Taxonomy
from ice_eval.stats.reasoning import Reasoning

TAXONOMY_COLOURS: Mapping[Taxonomy, str] = MappingProxyType(
    {
        "anti-faithful": "#b5400e",
        "near-random": "#ecd9a5",
        "weakly faithful": "#8fc6bb",
        "faithful": "#0f6b62",
    }
)
"""The fill of a cell."""

TEXT_COLOURS: Mapping[Taxonomy, str] = MappingProxyType(
    {
        "anti-faithful": "#ffffff",
        "near-random": "#1c1c1c",
        "weakly faithful": "#1c1c1c",
        "faithful": "#ffffff",
    }
)
"""What is written on that fill; the contrast is at least 4.5."""

REASONING_COLOURS: Mapping[Reasoning, str] = MappingProxyType(
    {"decorative": "#ecd9a5", "scaffolding": "#8fc6bb", "genuine": "#0f6b62"}
)
"""The fill of a word for chains of thought: the more the steps matter, the deeper the teal."""
REASONING_TEXT_COLOURS: Mapping[Reasoning, str] = MappingProxyType(
    {"decorative": "#1c1c1c", "scaffolding": "#1c1c1c", "genuine": "#ffffff"}
)

WORD_COLOURS: Mapping[str | None, str] = MappingProxyType(dict([*TAXONOMY_COLOURS.items(), *REASONING_COLOURS.items()]))
"""The fill of every word that a table may hold."""
WORD_TEXT_COLOURS: Mapping[str | None, str] = MappingProxyType(
    dict([*TEXT_COLOURS.items(), *REASONING_TEXT_COLOURS.items()])
)

UNKNOWN_COLOUR = "#b8b8b8"
"""The fill where there is no win rate."""

OPERATOR_COLOURS: Mapping[str, str] = MappingProxyType(
    {
        "delete": "#c44e00",
        "infill": "#0072b2",
        "mask": "#8462b0",
        "mask-unk": "#a65f8f",
        "mask-pad": "#4d7c2e",
        "replace": "#0072b2",
        "all": "#707070",
    }
)
"""Delete warm and infill cool, as in the paper; all are seen on white and on a dark page."""


def operator_colour(name: str) -> str:
    """The colour of an operator; grey for one that a plug-in brought."""
    return OPERATOR_COLOURS.get(name, "#7a7a7a")
