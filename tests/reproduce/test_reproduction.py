"""Tables and figures of the toy model: files, and numbers against those of `bench.json`, read plainly."""

import csv
import json
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from tests.report import drawings

from ice_eval.errors import ConfigError
from ice_eval.pipeline import Silent
from ice_eval.reproduce import EXPERIMENTS, ITEMS, Reproduction, chosen, contents
from ice_eval.reproduce.contents import Sources
from ice_eval.reproduce.run import _parameters as parameters_of

TEXTS = [
    label for label, item in ITEMS.items() if item.content and not any(EXPERIMENTS[e].steps for e in item.experiments)
]


def lines(work, experiment, **where):
    """Lines of configurations of a grid as its bench.json has them."""
    content = json.loads((work.path / "grids" / experiment / "bench.json").read_text())
    usual = {"direction": "sufficiency", "null": "size", "k": 0.2, **where}
    return [x for x in content["configurations"] if all(x[name] == value for name, value in usual.items())]


def rates(made, label, quantity="win_rate"):
    return {tuple(v.place.values()): v.ours for v in made[label].values if v.quantity == quantity}


def test_every_table_and_figure_about_texts_comes_out(made):
    assert set(made) >= set(TEXTS)


@pytest.mark.parametrize("label", TEXTS)
def test_files_are_there_and_open(made, label):
    found = made[label]
    files = {kind: found.folder / f"{found.item.file}.{kind}" for kind in ("tex", "csv", "svg", "pdf")}
    assert all(file.is_file() for file in files.values())
    assert files["pdf"].read_bytes()[:5] == b"%PDF-" and b"%%EOF" in files["pdf"].read_bytes()[-10:]
    assert files["svg"].read_text("utf-8").startswith("<svg")
    tex = files["tex"].read_text("utf-8")
    assert tex.isascii() and not (found.item.figure and r"\dag" in tex), "marks are of tables"
    with (found.folder / f"{found.item.file}-values.csv").open() as stream:
        assert len(list(csv.DictReader(stream))) == len(found.values)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no pdflatex on the PATH")
