"""Variance components and pooled win rates: by hand, by simulation, against statsmodels, and on a grid."""

import itertools
import warnings

import numpy as np
import pytest
from scipy.stats import t
from tests.small_grids import content, write_reviews

from ice_eval.analysis.measures import Missing
from ice_eval.analysis.variance import components, pooled, variance
from ice_eval.bench import grid_of
from ice_eval.bench.run import finished_runs, results_of, run_grid

TASKS, OPERATORS = ("sst2", "demo"), ["delete", "mask-unk"]


def table_of(cells):
    """Values and levels of a table of models and tasks."""
    cells = np.array(cells)
    model, task = np.indices(cells.shape).reshape(2, -1)
    return cells.ravel(), {"model": model, "task": task}


def sampled(rng, *, models=3, tasks=3, prompts=2, texts=4, sd):
    """Win rates of one attribution, not cut off at 0 and 1; `sd` has a standard deviation for every source."""
    shapes = {
        "model": (models, 1, 1, 1),
        "task": (1, tasks, 1, 1),
        "model task": (models, tasks, 1, 1),
        "prompt": (1, tasks, prompts, 1),
        "text": (1, tasks, 1, texts),
        "rest": (models, tasks, prompts, texts),
    }
    values = 0.6 + sum(rng.normal(0, sd.get(name, 0.0), shape) for name, shape in shapes.items())
    model, task, prompt, text = np.indices(values.shape).reshape(4, -1)
    return values.ravel(), {
        "model": model,
        "task": task,
        "prompt": task * prompts + prompt,
        "text": task * texts + text,
    }


def named(found):
    return {" ".join(sorted(each)): value for each, value in found.items()}


def test_components_of_a_table_are_those_of_anova():
    # Mean squares: models 0.09, tasks 0.04, interaction 0.01.
    found = named(components(*table_of([[0.5, 0.6], [0.7, 1.0]])))
    assert found == pytest.approx({"model": (0.09 - 0.01) / 2, "task": (0.04 - 0.01) / 2, "model task": 0.01})


def test_effects_that_add_up_have_the_variances_of_their_levels():
    sources = {"attribution": [0.5, 0.6, 0.8], "operator": [0.0, 0.1], "text": [-0.1, 0.0, 0.0, 0.1]}
    levels = np.array(list(itertools.product(*(range(len(each)) for each in sources.values())))).T
    values = sum(np.array(each)[own] for each, own in zip(sources.values(), levels, strict=True))
    found = named(components(values, dict(zip(sources, levels, strict=True))))
    own = {name: found.pop(name) for name in sources}
    assert own == pytest.approx({name: np.var(each, ddof=1) for name, each in sources.items()})
    assert list(found.values()) == pytest.approx([0.0] * 4)


def test_the_interval_of_a_table_is_that_of_its_mean_squares():
    cells = 0.4 + np.array([[0.05, 0.06], [0.07, 0.10]])  # mean squares 0.0009, 0.0004 and 0.0001
    found = pooled(*table_of(cells), np.ones(4))
    error, df = (9 + 4 - 1) * 1e-4 / 4, (9 + 4 - 1) ** 2 / (81 + 16 + 1)
    assert (found.mean, found.df) == pytest.approx((0.47, df))
    assert found.interval == pytest.approx(0.47 + t.ppf([0.025, 0.975], df) * np.sqrt(error))


def test_a_single_factor_has_the_t_interval():
    values = np.array([0.4, 0.5, 0.7, 0.8])
    found = pooled(values, {"text": np.arange(4)}, np.ones(4))
    half = 3.18244630528371 * values.std(ddof=1) / 2
    assert (found.mean, *found.interval, found.df) == pytest.approx((0.6, 0.6 - half, 0.6 + half, 3))


def test_prompts_and_texts_count_through_the_means_of_tasks():
    values, factors = sampled(np.random.default_rng(0), sd={"model": 0.1, "task": 0.1, "prompt": 0.01, "rest": 0.01})
    means = table_of(values.reshape(3, 3, -1).mean(axis=2))
    whole, short = pooled(values, factors, np.ones(values.size)), pooled(*means, np.ones(9))
    assert (*whole.interval, whole.df) == pytest.approx(
        (*short.interval, short.df), rel=0.01
    )  # but for negative variances


def test_weights_decide_what_counts():
    values, factors = table_of([[0.2, 0.4], [0.6, 0.8]])
    assert pooled(values, factors, np.array([1, 0, 0, 1])).mean == pytest.approx(0.5)


@pytest.mark.parametrize("values", [[0.5], [0.5, 0.5, 0.5]])
def test_there_is_no_interval_without_a_difference(values):
    factors = {"text": np.arange(len(values))} if len(values) > 1 else {}
    assert pooled(np.array(values), factors, np.ones(len(values)))[1:] == (None, None)


