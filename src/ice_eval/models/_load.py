"""From what a user calls a model to a `Model`."""

from pathlib import Path
from typing import Any

from ice_eval._registry import did_you_mean
from ice_eval.errors import ConfigError
from ice_eval.models._base import Model, models
from ice_eval.models._function import FunctionModel, LabelFunction, from_path

ModelRef = str | Model | tuple[Any, Any] | LabelFunction
"""A registered name, a folder, a `.gguf` file, a hub id (`org/name`, `org/name@revision`), `python:module:function`, a
`Model`, a pair of a transformers model and its tokenizer, or a function from texts to label probabilities."""


def _from_function(function: LabelFunction) -> Model:
    if hasattr(function, "config") and hasattr(function, "get_input_embeddings"):
        raise ConfigError("a transformers model needs its tokenizer too: give the pair (model, tokenizer).")
    if not callable(function):
        raise ConfigError(f"a {type(function).__name__} is no model; see `evaluate` for what may be given.")
    return FunctionModel(function, name=getattr(function, "__qualname__", type(function).__name__))


def load_reader(ref: ModelRef) -> Model:
    """A model without its weights: it reads texts and names labels, and can score nothing.

    Raises:
        ConfigError: There is no such model, or it is of a kind that cannot be read.
        ModelError: It is there but failed to load.
    """
    return load_model(ref, device="meta", dtype="float32")


def load_model(ref: ModelRef, *, device: str = "auto", dtype: str = "auto") -> Model:
    """Load a model.

    Raises:
        ConfigError: There is no such model, or it is of a kind that cannot be read.
        ModelError: It is there but failed to load.
    """
    if isinstance(ref, Model):
        return ref
    if isinstance(ref, tuple):
        from ice_eval.models._hf_load import wrap

        return wrap(*ref)
    if not isinstance(ref, str):
        return _from_function(ref)
    if ref.startswith("python:"):
        return from_path(ref.removeprefix("python:"))
    if ref in models:
        return models.get(ref)(device, dtype)
    from ice_eval.models import _hf_load

    path = Path(ref).expanduser()
    if path.is_dir():
        return _hf_load.from_folder(path, name=path.resolve().name, device=device, dtype=dtype)
    if path.suffix == ".gguf":
        if not path.is_file():
            raise ConfigError(
                f"no such file: {ref}. --model takes a .gguf file, a folder, a hub id, or a known name: "
                f"{', '.join(models.names())}."
            )
        return _hf_load.from_gguf(path, name=path.stem, device=device, dtype=dtype)
    if ref.startswith((".", "/", "~")):
        raise ConfigError(f"no such folder: {ref}.")
    try:
        return _hf_load.from_hub(ref, device=device, dtype=dtype)
    except _hf_load.NotOnHubError as exc:
        raise ConfigError(
            f"no model '{ref}'{did_you_mean(ref, models.names())} It is no folder and no .gguf file, and the hub did "
            f"not give it ({exc}). Known names: {', '.join(models.names())}."
        ) from exc
