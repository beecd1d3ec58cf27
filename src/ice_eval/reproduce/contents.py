"""The numbers of each table and figure of the paper, read from the finished runs of its grids."""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from ice_eval.analysis import audit_infill, eraser_agreement
from ice_eval.analysis.across import guidelines as advice_of
from ice_eval.analysis.across import languages
from ice_eval.analysis.grid import GridResults, GridRun, is_control
from ice_eval.analysis.measures import Found
from ice_eval.analysis.measures.eraser import area
from ice_eval.analysis.measures.explanations import RELATION, PlausibilityMeasure, iou, marks_of, tells_units_apart
from ice_eval.analysis.paper import model_of, paper_table
from ice_eval.encoding import encode
from ice_eval.models import SERVED, load_reader, suite_model
from ice_eval.nulls import SIZE
from ice_eval.records import Kind
from ice_eval.reproduce.layout import Value, shown
from ice_eval.results import SummaryLine, view_example
from ice_eval.results.outcomes import ALL
from ice_eval.results.records import CapacityLine, ChainSummary, ExampleOutcome
from ice_eval.stats import Interval, taxonomy
from ice_eval.stats.agreement import FEWEST_PAIRS
from ice_eval.tasks import FileData, Task

METHODS = ("attention", "gradient")
OPERATORS = ("delete", "infill")
K = 0.2
PERCENT = 0.01
"""Scale of numbers that the paper prints in percent."""
_AREA_SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
_LARGEST, _SMALLEST, _REPRESENTATIVE = 6, 4, 6
"""Numbers of configurations in the tables of effect sizes and of the operator comparison."""
_ABBREVIATIONS = {"faithful": "F", "weakly faithful": "WF", "near-random": "NR", "anti-faithful": "AF"}
_STYLES = {"yes-no": "yes/no", "true-false-unknown": "T/F/U"}
"""Our names of prompts, and the paper's where they differ."""
_DRAWS, _VOCABULARY = 4, 50_000
"""Random draws of the paper's rate of contamination, and the tokens that it draws from."""
_TRANSLATED = dict.fromkeys(("qwen2.5-3b", "qwen2.5-3b-instruct"), "Qwen2.5-3B")
"""The paper's name of a model of translated texts alone, which may be either."""
_REASONERS = {"deepseek-r1-distill-qwen-7b": "deepseek-r1-7b"}
"""Hub names of models that the paper's tables on reasoning name otherwise."""
_BERT = "bert-base-uncased"
_YES_NO: Mapping[bool | None, str] = {True: "yes", False: "no"}
_CONFIGURATION = ("model", "task", "attribution")
_OF_ENCODERS = {"sufficiency": 1.0, "significant_rate": PERCENT, "auc_sufficiency": 1.0}
"""Numbers of an encoder, and the scale of the published ones."""
_OF_MODELS = ("size", "type", "source")
_SHORT = 15
"""Digits of a revision in the paper."""


class Sources(NamedTuple):
    """Access to the finished runs of every grid, by its name, and to what is no run."""

    grid: Callable[[str], GridResults]
    tasks: Callable[[str], Sequence[tuple[str, Task]]]
    """Model and task of every run that a grid plans, finished or not."""


Content = Callable[[Sources], list[Value]]
"""Returns the numbers of a table."""
NO_DATA = "no data"


class Line(NamedTuple):
    """A win rate of a grid, under the names of the paper."""

    run: GridRun
    line: SummaryLine
    model: str
    task: str
    attribution: str
    """Its method, without options that a protocol chose."""
    operator: str
    k: str
    rate: float

    def win_rate(self, known: float | None) -> "Reproduced":
        """Return the win rate with its interval, beside a published one, with its interval where the paper has it."""
        limits = None
        if known is not None and self.operator == "delete" and self.line.k == K:
            rate, *ends = (published("intervals", name, _where(self), PERCENT) for name in ("win_rate", "low", "high"))
            if rate is not None and abs(rate - known) < PERCENT / 100:  # of this configuration, and of no other prompt
                limits = Interval(*(end or 0.0 for end in ends))
        return Reproduced(self.rate, known, self.line.win_rate_ci, published_interval=limits)


