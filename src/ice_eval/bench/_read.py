"""Readers of the keys of a grid: each checks one kind of value."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ice_eval._registry import did_you_mean
from ice_eval.errors import ConfigError
from ice_eval.rationales import DYNAMIC, Share
from ice_eval.settings import Kind, Setting

Reader = Callable[[object, str], Any]


def text(value: object, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _wrong(where, "text is expected", value)
    return value.strip()


def names(value: object, where: str) -> tuple[str, ...]:
    """Read a list of names, or a comma-separated text, as on the command line."""
    if isinstance(value, str):
        value = [part for part in value.split(",") if part.strip()]
    if not isinstance(value, list) or not value:
        raise _wrong(where, "a list is expected, as [one, two]", value)
    found = tuple(text(each, where) for each in value)
    if len(set(found)) < len(found):
        raise ConfigError(f"{where} names something twice: {', '.join(found)}.")
    return found


def shares(value: object, where: str) -> tuple[Share, ...]:
    several: list[Any] = value if isinstance(value, list) else [value]
    if not several or not all(each == DYNAMIC or type(each) in {int, float} for each in several):
        raise _wrong(where, f"shares between 0 and 1 are expected, as [0.1, 0.2], or {DYNAMIC}", value)
    return tuple(each if each == DYNAMIC else float(each) for each in several)


def count(value: object, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(where, "a whole number is expected", value)
    return value


def number(value: object, where: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _wrong(where, "a number is expected", value)
    return float(value)


def flag(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong(where, "true or false is expected", value)
    return value


_READERS: Mapping[Kind, Reader] = {
    "text": text,
    "names": names,
    "shares": shares,
    "count": count,
    "number": number,
    "flag": flag,
}


def readers(settings: Iterable[Setting]) -> dict[str, Reader]:
    return {each.name: _READERS[each.kind] for each in settings}


def mapping(value: object, where: str, known: Mapping[str, Reader]) -> dict[str, Any]:
    """Read keys and values, each by its reader; raise for an unknown key, skip one without a value."""
    if not isinstance(value, dict):
        raise _wrong(where, "keys and values are expected", value)
    found = {}
    for given, each in value.items():
        key = str(given).replace("-", "_")
        if key not in known:
            raise ConfigError(f"{where}: no key '{given}'{did_you_mean(key, list(known))} Known: {', '.join(known)}.")
        if each is not None:
            found[key] = known[key](each, f"{where}: {given}")
    return found


def refuse_doubles(names: Sequence[str], where: str) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"{where}: '{twice}' stands there twice; give one of them another name.")


def _wrong(where: str, expected: str, value: object) -> ConfigError:
    return ConfigError(f"{where}: {expected}, not {'nothing' if value is None else f'{value!r:.60}'}.")
