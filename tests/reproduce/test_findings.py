"""Statements of the paper beside the runs of the toy model, counted again from bench.json."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from ice_eval import stats
from ice_eval.reproduce import chosen, contents, findings
from ice_eval.reproduce.contents import Sources


@pytest.fixture(scope="module")
def found(work):
    return {each.statement: each for each in work.findings(chosen([]))}


def rates(work, **where):
    content = json.loads((work.path / "grids" / "english" / "bench.json").read_text())
    usual = {"direction": "sufficiency", "null": "size", "k": 0.2, **where}
    lines = [x for x in content["configurations"] if all(x[name] == value for name, value in usual.items())]
    return {(x["task"], x["attribution"], x["operator"]): x["win_rate"] for x in lines if x["attribution"] != "random"}


def test_every_statement_is_answered_and_written(work, found):
    assert {each.holds for each in found.values()} <= {"yes", "no", "not settled", "no data"}
    written = json.loads((work.path / "findings.json").read_text())["findings"]
    assert {each["statement"] for each in written} == set(found)


def test_crossings_are_those_of_the_win_rates(work, found):
    own = rates(work, attribution="attention")
    tasks = {task for task, _, _ in own}
    crossed = sum((own[t, "attention", "delete"] >= 0.55) != (own[t, "attention", "infill"] >= 0.55) for t in tasks)
    ours = found["The operator decides whether attention passes 55 %"].ours
    assert ours.startswith(f"{crossed} of {len(tasks)} ({100 * crossed / len(tasks):.0f} %")


def test_gaps_and_anti_faithful_configurations_are_counted(work, found):
    own = rates(work)
    short = {t for t, _, _ in own} - {"imdb"}
    higher = sum(own[t, "attention", "delete"] > own[t, "attention", "infill"] for t in short)
    assert found["Deletion exceeds infill on short texts"].ours.startswith(f"{higher} of {len(short)} [")
    deleted = [rate for (_, _, operator), rate in own.items() if operator == "delete"]
    below = sum(rate < 0.5 - 1e-12 for rate in deleted)
    assert found["Explanations are worse than random under deletion"].ours.startswith(f"{below} of {len(deleted)} (")


def test_the_interval_of_the_widest_gap_holds_for_all_gaps_together(work, found):
    english = work.sources().grid("english")
    by_run = {}
    for each in contents.lines(english, methods=("attention",)):
        by_run.setdefault(each.run.name, {})[each.line.operator] = each.run.win_rates[each.line.configuration]
    pairs = [(pair["delete"], pair["infill"]) for pair in by_run.values()]
    deleted, filled = max(pairs, key=lambda pair: abs(np.mean([pair[0][i] - pair[1][i] for i in pair[0]])))
    gaps = np.array([deleted[each] - filled[each] for each in deleted])
    interval = stats.mean_interval(gaps, scale=(-1.0, 1.0), level=1 - 0.05 / len(pairs))
    ours = found["The widest gap between operators is far from 0"].ours
    assert f"{100 * gaps.mean():+.1f} pp [{100 * interval.low:+.1f}, {100 * interval.high:+.1f}]" in ours


def test_one_significant_configuration_of_many_does_not_settle_that_explanations_are_worse_than_random(work, found):
    """Twenty random configurations have one p-value below 0.05 on average; adjusted together they have none."""
    english = work.sources().grid("english")
    lines = list(contents.lines(english, operators=("delete",)))
    raw = [1.0 if each.line.p_value is None else each.line.p_value for each in lines]
    sure = sum(p <= 0.05 and each.line.win_rate < 0.5 for p, each in zip(stats.adjusted(raw), lines, strict=True))
    assert found["Explanations are worse than random under deletion"].ours.endswith(f"{sure} for sure")


def test_languages_differ_if_intervals_of_all_of_them_together_are_apart(work, found):
    ours = found["Win rates of attention differ between languages and their data"]
    content = json.loads((work.path / "grids" / "multilingual" / "bench.json").read_text())
    usual = {"direction": "sufficiency", "null": "size", "k": 0.2, "attribution": "attention", "operator": "delete"}
    lines = [x for x in content["configurations"] if usual.items() <= x.items() and x["task"] != "sst2"]
    own = {x["task"]: x["win_rate"] for x in lines}
    assert len(own) == 6
    assert (
        f"toy: {100 * min(own.values()):.1f} % [" in ours.ours and f"to {100 * max(own.values()):.1f} % [" in ours.ours
    )
    grid = work.sources().grid("multilingual")
    limits = []
    for task in (min(own, key=own.get), max(own, key=own.get)):
        [each] = [x for x in contents.lines(grid, methods=("attention",), operators=("delete",)) if x.run.task == task]
        values = [x.win_rate for x in each.run.folder.examples() if x.configuration == each.line.configuration]
        limits.append(stats.mean_interval(np.array(values), level=1 - 0.05 / 6))
    assert f"[{100 * limits[0].low:.1f}, {100 * limits[0].high:.1f}]" in ours.ours
    assert ours.holds == ("yes" if limits[0].high < limits[1].low else "not settled")


def of_languages(work, rates):
    """The statement about languages for six of them with 60 texts, each with one rate for all of them."""
    grid = work.sources().grid("multilingual")
    lines = list(contents.lines(grid, methods=("attention",), operators=("delete",)))
    for rate, each in zip(rates, (x for x in lines if x.run.language != "en"), strict=True):
        each.run.__dict__["win_rates"] = {each.line.configuration: {str(i): rate for i in range(60)}}
        each.run.__dict__["all_inputs"] = {str(i): SimpleNamespace(group=str(i)) for i in range(60)}
        object.__setattr__(each.line, "win_rate", rate)
    [found] = findings._languages(Sources(lambda _: grid, lambda _: []))
    return found


def test_languages_that_are_far_apart_settle_it(work):
    found = of_languages(work, [rate / 7 for rate in range(1, 7)])
    assert found.holds == "yes" and "14.3 % [" in found.ours and "85.7 % [" in found.ours


def test_two_languages_are_named_where_all_tie(work):
    found = of_languages(work, [0.5] * 6)
    named = re.findall(r"\] \((.+?)\)", found.ours)
    assert found.holds == "not settled" and len(named) == len(set(named)) == 2


def test_one_correlation_of_several_does_not_settle_that_overlap_and_win_rate_are_related(work, monkeypatch):
    """Each of four correlations has a 95 % interval above 0, and none the interval that holds for all of them."""
    grid = work.sources().grid("english")
    run = next(each for each in grid.runs if each.task == "esnli")
    run.__dict__["all_inputs"] = {str(i): SimpleNamespace(group=str(i)) for i in range(40)}
    x = np.linspace(0, 1, 40)
    noise = np.tile([1.0, -1.0], 20) * (1 + x)

    def of(share, methods):
        y = share * x + (1 - share) * 0.5 * noise
        lines = [SimpleNamespace(attribution=m, example_id=str(i), win_rate=y[i]) for m in methods for i in range(40)]
        monkeypatch.setattr(findings, "overlaps", lambda _: [(run, line, x[int(line.example_id)]) for line in lines])
        [found] = findings._unrelated(work.sources())
        return found, stats.correlate(x, y, rng=np.random.default_rng(0))

    alone, r = of(0.52, "a")
    assert r.interval.low > 0 and alone.holds == "no"
    among, _ = of(0.52, "abcd")
    wide = stats.correlate(x, 0.52 * x + 0.24 * noise, rng=np.random.default_rng(0), level=1 - 0.05 / 4).interval
    assert wide.low < 0 and f"{r.r:+.2f} [{wide.low:+.2f}, {wide.high:+.2f}]" in among.ours
    assert among.holds == "not settled"


def twice(grid):
    """The runs of a grid, and the same again under another name of their model, as of a copied folder."""
    other = {run.name: replace(run, model="copy", name=f"{run.name}-copy") for run in grid.runs}
    again = {
        name: getattr(grid, name) + tuple(replace(x, run=other[x.run.name]) for x in getattr(grid, name))
        for name in ("configurations", "agreement")
    }
    return replace(grid, runs=(*grid.runs, *other.values()), **again)


def test_a_copy_of_a_model_adds_no_evidence(work):
    """Configurations on the same texts are one group: intervals stay, and three data sets settle no majority."""
    sources = work.sources()
    copied = Sources(lambda name: twice(sources.grid(name)), sources.tasks)
    once, again = ({x.statement: x for x in findings.findings(each)} for each in (sources, copied))
    for statement in (
        "Deletion exceeds infill on short texts", "Infill exceeds deletion on long texts (IMDB)",
        "The operator decides whether attention passes 55 %", "Explanations are worse than random under deletion",
    ):  # fmt: skip
        limits = [re.search(r"\[\d+, \d+\], \d data sets?", each[statement].ours)[0] for each in (once, again)]
        assert limits[0] == limits[1]
        count, n = re.match(r"(\d+) of (\d+)", once[statement].ours).groups()
        assert again[statement].ours.startswith(f"{2 * int(count)} of {2 * int(n)} ")
    assert again["Deletion exceeds infill on short texts"].holds == "not settled"


def test_a_majority_needs_several_data_sets():
    assert findings._majority("", "", [(task, True) for task in "abc"] * 2).holds == "not settled"
    assert findings._majority("", "", [("a", True)] * 40).holds == "not settled"
    assert findings._majority("", "", [(str(task), True) for task in range(8)]).holds == "yes"


def test_points_on_the_same_texts_are_one_group():
    noise = {"a": 0.1, "b": 0.2, "c": -0.1, "d": 0.15, "e": 0.0}
    points = [(task, x, x + more) for task, more in noise.items() for x in (0.1, 0.4, 0.7)]
    found = findings._correlated("", "", points, "prompts")
    assert found.holds == "not settled" and found.ours.endswith(", 15 prompts, 5 data sets") and "[" not in found.ours
    many = [(f"{task}{copy}", x, y) for copy in range(2) for task, x, y in points]
    assert findings._correlated("", "", many, "prompts").holds == "no"
    alone = findings._correlated("", "", [(str(n), x, y) for n, (_, x, y) in enumerate(points)], "prompts")
    assert alone.holds == "no"


def test_models_are_named_where_there_are_several(work):
    sources = work.sources()
    copied = Sources(lambda name: twice(sources.grid(name)), sources.tasks)
    [alone], [both] = list(findings._masks(sources)), list(findings._masks(copied))
    assert alone.ours.startswith("attention ")
    assert {part.split()[0] for part in both.ours.split("; ")} == {"toy", "copy"}


def test_statements_are_those_about_the_chosen_items_and_have_data(work):
    assert {each.statement for each in work.findings(chosen(["tab:operator_ablation"]))} == {
        "Masks lower the win rates of language models"
    }
    assert work.findings(chosen(["tab:models", "tab:versions", "tab:eraser-comparison"])) == []
    assert "no data" in {each.holds for each in work.findings(chosen(["all"]))}


def test_without_runs_every_statement_has_no_data(work):
    empty = Sources(lambda _: contents_of_nothing(), lambda _: [])
    assert {each.holds for each in findings.findings(empty)} == {"no data"}


def contents_of_nothing():
    from ice_eval.analysis.grid import grid_results

    return grid_results((), ())
