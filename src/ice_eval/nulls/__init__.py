"""Nulls: the sets that a rationale is compared with, all of its size or only similar ones. One file per family."""

from ice_eval.nulls._base import SIZE, Key, Null, SetClass, counts_of, matched_sets, null, nulls, unit_counts

__all__ = ["SIZE", "Key", "Null", "SetClass", "counts_of", "matched_sets", "null", "nulls", "unit_counts"]
