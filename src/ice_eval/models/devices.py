"""Devices and storage of the weights of a transformers model: one device or several, offloaded, quantised.

accelerate spreads a model by a hook on every module, which moves inputs to the device of the module and fetches
offloaded weights. Modules that are called need nothing more. A weight that is read without a call does: it may be on
another device, or, while it is offloaded, be a shape without numbers.
"""

import contextlib
import importlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
import transformers
from accelerate.hooks import AlignDevicesHook, SequentialHook
from numpy.typing import NDArray

from ice_eval._registry import did_you_mean
from ice_eval.errors import ConfigError, OutOfMemoryError, require

T = TypeVar("T")


def input_device(model: Any) -> torch.device:
    table = model.get_input_embeddings()
    hook = _hook(table)
    placed = hook is not None and hook.execution_device is not None
    return torch.device(hook.execution_device) if placed else table.weight.device  # type: ignore[union-attr]


def is_spread(model: Any) -> bool:
    """Return True if hooks move inputs or weights between devices."""
    return any(_hooks(model))


def is_offloaded(model: Any) -> bool:
    """Return True if weights are offloaded to memory or disk until they are needed."""
    return any(hook.offload for hook in _hooks(model))


def devices_of(model: Any) -> list[str]:
    """Return the names of all devices that hold weights, as `cuda:0`, `cpu` and `disk`."""
    devices = getattr(model, "hf_device_map", {}).values() if is_spread(model) else ()
    named = (device if device == "disk" else str(torch.device(device)) for device in devices)
    return list(dict.fromkeys(named)) or [str(input_device(model))]


def gpus_of(model: Any) -> list[torch.device]:
    devices = (hook.execution_device for hook in _hooks(model) if hook.execution_device is not None)
    found = dict.fromkeys([input_device(model), *map(torch.device, devices)])
    return [device for device in found if device.type == "cuda"]


def weight_of(module: Any, name: str) -> torch.Tensor | None:
    """Return a parameter of a module, fetched if it is offloaded; None if there is none of that name."""
    found: torch.Tensor | None = getattr(module, name, None)
    hook = _hook(module)
    if found is None or not found.is_meta or hook is None or not hook.offload:
        return found
    return hook.weights_map[name]  # type: ignore[no-any-return]


