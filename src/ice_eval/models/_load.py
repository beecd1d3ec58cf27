"""From what a user calls a model to a `Model`."""

from typing import Any

from ice_eval._registry import did_you_mean
from ice_eval.errors import ConfigError
from ice_eval.files import home_expanded
from ice_eval.models._base import Model, models
from ice_eval.models._function import FunctionModel, LabelFunction, from_path
from ice_eval.models._loading import DeviceMap, Loading, MaxMemory
from ice_eval.models._served import SERVED, Served, ServedModel
from ice_eval.models._suite import SUITE, suite_model

ModelRef = str | Model | Served | tuple[Any, Any] | LabelFunction
"""A registered name, a folder, a `.gguf` file, a short name of the published suite, a hub id (`org/name`,
`org/name@revision`), `python:module:function`, a `Model`, a model behind a server (`Served`), a pair of a transformers
model and its tokenizer, or a function from texts to label probabilities."""


def _in_memory(ref: Model | tuple[Any, Any] | LabelFunction) -> Model:
    if isinstance(ref, Model):
        return ref
    if isinstance(ref, tuple):
        from ice_eval.models._hf_load import wrap

        return wrap(*ref)
    return _from_function(ref)


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


def load_model(
    ref: ModelRef,
    *,
    device: str = "auto",
    dtype: str = "auto",
    device_map: DeviceMap | None = None,
    max_memory: MaxMemory | None = None,
    load_in: str | None = None,
) -> Model:
    """Load a model.

    Args:
        ref: What a user calls it.
        device: `auto`, `cpu`, `cuda`, …: one device for all of it.
        dtype: `auto`, `float32`, `bfloat16`, `float16`.
        device_map: Several devices in place of one: `auto` and other maps of accelerate, a JSON file, or a mapping.
        max_memory: What the map may put on each device.
        load_in: Quantise the weights, as `4bit`.

    Raises:
        ConfigError: There is no such model, or it is of a kind that cannot be read.
        MissingExtraError: Its weights need a library that is not installed.
        ModelError: It is there but failed to load.
    """
    how = Loading(device=device, dtype=dtype, device_map=device_map, max_memory=max_memory, load_in=load_in)
    if isinstance(ref, Served):
        how.refuse_for("a model behind a server")
        return ServedModel(ref, reader=load_reader)
    if not isinstance(ref, str):
        how.refuse_for("a model that is in memory already")
        return _in_memory(ref)
    if ref.startswith(SERVED):
        raise ConfigError(
            f"'{ref}' is behind a server: `ice run` and `ice plan` ask it at --base-url URL, and Python by Served(…, "
            "base_url=…); other commands need a model that can be loaded here."
        )
    if ref.startswith("python:"):
        how.refuse_for("a function")
        return from_path(ref.removeprefix("python:"))
    if ref in models:
        return models.get(ref)(how)
    from ice_eval.models import _hf_gguf, _hf_load

    path = home_expanded(ref)
    if path.is_dir():
        return _hf_load.from_folder(path, name=path.resolve().name, how=how)
    if path.suffix == ".gguf":
        if not path.is_file():
            raise ConfigError(
                f"no such file: {ref}. --model takes a .gguf file, a folder, a hub id, or a known name: "
                f"{', '.join(models.names())}."
            )
        return _hf_gguf.from_gguf(path, name=path.stem, how=how)
    if ref.startswith((".", "/", "~")):
        raise ConfigError(f"no such folder: {ref}.")
    try:
        return _hf_load.from_hub(_hub_id(ref), how=how)
    except _hf_load.NotOnHubError as exc:
        raise ConfigError(_not_found(ref, exc)) from exc


def _hub_id(ref: str) -> str:
    """What the hub calls a model that has a short name here; anything else stays as it is."""
    known = suite_model(ref)
    return ref if known is None else known.hub_id + "".join(ref.partition("@")[1:])


def _not_found(ref: str, reason: Exception) -> str:
    known = suite_model(ref)
    if known is not None:
        terms = " It is gated: accept its terms there and log in with `hf auth login`." if known.gated else ""
        return f"the hub did not give the model '{_hub_id(ref)}' ({reason}).{terms} A folder of it works as well."
    names = [*models.names(), *(each.name for each in SUITE)]
    return (
        f"no model '{ref}'{did_you_mean(ref, names)} It is no folder and no .gguf file, and the hub did not give it "
        f"({reason}). Known names: {', '.join(names)}."
    )
