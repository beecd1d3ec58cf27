import csv
from collections import Counter
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
from tests.made_records import settings

from ice_eval import stats
from ice_eval.analysis import anti_faithful, spreads
from ice_eval.analysis.paper import (
    claims,
    discrepancies,
    english_cells,
    headline,
    model_of,
    paper_table,
    paper_tables,
    prompt_cells,
    protocol_differences,
    published,
    step_capacities,
)
from ice_eval.analysis.paper.recomputed import dependence
from ice_eval.analysis.paper.tables import cells, multilingual_cells
from ice_eval.errors import ConfigError, DataError
from ice_eval.models import SUITE
from ice_eval.settings import run_config
from ice_eval.tasks import FEW_SHOT, STANDARD, load_task

FOLDER = files("ice_eval.analysis.paper").joinpath("tables")


def test_headline_figures():
    assert headline() == {
        "crossings": 5,
        "attention_configurations": 28,
        "anti_faithful_delete": 18,
        "delete_configurations": 56,
        "delete_exceeds_short_text": 0.667,
        "median_gap_short_pp": 1.7,
        "mean_gap_short_pp": 4.62,
        "max_gap_pp": 43.8,
    }


def test_the_crossings_by_name():
    assert {(pair.first.model, pair.first.task) for pair in dependence().crossings} == {
        ("GPT-2", "sst2"),
        ("LFM2-2.6B", "ag_news"),
        ("Llama-3.2-3B", "esnli"),
        ("Llama-3.1-8B", "imdb"),
        ("DeepSeek-7B", "sst2"),
    }
    assert len(dependence(attribution="gradient").crossings) == 6


def test_the_grid_is_complete():
    for found, n in (
        (english_cells(), 7 * 4 * 2 * 2),
        (multilingual_cells(), 7 * 6 * 2 - 3 + 9),
        (cells("k_sweep"), 40),
    ):
        assert len({cell.key() for cell in found}) == len(found) == n
    assert len(prompt_cells()) == 28


def test_which_stated_figures_the_tables_bear_out():
    assert {claim.id for claim in claims() if not claim.agrees} == {
        "chinese_lowest_delete",
        "contamination_esnli_percent",
        "highest_infill",
        "llama31_sst2_near_random",
        "llama32_esnli_gradient_rise_pp",
        "mask_ratio_gradient",
        "plausibility_largest_model",
        "prompt_anti_faithful",
        "prompt_confidence_p",
        "prompt_gap_imdb_pp",
        "worked_words",
    }
    assert len({claim.id for claim in claims()}) == len(claims()) == 54
    assert all(claim.note for claim in claims() if not claim.agrees)


def test_cells_that_are_said_to_differ_do():
    between = [found for found in discrepancies() if found.references]
    assert len(between) == 13
    for found in between:
        assert len(set(found.values)) == len(found.values) == len(found.references) > 1


def test_no_win_rate_is_written_down_twice():
    names = ["english", "multilingual", "multilingual_gradient", "effect_sizes", "anti_faithful", "intervals"]
    written = Counter(
        tuple(row[name] for name in ("model", "task", "attribution", "operator"))
        for name in names
        for row in csv.DictReader(FOLDER.joinpath(f"{name}.csv").read_text(encoding="utf-8").splitlines())
        if not row["win_rate"].startswith("=")
    )
    assert set(written.values()) == {1}
    assert "=" not in "".join(cell for table in paper_tables().values() for row in table.rows for cell in row.values())


def test_every_file_is_in_the_index_and_every_row_is_whole():
    tables = paper_tables()
    stored = {path.name.removesuffix(".csv") for path in FOLDER.iterdir()}
    assert stored | {"english_attention"} == set(tables)
    for table in tables.values():
        assert {tuple(row) for row in table.rows} == {tuple(table.rows[0])}
        assert None not in table.rows[0].values()


def test_numbers_of_a_table_are_numbers_in_json():
    content = paper_table("multilingual").as_dict()
    assert content["labels"] == ["tab:multilingual", "fig:multilingual_heatmap"]
    assert (content["n"], content["m"], content["k"]) == (500, 50, 0.2)
    rates = {(row["model"], row["task"], row["operator"]): row["win_rate"] for row in content["rows"]}
    assert rates["DeepSeek-7B", "arabic", "delete"] is None
    assert rates["DeepSeek-7B", "arabic", "infill"] == 80.0


def test_an_unknown_table_is_refused_with_a_suggestion():
    with pytest.raises(ConfigError, match="did you mean 'english'"):
        paper_table("englsh")


def test_a_reference_must_fit_one_row():
    from ice_eval.analysis.paper.tables import referred

    assert (
        referred("english.win_rate:operator=delete", {"model": "GPT-2", "task": "sst2", "attribution": "attention"})
        == "60.6"
    )
    with pytest.raises(DataError, match="fits 28 rows"):
        referred("english.win_rate:operator=delete,attribution=attention", {})