class Reproduced(NamedTuple):
    """Our result, the published one, the interval of ours, why ours is missing, and the published interval."""

    ours: float | str | None
    published: float | str | None = None
    interval: Interval | None = None
    reason: str = ""
    published_interval: Interval | None = None


def beside(place: Mapping[str, str], run: str = "", /, **cells: Reproduced) -> list[Value]:
    """Return a value for every quantity of a place in a table."""
    return [Value(place=place, quantity=name, run=run, **cell._asdict()) for name, cell in cells.items()]


def paper_name(model: str) -> str:
    """Return the paper's name of a model of its tables; other models keep theirs."""
    row, name = model_of(model), model.partition("@")[0].rpartition("/")[2].lower()
    return _TRANSLATED.get(name, model) if row is None else row["model"]


def published(table: str, column: str, place: Mapping[str, str], scale: float = 1.0) -> float | None:
    """Return the printed number in the one row of a table with these values, times `scale`; None without one."""
    found = paper_table(table)
    rows = found.where(**{name: value for name, value in place.items() if name in found.rows[0]})
    return scale * float(rows[0][column]) if len(rows) == 1 and rows[0][column] else None


def lines(
    grid: GridResults, *, methods: Iterable[str] = METHODS, operators: Iterable[str] = OPERATORS, k: float | None = K
) -> Iterator[Line]:
    """Yield sufficiency against random sets of equal size, by attribution and operator, then as the grid has them."""
    every = []
    for run, line in ((each.run, each.line) for each in grid.configurations):
        usual = line.null == SIZE and line.direction == "sufficiency" and k in (None, line.k)
        if usual and line.win_rate is not None:
            size = f"{line.k:g}" if isinstance(line.k, float) else str(line.k)
            head = (paper_name(run.model), line.task, line.attribution.partition(":")[0], line.operator)
            every.append(Line(run, line, *head, size, line.win_rate))
    for place in itertools.product(methods, operators):
        yield from (each for each in every if (each.attribution, each.operator) == place)


def foreign_lines(
    sources: Sources, *, methods: Iterable[str] = METHODS, operators: Iterable[str] = OPERATORS
) -> list[Line]:
    """Return the lines of other languages than English."""
    found = lines(sources.grid("multilingual"), methods=methods, operators=operators)
    return [each for each in found if each.run.language != "en"]


# --- win rates by place -------------------------------------------------------------------------------------------

_HEAT = ("attribution", "operator", "model", "task")


def english(sources: Sources) -> list[Value]:
    """Return the win rates of both attributions under both operators."""
    return _rates(lines(sources.grid("english")), "english", *_HEAT)


def english_attention(sources: Sources) -> list[Value]:
    """Return the win rates of attention under both operators."""
    return _rates(lines(sources.grid("english"), methods=("attention",)), "english", *_HEAT)


def multilingual(sources: Sources) -> list[Value]:
    """Return the win rates of attention in other languages than English."""
    return _rates(foreign_lines(sources, methods=("attention",)), "multilingual", *_HEAT)


def operator_ablation(sources: Sources) -> list[Value]:
    """Return the win rates under deletion and masks, attributions side by side."""
    operators = ("delete", "mask-unk", "mask-pad", "mask", "infill")
    found = lines(sources.grid("masks"), operators=operators)
    ordered = sorted(found, key=lambda each: operators.index(each.operator))
    return _rates(ordered, "operator_ablation", "model", "task", "operator", "attribution")


def k_sweep(sources: Sources) -> list[Value]:
    """Return the win rates of every k under deletion; the paper does not name the operator."""
    found = [x for x in lines(sources.grid("k-sweep"), operators=("delete",), k=None) if isinstance(x.line.k, float)]
    found.sort(key=lambda each: (each.task != "german", each.task, each.model, each.attribution))
    return _rates(found, "k_sweep", "task", "model", "attribution", "k")


