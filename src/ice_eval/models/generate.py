"""Text that transformers models write: completions of prompts, turns of a chat, translations."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray

from ice_eval.errors import ConfigError, ModelError
from ice_eval.models.base import Generated, Turns
from ice_eval.models.codec import HFCodec
from ice_eval.models.devices import MemoryRetries, in_batches, input_device, translated_memory_errors
from ice_eval.models.gradients import no_grad
from ice_eval.records import Ids
from ice_eval.seeding import rng_for
from ice_eval.servers import Completion, Request, TokenUsage

_TOKENS = 8192  # per batch of completions, answers included; their keys and values are all that is held
_CPU_CHAT_TOKENS, _GPU_CHAT_TOKENS = 8192, 65_536  # per batch of chats, the longest answers included


class Generator:
    """Continues texts of a causal language model, by the likeliest token at every step or by given random numbers."""

    # Rows are padded on the left, so that all answers begin at the same position. An answer does not depend on the
    # other rows of its batch, except for ties within rounding.

    def __init__(self, model: Any, codec: HFCodec, *, device: str) -> None:
        self._model, self._codec, self._device = model, codec, device
        ends = model.generation_config.eos_token_id
        listed = ends if isinstance(ends, list | tuple) else [ends]
        self._ends = sorted(int(each) for each in {codec.special.end, *listed} if each is not None)
        self._pad = codec.special.pad if codec.special.pad is not None else (self._ends or [0])[0]

    def complete(
        self, prompts: Sequence[str], turns: Turns | None, max_tokens: int, stop: str | None, retries: MemoryRetries
    ) -> list[Generated]:
        """Continue prompts; see `Model.generate`."""
        before, after = ("", "") if turns is None else self._codec.chat_frame(turns)
        rows = [self._codec.tokenize(before + each + after, framed=turns is not None).ids for each in prompts]
        lengths = [len(row) + max_tokens for row in rows]
        fitting = [i for i, length in enumerate(lengths) if length <= self._codec.max_tokens]

        def compute(batch: slice) -> list[Generated]:
            return self._completed([rows[i] for i in fitting[batch]], max_tokens, stop)

        parts = in_batches(compute, [lengths[i] for i in fitting], _TOKENS, retries)
        found = dict(zip(fitting, chain.from_iterable(parts), strict=True))
        return [found.get(i, Generated(None, 0)) for i in range(len(rows))]

    def _completed(self, rows: Sequence[Ids], max_tokens: int, stop: str | None) -> list[Generated]:
        def ends(written: torch.Tensor) -> list[bool]:
            texts = self._codec.decode(list(written.cpu().numpy()))
            return [stop is not None and stop in text.lstrip() for text in texts]

        written = self._continued(rows, max_tokens, ends=None if stop is None else ends)
        answers = [_cut_before(answer, [*self._ends, self._pad]) for answer in written]
        texts = self._codec.decode(answers)
        if stop is not None:
            texts = [text.lstrip().partition(stop)[0] for text in texts]
        costs = [len(row) + len(answer) for row, answer in zip(rows, answers, strict=True)]
        return [Generated(text.strip(), cost) for text, cost in zip(texts, costs, strict=True)]

    def reply(self, chats: Sequence[Request]) -> Iterator[tuple[int, Completion]]:
        """Continue chats, in batches of similar length; see `Model.converse`."""
        rows = [self._codec.tokenize(self._codec.chat_text(chat.messages), framed=True).ids for chat in chats]
        room = [self._codec.max_tokens - len(row) for row in rows]
        limits = [min(chat.max_tokens, tokens) for chat, tokens in zip(chats, room, strict=True)]
        for i in (i for i, limit in enumerate(limits) if limit < 1):
            error = f"the chat has {len(rows[i])} tokens, and the model takes {self._codec.max_tokens} in all"
            yield i, Completion(status="too_long", error=error)
        lengths = [len(row) + limit for row, limit in zip(rows, limits, strict=True)]
        longest_first = sorted((i for i in range(len(rows)) if limits[i] >= 1), key=lambda i: -lengths[i])

        def compute(batch: slice) -> list[Completion]:
            own = longest_first[batch]
            return self._replies([chats[i] for i in own], [rows[i] for i in own], [limits[i] for i in own])

        budget = _GPU_CHAT_TOKENS if self._device.startswith("cuda") else _CPU_CHAT_TOKENS
        parts = in_batches(compute, [lengths[i] for i in longest_first], budget, MemoryRetries())
        yield from zip(longest_first, chain.from_iterable(parts), strict=True)

    def _replies(self, chats: Sequence[Request], rows: Sequence[Ids], limits: Sequence[int]) -> list[Completion]:
        def ends(written: torch.Tensor) -> list[bool]:
            return [written.shape[1] >= limit for limit in limits]

        samples = any(chat.temperature for chat in chats)
        choose = [_Sampling(chats, max(map(len, rows)), max(limits), self._device)] if samples else []
        written = self._continued(rows, max(limits), ends=ends if len(set(limits)) > 1 else None, choose=choose)
        return [self._reply(answer[:limit], len(row)) for answer, row, limit in zip(written, rows, limits, strict=True)]

    def _reply(self, answer: Ids, n_read: int) -> Completion:
        own = _cut_before(answer, self._ends)
        ended = len(own) < len(answer)
        text = self._codec.tokenizer.decode(own.tolist(), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return Completion(
            status="truncated" if not ended else "ok" if text.strip() else "empty",
            text=text,
            finish_reason="stop" if ended else "length",
            usage=TokenUsage(n_read, len(own) + ended),
        )

    def _continued(
        self,
        rows: Sequence[Ids],
        max_tokens: int,
        *,
        ends: Callable[[torch.Tensor], list[bool]] | None = None,
        choose: Sequence[transformers.LogitsProcessor] = (),
    ) -> NDArray[np.int64]:
        """Return the ids written after each row, with the end token and padding: (rows, tokens)."""
        width = max(map(len, rows))
        ids = np.full((len(rows), width), self._pad, dtype=np.int64)
        mask = np.zeros_like(ids)
        for index, row in enumerate(rows):
            ids[index, width - len(row) :], mask[index, width - len(row) :] = row, 1
        # A model's own settings may enable sampling, or a penalty on repeated words: all that matters is set here.
        settings = transformers.GenerationConfig(  # type: ignore[no-untyped-call]
            max_new_tokens=max_tokens, do_sample=False, num_beams=1, repetition_penalty=1.0, no_repeat_ngram_size=0,
            eos_token_id=self._ends or None, pad_token_id=self._pad,
        )  # fmt: skip
        with no_grad(self._model):
            written = self._model.generate(
                torch.from_numpy(ids).to(self._device),
                attention_mask=torch.from_numpy(mask).to(self._device),
                generation_config=settings,
                stopping_criteria=transformers.StoppingCriteriaList([] if ends is None else [_EndRows(ends, width)]),
                logits_processor=transformers.LogitsProcessorList(choose),
            )
        return written[:, width:].cpu().numpy()  # type: ignore[no-any-return]


def _cut_before(answer: Ids, ends: Sequence[int]) -> Ids:
    found = np.flatnonzero(np.isin(answer, ends))
    return answer[: found[0]] if found.size else answer


class _EndRows(transformers.StoppingCriteria):
    """Ends the rows for which `ends`, called with the ids written so far, returns True."""

    def __init__(self, ends: Callable[[torch.Tensor], list[bool]], start: int) -> None:
        self._ends, self._start = ends, start

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        return torch.tensor(self._ends(input_ids[:, self._start :]), device=input_ids.device)


class _Sampling(transformers.LogitsProcessor):
    """Restricts a sampling row to one token: the one whose share of [0, 1) contains the number of this step."""

    # shares   |  a  |     b     |c|   d   |
    #                      ^ 0.48            -> b
    # Each row has its own numbers, so that its samples do not depend on the other rows of its batch.

    def __init__(self, chats: Sequence[Request], start: int, n_steps: int, device: str) -> None:
        sampled = [(index, chat) for index, chat in enumerate(chats) if chat.temperature]
        numbers = [rng_for(0, chat.hash, chat.repeat, "tokens").random(n_steps) for _, chat in sampled]
        self._rows, self._start = torch.tensor([index for index, _ in sampled], device=device), start
        self._numbers = torch.from_numpy(np.stack(numbers)).to(device)
        temperatures = [[chat.temperature] for _, chat in sampled]
        self._temperatures = torch.tensor(temperatures, dtype=torch.float64, device=device)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        step = input_ids.shape[1] - self._start
        shares = torch.softmax(scores[self._rows].double() / self._temperatures, dim=-1).cumsum(dim=-1)
        # Rounding leaves the last sum slightly off 1.
        reached = self._numbers[:, step : step + 1] * shares[:, -1:]
        drawn = torch.searchsorted(shares, reached, right=True).clamp(max=scores.shape[1] - 1)
        return scores.index_copy(0, self._rows, torch.full_like(scores[self._rows], -torch.inf).scatter(1, drawn, 0.0))


class Translator:
    """Translates texts by an encoder-decoder (NLLB-200, Marian, M2M-100): by beams or greedily, never by sampling."""

    def __init__(self, model: Any, tokenizer: Any, *, source: str | None, target: str, beams: int) -> None:
        """Prepare a model to translate from `source` (None for models of one pair of languages) into `target`."""
        self._model, self._tokenizer, self._beams = model.train(False), tokenizer, beams
        vocabulary = tokenizer.get_vocab()
        # NLLB writes fra_Latn, M2M-100 __fr__; Marian reads >>fra<< before the text, or has one pair alone.
        forms = (target if "_" in target else "", f"__{target}__")  # "fr" alone may be a piece of any word
        spelled = next((form for form in forms if form in vocabulary), None)
        self._begin = None if spelled is None else vocabulary[spelled]
        self._before = f">>{target}<< " if f">>{target}<<" in vocabulary else ""
        if self._begin is None and not self._before and model.config.model_type != "marian":
            raise ConfigError(
                f"the model does not know the language '{target}'; NLLB writes it as fra_Latn or hin_Deva."
            )
        if hasattr(tokenizer, "src_lang") and source is not None:
            if source not in vocabulary and f"__{source}__" not in vocabulary:
                raise ConfigError(f"the model does not know the language '{source}' of --from; NLLB writes eng_Latn.")
            tokenizer.src_lang = source

    @torch.inference_mode()
    def translate(self, texts: Sequence[str]) -> list[str]:
        """Translate each text; raise an error for one that is longer than the model reads."""
        given = self._tokenizer([self._before + text for text in texts], return_tensors="pt", padding=True)
        longest = int(given["attention_mask"].sum(dim=1).max())
        room = int(getattr(self._model.config, "max_position_embeddings", None) or 512)
        if longest > room:
            raise ModelError(
                f"a text has {longest} tokens, and the model reads {room}; shorten it, or cut it in sentences."
            )
        own = {"forced_bos_token_id": self._begin} if self._begin is not None else {}
        device = input_device(self._model)
        inputs = {name: given[name].to(device) for name in ("input_ids", "attention_mask")}
        settings = {"num_beams": self._beams, "do_sample": False, "max_new_tokens": min(2 * longest + 20, room - 1)}
        try:
            with translated_memory_errors():
                written = self._model.generate(**inputs, **settings, **own)
        except KeyError as exc:  # a map put weights on disk that are shared, or in no file
            lost = f"{exc.args[0]} is not to be found on disk; leave more of it in memory."
            raise ConfigError(f"the model cannot be placed as --device-map says: {lost}") from exc
        return [text.strip() for text in self._tokenizer.batch_decode(written, skip_special_tokens=True)]
