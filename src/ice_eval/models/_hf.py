"""What language models and sequence classifiers of transformers have in common."""

import contextlib
import hashlib
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from ice_eval.errors import OutOfMemoryError
from ice_eval.models._attention import AttentionTap, eager_attention
from ice_eval.models._base import Gradients, Labels, Model, normalised
from ice_eval.models._hf_codec import HFCodec
from ice_eval.records import Encoded, LogScores, ModelInput, PerToken

_CPU_BUDGET, _GPU_BUDGET = 1024, 32_768
_ATTRIBUTION_TOKENS = 4096
"""Tokens per batch of attention and gradient passes, which hold more per token than scoring does."""


class HFModel(Model):
    """Padding, devices, attentions and gradients around a transformers model."""

    offers = frozenset({"attentions", "gradients"})

    def __init__(self, model: Any, codec: HFCodec, *, name: str) -> None:
        self.name = name
        self.model = model.train(False)
        self._codec = codec
        self.dtype = str(model.dtype).removeprefix("torch.")
        self.device = str(model.device)
        self._pad = codec.special.pad if codec.special.pad is not None else 0

    @property
    def codec(self) -> HFCodec:
        return self._codec

    @property
    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for name, tensor in self.model.state_dict().items():
            # The bits of all values, summed as integers: exact in any order, and moved by any change of a few rows.
            bits = tensor.detach().contiguous().flatten().view(torch.uint8)
            sample = bits[:: max(1, bits.numel() // 4096)].cpu().numpy()
            digest.update(f"{name}{tuple(tensor.shape)}{_bit_sums(bits)}".encode())
            digest.update(sample.tobytes())
        return digest.hexdigest()[:32]

    def default_budget(self) -> int:
        return _GPU_BUDGET if self.device.startswith("cuda") else _CPU_BUDGET

    def use_threads(self, n_threads: int | None) -> int | None:
        if n_threads is not None and n_threads != torch.get_num_threads():
            torch.set_num_threads(n_threads)
        return torch.get_num_threads()

    def log_scores(self, batch: Sequence[ModelInput], labels: Labels, *, prefix: int = 0) -> LogScores:
        with translated_memory_errors(), torch.inference_mode():
            return normalised(self._label_scores(batch, labels, prefix).double().cpu().numpy())

    @abstractmethod
    def _label_scores(self, batch: Sequence[ModelInput], labels: Labels, prefix: int) -> torch.Tensor:
        """Log-scores of the labels up to a constant per row, in float32."""

    @abstractmethod
    def _scoring_position(self, lengths: torch.Tensor) -> torch.Tensor:
        """The position whose state answers, for each row of a right-padded batch."""

    @abstractmethod
    def _differentiable_scores(
        self, embedded: torch.Tensor, batch: Sequence[ModelInput], mask: torch.Tensor, labels: Labels
    ) -> torch.Tensor:
        """Log-scores of the labels from token embeddings, in float32, with a graph."""

    def attentions(self, batch: Sequence[Encoded]) -> list[PerToken]:
        found: list[PerToken] = []
        for chunk in _chunks(batch):
            found += self._attentions([item.full() for item in chunk])
        return found

    def _attentions(self, batch: Sequence[ModelInput]) -> list[PerToken]:
        ids, mask, segments = self.padded(batch)
        arguments = {"input_ids": ids, "attention_mask": mask, **self._segments(segments), **self._no_cache()}
        tap = self._tapped(arguments)
        if not tap.heard:  # some models hand their weights on only when asked to, and then keep those of all layers
            tap = self._tapped({**arguments, "output_attentions": True})
        mean = tap.mean().double().cpu().numpy()
        return [row[: len(item.ids)] for row, item in zip(mean, batch, strict=True)]

    def _tapped(self, arguments: dict[str, Any]) -> AttentionTap:
        position = self._scoring_position(arguments["attention_mask"].sum(dim=1))
        with translated_memory_errors(), torch.inference_mode(), eager_attention(self.model):
            with AttentionTap(self.model, position) as tap:
                self.model.base_model(**arguments)
        return tap

    def gradients(self, batch: Sequence[Encoded], targets: Sequence[int], labels: Labels) -> list[Gradients]:
        found: list[Gradients] = []
        for chunk, chosen in zip(_chunks(batch), _chunks_like(targets, batch), strict=True):
            found += self._gradients([item.full() for item in chunk], chosen, labels)
        return found

    def _gradients(self, batch: Sequence[ModelInput], targets: Sequence[int], labels: Labels) -> list[Gradients]:
        ids, mask, _ = self.padded(batch)
        with translated_memory_errors(), torch.enable_grad():
            embedded = self.model.get_input_embeddings()(ids).detach().requires_grad_(True)
            scores = self._differentiable_scores(embedded, batch, mask, labels)
            (gradient,) = torch.autograd.grad(log_odds(scores, targets).sum(), embedded)
        states, slopes = embedded.detach().double().cpu().numpy(), gradient.double().cpu().numpy()
        return [Gradients(states[i, : len(row.ids)], slopes[i, : len(row.ids)]) for i, row in enumerate(batch)]

    def padded(self, batch: Sequence[ModelInput], *, start: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Ids from `start` on, mask and segments of a batch, padded on the right."""
        width = max(len(row.ids) for row in batch) - start
        ids = np.full((len(batch), width), self._pad, dtype=np.int64)
        mask, segments = np.zeros_like(ids), np.zeros_like(ids)
        for index, row in enumerate(batch):
            length = len(row.ids) - start
            ids[index, :length], mask[index, :length], segments[index, :length] = (
                row.ids[start:],
                1,
                row.segments[start:],
            )
        return tuple(torch.from_numpy(array).to(self.device) for array in (ids, mask, segments))  # type: ignore[return-value]

    def _segments(self, segments: torch.Tensor) -> dict[str, torch.Tensor]:
        """Segment ids, for models that read them."""
        return {}

    def _no_cache(self) -> dict[str, bool]:
        """Arguments that keep a forward pass from building a key-value cache."""
        return {}


def _bit_sums(bits: torch.Tensor) -> list[int]:
    """Sum of the bytes at each place of a word."""
    width = 2 if bits.numel() % 4 else 4
    even = bits[: bits.numel() - bits.numel() % width].reshape(-1, width)
    return [int(column.sum(dtype=torch.int64)) for column in even.unbind(dim=1)]


def log_odds(scores: torch.Tensor, targets: Sequence[int]) -> torch.Tensor:
    """`z_y - logsumexp(z_others)` of each row's target."""
    index = torch.tensor(targets, device=scores.device)[:, None]
    chosen = scores.gather(1, index)[:, 0]
    others = scores.scatter(1, index, -torch.inf)
    return chosen - torch.logsumexp(others, dim=1)


def _chunks(batch: Sequence[Encoded]) -> Iterator[Sequence[Encoded]]:
    """Consecutive examples whose padded batch stays within `_ATTRIBUTION_TOKENS`, one at least."""
    start = 0
    for stop in range(1, len(batch) + 1):
        longest = max(len(item.ids) for item in batch[start : stop + 1])
        if stop == len(batch) or longest * (stop + 1 - start) > _ATTRIBUTION_TOKENS:
            yield batch[start:stop]
            start = stop


def _chunks_like(values: Sequence[int], batch: Sequence[Encoded]) -> Iterator[Sequence[int]]:
    start = 0
    for chunk in _chunks(batch):
        yield values[start : start + len(chunk)]
        start += len(chunk)


@contextlib.contextmanager
def translated_memory_errors() -> Iterator[None]:
    """Turn the many ways in which torch says "out of memory" into one."""
    try:
        yield
    except torch.OutOfMemoryError as exc:
        raise OutOfMemoryError(str(exc)) from exc
    except RuntimeError as exc:
        if "allocate memory" in str(exc) or "not enough memory" in str(exc):
            raise OutOfMemoryError(str(exc)) from exc
        raise
