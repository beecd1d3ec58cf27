"""Sequence classifiers: the score of a label is the logit of its class."""

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from ice_eval.errors import ConfigError
from ice_eval.models.base import Labels, LabelScoring
from ice_eval.models.codec import HFCodec
from ice_eval.models.devices import replaced_forward
from ice_eval.models.gradients import SMALL_MODEL, no_cudnn_attention, switched
from ice_eval.models.transformer import HFModel, PaddedBatch, n_positions
from ice_eval.records import Encoded, Ids, Inputs, LogScores
from ice_eval.tasks import Task

_ADDS_MASK = frozenset({"albert", "bert", "camembert", "distilbert", "electra", "roberta", "xlm-roberta"})
"""Architectures that add a four-dimensional mask to their attention as it is, and read all tokens without one."""
_READS_FIRST = frozenset({"bert", "camembert", "electra", "roberta", "xlm-roberta"})
"""Architectures whose head reads the first token of the last layer, and whose layers are BERT's."""
_ALIGNED = 8  # mask rows must begin at multiples of this many numbers, else kernels copy the mask in every layer
_PASS_TOKENS, _HALF_PASS_TOKENS = {torch.float32: 1024}, 2048
"""Tokens that a GPU computes while the host prepares a pass, in float32 and below."""
_CPU_PASS_TOKENS = 64
"""Tokens that a CPU computes in the time that a pass takes to prepare, with the kernels for its number of tokens."""
_LARGE_PART, _LARGE_PASS = 128, 8192
"""Examples of a part, and tokens of an attention and gradient pass, of a small model on a GPU."""


