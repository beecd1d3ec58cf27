"""A number per unit. One file per method."""

from ice_eval.attributions._base import (
    Attribution,
    Lens,
    Observer,
    attribution,
    attributions,
    method_of,
    one_per_unit,
)
from ice_eval.attributions._brought import Computed, Given

__all__ = [
    "Attribution",
    "Computed",
    "Given",
    "Lens",
    "Observer",
    "attribution",
    "attributions",
    "method_of",
    "one_per_unit",
]
