"""Models of transformers from folders, GGUF files, the hub and memory; only safetensors or GGUF, and no code is run."""

import contextlib
import copy
import hashlib
import json
import logging
import re
import shutil
import sys
import tempfile
import uuid
import weakref
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import huggingface_hub
import torch
import transformers
from transformers.initialization import no_init_weights
from transformers.models.auto.tokenization_auto import get_tokenizer_config

from ice_eval.errors import (
    ConfigError,
    DataError,
    IceError,
    MissingExtraError,
    ModelError,
    OutOfMemoryError,
    without_controls,
)
from ice_eval.files import cache_folder
from ice_eval.models.base import LoadSettings, Model
from ice_eval.models.causal import CausalLM
from ice_eval.models.classifier import SequenceClassifier
from ice_eval.models.devices import configure_bitsandbytes, quantisation
from ice_eval.models.generate import Translator
from ice_eval.models.gradients import switched
from ice_eval.models.headers import (
    Stored,
    bounded,
    check_config,
    check_gguf,
    check_kinds,
    check_tokenizer,
    no_object,
    stored_tensors,
)
from ice_eval.models.transformer import HFModel

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_NO_WEIGHTS = "meta"  # device of models without weights: only shapes, nothing is fetched or read


class NotOnHubError(Exception):
    """The hub has no such model, or cannot be reached."""


def wrap(model: Any, tokenizer: Any, *, name: str | None = None) -> HFModel:
    """Return a transformers model and its tokenizer as a `Model` with its device and dtype, in evaluation mode."""
    name = name or str(getattr(model.config, "_name_or_path", "") or type(model).__name__)
    n_tokens, n_ids = tokenizer.vocab_size, model.get_input_embeddings().weight.shape[0]
    if n_tokens > n_ids:
        raise ConfigError(
            f"the tokenizer of '{name}' has {n_tokens:,} tokens, and the model has embeddings for {n_ids:,}: it is the "
            "tokenizer of another model."
        )
    if type(model).__name__.endswith("ForSequenceClassification"):
        return SequenceClassifier(model, tokenizer, name=name)
    if model.get_output_embeddings() is None:
        raise ConfigError(f"{type(model).__name__} is neither a language model nor a sequence classifier.")
    return CausalLM(model, tokenizer, name=name)


def from_folder(path: Path, *, name: str, settings: LoadSettings) -> Model:
    """Load a folder as `save_pretrained` writes it."""
    if (path / "adapter_config.json").exists():
        raise ConfigError(
            f"the folder {path} holds an adapter of peft (adapter_config.json), which would be left out: load the "
            "model with it, and save what its `merge_and_unload` returns."
        )
    if not (path / "config.json").exists():
        raise ConfigError(f"the folder {path} holds no config.json, so it is not a transformers model.")
    with _translated(f"the model in {path}", folder=path):
        return _load(str(path), name=name, settings=settings)


def from_hub(ref: str, *, settings: LoadSettings, revision: str | None = None) -> Model:
    """Load a model of the hub, `org/name` or `org/name@revision`; raise `NotOnHubError` if the hub does not give it.

    `revision` is read if the name holds none; None: the current one.
    """
    path, _, named = ref.partition("@")
    revision = named or revision or "main"
    _ask_hub(path, revision)
    with _translated(f"the model '{ref}'"):
        try:
            return _load(path, name=ref, settings=settings, revision=revision)
        except OSError as exc:
            if "model.safetensors" not in str(exc):
                raise NotOnHubError(_first_line(exc)) from exc
            raise


def from_gguf(path: Path, *, name: str, settings: LoadSettings) -> Model:
    """Load a GGUF file: converted by transformers once into the user's cache, then loaded like any folder."""
    with path.open("rb") as stream:
        if stream.read(4) != b"GGUF":
            raise ConfigError(f"{path} is not a GGUF file.")
        stream.seek(0)
        checksum = hashlib.file_digest(stream, "sha256").hexdigest()
    folder = cache_folder() / f"gguf-{checksum[:32]}"
    if not folder.is_dir():
        print(without_controls(f"converting {path.name} once into {folder} …"), file=sys.stderr, flush=True)
        _convert_gguf(path, folder)
    return from_folder(folder, name=name, settings=settings)


