"""Log-odds of targets, which gradients are taken of."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ice_eval.models._packed import to_device
from ice_eval.models._records import Prior


@dataclass(frozen=True)
class Odds:
    """Log-odds of a target in each row of a batch, less its prior where scores are calibrated."""

    targets: Sequence[int]
    priors: Sequence[Prior] | None = None

    def __getitem__(self, rows: slice) -> "Odds":
        return Odds(self.targets[rows], None if self.priors is None else self.priors[rows])

    def of(self, scores: torch.Tensor) -> torch.Tensor:
        """`z_y - logsumexp(z_others)` of each row's target, from its log-scores up to a constant.

        An open answer has no others: its log-probability itself.
        """
        if self.priors is not None:
            scores = scores - to_device(np.array(self.priors), scores.device).to(scores.dtype)
        index = to_device(np.array(self.targets, dtype=np.int64), scores.device)[:, None]
        chosen = scores.gather(1, index)[:, 0]
        if scores.shape[1] == 1:
            return chosen
        others = scores.scatter(1, index, -torch.inf)
        return chosen - torch.logsumexp(others, dim=1)
