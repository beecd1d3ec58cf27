import json
from dataclasses import fields

import pytest
import yaml
from tests.small_grids import content, write_reviews

from ice_eval.bench import load_grid, preset, presets
from ice_eval.errors import ConfigError
from ice_eval.settings import RunConfig
from ice_eval.tasks import FileData


def test_models_times_tasks_times_prompts_are_runs(grid, reviews):
    found = grid(
        models=["toy", {"model": "toy", "name": "other"}],
        tasks=["demo", {"task": "sst2", "data": str(reviews)}],
        prompts=["standard", "minimal"],
    ).runs()
    # The demo has no wording of the name 'minimal'.
    assert [(run.model.name, run.task_name, run.prompt) for run in found] == [
        (model, *place)
        for model in ("toy", "other")
        for place in (("demo", "standard"), ("sst2", "standard"), ("sst2", "minimal"))
    ]
    assert [str(run) for run in found[1:3]] == ["toy on sst2", "toy on sst2, prompt minimal"]


def test_all_prompts_are_the_wordings_of_every_task(grid):
    prompts = [run.prompt for run in grid(prompts="all").runs()]
    assert prompts == ["standard", "minimal", "paper", "question", "completion", "quoted"]


def test_prompts_may_be_few_shot(grid):
    [run] = grid(prompts=["minimal/few-shot"]).runs()
    assert run.task.shots
    assert run.task.prompt == "{text}\nSentiment:"


def test_a_run_is_named_after_its_parts_and_what_defines_its_rows(grid):
    before = {run.name for run in grid().runs()}
    assert all(name.startswith("toy_sst2") for name in before)
    assert {run.name for run in grid(attributions=["random"], k=[0.3], operators=["delete"]).runs()} == before
    for changes in ({"n": 5}, {"m": 6}, {"seed": 1}, {"unit": "word"}):
        assert not before & {run.name for run in grid(**changes).runs()}


def test_a_run_has_another_name_when_its_data_change_and_not_when_they_move(tmp_path):
    def names(file, n):
        (tmp_path / "grid.yaml").write_text(yaml.safe_dump(content(write_reviews(tmp_path / file, n))))
        return [run.name for run in load_grid(tmp_path / "grid.yaml").runs()]

    assert names("a.jsonl", 6) == names("b.jsonl", 6)
    assert names("a.jsonl", 6) != names("a.jsonl", 7)


def test_paths_are_meant_from_the_folder_of_the_grid(tmp_path):
    data = write_reviews(tmp_path / "reviews.jsonl")
    (tmp_path / "mine.yaml").write_text("prompt: 'Say {text}:'\nlabels: [negative, positive]\ndata: reviews.jsonl\n")
    (tmp_path / "model").mkdir()
    (tmp_path / "grid.yaml").write_text(
        "models: [model]\ntasks: [mine.yaml, {task: sst2, data: reviews.jsonl}]\nname: mine\n"
    )
    found = load_grid(tmp_path / "grid.yaml")
    assert (found.name, found.models[0].name) == ("mine", "model")
    assert found.models[0].ref == str(tmp_path / "model")
    assert [entry.task.data for entry in found.tasks] == [FileData(data), FileData(data)]


def test_a_data_folder_gives_files_to_the_tasks_that_they_are_named_after(grid, tmp_path):
    for name in ("sst2.jsonl", "german_posts.jsonl"):
        write_reviews(tmp_path / name)
    tasks = ["demo", "sst2", "german", {"task": "french", "optional": True}]
    found = grid(tasks=tasks, prompts="standard")
    assert [type(entry.task.data).__name__ for entry in found.tasks] == ["PackageData", "HubData", "HubData"]
    assert found.left_out == ("french",)
    with_data = grid(
        tasks=["demo", "sst2", "german", {"task": "french", "optional": True}],
        data_dir=str(tmp_path),
        prompts="standard",
    )
    files = [getattr(entry.task.data, "path", None) for entry in with_data.tasks]
    assert files == [None, tmp_path / "sst2.jsonl", tmp_path / "german_posts.jsonl"]


