"""Causal language models: the score of a label is the log-probability of its word after the prompt."""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from ice_eval.encoding import label_ids, shared_prefix
from ice_eval.models import base
from ice_eval.models.base import Gradients, Labels, LabelScoring, Observations
from ice_eval.models.codec import HFCodec
from ice_eval.models.devices import record_event, to_host, weight_of
from ice_eval.models.generate import Generator
from ice_eval.models.gradients import checkpointed, gradients_of, no_grad
from ice_eval.models.packed import PackedPass, Packing, Prefix, packed
from ice_eval.models.transformer import HFModel, Odds, PaddedBatch, n_positions, split_rows
from ice_eval.records import NOT_SET, SCORED, Encoded, Ids, Inputs, LogScores
from ice_eval.servers import Completion, Request
from ice_eval.tasks import Task

Way = Literal["packed", "shared", "plain"]
"""Rows are computed as a tree of tokens after a shared prefix, padded after a shared prefix, or padded whole."""
_MOST_LOGITS = 1 << 26
"""Logits of the whole vocabulary that are computed at once."""
StatesAt = Callable[[Ids, Ids], torch.Tensor]
"""(rows, positions after the prefix) -> hidden states, (places, width)."""


class CausalLM(HFModel):
    r"""Any `AutoModelForCausalLM`.

    ```text
    shared prefix (computed once)        suffix of each row              label head (float32)
    Review: …\nSentiment: negative\n\n   Review: gorgeous\nSentiment:  → last state × rows " negative", " positive"
    ```
    """

    offers = HFModel.offers | {"generate"}

    def __init__(self, model: Any, tokenizer: Any, *, name: str) -> None:
        window = n_positions(model.config) or int(tokenizer.model_max_length)
        family, n_ids = model.config.model_type, model.get_input_embeddings().weight.shape[0]
        codec = HFCodec(tokenizer, reads_pairs=False, max_tokens=window, family=family, n_ids=n_ids)
        super().__init__(model, codec, name=name)
        self._ready: Callable[[], None] = lambda: None
        mixes = set(getattr(model.config.get_text_config(), "layer_types", None) or ["full_attention"])
        # Convolutions and recurrences would run on from one packed row into the next.
        self._way: Way = "packed" if mixes <= {"full_attention", "sliding_attention"} else "shared"
        self._knows_window = False
        self._own_head = True

    @property
    def shares_prefix(self) -> bool:
        return self._way != "plain"

    def labels(self, task: Task, *, scoring: LabelScoring | None = None) -> Labels:
        ids = label_ids(self.codec, task)
        return Labels(task.labels, ids, base.chosen_scoring(scoring, task.label_words.values(), ids))

    def text_labels(self, name: str) -> Labels:
        return Labels((name,), ((),), "given")

    def label_mass(self, batch: Inputs, labels: Labels) -> NDArray[np.float64]:
        ids = tuple(own[:1] for own in labels.ids) if labels.scoring == "first" else labels.ids
        whole = replace(labels, ids=ids, scoring="full")  # the chain rule is normalised over the vocabulary
        with no_grad(self.model):
            rows = [self._label_scores(batch.take([row]), whole, 0)[0].double().cpu() for row in range(len(batch))]
        return np.exp(torch.cat(rows).numpy()).sum(axis=1)  # type: ignore[no-any-return]

    def check(self, batch: Inputs, labels: Labels, *, prefix: int) -> list[str]:
        plain, hoped_to_pack, faults = self._plain_scores(batch, labels), self._way == "packed", list[str]()

        def agrees(way: Way, own_head: bool) -> bool:
            self._way, self._own_head = way, own_head
            fault = self._fault(plain, batch, labels, prefix)
            faults.extend([f" ({fault})"] if fault else [])
            return fault is None

        if hoped_to_pack and agrees("packed", True) and (self._knows_window or not self._has_window()):
            return []
        if agrees("shared", True):
            if not hoped_to_pack:
                return []
            return [f"{self.name}: its rows cannot be packed{''.join(faults[:1])}, so they are padded (slower)."]
        if agrees("plain", True):
            fault = "scores from a shared prefix differ from plain ones, so prefixes are not shared"
            return [f"{self.name}: {fault} (slower, same numbers)."]
        if not agrees("shared", False):
            self._way = "plain"
        fault = "the label head differs from the model's own logits, so the model's own are used"
        return [f"{self.name}: {fault} (slower)."]

    def _has_window(self) -> bool:
        """True if attention has a window; layers must then pass its size to a packed pass."""
        config = self.model.config.get_text_config()
        reach = [getattr(config, name, None) for name in ("sliding_window", "attention_chunk_size")]
        return any(isinstance(each, int) and each < self.codec.max_tokens for each in reach)

    def _plain_scores(self, batch: Inputs, labels: Labels) -> LogScores:
        """Score one row at a time through the whole model: slow, and right by construction."""
        before, self._way, self._own_head = (self._way, self._own_head), "plain", False
        try:
            return self.again(batch, labels)
        finally:
            self._way, self._own_head = before

    @property
    def pads(self) -> bool:
        return self._way != "packed"

    def _label_scores(self, batch: Inputs, labels: Labels, prefix: int) -> tuple[torch.Tensor, int]:
        # One token at least must be left to compute after the prefix.
        start = min(prefix, int(answering_positions(batch, labels)[:, 0].min())) if self.shares_prefix else 0
        rows = _with_labels(batch, labels)
        states, tokens = (self._packed_states if self._way == "packed" else self._padded_states)(rows, start)
        return self._read(states, batch, start, labels), tokens

    def _packed_states(self, rows: Inputs, start: int) -> tuple[StatesAt, int]:
        with self._packed(rows, start) as forward:
            states = self._at_nodes(forward, input_ids=self._put(forward.packing.ids)[None])
        self._knows_window = self._knows_window or forward.has_window
        return states, len(forward.packing.ids)

    def _packed(
        self, rows: Inputs, start: int, *, groups: Ids | None = None, watch: Ids | None = None
    ) -> AbstractContextManager[PackedPass]:
        """Compute the rows from `start` on, after the keys and values of the tokens before."""
        prefix = self._prefix(rows.row(0)[:start]) if start else {}
        packing = Packing.of(rows, start=start, groups=groups)
        forward = PackedPass(packing, self.device, prefix=prefix, n_prefix=start, watch=watch)
        return packed(self.model, forward)

    def _prefix(self, ids: Ids) -> Prefix:
        """Return keys and values of a prefix; those of the last one are kept."""
        key = ("packed", ids.tobytes())
        if self._cached is None or self._cached[0] != key:
            self._cached = None
            recorded: Prefix = {}
            forward = PackedPass(Packing.of(Inputs.one(ids)), self.device, records=recorded)
            with torch.inference_mode(False), torch.no_grad(), packed(self.model, forward):
                self.model.base_model(input_ids=self._put(ids)[None], use_cache=False, **forward.arguments())
            self._cached = (key, recorded)
            self._ready = record_event(self.device)
        # It may have been computed on another stream, which may not be there yet.
        self._ready()
        return self._cached[1]

    def _padded_states(self, rows: Inputs, start: int) -> tuple[StatesAt, int]:
        padded = self.padded(rows, start=start)
        mask = padded.mask
        arguments: dict[str, Any] = {"input_ids": padded.ids, "use_cache": False}
        if start:
            arguments |= {"past_key_values": self._expanded(rows.row(0)[:start], len(rows)), "use_cache": True}
            mask = torch.cat([mask.new_ones(len(rows), start), mask], dim=1)
        if not padded.is_even:  # kernels are faster without a mask
            arguments["attention_mask"] = mask
        return self._at_places(self._states(**arguments)), len(rows.ids) - start * len(rows)

    def _at_places(self, states: torch.Tensor) -> StatesAt:
        return lambda rows, positions: states[self._put(rows), self._put(positions)]

    def _at_nodes(self, forward: PackedPass, **tokens: torch.Tensor) -> StatesAt:
        states = self._states(**tokens, use_cache=False, **forward.arguments())
        return lambda rows, positions: states[0, self._put(forward.packing.path[rows, positions])]

    def _read(self, states: StatesAt, batch: Inputs, start: int, labels: Labels) -> torch.Tensor:
        """Return label scores from the states of rows from `start` on: after each prompt, or before scored tokens."""
        if labels.scoring == "given":
            return self._read_given(states, batch, start)
        rows, last = np.arange(len(batch)), batch.lengths - start - 1
        if labels.scoring == "first":
            return self._head(states(rows, last), self._put(np.array([ids[0] for ids in labels.ids])))
        columns = []
        for place, ids in enumerate(labels.ids):
            # The chain rule: each token of the label after those before it.
            after = [self._head(states(rows * len(labels.ids) + place, last + step)) for step in range(len(ids))]
            steps = [torch.log_softmax(logits, dim=-1)[:, token] for logits, token in zip(after, ids, strict=True)]
            columns.append(torch.stack(steps).sum(dim=0))
        return torch.stack(columns, dim=1)

    def _read_given(self, states: StatesAt, batch: Inputs, start: int) -> torch.Tensor:
        """Return the mean log-probability of the scored tokens of each row, a column of one label."""
        rows, positions, tokens = scored_tokens(batch)
        found, n_words = [], int(self.model.get_output_embeddings().weight.shape[0])
        for some in np.array_split(np.arange(len(rows)), -(-len(rows) * n_words // _MOST_LOGITS)):
            logits = self._head(states(rows[some], positions[some] - start - 1))
            own = logits.gather(1, self._put(tokens[some])[:, None])[:, 0]
            found.append(own - torch.logsumexp(logits, dim=-1))
        counts = self._put(np.bincount(rows, minlength=len(batch)))
        sums = torch.zeros(len(batch), dtype=torch.float32, device=found[0].device)
        return (sums.index_add(0, self._put(rows), torch.cat(found)) / counts)[:, None]

    def _states(self, **arguments: Any) -> torch.Tensor:
        """Return the last hidden states, or the model's own logits where its head is not a plain matrix."""
        own = self._own_head
        states = self.model.base_model(**arguments).last_hidden_state if own else self.model(**arguments).logits
        return states.to(self.device)  # type: ignore[no-any-return]

    def _head(self, states: torch.Tensor, words: torch.Tensor | None = None) -> torch.Tensor:
        """Return logits of a few words, or of the whole vocabulary, in float32."""
        if not self._own_head:
            return states.float() if words is None else states.float()[:, words]
        head = self.model.get_output_embeddings()
        weight, bias = (weight_of(head, name) for name in ("weight", "bias"))
        assert weight is not None

        def chosen(tensor: torch.Tensor) -> torch.Tensor:
            rows = tensor if words is None else tensor[words.to(tensor.device)]  # picked on its own device
            return rows.to(states.device).float()

        logits = states.float() @ chosen(weight).T
        return logits if bias is None else logits + chosen(bias)

    def _expanded(self, prefix: Ids, n_rows: int) -> Any:
        """Return the prefix's key-value cache for `n_rows` rows; used once, since the rows are written into it."""
        key = prefix.tobytes()
        if self._cached is None or self._cached[0] != key:
            ids = torch.from_numpy(prefix)[None].to(self.device)
            self._cached = (key, self.model.base_model(input_ids=ids, use_cache=True).past_key_values)
        cache = self._cached[1]
        # A view where layers only grow by concatenation, else a copy.
        if not all(type(layer).__name__ in {"DynamicLayer", "DynamicSlidingWindowLayer"} for layer in cache.layers):
            copied = copy.deepcopy(cache)
            copied.reorder_cache(torch.zeros(n_rows, dtype=torch.long))
            return copied
        expanded = copy.copy(cache)
        expanded.layers = [copy.copy(layer) for layer in cache.layers]
        for layer in expanded.layers:
            layer.keys, layer.values = layer.keys.expand(n_rows, -1, -1, -1), layer.values.expand(n_rows, -1, -1, -1)
        return expanded

    def _observe(self, batch: Sequence[Encoded], odds: Odds, labels: Labels, needs: base.Needs) -> Observations:
        """Compute attention and gradient in one pass, which begins where the inputs begin to differ."""
        if self._way != "packed":
            return super()._observe(batch, odds, labels, needs)
        differentiates = "gradients" in needs
        inputs = Inputs.join([item.full() for item in batch])
        answering = answering_positions(inputs, labels)
        start = min(shared_prefix(batch), int(answering[:, 0].min()))
        last: Ids = inputs.lengths - start - 1
        copies = self._copies(labels) if differentiates else 1
        rows = _with_labels(inputs, labels) if differentiates else inputs
        # Examples share no node: the gradient of one must not reach another.
        groups = np.arange(len(inputs)).repeat(copies)
        watch = np.where(answering < 0, NOT_SET, answering - start).repeat(copies, axis=0)
        with self._packed(rows, start, groups=groups, watch=watch if "attentions" in needs else None) as forward:
            nodes = self._put(forward.packing.ids)[None]
            with torch.enable_grad() if differentiates else torch.no_grad(), checkpointed(self.model, nodes.numel()):
                embedded = self.model.get_input_embeddings()(nodes).detach().requires_grad_(differentiates)
                states = self._at_nodes(forward, inputs_embeds=embedded)
                if differentiates:
                    (gradient,) = gradients_of(odds(self._read(states, inputs, start, labels)), [embedded])
        found = Observations()
        attention = None if forward.watched is None else to_host((forward.watched / forward.n_attended)[::copies])
        if differentiates:
            own = [forward.packing.path[index * copies, : last[index] + 1] for index in range(len(inputs))]
            found.gradients = self._split(embedded.detach()[0], gradient[0], own, inputs.row(0)[:start])
        if attention is not None:
            found.attentions = split_rows(attention, inputs)
        return found

    def generate(
        self, prompts: Sequence[str], *, turns: base.Turns | None, max_tokens: int, stop: str | None
    ) -> list[base.Generated]:
        generator = Generator(self.model, self.codec, device=self.device)
        return generator.complete(prompts, turns, max_tokens, stop, self._retries)

    @property
    def chats(self) -> bool:
        return self.codec.has_chat

    def converse(self, chats: Sequence[Request]) -> Iterator[tuple[int, Completion]]:
        return Generator(self.model, self.codec, device=self.device).reply(chats)

    @contextmanager
    def _scores_at(
        self, points: torch.Tensor, item: Encoded, tokens: Ids, start: int, labels: Labels
    ) -> Iterator[torch.Tensor]:
        if self._way != "packed":
            with super()._scores_at(points, item, tokens, start, labels) as scores:
                yield scores
            return
        inputs = Inputs.join([item.full()] * len(points))
        copies, rows = self._copies(labels), _with_labels(inputs, labels)
        # Points share no node: each has embeddings of its own.
        with self._packed(rows, start, groups=np.arange(len(inputs)).repeat(copies)) as forward:
            nodes, path = self._put(forward.packing.ids)[None], forward.packing.path[::copies]
            moving = self._put(path[:, tokens - start].reshape(-1))
            plain = self.model.get_input_embeddings()(nodes).detach()
            embedded = plain.index_copy(1, moving, points.reshape(1, -1, points.shape[-1]))
            with checkpointed(self.model, nodes.numel()):
                yield self._read(self._at_nodes(forward, inputs_embeds=embedded), inputs, start, labels)

    def _split(
        self, embedded: torch.Tensor, gradient: torch.Tensor, own: Sequence[Ids], prefix: Ids
    ) -> list[Gradients]:
        """Return embeddings and gradients of each example, from its nodes; a shared prefix has no gradient."""
        before = self.model.get_input_embeddings()(self._put(prefix)).detach()
        pairs = ((before, embedded), (torch.zeros_like(before), gradient))
        states = to_host(torch.stack([torch.cat(pair) for pair in pairs]))().double().numpy()
        head = np.arange(len(prefix))
        return [Gradients(*states[:, np.append(head, len(prefix) + nodes)]) for nodes in own]

    def _differentiable_scores(
        self, embedded: torch.Tensor, batch: Inputs, padded: PaddedBatch, labels: Labels
    ) -> torch.Tensor:
        if labels.scoring == "full":
            # Every row is followed by every label, so that gradients reach the rows' own embeddings.
            padded = self.padded(_with_labels(batch, labels))
            plain = self.model.get_input_embeddings()(padded.ids).detach()
            lengths = self._put(batch.lengths.repeat(len(labels.ids)))
            own = torch.arange(plain.shape[1], device=plain.device) < lengths[:, None]
            wide = torch.nn.functional.pad(embedded, (0, 0, 0, plain.shape[1] - embedded.shape[1]))
            embedded = torch.where(own[:, :, None], wide.repeat_interleave(len(labels.ids), dim=0), plain)
        states = self._states(inputs_embeds=embedded, **self._arguments(padded))
        return self._read(self._at_places(states), batch, 0, labels)

    def _scoring_position(self, padded: PaddedBatch) -> torch.Tensor:
        rows, tokens = (each.cpu().numpy() for each in (padded.segments == SCORED).nonzero(as_tuple=True))
        if not len(rows):
            return padded.mask.sum(dim=1) - 1
        return self._put(_padded_rows(rows, tokens - 1, len(padded.ids)))

    def _arguments(self, padded: PaddedBatch) -> dict[str, Any]:
        return {"attention_mask": padded.mask, "use_cache": False}


def scored_tokens(batch: Inputs) -> tuple[Ids, Ids, Ids]:
    """Return the row, the position in it, and the id of every scored token."""
    places = np.flatnonzero(batch.segments == SCORED)
    rows: Ids = np.searchsorted(batch.offsets, places, side="right") - 1
    return rows, places - batch.offsets[rows], batch.ids[places]


def answering_positions(batch: Inputs, labels: Labels) -> Ids:
    """Return the positions whose states answer, (rows, most): the last one, or those before scored tokens."""
    if labels.scoring != "given":
        return batch.lengths[:, None] - 1
    rows, positions, _ = scored_tokens(batch)
    return _padded_rows(rows, positions - 1, len(batch))


def _padded_rows(rows: Ids, values: Ids, n_rows: int) -> Ids:
    """Return sorted rows with their values as a matrix, padded with `NOT_SET`."""
    counts = np.bincount(rows, minlength=n_rows)
    found = np.full((n_rows, int(counts.max(initial=0))), NOT_SET, dtype=np.int64)
    found[np.arange(found.shape[1]) < counts[:, None]] = values
    return found


def _with_labels(batch: Inputs, labels: Labels) -> Inputs:
    """Return every row, followed by all but the last token of every label where the chain rule needs them."""
    if labels.scoring != "full":
        return batch
    rows = batch.take(np.arange(len(batch)).repeat(len(labels.ids)))
    added: Ids = np.tile([len(ids) - 1 for ids in labels.ids], len(batch))
    words = [token for ids in labels.ids for token in ids[:-1]]
    offsets = np.append(0, np.cumsum(rows.lengths + added))
    place = np.arange(offsets[-1]) - offsets[:-1].repeat(rows.lengths + added)
    own = place < rows.lengths.repeat(rows.lengths + added)
    ids, segments = np.zeros((2, len(own)), dtype=np.int64)
    ids[own], ids[~own], segments[own] = rows.ids, words * len(batch), rows.segments
    return Inputs(ids, segments, offsets)
