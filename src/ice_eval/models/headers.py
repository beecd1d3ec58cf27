"""Checks of the sizes that model files state: a few bytes may ask a library for more memory than there is.

Libraries check the rest of a file themselves, and `pretrained` translates their errors.
"""

import contextlib
import math
import re
import struct
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import safetensors
import torch
from torch.nn.modules import module as torch_module
from transformers.utils.hub import cached_file

from ice_eval.errors import ConfigError, without_controls
from ice_eval.files import read_json

_READ = (".json", ".jinja", ".model", ".safetensors", ".txt")
"""Endings of the files that libraries read."""
_OBJECTS = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json")
"""Files of which each holds a JSON object."""
_MOST_REPEATED = 2**20
"""Largest number of layers, labels, experts and such in a configuration."""
_REPEATED = re.compile(r"(num|n)_(?!positions|ctx|param)|.*(layers|blocks|experts)$", re.IGNORECASE)
"""Names of such numbers: libraries fill lists of this length before they look at any weight."""
_VALUES_PER_BYTE, _SPARE_VALUES = 8, 2**28
"""Most values of a model for a byte of its weights, and beside them, for buffers that are computed."""
_MODULES_PER_TENSOR, _SPARE_MODULES = 20, 5_000
_MOST_MODULES, _MOST_VALUES = 30_000, 2**43
"""Limits of a model whose weights are not read."""
_MOST_BUILT = 2**17
"""Most modules of any model: each takes kilobytes, and a file can hold a million tensors of no size."""
_MOST_ITEMS = 2**23
"""Most keys, tensors and values of arrays in the header of a GGUF file; vocabularies have a million."""
_MOST_WRITTEN, _WRITTEN_BY_TABLE = 1000, 32
"""Most characters that a tokenizer may write for one, and how many a table of it counts for."""


class HeaderError(ValueError):
    """A file of a model states what cannot be."""


class Stored(NamedTuple):
    """The tensors in the files of a model."""

    tensors: int
    size: int
    """In bytes."""


def check_kinds(folder: Path) -> None:
    """Raise HeaderError for a pipe or a device in a model's folder: reading one may never end."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.suffix in _READ and path.exists() and not (path.is_file() or path.is_dir()):
            raise HeaderError(f"{path.name} is not a regular file")


def no_object(folder: Path | None) -> HeaderError | None:
    """Return an error about the first JSON file of a model's folder that holds no object."""
    for path in [] if folder is None else [folder / name for name in _OBJECTS]:
        try:
            if path.is_file():
                read_json(path)
        except ConfigError as exc:
            return HeaderError(str(exc))
    return None


def check_tokenizer(path: str, *, revision: str) -> None:
    """Raise HeaderError for a tokenizer whose replacements, one after another, make a text grow without end."""
    file, growth = _file_of(path, "tokenizer.json", revision=revision), 1
    with contextlib.suppress(ConfigError):  # of a damaged file, which the library refuses
        growth = 1 if file is None else _growth(read_json(file).get("normalizer"))
    if growth > _MOST_WRITTEN:
        raise HeaderError(f"tokenizer.json: its normalizer writes up to {_short(growth)} characters for one")


def _growth(normalizer: object) -> int:
    if not isinstance(normalizer, dict):
        return 1
    if isinstance(several := normalizer.get("normalizers"), list):
        return math.prod(map(_growth, several))
    if normalizer.get("type") == "Precompiled":
        return _WRITTEN_BY_TABLE
    return max(1, len(str(normalizer.get("content", ""))))


def check_config(content: object, where: str = "config.json") -> None:
    """Raise HeaderError for a configuration that asks for lists without end."""
    for name, value in content.items() if isinstance(content, dict) else ():
        if isinstance(value, int) and value > _MOST_REPEATED and _REPEATED.match(name):
            raise HeaderError(f"{where}: {name}: at most {_MOST_REPEATED:,} are expected, got {_short(value)}")
        if isinstance(value, int) and value < 0 and name.endswith(("layer", "layers", "head", "heads")):
            raise HeaderError(f"{where}: {name}: a number from 0 on is expected, got {value}")
        check_config(value, where)


def _short(number: int) -> str:
    return f"{number:,}" if number < 10**15 else f"10^{len(str(number)) - 1}"


