"""Analyses of a grid over several runs; every answer is lines of numbers and notes."""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np

from ice_eval import stats
from ice_eval.analysis import grid as grids
from ice_eval.analysis._base import Found, Missing, Part, fields_of, filled, grouped_by, listed
from ice_eval.analysis.chains import raw_scores, reasoning_patterns
from ice_eval.analysis.grid import Cell, GridResults, GridRun, Pair, WinRateSpread, is_control, operator_dependence
from ice_eval.analysis.variance import variance
from ice_eval.rationales import Share
from ice_eval.results import SummaryLine, differences
from ice_eval.results.outcomes import ALL
from ice_eval.results.records import flat
from ice_eval.seeding import rng_for
from ice_eval.table import CellKind, Column, N, columns, estimate, naming

LEVEL = 0.05
"""Level of p-values that are adjusted over a whole grid."""
_PLACE = ("null", "direction", "k")
_Line = dict[str, Any]


# --- operators ----------------------------------------------------------------------------------------------------

_OPERATOR_COLUMNS = (
    *naming("attribution", "operators", "texts"),
    *columns("count", n_configurations="configurations", n_crossings="cross 55 %", n_confirmed="for sure"),
    *columns("percent", first_exceeds="first higher"),
    *columns("points", mean_gap="mean gap", median_gap="median gap", widest_gap="widest gap"),
    *columns("text", widest_where="where"),
)
_CROSSING_PLACE = ("prompt", "attribution", "null", "direction", "k")
_CROSSING_COLUMNS = (
    *naming(*_CROSSING_PLACE, "operators"),
    *columns("percent", first="first", second="second"),
    *estimate("gap", "gap", "points"),
    *naming("crossing"),
)


def operators(grid: GridResults) -> Found | Missing:
    """Compare every pair of operators over all configurations that have both, all texts together and by length."""
    pairs = list(itertools.combinations(dict.fromkeys(cell.operator for cell in grid.cells), 2))
    if not pairs:
        return Missing("the grid has one operator; give two or more")
    known = _agreements(grid)
    lines = [line for pair in pairs for line in _operator_lines(grid.cells, pair, known)]
    crossings = [
        {
            **fields_of(pair.first, "model", "task", *_CROSSING_PLACE),
            "operators": f"{pair.first.operator} − {pair.second.operator}",
            "first": pair.first.win_rate,
            "second": pair.second.win_rate,
            "gap": pair.gap,
            **known[_pair_key(pair)],
        }
        for each in pairs
        for pair in operator_dependence(grid.cells, operators=each).crossings
    ]
    notes = (
        "Gaps are the first operator's win rate less the second's; a crossing is sure where the 95 % "
        "intervals lie on opposite sides of 55 %.",
        f"Texts are long if their median length is {grids.LONG_TEXT} tokens or more.",
    )
    crossing = Part("Configurations that cross 55 %", _CROSSING_COLUMNS, crossings)
    return Found((Part("Operator dependence", _OPERATOR_COLUMNS, lines), *filled(crossing)), notes)


def _agreements(grid: GridResults) -> dict[tuple[object, ...], _Line]:
    """Return interval and crossing of every pair of operators in both orders: extended runs may have either."""
    found: dict[tuple[object, ...], _Line] = {}
    for each in grid.agreement:
        line, (first, second) = each.line, each.line.operators
        place = (line.model, line.task, line.attribution, line.k, line.direction, line.null, each.run.prompt)
        turned = None if line.gap_ci is None else [-line.gap_ci.high, -line.gap_ci.low]
        found[*place, first, second] = {"gap_ci": line.gap_ci, "crossing": line.crosses_threshold}
        found[*place, second, first] = {"gap_ci": turned, "crossing": line.crosses_threshold}
    return found


def _pair_key(pair: Pair) -> tuple[object, ...]:
    return (*pair.first.key(without="operator"), pair.first.operator, pair.second.operator)