def test_all_of_them_compile_in_one_document(made, tmp_path):
    inputs = []
    for each in made.values():
        for kind in ("tex", "pdf"):
            shutil.copy(each.folder / f"{each.item.file}.{kind}", tmp_path)
        inputs.append(rf"\input{{{each.item.file}.tex}}\clearpage")
    packages = r"\usepackage[T1]{fontenc}\usepackage[utf8]{inputenc}\usepackage{booktabs,graphicx}"
    text = "\n".join([r"\documentclass{article}", packages, r"\begin{document}", *inputs, r"\end{document}"])
    (tmp_path / "all.tex").write_text(text)
    done = subprocess.run(["pdflatex", "-halt-on-error", "all.tex"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]


def test_the_heatmap_equals_the_summary_cell_by_cell(work, made):
    expected = {
        (x["attribution"], x["operator"], x["model"], x["task"]): x["win_rate"]
        for attribution in ("attention", "gradient")
        for operator in ("delete", "infill")
        for x in lines(work, "english", attribution=attribution, operator=operator)
    }
    assert len(expected) == 16
    assert rates(made, "fig:english_heatmap") == expected


def test_languages_equal_the_summary_without_english(work, made):
    expected = {
        (x["attribution"], x["operator"], x["model"], x["task"]): x["win_rate"]
        for operator in ("delete", "infill")
        for x in lines(work, "multilingual", attribution="attention", operator=operator)
        if x["task"] != "sst2"
    }
    assert len(expected) == 12
    assert rates(made, "tab:multilingual") == expected


def test_sizes_masks_and_translations_equal_their_summaries(work, made):
    for (task, model, attribution, k), rate in rates(made, "tab:ksweep").items():
        where = {"task": task, "model": model, "attribution": attribution, "k": float(k), "operator": "delete"}
        assert [x["win_rate"] for x in lines(work, "k-sweep", **where)] == [rate]
    for (model, task, operator, attribution), rate in rates(made, "tab:operator_ablation").items():
        where = {"task": task, "model": model, "attribution": attribution, "operator": operator}
        assert [x["win_rate"] for x in lines(work, "masks", **where)] == [rate]
    grids = {"native": "multilingual", "translated": "translation"}
    found = rates(made, "tab:nllb")
    assert len(found) == 4
    for (condition, task), rate in found.items():
        grid = grids[condition.removeprefix("toy (").removesuffix(")")]
        assert [x["win_rate"] for x in lines(work, grid, task=task, attribution="attention", operator="delete")] == [
            rate
        ]


def test_prompts_equal_the_summary(work, made):
    for method in ("attention", "gradient"):
        expected = sorted(x["win_rate"] for x in lines(work, "prompts", attribution=method, operator="delete"))
        assert sorted(rates(made, "tab:prompt_sensitivity", method).values()) == expected
    gaps = rates(made, "fig:method_gap", "difference")
    first, second = (rates(made, "fig:method_gap", name) for name in ("attention", "gradient"))
    assert gaps == {place: first[place] - second[place] for place in gaps} and len(gaps) == 15


def test_the_encoder_table_holds_nsr_and_its_area(work, made):
    suf, auc = (rates(made, "tab:encoder_results", name) for name in ("sufficiency", "auc_sufficiency"))
    assert len(suf) == 20
    for (_, task, attribution), value in suf.items():
        of = {x["k"]: x["nsr_mean"] for k in (0.1, 0.2, 0.3, 0.4, 0.5)
              for x in lines(work, "encoder", task=task, attribution=attribution, operator="delete", k=k)}  # fmt: skip
        assert value == of[0.2]
        if None in of.values():
            assert auc["toy", task, attribution] is None
        else:
            curve = [0.0, *(of[k] for k in sorted(of))]
            by_hand = sum((a + b) / 2 * 0.1 for a, b in zip(curve, curve[1:], strict=False))
            assert auc["toy", task, attribution] == pytest.approx(by_hand, abs=1e-12)


def test_the_encoder_table_has_the_share_of_rejected_examples_also_where_it_is_none(work, made):
    found = rates(made, "tab:encoder_results", "significant_rate")
    assert len(found) == 20
    for (_, task, attribution), value in found.items():
        [line] = lines(work, "encoder", task=task, attribution=attribution, operator="delete")
        assert value == (line["significant_rate"] or 0)
        assert (line["significant_rate"] is None) == bool(line["significant_reason"])
    assert {v.published for v in made["tab:encoder_results"].values} == {None}, "the toy is no BERT"


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("org/bert-base-uncased-SST-2", "bert-base-uncased"),
        ("/models/BERT-base-uncased", "bert-base-uncased"),
        ("distilbert/distilbert-base-uncased-finetuned-sst-2-english", None),
    ],
)
def test_encoders_stand_beside_the_paper_if_they_are_bert(work, model, name):
    grid = work.sources().grid("encoder")
    renamed = replace(
        grid, configurations=tuple(replace(x, run=replace(x.run, model=model)) for x in grid.configurations)
    )
    found = contents.encoder(Sources(lambda _: renamed, lambda _: []))
    [value] = [
        v.published
        for v in found
        if (v.place["task"], v.place["attribution"], v.quantity) == ("sst2", "lime", "sufficiency")
    ]
    assert value == (0.617 if name else None)


def test_anti_faithful_configurations_are_all_below_one_half_worst_first(work, made):
    below = [x["win_rate"] for x in lines(work, "english", operator="delete") if x["attribution"] != "random"]
    below += [
        x["win_rate"] for x in lines(work, "multilingual", operator="delete")
        if x["attribution"] != "random" and x["task"] != "sst2"
    ]  # fmt: skip
    below = sorted(rate for rate in below if rate < 0.5 - 1e-12)
    assert below and list(rates(made, "tab:anti_faithful_configs").values()) == below


