"""Cells of a grid of win rates, from finished runs or published tables, and comparisons between them."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np

from ice_eval.errors import DataError
from ice_eval.nulls import SIZE
from ice_eval.rationales import Share
from ice_eval.records import NOT_SET, Kind
from ice_eval.results import Configuration, Summary, SummaryLine
from ice_eval.results.chains import POSITIVE_RAW
from ice_eval.results.folder import FinishedRun
from ice_eval.results.json_files import as_json
from ice_eval.results.ledger import NO_NAMES
from ice_eval.results.outcomes import ALL
from ice_eval.results.records import AgreementLine, ChainSummary, RobustnessLine
from ice_eval.stats import WEAKLY_FAITHFUL, Difference, paired_difference, reaches, taxonomy
from ice_eval.words import word_spans

TextLength = Literal["short", "long"]
L = TypeVar("L", SummaryLine, AgreementLine, RobustnessLine)

POSITIVE_EVIDENCE = WEAKLY_FAITHFUL
"""Smallest win rate that the paper calls evidence for an explanation."""
LONG_TEXT = 100
"""Smallest median number of tokens of a long text."""
CONTROLS = frozenset({"random", "first-k", "last-k", "longest-words", "rarest-tokens", "lexicon", "human"})
"""Attributions that are baselines, and are never recommended."""


def is_control(attribution: str) -> bool:
    """Return True for a baseline, with or without options."""
    return attribution.partition(":")[0] in CONTROLS


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One win rate and its configuration."""

    model: str
    task: str
    attribution: str
    operator: str
    win_rate: float
    k: Share | None = 0.2
    """None for rationales with a size of their own."""
    direction: str = "sufficiency"
    null: str = SIZE
    prompt: str = ""
    text_length: TextLength | None = None
    n: int | None = None

    def key(self, *, without: str = "") -> tuple[object, ...]:
        """Return the fields that identify a cell of a grid, except one."""
        return tuple(getattr(self, name) for name in _IDENTITY if name != without)


_IDENTITY = tuple(field.name for field in fields(Cell) if field.name not in {"win_rate", "text_length", "n"})


class Pair(NamedTuple):
    """Two cells that differ in one field."""

    first: Cell
    second: Cell

    @property
    def gap(self) -> float:
        """Win rate of the first minus that of the second."""
        return self.first.win_rate - self.second.win_rate


def cells_of(
    lines: Iterable[SummaryLine], *, prompt: str = "", text_lengths: Mapping[str, TextLength] | None = None
) -> list[Cell]:
    """Return the cells of a run; configurations without an example are skipped.

    `prompt` is the name of its prompt, where several were tried; `text_lengths` is the length of the texts by task,
    which a summary does not contain.
    """
    same = [name for name in (*_IDENTITY, "n") if name != "prompt"]
    lengths = text_lengths or {}
    return [
        Cell(
            **{name: getattr(line, name) for name in same},
            win_rate=line.win_rate,
            prompt=prompt,
            text_length=lengths.get(line.task),
        )
        for line in lines
        if line.win_rate is not None
    ]


def grouped(cells: Iterable[Cell], *, over: str) -> list[list[Cell]]:
    """Return groups of cells that differ in `over` alone, in input order; raise `DataError` for duplicates."""
    several = list(cells)
    for key, count in Counter(cell.key() for cell in several).most_common(1):
        if count > 1:
            raise DataError(
                f"{count} win rates are given for {', '.join(str(part) for part in key if part != '')}; "
                "one per configuration is expected: leave out the others, or give their runs other names."
            )
    groups: dict[tuple[object, ...], list[Cell]] = defaultdict(list)
    for cell in several:
        groups[cell.key(without=over)].append(cell)
    return list(groups.values())


def paired(cells: Iterable[Cell], *, over: str, first: str, second: str) -> list[Pair]:
    """Return the pairs of cells that differ in the field `over` alone: `first` in one and `second` in the other."""
    by_value = ({getattr(cell, over): cell for cell in group} for group in grouped(cells, over=over))
    return [Pair(values[first], values[second]) for values in by_value if first in values and second in values]


class OperatorDependence(NamedTuple):
    """The same configurations under two operators; means, median and `widest` are None without any."""

    pairs: tuple[Pair, ...]
    crossings: tuple[Pair, ...]
    """Pairs on opposite sides of the threshold, which itself belongs to the upper side."""
    gaps: list[float]
    """Win rate under the first operator minus that under the second, of each configuration."""
    first_exceeds: float | None
    """Share of configurations with a higher win rate under the first operator."""
    median_gap: float | None
    mean_gap: float | None
    widest: Pair | None
    """Configuration with the largest gap in either direction."""


