"""Each plug-in by itself, on the toy model, whose weights are published; then all three in one run."""

from types import SimpleNamespace

import numpy as np
import pytest
from ice_eval_example.gradient_norm import GradientNorm
from ice_eval_example.mask_any import MaskAny

import ice_eval as ice
from ice_eval.encoding import encode
from ice_eval.errors import CapabilityError
from ice_eval.models.toy import Toy
from ice_eval.records import Encoded, SpecialIds
from ice_eval.tasks import load_task


@pytest.fixture
def message() -> Encoded:
    """The first message, as the toy model reads it."""
    task = load_task("help-desk")
    return encode(Toy().codec, task, task.examples()[0])


def test_the_special_token_lands_on_the_units_that_are_not_kept(message: Encoded) -> None:
    keep = np.arange(message.n_units)[None] != 3
    ids = MaskAny().build(message, keep, fills=message.ids[:0]).row(0)
    changed = np.flatnonzero(ids != message.ids)
    assert [message.texts[unit] for unit in message.unit_of[changed]] == ["broken"]
    assert ids[changed].tolist() == [message.special.mask]


def test_a_model_without_special_tokens_is_refused_before_the_run() -> None:
    with pytest.raises(CapabilityError, match="needs a special token"):
        MaskAny().prepare(SpecialIds())
    assert MaskAny().prepare(SpecialIds(pad=0)) == []


@pytest.mark.parametrize(("order", "norm"), [(1, 7.0), (2, 5.0)])
def test_the_order_of_the_norm_is_an_option(message: Encoded, order: int, norm: float) -> None:
    slopes = SimpleNamespace(gradient=np.tile([3.0, -4.0], (len(message.ids), 1)))
    lens = SimpleNamespace(gradients=lambda batch: [slopes for _ in batch])
    [values] = GradientNorm(order=order).attribute(lens, [message])  # type: ignore[arg-type]
    assert values.tolist() == [norm] * message.n_units


def test_all_three_work_together_by_their_names() -> None:
    run = ice.evaluate("toy", "help-desk", attributions=["gradient-norm", "random"], operators=["delete", "mask-any"])
    found = run.summary().set_index(["attribution", "operator"])["win_rate"]
    assert found["gradient-norm", "mask-any"] > 0.9 > found["random", "mask-any"]
