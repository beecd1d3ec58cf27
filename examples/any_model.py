"""Is a single explanation faithful? The test needs only a function that scores an input from which parts are removed.

Here the input is a picture of 4 × 4 patches, and the model measures how bright its middle is; removed patches are
black.

python examples/any_model.py
"""

import numpy as np
from numpy.typing import NDArray

import ice_eval as ice

picture = np.random.default_rng(0).uniform(size=(4, 4))
middle = np.zeros((4, 4))
middle[1:3, 1:3] = 1


def brightness(keep: NDArray[np.bool_]) -> NDArray[np.float64]:
    """One score per row of `keep`, which says of each patch whether it stays."""
    return np.asarray((keep * (picture * middle).ravel()).sum(axis=1))


for name, rationale in {"the middle": [5, 6, 9, 10], "the corners": [0, 3, 12, 15]}.items():
    result = ice.randomization_test(brightness, n_units=16, rationale=rationale, m=200, seed=0)
    print(f"{name}: win rate {100 * result.win_rate:.0f} %, p = {result.p_value:.3f}")
