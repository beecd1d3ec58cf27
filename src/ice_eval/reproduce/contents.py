"""The numbers of each table and figure of the paper, read from the finished runs of its grids."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binomtest

from ice_eval import stats
from ice_eval.analysis import InfillAudit, audit_infill, eraser_agreement
from ice_eval.analysis.across import guidelines as advice_of
from ice_eval.analysis.across import languages
from ice_eval.analysis.grid import GridResults, GridRun, is_control
from ice_eval.analysis.measures import Found
from ice_eval.analysis.measures.eraser import area
from ice_eval.analysis.measures.explanations import (
    RELATION,
    PlausibilityMeasure,
    iou,
    marks_of,
    tells_units_apart,
)
from ice_eval.analysis.paper import model_of, paper_table
from ice_eval.encoding import encode
from ice_eval.models import SERVED, load_reader, suite_model
from ice_eval.nulls import SIZE
from ice_eval.records import Kind
from ice_eval.reproduce.layout import Value, shown
from ice_eval.results import SummaryLine, view_example
from ice_eval.results.outcomes import ALL
from ice_eval.results.records import CapacityLine, ChainSummary, ExampleOutcome
from ice_eval.seeding import rng_for
from ice_eval.stats import Interval, taxonomy
from ice_eval.tasks import Task

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
_LARGE, _MEDIUM, _SMALL = 0.8, 0.5, 0.2
_ALPHA = 0.05
_DRAWS = 4
"""Random draws of the paper's rate of contamination."""
_TRANSLATED = dict.fromkeys(("qwen2.5-3b", "qwen2.5-3b-instruct"), "Qwen2.5-3B")
"""The paper's name of a model of translated texts alone, which may be either."""
_REASONERS = {"deepseek-r1-distill-qwen-7b": "deepseek-r1-7b"}
"""Hub names of models that the paper's tables on reasoning name otherwise."""
_BERT = "bert-base-uncased"
_YES_NO: Mapping[bool | None, str] = {True: "yes", False: "no"}


class Sources(NamedTuple):
    """Access to the finished runs of every grid, by its name, and to what is no run."""

    grid: Callable[[str], GridResults]
    tasks: Callable[[str], Sequence[tuple[str, Task]]]
    """Model and task of every run that a grid plans, finished or not."""


class Line(NamedTuple):
    run: GridRun
    line: SummaryLine

    @property
    def model(self) -> str:
        return paper_name(self.run.model)

    @property
    def attribution(self) -> str:
        """Its method, without options that a protocol chose."""
        return self.line.attribution.partition(":")[0]

    def value(self, quantity: str, table: str, column: str, **place: str) -> Value:
        """Return the win rate of the line, beside the one of a published table."""
        found = published(table, column, place, PERCENT)
        interval = self.line.win_rate_ci
        ours = self.line.win_rate
        return Value(place=place, quantity=quantity, ours=ours, interval=interval, published=found, run=self.run.name)


def paper_name(model: str) -> str:
    """Return the paper's name of a model of its tables; other models keep theirs."""
    row, name = model_of(model), model.partition("@")[0].rpartition("/")[2].lower()
    return _TRANSLATED.get(name, model) if row is None else row["model"]


def published(table: str, column: str, place: Mapping[str, str], scale: float = 1.0) -> float | None:
    """Return the printed number in the one row of a table with these values, times `scale`; None without one."""
    rows = paper_table(table).rows
    known = {name: value for name, value in place.items() if name in rows[0]}
    found = [row for row in rows if all(row[name] == value for name, value in known.items())]
    if len(found) != 1 or not found[0][column]:
        return None
    return scale * float(found[0][column])


def lines(
    grid: GridResults, *, methods: Iterable[str] = METHODS, operators: Iterable[str] = OPERATORS, k: float | None = K
) -> Iterator[Line]:
    """Yield sufficiency against random sets of equal size, by attribution and operator, then as the grid has them."""
    every = [Line(each.run, each.line) for each in grid.configurations]
    for method in methods:
        for operator in operators:
            for each in every:
                line, same = each.line, each.attribution == method and each.line.operator == operator
                usual = line.null == SIZE and line.direction == "sufficiency" and line.win_rate is not None
                if same and usual and (k is None or line.k == k):
                    yield each


# --- heat maps ----------------------------------------------------------------------------------------------------


def english(sources: Sources) -> list[Value]:
    """Return the win rates of both attributions under both operators."""
    return _rates(lines(sources.grid("english")), "english")


def english_attention(sources: Sources) -> list[Value]:
    """Return the win rates of attention under both operators."""
    return _rates(lines(sources.grid("english"), methods=("attention",)), "english")


def multilingual(sources: Sources) -> list[Value]:
    """Return the win rates of attention in other languages than English."""
    found = lines(sources.grid("multilingual"), methods=("attention",))
    return _rates((each for each in found if each.run.language != "en"), "multilingual")


def _rates(found: Iterable[Line], table: str) -> list[Value]:
    values = []
    for each in found:
        line = each.line
        place = {"attribution": each.attribution, "operator": line.operator, "model": each.model, "task": line.task}
        values.append(each.value("win_rate", table, "win_rate", **place))
    return values


