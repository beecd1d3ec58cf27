import pytest
import torch

from ice_eval.errors import ConfigError, ModelError, OutOfMemoryError
from ice_eval.models import SUITE, load_model, models, pretrained, suite_model
from ice_eval.models.devices import translated_memory_errors


def test_fingerprint_follows_the_weights(tiny):
    first, second = tiny("llama"), tiny("llama")
    assert first.fingerprint == second.fingerprint
    with torch.no_grad():
        next(iter(second.model.parameters())).add_(0.5)
    assert first.fingerprint != second.fingerprint


def test_an_unknown_model_gets_a_suggestion(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ConfigError, match="no model 'smolm2'; did you mean 'smollm2'?"):
        load_model("smolm2")


def test_a_missing_gguf_file_is_named():
    with pytest.raises(ConfigError, match="no such file: nowhere.gguf"):
        load_model("nowhere.gguf")


def test_a_conversion_that_cannot_be_kept_is_an_error_and_one_that_came_first_is_not(monkeypatch, tmp_path):
    monkeypatch.setattr(pretrained.transformers.AutoTokenizer, "from_pretrained", lambda *_, **__: _Saved())
    monkeypatch.setattr(pretrained, "_complete_model", lambda *_, **__: _Saved())
    for name in ("check_gguf", "_load_config", "_empty", "_check_shapes", "_keep_bos", "_load"):
        monkeypatch.setattr(pretrained, name, lambda *_, **__: None)
    monkeypatch.setattr(pretrained.Path, "rename", _fail)
    with pytest.raises(ModelError, match="could not be converted: the disk is full"):
        pretrained._convert_gguf(tmp_path / "model.gguf", tmp_path / "cache" / "model")
    (tmp_path / "cache" / "model").mkdir()
    pretrained._convert_gguf(tmp_path / "model.gguf", tmp_path / "cache" / "model")
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["model"]


class _Saved:
    """A model or tokenizer that saves nothing."""

    config = None

    def save_pretrained(self, folder):
        assert folder.is_dir()


def _fail(*_):
    raise OSError("the disk is full")


def test_known_names_are_listed_without_loading_them():
    assert {"smollm2", "toy"} <= set(models.names())


def test_a_model_in_memory_is_taken_as_it_is(toy):
    assert load_model(toy) is toy


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("CUDA"), RuntimeError("can't allocate memory: 12 bytes")])
def test_every_way_of_running_out_of_memory_is_one_error(error):
    with pytest.raises(OutOfMemoryError), translated_memory_errors():
        raise error


def test_other_failures_are_not_called_out_of_memory():
    with pytest.raises(RuntimeError, match="shapes differ"), translated_memory_errors():
        raise RuntimeError("shapes differ")


@pytest.mark.parametrize("path", ["./no-such-folder", "/no/such/folder"])
def test_a_path_that_is_not_there_is_not_looked_for_on_the_hub(path):
    with pytest.raises(ConfigError, match=f"no such folder: {path}"):
        load_model(path)


@pytest.fixture
def asked(monkeypatch):
    """What the hub was asked for; it has nothing."""
    seen = []

    def from_hub(ref, **options):
        seen.append(ref)
        raise pretrained.NotOnHubError("no network")

    monkeypatch.setattr(pretrained, "from_hub", from_hub)
    return seen


@pytest.mark.parametrize(
    ("given", "hub_id"),
    [
        ("qwen2.5-7b-instruct", "Qwen/Qwen2.5-7B-Instruct"),
        ("Qwen2.5-7B-Instruct", "Qwen/Qwen2.5-7B-Instruct"),
        ("qwen/qwen2.5-7b-instruct", "Qwen/Qwen2.5-7B-Instruct"),
        ("gpt2-xl@0123abc", "openai-community/gpt2-xl@0123abc"),
        ("org/gpt2-xl", "org/gpt2-xl"),
        ("gpt2", "gpt2"),
    ],
)
def test_a_short_name_is_asked_for_by_its_hub_id(asked, given, hub_id):
    with pytest.raises(ConfigError):
        load_model(given)
    assert asked == [hub_id]


def test_a_gated_model_that_the_hub_does_not_give_says_what_to_do(asked):
    message = r"Llama-3.1-8B' could not be downloaded from the hub at d04e592b\w+ \(no network\)\. It is gated: accept "
    with pytest.raises(ConfigError, match=message):
        load_model("llama-3.1-8b")
    with pytest.raises(
        ConfigError,
        match=r"LFM2-2\.6B' could not be downloaded from the hub \(no network\)\. A folder of it works as well",
    ):
        load_model("lfm2-2.6b")


def test_a_name_that_is_nearly_one_gets_a_suggestion(asked):
    with pytest.raises(ConfigError, match=r"no model 'qwen2\.5-7b-instuct'; did you mean 'qwen2\.5-7b-instruct'\?"):
        load_model("qwen2.5-7b-instuct")


def test_a_folder_goes_before_a_short_name(asked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gpt2-xl").mkdir()
    with pytest.raises(ConfigError, match="holds no config.json"):
        load_model("gpt2-xl")
    assert asked == []


def test_short_names_are_distinct_and_hide_no_other_model():
    names = [model.name for model in SUITE]
    assert len({*names, *models.names()}) == len(names) + len(models.names())
    assert all(suite_model(model.name) is suite_model(model.hub_id) is model for model in SUITE)
    assert suite_model("toy") is None
