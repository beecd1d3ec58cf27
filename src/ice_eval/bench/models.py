"""The models of a grid: such as are loaded here, and such as a server has."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ice_eval._files import home_expanded
from ice_eval._registry import did_you_mean
from ice_eval.bench import _read
from ice_eval.errors import ConfigError
from ice_eval.models import SERVED, Served, suite_model
from ice_eval.models import models as known_models
from ice_eval.settings import BATCHING, CHAT, LOADING, SERVING, names_of

OF_LOADING = names_of(LOADING)
"""Settings that say how a model is loaded."""
OF_MODELS: Mapping[str, _read.Reader] = _read.readers((*CHAT, *LOADING, *BATCHING))
"""Settings that a grid may give to all of its models, or to one."""
_OF_SERVERS: Mapping[str, _read.Reader] = _read.readers(SERVING)
_KEYS: Mapping[str, _read.Reader] = {
    **dict.fromkeys(("model", "name", "base", "tuning"), _read.text),
    **OF_MODELS,
    **_OF_SERVERS,
}


@dataclass(frozen=True, kw_only=True)
class ModelEntry:
    """A model of a grid."""

    ref: str | Served
    """What `ice run --model` takes; of a model behind a server all that is said of it."""
    name: str
    """What tables call it."""
    base: str | None = None
    """Name of the model that it was tuned from, for the comparison of the two."""
    tuning: str | None = None
    """`base`, or what it was tuned for, as `instruct`; of models of the published suite it is known."""
    settings: Mapping[str, Any]
    """`chat`, `system`, `token_budget` and how it is loaded, as `device`, in place of the grid's."""

    @property
    def is_served(self) -> bool:
        """Whether a server has it."""
        return isinstance(self.ref, Served)

    def settings_within(self, grid: Mapping[str, Any]) -> dict[str, Any]:
        """Those of its runs: the grid's, with its own in their place; nothing is loaded of one behind a server."""
        left_out = OF_LOADING if self.is_served else ()
        return {**{key: value for key, value in grid.items() if key not in left_out}, **self.settings}


def models_of(given: Sequence[object], where: str, folder: Path) -> tuple[ModelEntry, ...]:
    """The models of a grid, as its key `models` lists them.

    Args:
        given: Names, or mappings from keys to values.
        where: What messages call them.
        folder: Where relative paths start.

    Raises:
        ConfigError: Something is not as expected.
    """
    found = tuple(_model(each, where, folder) for each in given)
    names = [entry.name for entry in found]
    _read.refuse_doubles(names, where)
    for entry in found:
        if entry.base is not None and entry.base not in names:
            raise ConfigError(
                f"{where}: the base '{entry.base}' of '{entry.name}' is not among them"
                f"{did_you_mean(entry.base, names)} There are {', '.join(names)}."
            )
    return found


def _model(value: object, where: str, folder: Path) -> ModelEntry:
    given = {"model": _read.text(value, where)} if isinstance(value, str) else _read.mapping(value, where, _KEYS)
    if "model" not in given:
        raise ConfigError(f"{where}: an entry has no 'model'; it has {', '.join(given)}.")
    name = given["model"]
    ref: str | Served = _served(given, where) if name.startswith(SERVED) else _loadable(given, where, folder)
    suite = suite_model(ref) if isinstance(ref, str) else None
    called = Path(ref).name if isinstance(ref, str) and Path(ref).is_absolute() else name
    return ModelEntry(
        ref=ref,
        name=given.get("name", called),
        base=given.get("base"),
        tuning=given.get("tuning", None if suite is None else suite.tuning),
        settings={key: given[key] for key in OF_MODELS if key in given},
    )


def _loadable(given: Mapping[str, Any], where: str, folder: Path) -> str:
    """A name or a path."""
    name: str = given["model"]
    for key in (key for key in _OF_SERVERS if key in given):
        raise ConfigError(
            f"{where}: '{key}' is about a model behind a server, and '{name}' is none; write {SERVED}{name} if a "
            "server has it."
        )
    place = folder / home_expanded(name)
    return str(place.resolve()) if name not in known_models and place.exists() else name


def _served(given: Mapping[str, Any], where: str) -> Served:
    """A model behind a server."""
    name: str = given["model"]
    if "base_url" not in given:
        raise ConfigError(
            f"{where}: '{name}' is behind a server; say where: {{model: {name}, base_url: http://localhost:8000/v1}}."
        )
    for key in (key for key in OF_LOADING if key in given):
        raise ConfigError(f"{where}: '{key}' is about a model that is loaded here, and '{name}' is behind a server.")
    try:
        return Served(name.removeprefix(SERVED), **{key: given[key] for key in _OF_SERVERS if key in given})
    except ConfigError as exc:
        raise ConfigError(f"{where}: {exc}") from exc
