"""A model folder is data: nothing in it is executed, and nothing in it is made up."""

import json
import shutil

import pytest
import transformers

from ice_eval.errors import ConfigError
from ice_eval.models import load_model


def test_code_in_a_model_folder_is_not_run(tiny_folder, tmp_path, monkeypatch):
    folder = tmp_path / "remote"
    shutil.copytree(tiny_folder("bert"), folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"auto_map": {"AutoConfig": "evil.Config", "AutoModelForSequenceClassification": "evil.Model"}}
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "unheard-of"}))
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    with pytest.raises(ConfigError, match="needs code of its own to be run, which is never done"):
        load_model(str(folder), device="cpu")
    assert not (tmp_path / "ran").exists()


def test_a_classifier_without_a_trained_head_is_refused(tiny_folder, tmp_path):
    folder = tmp_path / "headless"
    shutil.copytree(tiny_folder("bert"), folder)
    transformers.BertModel.from_pretrained(folder).save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["BertForSequenceClassification"]}))
    with pytest.raises(ConfigError, match="classifier.* among them: they would be random"):
        load_model(str(folder), device="cpu")


@pytest.mark.parametrize("kind", ["BertModel", "BertForMaskedLM"])
def test_a_model_that_is_no_classifier_and_no_language_model_is_refused(tiny_folder, tmp_path, kind):
    folder = tmp_path / kind
    shutil.copytree(tiny_folder("bert"), folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": [kind]}))
    with pytest.raises(ConfigError, match=f"is a {kind}; a language model .* or a sequence classifier"):
        load_model(str(folder), device="cpu")


def test_a_file_that_only_calls_itself_gguf_is_refused(tmp_path):
    (tmp_path / "model.gguf").write_bytes(b"not a model")
    with pytest.raises(ConfigError, match="is not a GGUF file"):
        load_model(str(tmp_path / "model.gguf"))
