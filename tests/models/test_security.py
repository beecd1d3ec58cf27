"""A model folder is data: nothing in it is executed, and nothing in it is made up."""

import ast
import contextlib
import gc
import json
import shutil
from pathlib import Path

import pytest
import torch
import transformers

import ice_eval
from ice_eval.errors import ConfigError, IceError
from ice_eval.models import load_model


def test_code_in_a_model_folder_is_not_run(tiny_folder, tmp_path, monkeypatch):
    folder = tmp_path / "remote"
    shutil.copytree(tiny_folder("bert"), folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"auto_map": {"AutoConfig": "evil.Config", "AutoModelForSequenceClassification": "evil.Model"}}
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "unheard-of"}))
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    with pytest.raises(ConfigError, match="can only be loaded by running its own code, which ICE never does"):
        load_model(str(folder), device="cpu")
    assert not (tmp_path / "ran").exists()


@pytest.fixture
def changed(tiny_folder, tmp_path):
    """A tiny model whose configuration, or its tokenizer's, says something else too."""

    def build(family, file="config.json", **changes):
        folder = tmp_path / family
        shutil.copytree(tiny_folder(family), folder)
        said = json.loads((folder / file).read_text())
        (folder / file).write_text(json.dumps({**said, **changes}))
        (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
        return folder

    return build


class Evil:
    """Opens a file for writing when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize("weights", ["pytorch_model.bin", "adapter_model.bin"])
def test_pickled_weights_are_refused_and_not_read(changed, tmp_path, weights):
    folder = changed("bert")
    (folder / "model.safetensors").unlink()
    torch.save({"weight": Evil(tmp_path / "ran")}, folder / weights)
    with pytest.raises(
        ConfigError, match=r"no weights in safetensors; pickled ones .* are never read\. If you trust it"
    ):
        load_model(str(folder), device="cpu")
    assert not (tmp_path / "ran").exists()


def test_pickled_weights_would_run_code_if_they_were_read(tmp_path):
    torch.save({"weight": Evil(tmp_path / "ran")}, tmp_path / "pytorch_model.bin")
    with pytest.warns(ResourceWarning):
        torch.load(tmp_path / "pytorch_model.bin", weights_only=False)
        gc.collect()
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize("family", ["gpt2", "bert"])
def test_pickled_weights_beside_safetensors_are_not_read(changed, tmp_path, family):
    folder = changed(family)
    torch.save({"weight": Evil(tmp_path / "ran")}, folder / "pytorch_model.bin")
    load_model(str(folder), device="cpu")
    assert not (tmp_path / "ran").exists()


def test_code_of_a_tokenizer_is_not_run(changed, tmp_path):
    names = {"auto_map": {"AutoTokenizer": ["evil.Tokenizer", "evil.Tokenizer"]}, "tokenizer_class": "Evil"}
    with contextlib.suppress(IceError):  # refused, or read without the code
        load_model(str(changed("gpt2", "tokenizer_config.json", **names)), device="cpu")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("key", ["attn_implementation", "_attn_implementation"])
def test_code_for_attention_is_not_fetched_from_the_hub(changed, key):
    with pytest.raises(ConfigError, match="can only be loaded by running its own code, which ICE never does"):
        load_model(str(changed("gpt2", **{key: "someone/kernel"})), device="cpu")
    with pytest.raises(ConfigError, match="by running its own code"):
        load_model(str(changed("bert", text_config={key: {"": "someone/kernel"}})), device="cpu")


def test_a_chat_template_cannot_reach_python(changed):
    template = "{{ ().__class__.__base__.__subclasses__() }}{{ messages[0]['content'] }}"
    (folder := changed("gpt2", "tokenizer_config.json", chat_template=template)).joinpath("chat_template.jinja").unlink(
        missing_ok=True
    )
    model = load_model(str(folder), device="cpu")
    with pytest.raises(ConfigError, match="the chat template refuses these turns: .*unsafe"):
        model.codec.chat_frame([])


def test_nothing_in_the_package_unpickles_evaluates_or_starts_a_shell():
    """What is read from files is data: these names would make it more, and each use would need a reason."""
    risky = set(
        "eval exec compile os.system os.popen torch.load joblib.load np.load yaml.load yaml.unsafe_load".split()
    )
    modules = {"dill", "marshal", "pickle", "shelve", "subprocess"}
    found = set()
    for path in Path(ice_eval.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in risky:
                found.add(f"{path.name}: {ast.unparse(node.func)}")
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
                found |= {f"{path.name}: {name}" for name in names & modules}
            if isinstance(node, ast.keyword) and node.arg == "trust_remote_code":
                assert ast.unparse(node.value) == "False", path.name
    assert found == set()


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
