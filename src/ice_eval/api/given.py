"""What a user gives for the name of an attribution, as an `Attribution`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from ice_eval.attributions import Attribution, Computed, Given, explained, method_of
from ice_eval.errors import ConfigError, DataError
from ice_eval.interop import Explanation
from ice_eval.interop import formats as explanation_formats
from ice_eval.records import Example

AttributionSpec = Attribution | ArrayLike | Callable[..., ArrayLike] | str | Path | Explanation | None
"""Beside these, objects of the libraries that `ice_eval.interop` knows, and sequences or mappings of any of them."""


def specs_of(names: Sequence[str], given: object) -> dict[str, AttributionSpec]:
    """What was given for each name: that of a mapping, or None for a known method.

    Raises:
        ConfigError: Nothing was given for a name, and no method is known by it.
    """
    found = {name: given[name] if isinstance(given, Mapping) else None for name in names}
    for name, spec in found.items():
        if spec is None:
            method_of(name)
    return found


def methods_of(specs: Mapping[str, AttributionSpec], examples: Sequence[Example]) -> dict[str, Attribution]:
    """Attributions by name; a known method that a folder already holds needs not be named again.

    Args:
        specs: What was given for each name.
        examples: Those that it is about.

    Raises:
        ConfigError: Something else was given for the name of a known method.
        DataError: What was given cannot be read.
    """
    return _Methods({name: _method(name, spec, examples) for name, spec in specs.items()})


class _Methods(dict[str, Attribution]):
    """A mapping that holds every known method too."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or _is_known(str(name))

    def __missing__(self, name: str) -> Attribution:
        return method_of(name)


def _is_known(name: str) -> bool:
    try:
        method_of(name)
    except ConfigError:
        return False
    return True


_EXPECTED = "a file with explanations, numbers or a function are expected, or None for a known method"


def _method(name: str, spec: AttributionSpec, examples: Sequence[Example]) -> Attribution:
    """What a user gave for a name, as an `Attribution`."""
    if spec is None:
        return method_of(name)
    if isinstance(spec, Attribution):
        return spec
    if _is_known(name.partition(":")[0]):
        raise ConfigError(
            f"'{name}' is the name of a known attribution, and what was given is not computed by it; choose another "
            "name, so that nobody takes one for the other."
        )
    if isinstance(spec, str | Path) and not Path(spec).is_file():
        raise DataError(f"the attribution '{name}' is '{spec}', and there is no such file; {_EXPECTED}.")
    if _is_explanation(spec):
        return explained(name, spec, examples)
    if callable(spec):
        return Computed(function=spec)
    if isinstance(spec, Mapping):
        return Given(values={str(identity): values for identity, values in spec.items()})
    if not isinstance(spec, Iterable):
        raise DataError(f"the attribution '{name}' is {spec!r:.60}; {_EXPECTED}.")
    rows = list(spec)
    if len(rows) > len(examples):
        raise DataError(f"the attribution '{name}' has {len(rows)} arrays, and the data hold {len(examples)} examples.")
    return Given(values={example.id: row for example, row in zip(examples, rows, strict=False)})


def _is_explanation(spec: object) -> bool:
    """Whether it is a file, or something of a known library, alone or several in a sequence or mapping."""
    if isinstance(spec, str | Path | Explanation) or _is_readable(spec):
        return True
    several = list(spec.values()) if isinstance(spec, Mapping) else spec
    if not isinstance(several, list | tuple) or not several:
        return False
    return isinstance(several[0], Explanation) or _is_readable(several[0])


def _is_readable(spec: object) -> bool:
    return not isinstance(spec, np.ndarray) and any(known().reads(spec) for _, known in explanation_formats.items())
