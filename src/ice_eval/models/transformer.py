"""Base class of language models and sequence classifiers of transformers."""

import contextlib
import hashlib
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ice_eval.errors import OutOfMemoryError
from ice_eval.models import base, devices
from ice_eval.models.base import Gradients, Labels, Model, Needs, Observations, Prior, Priors, normalised
from ice_eval.models.codec import HFCodec
from ice_eval.models.devices import to_device, to_host, translated_memory_errors
from ice_eval.models.gradients import (
    AttentionRecorder,
    checkpointed,
    eager_attention,
    gradients_of,
    no_grad,
    output_attentions,
    target_odds,
)
from ice_eval.records import PROTECTED, Encoded, Ids, Inputs, LogScores, PerToken

_CPU_BUDGET, _GPU_BUDGET = 2048, 32_768  # tokens per batch beyond which these devices gain nothing
_MIN_BUDGET = 256
_MEMORY_SHARE = 0.5  # of the free memory that a batch may use
_ATTRIBUTION_TOKENS = 2048  # per batch of attention and gradient passes, which hold more per token than scoring does
_KEPT_WEIGHTS = 2**28  # attention weights of all layers that a gradient pass keeps; beyond, attention has its own pass
_TOLERANCE, _HALF_TOLERANCE = {"float32": 1e-4}, 0.3
"""Largest difference of two log-scores that rounding explains, in float32 and below; errors give 1 or more."""
Odds = Callable[[torch.Tensor], torch.Tensor]
"""Log-scores of the labels -> log-odds of the target of each row."""


class PaddedBatch(NamedTuple):
    """Rows on a device as matrices of (rows, longest), padded on the right."""

    ids: torch.Tensor
    mask: torch.Tensor
    segments: torch.Tensor
    is_even: bool  # True if all rows have the same length