def operator_ablation(sources: Sources) -> list[Value]:
    """Return the win rates under deletion and masks, attributions side by side."""
    operators = ("delete", "mask-unk", "mask-pad", "mask", "infill")
    found = lines(sources.grid("masks"), operators=operators)
    ordered = sorted(found, key=lambda each: operators.index(each.line.operator))
    return [
        each.value(
            "win_rate",
            "operator_ablation",
            "win_rate",
            model=each.model,
            task=each.line.task,
            operator=each.line.operator,
            attribution=each.attribution,
        )
        for each in ordered
    ]


def k_sweep(sources: Sources) -> list[Value]:
    """Return the win rates of every k under deletion; the paper does not name the operator."""
    found = [x for x in lines(sources.grid("k-sweep"), operators=("delete",), k=None) if isinstance(x.line.k, float)]
    found.sort(key=lambda each: (each.line.task != "german", each.line.task, each.model, each.attribution))
    return [
        each.value(
            "win_rate",
            "k_sweep",
            "win_rate",
            task=each.line.task,
            model=each.model,
            attribution=each.attribution,
            k=f"{each.line.k:g}",
        )
        for each in found
    ]


# --- operators side by side ---------------------------------------------------------------------------------------


def operator_comparison(sources: Sources) -> list[Value]:
    """Return attention under both operators, in the published configurations, or those with the widest gaps."""
    by_run: dict[str, dict[str, Line]] = {}
    for each in lines(sources.grid("english"), methods=("attention",)):
        by_run.setdefault(each.run.name, {})[each.line.operator] = each
    pairs = [found for found in by_run.values() if set(found) == set(OPERATORS)]
    known = {(row["model"], row["task"]): number for number, row in enumerate(paper_table("operator_comparison").rows)}
    printed = [pair for pair in pairs if (pair["delete"].model, pair["delete"].line.task) in known]
    if printed:
        chosen = sorted(printed, key=lambda pair: known[pair["delete"].model, pair["delete"].line.task])
    else:
        chosen = sorted(pairs, key=lambda pair: -abs(_rate(pair["delete"]) - _rate(pair["infill"])))[:_REPRESENTATIVE]
    values = []
    for pair in chosen:
        for operator in OPERATORS:
            each = pair[operator]
            where = {"model": each.model, "task": each.line.task}
            place = {"configuration": f"{each.model} / {shown(each.line.task)}", "operator": operator}
            rate = published("operator_comparison", operator, where, PERCENT)
            ours, interval, run = _rate(each), each.line.win_rate_ci, each.run.name
            values.append(
                Value(place=place, quantity="win_rate", ours=ours, interval=interval, published=rate, run=run)
            )
            words = [None if x is None else _ABBREVIATIONS[taxonomy(x)] for x in (ours, rate)]
            values.append(Value(place=place, quantity="word", ours=words[0], published=words[1], run=run))
    return values


def _rate(each: Line) -> float:
    return each.line.win_rate or 0.0


# --- effect sizes -------------------------------------------------------------------------------------------------


def _deletions(sources: Sources) -> list[Line]:
    """Return the configurations under deletion, English first."""
    found = list(lines(sources.grid("english"), operators=("delete",)))
    further = lines(sources.grid("multilingual"), operators=("delete",))
    return found + [each for each in further if each.run.language != "en"]


def _known(table: str, found: Sequence[Line]) -> list[Line]:
    """Return the lines that a published table has, in its order."""
    names = ("model", "task", "attribution")
    order = {tuple(row[name] for name in names): number for number, row in enumerate(paper_table(table).rows)}
    known = [each for each in found if _key(each) in order]
    return sorted(known, key=lambda each: order[_key(each)])


def _key(each: Line) -> tuple[str, ...]:
    return each.model, each.line.task, each.attribution


def _configuration(each: Line) -> str:
    return f"{each.model} {shown(each.line.task)} {shown(each.attribution)}"


def _where(each: Line) -> dict[str, str]:
    return dict(zip(("model", "task", "attribution"), _key(each), strict=True))


def interpretation(effect_size: float) -> str:
    """Return the paper's description of a standardized effect size."""
    if effect_size < 0:
        return "Anti"
    limits = ((_LARGE, "Large"), (_MEDIUM, "Medium"), (_SMALL, "Small"))
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
    found = [each for each in _deletions(sources) if taxonomy(_rate(each)) == "anti-faithful"]
    return _with_effects("anti_faithful", sorted(found, key=_rate))


def _with_effects(table: str, found: Iterable[Line]) -> list[Value]:
    values = []
    for each in found:
        place = {"configuration": _configuration(each)}
        size, known = each.line.effect_size, published(table, "effect_size", _where(each))
        run, interval, rate = each.run.name, each.line.win_rate_ci, published(table, "win_rate", _where(each), PERCENT)
        words = [None if x is None else interpretation(x) for x in (size, known)]
        values += [
            Value(
                place=place, quantity="win_rate", ours=each.line.win_rate, interval=interval, published=rate, run=run
            ),
            Value(place=place, quantity="effect_size", ours=size, published=known, run=run),
            Value(place=place, quantity="word", ours=words[0], published=words[1], run=run),
        ]
    return values


