"""What language models and sequence classifiers of transformers have in common."""

import contextlib
import hashlib
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ice_eval.errors import OutOfMemoryError
from ice_eval.models._attention import AttentionTap, eager_attention, handed_on
from ice_eval.models._base import Model, normalised
from ice_eval.models._checkpoint import checkpointed
from ice_eval.models._hf_codec import HFCodec
from ice_eval.models._hf_embedded import HFEmbedded
from ice_eval.models._memory import Shortages, translated_memory_errors
from ice_eval.models._odds import Odds
from ice_eval.models._packed import to_device
from ice_eval.models._placement import devices_of, entrance, gpus_of, is_spread, weights_of
from ice_eval.models._quantisers import quantised_by
from ice_eval.models._records import AttentionMaps, Gradients, Labels, Observations, Pending, Prior
from ice_eval.models._slopes import slopes, without_slopes
from ice_eval.records import PROTECTED, Encoded, Ids, LogScores, ModelInput, PerToken

_CPU_BUDGET, _GPU_BUDGET = 2048, 32_768
"""Tokens per batch beyond which these devices gain nothing."""
_MIN_BUDGET = 256
_MEMORY_SHARE = 0.5
"""Part of the free memory that a batch may take."""
_ATTRIBUTION_TOKENS = 2048
"""Tokens per batch of attention and gradient passes, which hold more per token than scoring does."""


