"""What holds for every attribution on every kind of model."""

from dataclasses import replace

import numpy as np
import pytest
from tests.helpers import CAUSAL, CLASSIFIERS

from ice_eval.attributions import OF_EVERY_MODEL, attributions

LOOKING = [
    name
    for name, method in attributions.items()
    if method.needs - OF_EVERY_MODEL - {"generate"} and "token" in method.units
]
"""Those that look inside a model; what tiny ones say when asked is no word of any text."""
FEW = ["bert", "gpt2", "lfm2", "llama"]


def hooks_of(model):
    modules = list(model.modules())
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")
    return sum(len(getattr(module, kind)) for module in modules for kind in kinds)


@pytest.mark.parametrize("name", LOOKING)
@pytest.mark.parametrize("family", CAUSAL + CLASSIFIERS)
def test_every_unit_gets_a_finite_number_and_not_all_the_same(tiny, reviews, explained, family, name):
    items, found = explained(tiny(family), reviews, name)
    for item, values in zip(items, found, strict=True):
        assert values.shape == (item.n_units,)
        assert np.isfinite(values).all()
        assert np.ptp(values) > 0


@pytest.mark.parametrize("name", LOOKING)
@pytest.mark.parametrize("family", FEW)
def test_numbers_of_an_example_do_not_depend_on_the_others(tiny, reviews, explained, family, name):
    model = tiny(family)
    items, together = explained(model, reviews, name)
    for item, values in zip(items, together, strict=True):
        _, [alone] = explained(model, reviews, name, items=[item])
        np.testing.assert_allclose(values, alone, atol=2e-4 * np.abs(alone).max())


@pytest.mark.parametrize("name", LOOKING)
def test_packed_shared_and_plain_passes_agree(tiny, reviews, explained, name):
    model = tiny("llama")
    _, packed = explained(model, reviews, name)
    for way in ("shared", "plain"):
        model._way = way
        _, others = explained(model, reviews, name)
        for one, other in zip(packed, others, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-3 * np.abs(other).max())


@pytest.mark.parametrize("name", LOOKING)
def test_chats_and_labels_of_several_tokens_work(tiny, reviews, long_labels, explained, name):
    for task in (replace(reviews, chat=True), long_labels):
        items, found = explained(tiny("llama", chat=True), task, name, n=2)
        assert all(np.isfinite(values).all() and np.ptp(values) > 0 for values in found)


@pytest.mark.parametrize("name", LOOKING)
@pytest.mark.parametrize("family", FEW)
def test_the_model_is_left_as_it_was(tiny, reviews, explained, family, name):
    model = tiny(family)
    inner = model.model.requires_grad_(True)
    before = inner.config._attn_implementation, hooks_of(inner), inner.training
    explained(model, reviews, name)
    assert (inner.config._attn_implementation, hooks_of(inner), inner.training) == before
    assert all(each.grad is None and each.requires_grad for each in inner.parameters())
    broken = inner.base_model.register_forward_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        explained(model, reviews, name)
    broken.remove()
    assert (inner.config._attn_implementation, hooks_of(inner), inner.training) == before
    assert all(each.grad is None for each in inner.parameters())