def intervals(sources: Sources) -> list[Value]:
    """Return win rates with their 95 % intervals: of the published configurations, or of the extremes."""
    found = [each for each in _deletions(sources) if each.line.win_rate_ci is not None]
    ordered = sorted(found, key=_rate, reverse=True)
    chosen = _known("intervals", found) or [*ordered[:3], *ordered[3:][-2:]]
    values = []
    for each in chosen:
        place, where, run = {"configuration": _configuration(each)}, _where(each), each.run.name
        rate = published("intervals", "win_rate", where, PERCENT)
        limits = [published("intervals", name, where, PERCENT) for name in ("low", "high")]
        known = None if None in limits else _limits(limits)
        ours, interval = each.line.win_rate, each.line.win_rate_ci
        values.append(Value(place=place, quantity="win_rate", ours=ours, interval=interval, published=rate, run=run))
        values.append(Value(place=place, quantity="interval", ours=_limits(interval), published=known, run=run))
    return values


def _limits(interval: Sequence[float | None] | None) -> str | None:
    return None if interval is None else "[" + ", ".join(f"{100 * (limit or 0.0):.1f}" for limit in interval) + "]"


# --- prompts and languages ----------------------------------------------------------------------------------------


def prompts(sources: Sources) -> list[Value]:
    """Return accuracy, confidence and win rates under deletion for every prompt."""
    grid, by_run = sources.grid("prompts"), dict[str, dict[str, Line]]()
    for each in lines(grid, operators=("delete",)):
        by_run.setdefault(each.run.name, {})[each.attribution] = each
    return [value for run in grid.runs if run.name in by_run for value in _prompt(run, by_run[run.name])]


def _prompt(run: GridRun, own: Mapping[str, Line]) -> Iterator[Value]:
    style = _STYLES.get(run.prompt, run.prompt)
    where = {"model": paper_name(run.model), "task": run.task, "style": style}
    rows = paper_table("prompts").rows
    version = next((row["prompt"] for row in rows if (row["task"], row["style"]) == (run.task, style)), "")
    place = {"model": where["model"], "task": run.task, "prompt": f"{version} ({style})".strip()}
    known = {name: published("prompts", name, where, PERCENT) for name in ("accuracy", "confidence", *METHODS)}
    accuracies = [each.line.accuracy for each in own.values() if each.line.accuracy is not None]
    found: dict[str, tuple[float | None, Interval | None]] = {
        "accuracy": (max(accuracies, default=None), None),
        "confidence": (run.confidence, None),
        **{name: (each.line.win_rate, each.line.win_rate_ci) for name, each in own.items()},
    }
    if set(METHODS) <= set(own):
        attention, gradient = (run.win_rates[own[method].line.configuration] for method in METHODS)
        shared = [each for each in attention if each in gradient]
        both = (np.array([rates[each] for each in shared]) for rates in (gradient, attention))
        groups = run.groups_of(shared)
        interval = stats.paired_difference(*both, groups=groups).interval if shared else None
        found["difference"] = _rate(own["attention"]) - _rate(own["gradient"]), interval
        if known["attention"] is not None and known["gradient"] is not None:
            known["difference"] = known["attention"] - known["gradient"]
    for quantity, (ours, limits) in found.items():
        other = known.get(quantity)
        yield Value(place=place, quantity=quantity, ours=ours, interval=limits, published=other, run=run.name)


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
        place = {"model": name, "task": task}
        values.append(Value(place=place, quantity="expansion", ours=expansion, published=known))
    return values


def translation(sources: Sources) -> list[Value]:
    """Return native and translated texts, attention under deletion."""
    values = []
    grids = (("native", "multilingual"), ("translated", "translation"))
    found = {name: list(lines(sources.grid(g), methods=("attention",), operators=("delete",))) for name, g in grids}
    models = {each.model for each in found["translated"]}
    for condition, each in ((name, each) for name, own in found.items() for each in own):
        if each.line.task in ("french", "german") and each.model in models:
            where = {"model": each.model, "condition": condition, "task": each.line.task}
            value = each.value("win_rate", "translation", "win_rate", **where)
            place = {"condition": f"{each.model} ({condition})", "task": each.line.task}
            values.append(Value(**{**vars(value), "place": place}))
    return values


# --- plausibility -------------------------------------------------------------------------------------------------


def plausibility(sources: Sources) -> list[Value]:
    """Return the correlation of overlap with human rationales and win rate, over the examples of e-SNLI."""
    values = []
    for run in (run for run in sources.grid("english").runs if run.task == "esnli"):
        found = PlausibilityMeasure().of(run.folder)
        every = (
            [line for part in found.parts if part.title == RELATION for line in part.lines]
            if (isinstance(found, Found))
            else []
        )
        usual = {"measure": "IoU", "operator": "delete", "direction": "sufficiency", "null": SIZE, "k": K}
        for line in (line for line in every if usual.items() <= line.items() and line["attribution"] in METHODS):
            where = {"model": paper_name(run.model), "attribution": line["attribution"]}
            head: dict[str, Any] = {"place": where, "run": run.name}
            known = {name: published("plausibility", name, where) for name in ("r", "p", "n")}
            interval = None if line["pearson_ci"] is None else Interval(*line["pearson_ci"])
            values += [
                Value(quantity="r", ours=line["pearson"], interval=interval, published=known["r"], **head),
                Value(quantity="p", ours=line["pearson_p"], published=known["p"], **head),
                Value(quantity="n", ours=line["n"], published=known["n"], **head),
            ]
    return values


# --- encoders -----------------------------------------------------------------------------------------------------


def _encoder(model: str) -> str:
    """Return the paper's name of its encoder for a BERT that was fine-tuned from it; other models keep theirs."""
    is_bert = model.rpartition("/")[2].lower().startswith(_BERT)
    return _BERT if is_bert else model


