"""A number per unit. One file per method."""

from ice_eval.attributions._base import (
    LOOKS,
    OF_EVERY_MODEL,
    Attribution,
    Lens,
    Observer,
    PerRow,
    attribution,
    attributions,
    fields_of,
    method_of,
    one_per_unit,
)
from ice_eval.attributions._brought import Computed, Explained, Given
from ice_eval.attributions._data import DataView

__all__ = [
    "LOOKS",
    "OF_EVERY_MODEL",
    "Attribution",
    "Computed",
    "DataView",
    "Explained",
    "Given",
    "Lens",
    "Observer",
    "PerRow",
    "attribution",
    "attributions",
    "fields_of",
    "method_of",
    "one_per_unit",
]
