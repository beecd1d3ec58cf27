"""Attributions: a number per unit. One file per method or family."""

from ice_eval.attributions._base import (
    LOOKS,
    OF_EVERY_MODEL,
    Attribution,
    DataView,
    Lens,
    Observer,
    PerRow,
    attribution,
    attributions,
    fields_of,
    method_of,
    one_per_unit,
)
from ice_eval.attributions.user_supplied import Computed, Explained, Fit, Given, explained, fit_of

__all__ = [
    "LOOKS", "OF_EVERY_MODEL", "Attribution", "Computed", "DataView", "Explained", "Fit", "Given", "Lens", "Observer",
    "PerRow", "attribution", "attributions", "explained", "fields_of", "fit_of", "method_of", "one_per_unit",
]  # fmt: skip