def encoder(sources: Sources) -> list[Value]:
    """Return sufficiency (the mean NSR at k = 0.2), the share of significant examples, and the area over k."""
    methods = ("lime", "integrated-gradients", *METHODS)
    grid, values = sources.grid("encoder"), list[Value]()
    by_run: dict[tuple[str, str], dict[float, Line]] = {}
    for each in lines(grid, methods=methods, operators=("delete",), k=None):
        if isinstance(each.line.k, float):
            by_run.setdefault((each.run.name, each.line.attribution), {})[each.line.k] = each
    for each in (found[K] for found in by_run.values() if K in found):
        line, others = each.line, by_run[each.run.name, each.line.attribution]
        place = {"model": each.model, "task": line.task, "attribution": line.attribution}
        where = {**place, "model": _encoder(each.run.model)}
        curve = [0.0, *(others[k].line.nsr_mean if k in others else None for k in _AREA_SHARES[1:])]
        width = _AREA_SHARES[-1]
        auc = None if None in curve else width * float(area(_AREA_SHARES, np.array(curve, dtype=np.float64)))
        # The paper prints 0 % where nothing is rejected, also where M is too small for it.
        none_rejected = line.significant_rate is None and line.significant_floor_share is not None
        numbers = (
            ("sufficiency", line.nsr_mean, 1.0),
            ("significant_rate", 0.0 if none_rejected else line.significant_rate, 0.01),
            ("auc_sufficiency", auc, 1.0),
        )
        for name, ours, scale in numbers:
            known = published("encoder", name, where, scale)
            reason = line.significant_reason or "" if name == "significant_rate" else ""
            values.append(
                Value(place=place, quantity=name, ours=ours, published=known, run=each.run.name, reason=reason)
            )
    return values


# --- single texts -------------------------------------------------------------------------------------------------


def _outcomes(sources: Sources, **where: object) -> Iterator[tuple[GridRun, ExampleOutcome]]:
    usual = {"k": K, "direction": "sufficiency", "null": SIZE, "error": None, **where}
    for run in sources.grid("examples").runs:
        for line in run.folder.examples():
            if all(getattr(line, name) == value for name, value in usual.items()):
                yield run, line


def worked_example(sources: Sources) -> list[Value]:
    """Return score, NSR, win rate and word of the first sentence under both operators; scores are probabilities."""
    values, seen = list[Value](), set[tuple[str, str]]()
    for run, line in _outcomes(sources, attribution="attention"):
        if line.operator == ALL or line.operator not in OPERATORS or (run.name, line.operator) in seen:
            continue
        seen.add((run.name, line.operator))  # the first sentence comes first
        row, place = run.inputs[line.example_id], {"model": paper_name(run.model), "operator": line.operator}
        text = "".join(row.fields.values())
        words = ", ".join(text[row.spans[unit].start : row.spans[unit].end].strip() for unit in line.rationale)
        known = {name: published("worked_example", name, place) for name in ("score", "nsr", "win_rate")}
        rate = None if known["win_rate"] is None else known["win_rate"] / 100
        word = next(row["word"] for row in paper_table("worked_example").rows if row["operator"] == line.operator)
        numbers: list[tuple[str, float | str | None, float | str | None]] = [
            ("Rationale", words, "gorgeous, seductive"),
            ("Result", _result(run, line), None),
            ("s(x)", line.score_full, 0.78),
            ("s of the result", line.score, known["score"]),
            ("NSR", line.nsr, known["nsr"]),
            ("WR", line.win_rate, rate),
            ("Verdict", taxonomy(line.win_rate), word),
        ]
        values += [
            Value(place={**place, "row": name}, quantity="cell", ours=_cell(name, ours), published=_cell(name, other),
                  run=run.name)
            for name, ours, other in numbers
        ]  # fmt: skip
    return values


def _result(run: GridRun, line: ExampleOutcome) -> str | None:
    """Return the text that is left of an example, under the first fill."""
    rows = view_example(run.folder, line.example_id, attribution=line.attribution, operator=line.operator, k=K).rows
    kept = [row for row in rows if row.key.kind == Kind.RATIONALE and row.key.operator == line.operator]
    own = (row for row in kept if row.key.attribution == line.attribution and set(row.kept) == set(line.rationale))
    return next((row.text for row in own), None)


def _cell(name: str, value: float | str | None) -> str | None:
    """Return a cell of a column that holds numbers of several kinds."""
    if value is None or isinstance(value, str):
        return value
    return f"{100 * value:.0f}%" if name == "WR" else f"{value:.2f}"


def anti_faithful_examples(sources: Sources) -> list[Value]:
    """Return the four sentences with the words that the gradient picks."""
    values, numbers = list[Value](), dict[str, int]()
    for run, line in _outcomes(sources, attribution="gradient", operator="delete"):
        row = run.inputs[line.example_id]
        text = "".join(row.fields.values())
        number = numbers.setdefault(text, len(numbers) + 1)
        words = [text[row.spans[unit].start : row.spans[unit].end].strip() for unit in line.rationale]
        place = {"model": paper_name(run.model), "text": text}
        known = (
            {}
            if place["model"] != "Llama-3.1-8B"
            else {
                name: published("anti_faithful_examples", name, {"example": str(number)})
                for name in ("win_rate", "effect_size")
            }
        )
        rate = known.get("win_rate")
        values += [
            Value(place=place, quantity="win_rate", ours=line.win_rate, published=None if rate is None else rate / 100,
                  run=run.name),
            Value(place=place, quantity="effect_size", ours=line.effect_size, published=known.get("effect_size"),
                  run=run.name),
            Value(place=place, quantity="words", ours=f"selects {', '.join(words)}", run=run.name),
        ]  # fmt: skip
    return values


