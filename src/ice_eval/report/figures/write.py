"""Figures as files for papers."""

from collections.abc import Sequence
from pathlib import Path

from ice_eval._extras import require
from ice_eval.errors import ConfigError
from ice_eval.report.figures._base import Figure, Theme
from ice_eval.results import write_atomically

DOTS_PER_INCH = 300


def write_figures(figures: Sequence[Figure], folder: Path, *, theme: Theme = "print") -> dict[str, list[Path]]:
    """Write every figure as SVG, PDF and PNG; the paths by the names of the figures.

    Raises:
        ConfigError: The folder cannot be written.
        MissingExtraError: vl-convert is not installed.
    """
    converter = require("vl_convert", install="ice-eval[figures]", purpose="to write figures to files")
    written: dict[str, list[Path]] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for figure in figures:
            spec = figure.spec(theme)
            contents = {
                "svg": converter.vegalite_to_svg(spec).encode("utf-8"),
                "pdf": converter.vegalite_to_pdf(spec),
                "png": converter.vegalite_to_png(spec, ppi=DOTS_PER_INCH),
            }
            for suffix, content in contents.items():
                path = folder / f"{figure.name}.{suffix}"
                with write_atomically(path) as stream:
                    stream.write(content)
                written.setdefault(figure.name, []).append(path)
    except OSError as exc:
        raise ConfigError(f"figures cannot be written to {folder}: {exc.strerror}.") from exc
    return written
