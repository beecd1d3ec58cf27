"""Sequence classifiers: the score of a label is the logit of its class."""

from collections.abc import Sequence
from typing import Any

import torch

from ice_eval.errors import ConfigError
from ice_eval.models._base import Labels, LabelScoring
from ice_eval.models._hf import HFModel
from ice_eval.models._hf_codec import HFCodec
from ice_eval.records import ModelInput
from ice_eval.tasks import Task


class SequenceClassifier(HFModel):
    """Any `AutoModelForSequenceClassification`."""

    def __init__(self, model: Any, tokenizer: Any, *, name: str) -> None:
        super().__init__(
            model, HFCodec(tokenizer, reads_pairs=True, max_tokens=_window(model.config, tokenizer)), name=name
        )
        # A classifier that is built on a causal model answers at the last token that is not padding.
        self._last = bool(getattr(model.config, "is_decoder", False)) or hasattr(model, "score")
        if self._last and model.config.pad_token_id is None:
            model.config.pad_token_id = self._pad
        _float32_head(model)

    def labels(self, task: Task, *, scoring: LabelScoring | None = None) -> Labels:
        if task.chat:
            raise ConfigError(f"{self.name} is a sequence classifier and has no chat; leave out --chat.")
        names = {str(name).casefold(): int(index) for index, name in self.model.config.id2label.items()}
        if len(names) < len(task.labels):
            raise ConfigError(
                f"the task has {len(task.labels)} labels ({', '.join(task.labels)}), and {self.name} has "
                f"{len(names)} classes ({', '.join(names)}); give --labels."
            )
        if scoring == "full":
            raise ConfigError(f"{self.name} is a sequence classifier: its labels have no tokens to score in full.")
        known = [label for label in task.labels if label.casefold() in names]
        if len(known) == len(task.labels):
            return Labels(task.labels, tuple((names[label.casefold()],) for label in task.labels), are_classes=True)
        if known or len(names) != len(task.labels):
            raise ConfigError(
                f"the labels {', '.join(task.labels)} are not the classes of {self.name} ({', '.join(names)}); "
                "give --labels."
            )
        classes = [self.model.config.id2label[index] for index in range(len(names))]
        pairs = ", ".join(f"{c} = {label}" for c, label in zip(classes, task.labels, strict=True))
        note = f"{self.name} names its classes otherwise than the task; taken in order: {pairs}."
        classes_in_order = tuple((index,) for index in range(len(task.labels)))
        return Labels(task.labels, classes_in_order, are_classes=True, note=note)

    def _label_scores(self, batch: Sequence[ModelInput], labels: Labels, prefix: int) -> torch.Tensor:
        ids, mask, segments = self.padded(batch)
        logits = self.model(input_ids=ids, attention_mask=mask, **self._segments(segments)).logits
        return self._chosen(logits, labels)

    def _differentiable_scores(
        self, embedded: torch.Tensor, batch: Sequence[ModelInput], mask: torch.Tensor, labels: Labels
    ) -> torch.Tensor:
        _, _, segments = self.padded(batch)
        logits = self.model(inputs_embeds=embedded, attention_mask=mask, **self._segments(segments)).logits
        return self._chosen(logits, labels)

    def _chosen(self, logits: torch.Tensor, labels: Labels) -> torch.Tensor:
        return logits[:, [index for (index,) in labels.ids]].float()

    def _scoring_position(self, lengths: torch.Tensor) -> torch.Tensor:
        return lengths - 1 if self._last else torch.zeros_like(lengths)

    def _segments(self, segments: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"token_type_ids": segments} if getattr(self.model.config, "type_vocab_size", 0) > 1 else {}


def _window(config: Any, tokenizer: Any) -> int:
    """Longest input: positions of the model, less those that RoBERTa and its kin leave unused before the first."""
    positions = getattr(config, "max_position_embeddings", None)
    if positions is None:
        return int(tokenizer.model_max_length)
    unused = (config.pad_token_id or 0) + 1 if config.model_type in {"roberta", "xlm-roberta", "camembert"} else 0
    return int(min(positions - unused, tokenizer.model_max_length))


def _float32_head(model: Any) -> None:
    """Compute everything after the encoder in float32: half-precision logits lie far enough apart to tie."""
    if model.dtype == torch.float32:
        return
    for name, module in model.named_children():
        if module is not model.base_model and name != model.base_model_prefix:
            module.float()
            module.register_forward_pre_hook(lambda _, inputs: tuple(_as_float32(value) for value in inputs))


def _as_float32(value: Any) -> Any:
    return value.float() if isinstance(value, torch.Tensor) and value.is_floating_point() else value