# --- without runs -------------------------------------------------------------------------------------------------


def contamination(sources: Sources) -> list[Value]:
    """Return label-indicative tokens that infill cannot write, that it may write, and their rate, per data set."""
    values, audits = list[Value](), dict[str, InfillAudit]()
    planned = sources.tasks("english")
    for task_name in ("sst2", "ag_news", "esnli"):
        model, task = next(((m, t) for m, t in planned if t.name == task_name), (None, None))
        if model is None or task is None:
            continue
        reader = load_reader(model)
        reserve = reader.labels(task, scoring=None).reserve
        items = [
            (encode(reader.codec, task, each, unit="token", scope="content", reserve=reserve), each.gold)
            for each in task.examples(limit=2000)
        ]
        audits[task_name] = audit_infill(reader.codec, task, items, model=reader.name)
    for task_name, found in audits.items():
        judged = next((each for each in found.judged if each.reference == "words"), found.judged[0])
        numbers = {
            "blocked": (float(len(judged.blocked)), 1.0),
            "surviving": (float(len(judged.surviving)), 1.0),
            "rate": (1 - (1 - judged.rate) ** _DRAWS, PERCENT),
            "per_example": (judged.rate_per_example, PERCENT),
        }
        for name, (ours, scale) in numbers.items():
            known = None if name == "per_example" else published("contamination", name, {"task": task_name}, scale)
            values.append(Value(place={"task": task_name}, quantity=name, ours=ours, published=known))
    return values


def models(sources: Sources) -> list[Value]:
    """Return the models of the English grid, with size and type where they are known."""
    values = []
    for name in dict.fromkeys(model for model, _ in sources.tasks("english")):
        suite, row = suite_model(name), model_of(name)
        place = {"model": paper_name(name)}
        given = Path(name).name if Path(name).is_absolute() else name
        cells: list[tuple[str, str | None, str | None]] = [
            ("size", None if suite is None else f"{suite.parameters:g}B", None if row is None else row["size"]),
            ("type", None if suite is None else suite.tuning, None if row is None else row["type"]),
            ("source", given if suite is None else suite.hub_id, None),
        ]
        values += [Value(place=place, quantity=q, ours=ours, published=other) for q, ours, other in cells]
    return values


def versions(sources: Sources) -> list[Value]:
    """Return the source of the data of every task of the English grid, with its revision."""
    known = {row["task"]: row["revision"] for row in paper_table("datasets").rows}
    return [
        Value(place={"task": name}, quantity="revision", ours=origin, published=known.get(name) or None)
        for name, origin in {task.name: task.data.origin for _, task in sources.tasks("english")}.items()
    ]


def guidelines(sources: Sources) -> list[Value]:
    """Return the advised attribution of every run, with the reason."""
    values = []
    for name in ("english", "multilingual"):
        found = advice_of(sources.grid(name))
        for line in found.parts[0].lines if isinstance(found, Found) else ():
            if (line["language"] == "en") == (name == "english"):
                place = {"scenario": f"{shown(line['task'])}, {paper_name(line['model'])}"}
                values.append(Value(place=place, quantity="advice", ours=f"{line['advice']}: {line['reason']}"))
    return values


# --- reasoning ----------------------------------------------------------------------------------------------------


def _chains(grid: GridResults) -> Iterator[tuple[GridRun, str, ChainSummary]]:
    """Yield the runs about chains, each with the paper's name of its model, or the grid's where two would share it."""
    models = list(dict.fromkeys(run.model for run in grid.runs))
    names = {model: _reasoner(model) for model in models}
    for run in grid.runs:
        alike = [model for model in models if names[model] == names[run.model]]
        yield run, names[run.model] if len(alike) == 1 else run.model, grid.chains[run.name]


def _reasoner(model: str) -> str:
    """Return the paper's name of a model of its tables on reasoning, or of its other tables; others keep theirs."""
    name = model.removeprefix(SERVED).rpartition("/")[2].lower()
    tables = ("steps_and_tokens", "eraser")
    known = {row["model"].lower(): row["model"] for table in tables for row in paper_table(table).rows}
    return known.get(_REASONERS.get(name, name), paper_name(model))


def _capacity(content: ChainSummary) -> CapacityLine | None:
    """Return the line of the paper's reasoning capacity: deletion, a fifth of the steps, chains of any length."""
    return next((x for x in content.capacity if (x.operator, x.k, x.chains) == ("delete", K, "all")), None)


def steps_and_tokens(sources: Sources) -> list[Value]:
    """Return win rates of tokens, and necessity and sufficiency of steps, on the same problems."""
    values = []
    for run, model, content in _chains(sources.grid("steps")):
        found: dict[tuple[str, str], tuple[float | None, Interval | None]] = {}
        for level in content.levels or ():
            if (level.unit, level.attribution, level.k) == ("token", "attention", K):
                found["token", level.direction] = level.win_rate, level.win_rate_ci
        line = _capacity(content)
        if line is not None:
            found["step", "necessity"] = line.necessity, line.necessity_ci
            found["step", "sufficiency"] = line.sufficiency, line.sufficiency_ci
        for unit, quantity in itertools.product(("token", "step"), ("necessity", "sufficiency")):
            ours, interval = found.get((unit, quantity), (None, None))
            place = {"model": model, "unit": unit}
            known = published("steps_and_tokens", quantity, place)
            values.append(
                Value(place=place, quantity=quantity, ours=ours, interval=interval, published=known, run=run.name)
            )
    return values


