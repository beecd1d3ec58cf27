"""Another `forward` for some modules, for one pass."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any


@contextlib.contextmanager
def replaced(modules: Iterable[Any], new: Callable[[Any, Callable[..., Any]], Any], *, inside: bool) -> Iterator[None]:
    """Give modules another forward, and all of them their own back.

    Args:
        modules: Those to change.
        new: (module, its forward) -> what takes its place.
        inside: Whether accelerate's hook, where a module has one, goes on doing its work around what is new, so that
            weights are there when it asks for them; else what is new stands around the hook.
    """
    changed = []
    try:
        for module in modules:
            name = "_old_forward" if inside and hasattr(module, "_hf_hook") else "forward"
            own = vars(module).get(name)  # a hook is an attribute of the module; without one the class has the forward
            setattr(module, name, new(module, getattr(module, name)))
            changed.append((module, name, own))
        yield
    finally:
        for module, name, own in changed:
            if own is None:
                delattr(module, name)
            else:
                setattr(module, name, own)