class SequenceClassifier(HFModel):
    """Any `AutoModelForSequenceClassification`."""

    # A classifier built on a causal model answers at the last token that is not its padding token. If the tokenizer
    # pads with another token or none, or the model gets embeddings, it treats padding as text. So that token is found
    # here, in the row's own ids.

    def __init__(self, model: Any, tokenizer: Any, *, name: str) -> None:
        self._last = hasattr(model, "score") and not model.config.is_encoder_decoder
        window = _window(model.config, tokenizer)
        options = {"knows_mask": not self._last, "n_ids": model.get_input_embeddings().weight.shape[0]}
        codec = HFCodec(tokenizer, reads_pairs=True, max_tokens=window, **options)
        super().__init__(model, codec, name=name)
        text_config = model.config.get_text_config()
        self._is_causal = self._last and not getattr(text_config, "use_bidirectional_attention", False)
        self._adds_mask = model.config.model_type in _ADDS_MASK and not getattr(model.config, "is_decoder", False)
        self._restore_head = _float32_head(model)
        # A GPU computes the passes of a small model faster than the host prepares them, and a pass costs the host as
        # much as thousands of tokens cost the GPU: with larger parts there are fewer passes.
        on_gpu = self.device.startswith("cuda")
        self._is_small = on_gpu and model.num_parameters() < SMALL_MODEL
        self.pass_tokens = _PASS_TOKENS.get(model.dtype, _HALF_PASS_TOKENS) if on_gpu else _CPU_PASS_TOKENS
        if self._is_small:
            self.part_size = _LARGE_PART

    def release(self) -> None:
        self._restore_head()
        super().release()

    def labels(self, task: Task, *, scoring: LabelScoring | None = None) -> Labels:
        if task.chat:
            raise ConfigError(f"{self.name} is a sequence classifier and has no chat; leave out --chat.")
        classes = self._classes(task.labels)
        names = {name.casefold(): index for index, name in enumerate(classes)}
        own = ", ".join([f"{name:.60}" for name in names][:20] + ["…"] * (len(names) > 20))
        wanted = ", ".join(task.labels)
        if len(names) < len(task.labels):
            theirs = f"{self.name} has {len(names)} classes ({own})"
            raise ConfigError(f"the task has {len(task.labels)} labels ({wanted}), and {theirs}; give --labels.")
        if scoring == "full":
            raise ConfigError(f"{self.name} is a sequence classifier: its labels have no tokens to score in full.")
        known = [label for label in task.labels if label.casefold() in names]
        if len(known) == len(task.labels):
            ids = tuple((names[label.casefold()],) for label in task.labels)
            return Labels(task.labels, ids, are_classes=True, classes=classes)
        if known or len(names) != len(task.labels):
            raise ConfigError(f"the labels {wanted} are not the classes of {self.name} ({own}); give --labels.")
        alike = _beginning_alike(task.labels, classes)
        places = alike or list(range(len(classes)))
        pairs = ", ".join(f"{classes[place]} = {label}" for place, label in zip(places, task.labels, strict=True))
        how = "matched by how they begin" if alike else "taken in order"
        note = f"{self.name} and the task name the classes differently; {how}: {pairs}. Give --labels if that is wrong."
        return Labels(task.labels, tuple((place,) for place in places), are_classes=True, classes=classes, note=note)

    @property
    def _is_multi_label(self) -> bool:
        return bool(self.model.config.problem_type == "multi_label_classification")

    def _classes(self, labels: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the classes; with labels `X` and `not X` of a multi-label model, `not X` comes last."""
        names = tuple(str(name) for _, name in sorted(self.model.config.id2label.items()))
        known, (name, *others) = set(map(str.casefold, names)), sorted(map(str.casefold, labels), key=len)
        is_extra = self._is_multi_label and name in known and others == [f"not {name}"] and others[0] not in known
        return (*names, *others) if is_extra else names

    def copied(self, *, name: str, dtype: str | None = None) -> "SequenceClassifier":
        model = copy.deepcopy(self.model).to(dtype=getattr(torch, dtype or self.dtype))
        return SequenceClassifier(model, self.codec.tokenizer, name=name)

    def trainable_scores(self, batch: Inputs, labels: Labels) -> torch.Tensor:
        """Return log-scores of the labels up to a constant per row, with a graph through the weights."""
        return self._label_scores(batch, labels, 0)[0]

    @property
    def _attribution_tokens(self) -> int:
        return _LARGE_PASS if self._is_small else super()._attribution_tokens

    def doubts(self, batch: Inputs, labels: Labels) -> list[str]:
        if not self._is_multi_label or len(labels.classes) > self.model.config.num_labels:
            return []
        return [
            f"{self.name} is a multi-label model, but the labels of the task compete: "
            f"scores are a softmax over them. Explain one class at a time: --labels 'not {labels.names[-1]},"
            f"{labels.names[-1]}'."
        ]

    def check(self, batch: Inputs, labels: Labels, *, prefix: int) -> list[str]:
        if not self._adds_mask:
            return []
        fault = self._fault(self._plain_scores(batch, labels), batch, labels)
        self._adds_mask, why = fault is None, fault or "scores differ"
        message = f"{self.name}: it does not take a ready-made mask ({why}), so it makes its own (slower)."
        return [] if fault is None else [message]

    def _plain_scores(self, batch: Inputs, labels: Labels) -> LogScores:
        """Score one row at a time, with the mask that every model takes."""
        with switched(partial(setattr, self, "_adds_mask"), False, self._adds_mask):
            return self.again(batch, labels)

    def _arguments(self, padded: PaddedBatch) -> dict[str, Any]:
        config = self.model.config
        segments = {"token_type_ids": padded.segments} if getattr(config, "type_vocab_size", 0) > 1 else {}
        # Given the usual mask, transformers looks whether it hides anything: the host would wait for the device.
        known = self._known_mask and config._attn_implementation in {"eager", "sdpa"}
        if known and padded.is_even:
            return segments
        mask = _additive(padded.mask, self.model.dtype) if known else padded.mask
        return {**segments, "attention_mask": mask}

    @property
    def _known_mask(self) -> bool:
        return self._adds_mask and not self.quantised

    def _label_scores(self, batch: Inputs, labels: Labels, prefix: int) -> tuple[torch.Tensor, int]:
        padded = self.padded(batch)
        with self._first_alone():
            return self._read({"input_ids": padded.ids}, padded, labels), len(batch.ids)

    @contextlib.contextmanager
    def _scores_at(
        self, points: torch.Tensor, item: Encoded, tokens: Ids, start: int, labels: Labels
    ) -> Iterator[torch.Tensor]:
        with self._first_alone(), super()._scores_at(points, item, tokens, start, labels) as scores:
            yield scores

    @contextlib.contextmanager
    def _first_alone(self) -> Iterator[None]:
        """Compute the last layer for the first token alone, where the head reads nothing else."""
        # Queries, outputs and the widest products are 10 of 12 parts of a layer: a seventh of a model of six layers.
        config = self.model.config
        if not (self._known_mask and config.model_type in _READS_FIRST and config._attn_implementation == "sdpa"):
            yield
            return
        attention = self.model.base_model.encoder.layer[-1].attention

        def added(_: Any, forward: Any) -> Any:
            return lambda states, layer_input: forward(states, layer_input[:, :1])

        with (
            replaced_forward([attention.self], lambda module, _: partial(_attend_from_first, module), inside=True),
            replaced_forward([attention.output], added, inside=True),
        ):
            yield

    def _differentiable_scores(
        self, embedded: torch.Tensor, batch: Inputs, padded: PaddedBatch, labels: Labels
    ) -> torch.Tensor:
        return self._read({"inputs_embeds": embedded}, padded, labels)

    def _read(self, arguments: dict[str, Any], padded: PaddedBatch, labels: Labels) -> torch.Tensor:
        arguments = {**arguments, **self._arguments(padded)}
        with no_cudnn_attention():
            if self._last:
                states = self.model.base_model(**arguments, use_cache=False).last_hidden_state.to(self.device)
                rows = torch.arange(len(states), device=self.device)
                logits = self.model.score(states[rows, self._scoring_position(padded)])
            else:
                logits = self.model(**arguments).logits
        logits, classes = logits.to(self.device), [index for (index,) in labels.ids]
        if logits.shape[1] in classes:  # `not X`: the log-odds of X are its logit
            logits = torch.nn.functional.pad(logits, (0, 1))
        if classes != list(range(logits.shape[1])):
            logits = logits.index_select(1, self._put(np.array(classes)))
        return logits.float()  # type: ignore[no-any-return]

    def _scoring_position(self, padded: PaddedBatch) -> torch.Tensor:
        if not self._last:
            return torch.zeros_like(padded.ids[:, 0])
        place = torch.arange(padded.ids.shape[1], device=padded.ids.device)
        read = padded.mask.bool()
        skipped = self.model.config.get_text_config().pad_token_id
        if skipped is not None:
            read = read & (padded.ids != skipped)
        return (place * read).argmax(dim=1)


def _attend_from_first(
    module: Any, states: torch.Tensor, attention_mask: torch.Tensor | None = None, **_: Any
) -> tuple[torch.Tensor, None]:
    """Return what the first token of each row reads, (rows, 1, width): attention as BERT's layers compute it."""
    shape = (len(states), -1, module.num_attention_heads, module.attention_head_size)
    projected = (module.query(states[:, :1]), module.key(states), module.value(states))
    query, key, value = (each.reshape(shape).transpose(1, 2) for each in projected)
    mask = None if attention_mask is None else attention_mask[:, :, :1]
    read = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=module.scaling)
    return read.transpose(1, 2).flatten(2), None


