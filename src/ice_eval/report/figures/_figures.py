"""All figures that apply to some runs."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ice_eval.report.figures._base import Figure
from ice_eval.report.figures._examples import Examples, examples_of
from ice_eval.report.figures._runs import Runs, runs_of
from ice_eval.report.figures.agreement import agreement
from ice_eval.report.figures.chains import chain_figures
from ice_eval.report.figures.distribution import distribution
from ice_eval.report.figures.effects import effects
from ice_eval.report.figures.heatmap import heatmap
from ice_eval.report.figures.k_sweep import k_sweep
from ice_eval.report.figures.operators import bars, comparison
from ice_eval.report.figures.p_values import p_values
from ice_eval.report.figures.plausibility import plausibility
from ice_eval.results import RunFolder

_OF_SUMMARIES = (heatmap, comparison, bars, agreement, k_sweep)
_OF_EXAMPLES = (distribution, effects, p_values, plausibility)


def figures(folders: Sequence[RunFolder]) -> list[Figure]:
    """The figures of some runs; those that their data do not allow are left out.

    Those of chains of thought come first. What is drawn from summaries puts all runs into one figure. What is drawn
    from single examples is one figure for every run, named after it where there are several.

    Raises:
        ConfigError: A run is not finished.
    """
    runs = runs_of(folders)
    of_explanations = [*_of_summaries(runs), *_of_examples(runs)] if runs.configurations else []
    return chain_figures(runs.folders) + of_explanations


def overview(folders: Sequence[RunFolder]) -> list[Figure]:
    """The figures that put all runs into one: those that are drawn from summaries.

    Raises:
        ConfigError: A run is not finished.
    """
    return _of_summaries(runs_of(folders))


def _of_summaries(runs: Runs) -> list[Figure]:
    return [figure for draw in _OF_SUMMARIES if (figure := draw(runs)) is not None]


def _of_examples(runs: Runs) -> Iterator[Figure]:
    taken: set[str] = set()
    for folder, (model, task) in zip(runs.folders, runs.names, strict=True):
        lines = [line for line in runs.configurations if (line.model, line.task) == (model, task)]
        examples = examples_of(folder, lines) if lines else None
        drawn = () if examples is None else _drawn(examples)
        suffix = _slug(f"{model} {task}", taken)
        for figure in drawn:
            if len(runs.folders) == 1:
                yield figure
            else:
                title = f"{figure.title}: {model} on {task}"
                yield replace(figure, name=f"{figure.name}-{suffix}", title=title)


def _drawn(examples: Examples) -> list[Figure]:
    return [figure for draw in _OF_EXAMPLES if (figure := draw(examples)) is not None]


def _slug(text: str, taken: set[str]) -> str:
    """A name that any file system takes, unlike those taken."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60] or "run"
    slug = next(name for name in (plain, *(f"{plain}-{i}" for i in range(2, len(taken) + 3))) if name not in taken)
    taken.add(slug)
    return slug
