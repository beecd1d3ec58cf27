"""The figures of a page: their specifications, and one copy of the library that draws them."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ice_eval.errors import MissingExtraError, StorageError, require
from ice_eval.files import cache_folder, write_atomically
from ice_eval.results import RunFolder

OF_CHAINS = "chain-"
"""How the names of figures of chains begin, which stand in a section of their own."""


@dataclass(frozen=True)
class Drawings:
    """What a page needs to draw its figures; without them, the reason."""

    figures: tuple[dict[str, Any], ...] = ()
    """Name, title, caption and Vega-Lite specification of each."""
    themes: dict[str, Any] = field(default_factory=dict)
    """Configuration for light and dark pages."""
    library: str = ""
    missing: str = ""


def drawings(folders: Sequence[RunFolder]) -> Drawings:
    """All figures of some runs. Where a library is missing the page is written without them, and says so."""
    try:
        altair = require("altair", install="altair", purpose="to draw figures")
        vl_convert = require("vl_convert", install="vl-convert-python", purpose="to put figures into a page")
    except MissingExtraError as exc:
        return Drawings(missing=f"No figures: {exc}")
    from ice_eval.report.figures import figures, theme

    found = tuple(
        {"name": each.name, "title": each.title, "caption": each.caption, "spec": each.chart.to_dict()}
        for each in figures(folders)
    )
    if not found:
        return Drawings()
    version = ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    try:
        library = _library(version, vl_convert.__version__)
    except (RuntimeError, ValueError) as exc:  # a report is never lost because of its figures
        reason = str(exc).partition("\n")[0]
        return Drawings(
            missing=f"No figures: altair {altair.__version__} writes Vega-Lite {version}, and vl-convert "
            f"{vl_convert.__version__} says: {reason}. Install both anew: pip install -U altair vl-convert-python"
        )
    return Drawings(found, {name: theme(name) for name in ("light", "dark")}, library)


@functools.cache
def _library(version: str, made_by: str) -> str:
    """Vega, Vega-Lite and Vega-Embed in one script; it takes seconds to put together, so it is kept."""
    import vl_convert

    path = cache_folder() / f"vega-lite-{version}-by-{made_by}.js"
    if path.is_file():
        return path.read_text(encoding="utf-8")
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=version)
    _keep(path, bundle)
    return bundle


def _keep(path: Path, text: str) -> None:
    """Keep it for later runs; a cache that cannot be written costs time, and nothing else."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(path) as stream:
            stream.write(text.encode("utf-8"))
    except (OSError, StorageError):
        pass