def test_leaders_of_the_languages():
    deleted = [c for c in multilingual_cells() if (c.operator, c.attribution) == ("delete", "attention")]
    best = {task: max((c for c in deleted if c.task == task), key=lambda c: c.win_rate).model for task in LANGUAGES}
    assert best == {"german": "Qwen2.5-7B", "turkish": "Qwen2.5-7B", "french": "Llama-3.1-8B"}


LANGUAGES = ("german", "turkish", "french")


def test_prompts_move_one_win_rate_by_54_points():
    widest = spreads(prompt_cells(), over="prompt")[0]
    assert (widest.cells[0].task, widest.cells[0].attribution) == ("esnli", "gradient")
    assert 100 * widest.width == pytest.approx(53.9)
    assert (widest.lowest.prompt, widest.highest.prompt) == ("v1", "v3")


def test_all_listed_anti_faithful_configurations_are():
    assert len(paper_table("anti_faithful").rows) == 9
    assert all(float(row["win_rate"]) < 50 > float(row["effect_size"]) for row in paper_table("anti_faithful").rows)
    assert {(c.model, c.task) for c in anti_faithful(english_cells()) if c.win_rate < 0.35} == {
        ("GPT-2", "esnli"),
        ("DeepSeek-7B", "ag_news"),
    }


def test_reasoning_capacity_from_necessity_and_sufficiency():
    words = {(model, unit): stats.reasoning_word(src) for model, unit, src in step_capacities()}
    assert words["DeepSeek-R1-7B", "token"] == "decorative"
    assert words["DeepSeek-R1-7B", "step"] == "genuine"
    assert words["Qwen3-0.6B", "step"] == "decorative"
    printed = {(r["model"], r["task"]): stats.reasoning_word(float(r["src"])) for r in paper_table("frontier").rows}
    assert printed["Model B", "sst2"] == "scaffolding"
    assert [printed["Model C", task] for task in ("gsm8k", "sst2")] == ["decorative"] * 2


@pytest.mark.parametrize(
    ("model", "task", "attribution", "operator", "win_rate"),
    [
        ("GPT-2", "sst2", "attention", "delete", 0.606),
        ("openai-community/gpt2-xl", "stanfordnlp/sst2", "gradient", "infill", 0.441),
        ("meta-llama/Llama-3.1-8B@0123abc", "imdb", "attention", "infill", 0.753),
        ("meta-llama/Meta-Llama-3.1-8B", "fancyzhx/ag_news", "gradient", "delete", 0.422),
        ("./models/Llama-3.2-3B-Instruct-Q4_K_M.gguf", "e-SNLI", "attention", "infill", 0.426),
        ("mistralai/Mistral-7B-Instruct-v0.3/", "arabic_astd", "gradient", "delete", 0.399),
        ("deepseek-ai/deepseek-llm-7b-chat", "german_germeval2017", "attention", "infill", 0.12),
        ("Qwen/Qwen2.5-7B-Instruct", "tr", "attention", "infill", 0.816),
        ("gpt2", "sst2", "attention", "mask-pad", 0.134),
        ("gpt2-xl", "sst2/minimal", "attention", "delete", 0.434),
        ("gpt2-xl", "imdb/yes-no", "gradient", "infill", 0.748),
        ("gpt2-xl", "esnli/true-false-unknown", "gradient", "delete", 0.686),
    ],
)
def test_the_published_cell_is_found_by_many_names(model, task, attribution, operator, win_rate):
    assert published(model, task, attribution, operator).win_rate == pytest.approx(win_rate)


@pytest.mark.parametrize(
    ("model", "task", "attribution", "operator"),
    [
        ("Qwen/Qwen2.5-72B-Instruct", "sst2", "attention", "delete"),
        ("Qwen/Qwen3-8B", "sst2", "attention", "delete"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "sst2", "attention", "delete"),
        ("mistralai/Mixtral-8x7B-v0.1", "sst2", "attention", "delete"),
        ("gpt2-medium", "sst2", "attention", "delete"),
        ("GPT-2", "hindi_movies", "attention", "delete"),
        ("GPT-2", "sst2", "lime", "delete"),
        ("GPT-2", "imdb", "attention", "mask-pad"),
        ("GPT-2", "french", "attention", "mask-pad"),
        ("DeepSeek-7B", "arabic", "attention", "delete"),
        ("GPT-2", "sst2/few-shot", "attention", "delete"),
        ("GPT-2", "sst2/minimal/few-shot", "attention", "delete"),
        ("GPT-2", "sst2/minimal", "attention", "mask-pad"),
        ("Mistral-7B", "sst2/minimal", "attention", "delete"),
    ],
)
def test_what_was_not_published_has_no_cell(model, task, attribution, operator):
    assert published(model, task, attribution, operator) is None


def test_another_k_has_a_cell_whose_operator_is_unknown():
    found = published("GPT-2", "german", "attention", "infill", k=0.5)
    assert (found.win_rate, found.operator) == (pytest.approx(0.666), "unstated")
    assert published("GPT-2", "sst2", "attention", "delete", k=0.5) is None
    assert published("GPT-2", "sst2", "attention", "delete", direction="necessity") is None


