"""Loading through transformers: folders, hub ids, and models that are already in memory.

Weights are read from safetensors or GGUF only, and no code of a model folder is executed.
"""

import contextlib
import logging
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import huggingface_hub
import torch
import transformers
from transformers.models.auto.tokenization_auto import get_tokenizer_config

from ice_eval.errors import ConfigError, IceError, MissingExtraError, ModelError
from ice_eval.models._base import Model
from ice_eval.models._hf_causal import CausalLM
from ice_eval.models._hf_classifier import SequenceClassifier
from ice_eval.models._loading import Loading
from ice_eval.models._quantisers import quantisation, settle

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
NO_WEIGHTS = "meta"
"""The device of models that are all shapes and no numbers: their weights are neither fetched nor read."""


class NotOnHubError(Exception):
    """The hub has no such model, or cannot be reached."""


def wrap(model: Any, tokenizer: Any, *, name: str | None = None) -> Model:
    """A transformers model and its tokenizer as a `Model`; it keeps its device and dtype, in evaluation mode."""
    name = name or str(getattr(model.config, "_name_or_path", "") or type(model).__name__)
    if type(model).__name__.endswith("ForSequenceClassification"):
        return SequenceClassifier(model, tokenizer, name=name)
    if model.get_output_embeddings() is None:
        raise ConfigError(f"{type(model).__name__} is neither a language model nor a sequence classifier.")
    return CausalLM(model, tokenizer, name=name)


def from_folder(path: Path, *, name: str, how: Loading) -> Model:
    """A folder as `save_pretrained` writes it."""
    if not (path / "config.json").is_file():
        raise ConfigError(f"the folder {path} holds no config.json, so it is no transformers model.")
    try:
        return _load(str(path), name=name, how=how)
    except (OSError, ValueError, KeyError, RuntimeError, ImportError) as exc:
        raise refusal(f"the model in {path}", exc) from exc


def from_hub(ref: str, *, how: Loading) -> Model:
    """A model of the hub, `org/name` or `org/name@revision`.

    Raises:
        NotOnHubError: It is not to be had there.
    """
    path, _, revision = ref.partition("@")
    ask_hub(path, revision or "main")
    try:
        return _load(path, name=ref, how=how, revision=revision or "main")
    except OSError as exc:
        if _lacks_safetensors(exc):
            raise refusal(f"the model '{ref}'", exc) from exc
        raise NotOnHubError(first_line(exc)) from exc
    except (ValueError, KeyError, RuntimeError, ImportError) as exc:
        raise refusal(f"the model '{ref}'", exc) from exc


_TRUST = "If you trust it, load it with transformers yourself and give the pair (model, tokenizer) to `evaluate`."


def refusal(what: str, exc: Exception) -> IceError:
    """What a user is told of a model that could not be loaded."""
    if "trust_remote_code" in str(exc):
        return ConfigError(f"{what} needs code of its own to be run, which is never done. {_TRUST}")
    if _lacks_safetensors(exc):
        return ConfigError(
            f"{what} has no weights in safetensors; pickled ones (pytorch_model.bin) can run code and are never read. "
            f"{_TRUST} Its `save_pretrained` writes safetensors."
        )
    if isinstance(exc, ImportError):  # of weights that are stored quantised: transformers names what to install
        return MissingExtraError(f"{what} needs a library that is not installed: {first_line(exc)}")
    if "device_map" in str(exc) or "offload" in str(exc):
        return ConfigError(f"{what} cannot be placed as --device-map says: {first_line(exc)}")
    return ModelError(f"{what} could not be loaded: {first_line(exc)}")


def _lacks_safetensors(exc: Exception) -> bool:
    return "model.safetensors" in str(exc)


def _refuse_hub_code(config: object) -> None:
    """A configuration may name an implementation of attention on the hub: code that is fetched and run unasked."""
    for key, value in config.items() if isinstance(config, dict) else ():
        if key.endswith("_implementation") and "/" in str(value):
            raise ValueError(f"trust_remote_code: {key} is {value}")
        _refuse_hub_code(value)


def ask_hub(path: str, revision: str) -> None:
    """One quick question: without a network, a download would be tried six times over before it gives up."""
    try:
        if isinstance(huggingface_hub.try_to_load_from_cache(path, "config.json", revision=revision), str):
            return
        huggingface_hub.HfApi().model_info(path, revision=revision, timeout=10)
    except Exception as exc:  # bad names, missing or gated repositories, no network: types of three libraries
        raise NotOnHubError(first_line(exc)) from exc


def _load(path: str, *, name: str, how: Loading, revision: str = "main") -> Model:
    with quiet():
        source: dict[str, Any] = {"revision": revision, "trust_remote_code": False}
        config = config_of(path, source)
        auto: Any = _auto_class(config.architectures or [], name)
        tokenizer = _tokenizer(path, **source)
        if how.device == NO_WEIGHTS:
            with torch.inference_mode(False), torch.device(NO_WEIGHTS):
                return wrap(auto.from_config(config), tokenizer, name=name)
        model = with_weights(auto, config, path, name=name, how=how, source=source)
    loaded = wrap(model, tokenizer, name=name)
    loaded.load_in = how.load_in
    return loaded


def config_of(path: str, source: Mapping[str, Any]) -> Any:
    """The configuration of a model in a folder or on the hub; one that names code to be run is refused."""
    _refuse_hub_code(transformers.PreTrainedConfig.get_config_dict(path, **source)[0])
    return transformers.AutoConfig.from_pretrained(path, **source)


