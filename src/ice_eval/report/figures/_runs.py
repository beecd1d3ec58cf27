"""Run folders as rows for figures: what they share is left out, what tells them apart becomes a label."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ice_eval.rationales import DYNAMIC, Share
from ice_eval.report.run_names import run_names
from ice_eval.report.tables import share
from ice_eval.results import ExampleOutcome, RunFolder, SummaryLine
from ice_eval.results.outcomes import ALL
from ice_eval.results.records import AgreementLine

Line = SummaryLine | AgreementLine
L = TypeVar("L", SummaryLine, AgreementLine)
N = TypeVar("N", SummaryLine, AgreementLine, ExampleOutcome)

_WRITTEN: Mapping[str, Callable[[Any], str]] = {
    "k": lambda value: "own size" if value is None else f"k = {share(value)}",
    "null": lambda value: f"null: {value}",
    "operators": lambda value: " − ".join(value),
}


@dataclass(frozen=True)
class Runs:
    """What the figures of some runs are drawn from."""

    folders: tuple[RunFolder, ...]
    names: tuple[tuple[str, str], ...]
    """Of the model and the task, for every folder; together they tell the folders apart."""
    configurations: tuple[SummaryLine, ...]
    agreement: tuple[AgreementLine, ...]

    @property
    def subject(self) -> tuple[str, ...]:
        """What a reader compares: the attributions of one run, or several runs."""
        return ("attribution",) if len(self.folders) == 1 else ("model", "task")

    @property
    def aside(self) -> tuple[str, ...]:
        """What then gets a panel of its own."""
        return () if len(self.folders) == 1 else ("attribution",)


def runs_of(folders: Sequence[RunFolder]) -> Runs:
    """Read the summaries of some folders, each once."""
    found = tuple({folder.path.resolve(): folder for folder in folders}.values())
    summaries = [folder.summary() for folder in found]
    names = run_names(found)
    both = list(zip(summaries, names, strict=True))
    return Runs(
        found,
        tuple(names),
        configurations=_in_order(_of_run(line, name) for summary, name in both for line in summary.configurations),
        agreement=_in_order(_of_run(line, name) for summary, name in both for line in summary.agreement),
    )


def _of_run(line: L, name: tuple[str, str]) -> L:
    model, task = name
    return replace(named(line), model=model, task=task)


def _in_order(lines: Iterable[L]) -> tuple[L, ...]:
    """By attribution, as they first appear, and k, shares first: panels of several runs would else be in any order.

    The average over operators comes after all of them, whichever run has which.
    """
    found = list(lines)
    first = {name: place for place, name in enumerate(dict.fromkeys(line.attribution for line in found))}

    def place(line: Line) -> tuple[bool, int, bool, bool, float]:
        average = isinstance(line, SummaryLine) and line.operator == ALL
        return average, first[line.attribution], *_place(line.k)

    return tuple(sorted(found, key=place))


def _place(k: Share | None) -> tuple[bool, bool, float]:
    return k is None, k == DYNAMIC, k if isinstance(k, float) else 0.0


def named(line: N) -> N:
    """A line whose attribution says that its rationales have sizes of their own, where they do."""
    return replace(line, attribution=own_size_name(line.attribution)) if line.k is None else line


def own_size_name(attribution: str) -> str:
    """The name of an attribution whose rationales have sizes of their own."""
    return f"{attribution} (own size)"


def labels(lines: Sequence[Line], names: Sequence[str]) -> list[str]:
    """For every line, the values of those names that are not the same in all lines.

    Rationales with a size of their own stand beside those of a single k, and apart from those of several.
    """
    cells = {name: [_WRITTEN.get(name, str)(getattr(line, name)) for line in lines] for name in names}
    single_k = len({line.k for line in lines} - {None}) < 2
    shown = [values for name, values in cells.items() if len(set(values)) > 1 and not (name == "k" and single_k)]
    return [" · ".join(values) for values in zip(*shown, strict=True)] if shown else [""] * len(lines)


def subjects(runs: Runs, lines: Sequence[Line]) -> list[str]:
    """What every line is about: its run where there are several, else its attribution."""
    found = labels(lines, runs.subject)
    return found if any(found) else [str(getattr(line, runs.subject[0])) for line in lines]


def placed(lines: Sequence[Line], *, row: Sequence[str], column: Sequence[str]) -> list[dict[str, str]]:
    """The panel of every line."""
    pairs = zip(labels(lines, row), labels(lines, column), strict=True)
    return [{"row": above, "column": beside} for above, beside in pairs]
