"""Models whose layers lie in several places give the numbers of those that lie in one.

Without a GPU the places are memory and disk: what lies on disk has no numbers until a layer is computed.
"""

import json

import numpy as np
import pytest
import torch
from tests.rows import join

import ice_eval as ice
from ice_eval.attributions import OF_EVERY_MODEL, Lens, Observer, attributions, method_of
from ice_eval.encoding import encode, shared_prefix
from ice_eval.errors import ConfigError
from ice_eval.f_fidelity import trainable
from ice_eval.models import load_model
from ice_eval.models.devices import is_offloaded

LOOKING = [name for name, method in attributions.items() if method.needs - OF_EVERY_MODEL - {"generate"}]
MAPS = {
    "llama": {
        "model.embed_tokens": "disk", "model.rotary_emb": "cpu", "model.layers.0": "cpu", "model.layers.1": "disk",
        "model.layers.2": "disk", "model.norm": "disk", "lm_head": "disk",
    },
    "gpt2": {"transformer": "disk", "lm_head": "disk"},
    "lfm2": {"model": "disk", "lm_head": "disk"},
    "bert": {"bert.embeddings": "cpu", "bert.encoder": "disk", "bert.pooler": "disk", "classifier": "disk"},
}  # fmt: skip


@pytest.fixture(scope="module")
def pairs(tiny_folder):
    """Family -> the model in one place, and the same in several."""
    made = {}

    def load(family):
        if family not in made:
            spread = load_model(str(tiny_folder(family)), device_map=MAPS[family])
            assert spread.is_spread and is_offloaded(spread.model)
            made[family] = load_model(str(tiny_folder(family)), device="cpu"), spread
        return made[family]

    return load


def scores_of(model, task):
    items = [encode(model.codec, task, example) for example in task.examples()[:4]]
    rows, labels, prefix = join(item.full() for item in items), model.labels(task), shared_prefix(items)
    assert model.check(rows, labels, prefix=prefix) == []
    return model.log_scores(rows, labels, prefix=prefix)


@pytest.mark.parametrize("family", MAPS)
def test_scores_are_the_same(pairs, reviews, family):
    one, spread = pairs(family)
    np.testing.assert_allclose(scores_of(spread, reviews), scores_of(one, reviews), atol=1e-5)
    assert spread._way == one._way if family != "bert" else spread.pads


def test_labels_of_several_tokens_are_read_from_a_head_on_disk(pairs, long_labels):
    one, spread = pairs("llama")
    np.testing.assert_allclose(scores_of(spread, long_labels), scores_of(one, long_labels), atol=1e-5)


@pytest.mark.parametrize("name", LOOKING)
@pytest.mark.parametrize("family", ["llama", "gpt2", "bert"])
def test_every_attribution_is_the_same(pairs, reviews, family, name):
    def explained(model):
        items = [encode(model.codec, reviews, example) for example in reviews.examples()[: 1 + (family == "llama")]]
        method, targets = method_of(name), {item.example_id: 1 for item in items}
        observer = Observer(model, model.labels(reviews), targets, method.needs, chat=False)
        return method.attribute(Lens(observer, method.needs, 0, name), items)

    for right, found in zip(*map(explained, pairs(family)), strict=True):
        np.testing.assert_allclose(found, right, atol=1e-5 * np.abs(right).max())


def test_what_it_writes_is_the_same(pairs):
    one, spread = pairs("llama")
    asked = {"turns": None, "max_tokens": 8, "stop": None}
    assert spread.generate(["Review: a warm film"], **asked) == one.generate(["Review: a warm film"], **asked)


@pytest.mark.parametrize("family", MAPS)
def test_the_fingerprint_tells_weights_and_not_places(pairs, family):
    one, spread = pairs(family)
    assert spread.fingerprint == one.fingerprint
    assert (one.devices, spread.devices) == ("cpu", ", ".join(dict.fromkeys(MAPS[family].values())))


def test_weights_go_back_after_a_gradient(pairs, reviews):
    _, spread = pairs("llama")
    before = {name: each.device.type for name, each in spread.model.named_parameters()}
    forwards = {name: module.forward for name, module in spread.model.named_modules()}
    item = encode(spread.codec, reviews, reviews.examples()[0])
    spread.observe([item], [0], spread.labels(reviews), {"gradients", "attentions"})
    assert {name: each.device.type for name, each in spread.model.named_parameters()} == before
    assert "meta" in before.values()
    assert {name: module.forward for name, module in spread.model.named_modules()} == forwards