def with_weights(auto: Any, config: Any, path: str, *, name: str, how: Loading, source: Mapping[str, Any]) -> Any:
    """A model of transformers where and in how many bits it is asked for.

    Args:
        auto: The class that loads it.
        config: Its configuration.
        path: A folder, or its name on the hub.
        name: What messages call it.
        how: Where its weights go, and how they are stored.
        source: What else `from_pretrained` takes, as the revision.
    """
    place, placed = device_named(how.device), _placed(how)
    dtype, stored = dtype_named(how.dtype, place), getattr(config, "quantization_config", None) is not None
    with torch.inference_mode(False):  # weights that are made inside have no gradients ever after
        if how.load_in is not None:
            if stored:
                raise ConfigError(f"the weights of '{name}' are stored quantised already; leave out --load-in.")
            placed["quantization_config"] = quantisation(how.load_in, kept=_heads(auto, config), dtype=dtype)
        if how.load_in is not None or stored:  # they cannot be moved afterwards, so they go where they belong at once
            placed.setdefault("device_map", {"": place})
        model = _all_weights(auto, path, name=name, dtype=dtype, **placed, **source)
        settle(model)
        return model if "device_map" in placed else model.to(device=place)


def _all_weights(auto: Any, path: str, *, name: str, **arguments: Any) -> Any:
    """A model that is there in full; what it wrote to the disk goes when it does, or when it fails to load."""
    with contextlib.ExitStack() as written:
        if "offload_folder" in arguments:
            written.callback(shutil.rmtree, arguments["offload_folder"], ignore_errors=True)
        model, report = auto.from_pretrained(path, use_safetensors=True, output_loading_info=True, **arguments)
        if report["missing_keys"]:
            missing = sorted(report["missing_keys"])
            raise ConfigError(
                f"the weights of '{name}' lack {len(missing)} parts of a {type(model).__name__}, {missing[0]} among "
                "them: they would be random, so this is not the trained model."
            )
        weakref.finalize(model, written.pop_all().close)
    return model.requires_grad_(False)


def _placed(how: Loading) -> dict[str, Any]:
    """What `from_pretrained` is told of places, if a device map is asked for."""
    asked = how.map
    if asked is None:
        return {}
    if isinstance(asked, dict):
        for each in set(asked.values()) - {"disk"}:
            device_named(f"cuda:{each}" if isinstance(each, int) else each)
    bounds = {} if how.most is None else {"max_memory": how.most}
    # For the few models whose weights are not stored as they are used; others are read from their own files.
    spare = Path(tempfile.gettempdir()) / f"ice-offload-{uuid.uuid4().hex}"
    return {"device_map": asked, "offload_folder": str(spare), **bounds}


def _heads(auto: Any, config: Any) -> list[str]:
    """Names of what stands on top of the base model."""
    with torch.device(NO_WEIGHTS):
        model = auto.from_config(config)
    return [name for name, module in model.named_children() if module is not model.base_model]


def _tokenizer(path: str, **source: Any) -> Any:
    """A tokenizer, with what its configuration says of BOS: transformers drops that where there is a tokenizer.json."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(path, **source)
    said = get_tokenizer_config(path, **source).get("add_bos_token")
    if said is not None:
        tokenizer.init_kwargs["add_bos_token"] = bool(said)
    return tokenizer


def _auto_class(architectures: list[str], name: str) -> Any:
    """How a model is loaded: by what it says it is, since others would get a random head."""
    if any(each.endswith("ForSequenceClassification") for each in architectures):
        return transformers.AutoModelForSequenceClassification
    if any(each.endswith(("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")) for each in architectures):
        return transformers.AutoModelForCausalLM
    raise ConfigError(
        f"'{name}' is a {' or '.join(architectures) or 'model of no stated kind'}; a language model (…ForCausalLM) "
        "or a sequence classifier (…ForSequenceClassification) is needed."
    )


def device_named(asked: str) -> str:
    if asked != "auto":
        try:
            torch.zeros(1, device=asked)
        except (RuntimeError, AssertionError) as exc:
            raise ConfigError(
                f"the device '{asked}' cannot be used here ({first_line(exc)}); use --device auto or cpu."
            ) from exc
        return asked
    return "cuda" if torch.cuda.is_available() else "cpu"


def dtype_named(asked: str, device: str) -> torch.dtype:
    if asked == "auto":
        return torch.bfloat16 if device.startswith("cuda") else torch.float32
    if asked not in _DTYPES:
        raise ConfigError(f"no dtype '{asked}'; use auto, {', '.join(_DTYPES)}.")
    return _DTYPES[asked]


def first_line(exc: Exception) -> str:
    return (str(exc).strip() or type(exc).__name__).partition("\n")[0][:300]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No progress bars and chatter of transformers while loading; its errors still come through."""
    chatter: Any = transformers.utils.logging
    level, bars = chatter.get_verbosity(), chatter.is_progress_bar_enabled()
    spreading = logging.getLogger("accelerate")
    before = spreading.level
    chatter.set_verbosity_error()
    chatter.disable_progress_bar()
    spreading.setLevel(logging.ERROR)
    try:
        yield
    finally:
        spreading.setLevel(before)
        chatter.set_verbosity(level)
        if bars:
            chatter.enable_progress_bar()