def operator_dependence(
    cells: Iterable[Cell], *, operators: tuple[str, str] = ("delete", "infill"), threshold: float = POSITIVE_EVIDENCE
) -> OperatorDependence:
    """Compare point estimates of two operators over all configurations with both; a run's `agreement` has the tests."""
    pairs = paired(cells, over="operator", first=operators[0], second=operators[1])
    gaps = [pair.gap for pair in pairs]
    return OperatorDependence(
        tuple(pairs),
        tuple(p for p in pairs if reaches(p.first.win_rate, threshold) != reaches(p.second.win_rate, threshold)),
        gaps,
        first_exceeds=float(np.mean([gap > 0 for gap in gaps])) if gaps else None,
        median_gap=float(np.median(gaps)) if gaps else None,
        mean_gap=float(np.mean(gaps)) if gaps else None,
        widest=max(pairs, key=lambda pair: abs(pair.gap), default=None),
    )


def anti_faithful(cells: Sequence[Cell]) -> list[Cell]:
    """Return the explanations that random sets of equal size beat more often than not, the worst first."""
    found = (cell for cell in cells if taxonomy(cell.win_rate) == "anti-faithful")
    return sorted(found, key=lambda cell: cell.win_rate)


class WinRateSpread(NamedTuple):
    """The win rates of one configuration over all values of one choice."""

    cells: tuple[Cell, ...]
    lowest: Cell
    highest: Cell
    width: float
    increases: bool
    """True if every value of the choice gives a higher win rate than the one before it."""


def spreads(cells: Iterable[Cell], *, over: Literal["k", "prompt"]) -> list[WinRateSpread]:
    """Return the spread of each configuration with at least two values of the choice, the widest first."""
    # Over k, rationales of a dynamic or own size are skipped.
    ordered, found = [cell for cell in cells if over == "prompt" or isinstance(cell.k, float)], []
    for group in grouped(ordered, over=over):
        group.sort(key=lambda cell: getattr(cell, over))
        low, high = (extreme(group, key=lambda cell: cell.win_rate) for extreme in (min, max))
        increases = all(first.win_rate < second.win_rate for first, second in pairwise(group))
        if len(group) > 1:
            found.append(WinRateSpread(tuple(group), low, high, high.win_rate - low.win_rate, increases))
    return sorted(found, key=lambda each: -each.width)


class EraserAgreement(NamedTuple):
    """The verdicts of a raw ERASER score and of a win rate on the same configurations."""

    agree: tuple[bool | None, ...]
    """None where a number is missing."""
    disagreements: int
    eraser_only: int
    """Number of disagreements in which only the raw score is positive."""


def eraser_agreement(raw: Sequence[float | None], win_rates: Sequence[float | None]) -> EraserAgreement:
    """Compare the verdict of a raw score with that of a win rate, each by its own threshold.

    A missing number, None or NaN, is no verdict: its configuration neither agrees nor disagrees.
    """
    if len(raw) != len(win_rates):
        raise DataError(f"need a win rate for every raw score, got {len(raw)} scores and {len(win_rates)} win rates")
    pairs = list(zip(_positive(raw, POSITIVE_RAW), _positive(win_rates, POSITIVE_EVIDENCE), strict=True))
    agree = tuple(None if None in pair else pair[0] == pair[1] for pair in pairs)
    return EraserAgreement(agree, agree.count(False), pairs.count((True, False)))


def _positive(values: Sequence[float | None], threshold: float) -> list[bool | None]:
    return [None if value is None or np.isnan(value) else reaches(value, threshold) for value in values]


class TextFacts(NamedTuple):
    """Size of the texts of a run, as far as the model saw them."""

    tokens_median: float
    tokens_per_word: float
    tokens_per_character: float

    @property
    def length(self) -> TextLength:
        return "long" if self.tokens_median >= LONG_TEXT else "short"


