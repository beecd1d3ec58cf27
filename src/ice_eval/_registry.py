"""Plug-ins by name: registered by a decorator, discovered in a folder; `lime:n_samples=200` sets options."""

import difflib
import importlib
import importlib.metadata
import pkgutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from types import NoneType
from typing import Any, Generic, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

from ice_eval.errors import ConfigError

T = TypeVar("T")
_Item = TypeVar("_Item")
_GROUP = "ice_eval."
"""Prefix of entry-point groups, followed by the kind of plug-in in the plural."""


class Registry(Generic[T]):
    """Plug-ins of one kind by name.

    The modules of `package` are imported on first use, then the entry points of the group `ice_eval.<kind>s`, so a
    plug-in is one file in the folder or one line in another package's `pyproject.toml`. A plug-in that cannot be loaded
    makes every use fail: results without it would look like those of a complete installation.
    """

    def __init__(self, kind: str, package: str, *, skip: Collection[str] = (), also: Sequence[str] = ()) -> None:
        """Set the kind, the package to discover, its modules without plug-ins, and a module elsewhere that has some."""
        self.kind = kind
        self._package = package
        self._skip, self._also = skip, also
        self._items: dict[str, T] = {}
        self._discovered = False

    @property
    def noun(self) -> str:
        """The kind as written in messages."""
        return self.kind.replace("_", " ")

    def add(self, name: str, item: T) -> T:
        """Register `item` under a new name."""
        if name in self._items:
            homes = [getattr(each, "__module__", None) for each in (self._items[name], item)]
            where = f" (in {homes[0]} and {homes[1]})" if all(homes) else ""
            raise ConfigError(f"two {self.noun}s are named '{name}'{where}; rename one of them.")
        self._items[name] = item
        return item

    def register(self, name: str) -> Callable[[_Item], _Item]:
        """Return a decorator that registers a plug-in under `name` and keeps its type."""

        def decorate(item: _Item) -> _Item:
            self.add(name, cast(T, item))
            return item

        return decorate

    def get(self, name: str, *, given: str = "") -> T:
        """Return the plug-in of that name, which is perhaps a part of what was given.

        Raises:
            ConfigError: The name is unknown; the message suggests the nearest one and lists all.
        """
        self._discover()
        if name not in self._items:
            bare, _, options = name.partition(":")
            if options and bare in self._items:
                raise ConfigError(
                    f"the {self.noun} '{bare}' takes no options, and got '{options}'; give '{bare}' alone."
                )
            raise ConfigError(
                f"no {self.noun} named '{given or name}'{did_you_mean(name, self.names())} Known: "
                f"{', '.join(self.names())}."
            )
        return self._items[name]

    def names(self) -> list[str]:
        """Return all names, sorted."""
        self._discover()
        return sorted(self._items)

    def items(self) -> Iterator[tuple[str, T]]:
        """Yield names and plug-ins, sorted by name."""
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
        for module in pkgutil.iter_modules(getattr(package, "__path__", ())):  # none where one module has all of them
            if not module.name.startswith("_") and module.name not in self._skip:
                importlib.import_module(f"{self._package}.{module.name}")
        for module_name in self._also:
            importlib.import_module(module_name)
        shipped = dict(self._items)
        try:
            for entry in importlib.metadata.entry_points(group=f"{_GROUP}{self.kind}s"):
                self._load(entry)
        except ConfigError:
            self._discovered, self._items = False, shipped
            raise

    def _load(self, entry: importlib.metadata.EntryPoint) -> None:
        """Import the plug-in of another package, which registers itself; raise ConfigError with its name on failure."""
        try:
            entry.load()
        except ConfigError as exc:
            reason = str(exc)
        except Exception as exc:  # a plug-in can fail in any way, and must be named when it does
            reason = f"{type(exc).__name__}: {str(exc).rstrip('.')}."
        else:
            if entry.name in self._items:
                return
            reason = f"it registers no {self.noun} named '{entry.name}'."
        package = f" of the package {entry.dist.name} {entry.dist.version}" if entry.dist else ""
        raise ConfigError(
            f"the {self.noun} plug-in '{entry.name}' ({entry.value}){package} cannot be loaded: {reason} Fix or "
            "uninstall the package."
        )


def from_spec(spec: str, registry: Registry[type[T]]) -> T:
    """Return the plug-in of `NAME` or `NAME:option=value:option=value`; options are the fields of a dataclass.

    Raises:
        ConfigError: The name, an option or a value is invalid; the message lists the valid ones.
    """
    name, *given = spec.split(":")
    cls = registry.get(name)
    what = f"the {registry.noun}"
    kinds = {field.name: get_type_hints(cls)[field.name] for field in fields(cls)}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for part in given:
        option, equals, text = (piece.strip() for piece in part.partition("="))
        option = option.replace("-", "_")
        if option not in kinds or not equals or option in values:
            raise ConfigError(f"{what} '{spec}': '{part}' is not an option of '{name}'; {_options(kinds)}.")
        values[option] = _value(f"{what} '{spec}'", option, text, kinds)
    return cls(**values)


def _value(method: str, option: str, text: str, kinds: Mapping[str, Any]) -> Any:
    """Return the text of an option as a value of its type."""
    for kind in _alternatives(kinds[option]):
        try:
            return _WRITTEN[kind][text.casefold()] if kind in _WRITTEN else kind(text)
        except (KeyError, ValueError):
            continue
    if text in get_args(kinds[option]):
        return text
    raise ConfigError(f"{method}: {option} = '{text}' is not {_expected(kinds[option])}; {_options(kinds)}.")


_WRITTEN: dict[Any, dict[str, Any]] = {bool: {"true": True, "false": False}, NoneType: {"none": None}}
"""Values that are not made by calling their type."""


def _alternatives(kind: Any) -> tuple[Any, ...]:
    """Return the parts of `int | None`; the words of a `Literal` are no types."""
    return () if get_origin(kind) is Literal else get_args(kind) or (kind,)


def _expected(kind: Any) -> str:
    words = get_args(kind) if get_origin(kind) is Literal else [each.__name__ for each in _alternatives(kind)]
    return " or ".join(words).replace("NoneType", "none")


def _options(kinds: Mapping[str, Any]) -> str:
    if not kinds:
        return "it has no options"
    return "its options: " + ", ".join(f"{name} ({_expected(kind)})" for name, kind in kinds.items())


def plugin_packages() -> list[str]:
    """Return the names of other packages with plug-ins of any kind, sorted."""
    installed = importlib.metadata.distributions()
    return sorted({each.name for each in installed if any(e.group.startswith(_GROUP) for e in each.entry_points)})


def did_you_mean(name: str, known: list[str]) -> str:
    """Return the end of an error message that suggests the nearest known name, or a full stop."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean '{close[0]}'?" if close else "."
