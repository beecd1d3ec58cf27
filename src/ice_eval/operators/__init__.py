"""What happens to the units that are not kept. One file per operator."""

from ice_eval.operators._base import Operator, operator, operators
from ice_eval.operators._indicative import TokenCounts, label_indicative
from ice_eval.operators._pool import POOL_EXAMPLES, Blacklist, DrawnFills, FillPool, PooledUnits

__all__ = [
    "POOL_EXAMPLES",
    "Blacklist",
    "DrawnFills",
    "FillPool",
    "Operator",
    "PooledUnits",
    "TokenCounts",
    "label_indicative",
    "operator",
    "operators",
]
