"""Figures as files for papers."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from ice_eval.errors import ConfigError, require
from ice_eval.files import write_atomically
from ice_eval.report.figures._base import Figure, Theme

DOTS_PER_INCH = 300


@dataclass(frozen=True)
class FigureFiles:
    """A figure and where it was written."""

    figure: Figure
    paths: tuple[Path, ...]


def write_figures(figures: Sequence[Figure], folder: Path, *, theme: Theme = "print") -> list[FigureFiles]:
    """Write every figure as SVG, PDF and PNG, named after it.

    All are drawn before the first is written, so a figure that cannot be drawn leaves no half of a set.

    Raises:
        ConfigError: The folder cannot be written.
        MissingExtraError: vl-convert is not installed.
    """
    converter = require("vl_convert", install="vl-convert-python", purpose="to write figures to files")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        drawn = [(figure, _drawn(figure.spec(theme), converter)) for figure in figures]
        return [
            FigureFiles(figure, tuple(_written(folder / f"{figure.name}.{kind}", c) for kind, c in contents.items()))
            for figure, contents in drawn
        ]
    except OSError as exc:
        raise ConfigError(f"figures cannot be written to {folder}: {exc.strerror}.") from exc


def _drawn(spec: dict[str, Any], converter: ModuleType) -> dict[str, bytes]:
    return {
        "svg": converter.vegalite_to_svg(spec).encode("utf-8"),
        "pdf": converter.vegalite_to_pdf(spec),
        "png": converter.vegalite_to_png(spec, ppi=DOTS_PER_INCH),
    }


def _written(path: Path, content: bytes) -> Path:
    with write_atomically(path) as stream:
        stream.write(content)
    return path
