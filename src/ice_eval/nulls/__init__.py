"""What a rationale is compared with: all sets of its size, or only those that are like it. One file per null."""

from ice_eval.nulls._base import SIZE, Key, Null, SetClass, counts_of, matched_sets, null, nulls, unit_counts

__all__ = ["SIZE", "Key", "Null", "SetClass", "counts_of", "matched_sets", "null", "nulls", "unit_counts"]