def stored_tensors(path: str, config: Any, *, revision: str) -> Stored | None:
    """Return what the weights of a model hold by their headers, without reading them; None if there are none.

    `path` is a folder or a name on the hub, from which the files are fetched.

    Raises:
        HeaderError: A file is damaged, or an index names files that are no weights in safetensors.
    """
    named = getattr(config, "transformers_weights", None)
    names = ["model.safetensors", "model.safetensors.index.json"] if named is None else [str(named)]
    if named is not None and not _is_file_name(names[0], ".safetensors", ".safetensors.index.json"):
        raise HeaderError(f"config.json: transformers_weights: {named!r:.60} is no .safetensors file of this folder")
    found = partial(_file_of, path, revision=revision)
    first = next(filter(None, map(found, names)), None)
    if first is None:
        return None
    files = [first] if first.suffix == ".safetensors" else [found(name) for name in _shards(first)]
    is_quantised = getattr(config, "quantization_config", None) is not None
    several = [_in_safetensors(file, is_quantised=is_quantised) for file in files if file is not None]
    return Stored(sum(each.tensors for each in several), sum(each.size for each in several))


def _file_of(path: str, name: str, *, revision: str) -> Path | None:
    """Return a file of a folder or of a model on the hub, or None."""
    lenient = {f"_raise_exceptions_for_{what}": False for what in ("gated_repo", "missing_entries")}
    file = cached_file(path, name, revision=revision, **lenient)
    return None if file is None else Path(file)


def _shards(index: Path) -> list[str]:
    """Return the names of the files that an index lists."""
    try:
        content = read_json(index)
    except ConfigError as exc:
        raise HeaderError(str(exc)) from exc
    listed = content.get("weight_map")
    if not isinstance(listed, dict) or not listed:
        raise HeaderError(f"{index.name}: weight_map: an object from tensors to files is expected")
    names = list(dict.fromkeys(map(str, listed.values())))
    for name in names:
        if not _is_file_name(name, ".safetensors"):
            raise HeaderError(f"{index.name}: weight_map: {name!r} is no .safetensors file of this folder")
    if not isinstance(content.get("metadata"), dict):
        raise HeaderError(f"{index.name}: metadata: an object is expected")
    return names


def _is_file_name(name: str, *endings: str) -> bool:
    return Path(name).name == name and "\\" not in name and name.endswith(endings)


def _in_safetensors(file: Path, *, is_quantised: bool) -> Stored:
    try:
        with safetensors.safe_open(file, framework="numpy") as opened:
            names = opened.keys()
            kinds = {} if is_quantised else {name: opened.get_slice(name).get_dtype() for name in names}
            stored = Stored(len(names), file.stat().st_size)
    except safetensors.SafetensorError as exc:
        raise HeaderError(f"{file.name} is damaged: {exc}") from exc
    # Buffers are stored as integers too, but none of them is a weight. Without a scale, a whole number means nothing.
    for name, kind in kinds.items():
        if name.endswith(".weight") and not kind.startswith(("F", "BF")):
            lacking = "and config.json has no quantization_config that says what they mean"
            raise HeaderError(f"{file.name} is damaged: {name} holds values of the type {kind}, {lacking}")
    return stored


@contextlib.contextmanager
def bounded(stored: Stored | None) -> Iterator[None]:
    """Raise HeaderError as soon as a model that is built here outgrows its weights; build it without memory (meta)."""
    n_modules = n_values = 0
    most_modules, most_values, held = _MOST_MODULES, _MOST_VALUES, "any model"
    if stored is not None:
        most_modules = min(_MODULES_PER_TENSOR * stored.tensors + _SPARE_MODULES, _MOST_BUILT)
        most_values = _VALUES_PER_BYTE * stored.size + _SPARE_VALUES
        held = f"its weights ({stored.tensors:,} tensors, {stored.size:,} bytes)"

    def count(modules: int, values: int) -> None:
        nonlocal n_modules, n_values
        n_modules, n_values = n_modules + modules, n_values + values
        if n_modules > most_modules or n_values > most_values:
            much = f"{_short(n_values)} values" if n_values > most_values else f"{n_modules:,} modules and more"
            raise HeaderError(f"config.json describes a model of {much}, too many for {held}")

    def values(_module: Any, _name: str, tensor: torch.Tensor | None) -> None:
        count(0, 0 if tensor is None else tensor.numel())

    with contextlib.ExitStack() as hooks:
        for handle in (
            torch_module.register_module_module_registration_hook(lambda *_: count(1, 0)),
            torch_module.register_module_parameter_registration_hook(values),
            torch_module.register_module_buffer_registration_hook(values),
        ):
            hooks.callback(handle.remove)
        yield


_SCALARS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_UINT32, _STRING, _ARRAY = 4, 8, 9
"""Types of values in GGUF, those of fixed size with their bytes."""
_LONGEST_NAME = 99


