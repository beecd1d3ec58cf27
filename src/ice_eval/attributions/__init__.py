"""A number per unit. One file per method."""

from ice_eval.attributions._base import (
    LOOKS,
    OF_EVERY_MODEL,
    Attribution,
    attribution,
    attributions,
    fields_of,
    method_of,
    one_per_unit,
)
from ice_eval.attributions._brought import Computed, Explained, Given, explained
from ice_eval.attributions._data import DataView
from ice_eval.attributions._fit import Fit, fit_of
from ice_eval.attributions._lens import Lens, Observer, PerRow

__all__ = [
    "LOOKS",
    "OF_EVERY_MODEL",
    "Attribution",
    "Computed",
    "DataView",
    "Explained",
    "Fit",
    "Given",
    "Lens",
    "Observer",
    "PerRow",
    "attribution",
    "attributions",
    "explained",
    "fields_of",
    "fit_of",
    "method_of",
    "one_per_unit",
]