def _convert_gguf(path: Path, folder: Path) -> None:
    """Write the converted model to a temporary folder, then rename it: a killed conversion leaves no half of one."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".converting-", dir=folder.parent))
    source: dict[str, Any] = {"gguf_file": path.name, "trust_remote_code": False}
    try:
        with _translated(f"the model in {path}"), _quiet():
            stored, auto = check_gguf(path), transformers.AutoModelForCausalLM
            config = _load_config(str(path.parent), source)
            described = _empty(auto, config, stored)
            tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, **source)
            model = _complete_model(auto, str(path.parent), name=path.name, dtype=torch.float32, **source)
            _check_shapes(model, described, name=path.name)
            # A model that still carries its GGUF quantisation config refuses to be saved, plain as its weights are.
            for holder in (model, model.config):
                for attribute in ("quantization_config", "hf_quantizer", "quantization_method"):
                    if hasattr(holder, attribute):
                        delattr(holder, attribute)
            model.save_pretrained(draft)
            tokenizer.save_pretrained(draft)
            _keep_bos(path, draft)
            _load(str(draft), name=path.name, settings=LoadSettings(device=_NO_WEIGHTS))  # nothing else is kept
        try:
            draft.rename(folder)
        except OSError as exc:
            if not folder.is_dir():  # unless another process was faster: its folder is as good
                raise ModelError(f"{path} could not be converted: {_first_line(exc)}") from exc
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _keep_bos(path: Path, folder: Path) -> None:
    """Store the `add_bos_token` of a GGUF file: transformers does not read it."""
    import gguf  # not installed on every machine that evaluates models from a folder

    field = gguf.GGUFReader(path).get_field("tokenizer.ggml.add_bos_token")
    if field is not None:
        config = folder / "tokenizer_config.json"
        content = {**json.loads(config.read_text(encoding="utf-8")), "add_bos_token": bool(field.contents())}
        config.write_text(json.dumps(content, ensure_ascii=False, indent=2), encoding="utf-8")


def load_translator(ref: str, *, source: str | None, target: str, beams: int, settings: LoadSettings) -> Translator:
    """Load an encoder-decoder that translates: a folder, or a model of the hub, `org/name` or `org/name@revision`."""
    path, _, revision = (ref, "", "") if Path(ref).is_dir() else ref.partition("@")
    location: dict[str, Any] = {"revision": revision or "main", "trust_remote_code": False}
    try:
        if not Path(path).is_dir():
            _ask_hub(path, location["revision"])
        with _translated(f"the model '{ref}'"), _quiet():
            config = _load_config(path, location)
            if not config.is_encoder_decoder:
                needed = "a translation model is needed, such as NLLB."
                raise ConfigError(f"'{path}' is a {config.model_type}; {needed}")
            try:
                tokenizer = transformers.AutoTokenizer.from_pretrained(path, **location)
            except ImportError as exc:
                raise MissingExtraError(
                    f"the tokenizer of '{ref}' needs a package that is not installed ({_first_line(exc)}). Install it: "
                    "pip install 'ice-eval[nllb]'"
                ) from exc
            auto = transformers.AutoModelForSeq2SeqLM
            model = _load_weights(auto, config, path, name=ref, settings=settings, source=location)
    except NotOnHubError as exc:
        raise ConfigError(
            f"no model '{ref}': it is not a folder, and could not be downloaded from the hub ({exc})."
        ) from exc
    return Translator(model, tokenizer, source=source, target=target, beams=beams)


_TRUST = "If you trust it, load it with transformers yourself and give the pair (model, tokenizer) to `evaluate`."


@contextlib.contextmanager
def _translated(what: str, *, folder: Path | None = None) -> Iterator[None]:
    """Translate whatever libraries raise over the files of a model: each has types of its own for damaged ones.

    Where they do not say which file of `folder` they mean, the first that is no JSON object is named.
    """
    try:
        yield
    except DataError as exc:  # of a tokenizer that is tried
        raise ConfigError(f"{what} could not be loaded: {exc}") from exc
    except (IceError, NotOnHubError):
        raise
    except Exception as exc:
        raise _load_error(what, no_object(folder) or exc) from exc
    except BaseException as exc:
        if type(exc).__name__ != "PanicException":  # how libraries in Rust end on a broken assumption
            raise
        raise _load_error(what, exc) from exc


def _load_error(what: str, exc: BaseException) -> IceError:
    if "trust_remote_code" in str(exc):
        return ConfigError(f"{what} can only be loaded by running its own code, which ICE never does. {_TRUST}")
    if isinstance(exc, OSError) and "model.safetensors" in str(exc):
        return ConfigError(
            f"{what} has no weights in safetensors; pickled ones (pytorch_model.bin) can run code and are never read. "
            f"{_TRUST} What works as well: a folder that its `save_pretrained` wrote, a .gguf file, or a pull request "
            "on the hub that adds safetensors, as facebook/nllb-200-distilled-600M@refs/pr/39."
        )
    if isinstance(exc, ImportError):  # of weights that are stored quantised: transformers names what to install
        return MissingExtraError(f"{what} needs a library that is not installed: {_first_line(exc)}")
    if "device_map" in str(exc) or "offload" in str(exc):
        return ConfigError(f"{what} cannot be placed as --device-map says: {_first_line(exc)}")
    if isinstance(exc, MemoryError | torch.OutOfMemoryError) or "allocate memory" in str(exc):
        return OutOfMemoryError(f"{what} does not fit into memory: {_first_line(exc)}")
    if isinstance(exc, OSError) and exc.errno is not None:  # the system's, not a library's
        return ModelError(f"{what} could not be loaded: {_first_line(exc)}")
    return ConfigError(f"{what} could not be loaded: {_first_line(exc)}.")


def _ask_hub(path: str, revision: str) -> None:
    """Ask the hub once: without a network, a download would be tried six times before it gives up."""
    try:
        if isinstance(huggingface_hub.try_to_load_from_cache(path, "config.json", revision=revision), str):
            return
        huggingface_hub.HfApi().model_info(path, revision=revision, timeout=10)
    except Exception as exc:  # bad names, missing or gated repositories, no network: types of three libraries
        raise NotOnHubError(_first_line(exc)) from exc


def _load(path: str, *, name: str, settings: LoadSettings, revision: str = "main") -> Model:
    with _quiet():
        source: dict[str, Any] = {"revision": revision, "trust_remote_code": False}
        config = _load_config(path, source)
        auto: Any = _auto_class(config.architectures or [], name)
        check_tokenizer(path, revision=revision)
        tokenizer = transformers.AutoTokenizer.from_pretrained(path, **source)
        # transformers drops the setting where there is a tokenizer.json.
        add_bos = get_tokenizer_config(path, **source).get("add_bos_token")
        if add_bos is not None:
            tokenizer.init_kwargs["add_bos_token"] = bool(add_bos)
        if settings.device == _NO_WEIGHTS:
            loaded = wrap(_empty(auto, config, None), tokenizer, name=name)
        else:
            model = _load_weights(auto, config, path, name=name, settings=settings, source=source)
            loaded = wrap(model, tokenizer, name=name)
        loaded.try_out()
    loaded.load_in = settings.load_in
    loaded.commit = getattr(config, "_commit_hash", None)
    return loaded


def _auto_class(architectures: Any, name: str) -> Any:
    """Return the class that loads a model, by its declared architecture, since others would get a random head."""
    if not isinstance(architectures, list) or not all(isinstance(each, str) for each in architectures):
        raise TypeError(f"config.json: architectures: a list of names is expected, got {architectures!r:.60}")
    if any(each.endswith("ForSequenceClassification") for each in architectures):
        return transformers.AutoModelForSequenceClassification
    if any(each.endswith(("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")) for each in architectures):
        return transformers.AutoModelForCausalLM
    raise ConfigError(
        f"'{name}' is a {' or '.join(architectures) or 'model of no stated kind'}; a language model (…ForCausalLM) "
        "or a sequence classifier (…ForSequenceClassification) is needed."
    )


def _load_config(path: str, source: Mapping[str, Any]) -> Any:
    """Load the configuration of a model in a folder or on the hub; raise if it names code to be run."""
    check_kinds(Path(path))
    content = transformers.PreTrainedConfig.get_config_dict(path, **source)[0]
    _refuse_hub_code(content)
    check_config(content)
    return transformers.AutoConfig.from_pretrained(path, **source)


def _refuse_hub_code(config: object) -> None:
    """Raise if a configuration names an attention implementation on the hub: such code is fetched and run unasked."""
    for key, value in config.items() if isinstance(config, dict) else ():
        if key.endswith("_implementation") and "/" in str(value):
            raise ValueError(f"trust_remote_code: {key} is {value}")
        _refuse_hub_code(value)


def _load_weights(
    auto: Any, config: Any, path: str, *, name: str, settings: LoadSettings, source: Mapping[str, Any]
) -> Any:
    """Load a model of transformers by its class `auto`; `source` holds further arguments of `from_pretrained`."""
    device, placed = _device(settings.device), _device_map(settings)
    dtype, is_quantised = _dtype(settings.dtype, device), getattr(config, "quantization_config", None) is not None
    with torch.inference_mode(False):  # weights that are made inside have no gradients ever after
        if settings.load_in is not None:
            if is_quantised:
                raise ConfigError(f"the weights of '{name}' are stored quantised already; leave out --load-in.")
            empty = _empty(auto, config, None)
            heads = [child for child, module in empty.named_children() if module is not empty.base_model]
            placed["quantization_config"] = quantisation(settings.load_in, kept=heads, dtype=dtype)
        if settings.load_in is not None or is_quantised:  # quantised weights cannot be moved afterwards
            placed.setdefault("device_map", {"": device})
        _empty(auto, config, stored_tensors(path, config, revision=source["revision"]))
        model = _complete_model(auto, path, name=name, dtype=dtype, **placed, **source)
        configure_bitsandbytes(model)
        return model if "device_map" in placed else model.to(device=device)


def _empty(auto: Any, config: Any, stored: Stored | None) -> Any:
    """Return a model without weights, or raise if it cannot be the one that is `stored`."""
    with torch.inference_mode(False), torch.device(_NO_WEIGHTS), no_init_weights(), bounded(stored):
        return auto.from_config(copy.deepcopy(config))


def _complete_model(auto: Any, path: str, *, name: str, **arguments: Any) -> Any:
    """Load a model, raise if it lacks weights, and remove its offload folder with it."""
    with contextlib.ExitStack() as written:
        if "offload_folder" in arguments:
            written.callback(shutil.rmtree, arguments["offload_folder"], ignore_errors=True)
        options = {"use_safetensors": True, "output_loading_info": True, "ignore_mismatched_sizes": True}
        model, report = auto.from_pretrained(path, **options, **arguments)
        if report["mismatched_keys"]:
            raise _misfit(name, *min(report["mismatched_keys"]))
        # A head or a buffer that is left over is in no numbered layer.
        numbered = re.compile(r"\.\d+\.")
        layers = {numbered.sub(".#.", part) for part in model.state_dict() if numbered.search(part)}
        surplus = filter(numbered.search, sorted(report["unexpected_keys"]))
        beyond = next((part for part in surplus if not layers or numbered.sub(".#.", part) in layers), None)
        if beyond is not None:
            raise ConfigError(
                f"the model '{name}' could not be loaded: its weights have more layers than its config.json states: "
                f"{beyond} has no place in it."
            )
        if report["missing_keys"]:
            missing = sorted(report["missing_keys"])
            raise ConfigError(
                f"the model '{name}' could not be loaded: its weights lack {len(missing)} parts of a "
                f"{type(model).__name__}, {missing[0]} among them: they would be random, so this is not the trained "
                "model."
            )
        weakref.finalize(model, written.pop_all().close)
    return model.requires_grad_(False)


def _check_shapes(model: Any, described: Any, *, name: str) -> None:
    """Raise if a tensor has another shape than in the model `described`: those of GGUF files are taken as they are."""
    shapes = {part: tensor.shape for part, tensor in described.state_dict().items()}
    for part, tensor in model.state_dict().items():
        if tensor.shape != shapes.get(part, tensor.shape):
            raise _misfit(name, part, tensor.shape, shapes[part])


def _misfit(name: str, part: str, found: Iterable[int], expected: Iterable[int]) -> ConfigError:
    return ConfigError(
        f"the model '{name}' could not be loaded: its weights do not fit its config.json: {part} is {_shape(found)} in "
        f"the file and {_shape(expected)} by the configuration."
    )


def _shape(sizes: Iterable[int]) -> str:
    return " × ".join(map(str, sizes)) or "a single number"


def _device_map(settings: LoadSettings) -> dict[str, Any]:
    device_map, max_memory = settings.parsed_map(), settings.parsed_memory()
    if device_map is None:
        return {}
    if isinstance(device_map, dict):
        for each in set(device_map.values()) - {"disk"}:
            _device(f"cuda:{each}" if isinstance(each, int) else each)
    # For the few models whose weights are not stored as they are used; others are read from their own files.
    offload = Path(tempfile.gettempdir()) / f"ice-offload-{uuid.uuid4().hex}"
    limits = {} if max_memory is None else {"max_memory": max_memory}
    return {"device_map": device_map, "offload_folder": str(offload), **limits}


def _device(name: str) -> str:
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError) as exc:
        raise ConfigError(
            f"the device '{name}' cannot be used here ({_first_line(exc)}); use --device auto or cpu."
        ) from exc
    return name


def _dtype(name: str, device: str) -> torch.dtype:
    if name == "auto":
        return torch.bfloat16 if device.startswith("cuda") else torch.float32
    if name not in _DTYPES:
        raise ConfigError(f"no dtype '{name}'; use auto, {', '.join(_DTYPES)}.")
    return _DTYPES[name]


def _first_line(exc: BaseException) -> str:
    """Return what an error says, without the punctuation at its end; a bare key or nothing at all gets its type."""
    said = [line.strip() for line in str(exc).splitlines() if line.strip()]
    # The first line of a failed validation has the field, and the second one the reason.
    text = " ".join(said[:2] if said and said[0].endswith(":") else said[:1])[:300].rstrip(".")
    return f"{type(exc).__name__}{': ' if text else ''}{text}" if len(text.split()) < 3 else text


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Hide progress bars and log messages of transformers and accelerate, but not errors."""
    messages: Any = transformers.utils.logging
    accelerate = logging.getLogger("accelerate")
    with contextlib.ExitStack() as restored:
        restored.enter_context(switched(messages.set_verbosity, logging.ERROR, messages.get_verbosity()))
        restored.enter_context(switched(accelerate.setLevel, logging.ERROR, accelerate.level))
        if messages.is_progress_bar_enabled():
            restored.callback(messages.enable_progress_bar)
        messages.disable_progress_bar()
        yield
