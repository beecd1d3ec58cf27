"""Devices of the weights of a model: one, several, or memory and disk until a layer is computed.

accelerate spreads a model by a hook on every module, which moves inputs to the device of the module and fetches weights
that wait elsewhere. Modules that are called need nothing more. What is read without a call does: a weight may be
somewhere else, or, while it waits, be a shape without numbers.
"""

from collections.abc import Iterator
from typing import Any

import torch
from accelerate.hooks import AlignDevicesHook, SequentialHook


def entrance(model: Any) -> torch.device:
    """Return the device of the inputs."""
    table = model.get_input_embeddings()
    hook = _hook(table)
    placed = hook is not None and hook.execution_device is not None
    return torch.device(hook.execution_device) if placed else table.weight.device  # type: ignore[union-attr]


def is_spread(model: Any) -> bool:
    """Return True if hooks move inputs or weights between devices."""
    return any(_hook(module) is not None for module in model.modules())


def is_offloaded(model: Any) -> bool:
    """Return True if weights are offloaded to memory or disk until they are needed."""
    hooks = (_hook(module) for module in model.modules())
    return any(hook is not None and hook.offload for hook in hooks)


def devices_of(model: Any) -> list[str]:
    """Names of all devices that hold weights, as `cuda:0`, `cpu` and `disk`."""
    devices = getattr(model, "hf_device_map", {}).values() if is_spread(model) else ()
    named = (device if device == "disk" else str(torch.device(device)) for device in devices)
    return list(dict.fromkeys(named)) or [str(entrance(model))]


def gpus_of(model: Any) -> list[torch.device]:
    """The GPUs that compute."""
    hooks = (_hook(module) for module in model.modules())
    devices = (hook.execution_device for hook in hooks if hook is not None and hook.execution_device is not None)
    found = dict.fromkeys([entrance(model), *map(torch.device, devices)])
    return [device for device in found if device.type == "cuda"]


def weight_of(module: Any, name: str) -> torch.Tensor | None:
    """A parameter of a module, fetched where it waits; None where it has none of that name."""
    found: torch.Tensor | None = getattr(module, name, None)
    hook = _hook(module)
    if found is None or not found.is_meta or hook is None or not hook.offload:
        return found
    fetched: torch.Tensor = hook.weights_map[name]
    return fetched


def weights_of(model: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """The numbers of a model, one tensor after the other; a quantised one is several."""
    for name, tensor in model.state_dict().items():
        owner, _, own = name.rpartition(".")
        found = weight_of(model.get_submodule(owner), own) if tensor.is_meta else tensor
        assert found is not None
        for part in _parts(found.detach()):
            yield name, part


def _parts(tensor: torch.Tensor) -> list[torch.Tensor]:
    """The plain tensors that a tensor is made of: itself, unless its library gave it an inside."""
    if not hasattr(tensor, "__tensor_flatten__"):
        return [tensor]
    names, _ = tensor.__tensor_flatten__()
    return [part for name in names for part in _parts(getattr(tensor, name))]


def _hook(module: Any) -> AlignDevicesHook | None:
    """Return the hook of accelerate that places a module and its inputs, alone or among other hooks."""
    hook = getattr(module, "_hf_hook", None)
    hooks = hook.hooks if isinstance(hook, SequentialHook) else [hook]
    return next((each for each in hooks if isinstance(each, AlignDevicesHook)), None)
