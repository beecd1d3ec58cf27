"""Operators: replacements for the units that are not kept. One file per operator or family."""

from ice_eval.operators._base import POSE_MARK, Operator, draws_fills, is_removal, operator, operators, pose_of
from ice_eval.operators.infill import (
    POOL_EXAMPLES,
    Blacklist,
    DrawnFills,
    FillPool,
    LongUnitPool,
    PooledUnits,
    TokenCounts,
    label_indicative,
)

__all__ = [
    "POOL_EXAMPLES", "POSE_MARK", "Blacklist", "DrawnFills", "FillPool", "LongUnitPool", "Operator",
    "PooledUnits", "TokenCounts", "draws_fills", "is_removal", "label_indicative", "operator", "operators", "pose_of",
]  # fmt: skip