def _bytes_of(n_values: int, kind: int) -> int:
    import gguf  # not installed on every machine that evaluates models from a folder

    try:
        block, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(kind)]
    except (KeyError, ValueError) as exc:
        raise HeaderError(f"a tensor has the unknown type {kind}") from exc
    return n_values // block * size


def check_gguf(path: Path) -> Stored:
    """Return what a GGUF file holds by its header, or raise HeaderError if it counts more than the file has."""
    with path.open("rb") as stream:
        return _Gguf(stream, path.stat().st_size).header()


class _Gguf:
    """A cursor in the header of a GGUF file."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream, self._size, self._n_items, self._order = stream, size, 0, "<"
        self._alignment = 32

    def header(self) -> Stored:
        version = struct.unpack("<I", self._read(8)[4:])[0]
        if version & 0xFFFF == 0:
            self._order, version = ">", version >> 24
        if version not in (2, 3):
            raise HeaderError(f"its version is {version}; 2 or 3 is expected")
        n_tensors, n_keys = self._number("Q"), self._number("Q")
        self._take(n_keys, "keys", least=13)
        n_layers = -1
        for _ in range(n_keys):
            key, kind = self._text(self._number("Q")), self._number("I")
            if key == b"general.architecture" and kind != _STRING:
                raise HeaderError("its general.architecture is not text")
            if key == b"general.alignment" and kind == _UINT32:
                self._alignment = max(1, self._number("I"))
            elif key.endswith(b".block_count") and kind == _UINT32:
                n_layers = max(n_layers, self._number("I"))
            else:
                self._value(kind, depth=0)
        self._take(n_tensors, "tensors", least=24)
        end = next_offset = 0
        for _ in range(n_tensors):
            name = without_controls(self._text(self._number("Q")).decode(errors="replace"))
            layer = re.match(r"blk\.(\d+)\.", name)
            if layer is not None and -1 < n_layers <= int(layer[1]):
                raise HeaderError(f"the tensor {name} is of a layer beyond its block_count of {n_layers}")
            n_values, n_axes = 1, self._number("I")
            self._take(n_axes, "axes of a tensor", least=8)
            for _ in range(n_axes):
                n_values *= self._number("Q")
            if n_values > _VALUES_PER_BYTE * self._size:
                raise HeaderError(f"a tensor has {_short(n_values)} values, and the file {self._size:,} bytes")
            kind, offset = self._number("I"), self._number("Q")
            # One after the other, as llama.cpp demands: otherwise a tensor would be made of the bytes of another.
            if offset != next_offset:
                raise HeaderError(f"the tensor {name} begins at byte {offset:,} in place of {next_offset:,}")
            end = offset + _bytes_of(n_values, kind)
            next_offset = -(-end // self._alignment) * self._alignment
        begin = -(-self._stream.tell() // self._alignment) * self._alignment
        if n_tensors and begin + end > self._size:
            raise HeaderError(f"its tensors need {begin + end:,} bytes, and it has {self._size:,}")
        return Stored(n_tensors, self._size)

    def _value(self, kind: int, *, depth: int) -> None:
        if kind in _SCALARS:
            self._skip(_SCALARS[kind])
        elif kind == _STRING:
            self._skip(self._number("Q"))
        elif kind == _ARRAY and depth < 4:
            own, count = self._number("I"), self._number("Q")
            self._take(count, "values of an array", least=_SCALARS.get(own, 8))
            if own in _SCALARS:
                self._skip(count * _SCALARS[own])
            else:
                for _ in range(count):
                    self._value(own, depth=depth + 1)
        else:
            raise HeaderError(f"a value has the unknown type {kind}")

    def _take(self, count: int, of_what: str, *, least: int) -> None:
        """Count the items that follow, of `least` bytes each."""
        self._n_items += count
        if count * least > self._size - self._stream.tell() or self._n_items > _MOST_ITEMS:
            raise HeaderError(f"its header counts {_short(count)} {of_what}, more than the file holds")

    def _number(self, kind: str) -> int:
        found: int = struct.unpack(self._order + kind, self._read(struct.calcsize(kind)))[0]
        return found

    def _text(self, size: int) -> bytes:
        """Return the beginning of a text."""
        content = self._stream.read(min(size, _LONGEST_NAME))
        self._skip(size - len(content))
        return content

    def _skip(self, size: int) -> None:
        if size > self._size - self._stream.tell():
            raise HeaderError(f"it ends before its header does, after {self._size:,} bytes")
        self._stream.seek(size, 1)

    def _read(self, size: int) -> bytes:
        content = self._stream.read(size)
        if len(content) < size:
            raise HeaderError(f"it ends before its header does, after {self._size:,} bytes")
        return content