def test_the_four_sentences_come_first_and_infill_has_other_texts(work, made):
    texts = [text for _, text in rates(made, "tab:anti_faith_examples")]
    assert len(texts) == 4 and texts[0] == "a gorgeous , witty , seductive movie ."
    assert len((work.path / "data" / "sst2.jsonl").read_text().splitlines()) == 10


def test_contamination_is_compared_under_the_papers_definition_alone(made):
    found = {(v.place["task"], v.quantity): v for v in made["tab:contamination"].values}
    for task in ("sst2", "ag_news", "esnli"):
        surviving = found[task, "surviving"].ours
        assert found[task, "rate"].ours == pytest.approx(1 - (1 - surviving / 50_000) ** 4, abs=1e-12)
        assert found[task, "pool_rate"].published is None and found[task, "pool_rate"].difference is None
        assert found[task, "pool_rate"].ours >= found[task, "rate"].ours
    known = {task: found[task, "rate"].published for task in ("sst2", "ag_news", "esnli")}
    by_paper = {task: 1 - (1 - n / 50_000) ** 4 for task, n in (("sst2", 25), ("ag_news", 18), ("esnli", 9))}
    assert {task: round(100 * rate, 2) for task, rate in by_paper.items()} == pytest.approx(
        {task: 100 * rate for task, rate in known.items()}, abs=0.011
    )


def test_gaps_are_drawn_in_percentage_points_and_models_apart(made):
    item, values = made["fig:gap_by_task"].item, made["fig:gap_by_task"].values
    known = [v for v in values if v.ours is not None]
    several = [*values, *(replace(v, place={**v.place, "model": "other"}, ours=0.5) for v in known)]
    for label in ("fig:gap_by_task", "fig:method_gap"):
        drawn = ITEMS[label].drawn(several, None)
        text = json.dumps(drawn.chart.to_dict(validate=False))
        assert "attention less gradient (pp)" in text and "+.0%" not in text
        assert {row["gap"] for row in drawings.rows(drawn, "gap") if row["model"] == "other"} == {50}
    for label, panel in (("fig:gap_by_task", "column"), ("fig:faith_conf", "row")):
        assert {row[panel] for row in drawings.rows(ITEMS[label].drawn(several, None))} == {"toy", "other"}, label
    assert {row["column"] for row in drawings.rows(item.drawn(values, None))} == {""}


def test_published_intervals_are_those_of_the_same_configuration_under_deletion(work):
    [each, *_] = contents.lines(work.sources().grid("english"), methods=("attention",), operators=("delete",))
    ours = each._replace(model="Qwen2.5-7B", task="imdb")
    known = contents.published("english", "win_rate", {**contents._where(ours), "operator": "delete"}, 0.01)
    assert ours.win_rate(known).published_interval == pytest.approx((0.921, 0.977))
    assert ours.win_rate(known - 0.02).published_interval is None, "the number of another prompt"
    assert ours._replace(operator="infill").win_rate(known).published_interval is None


def test_revisions_of_the_hub_stand_beside_those_of_the_paper_and_files_have_none(choices, made, tmp_path):
    work = Reproduction.opened(tmp_path, {**choices, "data_dir": None})
    found = {(v.place["task"], v.quantity): v for v in contents.versions(work.sources())}
    assert found["sst2", "source"].ours == "nyu-mll/glue/sst2/validation"
    for task in ("sst2", "imdb", "ag_news"):
        assert len(found[task, "revision"].ours) == 15
        assert found[task, "revision"].ours == found[task, "revision"].published
    assert found["esnli", "revision"].ours == "cdb5c3d5eed6ead"
    assert found["esnli", "revision"].published == "a160e6a02bbb8d8"
    files = {(v.place["task"], v.quantity): v for v in made["tab:versions"].values}
    assert files["sst2", "source"].ours == "sst2.jsonl", "the folders of a person are not printed"
    assert files["sst2", "revision"].ours is None
    assert files["sst2", "revision"].reason == "the data are a file"


