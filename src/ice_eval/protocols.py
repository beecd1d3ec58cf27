"""Protocols of a run: our choices, those of the paper's text, or those of the package released with it."""

from dataclasses import dataclass

from ice_eval.choices import FillMode as FillMode
from ice_eval.choices import ProtocolName as ProtocolName
from ice_eval.choices import Scope
from ice_eval.choices import Sign as Sign


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """Choices on which the paper, its package and we differ; the defaults are ours."""

    scope: Scope = "content"
    """Tokens that may be removed: those of the explained fields, or of the template too."""
    fills: FillMode = "shared"
    """Infill: the same fill of a unit in every row, or a separate one in each."""
    n_fills: int = 10
    """Number of fills that the random sets of a null are distributed over."""
    sign: Sign = "support"
    """Ranking by signed attributions: support of the explained label, or magnitude."""
    own_null: bool = False
    """True if every attribution draws its own random sets; they may repeat, and may equal the rationale."""
    label_words_only: bool = False
    """True if infill avoids only the label words, not all tokens that are used differently under the labels."""
    by_clipped_nsr: bool = False
    """True if rows are compared by their NSR, clipped to [-2, 2] and 0 for a weak signal, not by their score."""
    own_empty: bool = False
    """True if s(∅) depends on the operator: one token for deletion, five of the pool for infill."""
    strict: bool = False
    """True if a tie counts as lost."""
    percentile: bool = False
    """True if intervals are plain percentiles of 200 resamples."""


PROTOCOLS: dict[str, Protocol] = {
    "default": Protocol(),
    "paper": Protocol(fills="own", n_fills=1, strict=True, percentile=True),
    "released": Protocol(
        scope="prompt",
        fills="own",
        n_fills=1,
        sign="abs",
        own_null=True,
        label_words_only=True,
        by_clipped_nsr=True,
        own_empty=True,
        strict=True,
        percentile=True,
    ),
}
"""Name in `--protocol` -> protocol."""
