"""Weights in fewer bits: close to the full ones, told from them in every run, and refused where something is missing.

Each library is tried where it is installed.
"""

import importlib.util
import sys

import numpy as np
import pytest
import torch
from tests.helpers import save_wide
from tests.rows import join
from transformers import BitsAndBytesConfig

import ice_eval as ice
from ice_eval.attributions import OF_EVERY_MODEL, Lens, Observer, attributions, method_of
from ice_eval.encoding import encode, shared_prefix
from ice_eval.errors import CapabilityError, ConfigError, MissingExtraError
from ice_eval.models import load_model
from ice_eval.models.devices import QUANTISERS
from ice_eval.models.gradients import gradients_of
from ice_eval.report.provenance import command, provenance

LOOKING = [name for name, method in attributions.items() if method.needs - OF_EVERY_MODEL - {"generate"}]
CLOSE = {"8bit": 0.1, "torchao-8bit": 0.1, "quanto-8bit": 0.1, "4bit": 3, "quanto-4bit": 3}
"""Largest difference of two log-scores; those of tiny random models reach 30."""


def installed(name):
    library = QUANTISERS[name].library
    try:
        return importlib.util.find_spec(library) is not None
    except ModuleNotFoundError:
        return False


HERE = [
    pytest.param(name, marks=pytest.mark.skipif(not installed(name), reason=f"needs {each.library}"))
    for name, each in QUANTISERS.items()
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Family -> a folder with a model of it that is wide enough for blocks of weights."""
    made = {}

    def save(family):
        if family not in made:
            made[family] = tmp_path_factory.mktemp(family)
            save_wide(made[family], family)
        return str(made[family])

    return save


@pytest.mark.parametrize("name", QUANTISERS)
def test_a_library_that_is_missing_is_named(folder, monkeypatch, name):
    chosen = QUANTISERS[name]
    monkeypatch.setitem(sys.modules, chosen.library, None)
    with pytest.raises(
        MissingExtraError, match=rf"for --load-in {name}.*pip install '{chosen.install}'".replace("[", r"\[")
    ):
        load_model(folder("llama"), device="cpu", load_in=name)


@pytest.mark.parametrize("name", HERE)
@pytest.mark.parametrize("family", ["llama", "distilbert"])
def test_scores_are_close_to_those_of_full_weights(folder, reviews, family, name):
    full = load_model(folder(family), device="cpu")
    found = load_model(folder(family), device="cpu", load_in=name)
    items = [encode(full.codec, reviews, example) for example in reviews.examples()[:4]]
    rows, prefix = join(item.full() for item in items), shared_prefix(items)
    assert found.check(rows, found.labels(reviews), prefix=prefix) == []
    right, scores = (each.log_scores(rows, each.labels(reviews), prefix=prefix) for each in (full, found))
    assert 0 < np.abs(scores - right).max() < CLOSE[name]
    assert found.fingerprint == load_model(folder(family), device="cpu", load_in=name).fingerprint
    assert found.fingerprint != full.fingerprint


@pytest.mark.parametrize("name", HERE)
def test_the_label_head_is_not_quantised(folder, name):
    for family, heads in (("llama", ["lm_head"]), ("distilbert", ["pre_classifier", "classifier"])):
        model = load_model(folder(family), device="cpu", load_in=name).model
        kinds = {each: type(model.get_submodule(each)) for each in heads}
        assert set(kinds.values()) == {torch.nn.Linear}
        assert all(type(model.get_submodule(each).weight) is torch.nn.Parameter for each in heads)


@pytest.mark.parametrize("name", HERE)
def test_slopes_are_those_of_the_scores(folder, reviews, name):
    """Those of bitsandbytes' kernel for CPUs would not be, without a word."""
    model = load_model(folder("llama"), device="cpu", load_in=name)
    item, labels = encode(model.codec, reviews, reviews.examples()[0]), model.labels(reviews)
    model.log_scores(item.full(), labels)  # the first pass decides how weights are laid out
    text = model.embedded(item, 0, labels)
    [slope] = text.gradients(text.embedding[None])
    step = 0.05 * slope / np.linalg.norm(slope)
    up, down = text.log_odds(np.stack([text.embedding + step, text.embedding - step]))
    # LLM.int8() rounds what its layers read, too.
    assert up - down == pytest.approx(2 * np.sum(slope * step), rel=0.2 if name == "8bit" else 0.02)


@pytest.mark.parametrize("name", [each for each in HERE if "8bit" in each.values[0]])
@pytest.mark.parametrize("way", LOOKING)
def test_eight_bits_change_attributions_little(folder, reviews, name, way):
    full, found = (load_model(folder("llama"), device="cpu", load_in=each) for each in (None, name))
    item = encode(full.codec, reviews, reviews.examples()[0])

    def explained(model):
        method = method_of(way)
        observer = Observer(model, model.labels(reviews), {item.example_id: 1}, method.needs, chat=False)
        return method.attribute(Lens(observer, method.needs, 0, way), [item])[0]

    assert np.corrcoef(explained(full), explained(found))[0, 1] > 0.98


def test_kernels_without_a_gradient_are_refused():
    library = torch.library.Library("ice_tests", "DEF")
    library.define("halved(Tensor states) -> Tensor")
    library.impl("halved", lambda states: states / 2, "CPU")
    states = torch.ones(3, requires_grad=True)
    with pytest.raises(CapabilityError, match="kernels that have no gradient"):
        gradients_of(states + torch.ops.ice_tests.halved(states), [states])


@pytest.mark.parametrize("name", HERE[1:2])
def test_a_folder_that_is_stored_quantised_loads_by_itself(folder, tmp_path, reviews, name):
    first = load_model(folder("llama"), device="cpu", load_in=name)
    first.model.save_pretrained(tmp_path)
    first.codec.tokenizer.save_pretrained(tmp_path)
    again = load_model(str(tmp_path), device="cpu")
    item = encode(first.codec, reviews, reviews.examples()[0])
    np.testing.assert_allclose(
        *(each.log_scores(item.full(), each.labels(reviews)) for each in (first, again)), atol=1e-4
    )
    assert again.load_in is None
    assert any("its weights are quantised (bitsandbytes)" in note for note in again.notes)
    with pytest.raises(ConfigError, match="stored quantised already; leave out --load-in"):
        load_model(str(tmp_path), device="cpu", load_in=name)


@pytest.mark.skipif(installed("4bit"), reason="bitsandbytes is installed")
def test_a_folder_that_needs_a_missing_library_says_so(folder, tmp_path):
    import json
    import shutil

    shutil.copytree(folder("llama"), tmp_path / "model")
    file = tmp_path / "model" / "config.json"
    stored = BitsAndBytesConfig(load_in_4bit=True).to_dict()
    file.write_text(json.dumps({**json.loads(file.read_text()), "quantization_config": stored}))
    with pytest.raises(MissingExtraError, match="bitsandbytes"):
        load_model(str(tmp_path / "model"), device="cpu")


def test_a_run_does_not_go_on_with_other_bits(folder, tmp_path, monkeypatch):
    """What is loaded is told by its name here, so that no library is needed."""
    loaded = load_model(folder("llama"), device="cpu")
    loaded.load_in = "4bit"
    settings = {"n": 2, "m": 3, "attributions": ["random"], "operators": ["delete"], "out": tmp_path / "run"}
    found = ice.evaluate(loaded, "demo", **settings).folder.manifest()
    assert found.identity["load_in"] == "4bit"
    assert "--load-in 4bit" in command(found)
    assert "loaded in 4bit" in dict(provenance(found))["model"]
    loaded.load_in = None
    with pytest.raises(ConfigError, match="load_in is '4bit' there and None here"):
        ice.evaluate(loaded, "demo", **settings)
