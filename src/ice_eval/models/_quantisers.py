"""Weights in fewer bits: by the libraries that transformers knows, while a model is loaded."""

import importlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import transformers

from ice_eval._registry import did_you_mean
from ice_eval.errors import ConfigError, require

Build = Callable[[list[str], torch.dtype], Any]
"""(modules that stay as they are, dtype of the rest) -> what `from_pretrained` takes as `quantization_config`."""


@dataclass(frozen=True, kw_only=True)
class Quantiser:
    """A way to store weights."""

    library: str
    install: str
    """What pip installs to get it."""
    build: Build


def _bitsandbytes(bits: int) -> Build:
    def build(kept: list[str], dtype: torch.dtype) -> Any:
        config: Any = transformers.BitsAndBytesConfig
        own = {"bnb_4bit_quant_type": "nf4", "bnb_4bit_compute_dtype": dtype} if bits == 4 else {}
        return config(**{f"load_in_{bits}bit": True}, llm_int8_skip_modules=kept, **own)

    return build


def _quanto(weights: str) -> Build:
    config: Any = transformers.QuantoConfig
    return lambda kept, dtype: config(weights=weights, modules_to_not_convert=kept)


def _torchao(kept: list[str], dtype: torch.dtype) -> Any:
    kinds, config = importlib.import_module("torchao.quantization"), transformers.TorchAoConfig
    return config(kinds.Int8WeightOnlyConfig(), modules_to_not_convert=kept)


QUANTISERS = {
    "8bit": Quantiser(library="bitsandbytes", install="ice-eval[quant]", build=_bitsandbytes(8)),
    "4bit": Quantiser(library="bitsandbytes", install="ice-eval[quant]", build=_bitsandbytes(4)),
    "torchao-8bit": Quantiser(library="torchao", install="torchao", build=_torchao),
    "quanto-8bit": Quantiser(library="optimum.quanto", install="optimum-quanto", build=_quanto("int8")),
    "quanto-4bit": Quantiser(library="optimum.quanto", install="optimum-quanto", build=_quanto("int4")),
}
"""By what `--load-in` calls them: bitsandbytes' LLM.int8() and NF4, and integer weights of torchao and quanto."""


def quantisation(name: str, *, kept: Sequence[str], dtype: torch.dtype) -> Any:
    """What `from_pretrained` takes.

    Args:
        name: One of `QUANTISERS`.
        kept: Modules that stay as they are: the label head is computed in float32.
        dtype: What the rest is computed in.

    Raises:
        ConfigError: There is no such way.
        MissingExtraError: Its library is not installed.
    """
    if name not in QUANTISERS:
        known = list(QUANTISERS)
        raise ConfigError(f"--load-in {name}{did_you_mean(name, known)} Expected: {', '.join(known)}.")
    chosen = QUANTISERS[name]
    require(chosen.library, install=chosen.install, purpose=f"for --load-in {name}")
    return chosen.build(list(kept), dtype)


def quantised_by(model: Any) -> str | None:
    """What stores the weights of a model in fewer bits, whether on loading or from the start; None: nothing."""
    how = getattr(model.config, "quantization_config", None)
    method = how.get("quant_method") if isinstance(how, dict) else getattr(how, "quant_method", None)
    return None if method is None else str(getattr(method, "value", method))


def settle(model: Any) -> None:
    """Tell bitsandbytes what it should not do, where it stores the weights of a model.

    It lays 4-bit weights out anew on a CPU with bfloat16 instructions, at their first pass without a gradient. The
    kernel that then reads them has no gradient: gradients would lack what goes through its layers. And its 8-bit layers
    say in every pass that they compute in float16.
    """
    if quantised_by(model) != "bitsandbytes":
        return
    logging.getLogger("bitsandbytes.autograd._functions").setLevel(logging.ERROR)
    for module in model.modules():
        if hasattr(module, "support_avx512bf16_for_cpu"):
            module.support_avx512bf16_for_cpu = False
