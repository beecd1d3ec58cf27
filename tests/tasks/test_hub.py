"""Every data set and model of the package on a hub that knows only the recorded commits."""

import inspect
import json
import re
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from ice_eval import evaluate
from ice_eval.bench import presets
from ice_eval.cli.prepare import translate
from ice_eval.errors import ConfigError, DataError
from ice_eval.models import load_model, pretrained, suite_model
from ice_eval.models.load import SUITE
from ice_eval.models.toy import Toy
from ice_eval.report.provenance import provenance
from ice_eval.tasks import HubData, named_task, tasks

RECORDED = json.loads(Path(__file__).with_name("hub_commits.json").read_text(encoding="utf-8"))
COMMITS = {(each["type"], each["repository"]): each["commit"] for each in RECORDED}
CURRENT = "c" * 40
"""Commit at the head of every branch of the hub."""
OF_HUB = [name for name in tasks.names() if isinstance(named_task(name).data, HubData)]


def _models_of(preset_name):
    """References of its models; a grid whose data are optional cannot be read without them."""
    text = files("ice_eval.bench").joinpath("presets", f"{preset_name}.yaml").read_text(encoding="utf-8")
    return [each["model"] if isinstance(each, dict) else each for each in yaml.safe_load(text)["models"]]


OF_PRESETS = {
    ("model", name): commit
    for preset_name in presets()
    for name, _, commit in (each.partition("@") for each in _models_of(preset_name))
    if "/" in name and suite_model(name) is None and not name.startswith("openai:")
}
"""Models of the presets that have no short name."""
PINNED = [name for name in OF_HUB if named_task(name).data.revision is not None]
ROWS = {
    "sst2": {"sentence": "a", "label": 1},
    "imdb": {"text": "a", "label": 1},
    "movies": {"review": "good film", "label": 1, "evidences": ["good"]},
    "ag_news": {"text": "a", "label": 1},
    "esnli": {"premise": "a", "hypothesis": "b", "label": 1},
    "boolq": {"passage": "a", "question": "b", "answer": True},
    "multirc": {"paragraph": "a", "question": "b", "answer": "c", "label": 1},
    "french": {"review": "a", "label": 1},
    "german": {"Text": "a", "Sentiment": "positive"},
    "hindi": {"INDIC REVIEW": "a", "LABEL": "Positive"},
    "chinese": {"text": "a", "label": 1},
    "turkish": {"text": "a", "label": 1},
    "arabic": {"tweet": "a", "label": 2},
    "gsm8k": {"question": "a", "answer": "#### 1"},
    "commonsense_qa": {"question": "a", "choices": {"label": ["A", "B"], "text": ["x", "y"]}, "answerKey": "A"},
    "arc_challenge": {"question": "a", "choices": {"label": ["1", "2"], "text": ["x", "y"]}, "answerKey": "2"},
    "medqa": {"question": "a", "options": {"A": "x", "B": "y"}, "answer_idx": "B"},
}
"""A row of each data set, under the names of its columns."""
NAMES = {"arabic": ["NEUTRAL", "OBJ", "POS", "NEG"], "esnli": ["entailment", "neutral", "contradiction"]}


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A hub with the recorded commits; `read` lists what was read from it, and `rows` are those of each repository."""
    datasets, library = pytest.importorskip("datasets"), pytest.importorskip("huggingface_hub")
    found = SimpleNamespace(read=[], rows={})

    def resolved(kind, path, revision):
        if revision in ("main", "refs/convert/parquet"):
            return CURRENT
        if COMMITS.get((kind, path)) != revision and revision != CURRENT:
            raise ValueError(f"Revision Not Found for {path}: {revision}")
        return revision

    class Api:
        def dataset_info(self, path, *, revision, timeout):
            return SimpleNamespace(sha=resolved("dataset", path, revision))

        def model_info(self, path, *, revision, timeout):
            return SimpleNamespace(sha=resolved("model", path, revision))

    def data_of(path):
        row, names = found.rows[path]
        data = datasets.Dataset.from_list([row])
        return data.cast_column("label", datasets.ClassLabel(names=names)) if names else data

    def load_dataset(path, config=None, *, split, revision=None, data_files=None):
        if data_files is not None:
            assert path == Path(data_files).suffix[1:] and split == "train"
            return data_of(Path(data_files).read_text(encoding="utf-8"))
        found.read.append((path, resolved("dataset", path, revision)))
        return data_of(path)

    def hf_hub_download(path, file, *, repo_type, revision):
        found.read.append((path, resolved(repo_type, path, revision)))
        local = tmp_path / file
        local.parent.mkdir(parents=True)
        row = found.rows[path][0]
        local.write_text(json.dumps(row) if file.endswith(".json") else path, encoding="utf-8")
        return str(local)

    monkeypatch.setattr(library, "HfApi", Api)
    monkeypatch.setattr(library, "hf_hub_download", hf_hub_download)
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    return found


def test_recorded_commits_are_full_and_say_where_they_were_seen():
    assert len(COMMITS) == len(RECORDED)
    assert all(re.fullmatch("[0-9a-f]{40}", each["commit"]) and len(each["source"]) > 20 for each in RECORDED)


def test_every_pin_of_the_package_is_recorded_and_no_other():
    data = {("dataset", named_task(name).data.path): named_task(name).data.revision for name in PINNED}
    models = {("model", each.hub_id): each.revision for each in SUITE if each.revision is not None}
    assert data | models | OF_PRESETS == COMMITS


UNPINNED = {
    ("dataset", "eraser-benchmark/movie_rationales"): "docs/tasks.md",
    ("model", "LiquidAI/LFM2-2.6B"): "docs/tasks.md",
    ("model", "facebook/nllb-200-distilled-600M@refs/pr/39"): "docs/objections.md",
}
"""What is read at no recorded commit, since no public source that we know names one, and the page that says so."""


def test_what_has_no_pin_is_known_and_said_in_the_docs():
    data = {("dataset", named_task(name).data.path) for name in OF_HUB if name not in PINNED}
    models = {("model", each.hub_id) for each in SUITE if each.revision is None}
    translator = inspect.signature(translate).parameters["model"].default
    assert not re.search("@[0-9a-f]{40}$", translator)
    assert data | models | {("model", translator)} == set(UNPINNED)
    for (_, name), page in UNPINNED.items():
        text = (Path(__file__).parents[2] / page).read_text(encoding="utf-8")
        assert name in text and "no public source" in " ".join(text.split())


def test_presets_read_the_hub_at_a_commit():
    assert all(OF_PRESETS.values()) and len(OF_PRESETS) == 2


@pytest.mark.parametrize("name", OF_HUB)
def test_every_data_set_is_read_at_its_commit(hub, name):
    task, known = named_task(name), name.partition("/")[0]
    hub.rows[task.data.path] = ROWS[known], NAMES.get(known)
    found = task.problems() if hasattr(task, "problems") else task.examples()
    assert len(found) == 1 and found[0].gold is not None
    commit = task.data.revision or CURRENT
    assert hub.read == [(task.data.path, commit)]
    assert task.data.commit == commit


def test_a_data_set_without_a_revision_says_so_in_its_description():
    assert [name for name in OF_HUB if name not in PINNED] == ["movies"]
    assert "No revision of it could be verified" in " ".join(tasks.get("movies").__doc__.split())


def test_arabic_labels_are_read_by_their_names(hub):
    task = named_task("arabic")
    names = ["POS", "NEG", "OBJ", "NEUTRAL"]  # another order than that of the pinned commit
    for number, gold in ((0, "positive"), (1, "negative")):
        hub.rows[task.data.path] = {"tweet": "a", "label": number}, names
        [example] = named_task("arabic").examples()
        assert task.labels[example.gold] == gold
    hub.rows[task.data.path] = {"tweet": "a", "label": 0}, ["negative", "positive"]
    with pytest.raises(DataError, match="has no label 'NEG'; it has negative, positive"):
        task.examples()


@pytest.mark.parametrize("shape", ["lines", "array"])
def test_a_file_of_the_hub_is_read_whatever_its_other_columns_hold(monkeypatch, tmp_path, shape):
    pytest.importorskip("datasets")
    rows = [
        {"INDIC REVIEW": "अच्छा\u2028है", "LABEL": "Positive", "ASPECTS": 3},
        {"INDIC REVIEW": "ठीक", "LABEL": None, "ASPECTS": "three"},
        {"INDIC REVIEW": "बुरा", "LABEL": "Negative", "ASPECTS": ["a"]},
    ]
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    path = tmp_path / "hi.json"
    path.write_text("\n".join(lines) if shape == "lines" else f"[{', '.join(lines)}]", encoding="utf-8")
    monkeypatch.setattr("huggingface_hub.hf_hub_download", lambda *_, **__: str(path))
    found = {example.fields["text"]: example.gold for example in named_task("hindi").examples()}
    assert found == {"अच्छा\u2028है": 1, "बुरा": 0}


def test_pairs_of_snli_without_a_majority_are_skipped(hub):
    task = named_task("esnli")
    hub.rows[task.data.path] = {"premise": "a", "hypothesis": "b", "label": -1}, None
    with pytest.raises(DataError, match="holds no examples"):
        task.examples()


def test_a_commit_that_the_hub_does_not_know_is_an_error_with_advice(hub):
    data = HubData("nyu-mll/glue", config="sst2", revision="e" * 40)
    with pytest.raises(DataError, match=rf"at {'e' * 40} \(ValueError: Revision Not Found.*--data FILE\.jsonl"):
        data.load(("text",), ("negative", "positive"))


def test_the_manifest_and_the_report_name_the_commits_that_were_read(hub):
    task, model = named_task("movies"), Toy()
    hub.rows[task.data.path] = {"review": "a good film, a great cast", "label": 1, "evidences": ["good"]}, None
    model.commit = "d" * 40
    run = evaluate(model, task, attributions=["random"], operators=["delete"], m=3).folder
    manifest = run.manifest()
    assert (manifest.data.commit, manifest.model_commit) == (CURRENT, "d" * 40)
    shown = dict(provenance(manifest))
    assert shown["data"].startswith(f"{task.data.origin}, commit {CURRENT}, 1 example")
    assert shown["weights"].endswith(f", commit {'d' * 40}")


@pytest.fixture
def loaded(hub, monkeypatch):
    """Path and revision of each model that was loaded, after the hub had confirmed them."""
    seen = []
    monkeypatch.setattr(pretrained.huggingface_hub, "try_to_load_from_cache", lambda *_, **__: None)
    monkeypatch.setattr(pretrained, "_load", lambda path, *, name, settings, revision: seen.append((path, revision)))
    return seen


@pytest.mark.parametrize("model", SUITE, ids=lambda model: model.name)
def test_every_model_is_read_at_its_commit_unless_another_revision_is_named(loaded, model):
    load_model(model.name)
    load_model(model.hub_id)
    load_model(f"{model.name}@main")
    pin = model.revision or "main"
    assert loaded == [(model.hub_id, pin), (model.hub_id, pin), (model.hub_id, "main")]


def test_a_model_without_a_revision_says_so():
    unpinned = [model for model in SUITE if model.revision is None]
    assert [model.name for model in unpinned] == ["lfm2-2.6b"]
    assert all("No revision could be verified" in model.line for model in unpinned)


def test_a_model_whose_commit_is_gone_names_it_and_the_current_state(loaded, monkeypatch):
    monkeypatch.setitem(COMMITS, ("model", "openai-community/gpt2-xl"), "b" * 40)
    message = (
        r"'openai-community/gpt2-xl' could not be downloaded from the hub at 15ea56de.*Revision Not Found.*"
        r"'openai-community/gpt2-xl@main'"
    )
    with pytest.raises(ConfigError, match=message):
        load_model("gpt2-xl")
    with pytest.raises(ConfigError, match="gpt2-xl@0123abc' could not be downloaded from the hub .Revision Not Found"):
        load_model("gpt2-xl@0123abc")