class HFModel(Model):
    """Padding, devices, attentions and gradients around a transformers model."""

    codec: HFCodec
    offers = frozenset({"attention_maps", "attentions", "embeddings", "gradients"})
    _is_causal: bool = True

    def __init__(self, model: Any, codec: HFCodec, *, name: str) -> None:
        self.name = name
        # An encoder-decoder answers from its decoder, which has positions of its own and takes no embeddings.
        self.offers = self.offers - HFModel.offers if model.config.is_encoder_decoder else self.offers
        self._in_training = [module for module in model.modules() if module.training]
        self.model = model.train(False)
        self.codec = codec
        self.dtype = str(model.dtype).removeprefix("torch.")
        self.device = str(devices.input_device(model))
        self.is_spread = devices.is_spread(model)
        # Where weights and states travel from device to device, two streams on one of them are no order.
        self.works_ahead = self.device.startswith("cuda") and not self.is_spread
        self.quantised = devices.quantised_by(model)
        self._gpus = devices.gpus_of(model)
        self._pad = codec.special.pad if codec.special.pad is not None else 0
        self._side: Any = None
        # Ids of a prefix, and its keys and values: a pass reads them, so they must live until its rows are scored.
        self._cached: tuple[Any, Any] | None = None
        self._retries = devices.MemoryRetries()
        self._attends_on_request = False
        self._attention_modules: Collection[str] | None = None

    def release(self) -> None:
        for module in self._in_training:
            module.training = True

    def try_out(self) -> None:
        """Tokenize a text and score it, unless weights are not read: some faults of files show only then."""
        tokens = self.codec.tokenize("a film")
        reads = not (self.model.device.type == "meta" or devices.is_offloaded(self.model))
        if reads and len(tokens.ids):
            self._plain_scores(Inputs.one(tokens.ids, tokens.segments), Labels(("0",), ((0,),)))

    @property
    def n_oom_retries(self) -> int:
        return self._retries.count

    @property
    def notes(self) -> list[str]:
        quantised = "" if self.quantised is None else f"its weights are quantised ({self.quantised})."
        return [f"{self.name}: {note}" for note in (*self.codec.notes, quantised) if note]

    @property
    def devices(self) -> str:
        return ", ".join(devices.devices_of(self.model))

    @property
    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for name, tensor in devices.weights_of(self.model):
            # The bits of all values, summed as integers: exact in any order, and moved by any change of a few rows.
            bits = tensor.contiguous().flatten().view(torch.uint8)
            even = bits.numel() - bits.numel() % 4
            sums = [int(part.sum(dtype=torch.int64)) for part in (bits[:even].view(torch.int32), bits[even:])]
            sample = bits[:: max(1, bits.numel() // 4096)].cpu().numpy()
            digest.update(f"{name}{tuple(tensor.shape)}{sums}".encode())
            digest.update(sample.tobytes())
        return digest.hexdigest()[:32]

    def peak_memory(self) -> int | None:
        if not self._gpus:
            return super().peak_memory()
        return sum(int(torch.cuda.max_memory_allocated(gpu)) for gpu in self._gpus)

    def default_budget(self) -> int:
        if not self._gpus:
            return _CPU_BUDGET
        free = min(torch.cuda.mem_get_info(gpu)[0] for gpu in self._gpus)
        # About what a token of a batch takes: a few states inside a layer, a few of the widest kind.
        widths = [module.out_features for module in self.model.base_model.modules() if hasattr(module, "out_features")]
        hidden = self.model.get_input_embeddings().weight.shape[1]
        bytes_per_token = int(self.model.dtype.itemsize * (4 * max(widths, default=hidden) + 16 * hidden))
        fits = 1 << int(np.log2(_MEMORY_SHARE * free / bytes_per_token))
        return max(_MIN_BUDGET, min(_GPU_BUDGET, fits))

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
            # The other stream continues after everything computed here.
            torch.cuda.current_stream(self.device).wait_stream(self._side)

    def use_threads(self, n_threads: int | None) -> int | None:
        if n_threads is not None and n_threads != torch.get_num_threads():
            torch.set_num_threads(n_threads)
        return torch.get_num_threads()

    def log_scores(self, batch: Inputs, labels: Labels, *, prefix: int = 0) -> LogScores:
        return self.submit(batch, labels, prefix=prefix).collect()

    def submit(self, batch: Inputs, labels: Labels, *, prefix: int = 0) -> base.Pending:
        with translated_memory_errors(), no_grad(self.model):
            scores, tokens = self._label_scores(batch, labels, prefix)
            arrived = to_host(scores)

        def collect() -> LogScores:
            found = arrived().double().numpy()
            return found if labels.is_open else normalised(found)

        return base.Pending(collect, tokens, self._cached)

    @abstractmethod
    def _label_scores(self, batch: Inputs, labels: Labels, prefix: int) -> tuple[torch.Tensor, int]:
        """Return log-scores of the labels up to a constant per row, in float32, and the number of tokens they cost."""

    @abstractmethod
    def _plain_scores(self, batch: Inputs, labels: Labels) -> LogScores:
        """Score one row at a time in the usual way of transformers."""

    def _fault(self, plain: LogScores, batch: Inputs, labels: Labels, prefix: int = 0) -> str | None:
        """Return None if scores agree with `plain` ones; else the error, or "" where they only differ."""
        # Quantised layers round what they read, too, and some do so by what else is in the batch.
        tolerance = _HALF_TOLERANCE if self.quantised else _TOLERANCE.get(self.dtype, _HALF_TOLERANCE)
        try:
            return None if np.abs(self.log_scores(batch, labels, prefix=prefix) - plain).max() <= tolerance else ""
        except OutOfMemoryError:
            raise
        except Exception as exc:  # a model that does not work this way; the plain way has worked before
            return f"{type(exc).__name__}: {exc}"

    @abstractmethod
    def _scoring_position(self, padded: PaddedBatch) -> torch.Tensor:
        """Return the position whose state answers, (rows,), or several, (rows, most), padded below 0."""

    def _copies(self, labels: Labels) -> int:
        """Number of rows that `_differentiable_scores` computes for each row of a batch."""
        return len(labels.ids) if labels.scoring == "full" else 1

    @abstractmethod
    def _differentiable_scores(
        self, embedded: torch.Tensor, batch: Inputs, padded: PaddedBatch, labels: Labels
    ) -> torch.Tensor:
        """Return log-scores of the labels from token embeddings, in float32, with a graph."""

    def observe(
        self, batch: Sequence[Encoded], targets: Sequence[int], labels: Labels, needs: Needs, *, priors: Priors = None
    ) -> Observations:
        found = Observations()

        def compute(rows: slice) -> Observations:
            odds = partial(target_odds, targets=targets[rows], priors=None if priors is None else priors[rows])
            with torch.inference_mode(False):
                return self._observe(batch[rows], odds, labels, needs)

        lengths = [len(item.ids) for item in batch]
        for part in devices.in_batches(compute, lengths, self._attribution_tokens, self._retries):
            found.attentions += part.attentions
            found.gradients += part.gradients
        return found

    def _observe(self, batch: Sequence[Encoded], odds: Odds, labels: Labels, needs: Needs) -> Observations:
        inputs = Inputs.join([item.full() for item in batch])
        padded, copies = self.padded(inputs), self._copies(labels)
        attends, differentiates = "attentions" in needs, "gradients" in needs
        together = attends and differentiates and self._keeps_weights(padded, copies)
        position, found = self._scoring_position(padded), Observations()
        n_tokens, embedded = padded.ids.numel(), self._embedded(padded).requires_grad_(differentiates)
        forward = partial(self._differentiable_scores, embedded, inputs, padded, labels)
        attentions = None
        if attends:
            if not together:
                copies = 1
            read = partial(self.model.base_model, input_ids=padded.ids, **self._arguments(padded))
            position = position.repeat_interleave(copies, dim=0)
            with self._recorded(forward if together else read, n_tokens, position, together) as (seen, scores):
                if together:
                    (gradient,) = gradients_of(odds(scores), [embedded])
            attentions = to_host(seen.mean()[::copies])
        if differentiates:
            if not together:
                with torch.enable_grad(), checkpointed(self.model, n_tokens):
                    (gradient,) = gradients_of(odds(forward()), [embedded])
            found.gradients = self._gradients_at(embedded, gradient, inputs)
        if attentions is not None:
            found.attentions = split_rows(attentions, inputs)  # both copies start before one is waited for
        return found

    def _keeps_weights(self, padded: PaddedBatch, copies: int) -> bool:
        """True if the attention weights of all layers fit into memory, as a gradient of the plain kernel needs."""
        config = self.model.config.get_text_config()
        sizes: list[Any] = [getattr(config, name, None) for name in ("num_hidden_layers", "num_attention_heads")]
        rows, longest = padded.ids.shape
        return None not in sizes and bool(sizes[0] * sizes[1] * rows * copies * longest**2 <= _KEPT_WEIGHTS)

    @contextlib.contextmanager
    def _recorded(
        self, forward: Callable[[], Any], n_tokens: int, position: torch.Tensor | None, gradients: bool
    ) -> Iterator[tuple[AttentionRecorder, Any]]:
        """Record attention in one pass; gradients are taken inside, as layers may be computed again for them."""

        def record() -> tuple[AttentionRecorder, Any]:
            names = self._attention_modules
            with AttentionRecorder(self.model, position, causal=self._is_causal, names=names) as attention:
                return attention, forward()

        mode = torch.enable_grad() if gradients else torch.no_grad()
        with mode, eager_attention(self.model), checkpointed(self.model, n_tokens), contextlib.ExitStack() as entered:
            if self._attends_on_request:
                entered.enter_context(output_attentions(self.model))
            attention, scores = record()
            if not attention.names and not self._attends_on_request:
                self._attends_on_request = True
                entered.enter_context(output_attentions(self.model))
                attention, scores = record()
            yield attention, scores
        self._attention_modules = frozenset(attention.names) or None

    def _gradients_at(self, embedded: torch.Tensor, gradient: torch.Tensor, batch: Inputs) -> list[Gradients]:
        """Return embeddings and gradients of the tokens of each row, copied to the host at once."""
        inside = np.flatnonzero(np.arange(embedded.shape[1]) < batch.lengths[:, None])
        both = torch.stack([embedded.detach(), gradient]).flatten(1, 2).index_select(1, self._put(inside))
        states = to_host(both)().double().numpy()
        return [Gradients(*states[:, start:end]) for start, end in pairwise(batch.offsets.tolist())]

    def attention_maps(
        self, item: Encoded, target: int, labels: Labels, *, gradients: bool, prior: Prior | None = None
    ) -> base.AttentionMaps:
        n_tokens = len(item.ids)

        def within(layers: Sequence[torch.Tensor]) -> NDArray[np.float32]:
            # Labels of several tokens are rows of their own: their tokens are cut off, and their gradients add up.
            kept = [layer[:, :, :n_tokens, :n_tokens].detach().float().sum(dim=0).cpu() for layer in layers]
            return torch.stack(kept).numpy()

        # In a caller's inference mode there would be no gradient, even if it only covers the ids.
        with translated_memory_errors(), torch.inference_mode(False):
            inputs = item.full()
            padded = self.padded(inputs)
            embedded = self._embedded(padded).requires_grad_(gradients)
            forward = partial(self._differentiable_scores, embedded, inputs, padded, labels)
            with self._recorded(forward, padded.ids.numel(), None, gradients) as (attention, scores):
                attention.check()
                found = gradients_of(target_odds(scores, target, prior), attention.layers) if gradients else ()
            position = int(self._scoring_position(padded).flatten()[0])
            weights = within([layer[:1] for layer in attention.layers])
            return base.AttentionMaps(weights, within(found) if gradients else None, position)

    def embedded(self, item: Encoded, target: int, labels: Labels, *, prior: Prior | None = None) -> "TransformerText":
        return TransformerText(self, item, labels, partial(target_odds, targets=target, priors=prior))

    @property
    def _attribution_tokens(self) -> int:
        return _ATTRIBUTION_TOKENS

    @contextlib.contextmanager
    def _scores_at(
        self, points: torch.Tensor, item: Encoded, tokens: Ids, start: int, labels: Labels
    ) -> Iterator[torch.Tensor]:
        """Compute log-scores with `points` as the embeddings of `tokens`; gradients may be taken in this context."""
        inputs = Inputs.join([item.full()] * len(points))
        padded = self.padded(inputs)
        with checkpointed(self.model, padded.ids.numel()):
            moved = self._embedded(padded).index_copy(1, self._put(tokens), points)
            yield self._differentiable_scores(moved, inputs, padded, labels)

    def padded(self, batch: Inputs, *, start: int = 0) -> PaddedBatch:
        """Return rows from `start` on, on the device of the inputs after a single copy."""
        rest = batch.take(np.arange(len(batch)), start=start) if start else batch
        ids, mask, segments = self._put(np.stack(rest.padded(self._pad)))
        return PaddedBatch(ids, mask, segments, is_even=not np.ptp(batch.lengths))

    def _embedded(self, padded: PaddedBatch) -> torch.Tensor:
        """Return the embeddings of the tokens, (rows, longest, width)."""
        return self.model.get_input_embeddings()(padded.ids).detach()  # type: ignore[no-any-return]

    def _put(self, array: NDArray[np.int64]) -> torch.Tensor:
        return to_device(array, self.device)

    @abstractmethod
    def _arguments(self, padded: PaddedBatch) -> dict[str, Any]:
        """Return arguments beside the tokens, which keep the padding of a batch from being read."""


class TransformerText(base.EmbeddedText):
    """One text of a transformers model. A pass takes `at_once` points, or half as many where memory runs out."""

    def __init__(self, model: HFModel, item: Encoded, labels: Labels, odds: Odds) -> None:
        self.tokens = np.flatnonzero(item.unit_of != PROTECTED)
        start = 0 if model.pads else int(self.tokens[0])  # packed rows compute the tokens before it once
        self._model, self._odds, self._place = model, odds, (item, self.tokens, start, labels)
        self.at_once = max(1, model._attribution_tokens // ((len(item.ids) - start) * model._copies(labels)))
        self.embedding = self._embeddings(item.ids[self.tokens])
        pad = item.special.pad if item.special.pad is not None else item.special.end
        self.pad = None if pad is None else self._embeddings(np.array([pad]))[0]

    def _embeddings(self, ids: Ids) -> NDArray[np.float64]:
        table, place = self._model.model.get_input_embeddings(), self._model.device
        with torch.no_grad():
            return table(torch.from_numpy(ids).to(place)).double().cpu().numpy()  # type: ignore[no-any-return]

    def log_odds(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._in_parts(points, gradients=False)

    def gradients(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._in_parts(points, gradients=True)

    def _in_parts(self, points: NDArray[np.float64], *, gradients: bool) -> NDArray[np.float64]:
        model, dtype = self._model, self._model.model.dtype

        def compute(rows: slice) -> NDArray[np.float64]:
            narrow = points[rows] if dtype == torch.float64 else points[rows].astype(np.float32)
            with torch.inference_mode(False), torch.set_grad_enabled(gradients):
                moved = torch.from_numpy(narrow).to(model.device, dtype).requires_grad_(gradients)
                with model._scores_at(moved, *self._place) as scores:
                    odds = self._odds(scores)
                    found = gradients_of(odds, [moved])[0] if gradients else odds
            return found.double().cpu().numpy()

        return np.concatenate(devices.in_halves(compute, slice(0, len(points)), model._retries))


def n_positions(config: Any) -> int | None:
    """Return the number of positions of a model; None where it reads texts of any length (-1 in XLNet)."""
    found = getattr(config, "max_position_embeddings", None)
    return int(found) if found is not None and found > 0 else None


def split_rows(values: Callable[[], torch.Tensor], batch: Inputs) -> list[PerToken]:
    """Return the values of each row, (rows, longest), without its padding."""
    rows = values().double().numpy()
    return [row[:length] for row, length in zip(rows, batch.lengths.tolist(), strict=True)]
