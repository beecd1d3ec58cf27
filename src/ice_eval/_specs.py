"""Plug-ins by name and options, as people write them: `lime:n_samples=200`."""

from collections.abc import Mapping
from dataclasses import fields
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from ice_eval._registry import Registry
from ice_eval.errors import ConfigError

T = TypeVar("T")


def from_spec(spec: str, registry: Registry[type[T]]) -> T:
    """What `NAME` or `NAME:option=value:option=value` stands for; options are the fields of a dataclass.

    Raises:
        ConfigError: There is no such name or option, or a value does not fit; the message lists what is known.
    """
    name, *given = spec.split(":")
    cls = registry.get(name)
    what = f"the {registry.kind.replace('_', ' ')}"
    kinds = {field.name: get_type_hints(cls)[field.name] for field in fields(cls)}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for part in given:
        option, equals, text = (piece.strip() for piece in part.partition("="))
        option = option.replace("-", "_")
        if option not in kinds or not equals or option in values:
            raise ConfigError(f"{what} '{spec}': '{part}' is no option of '{name}'; {_options(kinds)}.")
        values[option] = _value(f"{what} '{spec}'", option, text, kinds)
    return cls(**values)


def _value(method: str, option: str, text: str, kinds: Mapping[str, Any]) -> Any:
    """What was written for an option, as a value of its type."""
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
    """`int | None` as its parts; the words of a `Literal` are no types."""
    return () if get_origin(kind) is Literal else get_args(kind) or (kind,)


def _expected(kind: Any) -> str:
    words = get_args(kind) if get_origin(kind) is Literal else [each.__name__ for each in _alternatives(kind)]
    return " or ".join(words).replace("NoneType", "none")


def _options(kinds: Mapping[str, Any]) -> str:
    if not kinds:
        return "it has no options"
    return "its options: " + ", ".join(f"{name} ({_expected(kind)})" for name, kind in kinds.items())