def _operator_lines(
    cells: Sequence[Cell], pair: tuple[str, str], known: Mapping[tuple[object, ...], _Line]
) -> Iterator[_Line]:
    for place, chosen in grouped_by(cells, "attribution"):
        lengths = [each for each in ("short", "long") if any(cell.text_length == each for cell in chosen)]
        # Texts of one length need no line of their own: they are all texts.
        for texts in ["all", *(lengths if len(lengths) > 1 else ())]:
            found = operator_dependence([c for c in chosen if texts in ("all", c.text_length)], operators=pair)
            if found.widest is None:
                continue
            widest = found.widest.first
            yield {
                **place,
                "operators": " − ".join(pair),
                "texts": texts,
                "n_configurations": len(found.pairs),
                "n_crossings": len(found.crossings),
                "n_confirmed": sum(known[_pair_key(each)]["crossing"] == "yes" for each in found.crossings),
                **fields_of(found, "first_exceeds", "mean_gap", "median_gap"),
                "widest_gap": found.widest.gap,
                "widest_where": ", ".join(filter(None, (widest.model, widest.task, widest.prompt))),
            }


# --- worse than random --------------------------------------------------------------------------------------------

_ANTI_FAITHFUL = "anti-faithful"
_WORSE_COLUMNS = (
    *naming("prompt", "attribution", "null", "operator", "direction", "k"),
    *N,
    *estimate("win_rate", "win rate", "percent"),
    Column("p_adjusted", "p adj.", "p-value"),
    *naming("verdict"),
)


def worse_than_random(grid: GridResults) -> Found | Missing:
    """Return anti-faithful explanations whose p-value holds over the whole grid, the worst first."""
    below = [each for each in grid.configurations if each.line.operator != ALL and each.line.taxonomy == _ANTI_FAITHFUL]
    if not below:
        return Missing("no win rate is below 50 %")
    named = (each for each in below if each.line.verdict is not None and each.line.verdict.word == _ANTI_FAITHFUL)
    sure = sorted((x for x in named if _is_significant(x.line)), key=lambda each: each.line.win_rate or 0.0)
    fields = ("model", "task", *(column.field for column in _WORSE_COLUMNS))
    lines = [{name: {**flat(each.line), **each.run.head}[name] for name in fields} for each in sure]
    rest = (
        f"{len(below) - len(sure)} further win rates below 50 % are not significant: their intervals reach 50 %, or "
        f"their p-values, adjusted over the grid, are above {LEVEL:g}."
    )
    return Found(filled(Part("Anti-faithful", _WORSE_COLUMNS, lines)), (rest,) if len(below) > len(sure) else ())


def _is_significant(line: SummaryLine) -> bool:
    return line.p_adjusted is not None and line.p_adjusted <= LEVEL


# --- prompts and sizes --------------------------------------------------------------------------------------------

_PROMPT_PLACE = ("attribution", "null", "operator", "direction", "k")
_SIZE_PLACE = ("prompt", "attribution", "null", "operator", "direction")


def _range_columns(choice: str, where: str, kind: CellKind) -> tuple[Column, ...]:
    """Return columns of the lowest and the highest win rate over a choice, and of what gives them."""
    ends = (("lowest", where), ("highest", f"{where} "))  # no two columns have the same header
    found = [(Column(end, end, "percent"), Column(f"{end}_{choice}", header, kind)) for end, header in ends]
    return (*itertools.chain(*found), Column("width", "range", "points"))


_PROMPT_SPREAD_COLUMNS = (
    *naming(*_PROMPT_PLACE),
    *columns("count", n_prompts="prompts"),
    *_range_columns("prompt", "under", "text"),
)
_SIZE_COLUMNS = (
    *naming(*_SIZE_PLACE),
    *_range_columns("k", "at k", "share"),
    *columns("text", increases="grows with k"),
)
_CORRELATION_COLUMNS = (*naming(*_PROMPT_PLACE), Column("n", "runs", "count"), Column("r", "r", "signed"))
_CONTRAST = ("attention", "gradient")