@pytest.mark.parametrize("kept", [1.0, 0.7], ids=["complete", "with gaps"])
def test_components_are_unbiased(kept):
    rng = np.random.default_rng(1)
    sd = {"model": 0.1, "task": 0.06, "model task": 0.05, "prompt": 0.05, "text": 0.1, "rest": 0.2}
    found = []
    for _ in range(400):
        values, factors = sampled(rng, sd=sd)
        chosen = rng.random(values.size) < kept
        found.append(named(components(values[chosen], {name: each[chosen] for name, each in factors.items()})))
    names = {"model task": "model task", "prompt": "prompt task", "text": "task text", "rest": "model prompt task text"}
    for source, size in sd.items():
        each = np.array([line[names.get(source, source)] for line in found])
        assert abs(each.mean() - size**2) < 4 * each.std() / np.sqrt(each.size), source
    for name in set(found[0]) - {names.get(source, source) for source in sd}:
        each = np.array([line[name] for line in found])
        assert abs(each.mean()) < 4 * each.std() / np.sqrt(each.size), name


@pytest.mark.parametrize(
    "sd",
    [
        {"model": 0.03, "task": 0.03, "model task": 0.02, "text": 0.1, "rest": 0.2},
        {"model": 0.05, "text": 0.05, "rest": 0.05},
        {"task": 0.05, "prompt": 0.02, "rest": 0.05},
        {"text": 0.1, "rest": 0.2},
    ],
    ids=["all", "models", "tasks", "texts"],
)
def test_pooled_intervals_cover_with_four_models_and_four_tasks(sd):
    rng, n = np.random.default_rng(2), 300
    found = [sampled(rng, models=4, tasks=4, texts=6, sd=sd) for _ in range(n)]
    intervals = [pooled(values, factors, np.ones(values.size)).interval for values, factors in found]
    assert np.mean([low <= 0.6 <= high for low, high in intervals]) >= 0.93


def test_statsmodels_finds_the_same_variances_and_standard_error():
    pytest.importorskip("statsmodels", reason="statsmodels is not installed; it checks the moments independently")
    import pandas as pd
    from statsmodels.regression.mixed_linear_model import MixedLM

    rng = np.random.default_rng(3)
    cells = 0.6 + rng.normal(0, 0.1, (6, 1)) + rng.normal(0, 0.1, (1, 5)) + rng.normal(0, 0.05, (6, 5))
    values, factors = table_of(cells)
    frame = pd.DataFrame({"y": values, "one": 1} | factors)
    formulas = {name: f"0 + C({name})" for name in factors}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MixedLM.from_formula("y ~ 1", frame, groups="one", re_formula="0", vc_formula=formulas)
        fitted = model.fit(reml=True)
    ours = named(components(values, factors))
    by_name = dict(zip(model.exog_vc.names, fitted.vcomp, strict=True))
    assert by_name | {"rest": fitted.scale} == pytest.approx(
        {"model": ours["model"], "task": ours["task"], "rest": ours["model task"]}, rel=1e-2
    )
    found = pooled(values, factors, np.ones(30))
    assert (found.interval.high - found.mean) / t.ppf(0.975, found.df) == pytest.approx(fitted.bse_fe.iloc[0], rel=1e-2)


# --- a grid -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Two tasks, one with two prompts."""
    folder = tmp_path_factory.mktemp("variance")
    tasks = [
        {"task": name, "data": str(write_reviews(folder / f"{name}.jsonl", 6 + i))} for i, name in enumerate(TASKS)
    ]
    given = content("", tasks=tasks, attributions=["attention", "gradient", "random"], operators=OPERATORS, n=7)
    grid = grid_of(given, where="grid", folder=folder, default_name="small")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ice_eval.bench.run.write_grid_figures", lambda *_: [])
        bench = run_grid(grid, folder / "bench")
    return results_of(finished_runs(grid, bench))


def test_a_grid_has_shares_and_pooled_win_rates(results):
    found = variance(results)
    shares, means = (part.lines for part in found.parts)
    assert [line["source"] for line in shares] == [
        "attribution",
        "operator",
        "attribution × operator",
        "task",
        "prompt",
        "text",
        "rest",
    ]
    assert sum(line["share"] for line in shares) == pytest.approx(1)
    assert {line["source"]: line["n_levels"] for line in shares}["text"] == 13
    names = itertools.product(["attention", "gradient", "random"], OPERATORS)
    assert [(line["attribution"], line["operator"]) for line in means] == list(names)
    for line in means:
        rates = {
            (each.run.task, each.run.prompt): each.line.win_rate
            for each in results.configurations
            if (each.line.attribution, each.line.operator) == (line["attribution"], line["operator"])
        }
        by_task = [np.mean([rate for (name, _), rate in rates.items() if name == task]) for task in TASKS]
        assert line["win_rate"] == pytest.approx(np.mean(by_task))  # every task counts alike
        assert line["win_rate_ci"][0] <= line["win_rate"] <= line["win_rate_ci"][1]
        assert (line["n_models"], line["n_tasks"], line["n_prompts"], line["df"]) == (1, 2, 3, 1)
    assert "not separated by the grid: model. Results" in found.notes[-1]


def test_a_grid_of_one_run_has_nothing_to_pool(results):
    assert isinstance(variance(results_of(results.runs[:1])), Missing)


def test_prompts_of_one_task_are_pooled(results):
    own = [run for run in results.runs if run.task == "sst2"]
    _, means = (part.lines for part in variance(results_of(own)).parts)
    assert {(line["n_tasks"], line["n_prompts"], line["n_texts"]) for line in means} == {(1, 2, 6)}