def frontier(sources: Sources) -> list[Value]:
    """Return SRC and accuracy per model and task; the paper does not name its models, so none is beside them."""
    values = []
    for run, model, content in _chains(sources.grid("frontier")):
        head: dict[str, Any] = {"place": {"model": model, "task": _data_set(run.task)}, "run": run.name}
        line = _capacity(content)
        src, interval = (None, None) if line is None else (line.src, line.src_ci)
        values.append(Value(quantity="src", ours=src, interval=interval, **head))
        values.append(Value(quantity="accuracy", ours=content.problems.accuracy, **head))
    return values


def eraser(sources: Sources) -> list[Value]:
    """Return raw scores beside win rates of every model, task and measure; controls are left out."""
    values = []
    for run, model, content in _chains(sources.grid("eraser")):
        for line in content.raw:
            if (line.operator, line.k) != ("delete", K) or is_control(line.attribution):
                continue
            place = {"model": model, "task": _data_set(run.task), "metric": line.measure}
            known = {name: published("eraser", name, place) for name in ("raw", "win_rate")}
            [theirs] = eraser_agreement([known["raw"]], [known["win_rate"]]).agree
            values += [
                Value(
                    place=place, quantity="raw", ours=line.raw, published=known["raw"], run=run.name,
                    reason=line.raw_reason or "",
                ),
                Value(
                    place=place, quantity="win_rate", ours=line.win_rate, published=known["win_rate"], run=run.name
                ),
                Value(
                    place=place, quantity="agree", ours=_YES_NO.get(line.agree), published=_YES_NO.get(theirs),
                    run=run.name,
                ),
            ]  # fmt: skip
    return values


def _data_set(task: str) -> str:
    """Return the paper's name of the data set of a task about chains."""
    return {"arc_challenge": "arc"}.get(task, task.partition("/")[0])


# --- claims -------------------------------------------------------------------------------------------------------


class Finding(NamedTuple):
    """A statement of the paper, and what these runs say of it."""

    statement: str
    published: str
    ours: str
    holds: str
    """`yes`, `no`, `not settled`, or `no data`."""


def findings(sources: Sources) -> list[Finding]:
    """Return the paper's main statements beside the same figures of these runs."""
    checks = (
        _crossings, _gaps, _anti_faithful, _unrelated, _masks, _confidence, _languages, _tokens, _raw,
    )  # fmt: skip
    return [found for check in checks for found in check(sources)]


def _crossings(sources: Sources) -> Iterator[Finding]:
    agreements = [
        each
        for each in sources.grid("english").agreement
        if each.line.attribution == "attention" and each.line.null == SIZE and each.line.gap is not None
        and each.line.direction == "sufficiency" and set(each.line.operators) == set(OPERATORS)
    ]  # fmt: skip
    if not agreements:
        yield Finding("The operator decides whether attention passes 55 %", "5 of 28 (18 %)", "–", "no data")
        return
    found = {(x.run.name, x.line.operator): x for x in lines(sources.grid("english"), methods=("attention",))}
    rates = {key: _rate(each) for key, each in found.items()}
    rates_of = {key: each.run.win_rates[each.line.configuration] for key, each in found.items()}
    sides = [[stats.reaches(rates[each.run.name, o], 0.55) for o in OPERATORS] for each in agreements]
    crossed = sum(first != second for first, second in sides)
    sure = sum(each.line.crosses_threshold == "yes" for each in agreements)
    settled = all(each.line.crosses_threshold == "no" for each in agreements)
    share = _wilson(crossed, len(agreements))
    yield Finding(
        "The operator decides whether attention passes 55 %",
        "5 of 28 (18 %)",
        f"{crossed} of {len(agreements)} ({100 * crossed / len(agreements):.0f} % {share}), {sure} for sure",
        "yes" if sure else "no" if settled else "not settled",
    )
    widest = max(agreements, key=lambda each: abs(each.line.gap or 0.0))
    first, second = (rates_of[widest.run.name, operator] for operator in widest.line.operators)
    shared = [each for each in first if each in second]
    groups = widest.run.groups_of(shared)
    # The widest of many gaps is wide by chance, too: its interval holds for all of them together.
    level = 1 - _ALPHA / len(agreements)
    gap = stats.paired_difference(
        *(np.array([each_rates[each] for each in shared]) for each_rates in (second, first)), groups=groups, level=level
    )
    low, high = gap.interval or (-1.0, 1.0)
    apart = f"{100 * gap.difference:+.1f} pp [{100 * low:+.1f}, {100 * high:+.1f}]"
    yield Finding(
        "The widest gap between operators is far from 0",
        "43.8 pp",
        f"{apart} ({widest.run.model} on {widest.run.task}, {' − '.join(widest.line.operators)})",
        "yes" if not low <= 0 <= high else "not settled",
    )


