"""One self-contained HTML file per run."""

from collections.abc import Sequence
from pathlib import Path

import jinja2

from ice_eval import __version__
from ice_eval.errors import ConfigError
from ice_eval.report.tables import cost_table, notes, summary_table, tables
from ice_eval.results import RunFolder, write_atomically


def _template(name: str) -> jinja2.Template:
    # Whatever a user's file holds, a model's name included, is text in the page, never markup.
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("ice_eval.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


def write_html(folders: Sequence[RunFolder], path: Path) -> Path:
    """Write the report of one or several runs."""
    runs = [
        {
            "manifest": folder.manifest(),
            "tables": [*tables([folder.summary()]), cost_table(folder.manifest())],
            "notes": notes(folder.summary()),
        }
        for folder in folders
    ]
    page = _template("report.html").render(runs=runs, version=__version__)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(path) as stream:
            stream.write(page.encode("utf-8"))
    except OSError as exc:
        raise ConfigError(f"{path} cannot be written: {exc.strerror}.") from exc
    return path


def summary_html(folder: RunFolder) -> str:
    """The summary as a table, for notebooks."""
    return _template("table.html").render(table=summary_table([folder.summary()]))
