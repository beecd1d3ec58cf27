"""Whose choices a run follows: ours, those of the paper's text, or those of the package released with it."""

from dataclasses import dataclass

from ice_eval.choices import FillMode as FillMode
from ice_eval.choices import ProtocolName as ProtocolName
from ice_eval.choices import Scope
from ice_eval.choices import Sign as Sign


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """The points where the paper, its package and we differ; the defaults are ours."""

    scope: Scope = "content"
    """Tokens that may be removed: those of the explained fields, or of the template too."""
    fills: FillMode = "shared"
    """Infill: the same fill of a unit in every row, or one of its own in each."""
    sign: Sign = "support"
    """Signed attributions: whether units rank by support of the explained label, or by magnitude."""
    own_null: bool = False
    """Whether every attribution draws random sets for itself; they may repeat, and may equal the rationale."""
    label_words_only: bool = False
    """Whether infill avoids the label words alone, not all tokens that are used differently under the labels."""
    by_clipped_nsr: bool = False
    """Whether rows are compared by their NSR, cut to [-2, 2] and 0 where the signal is weak, not by their score."""
    own_empty: bool = False
    """Whether s(∅) is the operator's: one token where tokens are deleted, five of the pool where they are filled in."""
    strict: bool = False
    """Whether a tie counts as lost."""
    percentile: bool = False
    """Whether intervals are plain percentiles of 200 resamples."""


PROTOCOLS: dict[str, Protocol] = {
    "default": Protocol(),
    "paper": Protocol(fills="own", strict=True, percentile=True),
    "released": Protocol(
        scope="prompt",
        fills="own",
        sign="abs",
        own_null=True,
        label_words_only=True,
        by_clipped_nsr=True,
        own_empty=True,
        strict=True,
        percentile=True,
    ),
}
"""By name, as `--protocol` takes them."""
