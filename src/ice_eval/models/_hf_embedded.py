"""A transformers model as a function of the embeddings of one text."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ice_eval.errors import OutOfMemoryError
from ice_eval.models._gradients import gradients_of
from ice_eval.models._memory import MemoryRetries, translated_memory_errors
from ice_eval.models._records import EmbeddedText
from ice_eval.records import Ids

LogOddsOf = Callable[[torch.Tensor], AbstractContextManager[torch.Tensor]]
"""(points, tokens, width) -> (points,): log-odds of the target, with a graph; inside, gradients may be taken."""


class HFEmbedded(EmbeddedText):
    """Points are arrays. A pass takes `at_once` of them, or half as many where memory runs out."""

    def __init__(
        self,
        model: Any,
        device: str,
        tokens: Ids,
        ids: Ids,
        spare: int | None,
        function: LogOddsOf,
        at_once: int,
        retries: MemoryRetries,
    ) -> None:
        table, self._function, self._at_once = model.get_input_embeddings(), function, at_once
        self._retries = retries
        self._device, self._dtype = device, model.dtype

        def look_up(chosen: Ids) -> NDArray[np.float64]:
            with torch.no_grad():
                found: NDArray[np.float64] = table(torch.from_numpy(chosen).to(device)).double().cpu().numpy()
            return found

        self.tokens, self.embedding = tokens, look_up(ids[tokens])
        self.pad = None if spare is None else look_up(np.array([spare]))[0]

    @property
    def at_once(self) -> int:
        return self._at_once

    def log_odds(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._in_parts(self._log_odds, points)

    def gradients(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._in_parts(self._gradients, points)

    def _log_odds(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        with torch.no_grad(), self._function(self._tensor(points)) as found:
            return found.double().cpu().numpy()

    def _gradients(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        with torch.inference_mode(False), torch.enable_grad():
            moved = self._tensor(points).requires_grad_(True)
            with self._function(moved) as found:
                (gradient,) = gradients_of(found, [moved])
        return gradient.double().cpu().numpy()

    def _in_parts(
        self, of: Callable[[NDArray[np.float64]], NDArray[np.float64]], points: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Compute in one pass, or in one for each half where memory runs out."""
        try:
            with translated_memory_errors():
                return of(points)
        except OutOfMemoryError:
            if len(points) == 1:
                raise
        self._retries.count += 1
        half = len(points) // 2
        return np.concatenate([self._in_parts(of, points[:half]), self._in_parts(of, points[half:])])

    def _tensor(self, points: NDArray[np.float64]) -> torch.Tensor:
        narrow = points if self._dtype == torch.float64 else points.astype(np.float32)
        return torch.from_numpy(narrow).to(self._device, self._dtype)