def _gaps(sources: Sources) -> Iterator[Finding]:
    grid = sources.grid("english")
    rates = {(x.run.name, x.line.operator): (x, _rate(x)) for x in lines(grid, methods=("attention",))}
    texts = {"short": list[float](), "long": list[float]()}
    for (name, operator), (each, rate) in rates.items():
        other = rates.get((name, "infill"))
        if operator == "delete" and other is not None:
            texts["long" if each.line.task == "imdb" else "short"].append(rate - other[1])
    names = (
        ("short", "Deletion exceeds infill on short texts", "67 % of 21"),
        ("long", "Infill exceeds deletion on long texts (IMDB)", "5 of 7"),
    )
    for length, statement, stated in names:
        found = [gap if length == "short" else -gap for gap in texts[length]]
        higher = sum(gap > 0 for gap in found)
        if not found:
            yield Finding(statement, stated, "–", "no data")
        else:
            share = _wilson(higher, len(found))
            yield Finding(statement, stated, f"{higher} of {len(found)} {share}", share.word)


class _Share(NamedTuple):
    low: float
    high: float

    @property
    def word(self) -> str:
        """Return whether it is more than half."""
        return "yes" if self.low > 0.5 else "no" if self.high < 0.5 else "not settled"

    def __str__(self) -> str:
        return f"[{100 * self.low:.0f}, {100 * self.high:.0f}]"


def _wilson(count: int, n: int) -> _Share:
    """Return the 95 % Wilson interval of a share of configurations, in percent when printed."""
    low, high = binomtest(count, n).proportion_ci(method="wilson")
    return _Share(float(low), float(high))


def _anti_faithful(sources: Sources) -> Iterator[Finding]:
    found = list(lines(sources.grid("english"), operators=("delete",)))
    statement, stated = "Explanations are worse than random under deletion", "18 of 56 (32 %)"
    if not found:
        yield Finding(statement, stated, "–", "no data")
        return
    below = [each for each in found if taxonomy(_rate(each)) == "anti-faithful"]
    # One of many intervals excludes one half by chance: the tests are adjusted together.
    p_values = stats.adjusted(np.array([1.0 if x.line.p_value is None else x.line.p_value for x in found]))
    sure = [each for each, p in zip(found, p_values, strict=True) if p <= _ALPHA and _rate(each) < 0.5]
    share = _wilson(len(below), len(found))
    ours = f"{len(below)} of {len(found)} ({100 * len(below) / len(found):.0f} % {share}), {len(sure)} for sure"
    settled = all(ci is not None and ci.low >= 0.5 for ci in (each.line.win_rate_ci for each in found))
    yield Finding(statement, stated, ours, "yes" if sure else "no" if settled else "not settled")
    gradient = sum(each.attribution == "gradient" for each in below)
    if below:
        share = _wilson(gradient, len(below))
        ours = f"{gradient} of {len(below)} {share}"
        yield Finding("Most of these are of gradient", "14 of 18", ours, share.word)


def _unrelated(sources: Sources) -> Iterator[Finding]:
    statement, stated = "Win rate and overlap with human rationales are unrelated", "|r| < 0.04"
    pairs: dict[tuple[str, str], list[tuple[GridRun, ExampleOutcome, float]]] = {}
    for each in overlaps(sources):
        run, line, _ = each
        if line.win_rate is not None:
            pairs.setdefault((run.model, line.attribution), []).append(each)
    parts, apart = list[str](), False
    for (model, attribution), found in pairs.items():
        overlap, rates = np.array([(each, line.win_rate) for _, line, each in found]).T
        groups = found[0][0].groups_of([line.example_id for _, line, _ in found])
        # One of many intervals excludes 0 by chance: they hold for all correlations together.
        level = 1 - _ALPHA / len(pairs)
        r = stats.correlate(overlap, rates, rng=rng_for(0, "reproduce"), level=level, groups=groups)
        if r.r is not None:
            limits = "" if r.interval is None else " [{:+.2f}, {:+.2f}]".format(*r.interval)
            parts.append(f"{paper_name(model)} {attribution}: {r.r:+.2f}{limits}")
            apart |= r.interval is not None and not r.interval[0] <= 0 <= r.interval[1]
    word = "no" if apart else "not settled" if parts else "no data"
    yield Finding(statement, stated, "; ".join(parts) or "–", word)


def _masks(sources: Sources) -> Iterator[Finding]:
    statement, stated = "Masks lower the win rates of language models", "59.8 → 12.9 % (attention)"
    found = {(x.run.name, x.line.attribution, x.line.operator): x for x in lines(
        sources.grid("masks"), operators=("delete", "mask-unk", "mask-pad"))}  # fmt: skip
    parts, lower = list[str](), list[bool | None]()
    for (run, method, operator), each in found.items():
        deleted = found.get((run, method, "delete"))
        if operator == "delete" or deleted is None:
            continue
        parts.append(f"{method} {100 * _rate(deleted):.1f} → {100 * _rate(each):.1f} % ({operator})")
        first, second = each.line.win_rate_ci, deleted.line.win_rate_ci
        if first is None or second is None:
            lower.append(None)
        else:
            lower.append(True if first.high < second.low else False if first.low > second.high else None)
    word = "no data" if not parts else "yes" if lower and all(lower) else "no" if False in lower else "not settled"
    yield Finding(statement, stated, "; ".join(parts) or "–", word)


