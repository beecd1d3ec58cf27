"""On a GPU: layers that lie elsewhere, or are computed elsewhere, give the numbers of a model in one place."""

import importlib

import accelerate
import numpy as np
import pytest
import torch
import transformers
from tests.helpers import save_tiny, save_wide
from tests.rows import join

from ice_eval.attributions import OF_EVERY_MODEL, Lens, Observer, attributions, method_of
from ice_eval.encoding import encode, shared_prefix
from ice_eval.models import load_model
from ice_eval.models.devices import QUANTISERS
from ice_eval.tasks import load_task

pytestmark = pytest.mark.gpu

LOOKING = [name for name, method in attributions.items() if method.needs - OF_EVERY_MODEL - {"generate"}]
WAITING = {
    "llama": {
        "model.embed_tokens": 0, "model.rotary_emb": 0, "model.layers.0": 0, "model.layers.1": "cpu",
        "model.layers.2": "disk", "model.norm": "cpu", "lm_head": "cpu",
    },
    "gpt2": {"transformer.wte": 0, "transformer.wpe": 0, "transformer.drop": 0, "transformer.h.0": 0,
             "transformer.h.1": "cpu", "transformer.h.2": "cpu", "transformer.ln_f": 0, "lm_head": 0},
    "bert": {"bert.embeddings": 0, "bert.encoder": "cpu", "bert.pooler": 0, "classifier": "cpu"},
}  # fmt: skip
"""Layers in memory and on disk that are computed on the GPU."""
WORKING = {
    "llama": {
        "model.embed_tokens": "cpu", "model.rotary_emb": "cpu", "model.layers.0": 0, "model.layers.1": "cpu",
        "model.layers.2": 0, "model.norm": 0, "lm_head": 0,
    },
    "bert": {"bert.embeddings": 0, "bert.encoder": "cpu", "bert.pooler": 0, "classifier": "cpu"},
}  # fmt: skip
"""Layers that are computed where they lie: on two devices, as on two GPUs."""


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """(family, how) -> the model on the GPU, and the same otherwise."""
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    root = tmp_path_factory.mktemp("large")
    made = {}

    def load(family, how):
        folder = root / family
        if not folder.is_dir():
            save_tiny(folder, family)
        if (family, how) not in made:
            one = load_model(str(folder), device="cuda", dtype="float32")
            if how == "waiting":
                other = load_model(str(folder), device_map=WAITING[family], dtype="float32")
            else:
                classifies = family == "bert"
                auto = (
                    transformers.AutoModelForSequenceClassification if classifies else transformers.AutoModelForCausalLM
                )
                inner = auto.from_pretrained(folder).requires_grad_(False)
                accelerate.dispatch_model(inner, WORKING[family], main_device="cpu", skip_keys=["past_key_values"])
                other = load_model((inner, one.codec.tokenizer))
            made[family, how] = one, other
        return made[family, how]

    return load


CASES = [*((family, "waiting") for family in WAITING), *((family, "working") for family in WORKING)]


@pytest.mark.parametrize(("family", "how"), CASES)
def test_scores_are_the_same(models, family, how):
    task = load_task("demo")

    def scores(model):
        items = [encode(model.codec, task, example) for example in task.examples()[:6]]
        rows, labels, prefix = join(item.full() for item in items), model.labels(task), shared_prefix(items)
        assert model.check(rows, labels, prefix=prefix) == []
        return model.log_scores(rows, labels, prefix=prefix)

    one, other = models(family, how)
    np.testing.assert_allclose(scores(other), scores(one), atol=1e-3)
    assert other.is_spread and other.devices.count("cuda:0") == 1 and "cpu" in other.devices
    assert other.fingerprint == one.fingerprint
    assert other.default_budget() > 0 and other.peak_memory() > 0


@pytest.mark.parametrize("name", LOOKING)
@pytest.mark.parametrize(("family", "how"), CASES)
def test_every_attribution_is_the_same(models, family, how, name):
    task, method = load_task("demo"), method_of(name)

    def explained(model):
        items = [encode(model.codec, task, example) for example in task.examples()[:2]]
        observer = Observer(model, model.labels(task), {item.example_id: 1 for item in items}, method.needs, chat=False)
        return method.attribute(Lens(observer, method.needs, 0, name), items)

    for right, found in zip(*map(explained, reversed(models(family, how))), strict=True):
        np.testing.assert_allclose(found, right, atol=1e-3 * np.abs(right).max())


@pytest.mark.parametrize("how", ["waiting", "working"])
def test_what_it_writes_is_the_same(models, how):
    one, other = models("llama", how)
    asked = {"turns": None, "max_tokens": 8, "stop": None}
    assert other.generate(["Review: a warm film"], **asked) == one.generate(["Review: a warm film"], **asked)


@pytest.mark.parametrize("name", QUANTISERS)
def test_quantised_weights_score_and_have_gradients(tmp_path, name):
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    try:
        importlib.import_module(QUANTISERS[name].library)
    except ImportError:
        pytest.skip(f"needs {QUANTISERS[name].library}")
    save_wide(tmp_path, "llama")
    full, found = (load_model(str(tmp_path), device="cuda", dtype="float32", load_in=each) for each in (None, name))
    task = load_task("demo")
    items = [encode(full.codec, task, example) for example in task.examples()[:6]]
    rows, prefix, labels = join(item.full() for item in items), shared_prefix(items), full.labels(task)
    assert found.check(rows, labels, prefix=prefix) == []
    right, scores = (each.log_scores(rows, labels, prefix=prefix) for each in (full, found))
    assert 0 < np.abs(scores - right).max() < (0.1 if "8bit" in name else 3)
    text = found.embedded(items[0], 0, labels)
    [slope] = text.gradients(text.embedding[None])
    step = 0.05 * slope / np.linalg.norm(slope)
    up, down = text.log_odds(np.stack([text.embedding + step, text.embedding - step]))
    # LLM.int8() rounds what its layers read, too.
    assert up - down == pytest.approx(2 * np.sum(slope * step), rel=0.2 if name == "8bit" else 0.03)
