"""Sequence classifiers: the score of a label is the logit of its class."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ice_eval.errors import ConfigError
from ice_eval.models._hf import HFModel, n_positions
from ice_eval.models._hf_codec import HFCodec
from ice_eval.models._records import Labels, LabelScoring
from ice_eval.records import ModelInput
from ice_eval.tasks import Task


class SequenceClassifier(HFModel):
    """Any `AutoModelForSequenceClassification`.

    One that is built on a causal model reads its answer off the last token that is not its padding token. Left to
    itself it takes the padding of a batch for text where the tokenizer pads with another token or with none, and
    always where it gets embeddings. So the token is looked for here, in the row's own ids.
    """

    def __init__(self, model: Any, tokenizer: Any, *, name: str) -> None:
        super().__init__(
            model, HFCodec(tokenizer, reads_pairs=True, max_tokens=_window(model.config, tokenizer)), name=name
        )
        self._last = hasattr(model, "score") and not model.config.is_encoder_decoder
        self._give_back_head = _float32_head(model)

    def release(self) -> None:
        self._give_back_head()
        super().release()

    def labels(self, task: Task, *, scoring: LabelScoring | None = None) -> Labels:
        if task.chat:
            raise ConfigError(f"{self.name} is a sequence classifier and has no chat; leave out --chat.")
        names = {str(name).casefold(): int(index) for index, name in self.model.config.id2label.items()}
        if len(names) < len(task.labels):
            raise ConfigError(
                f"the task has {len(task.labels)} labels ({', '.join(task.labels)}), and {self.name} has "
                f"{len(names)} classes ({', '.join(names)}); give --labels."
            )
        classes = tuple(str(self.model.config.id2label[index]) for index in range(len(names)))
        if scoring == "full":
            raise ConfigError(f"{self.name} is a sequence classifier: its labels have no tokens to score in full.")
        known = [label for label in task.labels if label.casefold() in names]
        if len(known) == len(task.labels):
            ids = tuple((names[label.casefold()],) for label in task.labels)
            return Labels(task.labels, ids, are_classes=True, classes=classes)
        if known or len(names) != len(task.labels):
            raise ConfigError(
                f"the labels {', '.join(task.labels)} are not the classes of {self.name} ({', '.join(names)}); "
                "give --labels."
            )
        alike = _beginning_alike(task.labels, classes)
        places = alike or list(range(len(classes)))
        pairs = ", ".join(f"{classes[place]} = {label}" for place, label in zip(places, task.labels, strict=True))
        how = "matched by how they begin" if alike else "taken in order"
        note = f"{self.name} names its classes otherwise than the task; {how}: {pairs}. Give --labels if that is wrong."
        return Labels(task.labels, tuple((place,) for place in places), are_classes=True, classes=classes, note=note)

    def copied(self, *, name: str, dtype: str | None = None) -> "SequenceClassifier":
        """The same weights again under another name, by default in their own precision."""
        model = copy.deepcopy(self.model).to(dtype=getattr(torch, dtype or self.dtype))
        return SequenceClassifier(model, self.codec.tokenizer, name=name)

    def trainable_scores(self, batch: Sequence[ModelInput], labels: Labels) -> torch.Tensor:
        """Log-scores of the labels up to a constant per row, with a graph through the weights."""
        return self._label_scores(batch, labels, 0)[0]

    def _label_scores(self, batch: Sequence[ModelInput], labels: Labels, prefix: int) -> tuple[torch.Tensor, int]:
        ids, mask, _ = self.padded(batch)
        scores = self._read({"input_ids": ids, "attention_mask": mask}, batch, labels)
        return scores, sum(len(row.ids) for row in batch)

    def _differentiable_scores(
        self, embedded: torch.Tensor, batch: Sequence[ModelInput], mask: torch.Tensor, labels: Labels
    ) -> torch.Tensor:
        return self._read({"inputs_embeds": embedded, "attention_mask": mask}, batch, labels)

    def _read(self, arguments: dict[str, Any], batch: Sequence[ModelInput], labels: Labels) -> torch.Tensor:
        ids, mask, segments = self.padded(batch)
        arguments |= self._segments(segments)
        if self._last:
            states = self.model.base_model(**arguments, use_cache=False).last_hidden_state.to(self.device)
            position = self._scoring_position(ids, mask.sum(dim=1))
            logits = self.model.score(states[torch.arange(len(batch), device=self.device), position])
        else:
            logits = self.model(**arguments).logits
        return logits[:, [index for (index,) in labels.ids]].to(self.device).float()  # type: ignore[no-any-return]

    @property
    def _reads_back(self) -> bool:
        return self._last and not getattr(self.model.config.get_text_config(), "use_bidirectional_attention", False)

    def _scoring_position(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        if not self._last:
            return torch.zeros_like(lengths)
        place = torch.arange(ids.shape[1], device=ids.device)
        read = place < lengths[:, None]
        skipped = self.model.config.get_text_config().pad_token_id
        if skipped is not None:
            read = read & (ids != skipped)
        return (place * read).argmax(dim=1)

    def _segments(self, segments: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"token_type_ids": segments} if getattr(self.model.config, "type_vocab_size", 0) > 1 else {}


def _beginning_alike(labels: Sequence[str], classes: Sequence[str]) -> list[int] | None:
    """The one class that each label begins with, or that begins with it (`neg`, `negative`); None if some has none."""
    found = []
    for label in map(str.casefold, labels):
        same = [place for place, name in enumerate(classes) if _begins(label, name.casefold())]
        found += same if len(same) == 1 else []
    return found if len(set(found)) == len(labels) else None


def _begins(one: str, other: str) -> bool:
    return bool(one and other) and (one.startswith(other) or other.startswith(one))


def _window(config: Any, tokenizer: Any) -> int:
    """Longest input: positions of the model, less those that RoBERTa and its kin leave unused before the first."""
    positions = n_positions(config)
    if positions is None:
        return int(tokenizer.model_max_length)
    unused = (config.pad_token_id or 0) + 1 if config.model_type in {"roberta", "xlm-roberta", "camembert"} else 0
    return int(min(positions - unused, tokenizer.model_max_length))


def _float32_head(model: Any) -> Callable[[], None]:
    """Compute everything after the encoder in float32: half-precision logits lie far enough apart to tie.

    Who calls the result gets the head back as it was: half precision, widened and narrowed again, is the same.
    """
    changed = []
    for name, module in model.named_children() if model.dtype.itemsize < torch.float32.itemsize else ():
        if module is not model.base_model and name != model.base_model_prefix:
            dtype = next((parameter.dtype for parameter in module.parameters()), model.dtype)
            hook = module.register_forward_pre_hook(lambda _, inputs: tuple(_as_float32(value) for value in inputs))
            changed.append((module.float(), dtype, hook))

    def give_back() -> None:
        for module, dtype, hook in changed:
            hook.remove()
            module.to(dtype)

    return give_back


def _as_float32(value: Any) -> Any:
    return value.float() if isinstance(value, torch.Tensor) and value.is_floating_point() else value