def config_of(model, **changes):
    """What the manifest of a run says, and how it would have to be for the paper's."""
    asked = run_config({"protocol": "paper", "sign": "abs", **changes})
    return settings(model=model, task="sst2", **vars(asked))


def topics(config, cell):
    return [line.partition(":")[0] for line in protocol_differences(config, cell)]


INFILL = published("GPT-2", "sst2", "attention", "infill")


def test_a_run_by_the_paper_differs_only_in_what_the_paper_does_not_print():
    assert topics(config_of("openai-community/gpt2-xl"), INFILL) == ["prompt"]


@pytest.mark.parametrize(
    ("changes", "topic"),
    [
        ({"k": (0.3,)}, "k"),
        ({"n": 60}, "n"),
        ({"m": 16}, "m"),
        ({"adaptive": "dataset"}, "m"),
        ({"unit": "word"}, "unit"),
        ({"scope": "prompt"}, "scope"),
        ({"target": "gold"}, "target"),
        ({"sign": "support"}, "sign"),
        ({"calibration": "contextual"}, "calibration"),
        ({"fills": "shared"}, "fills"),
        ({"n_fills": 4}, "n-fills"),
        ({"protocol": "default", "fills": "own", "n_fills": 1}, "ties"),
    ],
)
def test_every_difference_of_protocol_is_told(changes, topic):
    assert topics(config_of("openai-community/gpt2-xl", **changes), INFILL) == [topic, "prompt"]


def test_fills_are_no_difference_where_nothing_is_filled():
    cell = published("GPT-2", "sst2", "attention", "delete")
    assert topics(config_of("openai-community/gpt2-xl", fills="shared", n_fills=4), cell) == ["prompt"]


def test_the_released_package_ranks_otherwise_than_the_text():
    found = topics(config_of("openai-community/gpt2-xl", protocol="released"), INFILL)
    assert found == ["scope", "order", "prompt"]


@pytest.mark.parametrize(
    ("model", "note"),
    [
        ("gpt2", "has 1.5B parameters; 'gpt2' does not say how many"),
        ("openai-community/gpt2-xl-chat", "is of the type 'base'"),
        ("smollm2", "smollm2 here, GPT-2 in the paper"),
    ],
)
def test_another_model_is_told(model, note):
    assert any(note in line for line in protocol_differences(config_of(model), INFILL))


def test_a_cell_whose_operator_is_unknown_says_so():
    cell = published("GPT-2", "german", "attention", "infill", k=0.5)
    assert topics(config_of("openai-community/gpt2-xl", k=(0.5,)), cell) == ["prompt", "operator"]


def test_every_prompt_of_the_paper_is_a_way_to_ask_our_task():
    for task in {row["task"] for row in paper_table("prompts").rows}:
        ours = [way for way in load_task(task).ways if way not in (STANDARD, "paper", FEW_SHOT)]
        _standard, *printed = [float(row["attention"]) / 100 for row in paper_table("prompts").where(task=task)]
        cells = [published("gpt2-xl", f"{task}/{way}", "attention", "delete") for way in ours]
        assert [cell.win_rate for cell in cells] == pytest.approx(printed)
        assert all(topics(config_of("gpt2-xl"), cell) == ["prompt", "operator"] for cell in cells)


def test_the_prompt_that_the_paper_prints_belongs_to_the_main_tables():
    printed, standard = (published("gpt2-xl", task, "attention", "delete") for task in ("sst2/paper", "sst2"))
    assert printed == standard is not None
    assert "sst2/paper" in protocol_differences(config_of("gpt2-xl"), standard)[-1]


def test_the_models_of_the_suite_are_those_of_the_paper():
    tokens = [model for model in SUITE if model.unit == "token"]
    assert [model_of(model.hub_id) for model in tokens] == list(paper_table("models").rows)
    assert [model_of(model.name) for model in tokens] == list(paper_table("models").rows)
    for model in tokens:
        row = model_of(model.hub_id)
        assert model.parameters == pytest.approx(float(row["size"].rstrip("B")), rel=0.1)
        assert model.tuning == row["type"] or "The paper calls it" in model.note
        cell = replace(INFILL, model=row["model"])
        assert "model" not in topics(config_of(model.hub_id), cell)
    steps = {_short(row["model"]) for row in paper_table("steps_and_tokens").rows}
    assert {_short(model.name) for model in SUITE if model.unit == "step"} == steps
    assert not any(model_of(model.hub_id) for model in SUITE if model.unit == "step")


def _short(name):
    """`deepseek-r1-distill-qwen-7b` and `DeepSeek-R1-7B` alike."""
    return name.lower().replace("distill-qwen-", "")


def test_the_page_counts_the_figures_right():
    page = Path(__file__).parents[2].joinpath("docs", "reproduce.md").read_text(encoding="utf-8")
    found = claims()
    assert f"states {len(found)} numbers. Its tables confirm {sum(claim.agrees for claim in found)}" in page
