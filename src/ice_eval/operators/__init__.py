"""What happens to the units that are not kept. One file per operator."""

from ice_eval.operators._base import Operator, operator, operators
from ice_eval.operators._pool import POOL_EXAMPLES, Blacklist, FillPool, PooledUnits, label_indicative

__all__ = [
    "POOL_EXAMPLES",
    "Blacklist",
    "FillPool",
    "Operator",
    "PooledUnits",
    "label_indicative",
    "operator",
    "operators",
]