def prompts(grid: GridResults) -> Found | Missing:
    """Return accuracy, confidence and win rates under every prompt, their range, and their correlation."""
    found = grids.spreads(grid.cells, over="prompt")
    if not found:
        return Missing("no task has two prompts; name several as `prompts`")
    varied = {cell for spread in found for cell in spread.cells}
    cells = [cell for cell in grid.cells if cell in varied]
    names = list(dict.fromkeys(cell.attribution for cell in cells))
    contrast = [Column("difference", "Δ", "points")] if set(_CONTRAST) <= set(names) else []
    shown = (
        *naming("prompt", "operator", "null", "direction", "k"),
        *(Column(name, name, "percent") for name in ("accuracy", "confidence", *names)),
        *contrast,
    )
    notes = ["Confidence is the mean probability of the explained label on whole texts."]
    confidence, correlations = {(run.model, run.task, run.prompt): run.confidence for run in grid.runs}, list[_Line]()
    known = [cell for cell in cells if confidence[cell.model, cell.task, cell.prompt] is not None]
    for place, group in grouped_by(known, *_PROMPT_PLACE):  # over all prompts of all tasks
        points = [(confidence[cell.model, cell.task, cell.prompt], cell.win_rate) for cell in group]
        r = stats.correlate(*np.array(points, dtype=np.float64).T, rng=rng_for(0, "prompts"))
        correlations += [{**place, "n": r.n, "r": r.r}] if r.r is not None else []
    if correlations:
        notes.append("Runs of one model or task share more than a prompt: read r over them as a description.")
    if contrast:
        notes.append("Δ is the win rate of attention less that of gradient.")
    parts = filled(
        Part("Prompts", shown, list(_prompt_lines(grid, cells, names, contrast=bool(contrast)))),
        Part("Sensitivity to the prompt", _PROMPT_SPREAD_COLUMNS, _spread_lines(found, "prompt", _PROMPT_PLACE)),
        Part("Confidence and win rate, over prompts", _CORRELATION_COLUMNS, correlations),
    )
    return Found(parts, tuple(notes))


def sizes(grid: GridResults) -> Found | Missing:
    """Return the lowest and highest win rate over all k, the widest range first."""
    lines = _spread_lines(grids.spreads(grid.cells, over="k"), "k", _SIZE_PLACE)
    return listed("Sensitivity to k", _SIZE_COLUMNS, lines, "the grid has one k; give two or more")


def _spread_lines(found: Sequence[WinRateSpread], choice: str, place: Sequence[str]) -> list[_Line]:
    """Return the lowest and highest win rate of each spread, and the values that give them."""
    return [
        {
            **fields_of(each.lowest, "model", "task", *place),
            **({"n_prompts": len(each.cells)} if choice == "prompt" else {}),
            "lowest": each.lowest.win_rate,
            f"lowest_{choice}": getattr(each.lowest, choice),
            "highest": each.highest.win_rate,
            f"highest_{choice}": getattr(each.highest, choice),
            "width": each.width,
            **({"increases": "yes" if each.increases else "no"} if choice == "k" else {}),
        }
        for each in found
    ]


def _prompt_lines(grid: GridResults, cells: Sequence[Cell], names: Sequence[str], *, contrast: bool) -> Iterator[_Line]:
    runs = {(run.model, run.task, run.prompt): run for run in grid.runs}
    places = grouped_by(cells, "model", "task", "prompt", "operator", "null", "direction", "k")
    for place, group in sorted(places, key=lambda each: tuple(map(str, each[0].values()))):
        run, rates = runs[group[0].model, group[0].task, group[0].prompt], {c.attribution: c.win_rate for c in group}
        # Where some examples drop out for one attribution, the others have more.
        with_accuracy = [line for line in grid.lines_of(run) if line.accuracy is not None]
        accuracy = max(with_accuracy, key=lambda line: line.n).accuracy if with_accuracy else None
        line = {**place, "accuracy": accuracy, "confidence": run.confidence}
        line |= {name: rates.get(name) for name in names}
        if contrast:
            both = [rates[name] for name in _CONTRAST if name in rates]
            line["difference"] = both[0] - both[1] if len(both) == 2 else None
        yield line


# --- models and languages -----------------------------------------------------------------------------------------

_TUNING_PLACE = ("prompt", "attribution", "null", "operator", "direction", "k")
_PAIRS = (
    *naming("base", "tuned", *_TUNING_PLACE),
    *columns("percent", win_rate_base="base win rate", win_rate_tuned="tuned win rate"),
    *estimate("difference", "difference", "points"),
    Column("p_adjusted", "p adj.", "p-value"),
)
_KINDS = (
    *naming(*_TUNING_PLACE),
    *columns("count", n_base="base models", n_tuned="tuned models"),
    *columns("percent", win_rate_base="mean of base", win_rate_tuned="mean of tuned"),
    *columns("points", difference="difference"),
)


