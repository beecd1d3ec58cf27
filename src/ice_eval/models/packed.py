"""Many rows as one packed sequence: common beginnings are computed once, and nothing is padded.

The rows of an example begin alike: first the template, then whatever they keep of the content. Their tokens form a
tree, and a token's state depends on its ancestors alone, so every node is computed once:

```text
rows    Review : a warm film ⏎ Sentiment :        nodes   (Review :) ─ a ─ warm ─ film ─ ⏎ ─ Sentiment ─ :
        Review : a film ⏎ Sentiment :                              │     └ film ─ ⏎ ─ Sentiment ─ :
        Review : warm ⏎ Sentiment :                                └ warm ─ ⏎ ─ Sentiment ─ :
```

Matrix products see one long sequence of nodes. Only attention, a few percent of the work, gathers the path of each
row; it reads the keys and values of the shared prefix (in brackets) from an earlier pass.
"""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.attention.bias import causal_lower_right
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from ice_eval.models.devices import input_device, replaced_forward, to_device
from ice_eval.models.gradients import switched
from ice_eval.records import Ids, Inputs

_NAME = "ice-packed"
_SPLIT_UP_TO = 512  # tokens of a row up to which the square of its weights is small
_PLAIN_NORMS = {"LlamaRMSNorm", "MistralRMSNorm", "Phi3RMSNorm", "Qwen2RMSNorm", "Qwen3RMSNorm", "SmolLM3RMSNorm"}
"""Classes that divide by the root mean square and multiply by a weight, and do nothing else."""

Prefix = dict[Any, tuple[torch.Tensor, torch.Tensor]]
"""Attention module -> keys and values of the shared prefix, (1, heads, tokens, width) each."""


class NotPackableError(Exception):
    """The model's attention does more than softmax over keys, so its rows cannot be packed."""


@dataclass(frozen=True)
class Packing:
    """Rows as nodes of a tree."""

    ids: Ids  # (nodes,): the token of each node, parents before children
    depth: Ids  # (nodes,): number of tokens of its rows before it, without the prefix
    row: Ids  # (nodes,): one of the rows that pass through it
    path: NDArray[np.int64]  # (rows, longest): the nodes of each row, the last one repeated to the end

    @classmethod
    def of(cls, rows: Inputs, *, start: int = 0, groups: Ids | None = None) -> "Packing":
        """Pack rows from `start` on, where each has a token at least; those of different `groups` share no node."""
        rest = rows.take(np.arange(len(rows)), start=start) if start else rows
        lengths, (tokens, _, _) = rest.lengths, rest.padded(0)
        n_ids = 1 + int(rest.ids.max())
        path = np.zeros_like(tokens)
        ids, owners = [], []
        parent = np.zeros(len(rows), dtype=np.int64) if groups is None else groups.copy()
        n_nodes = 0
        for depth, column in enumerate(tokens.T):
            alive = np.flatnonzero(lengths > depth)
            # Two rows share a node when they share its parent and its token.
            _, first, place = np.unique(parent[alive] * n_ids + column[alive], return_index=True, return_inverse=True)
            path[:, depth] = path[:, depth - 1] if depth else 0
            path[alive, depth] = n_nodes + place
            parent[alive] = place
            ids.append(column[alive][first])
            owners.append(alive[first])
            n_nodes += len(first)
        depths = np.repeat(np.arange(len(ids)), [len(each) for each in ids])
        return cls(np.concatenate(ids), depths, np.concatenate(owners), path)