def test_a_gradient_keeps_no_weights_that_lie_elsewhere(pairs, reviews, monkeypatch):
    """What a graph holds on to would fill the device with all layers."""
    _, spread = pairs("llama")
    points = spread.embedded(encode(spread.codec, reviews, reviews.examples()[0]), 0, spread.labels(reviews))
    kept = set()

    def note(tensor):
        kept.add(tuple(tensor.shape))
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        points.gradients(points.embedding[None])
    wide = {tuple(each.shape) for each in spread.model.model.layers[1].mlp.parameters()}
    assert not wide & kept and not {shape[::-1] for shape in wide} & kept


def test_a_half_precision_head_on_disk_is_computed_in_float32(tiny_folder, reviews):
    one = load_model(str(tiny_folder("bert")), device="cpu", dtype="bfloat16")
    spread = load_model(str(tiny_folder("bert")), device_map=MAPS["bert"], dtype="bfloat16")
    np.testing.assert_allclose(scores_of(spread, reviews), scores_of(one, reviews), atol=1e-5)
    assert one.model.classifier.weight.dtype == spread.model.classifier.weight.dtype == torch.float32
    spread.release()
    assert spread.model.classifier.weight.dtype == torch.bfloat16


def test_a_map_may_come_from_a_file_or_be_made(tiny_folder, tmp_path):
    file = tmp_path / "map.json"
    file.write_text(json.dumps(MAPS["llama"]))
    assert load_model(str(tiny_folder("llama")), device_map=str(file)).devices == "disk, cpu"
    bounded = load_model(str(tiny_folder("llama")), device_map="auto", max_memory="cpu=200KB")
    assert bounded.devices == "cpu, disk"
    assert load_model(str(tiny_folder("llama")), device_map="auto").is_spread is torch.cuda.is_available()


def test_a_run_goes_on_in_other_places(pairs, tmp_path):
    one, spread = pairs("llama")
    settings = {"m": 3, "n": 2, "operators": ["delete"], "out": tmp_path / "run"}
    first = ice.evaluate(spread, "demo", attributions=["attention"], **settings).folder.manifest()
    assert first.device == "disk, cpu"
    later = ice.evaluate(one, "demo", attributions=["attention", "gradient"], **settings).folder.manifest()
    assert later.config_hash == first.config_hash
    assert later.identity["load_in"] is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"device_map": "autoo"}, "--device-map autoo; did you mean 'auto'"),
        ({"device_map": "auto", "device": "cpu"}, "--device cpu and --device-map exclude each other"),
        ({"device_map": {"model": "disk"}}, "cannot be placed as --device-map says: .*lm_head"),
        ({"device_map": {"": "nowhere"}}, "the device 'nowhere' cannot be used here"),
        ({"max_memory": "cpu=1GB"}, "give --device-map auto with it"),
        ({"device_map": "auto", "max_memory": "1GB"}, "--max-memory 1GB: DEVICE=SIZE is expected"),
        ({"load_in": "5bit"}, "--load-in 5bit; did you mean '.*bit'"),
    ],
)
def test_what_cannot_be_done_is_said(tiny_folder, tmp_path, monkeypatch, given, message):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(ConfigError, match=message):
        load_model(str(tiny_folder("llama")), **given)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", ["[1]", "{}", '{"model": true}', "{"])
def test_a_file_that_is_no_map_is_refused(tiny_folder, tmp_path, content):
    (tmp_path / "map.json").write_text(content)
    with pytest.raises(ConfigError, match=r"map\.json"):
        load_model(str(tiny_folder("llama")), device_map=str(tmp_path / "map.json"))


@pytest.mark.parametrize("ref", ["toy", lambda texts: [[0.5, 0.5] for _ in texts]])
def test_models_that_are_not_loaded_by_transformers_take_no_map(ref):
    with pytest.raises(ConfigError, match="--device-map is for models that transformers loads"):
        load_model(ref, device_map="auto")


def test_a_spread_classifier_is_not_trained(pairs):
    one, spread = pairs("bert")
    assert trainable(one) is one
    with pytest.raises(ConfigError, match="lie on one device"):
        trainable(spread)
