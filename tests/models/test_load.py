import pytest
import torch

from ice_eval._cache import cache_folder
from ice_eval.errors import ConfigError, ModelError, OutOfMemoryError
from ice_eval.models import load_model, models, pretrained
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
    monkeypatch.setattr(pretrained.transformers.AutoModelForCausalLM, "from_pretrained", lambda *_, **__: _Saved())
    monkeypatch.setattr(pretrained, "_keep_bos", lambda *_: None)
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


def test_the_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("ICE_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("ICE_CACHE")
    assert cache_folder().name == "ice-eval"


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