@dataclass
class PackedPass:
    """One forward pass over a packing, with the inputs and records of its attention."""

    packing: Packing
    device: str
    prefix: Prefix = field(default_factory=dict)
    n_prefix: int = 0
    records: Prefix | None = None  # storage of keys and values for later passes; None: they are not stored
    watch: Ids | None = None  # (rows, most): positions after the prefix whose attention is averaged, padded below 0
    watched: torch.Tensor | None = None  # (rows, prefix + longest): its sum over layers, of the mean over heads
    n_attended: int = 0
    has_window: bool = False  # True if a layer passed the size of its window

    def __post_init__(self) -> None:
        self.shape = self.packing.path.shape
        self._seen: dict[torch.device, _Seen] = {}

    def arguments(self) -> dict[str, torch.Tensor]:
        return {"position_ids": to_device(self.packing.depth + self.n_prefix, self.device)[None]}

    def _seen_from(self, device: torch.device) -> "_Seen":
        """Return the packing for layers on one of perhaps several devices."""
        if device not in self._seen:
            self._seen[device] = _Seen(self.packing, self.watch, device)
        return self._seen[device]

    def attend(
        self, module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float, window: int | None
    ) -> torch.Tensor:
        """Return what every node reads, (1, nodes, heads, width), from three arrays of (1, heads, nodes, width)."""
        self.n_attended += 1
        self.has_window = self.has_window or window is not None
        if self.records is not None:
            self.records[module] = key, value
        seen = self._seen_from(query.device)
        queries, keys, values = (seen.by_row(each) for each in (query, key, value))
        reach = self.n_prefix + self.shape[1]
        if self.n_prefix and self._splits(query) and reach <= (window or reach):
            return self._in_two_parts(query, (queries, keys, values), self.prefix[module], scale)
        if self.n_prefix:
            before = (each.expand(len(queries), -1, -1, -1) for each in self.prefix[module])
            keys, values = (torch.cat(pair, dim=2) for pair in zip(before, (keys, values), strict=True))
        if seen.watching is not None:
            self._record(queries.detach(), keys.detach(), seen.watching, scale, window)
        return seen.at_nodes(self._softmax(queries, keys, values, scale, window))[None]

    def _splits(self, query: torch.Tensor) -> bool:
        """True if two small products are faster than a copy of the prefix for every row: without flash attention."""
        fast = query.is_cuda and query.dtype != torch.float32
        return not fast and self.watch is None and self.shape[1] <= _SPLIT_UP_TO

    def _in_two_parts(
        self,
        query: torch.Tensor,
        own: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
        prefix: tuple[torch.Tensor, torch.Tensor],
        scale: float,
    ) -> torch.Tensor:
        """Sum over the prefix, once per node, and over the row's own tokens; add up, and divide at the end."""
        n_heads, width = query.shape[1], query.shape[3]
        n_groups, (rows, longest), seen = own[1].shape[1], self.shape, self._seen_from(query.device)
        # Heads that read the same keys are one product: (groups, heads of a group × nodes, width).
        first = _sums(query.reshape(n_groups, -1, width), prefix[0][0], prefix[1][0], scale)
        queries, keys, values = (each.reshape(rows * n_groups, -1, each.shape[-1]) for each in own)
        second = _sums(queries, keys, values, scale, seen.later(n_heads // n_groups, query.dtype))
        by_node = _Sums(*(each.reshape(n_heads, -1, each.shape[-1]).transpose(0, 1) for each in first))
        by_row = _Sums(*(seen.at_nodes(each.reshape(rows, n_heads, longest, -1)) for each in second))
        return by_node.with_(by_row)[None]

    def _softmax(
        self, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, scale: float, window: int | None
    ) -> torch.Tensor:
        """Attend from every token to itself and those before it, as far back as the window reaches."""
        n_queries, n_keys = queries.shape[2], keys.shape[2]
        bounded = window is not None and n_keys > window
        if queries.is_cuda and queries.dtype != torch.float32 and not bounded:
            mask: Any = causal_lower_right(n_queries, n_keys)  # what flash attention takes as it is
            grouped = True
        else:
            mask = self._seen_from(queries.device).mask(n_queries, n_keys, window if bounded else None)
            grouped = False
            repeats = queries.shape[1] // keys.shape[1]
            if repeats > 1:
                keys, values = keys.repeat_interleave(repeats, dim=1), values.repeat_interleave(repeats, dim=1)
        return torch.nn.functional.scaled_dot_product_attention(
            queries, keys, values, attn_mask=mask, scale=scale, enable_gqa=grouped
        )

    def _record(
        self, queries: torch.Tensor, keys: torch.Tensor, watch: torch.Tensor, scale: float, window: int | None
    ) -> None:
        """Add one layer's attention from the watched positions: a row of weights per head, never a square of them."""
        rows, n_keys = torch.arange(len(queries), device=queries.device)[:, None], keys.shape[2]
        counts = watch >= 0
        watch = watch.clamp(min=0)
        chosen = queries[rows, :, watch].float()  # (rows, most, heads, width)
        grouped = chosen.reshape(
            *chosen.shape[:2], keys.shape[1], -1, chosen.shape[-1]
        )  # several heads may read the same keys
        weights = torch.einsum("rpgqd,rgkd->rpgqk", grouped, keys.float()) * scale
        behind = (self.n_prefix + watch)[:, :, None] - torch.arange(n_keys, device=queries.device)
        hidden = (behind < 0) | (behind >= (window or n_keys + 1))
        by_position = weights.masked_fill(hidden[:, :, None, None], -torch.inf).softmax(dim=-1).mean(dim=(2, 3))
        shares = (by_position * counts[:, :, None]).sum(dim=1) / counts.sum(dim=1, keepdim=True)
        self.watched = shares if self.watched is None else self.watched + shares.to(self.watched.device)


class _Seen:
    """A packing, as the layers on one device use it."""

    def __init__(self, packing: Packing, watch: Ids | None, device: torch.device) -> None:
        self._device, self._shape = device, packing.path.shape
        self._path = to_device(packing.path.reshape(-1), device)
        self._place = to_device(packing.row * self._shape[1] + packing.depth, device)
        self.watching = None if watch is None else to_device(watch, device)
        self._masks: dict[int | None, torch.Tensor] = {}
        self._mask_of_later: torch.Tensor | None = None

    def by_row(self, nodes: torch.Tensor) -> torch.Tensor:
        """Return (rows, heads, longest, width) from (1, heads, nodes, width)."""
        gathered = nodes[0].transpose(0, 1).index_select(0, self._path)
        return gathered.view(*self._shape, *gathered.shape[1:]).transpose(1, 2)

    def at_nodes(self, by_row: torch.Tensor) -> torch.Tensor:
        """Return (nodes, heads, width) from (rows, heads, longest, width)."""
        return by_row.transpose(1, 2).flatten(0, 1).index_select(0, self._place)

    def later(self, repeats: int, dtype: torch.dtype) -> torch.Tensor:
        """Return -inf where a token of a row would read a later one, repeated for the heads that share keys."""
        if self._mask_of_later is None:
            square = torch.full((self._shape[1], self._shape[1]), -torch.inf, dtype=dtype, device=self._device)
            self._mask_of_later = square.triu(1).repeat(repeats, 1)
        return self._mask_of_later

    def mask(self, n_queries: int, n_keys: int, window: int | None) -> torch.Tensor:
        """Return True where a query reads a key: itself and those before it, as far back as the window reaches."""
        if window not in self._masks:
            keys = torch.arange(n_keys, device=self._device)
            behind = keys[n_keys - n_queries :, None] - keys[None]
            self._masks[window] = (behind >= 0) & (behind < (window or n_keys))
        return self._masks[window]


class _Sums(NamedTuple):
    """A softmax before its division."""

    values: torch.Tensor  # sum of the values, each times its weight
    weights: torch.Tensor  # sum of the weights, of which the largest is 1
    top: torch.Tensor  # logarithm of the divisor that makes the largest weight 1

    def with_(self, other: "_Sums") -> torch.Tensor:
        top = torch.maximum(self.top, other.top)
        mine, theirs = (self.top - top).exp(), (other.top - top).exp()
        total = self.weights * mine + other.weights * theirs
        return self.values * (mine / total) + other.values * (theirs / total)


def _sums(
    queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, scale: float, mask: torch.Tensor | None = None
) -> _Sums:
    """Return softmax sums of queries over keys, (batch, tokens, width) each."""
    start = mask if mask is not None else queries.new_zeros(())
    weights = torch.baddbmm(start, queries, keys.transpose(1, 2), beta=0 if mask is None else 1, alpha=scale)
    top = weights.detach().amax(dim=-1, keepdim=True)
    shares = (weights - top).exp()
    return _Sums(shares @ values, shares.sum(dim=-1, keepdim=True), top)


_PASSES: list[PackedPass] = []  # the current pass, read by the attention of the model
_ALONE = threading.RLock()  # one pass at a time, since layers read theirs from `_PASSES`


def _attend(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: Any = None,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """Attend as transformers calls it in place of its own function."""
    unknown = [name for name in ("softcap", "s_aux", "position_bias") if others.get(name) is not None]
    if unknown or others.get("is_causal") is False or not getattr(module, "is_causal", True):
        raise NotPackableError(f"{type(module).__name__}: {', '.join(unknown) or 'attention in both directions'}")
    scale = scaling if scaling is not None else query.shape[-1] ** -0.5
    return _PASSES[-1].attend(module, query, key, value, scale, sliding_window), None


ALL_ATTENTION_FUNCTIONS.register(_NAME, _attend)


@contextlib.contextmanager
def packed(model: Any, forward: PackedPass) -> Iterator[PackedPass]:
    """Let a model's attention follow a packing for one pass; raise `NotPackableError` if its layers did not use it."""
    with _ALONE, switched(model.set_attn_implementation, _NAME, model.config._attn_implementation), _fused_norms(model):
        _PASSES.append(forward)
        try:
            yield forward
        finally:
            _PASSES.pop()
    n_layers = model.config.get_text_config().num_hidden_layers
    if forward.n_attended < n_layers:
        raise NotPackableError(f"{forward.n_attended} of {n_layers} layers used packed attention")


@contextlib.contextmanager
def _fused_norms(model: Any) -> Iterator[None]:
    """Use torch's kernel for RMS norms: six passes over memory become one, 9 % of a 7B model's time on an H200."""
    # Only in half precision on a GPU, where norms are bound by memory; elsewhere nothing changes.

    def norm(module: Any, states: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.rms_norm(states, (states.shape[-1],), module.weight, module.variance_epsilon)

    modules = [module for module in model.modules() if type(module).__name__ in _PLAIN_NORMS]
    if model.dtype == torch.float32 or input_device(model).type != "cuda":
        modules = []
    with replaced_forward(modules, lambda module, _: partial(norm, module), inside=True):
        yield
