"""Runs as HTML: one self-contained page for one or several runs, and views of runs and examples for notebooks."""

import base64
import contextlib
import functools
import hashlib
import importlib.resources
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup, escape

from ice_eval import __version__
from ice_eval.analysis import GridResults
from ice_eval.analysis.measures import Found, Missing, measured, measures
from ice_eval.choices import TableColumns
from ice_eval.errors import MissingExtraError, StorageError, require, without_controls
from ice_eval.files import as_text, cache_folder, write_asked, write_atomically
from ice_eval.report import example as single
from ice_eval.report.analyses import measure_tables
from ice_eval.report.browser import BUDGET, browser_data, script_json
from ice_eval.report.chains import capacity_table, chain_verdict
from ice_eval.report.citations import MEANINGS, headline, headlines, shown_answers, words_table
from ice_eval.report.colours import AGAINST, FILLS, INKS, SUPPORT, operator_colour, verdict_of, word_of_line
from ice_eval.report.conclusion import conclude
from ice_eval.report.grid_page import GridContent, grid_page, link_to, together
from ice_eval.report.provenance import CITATION, PROMPTS, command, provenance
from ice_eval.report.sentences import SCOPE, in_first_setting, lead, notes, place_of
from ice_eval.report.tables import cost_table, run_names, summary_table, tables
from ice_eval.results import ExampleView, RunFolder, Summary
from ice_eval.results.records import CitationSummary
from ice_eval.results.summary import simultaneous as with_simultaneous
from ice_eval.table import interval, percent, unbroken, written

if TYPE_CHECKING:
    from ice_eval.report.figures.figure import Chart

OF_CHAINS = "chain-"
"""Prefix of the names of figures of chains, which have their own section."""
RANKED = ("win-rate-heatmap", "operator-comparison", "operator-bars")
"""Figures whose numbers the page opens with."""
_PAGE = ("elements.js", "theme.js", "tools.js", "tables.js")
_BROWSER = ("words.js", "nulls.js", "image.js", "chain.js", "browser.js")
_FIGURES = ("elements.js", "tools.js", "figures.js")
"""Parts of one script each, since a page cannot import."""


def write_html(
    folders: Sequence[RunFolder],
    path: Path,
    *,
    simultaneous: bool = False,
    columns: TableColumns | None = None,
    budget: int = BUDGET,
    failed: Mapping[str, str] | None = None,
) -> Path:
    """Write the report of one or several runs; `budget` bounds the bytes of their examples.

    `failed` are the errors of runs that belong to these, by name. With `simultaneous`, intervals and verdicts are those
    that hold for all configurations of a run at once. `columns` are those of `summary_table`.

    Raises:
        ConfigError: The file cannot be written.
    """
    content = page(folders, simultaneous=simultaneous, columns=columns, budget=budget, home=path.parent, failed=failed)
    name = "report.html" if content["grid"] is None else "grid.html"
    write_asked(path, html_page(name, content, browser=content["browser"]).encode("utf-8"))
    return path


def write_grid(
    results: GridResults, found: Mapping[str, Found | Missing], path: Path, *, name: str, failed: Mapping[str, str]
) -> Path:
    """Write the page of a grid, without examples: it links to the report of each run; `failed` are errors of runs."""
    grid = GridContent(results, found, name, failed)
    content = page([run.folder for run in results.runs], grid=grid, home=path.parent, budget=0)
    write_asked(path, html_page("grid.html", content).encode("utf-8"))
    return path


def html_page(
    name: str,
    content: Mapping[str, Any],
    *,
    browser: Mapping[str, Any] | None = None,
    own: Sequence[str] = (),
    live: bool = False,
) -> str:
    """Return the page of a template, with its scripts and a policy under which nothing else runs.

    The content has the title of the page, and `drawn` figures if there are any; `browser` is the data of the example
    browser. `own` are further scripts, and a `live` page may ask the server that it came from.
    """
    drawn: Drawings = content.get("drawn", Drawings())
    specs = {"themes": drawn.themes, "specs": {each["name"]: each["spec"] for each in drawn.figures}}
    own_script = "\n".join(map(asset, [*_PAGE, *(_BROWSER if browser else ()), *own]))
    parts = [("browser-data" if browser else "", browser, [own_script])]
    if drawn.figures:
        parts.append(("figure-data", specs, [drawn.library, "\n".join(map(asset, _FIGURES))]))
    scripts = [(id, id and script_json(data), list(map(script_text, sources))) for id, data, sources in parts]
    policy = content_policy([source for _, _, sources in scripts for source in sources], live=live)
    return (
        environment().get_template(name).render(page=content, style=asset("style.css"), scripts=scripts, policy=policy)
    )