def test_a_published_number_stands_beside_a_model_of_the_paper(choices, tmp_path, data):
    """The toy model in a folder whose name is that of a model of the paper is compared with it."""
    from ice_eval.reproduce.contents import published

    assert published("english", "win_rate", {"model": "GPT-2", "task": "sst2", "operator": "delete",
                     "attribution": "attention"}, 0.01) == pytest.approx(0.606)  # fmt: skip
    assert published("english", "win_rate", {"model": "toy", "task": "sst2"}) is None


def test_the_state_tells_finished_missing_and_unavailable_ones_apart(work):
    states = {each.label: each.state for each in work.progress(list(ITEMS.values()))}
    assert states["fig:evolution"] == "no numbers"
    assert states["tab:models"] == "no run needed"
    assert states["tab:frontier_cot"] == "needs data"
    assert {states[label] for label in TEXTS} <= {"done", "no run needed"}


def test_a_run_that_fails_leaves_its_tables_partly_done(choices, data, tmp_path):
    broken = tmp_path / "data"
    shutil.copytree(data, broken)
    (broken / "german.jsonl").write_text("not json\n")
    work = Reproduction.opened(tmp_path / "out", {**choices, "data_dir": str(broken)})
    work.run(chosen(["tab:ksweep"]), executor=None, reporter=Silent())
    [found] = work.progress(chosen(["tab:ksweep"]))
    assert (found.state, found.finished, found.planned) == ("partly done", 1, 2)
    assert "toy on german" in found.missing[0] and "german.jsonl" in found.missing[0]
    # Mended data: the same command again finishes it.
    shutil.copy(data / "german.jsonl", broken)
    again = Reproduction.opened(tmp_path / "out", {})
    assert again.choices.n == 4
    again.run(chosen(["tab:ksweep"]), executor=None, reporter=Silent())
    assert again.progress(chosen(["tab:ksweep"]))[0].state == "done"


def test_languages_have_the_attributions_of_the_authors_scripts_under_their_protocol(data, tmp_path):
    given = {"models": {"": ["toy"]}, "n": 3, "m": 3, "data_dir": str(data), "protocol": "authors"}
    work = Reproduction.opened(tmp_path, given)
    for experiment in ("multilingual", "translation", "k-sweep"):
        for run in work.grid(experiment).runs():
            first = ("attention", "gradient") if run.language == "en" else ("attention:layer=-1", "gradient:norm=l1")
            assert run.config.attributions == (*first, "random")
    assert {run.config.max_characters for run in work.grid("english").runs()} == {400, 500}
    work.run(chosen(["tab:ksweep"]), executor=None, reporter=Silent())
    [found] = work.written(chosen(["tab:ksweep"]), Silent())
    assert {value.place["attribution"] for value in found.values} == {"attention", "gradient"}


def test_models_of_one_experiment_replace_those_of_all(choices, tmp_path):
    models = {"": ["toy", "openai:chat"], "masks": ["smollm2"]}
    work = Reproduction.opened(tmp_path, {**choices, "models": models, "base_url": "http://127.0.0.1:9/v1"})
    assert [model.ref for model in work.grid("english").models] == ["toy"]
    assert [model.ref for model in work.grid("masks").models] == ["smollm2"]
    assert work.choices.models_of(EXPERIMENTS["eraser"]) == ("openai:chat",)


def test_models_of_a_single_task_are_run_on_that_alone(choices, tmp_path):
    models = {"encoder/sst2": ["toy"], "encoder/imdb": ["smollm2", "toy"], "": ["smollm2"]}
    work = Reproduction.opened(tmp_path, {**choices, "models": models})
    assert [(run.model.name, run.task_name) for run in work.grid("encoder").runs()] == [
        ("toy", "sst2"), ("toy", "imdb"), ("smollm2", "imdb"),
    ]  # fmt: skip
    assert {run.model.name for run in work.grid("masks").runs()} == {"smollm2"}
    wrong = Reproduction.opened(tmp_path, {**choices, "models": {"encoder/sst": ["toy"]}})
    with pytest.raises(ConfigError, match="no task 'sst' in the grid; did you mean 'sst2'"):
        wrong.grid("encoder")


