"""Encoder-decoders of transformers that translate: NLLB-200, Marian, M2M-100 and their kin."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers

from ice_eval.errors import ConfigError, MissingExtraError, ModelError
from ice_eval.models._hf_load import NotOnHubError, ask_hub, config_of, first_line, quiet, refusal, with_weights
from ice_eval.models._loading import Loading
from ice_eval.models._memory import translated_memory_errors
from ice_eval.models._placement import entrance


class Translator:
    """Translates texts into one language, always the same way: by beams or greedily, never by a draw."""

    def __init__(self, model: Any, tokenizer: Any, *, source: str | None, target: str, beams: int) -> None:
        """Prepare a model that is loaded.

        Args:
            model: An encoder-decoder.
            tokenizer: Its tokenizer.
            source: Language of the texts, as the model writes it; None for models of one pair of languages.
            target: Language to translate into.
            beams: How many beginnings are kept while a translation is written; 1 is greedy.

        Raises:
            ConfigError: The model does not know a language.
        """
        self._model, self._tokenizer, self._beams = model.train(False), tokenizer, beams
        vocabulary = tokenizer.get_vocab()
        # NLLB writes fra_Latn, M2M-100 __fr__; Marian reads >>fra<< before the text, or knows one pair alone.
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
        """The translation of each text; what is longer than the model reads is refused, not cut.

        Raises:
            ModelError: A text is too long.
            ConfigError: A device map put weights on disk that are not found there.
        """
        given = self._tokenizer([self._before + text for text in texts], return_tensors="pt", padding=True)
        longest, room = int(given["attention_mask"].sum(dim=1).max()), self._room()
        if longest > room:
            raise ModelError(
                f"a text has {longest} tokens, and the model reads {room}; shorten it, or cut it in sentences."
            )
        own = {"forced_bos_token_id": self._begin} if self._begin is not None else {}
        place = entrance(self._model)
        with translated_memory_errors(), _told_of_lost_weights():
            written = self._model.generate(
                input_ids=given["input_ids"].to(place),
                attention_mask=given["attention_mask"].to(place),
                num_beams=self._beams,
                do_sample=False,
                max_new_tokens=min(2 * longest + 20, room - 1),
                **own,
            )
        found: list[str] = self._tokenizer.batch_decode(written, skip_special_tokens=True)
        return [text.strip() for text in found]

    def _room(self) -> int:
        return int(getattr(self._model.config, "max_position_embeddings", None) or 512)


@contextlib.contextmanager
def _told_of_lost_weights() -> Iterator[None]:
    """Weights that modules share, or that no file holds, are not found again where a map put one of them on disk."""
    try:
        yield
    except KeyError as exc:
        raise ConfigError(
            f"the model cannot be placed as --device-map says: {exc.args[0]} is not to be found on disk; leave more of "
            "it in memory."
        ) from exc


def load_translator(ref: str, *, source: str | None, target: str, beams: int, how: Loading) -> Translator:
    """A folder, or a model of the hub, `org/name` or `org/name@revision`.

    Raises:
        ConfigError: There is no such model, or it does not translate between these languages.
        MissingExtraError: Its tokenizer or its quantisation needs a package that is not installed.
        ModelError: It is there but failed to load.
    """
    path, _, revision = (ref, "", "") if Path(ref).is_dir() else ref.partition("@")
    try:
        if not Path(path).is_dir():
            ask_hub(path, revision or "main")
        model, tokenizer = _loaded(path, ref, revision or "main", how)
    except NotOnHubError as exc:
        raise ConfigError(f"no model '{ref}': it is no folder, and the hub did not give it ({exc}).") from exc
    except (OSError, ValueError, KeyError, RuntimeError, ImportError) as exc:
        raise refusal(f"the model '{ref}'", exc) from exc
    return Translator(model, tokenizer, source=source, target=target, beams=beams)


def _loaded(path: str, ref: str, revision: str, how: Loading) -> tuple[Any, Any]:
    known: dict[str, Any] = {"revision": revision, "trust_remote_code": False}
    with quiet():
        config = config_of(path, known)
        if not config.is_encoder_decoder:
            raise ConfigError(
                f"'{path}' is a {config.model_type}; an encoder-decoder that translates is needed, as NLLB."
            )
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(path, **known)
        except ImportError as exc:
            raise MissingExtraError(
                f"the tokenizer of '{ref}' needs a package that is not there ({first_line(exc)}). Install it: "
                "pip install 'ice-eval[nllb]'"
            ) from exc
        return with_weights(
            transformers.AutoModelForSeq2SeqLM, config, path, name=ref, how=how, source=known
        ), tokenizer