@dataclass(frozen=True, kw_only=True)
class GridRun(FinishedRun):
    """A finished run, under the names of the grid."""

    name: str
    model: str
    task: str
    prompt: str = ""
    language: str = "en"
    base: str | None = None
    """Name in the grid of the model that this one was tuned from."""
    tuning: str | None = None
    """`base`, or the kind of tuning; None where it is unknown."""

    @property
    def head(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in ("model", "task", "prompt", "language")}

    @property
    def token_counts(self) -> dict[str, float | None]:
        """Median tokens of a text, and tokens per word and character; None each where every example was skipped."""
        return {name: getattr(self.texts, name, None) for name in TextFacts._fields}

    def paired(self, first: Configuration, second: Configuration, *, level: float = 0.95) -> Difference | None:
        """Compare win rates, second minus first, over the examples of both; None where they share none."""
        one, other = self.win_rates[first], self.win_rates[second]
        shared = [each for each in one if each in other]
        if not shared:
            return None
        rates = (np.array([each[name] for name in shared]) for each in (one, other))
        return paired_difference(*rates, groups=self.groups_of(shared), level=level)

    @cached_property
    def confidence(self) -> float | None:
        """Mean probability of the explained label on whole texts."""
        return float(np.mean(list(self.confidences.values()))) if self.confidences else None

    @cached_property
    def texts(self) -> TextFacts | None:
        """Tokens, words and characters of the texts; None where every example was skipped."""
        # Tokens of a text: those of the whole input minus those of the empty one.
        tokens: Counter[str] = Counter()
        for part in self.folder.parts():
            ledger = self.folder.ledger(part, NO_NAMES, inputs=True, kinds=(Kind.FULL, Kind.EMPTY))
            head, lengths = ledger.head, ledger.inputs.lengths
            for place in np.flatnonzero(head["operator"] == NOT_SET).tolist():
                sign = 1 if head["kind"][place] == Kind.FULL else -1
                tokens[ledger.names.examples[head["example"][place]]] += sign * int(lengths[place])
        rows, texts = [row for name, row in self.inputs.items() if name in tokens], list[str]()
        for row in rows:  # explained fields, without truncated ends
            ends: Counter[str] = Counter()
            for span in row.spans:
                ends[span.field] = max(ends[span.field], span.end)
            texts += [row.fields[name][:end] for name, end in ends.items()]
        n_words = sum(len(word_spans(text)) for text in texts)
        if not n_words:
            return None
        counts = np.array([tokens[row.example_id] for row in rows])
        n_tokens, n_characters = counts.sum(), sum(map(len, texts))
        return TextFacts(float(np.median(counts)), float(n_tokens / n_words), float(n_tokens / n_characters))


@dataclass(frozen=True)
class GridLine(Generic[L]):
    """A line of a run's summary, under the grid's names of model and task."""

    run: GridRun
    line: L

    def as_dict(self) -> dict[str, Any]:
        return {"run": self.run.name, **as_json(self.line), **self.run.head}


@dataclass(frozen=True)
class GridResults:
    runs: tuple[GridRun, ...]
    configurations: tuple[GridLine[SummaryLine], ...]
    agreement: tuple[GridLine[AgreementLine], ...]
    robustness: tuple[GridLine[RobustnessLine], ...]
    chains: Mapping[str, ChainSummary] = field(default_factory=dict)
    """Name of a run about chains of thought -> its statistics of chains."""

    @cached_property
    def cells(self) -> list[Cell]:
        found = []
        for run in self.runs:
            lengths = {} if run.texts is None else {run.task: run.texts.length}
            found += cells_of(self.lines_of(run), prompt=run.prompt, text_lengths=lengths)
        return [cell for cell in found if cell.operator != ALL]

    def lines_of(self, run: GridRun) -> list[SummaryLine]:
        return [each.line for each in self.configurations if each.run.name == run.name]

    def several(self, name: Literal["prompt", "language"]) -> bool:
        """Return True if runs with configurations differ in a field."""
        return len({getattr(each.run, name) for each in self.configurations}) > 1


def grid_results(runs: Sequence[GridRun], summaries: Sequence[Summary]) -> GridResults:
    """Combine the summaries of a grid's runs; their p-values are already adjusted over all of them."""
    both = list(zip(runs, summaries, strict=True))

    def named(lines_of: Callable[[Summary], Iterable[L]]) -> tuple[GridLine[L], ...]:
        found = ((run, line) for run, summary in both for line in lines_of(summary))
        return tuple(GridLine(run, replace(line, model=run.model, task=run.task)) for run, line in found)

    return GridResults(
        tuple(runs),
        configurations=named(lambda summary: summary.configurations),
        agreement=named(lambda summary: summary.agreement),
        robustness=named(lambda summary: summary.robustness),
        chains={run.name: summary.chains for run, summary in both if summary.chains is not None},
    )