def tuning(grid: GridResults) -> Found | Missing:
    """Compare every tuned model with its own base model over the same examples, and all tuned with all base models."""
    runs, lines = {(run.model, run.task, run.prompt): run for run in grid.runs}, list[_Line]()
    for run in grid.runs:
        base = runs.get((run.base, run.task, run.prompt)) if run.base is not None else None
        compared = differences(base.folder, [run.folder])[0].configurations if base is not None else ()
        head = {"task": run.task, "base": run.base, "tuned": run.model, "prompt": run.prompt}
        for line in (line for line in compared if line.operator != ALL):
            place = fields_of(line, *_TUNING_PLACE[1:], "paired")
            rates = {"win_rate_base": line.win_rate_first, "win_rate_tuned": line.win_rate_second}
            lines.append({**head, **place, **rates, **fields_of(line, "difference", "difference_ci", "p_value")})
    p_adjusted = stats.adjusted_known([line["p_value"] for line in lines])
    own = [{**line, "p_adjusted": p} for line, p in zip(lines, p_adjusted, strict=True)]
    kinds = list(_by_tuning(grid))
    if not own and not kinds:
        return Missing("no base model and tuned model share a task; set `tuning` or `base` of a model in the grid")
    note = "Means over models have no interval: a grid holds too few of them, and they differ in more than tuning."
    parts = filled(Part("Tuned models and their base", _PAIRS, own), Part("Tuned and base models", _KINDS, kinds))
    return Found(parts, (note,) if kinds else ())


def _by_tuning(grid: GridResults) -> Iterator[_Line]:
    """Yield mean win rates of base and of tuned models, where the grid has both."""
    is_base = {run.model: run.tuning == "base" for run in grid.runs if run.tuning is not None}
    for place, group in grouped_by((cell for cell in grid.cells if cell.model in is_base), "task", *_TUNING_PLACE):
        base, tuned = ([c.win_rate for c in group if is_base[c.model] is kind] for kind in (True, False))
        if base and tuned:
            means = float(np.mean(base)), float(np.mean(tuned))
            counts = {"n_base": len(base), "n_tuned": len(tuned)}
            rates = {"win_rate_base": means[0], "win_rate_tuned": means[1], "difference": means[1] - means[0]}
            yield {**place, **counts, **rates}


def languages(grid: GridResults) -> Found | Missing:
    """Return tokens per word and character, and win rates, of every language under every model."""
    if not grid.several("language"):
        return Missing("the grid has one language")
    single = [each.line for each in grid.configurations if each.line.operator != ALL]
    rates = list(dict.fromkeys(f"{line.attribution} {line.operator}" for line in single))
    tokens = {"tokens_median": "median tokens", "tokens_per_word": "tokens per word"}
    tokens |= {"tokens_per_character": "per character", "expansion": "against English"}
    percent = (Column(name, name, "percent") for name in rates)
    shown = (*naming("language", "prompt", *_PLACE), *columns("number", **tokens), *percent)
    lines = []
    for run in grid.runs:
        same_model = [each for each in grid.runs if (each.model, each.language) == (run.model, "en")]
        english = [each.texts.tokens_per_character for each in same_model if each.texts is not None]
        head = {**run.token_counts, "expansion": None}
        if run.texts is not None and english:
            head["expansion"] = run.texts.tokens_per_character / (sum(english) / len(english))
        for place, group in grouped_by((line for line in grid.lines_of(run) if line.operator != ALL), *_PLACE):
            own = {f"{line.attribution} {line.operator}": line.win_rate for line in group}
            lines.append({**run.head, **place, **head, **{name: own.get(name) for name in rates}})
    notes = ["Data sets differ between languages: a column compares models, and a row does not compare languages."]
    if any(line["expansion"] is not None for line in lines):
        notes.append("Against English: tokens per character, over those of the model's English texts in the grid.")
    return Found((Part("Languages", shown, lines),), tuple(notes))


# --- guidelines ---------------------------------------------------------------------------------------------------

NOT_SETTLED = "not settled"


def guidelines(grid: GridResults) -> Found | Missing:
    """Recommend an attribution for every run, or report that the data do not decide."""
    lines = [line for run in grid.runs for line in _advice_lines(run, grid)]
    advised = [line["advice"] for line in lines if line["advice"] != NOT_SETTLED]
    counts = ", ".join(f"{name} in {advised.count(name)}" for name in dict.fromkeys(advised))
    notes = (
        f"Of {len(lines)} cases {len(lines) - len(advised)} are not settled{f'; advised: {counts}' if counts else ''}.",
        "Advised means: under every operator the 95 % interval lies above 55 %, the p-value adjusted over the grid is "
        "at most 0.05, and the paired difference to every other attribution excludes 0. More examples may "
        "settle the others.",
    )
    shown = (*naming("language", "prompt", *_PLACE), *columns("text", advice="use", reason="because"))
    return listed("Guidelines", shown, lines, "no attribution beside controls was evaluated", *notes)


