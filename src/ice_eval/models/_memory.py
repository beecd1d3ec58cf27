"""One error for all the ways in which torch says "out of memory"."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from ice_eval.errors import OutOfMemoryError


@dataclass
class MemoryRetries:
    """Number of batches that were halved because memory ran out."""

    count: int = 0


@contextlib.contextmanager
def translated_memory_errors() -> Iterator[None]:
    """Turn the many ways in which torch says "out of memory" into one."""
    try:
        yield
    except torch.OutOfMemoryError as exc:
        raise OutOfMemoryError(str(exc)) from exc
    except RuntimeError as exc:
        if "allocate memory" in str(exc) or "not enough memory" in str(exc):
            raise OutOfMemoryError(str(exc)) from exc
        raise
