"""Models with any file changed are loaded, and score a text, or are refused with one message."""

import json
import shutil

import pytest
from tests.damaged_models import FILES, as_safetensors, safetensors_of
from tests.fuzz.mutations import CONTENTS, changed_bytes, changed_json, generator
from tests.helpers import save_tiny
from tests.models.test_gguf import write_llama
from tests.small_runs import run
from tests.small_tokenizers import byte_level

from ice_eval.errors import ConfigError, ModelError
from ice_eval.models import load_model

FAMILIES = ("gpt2", "llama", "bert", "distilbert")
N_MODELS = {"ordinary": 40, "slow": 1_200}
TEXTS = ["a good film with a slow start", "the worst mess of a very long year"]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Tiny models by family, and a GGUF file."""
    folder = tmp_path_factory.mktemp("sound")
    for family in FAMILIES:
        (folder / family).mkdir()
        save_tiny(folder / family, family)
    write_llama(folder / "tiny.gguf", byte_level(bos_token="<s>"), bos="<s>", add_bos=True)
    return folder


def changed_header(raw, rng):
    """Change the header of safetensors, and state its length rightly."""
    header, data = safetensors_of(raw)
    if rng.random() < 0.1:
        return as_safetensors(CONTENTS[rng.integers(len(CONTENTS))], data)
    return as_safetensors(changed_json(json.dumps(header), rng), data)


CHANGES = [
    ("config", changed_json), ("config", changed_json), ("config", changed_json), ("config", changed_bytes),
    ("weights", changed_header), ("weights", changed_bytes), ("tokenizer", changed_json), ("tokenizer", changed_bytes),
    ("tokenizer_config", changed_json), ("tokenizer_config", changed_bytes), ("gguf", changed_bytes),
]  # fmt: skip


def fuzz(sound, folder, monkeypatch, *, n_models, fixed):
    """Change a file of a model; returns how many were tried, and how many were loaded all the same."""
    monkeypatch.setenv("ICE_CACHE", str(folder / "cache"))
    rng, loaded = generator(7, fixed=fixed), 0
    for number in range(n_models):
        name, change = CHANGES[number % len(CHANGES)]
        if name == "gguf":
            path = folder / "tiny.gguf"
            path.write_bytes(change((sound / "tiny.gguf").read_bytes(), rng))
        else:
            path = folder / "model"
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(sound / FAMILIES[rng.integers(len(FAMILIES))], path)
            file = path / FILES[name]
            file.write_bytes(change(file.read_bytes(), rng))
        before = path.read_bytes() if name == "gguf" else file.read_bytes()
        try:
            model = load_model(str(path), device="cpu")
        except (ConfigError, ModelError) as exc:
            assert str(exc).strip() and "\n" not in str(exc), before
            assert name != "gguf" or not any((folder / "cache").glob("*")), before
            shutil.rmtree(folder / "cache", ignore_errors=True)
            continue
        loaded += 1
        try:
            run(TEXTS, model=model, m=3)
        except (ConfigError, ModelError) as exc:
            assert str(exc).strip(), before
        shutil.rmtree(folder / "cache", ignore_errors=True)
    return n_models, loaded


@pytest.mark.filterwarnings("ignore")
def test_every_changed_model_is_loaded_or_refused(sound, tmp_path, monkeypatch, record_property):
    tried, loaded = fuzz(sound, tmp_path, monkeypatch, n_models=N_MODELS["ordinary"], fixed=True)
    assert 0 < loaded < tried / 2
    record_property("fuzz_cases", tried)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_many_other_changed_models_are_loaded_or_refused(sound, tmp_path, monkeypatch, record_property):
    tried, loaded = fuzz(sound, tmp_path, monkeypatch, n_models=N_MODELS["slow"], fixed=False)
    assert 0 < loaded < tried / 2
    record_property("fuzz_cases", tried)
