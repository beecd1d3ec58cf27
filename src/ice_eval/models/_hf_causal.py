"""Causal language models: the score of a label is the log-probability of its word after the prompt."""

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ice_eval.encoding import label_ids
from ice_eval.errors import ConfigError
from ice_eval.models._base import Labels, LabelScoring
from ice_eval.models._hf import HFModel
from ice_eval.models._hf_codec import HFCodec
from ice_eval.records import ModelInput
from ice_eval.tasks import Task

_TOLERANCE = {"float32": 1e-4}
"""Largest difference of two log-scores that rounding explains; a wrong prefix gives 1 or more."""
_HALF_TOLERANCE = 0.3


class CausalLM(HFModel):
    r"""Any `AutoModelForCausalLM`.

    ```text
    shared prefix (computed once)        suffix of each row              label head (float32)
    Review: …\nSentiment: negative\n\n   Review: gorgeous\nSentiment:  → last state × rows " negative", " positive"
    ```
    """

    def __init__(self, model: Any, tokenizer: Any, *, name: str) -> None:
        window = int(getattr(model.config, "max_position_embeddings", None) or tokenizer.model_max_length)
        super().__init__(model, HFCodec(tokenizer, reads_pairs=False, max_tokens=window), name=name)
        self._cached: tuple[bytes, Any] | None = None
        self._shares_prefix = True
        self._own_head = True

    @property
    def shares_prefix(self) -> bool:
        return self._shares_prefix

    def labels(self, task: Task, *, scoring: LabelScoring | None = None) -> Labels:
        ids = label_ids(self.codec, task)
        distinct = len({first for first, *_ in ids}) == len(ids)
        if scoring == "first" and not distinct:
            words = ", ".join(repr(word) for word in task.label_words.values())
            raise ConfigError(f"the label words {words} do not differ in their first token; use --label-scoring full.")
        return Labels(task.labels, ids, scoring or ("first" if distinct else "full"))

    def check(self, batch: Sequence[ModelInput], labels: Labels, *, prefix: int) -> list[str]:
        tolerance = _TOLERANCE.get(self.dtype, _HALF_TOLERANCE)
        plain = self._plain_scores(batch, labels)

        def agrees(shared: int) -> bool:
            return bool(np.abs(self.log_scores(batch, labels, prefix=shared) - plain).max() <= tolerance)

        if agrees(prefix):
            return []
        if prefix and agrees(0):
            self._shares_prefix = False
            return [
                f"{self.name}: scores from a shared prefix differ from plain ones, so prefixes are not shared "
                "(slower, same numbers)."
            ]
        self._own_head = self._shares_prefix = False
        return [
            f"{self.name}: the label head differs from the model's own logits, so the model's own are used (slower)."
        ]

    def _plain_scores(self, batch: Sequence[ModelInput], labels: Labels) -> np.ndarray[Any, np.dtype[np.float64]]:
        """One row at a time through the whole model: slow, and right by construction."""
        head, shares, self._own_head, self._shares_prefix = self._own_head, self._shares_prefix, False, False
        try:
            return np.concatenate([self.log_scores([row], labels) for row in batch])
        finally:
            self._own_head, self._shares_prefix = head, shares

    def _label_scores(self, batch: Sequence[ModelInput], labels: Labels, prefix: int) -> torch.Tensor:
        rows = _with_labels(batch, labels) if labels.scoring == "full" else batch
        # One token at least must be left to compute after the prefix.
        start = min(prefix, min(len(row.ids) for row in batch) - 1) if self._shares_prefix else 0
        ids, mask, _ = self.padded(rows, start=start)
        arguments: dict[str, Any] = {"input_ids": ids, "use_cache": False}
        if start:
            arguments |= {"past_key_values": self._expanded(batch[0].ids[:start], len(rows)), "use_cache": True}
            mask = torch.cat([mask.new_ones(len(rows), start), mask], dim=1)
        if len({len(row.ids) for row in rows}) > 1:  # rows of equal length need no mask, and kernels are faster without
            arguments["attention_mask"] = mask
        return self._read(arguments, [len(row.ids) - start for row in batch], labels)

    def _read(self, arguments: dict[str, Any], lengths: Sequence[int], labels: Labels) -> torch.Tensor:
        """Label scores, from the states that follow the last token of each prompt."""
        states = self._states(arguments)
        rows, last = torch.arange(len(lengths), device=self.device), torch.tensor(lengths, device=self.device) - 1
        if labels.scoring == "first":
            return self._head(states[rows, last], torch.tensor([ids[0] for ids in labels.ids], device=self.device))
        columns = []
        for place, ids in enumerate(labels.ids):
            # The chain rule: each token of the label after those before it.
            after = [self._head(states[rows * len(labels.ids) + place, last + step]) for step in range(len(ids))]
            steps = [torch.log_softmax(logits, dim=-1)[:, token] for logits, token in zip(after, ids, strict=True)]
            columns.append(torch.stack(steps).sum(dim=0))
        return torch.stack(columns, dim=1)

    def _states(self, arguments: dict[str, Any]) -> torch.Tensor:
        """Last hidden states, or the model's own logits where its head is not a plain matrix."""
        if not self._own_head:
            return self.model(**arguments).logits  # type: ignore[no-any-return]
        return self.model.base_model(**arguments).last_hidden_state  # type: ignore[no-any-return]

    def _head(self, states: torch.Tensor, words: torch.Tensor | None = None) -> torch.Tensor:
        """Logits of a few words, or of the whole vocabulary, in float32."""
        chosen = slice(None) if words is None else words
        if not self._own_head:
            return states.float()[:, chosen]
        head = self.model.get_output_embeddings()
        bias = head.bias[chosen].float() if getattr(head, "bias", None) is not None else 0.0
        logits: torch.Tensor = states.float() @ head.weight[chosen].float().T + bias
        return logits

    def _expanded(self, prefix: np.ndarray[Any, np.dtype[np.int64]], n_rows: int) -> Any:
        """The prefix's key-value cache, for `n_rows` rows; used once, since the rows are written into it."""
        key = prefix.tobytes()
        if self._cached is None or self._cached[0] != key:
            ids = torch.from_numpy(prefix)[None].to(self.device)
            self._cached = (key, self.model.base_model(input_ids=ids, use_cache=True).past_key_values)
        return _expand(self._cached[1], n_rows)

    def _differentiable_scores(
        self, embedded: torch.Tensor, batch: Sequence[ModelInput], mask: torch.Tensor, labels: Labels
    ) -> torch.Tensor:
        if labels.scoring == "full":
            embedded, mask = self._embedded_with_labels(embedded, batch, labels)
        arguments = {"inputs_embeds": embedded, "attention_mask": mask, "use_cache": False}
        return self._read(arguments, [len(row.ids) for row in batch], labels)

    def _embedded_with_labels(
        self, embedded: torch.Tensor, batch: Sequence[ModelInput], labels: Labels
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Embeddings of every row followed by every label, so that gradients reach the rows' own embeddings."""
        ids, mask, _ = self.padded(_with_labels(batch, labels))
        plain = self.model.get_input_embeddings()(ids).detach()
        own = torch.zeros_like(mask, dtype=torch.bool)
        for index, row in enumerate(batch):
            own[index * len(labels.ids) : (index + 1) * len(labels.ids), : len(row.ids)] = True
        wide = torch.nn.functional.pad(embedded, (0, 0, 0, plain.shape[1] - embedded.shape[1]))
        return torch.where(own[:, :, None], wide.repeat_interleave(len(labels.ids), dim=0), plain), mask

    def _scoring_position(self, lengths: torch.Tensor) -> torch.Tensor:
        return lengths - 1

    def _no_cache(self) -> dict[str, bool]:
        return {"use_cache": False}


def _with_labels(batch: Sequence[ModelInput], labels: Labels) -> list[ModelInput]:
    """Every row followed by all but the last token of every label: what the chain rule reads."""
    return [
        ModelInput(np.append(row.ids, ids[:-1]).astype(np.int64), np.pad(row.segments, (0, len(ids) - 1)))
        for row in batch
        for ids in labels.ids
    ]


def _expand(cache: Any, n_rows: int) -> Any:
    """A batch-1 cache for many rows: a view where layers only grow by concatenation, else a copy."""
    if all(type(layer).__name__ in {"DynamicLayer", "DynamicSlidingWindowLayer"} for layer in cache.layers):
        expanded = copy.copy(cache)
        expanded.layers = [copy.copy(layer) for layer in cache.layers]
        for layer in expanded.layers:
            layer.keys, layer.values = layer.keys.expand(n_rows, -1, -1, -1), layer.values.expand(n_rows, -1, -1, -1)
        return expanded
    copied = copy.deepcopy(cache)
    copied.reorder_cache(torch.zeros(n_rows, dtype=torch.long))
    return copied