def _rates(found: Iterable[Line], table: str, *fields: str) -> list[Value]:
    """Return win rates by the fields of their places, beside those of a published table."""
    values = []
    for each in found:
        place = {name: getattr(each, name) for name in fields}
        known = published(table, "win_rate", place, PERCENT)
        values += beside(place, each.run.name, win_rate=each.win_rate(known))
    return values


# --- configurations -----------------------------------------------------------------------------------------------


def operator_comparison(sources: Sources) -> list[Value]:
    """Return attention under both operators, in the published configurations, or those with the widest gaps."""
    by_run = lines_by_run(lines(sources.grid("english"), methods=("attention",)), "operator")
    pairs = [found for found in by_run.values() if set(found) == set(OPERATORS)]
    known = {(row["model"], row["task"]): number for number, row in enumerate(paper_table("operator_comparison").rows)}
    printed = [pair for pair in pairs if (pair["delete"].model, pair["delete"].task) in known]
    if printed:
        chosen = sorted(printed, key=lambda pair: known[pair["delete"].model, pair["delete"].task])
    else:
        chosen = sorted(pairs, key=lambda pair: -abs(pair["delete"].rate - pair["infill"].rate))[:_REPRESENTATIVE]
    values = []
    for each in (pair[operator] for pair in chosen for operator in OPERATORS):
        place = {"configuration": f"{each.model} / {shown(each.task)}", "operator": each.operator}
        rate = published("operator_comparison", each.operator, {"model": each.model, "task": each.task}, PERCENT)
        word = Reproduced(_abbreviation(each.rate), _abbreviation(rate))
        values += beside(place, each.run.name, win_rate=each.win_rate(rate), word=word)
    return values


def _abbreviation(rate: float | None) -> str | None:
    return None if rate is None else _ABBREVIATIONS[taxonomy(rate)]


def lines_by_run(found: Iterable[Line], field: Literal["operator", "attribution"]) -> dict[str, dict[str, Line]]:
    """Return the lines of every run by the value of a field."""
    by_run = defaultdict[str, dict[str, Line]](dict)
    for each in found:
        by_run[each.run.name][getattr(each, field)] = each
    return by_run


def _deletions(sources: Sources) -> list[Line]:
    """Return the configurations under deletion, English first."""
    return [*lines(sources.grid("english"), operators=("delete",)), *foreign_lines(sources, operators=("delete",))]


def _known(table: str, found: Sequence[Line]) -> list[Line]:
    """Return the lines that a published table has, in its order."""
    order = [tuple(row[name] for name in _CONFIGURATION) for row in paper_table(table).rows]
    places = [tuple(_where(each).values()) for each in found]
    known = [(order.index(place), each) for place, each in zip(places, found, strict=True) if place in order]
    return [each for _, each in sorted(known, key=lambda both: both[0])]


def _where(each: Line) -> dict[str, str]:
    return {name: getattr(each, name) for name in _CONFIGURATION}


def _configuration(each: Line) -> dict[str, str]:
    return {"configuration": f"{each.model} {shown(each.task)} {shown(each.attribution)}"}


def _interpretation(effect_size: float | None) -> str | None:
    """Return the paper's description of a standardized effect size."""
    if effect_size is None or effect_size < 0:
        return None if effect_size is None else "Anti"
    limits = ((0.8, "Large"), (0.5, "Medium"), (0.2, "Small"))
    return next((word for limit, word in limits if effect_size >= limit), "Negligible")


