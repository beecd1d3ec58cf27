"""How a model is brought into memory: where its weights go, and in how many bits."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ice_eval._registry import did_you_mean
from ice_eval.errors import ConfigError
from ice_eval.files import why_no_json

MAPS = ("auto", "balanced", "balanced_low_0", "sequential")
"""Maps that accelerate makes itself, from the memory that is free."""

DeviceMap = str | Mapping[str, int | str]
"""One of `MAPS`, a JSON file, or names of modules and where each goes: a GPU's number, `cuda:1`, `cpu` or `disk`."""
MaxMemory = str | Mapping[int | str, int | str]
"""What each device may hold, as `"0=20GiB,cpu=60GiB"`, or as a mapping."""


@dataclass(frozen=True, kw_only=True)
class Loading:
    """What a user says of it."""

    device: str = "auto"
    dtype: str = "auto"
    device_map: DeviceMap | None = None
    """Where each layer goes; None: all on one device."""
    max_memory: MaxMemory | None = None
    load_in: str | None = None
    """A name of `QUANTISERS`; None: as the weights are stored."""

    def __post_init__(self) -> None:
        if self.device_map is not None and self.device != "auto":
            raise ConfigError(f"--device {self.device} and --device-map exclude each other; give one of them.")
        if self.max_memory is not None and self.device_map not in MAPS:
            raise ConfigError("--max-memory bounds a map that is made here; give --device-map auto with it.")

    def refuse_for(self, what: str) -> None:
        """Stop where nothing is loaded that could be spread or quantised.

        Raises:
            ConfigError: It was asked for.
        """
        given = [f"--{name.replace('_', '-')}" for name in ("device_map", "load_in") if getattr(self, name) is not None]
        if given:
            raise ConfigError(f"{' and '.join(given)} is for models that transformers loads, and {what} is none.")

    @property
    def map(self) -> str | dict[str, int | str] | None:
        """The device map, read if it is a file.

        Raises:
            ConfigError: It is neither a known name nor a file with a map.
        """
        if self.device_map is None or isinstance(self.device_map, str) and self.device_map in MAPS:
            return self.device_map
        return _read_map(self.device_map) if isinstance(self.device_map, str) else dict(self.device_map)

    @property
    def most(self) -> dict[int | str, int | str] | None:
        """The bounds on memory, by device.

        Raises:
            ConfigError: They are not written as expected.
        """
        if not isinstance(self.max_memory, str):
            return None if self.max_memory is None else dict(self.max_memory)
        found: dict[int | str, int | str] = {}
        for part in self.max_memory.split(","):
            name, _, size = (each.strip() for each in part.partition("="))
            if not name or not size:
                raise ConfigError(f"--max-memory {self.max_memory}: DEVICE=SIZE is expected, as 0=20GiB,cpu=60GiB.")
            found[int(name) if name.isdecimal() else name] = size
        return found


def _read_map(file: str) -> dict[str, int | str]:
    path = Path(file).expanduser()
    if not path.is_file():
        raise ConfigError(
            f"--device-map {file}{did_you_mean(file, list(MAPS))} Expected: {', '.join(MAPS)}, or a JSON file that "
            "says where each module goes."
        )
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as exc:
        why = "it is no text" if isinstance(exc, UnicodeDecodeError) else why_no_json(exc)
        raise ConfigError(f"{path} is no JSON file: {why}.") from exc
    places = content.values() if isinstance(content, dict) else [None]
    if not content or not all(isinstance(place, int | str) and not isinstance(place, bool) for place in places):
        raise ConfigError(
            f'{path}: names of modules and their devices are expected, as {{"model.layers.0": 0, "lm_head": "cpu"}}.'
        )
    return dict(content)