def test_settings_of_servers_are_those_of_served_models_alone(choices, tmp_path):
    given = {**choices, "base_url": "http://127.0.0.1:9/v1", "serving": {"price_in": 1.0, "price_out": 4.0}}
    work = Reproduction.opened(tmp_path, {**given, "models": {"": ["toy", "openai:chat"]}})
    assert [each.ref.price_out for each in work.grid("frontier").models] == [4.0]
    assert work.grid("masks").models[0].ref == "toy"
    named = Reproduction.opened(tmp_path, {**given, "models": {}}).grid("frontier").models
    assert [(each.name, each.ref.price_in) for each in named] == [(f"openai:model-{x}", 1.0) for x in "abc"]


def test_grids_that_cannot_start_are_skipped_and_refused_if_there_is_no_other(choices, tmp_path):
    work = Reproduction.opened(tmp_path / "out", choices)
    with pytest.raises(ConfigError, match="frontier needs models behind a server: --models frontier=openai:NAME"):
        work.run(chosen(["frontier"]), executor=None, reporter=Silent())
    assert not (tmp_path / "out").exists()


def test_plausibility_needs_highlights_and_translations_need_files(choices, data, work, tmp_path):
    plain = tmp_path / "data"
    shutil.copytree(data, plain)
    shutil.rmtree(plain / "translated")
    rows = [json.loads(line) for line in (data / "esnli.jsonl").read_text().splitlines()]
    (plain / "esnli.jsonl").write_text(
        "".join(json.dumps({k: v for k, v in row.items() if not k.startswith("highlights")}) + "\n" for row in rows)
    )
    labels = ["tab:alignment_appendix", "tab:nllb"]
    own = Reproduction.opened(tmp_path / "out", {**choices, "data_dir": str(plain)})
    own.run(chosen([*labels, "tab:english_results_appendix"]), executor=None, reporter=Silent())
    found = {each.label: each for each in own.progress(chosen([*labels, "tab:english_results_appendix"]))}
    assert {label: each.state for label, each in found.items()} == {
        "tab:alignment_appendix": "needs data", "tab:nllb": "needs data", "tab:english_results_appendix": "done",
    }  # fmt: skip
    assert "highlights" in found["tab:alignment_appendix"].needs and "translated" in found["tab:nllb"].needs
    assert {each.state for each in work.progress(chosen(labels))} == {"done"}


def test_an_unknown_experiment_and_a_foreign_folder_are_refused(choices, tmp_path):
    with pytest.raises(ConfigError, match="no experiment 'nosuch'"):
        Reproduction.opened(tmp_path / "out", {**choices, "models": {"nosuch": ["toy"]}})
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match="is not a reproduction folder"):
        Reproduction.opened(tmp_path, choices)


@pytest.mark.parametrize(
    ("model", "billions"),
    [
        ("gpt2-xl", 1.56), ("Qwen/Qwen2.5-3B-Instruct@0a1b", 3.0), ("/models/SmolLM2-135M-Instruct", 0.135),
        ("org/model-1.5b", 1.5), ("toy", None), ("org/distilbert-base", 0.066), ("smollm2", 0.135),
        ("org/mine", None), ("/data/3B/mine", None),
    ],
)  # fmt: skip
def test_the_size_of_a_model_is_known_or_read_from_its_name(model, billions):
    assert parameters_of(model) == (None if billions is None else pytest.approx(billions))


def test_both_models_of_the_papers_translations_stand_beside_its_numbers(data, tmp_path):
    work = Reproduction.opened(tmp_path, {"models": {}, "n": 3, "data_dir": str(data)})
    names = [contents.paper_name(model.name) for model in work.grid("translation").models]
    assert names == ["GPT-2", "Qwen2.5-3B"]
    place = {"condition": "translated", "task": "german"}
    rates = [contents.published("translation", "win_rate", {"model": name, **place}) for name in names]
    assert rates == [34.1, 41.4]
    [_, cost] = work.costs(chosen(["tab:nllb"]))
    assert cost.experiment == "translation" and cost.gpu_hours > 0


