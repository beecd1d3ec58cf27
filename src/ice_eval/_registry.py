"""Names for plug-ins: a decorator registers, a folder is discovered, a wrong name gets a suggestion."""

import difflib
import importlib
import importlib.metadata
import pkgutil
from collections.abc import Iterator
from typing import Generic, TypeVar

from ice_eval.errors import ConfigError

T = TypeVar("T")


class Registry(Generic[T]):
    """Plug-ins of one kind by name.

    The modules of `package` are imported on first use, then the entry points of the group `ice_eval.<kind>s`, so a
    plug-in is one file in the folder or one line in another package's `pyproject.toml`.
    """

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self._package = package
        self._items: dict[str, T] = {}
        self._discovered = False

    @property
    def _noun(self) -> str:
        """What a message calls a plug-in."""
        return self.kind.replace("_", " ")

    def add(self, name: str, item: T) -> T:
        """Register `item`; a name is given once."""
        if name in self._items:
            raise ConfigError(f"two {self._noun}s are named '{name}'; rename one of them.")
        self._items[name] = item
        return item

    def get(self, name: str) -> T:
        """The plug-in of that name.

        Raises:
            ConfigError: There is none; the message suggests the nearest name and lists the known ones.
        """
        self._discover()
        if name not in self._items:
            raise ConfigError(
                f"no {self._noun} named '{name}'{did_you_mean(name, self.names())} Known: {', '.join(self.names())}."
            )
        return self._items[name]

    def names(self) -> list[str]:
        """All names, sorted."""
        self._discover()
        return sorted(self._items)

    def items(self) -> Iterator[tuple[str, T]]:
        """Names and plug-ins, sorted by name."""
        for name in self.names():
            yield name, self._items[name]

    def __contains__(self, name: object) -> bool:
        self._discover()
        return name in self._items

    def _discover(self) -> None:
        if self._discovered:
            return
        self._discovered = True
        package = importlib.import_module(self._package)
        for module in pkgutil.iter_modules(package.__path__):
            if not module.name.startswith("_"):
                importlib.import_module(f"{self._package}.{module.name}")
        for entry in importlib.metadata.entry_points(group=f"ice_eval.{self.kind}s"):
            try:
                entry.load()
            except Exception as exc:  # a plug-in can fail in any way, and must be named when it does
                raise ConfigError(
                    f"the {self._noun} plug-in '{entry.name}' ({entry.value}) cannot be loaded: {exc}."
                ) from exc


def did_you_mean(name: str, known: list[str]) -> str:
    """The part of an error message that suggests the nearest known name, or just a full stop."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean '{close[0]}'?" if close else "."