def weights_of(model: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the numbers of a model, one tensor after the other; a quantised one is several."""
    for name, tensor in model.state_dict().items():
        owner, _, own = name.rpartition(".")
        found = weight_of(model.get_submodule(owner), own) if tensor.is_meta else tensor
        assert found is not None
        for part in _plain_tensors(found.detach()):
            yield name, part


def _plain_tensors(tensor: torch.Tensor) -> list[torch.Tensor]:
    """Return the plain tensors that a tensor is made of: itself, unless it is a subclass of several."""
    if not hasattr(tensor, "__tensor_flatten__"):
        return [tensor]
    names, _ = tensor.__tensor_flatten__()
    return [part for name in names for part in _plain_tensors(getattr(tensor, name))]


def _hook(module: Any) -> AlignDevicesHook | None:
    """Return the hook of accelerate that places a module and its inputs, alone or among other hooks."""
    hook = getattr(module, "_hf_hook", None)
    hooks = hook.hooks if isinstance(hook, SequentialHook) else [hook]
    return next((each for each in hooks if isinstance(each, AlignDevicesHook)), None)


def _hooks(model: Any) -> Iterator[AlignDevicesHook]:
    return filter(None, map(_hook, model.modules()))


@contextlib.contextmanager
def replaced_forward(
    modules: Iterable[Any], new: Callable[[Any, Callable[..., Any]], Any], *, inside: bool
) -> Iterator[None]:
    """Give modules another forward in this context: `new(module, its forward)`."""
    # If `inside`, accelerate's hook still wraps the new forward, so that weights are fetched for it; else the new one
    # wraps the hook.
    with contextlib.ExitStack() as restored:
        for module in modules:
            name = "_old_forward" if inside and hasattr(module, "_hf_hook") else "forward"
            own = vars(module).get(name)  # a hook is an attribute of the module; without one the class has the forward
            setattr(module, name, new(module, getattr(module, name)))
            if own is None:
                restored.callback(delattr, module, name)
            else:
                restored.callback(setattr, module, name, own)
        yield


def to_device(array: NDArray[Any], device: torch.device | str) -> torch.Tensor:
    """Copy an array to a device, through pinned memory: from other memory the host would wait for the device."""
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    on_gpu = torch.device(device).type == "cuda"
    return tensor.pin_memory().to(device, non_blocking=True) if on_gpu else tensor.to(device)


def to_host(tensor: torch.Tensor) -> Callable[[], torch.Tensor]:
    """Start to copy a tensor to the host; calling the result waits for the copy, and for nothing queued after it."""
    if not tensor.is_cuda:
        return lambda: tensor
    copied = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    copied.copy_(tensor, non_blocking=True)
    done = torch.cuda.current_stream(tensor.device).record_event()

    def wait() -> torch.Tensor:
        done.synchronize()
        return copied

    return wait


def record_event(device: str) -> Callable[[], None]:
    """Mark the work queued so far; calling the result makes the then current stream wait for it."""
    if not device.startswith("cuda"):
        return lambda: None
    done = torch.cuda.current_stream(device).record_event()
    return lambda: torch.cuda.current_stream(device).wait_event(done)


class Quantiser(NamedTuple):
    """A library that stores weights in fewer bits, and its name for the kind of weights."""

    library: str
    install: str
    weights: str


QUANTISERS = {
    "8bit": Quantiser("bitsandbytes", "ice-eval[quant]", "8bit"),
    "4bit": Quantiser("bitsandbytes", "ice-eval[quant]", "4bit"),
    "torchao-8bit": Quantiser("torchao", "torchao", "int8"),
    "quanto-8bit": Quantiser("optimum.quanto", "optimum-quanto", "int8"),
    "quanto-4bit": Quantiser("optimum.quanto", "optimum-quanto", "int4"),
}
"""Quantisers by name for `--load-in`: bitsandbytes' LLM.int8() and NF4, integer weights of torchao and quanto."""


def quantisation(name: str, *, kept: Sequence[str], dtype: torch.dtype) -> Any:
    """Return the `quantization_config` of one of `QUANTISERS`; modules in `kept` stay as they are (the label head)."""
    if name not in QUANTISERS:
        known = list(QUANTISERS)
        raise ConfigError(f"--load-in {name}{did_you_mean(name, known)} Expected: {', '.join(known)}.")
    library, install, weights = QUANTISERS[name]
    require(library, install=install, purpose=f"for --load-in {name}")
    configs: Any = transformers
    if library == "bitsandbytes":
        own = {"bnb_4bit_quant_type": "nf4", "bnb_4bit_compute_dtype": dtype} if weights == "4bit" else {}
        return configs.BitsAndBytesConfig(**{f"load_in_{weights}": True}, llm_int8_skip_modules=list(kept), **own)
    if library == "torchao":
        kinds = importlib.import_module("torchao.quantization")
        return configs.TorchAoConfig(kinds.Int8WeightOnlyConfig(), modules_to_not_convert=list(kept))
    return configs.QuantoConfig(weights=weights, modules_to_not_convert=list(kept))


def quantised_by(model: Any) -> str | None:
    """Return the method that stores the weights of a model in fewer bits; None if they are not quantised."""
    config = getattr(model.config, "quantization_config", None)
    method = config.get("quant_method") if isinstance(config, dict) else getattr(config, "quant_method", None)
    return None if method is None else str(getattr(method, "value", method))


def configure_bitsandbytes(model: Any) -> None:
    """Stop bitsandbytes from converting 4-bit weights of a model and from logging about 8-bit ones."""
    # On a CPU with bfloat16 instructions it converts 4-bit weights at their first pass without a gradient. The kernel
    # that then reads them has no gradient: gradients would lack what goes through its layers. Its 8-bit layers log in
    # every pass that they compute in float16.
    if quantised_by(model) != "bitsandbytes":
        return
    logging.getLogger("bitsandbytes.autograd._functions").setLevel(logging.ERROR)
    for module in model.modules():
        if hasattr(module, "support_avx512bf16_for_cpu"):
            module.support_avx512bf16_for_cpu = False


@dataclass
class MemoryRetries:
    """Number of batches that were halved because memory ran out."""

    count: int = 0


@contextlib.contextmanager
def translated_memory_errors() -> Iterator[None]:
    """Translate the many out-of-memory errors of torch into `OutOfMemoryError`."""
    try:
        yield
    except torch.OutOfMemoryError as exc:
        raise OutOfMemoryError(str(exc)) from exc
    except RuntimeError as exc:
        if "allocate memory" in str(exc) or "not enough memory" in str(exc):
            raise OutOfMemoryError(str(exc)) from exc
        raise


def in_halves(compute: Callable[[slice], T], rows: slice, retries: MemoryRetries) -> list[T]:
    """Return the results of `compute` for all rows at once, or for each half where memory runs out."""
    try:
        with translated_memory_errors():
            return [compute(rows)]
    except OutOfMemoryError:
        if rows.stop - rows.start == 1:
            raise
    retries.count += 1
    half = (rows.start + rows.stop) // 2
    first = in_halves(compute, slice(rows.start, half), retries)
    return first + in_halves(compute, slice(half, rows.stop), retries)


def in_batches(
    compute: Callable[[slice], T], lengths: Sequence[int], budget: int, retries: MemoryRetries
) -> Iterator[T]:
    """Yield the results for consecutive rows, padded to a budget of tokens or a single row, or for halves of them."""
    start = longest = 0
    for row, length in enumerate(lengths):
        longest = max(longest, length)
        if row > start and longest * (row + 1 - start) > budget:
            yield from in_halves(compute, slice(start, row), retries)
            start, longest = row, length
    if start < len(lengths):
        yield from in_halves(compute, slice(start, len(lengths)), retries)