def effect_sizes(sources: Sources) -> list[Value]:
    """Return the published configurations, or those with the largest and smallest effect sizes."""
    found = [each for each in _deletions(sources) if each.line.effect_size is not None]
    ordered = sorted(found, key=lambda each: -(each.line.effect_size or 0.0))
    n_small = min(_SMALLEST, len(ordered) // 2)
    extreme = ordered[:_LARGEST][: len(ordered) - n_small] + ordered[len(ordered) - n_small :]
    return _with_effects("effect_sizes", _known("effect_sizes", found) or extreme)


def anti_faithful(sources: Sources) -> list[Value]:
    """Return all configurations under deletion with a win rate below 50 %, the worst first."""
    found = [each for each in _deletions(sources) if taxonomy(each.rate) == "anti-faithful"]
    return _with_effects("anti_faithful", sorted(found, key=lambda each: each.rate))


def _with_effects(table: str, found: Iterable[Line]) -> list[Value]:
    values = []
    for each in found:
        size, known = each.line.effect_size, published(table, "effect_size", _where(each))
        rate = each.win_rate(published(table, "win_rate", _where(each), PERCENT))
        word = Reproduced(_interpretation(size), _interpretation(known))
        values += beside(
            _configuration(each), each.run.name, win_rate=rate, effect_size=Reproduced(size, known), word=word
        )
    return values


def intervals(sources: Sources) -> list[Value]:
    """Return win rates with their 95 % intervals: of the published configurations, or of the extremes."""
    found = [each for each in _deletions(sources) if each.line.win_rate_ci is not None]
    ordered = sorted(found, key=lambda each: each.rate, reverse=True)
    values = []
    for each in _known("intervals", found) or [*ordered[:3], *ordered[3:][-2:]]:
        rate, *known = (published("intervals", name, _where(each), PERCENT) for name in ("win_rate", "low", "high"))
        limits = Reproduced(_limits(each.line.win_rate_ci), None if None in known else _limits(known))
        values += beside(_configuration(each), each.run.name, win_rate=each.win_rate(rate), interval=limits)
    return values


def _limits(interval: Sequence[float | None] | None) -> str | None:
    return None if interval is None else "[" + ", ".join(f"{100 * (limit or 0.0):.1f}" for limit in interval) + "]"


# --- prompts and languages ----------------------------------------------------------------------------------------


def prompts(sources: Sources) -> list[Value]:
    """Return accuracy, confidence and win rates under deletion for every prompt."""
    grid, rows, values = sources.grid("prompts"), paper_table("prompts").rows, list[Value]()
    by_run = lines_by_run(lines(grid, operators=("delete",)), "attribution")
    for run in (run for run in grid.runs if run.name in by_run):
        own, style = by_run[run.name], _STYLES.get(run.prompt, run.prompt)
        where = {"model": paper_name(run.model), "task": run.task, "style": style}
        version = next((row["prompt"] for row in rows if (row["task"], row["style"]) == (run.task, style)), "")
        place = {"model": where["model"], "task": run.task, "prompt": f"{version} ({style})".strip()}
        known = {name: published("prompts", name, where, PERCENT) for name in ("accuracy", "confidence", *METHODS)}
        accuracies = [each.line.accuracy for each in own.values() if each.line.accuracy is not None]
        cells = {
            "accuracy": Reproduced(max(accuracies, default=None), known["accuracy"]),
            "confidence": Reproduced(run.confidence, known["confidence"]),
            **{name: each.win_rate(known[name]) for name, each in own.items()},
        }
        if set(METHODS) <= set(own):
            attention, gradient = (own[method] for method in METHODS)
            gap = run.paired(gradient.line.configuration, attention.line.configuration)
            first, second = (known[method] for method in METHODS)
            theirs = None if first is None or second is None else first - second
            cells["difference"] = Reproduced(
                attention.rate - gradient.rate, theirs, None if gap is None else gap.interval
            )
        values += beside(place, run.name, **cells)
    return values


def tokenization(sources: Sources) -> list[Value]:
    """Return tokens per character, over those of the model's English texts."""
    found = languages(sources.grid("multilingual"))
    rows: dict[tuple[str, str], float | None] = {}
    for line in found.parts[0].lines if isinstance(found, Found) else ():
        if line["language"] != "en":
            rows.setdefault((line["model"], line["task"]), line["expansion"])
    families = {"Llama-3.2-3B": "Llama 3.x", "Llama-3.1-8B": "Llama 3.x"}
    values = []
    for (model, task), expansion in rows.items():
        name = paper_name(model)
        known = published("tokenization", "expansion", {"model": families.get(name, name), "language": task})
        values += beside({"model": name, "task": task}, expansion=Reproduced(expansion, known))
    return values


def translation(sources: Sources) -> list[Value]:
    """Return native and translated texts, attention under deletion."""
    grids, values = {"native": "multilingual", "translated": "translation"}, []
    found = {
        condition: list(lines(sources.grid(grid), methods=("attention",), operators=("delete",)))
        for condition, grid in grids.items()
    }
    models = {each.model for each in found["translated"]}
    for condition, each in ((name, each) for name, own in found.items() for each in own):
        if each.task in ("french", "german") and each.model in models:
            where = {"model": each.model, "condition": condition, "task": each.task}
            place = {"condition": f"{each.model} ({condition})", "task": each.task}
            known = published("translation", "win_rate", where, PERCENT)
            values += beside(place, each.run.name, win_rate=each.win_rate(known))
    return values


# --- human rationales and encoders --------------------------------------------------------------------------------


def _esnli(sources: Sources) -> list[GridRun]:
    return [run for run in sources.grid("english").runs if run.task == "esnli"]


def plausibility(sources: Sources) -> list[Value]:
    """Return the correlation of overlap with human rationales and win rate, over the examples of e-SNLI."""
    values = []
    usual = {"measure": "IoU", "operator": "delete", "direction": "sufficiency", "null": SIZE, "k": K}
    for run in _esnli(sources):
        found = PlausibilityMeasure().of(run.folder)
        parts = [part for part in found.parts if part.title == RELATION] if isinstance(found, Found) else []
        for line in (line for part in parts for line in part.lines):
            if usual.items() <= line.items() and line["attribution"] in METHODS:
                where = {"model": paper_name(run.model), "attribution": line["attribution"]}
                known = {name: published("plausibility", name, where) for name in ("r", "p", "n")}
                interval = None if line["pearson_ci"] is None else Interval(*line["pearson_ci"])
                reason = "" if line["pearson"] is not None else _no_correlation(line["n"])
                cells = {
                    "r": Reproduced(line["pearson"], known["r"], interval, reason),
                    "p": Reproduced(line["pearson_p"], known["p"], reason=reason),
                    "n": Reproduced(line["n"], known["n"]),
                }
                values += beside(where, run.name, **cells)
    return values


def _no_correlation(n: int) -> str:
    if n < FEWEST_PAIRS:
        return f"{n} examples of e-SNLI tell units apart; a correlation needs {FEWEST_PAIRS}: raise --n"
    return "overlap or win rate is the same in all examples"


def encoder(sources: Sources) -> list[Value]:
    """Return sufficiency (the mean NSR at k = 0.2), the share of significant examples, and the area over k."""
    methods = ("lime", "integrated-gradients", *METHODS)
    grid, values = sources.grid("encoder"), list[Value]()
    by_run: dict[tuple[str, str], dict[float, Line]] = {}
    for each in lines(grid, methods=methods, operators=("delete",), k=None):
        if isinstance(each.line.k, float):
            by_run.setdefault((each.run.name, each.line.attribution), {})[each.line.k] = each
    for others in (found for found in by_run.values() if K in found):
        each, line = others[K], others[K].line
        place = {"model": each.model, "task": line.task, "attribution": line.attribution}
        # A BERT that was fine-tuned from the paper's encoder stands beside it.
        is_bert = each.run.model.rpartition("/")[2].lower().startswith(_BERT)
        where = {**place, "model": _BERT if is_bert else each.run.model}
        curve = [0.0, *(others[k].line.nsr_mean if k in others else None for k in _AREA_SHARES[1:])]
        width = _AREA_SHARES[-1]
        auc = None if None in curve else width * float(area(_AREA_SHARES, np.array(curve, dtype=np.float64)))
        # The paper prints 0 % where nothing is rejected, also where M is too small for it.
        none_rejected = line.significant_rate is None and line.significant_floor_share is not None
        share, reason = 0.0 if none_rejected else line.significant_rate, line.significant_reason or ""
        known = [published("encoder", name, where, scale) for name, scale in _OF_ENCODERS.items()]
        cells = (
            Reproduced(line.nsr_mean, known[0]),
            Reproduced(share, known[1], reason=reason),
            Reproduced(auc, known[2]),
        )
        values += beside(place, each.run.name, **dict(zip(_OF_ENCODERS, cells, strict=True)))
    return values


# --- single texts -------------------------------------------------------------------------------------------------


def _outcomes(sources: Sources, **where: object) -> Iterator[tuple[GridRun, ExampleOutcome]]:
    usual = {"k": K, "direction": "sufficiency", "null": SIZE, "error": None, **where}
    for run in sources.grid("examples").runs:
        for line in run.folder.examples():
            if all(getattr(line, name) == value for name, value in usual.items()):
                yield run, line


def _text_and_words(run: GridRun, line: ExampleOutcome) -> tuple[str, str]:
    """Return the text of an example, and the words of its rationale."""
    row = run.inputs[line.example_id]
    text = "".join(row.fields.values())
    return text, ", ".join(text[row.spans[unit].start : row.spans[unit].end].strip() for unit in line.rationale)


def worked_example(sources: Sources) -> list[Value]:
    """Return score, NSR, win rate and word of the first sentence under both operators; scores are probabilities."""
    values, seen = list[Value](), set[tuple[str, str]]()
    for run, line in _outcomes(sources, attribution="attention"):
        if line.operator == ALL or line.operator not in OPERATORS or (run.name, line.operator) in seen:
            continue
        seen.add((run.name, line.operator))  # the first sentence comes first
        place, rows = {"model": paper_name(run.model), "operator": line.operator}, paper_table("worked_example").rows
        known = {name: published("worked_example", name, place) for name in ("score", "nsr", "win_rate")}
        rate = None if known["win_rate"] is None else known["win_rate"] / 100
        word = next(row["word"] for row in rows if row["operator"] == line.operator)
        numbers: dict[str, tuple[float | str | None, float | str | None]] = {
            "Rationale": (_text_and_words(run, line)[1], "gorgeous, seductive"),
            "Result": (_result(run, line), None),
            "s(x)": (line.score_full, 0.78),
            "s of the result": (line.score, known["score"]),
            "NSR": (line.nsr, known["nsr"]),
            "WR": (f"{100 * line.win_rate:.0f}%", None if rate is None else f"{100 * rate:.0f}%"),
            "Verdict": (taxonomy(line.win_rate), word),
        }
        for name, both in numbers.items():
            ours, theirs = (f"{each:.2f}" if isinstance(each, float) else each for each in both)
            values += beside({**place, "row": name}, run.name, cell=Reproduced(ours, theirs))
    return values


def _result(run: GridRun, line: ExampleOutcome) -> str | None:
    """Return the text that is left of an example, under the first fill."""
    rows = view_example(run.folder, line.example_id, attribution=line.attribution, operator=line.operator, k=K).rows
    kept = [row for row in rows if row.key.kind == Kind.RATIONALE and row.key.operator == line.operator]
    own = (row for row in kept if row.key.attribution == line.attribution and set(row.kept) == set(line.rationale))
    return next((row.text for row in own), None)


def anti_faithful_examples(sources: Sources) -> list[Value]:
    """Return the four sentences with the words that the gradient picks."""
    values, numbers = list[Value](), dict[str, int]()
    for run, line in _outcomes(sources, attribution="gradient", operator="delete"):
        text, words = _text_and_words(run, line)
        number = numbers.setdefault(text, len(numbers) + 1)
        place = {"model": paper_name(run.model), "text": text}
        rate, size = (
            published("anti_faithful_examples", name, {"example": str(number)})
            if place["model"] == "Llama-3.1-8B"
            else None
            for name in ("win_rate", "effect_size")
        )
        cells = {
            "win_rate": Reproduced(line.win_rate, None if rate is None else rate / 100),
            "effect_size": Reproduced(line.effect_size, size),
            "words": Reproduced(f"selects {words}"),
        }
        values += beside(place, run.name, **cells)
    return values


# --- without runs -------------------------------------------------------------------------------------------------


def contamination(sources: Sources) -> list[Value]:
    """Return label-indicative tokens that infill cannot write, that it may write, and their rate, per data set."""
    values, planned = list[Value](), sources.tasks("english")
    for name in ("sst2", "ag_news", "esnli"):
        model, task = next(((m, t) for m, t in planned if t.name == name), (None, None))
        if model is None or task is None:
            continue
        reader = load_reader(model)
        reserve = reader.labels(task, scoring=None).reserve
        items = [
            (encode(reader.codec, task, each, unit="token", scope="content", reserve=reserve), each.gold)
            for each in task.examples(limit=2000)
        ]
        found = audit_infill(reader.codec, task, items, model=reader.name)
        judged = next((each for each in found.judged if each.reference == "words"), found.judged[0])
        numbers = {"blocked": float(len(judged.blocked)), "surviving": float(len(judged.surviving))}
        cells = {
            each: Reproduced(ours, published("contamination", each, {"task": name})) for each, ours in numbers.items()
        }
        theirs = published("contamination", "rate", {"task": name}, PERCENT)
        cells["rate"] = Reproduced(_in_draws(len(judged.surviving) / _VOCABULARY), theirs)
        cells |= {"pool_rate": Reproduced(_in_draws(judged.rate)), "per_example": Reproduced(judged.rate_per_example)}
        values += beside({"task": name}, **cells)
    return values


def _in_draws(share: float) -> float:
    return 1 - (1 - share) ** _DRAWS


def models(sources: Sources) -> list[Value]:
    """Return the models of the English grid, with size and type where they are known."""
    values = []
    for name in dict.fromkeys(model for model, _ in sources.tasks("english")):
        suite, row = suite_model(name), model_of(name) or {}
        given = Path(name).name if Path(name).is_absolute() else name
        ours = (None, None, given) if suite is None else (f"{suite.parameters:g}B", suite.tuning, suite.hub_id)
        cells = {field: Reproduced(each, row.get(field)) for field, each in zip(_OF_MODELS, ours, strict=True)}
        values += beside({"model": paper_name(name)}, **cells)
    return values


def versions(sources: Sources) -> list[Value]:
    """Return the source of the data of every task of the English grid, and the beginning of its revision."""
    known, values = {row["task"]: row for row in paper_table("datasets").rows}, list[Value]()
    for name, data in {task.name: task.data for _, task in sources.tasks("english")}.items():
        row, commit = known.get(name, {}), data.commit
        revision = Reproduced(
            commit and commit[:_SHORT], row.get("revision") or None, reason="" if commit else "the data are a file"
        )
        source = data.path.name if isinstance(data, FileData) else data.origin
        values += beside({"task": name}, source=Reproduced(source, row.get("source")), revision=revision)
    return values


def guidelines(sources: Sources) -> list[Value]:
    """Return the advised attribution of every run, with the reason."""
    values = []
    for name in ("english", "multilingual"):
        found = advice_of(sources.grid(name))
        for line in found.parts[0].lines if isinstance(found, Found) else ():
            if (line["language"] == "en") == (name == "english"):
                place = {"scenario": f"{shown(line['task'])}, {paper_name(line['model'])}"}
                values += beside(place, advice=Reproduced(f"{line['advice']}: {line['reason']}"))
    return values


# --- reasoning ----------------------------------------------------------------------------------------------------


def _chains(grid: GridResults) -> Iterator[tuple[GridRun, str, ChainSummary]]:
    """Yield the runs about chains, each with the paper's name of its model, or the grid's where two would share it."""
    tables, names = ("steps_and_tokens", "eraser"), dict[str, str]()
    known = {row["model"].lower(): row["model"] for table in tables for row in paper_table(table).rows}
    for model in (run.model for run in grid.runs):
        name = model.removeprefix(SERVED).rpartition("/")[2].lower()
        names[model] = known.get(_REASONERS.get(name, name), paper_name(model))
    for run in grid.runs:
        is_alone = list(names.values()).count(names[run.model]) == 1
        yield run, names[run.model] if is_alone else run.model, grid.chains[run.name]


def _capacity(content: ChainSummary) -> CapacityLine | None:
    """Return the line of the paper's reasoning capacity: deletion, a fifth of the steps, chains of any length."""
    return next((x for x in content.capacity if (x.operator, x.k, x.chains) == ("delete", K, "all")), None)


def steps_and_tokens(sources: Sources) -> list[Value]:
    """Return win rates of tokens, and necessity and sufficiency of steps, on the same problems."""
    values, quantities = list[Value](), ("necessity", "sufficiency")
    for run, model, content in _chains(sources.grid("steps")):
        line, found = _capacity(content), dict[tuple[str, str], tuple[float | None, Interval | None]]()
        for level in content.levels or ():
            if (level.unit, level.attribution, level.k) == ("token", "attention", K):
                found["token", level.direction] = level.win_rate, level.win_rate_ci
        for name in quantities if line is not None else ():
            found["step", name] = getattr(line, name), getattr(line, f"{name}_ci")
        for unit in ("token", "step"):
            place, cells = {"model": model, "unit": unit}, dict[str, Reproduced]()
            for name in quantities:
                ours, interval = found.get((unit, name), (None, None))
                cells[name] = Reproduced(ours, published("steps_and_tokens", name, place), interval)
            values += beside(place, run.name, **cells)
    return values


def frontier(sources: Sources) -> list[Value]:
    """Return SRC and accuracy per model and task; the paper does not name its models, so none is beside them."""
    values = []
    for run, model, content in _chains(sources.grid("frontier")):
        line = _capacity(content)
        src = Reproduced(None) if line is None else Reproduced(line.src, interval=line.src_ci)
        place = {"model": model, "task": _data_set(run.task)}
        values += beside(place, run.name, src=src, accuracy=Reproduced(content.problems.accuracy))
    return values


def eraser(sources: Sources) -> list[Value]:
    """Return raw scores beside win rates of every model, task and measure; controls are left out."""
    values = []
    for run, model, content in _chains(sources.grid("eraser")):
        for line in content.raw:
            if (line.operator, line.k) != ("delete", K) or is_control(line.attribution):
                continue
            place = {"model": model, "task": _data_set(run.task), "metric": line.measure}
            raw, rate = (published("eraser", name, place) for name in ("raw", "win_rate"))
            [theirs] = eraser_agreement([raw], [rate]).agree
            cells = {
                "raw": Reproduced(line.raw, raw, reason=line.raw_reason or ""),
                "win_rate": Reproduced(line.win_rate, rate),
                "agree": Reproduced(_YES_NO.get(line.agree), _YES_NO.get(theirs)),
            }
            values += beside(place, run.name, **cells)
    return values


def _data_set(task: str) -> str:
    """Return the paper's name of the data set of a task about chains."""
    return {"arc_challenge": "arc"}.get(task, task.partition("/")[0])


def overlaps(sources: Sources) -> Iterator[tuple[GridRun, ExampleOutcome, float]]:
    """Yield the e-SNLI examples under deletion with the overlap of rationale and human rationale."""
    for run in _esnli(sources):
        marks = {name: marks_of(row) for name, row in run.inputs.items()}
        for line in run.folder.examples():
            usual = (line.operator, line.direction, line.k, line.null, line.error)
            known = marks.get(line.example_id)
            if usual == ("delete", "sufficiency", K, SIZE, None) and line.attribution in METHODS and known is not None:
                if tells_units_apart(known):
                    yield run, line, iou(line.rationale, known)
