"""What a causal language model answers in a chat: the likeliest token at every step, or one drawn by a given number."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import LogitsProcessor, StoppingCriteria

from ice_eval.errors import OutOfMemoryError
from ice_eval.models._hf_codec import HFCodec
from ice_eval.models._hf_generate import Continuation, batches
from ice_eval.models._memory import translated_memory_errors
from ice_eval.models._records import Conversation, Reply
from ice_eval.records import Ids

_CPU_TOKENS, _GPU_TOKENS = 8192, 65_536
"""Tokens per batch, the longest answers included; their keys and values are all that is held."""


class ChatWriter:
    """Goes on with chats, in batches of chats of similar length."""

    def __init__(self, model: Any, codec: HFCodec, *, device: str) -> None:
        self._codec, self._device = codec, device
        self._continuation = Continuation(model, codec, device=device)
        self._budget = _GPU_TOKENS if device.startswith("cuda") else _CPU_TOKENS

    def write(self, chats: Sequence[Conversation]) -> Iterator[tuple[int, Reply]]:
        """See `Model.converse`. A batch that memory does not reach for is halved."""
        rows = [self._codec.tokenize(self._codec.chat_text(chat.turns), framed=True).ids for chat in chats]
        limits = [
            min(chat.max_tokens, self._codec.max_tokens - len(row)) for chat, row in zip(chats, rows, strict=True)
        ]
        yield from ((i, Reply(None, len(rows[i]))) for i, limit in enumerate(limits) if limit < 1)
        lengths = [len(row) + limit for row, limit in zip(rows, limits, strict=True)]
        longest_first = sorted((i for i in range(len(rows)) if limits[i] >= 1), key=lambda i: -lengths[i])
        waiting = list(batches(longest_first, lengths, budget=self._budget))[::-1]
        while waiting:
            batch = waiting.pop()
            try:
                replies = self._replies([chats[i] for i in batch], [rows[i] for i in batch], [limits[i] for i in batch])
            except OutOfMemoryError:
                if len(batch) == 1:
                    raise
                half = (len(batch) + 1) // 2
                waiting += [batch[half:], batch[:half]]
            else:
                yield from zip(batch, replies, strict=True)

    def _replies(self, chats: Sequence[Conversation], rows: Sequence[Ids], limits: Sequence[int]) -> list[Reply]:
        start = max(map(len, rows))
        until = [_Limits(limits, start)] if len(set(limits)) > 1 else []
        choose = (
            [_Draws(chats, start, max(limits), self._device)] if any(chat.temperature > 0 for chat in chats) else []
        )
        with translated_memory_errors():
            written = self._continuation.after(rows, max(limits), until=until, choose=choose)
        return [self._reply(answer[:limit], len(row)) for answer, row, limit in zip(written, rows, limits, strict=True)]

    def _reply(self, answer: Ids, n_read: int) -> Reply:
        ends = np.flatnonzero(np.isin(answer, self._continuation.ends))
        own = answer[: ends[0]] if ends.size else answer
        text = self._codec.tokenizer.decode(own.tolist(), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return Reply(text, n_read, len(own) + bool(ends.size), ended=bool(ends.size))


class _Limits(StoppingCriteria):
    """Ends every row at its own limit."""

    def __init__(self, limits: Sequence[int], start: int) -> None:
        self._limits, self._start = limits, start

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        n_written = input_ids.shape[1] - self._start
        return torch.tensor([n_written >= limit for limit in self._limits], device=input_ids.device)


class _Draws(LogitsProcessor):
    """Leaves one token to the rows that draw: the one on whose share of [0, 1) the number of this step falls.

    ```text
    shares   |  a  |     b     |c|   d   |
                          ^ 0.48            -> b
    ```
    A row's numbers are its own, so that its draws do not depend on who is drawn for beside it.
    """

    def __init__(self, chats: Sequence[Conversation], start: int, n_steps: int, device: str) -> None:
        drawing = [index for index, chat in enumerate(chats) if chat.temperature > 0]
        self._rows, self._start = torch.tensor(drawing, device=device), start
        self._numbers = torch.from_numpy(np.stack([_numbers(chats[i], n_steps) for i in drawing])).to(device)
        self._temperatures = torch.tensor([[chats[i].temperature] for i in drawing], dtype=torch.float64, device=device)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        step = input_ids.shape[1] - self._start
        shares = torch.softmax(scores[self._rows].double() / self._temperatures, dim=-1).cumsum(dim=-1)
        # Rounding leaves the last sum a little beside 1.
        reached = self._numbers[:, step : step + 1] * shares[:, -1:]
        drawn = torch.searchsorted(shares, reached, right=True).clamp(max=scores.shape[1] - 1)
        return scores.index_copy(0, self._rows, torch.full_like(scores[self._rows], -torch.inf).scatter(1, drawn, 0.0))


def _numbers(chat: Conversation, n_steps: int) -> NDArray[np.float64]:
    assert chat.uniforms is not None, "a temperature needs numbers to draw by"
    return chat.uniforms(n_steps)