def _additive(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return a mask that is added to attention, (rows, 1, 1, tokens): 0 where a token is read, else very negative."""
    rows, longest = mask.shape
    room = -(-longest // _ALIGNED) * _ALIGNED
    wide = torch.zeros((rows, 1, 1, room), dtype=dtype, device=mask.device)
    return wide[..., :longest].masked_fill_(mask[:, None, None] == 0, torch.finfo(dtype).min)


def _beginning_alike(labels: Sequence[str], classes: Sequence[str]) -> list[int] | None:
    """Return the class that shares its beginning with each label (`neg`, `negative`); None if some label has none."""
    found = []
    for label in map(str.casefold, labels):
        names = enumerate(map(str.casefold, classes))
        same = [i for i, name in names if label and name and (label.startswith(name) or name.startswith(label))]
        found += same if len(same) == 1 else []
    return found if len(set(found)) == len(labels) else None


def _window(config: Any, tokenizer: Any) -> int:
    """Return the longest input: positions of the model, less those that RoBERTa leaves unused before the first."""
    positions = n_positions(config)
    if positions is None:
        return int(tokenizer.model_max_length)
    unused = (config.pad_token_id or 0) + 1 if config.model_type in {"roberta", "xlm-roberta", "camembert"} else 0
    return int(min(positions - unused, tokenizer.model_max_length))


def _float32_head(model: Any) -> Callable[[], None]:
    """Compute everything after the encoder in float32 (half-precision logits tie); the result restores the head."""
    # Half precision, widened and narrowed again, is the same.

    def widened(_: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(each.float() if torch.is_tensor(each) and each.is_floating_point() else each for each in inputs)

    restored = contextlib.ExitStack()
    for name, module in model.named_children() if model.dtype.itemsize < torch.float32.itemsize else ():
        if module is not model.base_model and name != model.base_model_prefix:
            dtype = next((parameter.dtype for parameter in module.parameters()), model.dtype)
            restored.callback(module.to, dtype)
            restored.callback(module.float().register_forward_pre_hook(widened).remove)
    return restored.close
