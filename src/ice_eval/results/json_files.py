"""Conversion of records to JSON and back."""

import dataclasses
import functools
import math
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from ice_eval.errors import ConfigError
from ice_eval.files import read_json, write_json
from ice_eval.results.records import SCHEMA, ExampleOutcome, Record
from ice_eval.stats import ReasoningVerdict, Verdict

R = TypeVar("R", bound=Record)

_TYPES = {int: "a whole number", str: "a text", bool: "true or false", dict: "an object", list: "a list"}
_MOST = 2**63 - 1
_FAILED = (
    "example_id", "attribution", "operator", "direction", "k", "null", "n_units", "target", "gold", "error",
)  # fmt: skip
"""Fields of an example that was not evaluated."""


def as_json(record: Record) -> dict[str, Any]:
    """Return a record as JSON content; verdicts get a `text`, and failed examples have no numbers."""
    plain: dict[str, Any] = _plain(record)
    if not isinstance(record, ExampleOutcome):
        return plain
    if record.error is not None:
        return {name: plain[name] for name in _FAILED}
    del plain["error"]
    return plain


def _plain(value: object) -> Any:
    if isinstance(value, Verdict | ReasoningVerdict):
        return {**vars(value), "text": str(value)}
    if dataclasses.is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return value


def write_record(path: Path, record: Record) -> None:
    write_json(path, as_json(record))


def read_record(path: Path, kind: type[R]) -> R:
    """Read a JSON file that has a `schema`, or raise ConfigError."""
    content = read_json(path)
    _check_format(path.parent, content.get("schema"))
    try:
        found: R = _decoded(content, kind, "")
    except _WrongField as exc:
        raise ConfigError(f"{path} is damaged: {exc}.") from exc
    return found


def _check_format(folder: Path, schema: object) -> None:
    if schema in range(1, SCHEMA):
        raise ConfigError(
            f"{folder} was written by an earlier version of ice-eval (format {schema}); this version reads format "
            f"{SCHEMA}. Run the evaluation again."
        )
    if schema is None:
        raise ConfigError(f"{folder} holds files without a `schema`; this version reads format {SCHEMA}.")
    if schema != SCHEMA:
        raise ConfigError(f"{folder} is in format {schema}, and this version reads format {SCHEMA}.")


class _WrongField(Exception):
    """A field is missing, unknown, or of another type."""


_hints = functools.cache(get_type_hints)


@functools.cache
def _parts(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the origin and the arguments of a type."""
    return get_origin(kind), get_args(kind)


def _decoded(value: Any, kind: Any, name: str) -> Any:
    """Return a JSON value as a type of the records, or raise `_WrongField`; `name` is the path of the field."""
    if type(value) is kind and (
        kind in (str, bool) or (kind is int and abs(value) <= _MOST) or (kind is float and math.isfinite(value))
    ):  # by far the most
        return value
    origin, arguments = _parts(kind)
    if kind in (Any, object):
        return value
    if origin in (Union, types.UnionType):
        return _one_of(value, arguments, name)
    if origin is Literal:
        if not any(value == each and type(value) is type(each) for each in arguments):
            raise _WrongField(f"{name} is {value!r} (expected: {', '.join(map(str, arguments))})")
        return value
    if dataclasses.is_dataclass(kind):
        return _record(_of_type(value, dict, name), kind, name)
    if origin is dict:
        items = _of_type(value, dict, name).items()
        return {key: _decoded(each, arguments[1], _path(name, key)) for key, each in items}
    if origin is tuple or (isinstance(kind, type) and issubclass(kind, tuple)):
        return _tuple(_of_type(value, list, name), kind, arguments, name)
    if kind is float:
        if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
            raise _WrongField(f"{name} is {value!r} (a finite number is expected)")
        return float(value)
    return _of_type(value, kind, name)


def _one_of(value: Any, kinds: tuple[Any, ...], name: str) -> Any:
    """Return the value as the first type that it fits."""
    if value is None and type(None) in kinds:
        return None
    problems = []
    for kind in kinds:
        if kind is type(None):
            continue
        try:
            return _decoded(value, kind, name)
        except _WrongField as exc:
            problems.append(exc)
    raise problems[0]


def _record(content: Mapping[str, Any], kind: Any, name: str) -> Any:
    if kind in (Verdict, ReasoningVerdict):  # their text follows from their other fields
        content = {each: value for each, value in content.items() if each != "text"}
    hints = _hints(kind)
    if not content.keys() <= hints.keys():
        raise _WrongField(f"it has an unknown field {_path(name, next(each for each in content if each not in hints))}")
    for each in dataclasses.fields(kind) if len(content) < len(hints) else ():
        has_default = each.default is not dataclasses.MISSING or each.default_factory is not dataclasses.MISSING
        if each.name not in content and not has_default:
            raise _WrongField(f"it has no {_path(name, each.name)}")
    return kind(**{each: _decoded(value, hints[each], _path(name, each)) for each, value in content.items()})


def _tuple(values: list[Any], kind: Any, arguments: tuple[Any, ...], name: str) -> Any:
    """Return a list as a tuple of variable or fixed length, or as a named tuple (without `arguments`)."""
    if arguments[1:] == (...,):
        return tuple(_decoded(each, arguments[0], _path(name, place)) for place, each in enumerate(values))
    kinds = arguments or tuple(_hints(kind).values())
    if len(values) != len(kinds):
        raise _WrongField(f"{name} is {values!r} (a list of {len(kinds)} is expected)")
    pairs = enumerate(zip(values, kinds, strict=True))
    found = [_decoded(each, own, _path(name, place)) for place, (each, own) in pairs]
    return tuple(found) if arguments else kind(*found)


def _of_type(value: Any, kind: type, name: str) -> Any:
    if type(value) is not kind:
        raise _WrongField(f"{name or 'it'} is {value!r} ({_TYPES[kind]} is expected)")
    if kind is int:  # smaller ones have been returned already
        raise _WrongField(f"{name} is a number of more than 64 bits")
    return value


def _path(name: str, field: object) -> str:
    return f"{name}.{field}" if name else str(field)
