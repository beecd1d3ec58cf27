"""A number per unit. One file per method."""

from ice_eval.attributions._base import Attribution, Lens, attribution, attributions

__all__ = ["Attribution", "Lens", "attribution", "attributions"]