class HFModel(Model):
    """Padding, devices, attentions and gradients around a transformers model."""

    offers = frozenset({"attention_maps", "attentions", "embeddings", "gradients"})

    def __init__(self, model: Any, codec: HFCodec, *, name: str) -> None:
        self.name = name
        # An encoder-decoder answers from its decoder, which has positions of its own and takes no embeddings.
        self.offers = self.offers - HFModel.offers if model.config.is_encoder_decoder else self.offers
        self._in_training = [module for module in model.modules() if module.training]
        self.model = model.train(False)
        self._codec = codec
        self.dtype = str(model.dtype).removeprefix("torch.")
        self.device = str(entrance(model))
        self.is_spread = is_spread(model)
        """Whether its layers lie on several devices, or wait elsewhere until they are needed."""
        self._gpus = gpus_of(model)
        self._pad = codec.special.pad if codec.special.pad is not None else 0
        self._side: Any = None
        self._shortages = Shortages()

    def release(self) -> None:
        for module in self._in_training:
            module.training = True

    @property
    def shortages(self) -> int:
        return self._shortages.count

    @property
    def codec(self) -> HFCodec:
        return self._codec

    @property
    def notes(self) -> list[str]:
        quantised = "" if self.quantised is None else f"its weights are quantised ({self.quantised})."
        return [f"{self.name}: {note}" for note in (*self._codec.notes, quantised) if note]

    @property
    def quantised(self) -> str | None:
        """What stores its weights in fewer bits, if something does."""
        return quantised_by(self.model)

    @property
    def places(self) -> str:
        return ", ".join(devices_of(self.model))

    @property
    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for name, tensor in weights_of(self.model):
            # The bits of all values, summed as integers: exact in any order, and moved by any change of a few rows.
            bits = tensor.contiguous().flatten().view(torch.uint8)
            sample = bits[:: max(1, bits.numel() // 4096)].cpu().numpy()
            digest.update(f"{name}{tuple(tensor.shape)}{_bit_sums(bits)}".encode())
            digest.update(sample.tobytes())
        return digest.hexdigest()[:32]

    @property
    def works_ahead(self) -> bool:
        # Where weights and states travel from device to device, two streams on one of them are no order.
        return self.device.startswith("cuda") and not self.is_spread

    def peak_memory(self) -> int | None:
        if not self._gpus:
            return super().peak_memory()
        return sum(int(torch.cuda.max_memory_allocated(gpu)) for gpu in self._gpus)

    def default_budget(self) -> int:
        if not self._gpus:
            return _CPU_BUDGET
        free = min(torch.cuda.mem_get_info(gpu)[0] for gpu in self._gpus)
        fits = 1 << int(np.log2(_MEMORY_SHARE * free / self._bytes_per_token()))
        return max(_MIN_BUDGET, min(_GPU_BUDGET, fits))

    def _bytes_per_token(self) -> int:
        """About what a token of a batch takes: a few states inside a layer, a few of the widest kind."""
        widths = [module.out_features for module in self.model.base_model.modules() if hasattr(module, "out_features")]
        hidden = self.model.get_input_embeddings().weight.shape[1]
        return int(self.model.dtype.itemsize * (4 * max(widths, default=hidden) + 16 * hidden))

    @contextlib.contextmanager
    def ahead(self) -> Iterator[None]:
        if not self.works_ahead:
            yield
            return
        if self._side is None:
            self._side = torch.cuda.Stream(self.device, priority=-1)  # type: ignore[no-untyped-call]
        try:
            with torch.cuda.stream(self._side):
                yield
        finally:
            # Whatever was computed here is there before the other stream goes on.
            torch.cuda.current_stream(self.device).wait_stream(self._side)

    def use_threads(self, n_threads: int | None) -> int | None:
        if n_threads is not None and n_threads != torch.get_num_threads():
            torch.set_num_threads(n_threads)
        return torch.get_num_threads()

    def log_scores(self, batch: Sequence[ModelInput], labels: Labels, *, prefix: int = 0) -> LogScores:
        return self.submit(batch, labels, prefix=prefix).collect()

    def submit(self, batch: Sequence[ModelInput], labels: Labels, *, prefix: int = 0) -> Pending:
        with translated_memory_errors(), without_slopes(self.model):
            scores, tokens = self._label_scores(batch, labels, prefix)
            arrived = _on_its_way(scores)

        def collect() -> LogScores:
            found = arrived().double().numpy()
            return found if labels.is_open else normalised(found)

        return Pending(collect, tokens, self._in_use())

    def _in_use(self) -> Any:
        """What a pass reads beside its own tensors: it must last until the rows are answered."""
        return None

    @abstractmethod
    def _label_scores(self, batch: Sequence[ModelInput], labels: Labels, prefix: int) -> tuple[torch.Tensor, int]:
        """Log-scores of the labels up to a constant per row, in float32, and how many tokens they cost."""

    @property
    @abstractmethod
    def _reads_back(self) -> bool:
        """Whether tokens read only themselves and what stands before them."""

    @abstractmethod
    def _scoring_position(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """The position whose state answers, for each row of a right-padded batch."""

    @abstractmethod
    def _differentiable_scores(
        self, embedded: torch.Tensor, batch: Sequence[ModelInput], mask: torch.Tensor, labels: Labels
    ) -> torch.Tensor:
        """Log-scores of the labels from token embeddings, in float32, with a graph."""

    def observe(
        self,
        batch: Sequence[Encoded],
        targets: Sequence[int],
        labels: Labels,
        needs: Collection[str],
        *,
        priors: Sequence[Prior] | None = None,
    ) -> Observations:
        found, odds = Observations(), Odds(targets, priors)
        for start, stop in self._chunks(batch):
            found += self._observed(batch[start:stop], odds[start:stop], labels, needs)
        return found

    def _observed(self, batch: Sequence[Encoded], odds: Odds, labels: Labels, needs: Collection[str]) -> Observations:
        """One look, or one at each half where memory does not reach."""
        try:
            with translated_memory_errors(), torch.inference_mode(False):
                return self._observe(batch, odds, labels, needs)
        except OutOfMemoryError:
            if len(batch) == 1:
                raise
        self._shortages.count += 1
        half = len(batch) // 2
        found = self._observed(batch[:half], odds[:half], labels, needs)
        found += self._observed(batch[half:], odds[half:], labels, needs)
        return found

    def _observe(self, batch: Sequence[Encoded], odds: Odds, labels: Labels, needs: Collection[str]) -> Observations:
        inputs = [item.full() for item in batch]
        return Observations(
            attentions=self._attentions(inputs) if "attentions" in needs else [],
            gradients=self._gradients(inputs, odds, labels) if "gradients" in needs else [],
        )

    def _attentions(self, batch: Sequence[ModelInput]) -> list[PerToken]:
        ids, mask, segments = self.padded(batch)
        arguments = {"input_ids": ids, "attention_mask": mask, **self._segments(segments), **self._no_cache()}
        tap = self._tapped(arguments)
        if not tap.heard:  # some models hand their weights on only when asked to, and then keep those of all layers
            tap = self._tapped({**arguments, "output_attentions": True})
        mean = tap.mean().double().cpu().numpy()
        return [row[: len(item.ids)] for row, item in zip(mean, batch, strict=True)]

    def _tapped(self, arguments: dict[str, Any]) -> AttentionTap:
        position = self._scoring_position(arguments["input_ids"], arguments["attention_mask"].sum(dim=1))
        with without_slopes(self.model), eager_attention(self.model):
            with AttentionTap(self.model, position, causal=self._reads_back) as tap:
                self.model.base_model(**arguments)
        return tap

    def _gradients(self, batch: Sequence[ModelInput], odds: Odds, labels: Labels) -> list[Gradients]:
        ids, mask, _ = self.padded(batch)
        with torch.enable_grad(), checkpointed(self.model, ids.numel()):
            embedded = self.model.get_input_embeddings()(ids).detach().requires_grad_(True)
            scores = self._differentiable_scores(embedded, batch, mask, labels)
            (gradient,) = slopes(odds.of(scores), [embedded])
        states, steep = embedded.detach().double().cpu().numpy(), gradient.double().cpu().numpy()
        return [Gradients(states[i, : len(row.ids)], steep[i, : len(row.ids)]) for i, row in enumerate(batch)]

    def attention_maps(
        self, item: Encoded, target: int, labels: Labels, *, gradients: bool, prior: Prior | None = None
    ) -> AttentionMaps:
        # A caller's inference mode would take the gradient away, also where it reaches the ids alone.
        with translated_memory_errors(), torch.inference_mode(False):
            return self._attention_maps(item, _one(target, prior), labels, gradients)

    def _attention_maps(self, item: Encoded, odds: Odds, labels: Labels, gradients: bool) -> AttentionMaps:
        inputs, n_tokens = [item.full()], len(item.ids)
        ids, mask, _ = self.padded(inputs)

        def looked() -> tuple[AttentionTap, torch.Tensor]:
            with AttentionTap(self.model, None, causal=self._reads_back) as tap:
                embedded = self.model.get_input_embeddings()(ids).detach().requires_grad_(gradients)
                return tap, self._differentiable_scores(embedded, inputs, mask, labels)

        with contextlib.ExitStack() as asked:  # until the gradient is there: layers may be computed again for it
            asked.enter_context(torch.enable_grad() if gradients else torch.no_grad())
            asked.enter_context(eager_attention(self.model))
            asked.enter_context(checkpointed(self.model, ids.numel()))
            tap, scores = looked()
            if not tap.heard:
                asked.enter_context(handed_on(self.model))
                tap, scores = looked()
            tap.check()
            steep = slopes(odds.of(scores), tap.layers) if gradients else ()

        def within(layers: Sequence[torch.Tensor]) -> NDArray[np.float32]:
            # Labels of several tokens are rows of their own: their tokens are cut off, and their slopes add up.
            kept = [layer[:, :, :n_tokens, :n_tokens].detach().float().sum(dim=0).cpu() for layer in layers]
            return torch.stack(kept).numpy()

        position = int(self._scoring_position(ids, mask.sum(dim=1))[0])
        weights = within([layer[:1] for layer in tap.layers])
        return AttentionMaps(weights, within(steep) if gradients else None, position)

    def embedded(self, item: Encoded, target: int, labels: Labels, *, prior: Prior | None = None) -> HFEmbedded:
        tokens = np.flatnonzero(item.unit_of != PROTECTED)
        start = self._first_computed(item, tokens)

        @contextlib.contextmanager
        def log_odds_at(points: torch.Tensor) -> Iterator[torch.Tensor]:
            with self._scores_at(points, item, tokens, start, labels) as scores:
                yield _one(target, prior, n_rows=len(points)).of(scores)

        n_tokens = (len(item.ids) - start) * (len(labels.ids) if labels.scoring == "full" else 1)
        spare = item.special.pad if item.special.pad is not None else item.special.end
        at_once = max(1, _ATTRIBUTION_TOKENS // n_tokens)
        return HFEmbedded(self.model, self.device, tokens, item.ids, spare, log_odds_at, at_once, self._shortages)

    def _first_computed(self, item: Encoded, tokens: Ids) -> int:
        """The first token that is computed for every point; what stands before is computed once."""
        return 0

    @contextlib.contextmanager
    def _scores_at(
        self, points: torch.Tensor, item: Encoded, tokens: Ids, start: int, labels: Labels
    ) -> Iterator[torch.Tensor]:
        """Log-scores of the labels, with the embeddings of `tokens` as `points` say; inside, gradients may be taken."""
        inputs = [item.full()] * len(points)
        ids, mask, _ = self.padded(inputs)
        plain = self.model.get_input_embeddings()(ids).detach()
        with checkpointed(self.model, ids.numel()):
            moved = plain.index_copy(1, self._put(tokens), points)
            yield self._differentiable_scores(moved, inputs, mask, labels)

    def _chunks(self, batch: Sequence[Encoded]) -> Iterator[tuple[int, int]]:
        """Consecutive examples whose padded batch stays within `_ATTRIBUTION_TOKENS`, one at least."""
        start = 0
        for stop in range(1, len(batch) + 1):
            longest = max(len(item.ids) for item in batch[start : stop + 1])
            if stop == len(batch) or longest * (stop + 1 - start) > _ATTRIBUTION_TOKENS:
                yield start, stop
                start = stop

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
        return self._put(ids), self._put(mask), self._put(segments)

    def _put(self, array: NDArray[np.int64]) -> torch.Tensor:
        return to_device(array, self.device)

    def _segments(self, segments: torch.Tensor) -> dict[str, torch.Tensor]:
        """Segment ids, for models that read them."""
        return {}

    def _no_cache(self) -> dict[str, bool]:
        """Arguments that keep a forward pass from building a key-value cache."""
        return {}


def _one(target: int, prior: Prior | None, *, n_rows: int = 1) -> Odds:
    """The same target for all rows."""
    return Odds([target] * n_rows, None if prior is None else [prior] * n_rows)


def n_positions(config: Any) -> int | None:
    """Positions that a model knows; None where it reads texts of any length (XLNet calls that -1)."""
    found = getattr(config, "max_position_embeddings", None)
    return int(found) if found is not None and found > 0 else None


def note_event(device: str) -> Callable[[], None]:
    """Marks what the current stream has been given so far; who calls lets the stream it is in wait for that."""
    if not device.startswith("cuda"):
        return lambda: None
    done = torch.cuda.current_stream(device).record_event()
    return lambda: torch.cuda.current_stream(device).wait_event(done)


def _on_its_way(tensor: torch.Tensor) -> Callable[[], torch.Tensor]:
    """Copy a tensor to the host behind what the device is doing now; whoever calls waits for that, and no longer."""
    if not tensor.is_cuda:
        return lambda: tensor
    copied = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    copied.copy_(tensor, non_blocking=True)
    done = torch.cuda.current_stream(tensor.device).record_event()

    def wait() -> torch.Tensor:
        done.synchronize()
        return copied

    return wait


def _bit_sums(bits: torch.Tensor) -> list[int]:
    """Sum of the words of four bytes, and of the bytes left over."""
    even = bits.numel() - bits.numel() % 4
    return [int(part.sum(dtype=torch.int64)) for part in (bits[:even].view(torch.int32), bits[even:])]