def _advice_lines(run: GridRun, grid: GridResults) -> Iterator[_Line]:
    lines = [line for line in grid.lines_of(run) if line.operator != ALL]
    sizes: list[Share | None] = list(dict.fromkeys(line.k for line in lines if line.k is not None))
    places = defaultdict[tuple[Any, ...], list[SummaryLine]](list)
    for line in lines:
        # Rationales with a size of their own compete with those of every k.
        for k in [line.k] if line.k is not None else sizes or [None]:
            places[line.null, line.direction, k].append(line)
    operators = {line.operator for line in lines}
    for place, compared in places.items():
        if not all(is_control(line.attribution) for line in compared):
            advice, reason = _advice(run, compared, operators)
            yield {**run.head, **dict(zip(_PLACE, place, strict=True)), "advice": advice, "reason": reason}


def _advice(run: GridRun, lines: Sequence[SummaryLine], operators: Set[str]) -> tuple[str, str]:
    """Return an attribution, or that none is decided, and the reason."""
    groups = grouped_by((line for line in lines if line.win_rate is not None), "attribution")
    by_name: dict[str, list[SummaryLine]] = {place["attribution"]: own for place, own in groups}
    supported = []
    for name, own in by_name.items():
        above = all(x.win_rate_ci is not None and x.win_rate_ci.low > grids.POSITIVE_EVIDENCE for x in own)
        everywhere = {line.operator for line in own} == operators
        if above and everywhere and not is_control(name) and all(map(_is_significant, own)):
            supported.append(name)
    if not supported:
        return NOT_SETTLED, "no attribution's interval lies above 55 % under every operator"
    if len(by_name) < 2:
        return NOT_SETTLED, "there is no other attribution to compare with"
    rivals = {name: _not_beaten(run, by_name[name], by_name) for name in supported}
    alone = [name for name, others in rivals.items() if not others]
    if not alone:
        best = max(supported, key=lambda name: min(line.win_rate or 0.0 for line in by_name[name]))
        others = " and ".join(rivals[best])
        return (
            NOT_SETTLED,
            f"{best} lies above 55 % under every operator, and its lead over {others} is not significant",
        )
    [name] = alone
    lowest = min(line.win_rate_ci.low for line in by_name[name] if line.win_rate_ci is not None)
    shown = " and ".join(line.operator for line in by_name[name])
    return name, f"above {100 * lowest:.1f} % under {shown}, and ahead of all others there"


def _not_beaten(run: GridRun, own: Sequence[SummaryLine], by_name: Mapping[str, Sequence[SummaryLine]]) -> list[str]:
    """Return the attributions that this one does not significantly beat under every operator."""
    found = []
    for other in (name for name in by_name if name != own[0].attribution):
        theirs = {line.operator: line.configuration for line in by_name[other]}
        pairs = [(line.configuration, theirs[line.operator]) for line in own if line.operator in theirs]
        compared = [run.paired(*pair) for pair in pairs]
        ahead = [each is not None and each.interval is not None and each.interval.high < 0 for each in compared]
        if len(ahead) < len(own) or not all(ahead):
            found.append(other)
    return found


QUESTIONS: Mapping[str, Callable[[GridResults], Found | Missing]] = {
    "operator_dependence": operators,
    "anti_faithful": worse_than_random,
    "prompt_sensitivity": prompts,
    "k_sensitivity": sizes,
    "base_and_instruct": tuning,
    "languages": languages,
    "variance": variance,
    "guidelines": guidelines,
}
"""All questions about texts by their names in JSON, in printing order."""
OF_CHAINS: Mapping[str, Callable[[GridResults], Found | Missing]] = {
    "reasoning_patterns": reasoning_patterns,
    "raw_scores": raw_scores,
}
"""The same about chains of thought."""


def answers(grid: GridResults) -> dict[str, Found | Missing]:
    """Return the answers to all questions about the subject of a grid; none without a run."""
    questions = OF_CHAINS if grid.chains else QUESTIONS
    return {name: question(grid) for name, question in questions.items() if grid.runs}