def test_the_cost_counts_rows_and_hours_of_known_models(choices, tmp_path):
    work = Reproduction.opened(tmp_path, {**choices, "models": {}})
    [cost] = work.costs(chosen(["tab:ksweep"]))
    assert cost.runs == 4 and cost.rows > 0 and cost.gpu_hours is not None and 0 < cost.gpu_hours < 1
    [toy] = Reproduction.opened(tmp_path, choices).costs(chosen(["tab:ksweep"]))
    assert toy.runs == 2 and toy.gpu_hours is None
    [unknown] = Reproduction.opened(tmp_path, {**choices, "data_dir": str(tmp_path)}).costs(
        chosen(["tab:operator_ablation"])
    )
    assert unknown.runs == 1 and unknown.rows is None and unknown.gpu_hours is None and unknown.problems
    assert "--data-dir DIR" in unknown.problems[0]
    [none] = Reproduction.opened(tmp_path, choices).costs(chosen(["tab:frontier_cot"]))
    assert (none.runs, none.rows) == (None, None) and "--base-url" in none.problems[0]


def test_tables_about_single_tasks_run_and_cost_these_alone(choices, tmp_path):
    work = Reproduction.opened(tmp_path, choices)
    labels = ["tab:alignment_appendix", "fig:plausibility", "tab:models", "tab:contamination"]
    [cost] = work.costs(chosen(labels))
    assert (cost.experiment, cost.runs) == ("english", 1)
    assert [each.runs for each in work.costs(chosen(["tab:multilingual"]))] == [6]
    assert work.costs(chosen(["tab:models"])) == []
    work.run(chosen(labels), executor=None, reporter=Silent())
    states = {
        x.label: (x.state, x.finished, x.planned) for x in work.progress(chosen([*labels, "fig:english_heatmap"]))
    }
    assert states["fig:plausibility"][1:] == (1, 1) and states["fig:plausibility"][0].startswith("done")
    assert states["fig:english_heatmap"] == ("partly done", 1, 4)
    assert [each.runs for each in work.costs(chosen(["fig:english_heatmap"]))] == [3]


@pytest.mark.parametrize("item", [item for item in ITEMS.values() if item.tasks], ids=lambda item: item.label)
def test_tasks_of_an_item_are_in_its_grids(choices, item, tmp_path):
    work = Reproduction.opened(tmp_path, choices)
    known = {run.task_name for name in item.experiments for run in work.grid(name).runs()}
    assert set(item.tasks) <= known


def test_finished_runs_without_a_result_are_told_apart_from_done_ones(choices, tmp_path):
    """Three examples have no correlation."""
    work = Reproduction.opened(tmp_path, {**choices, "n": 3})
    items = chosen(["tab:alignment_appendix"])
    work.run(items, executor=None, reporter=Silent())
    [found] = work.progress(items)
    assert (found.state, found.finished) == ("done, no result", 1)
    assert "a correlation needs 4: raise --n" in found.needs


def test_pickled_models_of_the_grid_are_named_with_the_cost(choices, tmp_path):
    work = Reproduction.opened(tmp_path, {**choices, "models": {"": ["deepseek-llm-7b-chat", "gpt2-xl"]}})
    [cost] = work.costs(chosen(["tab:ksweep"]))
    [problem] = cost.problems
    assert problem.startswith("deepseek-llm-7b-chat cannot run: Its weights are pickled")
    assert cost.gpu_hours > 0


def test_the_size_of_a_model_in_a_folder_is_that_of_its_weights(tmp_path):
    from safetensors.numpy import save_file

    folder = tmp_path / "mine-7b"
    folder.mkdir()
    save_file({"a": np.zeros((1000, 20)), "b": np.zeros(500)}, folder / "model.safetensors")
    assert parameters_of(str(folder)) == 20_500 / 1e9
    (folder / "model.safetensors").write_bytes(b"\x10" * 40)
    assert parameters_of(str(folder)) == 7.0