def test_two_files_for_one_task_are_refused(grid, tmp_path):
    for name in ("german_a.jsonl", "german_b.csv"):
        write_reviews(tmp_path / name)
    with pytest.raises(ConfigError, match=r"2 files of .* begin with 'german_': german_a.jsonl, german_b.csv"):
        grid(tasks=["german"], data_dir=str(tmp_path), prompts="standard")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"atributions": ["random"]}, "no key 'atributions'; did you mean 'attributions'?"),
        ({"models": [{"modell": "toy"}]}, "no key 'modell'; did you mean 'model'?"),
        ({"models": []}, "models: at least one is needed"),
        ({"models": ["toy", "toy"]}, "'toy' is listed twice; give one of them another name"),
        (
            {"models": [{"model": "toy", "base": "tyo"}]},
            "the base 'tyo' of 'toy' is not among them; did you",
        ),
        ({"tasks": ["sst3"]}, "no task named 'sst3'; did you mean 'sst2'?"),
        ({"tasks": ["/nowhere"]}, r"no task named '/nowhere'\. Known: "),
        (
            {"tasks": [{"task": "sst2", "data": "nowhere.jsonl"}]},
            "there is no file .*nowhere.jsonl for the task",
        ),
        ({"tasks": [{"task": "sst2", "optional": True}]}, "no task has data; give --data-dir with a file for sst2"),
        ({"prompts": ["minimall"]}, "no task of the grid has a prompt 'minimall'; did you mean 'minimal'?"),
        ({"attributions": ["atention"]}, "no attribution named 'atention'; did you mean 'attention'?"),
        ({"operators": ["delet"]}, "no operator named 'delet'; did you mean 'delete'?"),
        ({"k": ["much"]}, "k: shares between 0 and 1 are expected"),
        ({"k": [1.5]}, "k = 1.5"),
        ({"n": "many"}, "n: a whole number is expected, not 'many'"),
        ({"n": True}, "n: a whole number is expected, not True"),
        ({"chat": "yes"}, "chat: true or false is expected"),
        ({"data_dir": "nowhere"}, "there is no folder .*nowhere"),
        ({"attributions": {"a": 1}}, "attributions: a list is expected"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(grid, changes, message):
    with pytest.raises(ConfigError, match=message):
        grid(**changes)


@pytest.mark.parametrize("missing", ["models", "tasks"])
def test_a_grid_needs_models_and_tasks(tmp_path, reviews, missing):
    given = {key: value for key, value in content(reviews).items() if key != missing}
    (tmp_path / "grid.yaml").write_text(yaml.safe_dump(given))
    with pytest.raises(ConfigError, match=f"'{missing}' is missing; a grid needs models and tasks"):
        load_grid(tmp_path / "grid.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("models: [", "is not YAML"),
        ("- toy", "keys and values are expected"),
        ("!!python/object:os.system {}", "not YAML"),
    ],
)
def test_a_file_that_holds_no_grid_is_refused(tmp_path, text, message):
    (tmp_path / "grid.yaml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_grid(tmp_path / "grid.yaml")


@pytest.mark.parametrize("name", presets())
def test_every_preset_can_be_planned(name, tmp_path):
    for task in ("french", "german"):  # translations have no place but a folder
        write_reviews(tmp_path / f"{task}.jsonl")
    found = preset(name, models=["toy"], data_dir=str(tmp_path))
    assert found.runs()
    assert json.loads(json.dumps(found.source))["models"] == ["toy"]


def test_presets_of_served_models_need_an_address_or_other_models():
    for name, n_runs in (("steps-frontier", 3 * 2), ("steps-eraser", 6 * 6)):
        with pytest.raises(ConfigError, match="is served; add its address"):
            preset(name)
        assert len(preset(name, base_url="http://127.0.0.1:1/v1").runs()) == n_runs
    assert preset("steps-open").settings["n"] == 50
    assert preset("steps-frontier", models=["toy"]).settings["n"] == 500


def test_the_presets_of_the_paper_have_its_sizes():
    assert preset("paper-encoder").settings["m"] == 100
    english = preset("paper-english")
    assert (len(english.models), len(english.tasks), english.settings["m"]) == (7, 4, 50)
    assert {model.tuning for model in english.models} == {"base", "chat", "instruct"}
    assert len(preset("k-sweep").settings["k"]) == 5
    assert len({entry.task.language for entry in preset("paper-multilingual").tasks}) == 7


def test_an_unknown_preset_gets_a_suggestion():
    with pytest.raises(ConfigError, match="no preset 'paper-englsh'; did you mean 'paper-english'?"):
        preset("paper-englsh")


def test_every_setting_of_a_run_is_a_key_of_a_grid(grid):
    given = {field.name: getattr(RunConfig(), field.name) for field in fields(RunConfig)}
    plain = {key: list(value) if isinstance(value, tuple) else value for key, value in given.items()}
    [run] = grid(**plain | {"n": 3, "prompts": "standard"}).runs()
    assert run.config == RunConfig(n=3)
