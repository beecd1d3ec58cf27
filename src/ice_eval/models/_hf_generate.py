"""What a causal language model writes after a prompt: the likeliest token at every step, so the same every time."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import (
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    StoppingCriteria,
    StoppingCriteriaList,
)

from ice_eval.errors import OutOfMemoryError
from ice_eval.models._gradients import no_grad
from ice_eval.models._hf_codec import HFCodec
from ice_eval.models._memory import MemoryRetries, translated_memory_errors
from ice_eval.models._records import Generated
from ice_eval.records import Ids

_TOKENS = 8192
"""Tokens per batch, answers included; their keys and values are all that is held."""


class Continuation:
    """Goes on with rows of ids, by the likeliest token at every step.

    Rows are padded on the left, so that all answers begin at the same place. What a row's answer is does not depend on
    the others of its batch, but for ties within rounding.
    """

    def __init__(self, model: Any, codec: HFCodec, *, device: str) -> None:
        self._model, self._device = model, device
        ends = {codec.special.end, *_listed(model.generation_config.eos_token_id)} - {None}
        self.ends = sorted(int(i) for i in ends if i is not None)
        """Ids that end a text."""
        self.pad = codec.special.pad if codec.special.pad is not None else (self.ends or [0])[0]
        """What stands behind the end of an answer that others of its batch outlast."""

    def after(
        self,
        rows: Sequence[Ids],
        max_tokens: int,
        *,
        until: Sequence[StoppingCriteria] = (),
        choose: Sequence[LogitsProcessor] = (),
    ) -> NDArray[np.int64]:
        """(rows, tokens): what is written after each row, its end included.

        Args:
            rows: Ids of each.
            max_tokens: Longest answer.
            until: What ends answers beside the model itself.
            choose: What changes the scores of tokens before the best is taken.
        """
        width = max(map(len, rows))
        ids = np.full((len(rows), width), self.pad, dtype=np.int64)
        mask = np.zeros_like(ids)
        for index, row in enumerate(rows):
            ids[index, width - len(row) :], mask[index, width - len(row) :] = row, 1
        # A model's own settings may ask for samples, or for a penalty on repeated words: all that matters is said here.
        settings = GenerationConfig(  # type: ignore[no-untyped-call]
            max_new_tokens=max_tokens, do_sample=False, num_beams=1, repetition_penalty=1.0, no_repeat_ngram_size=0,
            eos_token_id=self.ends or None, pad_token_id=self.pad,
        )  # fmt: skip
        with no_grad(self._model):
            written = self._model.generate(
                torch.from_numpy(ids).to(self._device),
                attention_mask=torch.from_numpy(mask).to(self._device),
                generation_config=settings,
                stopping_criteria=StoppingCriteriaList(until),
                logits_processor=LogitsProcessorList(choose),
            )
        found: NDArray[np.int64] = written[:, width:].cpu().numpy()
        return found


class Writer:
    """Continues prompts of a model."""

    def __init__(self, model: Any, codec: HFCodec, *, device: str, retries: MemoryRetries) -> None:
        self._codec, self._continuation = codec, Continuation(model, codec, device=device)
        self._retries = retries

    def write(
        self, prompts: Sequence[str], *, turns: Sequence[tuple[str, str]] | None, max_tokens: int, stop: str | None
    ) -> list[Generated]:
        """See `Model.generate`."""
        before, after = ("", "") if turns is None else self._codec.chat_frame(turns)
        framed = turns is not None
        rows = [self._codec.tokenize(before + prompt + after, framed=framed).ids for prompt in prompts]
        found = {i: Generated(None, 0) for i, row in enumerate(rows) if len(row) + max_tokens > self._codec.max_tokens}
        fitting = [i for i in range(len(rows)) if i not in found]
        for batch in batches(fitting, [len(row) + max_tokens for row in rows], budget=_TOKENS):
            found |= zip(batch, self._written([rows[i] for i in batch], max_tokens, stop), strict=True)
        return [found[i] for i in range(len(rows))]

    def _written(self, rows: Sequence[Ids], max_tokens: int, stop: str | None) -> list[Generated]:
        """Answers of one batch, or of each half where memory does not reach."""
        try:
            with translated_memory_errors():
                return self._continued(rows, max_tokens, stop)
        except OutOfMemoryError:
            if len(rows) == 1:
                raise
        self._retries.count += 1
        half = len(rows) // 2
        return self._written(rows[:half], max_tokens, stop) + self._written(rows[half:], max_tokens, stop)

    def _continued(self, rows: Sequence[Ids], max_tokens: int, stop: str | None) -> list[Generated]:
        until = [_Until(self._codec, stop, max(map(len, rows)))] if stop is not None else []
        answers = [self._ended(row) for row in self._continuation.after(rows, max_tokens, until=until)]
        texts = [_before(text, stop) for text in self._codec.decode(answers)]
        costs = [len(row) + len(answer) for row, answer in zip(rows, answers, strict=True)]
        return [Generated(text, cost) for text, cost in zip(texts, costs, strict=True)]

    def _ended(self, answer: Ids) -> Ids:
        """Without the end of the text, and the padding after it."""
        ends = np.flatnonzero(np.isin(answer, [*self._continuation.ends, self._continuation.pad]))
        return answer[: ends[0]] if ends.size else answer


class _Until(StoppingCriteria):
    """Ends a row as soon as its answer holds some characters."""

    def __init__(self, codec: HFCodec, stop: str, start: int) -> None:
        self._codec, self._stop, self._start = codec, stop, start

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        texts = self._codec.decode(list(input_ids[:, self._start :].cpu().numpy()))
        return torch.tensor([self._stop in text.lstrip() for text in texts], device=input_ids.device)


def _before(text: str, stop: str | None) -> str:
    return text.strip() if stop is None else text.lstrip().partition(stop)[0].strip()


def _listed(ids: int | Sequence[int] | None) -> Sequence[int]:
    return [] if ids is None else [ids] if isinstance(ids, int) else ids


def batches(rows: Sequence[int], lengths: Sequence[int], *, budget: int) -> Iterator[list[int]]:
    """Consecutive rows whose padded batch stays within a budget of tokens, one at least."""
    batch: list[int] = []
    for row in rows:
        if batch and max(lengths[i] for i in (*batch, row)) * (len(batch) + 1) > budget:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch
