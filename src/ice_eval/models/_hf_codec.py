"""The tokenizers of transformers as a `Codec`."""

from collections.abc import Sequence
from typing import Any

import jinja2
import numpy as np

from ice_eval.encoding import Tokens
from ice_eval.errors import ConfigError
from ice_eval.records import Ids, SpecialIds

_QUESTION = "\ue000question\ue000"
"""Stands for the last user turn while its frame is looked for; no template and no text holds it."""


class HFCodec:
    """A fast tokenizer, with special tokens as it adds them itself."""

    def __init__(self, tokenizer: Any, *, reads_pairs: bool, max_tokens: int) -> None:
        if not tokenizer.is_fast:
            raise ConfigError(f"{type(tokenizer).__name__} reports no character offsets; a fast tokenizer is needed.")
        self.tokenizer = tokenizer
        self.reads_pairs = reads_pairs
        self.max_tokens = max_tokens
        self.special = SpecialIds(
            unk=tokenizer.unk_token_id,
            pad=tokenizer.pad_token_id,
            mask=tokenizer.mask_token_id,
            end=tokenizer.eos_token_id if tokenizer.eos_token_id is not None else tokenizer.sep_token_id,
            every=frozenset(tokenizer.all_special_ids),
        )

    def tokenize(self, text: str, pair: str | None = None, *, framed: bool = False) -> Tokens:
        found = self.tokenizer(
            text,
            pair,
            add_special_tokens=not framed,
            split_special_tokens=not framed,
            return_offsets_mapping=True,
            truncation=False,
            verbose=False,
        )
        offsets = np.array(found["offset_mapping"], dtype=np.int64).reshape(-1, 2)
        sequence = np.array([-1 if s is None else s for s in found.sequence_ids(0)], dtype=np.int64)
        ids = np.array(found["input_ids"], dtype=np.int64)
        segments = np.array(found.get("token_type_ids", np.zeros(len(ids))), dtype=np.int64)
        stop = len(ids)
        # A language model answers after its last token: an end-of-text token there would end the text instead.
        while not self.reads_pairs and stop and sequence[stop - 1] < 0:
            stop -= 1
        return Tokens(ids[:stop], segments[:stop], sequence[:stop], offsets[:stop, 0], offsets[:stop, 1])

    def writes_special(self, text: str) -> bool:
        return any(token in text for token in self.tokenizer.all_special_tokens)

    def chat_frame(self, turns: Sequence[tuple[str, str]]) -> tuple[str, str]:
        if self.reads_pairs or not self.tokenizer.chat_template:
            raise ConfigError("this model has no chat template; leave out --chat.")
        messages = [{"role": role, "content": content} for role, content in (*turns, ("user", _QUESTION))]
        try:
            text = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        except jinja2.TemplateError as exc:
            raise ConfigError(f"the chat template refuses these turns: {exc}.") from exc
        if text.count(_QUESTION) != 1:
            raise ConfigError("the chat template does not show the user's turn just once, so it cannot be explained.")
        before, _, after = text.partition(_QUESTION)
        return before, after

    def decode(self, rows: Sequence[Ids]) -> list[str]:
        return [
            self.tokenizer.decode(row.tolist(), skip_special_tokens=False, clean_up_tokenization_spaces=False)
            for row in rows
        ]
