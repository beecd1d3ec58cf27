"""What a correlation coefficient says by itself, when only it and the number of pairs are known."""

import math

from scipy.special import ndtri
from scipy.stats import t

from ice_eval.errors import DataError


def correlation_pvalue(r: float, n: int) -> float:
    """Two-sided p-value of Pearson's r over n pairs, by Student's t with n - 2 degrees of freedom.

    Raises:
        DataError: If r is not in (-1, 1), or there are fewer than three pairs.
    """
    _check_pairs(n, least=3)
    if not -1 < r < 1:
        raise DataError(f"a correlation lies between -1 and 1, got {r}")
    return float(2 * t.sf(abs(r) * math.sqrt((n - 2) / (1 - r**2)), n - 2))


def detectable_correlation(n: int, *, power: float = 0.8, level: float = 0.05) -> float:
    """Smallest Pearson correlation that n pairs detect with this power in a two-sided test, by Fisher's z.

    Raises:
        DataError: If there are fewer than four pairs.
    """
    _check_pairs(n, least=4)
    return math.tanh(float(ndtri(1 - level / 2) + ndtri(power)) / math.sqrt(n - 3))


def _check_pairs(n: int, *, least: int) -> None:
    if n < least:
        raise DataError(f"need at least {least} pairs, got {n}")
