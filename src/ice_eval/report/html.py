"""One self-contained HTML file for one or several runs."""

import importlib.resources
from collections.abc import Sequence
from pathlib import Path

from ice_eval.errors import ConfigError
from ice_eval.files import write_atomically
from ice_eval.report._templates import template
from ice_eval.report.browser import BUDGET
from ice_eval.report.colours import WORD_COLOURS, WORD_TEXT_COLOURS, operator_colour
from ice_eval.report.embed import content_policy, script_json, script_text
from ice_eval.report.page import page
from ice_eval.results import RunFolder

_BROWSER = ("elements.js", "histogram.js", "chain.js", "browser.js")
"""One script: what a page holds cannot import."""


def report_html(folders: Sequence[RunFolder], *, budget: int = BUDGET) -> str:
    """The report of one or several runs; `budget` bounds the bytes that their examples take."""
    content = page(folders, budget=budget)
    browser, figures = script_text("\n".join(map(_asset, _BROWSER))), script_text(_asset("figures.js"))
    library = script_text(content["library"])
    return template("report.html").render(
        page=content,
        style=_asset("style.css"),
        scripts={"browser": browser, "figures": figures, "library": library},
        policy=content_policy([browser, figures, library]),
        data={"browser": script_json(content["browser"]), "figures": script_json(content["drawn"])},
        fills=WORD_COLOURS,
        inks=WORD_TEXT_COLOURS,
        operator_colour=operator_colour,
    )


def write_html(folders: Sequence[RunFolder], path: Path, *, budget: int = BUDGET) -> Path:
    """Write the report of one or several runs."""
    text = report_html(folders, budget=budget)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(path) as stream:
            stream.write(text.encode("utf-8"))
    except OSError as exc:
        raise ConfigError(f"{path} cannot be written: {exc.strerror}.") from exc
    return path


def _asset(name: str) -> str:
    return (importlib.resources.files("ice_eval.report") / "templates" / name).read_text(encoding="utf-8")
