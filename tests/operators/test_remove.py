from dataclasses import replace

import pytest

import ice_eval as ice
from ice_eval.errors import CapabilityError
from ice_eval.operators.remove import Delete, Mask, MaskPad, MaskUnk
from ice_eval.records import SpecialIds

WRITES = [(Mask, "mask"), (MaskUnk, "unk"), (MaskPad, "pad")]


@pytest.mark.parametrize(("operator", "token"), WRITES)
def test_the_special_token_lands_only_on_units_not_kept(encoded, no_fills, operator, token):
    item = encoded("a b c")
    found = operator().build(item, keep=[[True, False, True]], fills=no_fills)
    expected = [
        getattr(item.special, token) if unit == 1 else i for i, unit in zip(item.ids, item.unit_of, strict=True)
    ]
    assert found.row(0).tolist() == expected


def test_unknown_token_of_a_text_is_what_the_tokenizer_writes(encoded, no_fills):
    found = MaskUnk().build(encoded("a b c"), keep=[[True, False, True]], fills=no_fills)
    assert found.row(0).tolist() == encoded("a <unk> c").ids.tolist()


@pytest.mark.parametrize(("operator", "name"), [(MaskUnk, "mask-unk"), (MaskPad, "mask-pad")])
def test_end_of_text_stands_in_and_is_flagged(encoded, no_fills, operator, name):
    item = replace(encoded("a b"), special=SpecialIds(end=7))
    found = operator().build(item, keep=[[False, True]], fills=no_fills)
    assert found.row(0)[item.unit_of == 0].tolist() == [7]
    assert operator().prepare(item.special) == [f"{name}_writes_end_of_text"]


def test_a_model_without_a_mask_token_is_refused():
    with pytest.raises(CapabilityError, match="'mask' needs a mask token that the model was trained with, and"):
        Mask().prepare(SpecialIds(unk=1, pad=2, end=3))
    assert Mask().prepare(SpecialIds(mask=1)) == []


@pytest.mark.parametrize("operator", [MaskUnk, MaskPad])
def test_a_model_without_any_special_token_is_refused(operator):
    with pytest.raises(CapabilityError, match="needs a token to write, and this model has no such token"):
        operator().prepare(SpecialIds())


@pytest.mark.parametrize("name", ["mask", "mask-unk", "mask-pad"])
def test_a_refusal_names_the_operators_that_the_model_accepts(sentiment_task, name):
    def even(texts):
        return [[0.5, 0.5]] * len(texts)

    task = sentiment_task(["good film", "bad film"])
    with pytest.raises(
        CapabilityError, match=rf"'{name}' needs .* Operators that work with '.*even': delete, infill\.$"
    ):
        ice.evaluate(even, task, attributions="random", operators=name)
    assert len(ice.evaluate(even, task, attributions="random", operators="infill", m=2).summary()) == 1


def test_units_that_are_not_kept_are_gone(encoded, no_fills):
    found = Delete().build(encoded("a b c"), keep=[[True, False, True]], fills=no_fills)
    assert len(found) == 1
    assert found.ids.tolist() == encoded("a c").ids.tolist()


def test_removing_everything_leaves_the_template(encoded, no_fills):
    item = encoded("a b c")
    found = Delete().build(item, [[False, False, False]], fills=no_fills)
    assert found.keys == item.empty().keys


def test_all_tokens_of_a_unit_go_together(handmade, no_fills):
    item = handmade((10,), (20, 21), (30,))
    found = Delete().build(item, keep=[[True, False, True]], fills=no_fills)
    assert found.row(0).tolist() == [900, 10, 30, 901]


def test_it_asks_for_no_fills():
    assert not Delete().needs_fills