def page(
    folders: Sequence[RunFolder],
    *,
    simultaneous: bool = False,
    columns: TableColumns | None = None,
    budget: int = BUDGET,
    grid: GridContent | None = None,
    home: Path = Path(),
    failed: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the content of a report over some runs, written to the folder `home`; the template only lays it out.

    Without a budget it has no examples.
    """
    summaries = [folder.summary() for folder in folders]
    if simultaneous:
        summaries = list(map(with_simultaneous, summaries))
    if (len(folders) > 1 or failed) and grid is None:
        grid = replace(together(folders, summaries), failed=failed or {})
    drawn = drawings(folders, simultaneous=simultaneous, grid=grid.results if grid else None)
    figures = [{name: figure[name] for name in ("name", "title", "caption")} for figure in drawn.figures]
    browser = browser_data(folders, budget=budget) if budget else None
    titles = list(map(" on ".join, run_names(folders)))
    # Over several runs what differs between them becomes a column, and p-values are adjusted jointly.
    all_tables = tables(summaries, simultaneous=simultaneous, columns=columns)
    if any(folder.manifest().config.eraser for folder in folders):
        all_tables += measure_tables(measured({"eraser": measures.get("eraser")()}, folders), folders)
    named = zip(folders, titles, summaries, strict=True)
    runs = [_run(folder, title, summary, home, columns) for folder, title, summary in named]
    for run, record in zip(runs, browser["runs"] if browser else (), strict=browser is not None):
        run |= {"shown": len(record["examples"]), "total": record["total"]}
    of_chains, of_claims = ([run[name] is not None for run in runs] for name in ("chains", "citations"))
    return {
        "title": f"ICE report: {(grid and grid.name) or ', '.join(dict.fromkeys(titles))}",
        "chains": any(of_chains),
        "only_chains": all(of_chains),
        "citations": any(of_claims),
        "only_citations": all(of_claims),
        "explained": any(summary.configurations for summary in summaries),
        "lead": lead(summaries, simultaneous=simultaneous),
        "silences": list(dict.fromkeys(run["conclusion"].silence for run in runs)),
        "runs": runs,
        "tables": all_tables,
        "numbered": any("run" in table.header for table in all_tables),
        "figures": [figure for figure in figures if not figure["name"].startswith(OF_CHAINS)],
        "chain_figures": [figure for figure in figures if figure["name"].startswith(OF_CHAINS)],
        "drawn": drawn,
        "browser": browser,
        "name": grid.name if grid else "",
        "hash": folders[0].manifest().config_hash if grid is None else "",
        "grid": None if grid is None else grid_page(grid, figures, home),
    }


def _run(folder: RunFolder, title: str, summary: Summary, home: Path, columns: TableColumns | None) -> dict[str, Any]:
    manifest = folder.manifest()
    # Disagreements are noted in the first setting of each attribution: the browser finds those in the others.
    first = in_first_setting(summary.agreement)
    noted = replace(summary, agreement=tuple(line for line in summary.agreement if place_of(line) in first))
    return {
        "title": title,
        "folder": as_text(Path(folder.path.name)),
        "link": link_to(folder.path / "report.html", home),
        "chains": None if summary.chains is None else chain_verdict(summary),
        "citations": None if summary.citations is None else _citations(folder, summary.citations),
        "conclusion": conclude(summary, manifest),
        "notes": notes(noted, columns=columns),
        "tables": [table for table in [cost_table(manifest)] if table.rows],
        "provenance": provenance(manifest),
        "command": command(manifest),
    }


def _citations(folder: RunFolder, content: CitationSummary) -> dict[str, Any]:
    answers = shown_answers(folder, content)
    left_out = content.n_answers - len(answers) if answers else 0
    words = [(line, MEANINGS[line.word]) for line in content.words]
    return {"title": headline(content), "words": words, "answers": answers, "left_out": left_out}


@dataclass(frozen=True)
class Drawings:
    """Figures of a page and the script that draws them; without them, the reason."""

    figures: tuple[dict[str, Any], ...] = ()
    """Name, title, caption and Vega-Lite specification of each."""
    themes: dict[str, Any] = field(default_factory=dict)
    library: str = ""
    missing: str = ""


def drawings(folders: Sequence[RunFolder], *, simultaneous: bool = False, grid: GridResults | None = None) -> Drawings:
    """Return all figures of some runs; where a library is missing, the page is written without them and notes it."""
    try:
        altair = require("altair", install="altair", purpose="to draw figures")
        vl_convert = require("vl_convert", install="vl-convert-python", purpose="to put figures into a page")
    except MissingExtraError as exc:
        return Drawings(missing=f"No figures: {exc}")
    from ice_eval.report.figures import chain_figures, figures, grid_figures, theme

    if grid is None:
        drawn = figures(folders, simultaneous=simultaneous)
    else:
        drawn = [*chain_figures(folders), *grid_figures(grid, simultaneous=simultaneous)]
    drawn = [figure for figure in drawn if figure.name not in RANKED]
    if not drawn:
        return Drawings()
    version = ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    try:
        library = _library(version, vl_convert.__version__)
    except (RuntimeError, ValueError) as exc:  # a report is never lost because of its figures
        said = f"altair {altair.__version__} writes Vega-Lite {version}, and vl-convert {vl_convert.__version__} says"
        advice = "Reinstall both: pip install -U altair vl-convert-python"
        return Drawings(missing=f"No figures: {said}: {str(exc).partition(chr(10))[0]}. {advice}")
    # The tests check every figure against the schema; here it would take most of the time.
    found = tuple(
        {"name": f.name, "title": f.title, "caption": f.caption, "spec": f.chart.to_dict(validate=False)} for f in drawn
    )
    return Drawings(found, {"light": theme("light"), "dark": theme("dark")}, library)


@functools.cache
def _library(version: str, made_by: str) -> str:
    """Return Vega, Vega-Lite and Vega-Embed in one script; cached, since building it takes seconds."""
    import vl_convert

    path = cache_folder() / f"vega-lite-{version}-by-{made_by}.js"
    if path.is_file():
        return path.read_text(encoding="utf-8")
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=version)
    with contextlib.suppress(OSError, StorageError):  # a cache that cannot be written costs time, and nothing else
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(path) as stream:
            stream.write(bundle.encode("utf-8"))
    return bundle


@functools.cache
def environment() -> jinja2.Environment:
    # Whatever a user's file holds, a model's name included, is text in the page, never markup.
    strict: dict[str, Any] = {"autoescape": True, "undefined": jinja2.StrictUndefined}
    loader = jinja2.PackageLoader("ice_eval.report")
    found = jinja2.Environment(loader=loader, trim_blocks=True, lstrip_blocks=True, finalize=_named, **strict)
    found.globals |= {"fills": FILLS, "inks": INKS, "prompts": PROMPTS, "single": single}
    found.globals |= {"version": __version__, "citation": CITATION, "scope": SCOPE}
    functions = (operator_colour, shade_css, verdict_of, word_of_line, written)
    found.globals |= {function.__name__: function for function in functions}
    filters = {"unbroken": unbroken, "percent": percent, "interval": interval, "with_code": _with_code, "as_is": escape}
    found.filters |= filters
    return found


def _with_code(text: str) -> Markup:
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(_named(text)))))


def _named(value: Any) -> Any:
    """Return a value without characters that turn the order of numbers; texts of examples are passed `as_is`."""
    return without_controls(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def script_text(source: str) -> Markup:
    """Return a script with `</script` escaped; raise `ValueError` for `<!--`, which cannot be escaped."""
    if "<!--" in source:
        raise ValueError("a page cannot contain a script with '<!--'")
    return Markup(source.replace("</script", "<\\/script").replace("\r\n", "\n"))


def content_policy(scripts: Sequence[str], *, live: bool = False) -> str:
    """Return a policy under which only these scripts run, and nothing is fetched; if `live`, only from its server."""
    digests = (base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii") for script in scripts)
    hashes = " ".join(f"'sha256-{digest}'" for digest in digests)
    forms = "form-action 'self'; connect-src 'self'" if live else "form-action 'none'"
    own = f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"
    return f"{own}; {forms}"


def asset(name: str) -> str:
    """Return the text of a file beside the templates."""
    return (importlib.resources.files("ice_eval.report") / "templates" / name).read_text(encoding="utf-8")


# Views for notebooks. Styles are in the elements, so that nothing leaks into the rest of the notebook. Text has the
# notebook's own colour on transparent shades, so that dark themes work; cells with a word's colour have their own text
# colour.

_STRONGEST = 0.6
"""Opacity of the strongest shade: text on it is readable in light and dark themes."""


def summary_html(folder: RunFolder) -> str:
    """Return the summary of a run as a table with notes, for notebooks."""
    summary, config = folder.summary(), folder.manifest().config
    table = capacity_table(summary) if summary.chains is not None else summary_table([summary])
    if summary.citations is not None and summary.citations.words:
        table = words_table(summary)
    title, said = f"{config.model} on {config.task}", [*headlines([summary]), *notes(summary)]
    return environment().get_template("notebook_run.html").render(title=title, table=table, notes=said)


class ShownExample:
    """One example of a run: its text with attributions in a notebook, lines of text elsewhere."""

    def __init__(self, view: ExampleView) -> None:
        self.view = view

    def __repr__(self) -> str:
        return "\n".join(single.harmless(line).plain for line in single.example_lines(self.view))

    def plot(self) -> "Chart":
        """Return the random sets under each operator on a common axis, with the rationales marked, as a chart."""
        from ice_eval.report.figures import example_nulls

        return example_nulls(self.view).plot()

    def _repr_html_(self) -> str:
        view, example = self.view, self.view.example
        if view.is_claim or view.is_open:
            return Markup('<pre style="white-space:pre-wrap;overflow-wrap:anywhere">{}</pre>').format(repr(self))
        if single.is_chain(view) and example.skip_reason is None:
            found = single.chain_view(example, view.rows, single.operator_of(view))
            return environment().get_template("notebook_chain.html").render(id=example.example_id, chain=found)
        gold = None if example.gold is None else view.labels[example.gold]
        return (
            environment()
            .get_template("notebook_example.html")
            .render(view=view, gold=gold, compared=single.shown(view))
        )


def shade_css(strength: float) -> str:
    """Return the background for a strength between -1 and 1."""
    red, green, blue = single.rgb(SUPPORT if strength > 0 else AGAINST)
    opacity = _STRONGEST * abs(strength)
    return f"background:rgba({red},{green},{blue},{opacity:.2f});" if opacity > 0 else ""