def _confidence(sources: Sources) -> Iterator[Finding]:
    statement = "Confidence does not predict faithfulness, over prompts"
    values = prompts(sources)
    for method in METHODS:
        pairs = {
            (*value.place.values(),): [value.ours if value.quantity == "confidence" else None, None]
            for value in values
            if value.quantity == "confidence"
        }
        for value in values:
            if value.quantity == method:
                pairs[(*value.place.values(),)][1] = value.ours
        known = [(x, y) for x, y in pairs.values() if isinstance(x, float) and isinstance(y, float)]
        stated = _published_correlation(method)
        yield _correlated(f"{statement} ({method})", stated, known, "prompts")


def _published_correlation(method: str) -> str:
    rows = paper_table("prompts").rows
    x, y = ([float(row[name]) for row in rows] for name in ("confidence", method))
    r = float(np.corrcoef(x, y)[0, 1])
    return f"r = {r:+.2f}, p = {stats.correlation_pvalue(r, len(rows)):.2f}, {len(rows)} prompts"


def _languages(sources: Sources) -> Iterator[Finding]:
    statement = "Win rates of attention differ between languages and their data"
    stated = "12.0 to 82.7 %, over models and operators"
    found = list(lines(sources.grid("multilingual"), methods=("attention",), operators=("delete",)))
    by_model: dict[str, list[Line]] = {}
    for each in found:
        if each.run.language != "en":
            by_model.setdefault(each.model, []).append(each)
    by_model = {model: own for model, own in by_model.items() if len(own) > 1}
    if not by_model:
        yield Finding(statement, stated, "–", "no data")
        return
    # The extremes of many rates are apart by chance, too: these intervals hold for all of them together.
    level = 1 - _ALPHA / sum(map(len, by_model.values()))
    parts, apart = list[str](), False
    for model, own in by_model.items():
        low, high = (choose(own, key=_rate) for choose in (min, max))
        first, second = (_interval(each, level) for each in (low, high))
        apart |= first.high < second.low
        texts = (
            f"{100 * _rate(each):.1f} % [{100 * limits.low:.1f}, {100 * limits.high:.1f}] ({shown(each.line.task)})"
            for each, limits in ((low, first), (high, second))
        )
        parts.append(f"{model}: {' to '.join(texts)}")
    yield Finding(statement, stated, "; ".join(parts), "yes" if apart else "not settled")


def _interval(each: Line, level: float) -> Interval:
    """Return the interval of a mean win rate at another level than that of the summary."""
    rates = each.run.win_rates[each.line.configuration]
    groups = each.run.groups_of([*rates])
    return stats.mean_interval(np.array([*rates.values()]), groups=groups, level=level)


def _tokens(sources: Sources) -> Iterator[Finding]:
    statement = "Token expansion does not predict faithfulness, over languages"
    expansion = {(v.place["model"], v.place["task"]): v.ours for v in tokenization(sources)}
    found = [
        (known, _rate(each))
        for each in lines(sources.grid("multilingual"), methods=("attention",), operators=("delete",))
        if isinstance(known := expansion.get((each.model, each.line.task)), float)
    ]
    yield _correlated(statement, "stated without a number", found, "pairs of model and language")


def _correlated(statement: str, stated: str, pairs: Sequence[tuple[float, float]], counted: str) -> Finding:
    """Return whether two numbers are unrelated: refuted by an interval that excludes 0, and never proven."""
    found = stats.Correlation(0)
    if pairs:
        found = stats.correlate(*np.array(pairs, dtype=np.float64).T, rng=rng_for(0, "reproduce"))
    if found.r is None:
        return Finding(statement, stated, "–", "no data")
    limits = "" if found.interval is None else " [{:+.2f}, {:+.2f}]".format(*found.interval)
    excluded = found.interval is not None and not found.interval[0] <= 0 <= found.interval[1]
    return Finding(
        statement, stated, f"r = {found.r:+.2f}{limits}, {found.n} {counted}", "no" if excluded else "not settled"
    )


def _raw(sources: Sources) -> Iterator[Finding]:
    statement, stated = "Where raw scores and win rates disagree, the raw score alone is positive", "49 of 53 (92 %)"
    values = {name: [v.ours for v in eraser(sources) if v.quantity == name] for name in ("raw", "win_rate")}
    pairs = [
        (raw, rate)
        for raw, rate in zip(values["raw"], values["win_rate"], strict=True)
        if isinstance(raw, float) and isinstance(rate, float)
    ]
    if not pairs:
        yield Finding(statement, stated, "–", "no data")
        return
    compared = eraser_agreement([raw for raw, _ in pairs], [rate for _, rate in pairs])
    ours = f"{compared.eraser_only} of {compared.disagreements}, among {len(pairs)} configurations"
    if not compared.disagreements:
        yield Finding(statement, stated, ours, "not settled")
        return
    share = _wilson(compared.eraser_only, compared.disagreements)
    yield Finding(statement, stated, f"{ours} {share}", share.word)


def overlaps(sources: Sources) -> Iterator[tuple[GridRun, ExampleOutcome, float]]:
    """Yield the e-SNLI examples under deletion with the overlap of rationale and human rationale."""
    for run in (run for run in sources.grid("english").runs if run.task == "esnli"):
        marks = {name: marks_of(row) for name, row in run.inputs.items()}
        for line in run.folder.examples():
            usual = (line.operator, line.direction, line.k, line.null, line.error)
            known = marks.get(line.example_id)
            if usual == ("delete", "sufficiency", K, SIZE, None) and line.attribution in METHODS and known is not None:
                if tells_units_apart(known):
                    yield run, line, iou(line.rationale, known)
