"""Options of a method are written behind its name."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pytest

import ice_eval
from ice_eval.attributions import Attribution, Lens, attributions, method_of
from ice_eval.attributions.controls import Random
from ice_eval.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Tuned(Attribution):
    steps: int = 8
    share: float = 0.5
    exact: bool = False
    note: str = "x"
    layer: int | None = None
    from_end: bool = True
    base: Literal["zero", "pad"] = "zero"

    def attribute(self, lens: Lens, batch: Sequence) -> list:
        return [self.share * item.per_unit(item.ids % self.steps).astype(float) for item in batch]


@pytest.fixture(autouse=True)
def tuned(monkeypatch):
    attributions.names()
    monkeypatch.setitem(attributions._items, "tuned", Tuned)


@pytest.mark.parametrize(
    ("spec", "expected"),
    {
        "tuned": Tuned(),
        "tuned:steps=64": Tuned(steps=64),
        "tuned:share=0.25:exact=true": Tuned(share=0.25, exact=True),
        "tuned:note=a b": Tuned(note="a b"),
        "tuned:layer=-1": Tuned(layer=-1),
        "tuned:layer=none": Tuned(),
        "tuned: from-end = False": Tuned(from_end=False),
        "tuned:base=pad": Tuned(base="pad"),
        "random": Random(),
    }.items(),
)
def test_options_set_the_fields_of_a_method_with_their_types(spec, expected):
    assert method_of(spec) == expected


_LISTED = (
    r"its options: steps \(int\), share \(float\), exact \(bool\), note \(str\), layer \(int or none\), "
    r"from_end \(bool\), base \(zero or pad\)"
)


@pytest.mark.parametrize(
    ("spec", "message"),
    {
        "tuned:step=3": rf"'step=3' is not an option of 'tuned'; {_LISTED}",
        "tuned:steps": rf"'steps' is not an option of 'tuned'; {_LISTED}",
        "tuned:": "'' is not an option of 'tuned'",
        "tuned:steps=1:steps=2": "'steps=2' is not an option of 'tuned'",
        "tuned:steps=many": rf"steps = 'many' is not int; {_LISTED}",
        "tuned:steps=1.5": "steps = '1.5' is not int",
        "tuned:exact=1": "exact = '1' is not bool",
        "tuned:layer=last": "layer = 'last' is not int or none",
        "tuned:base=unk": "base = 'unk' is not zero or pad",
        f"lime:n_samples={10**30}": f"n_samples = {10**30}: at most 1,000,000 is possible",
        f"kernel-shap:n_samples={10**7}": "n_samples = 10000000: at most 1,000,000 is possible",
        f"context-cite:n_samples={10**30}": "at most 1,000,000 is possible",
        f"gradient-shap:samples={10**30}": f"gradient-shap: samples = {10**30}: at most 1,000,000 is possible",
        "integrated-gradients:steps=100000": "integrated-gradients: steps = 100000: at most 5,000 is possible",
        f"leave-one-out:samples={10**30}": "leave-one-out: samples = .*: at most 1,000,000 is possible",
        f"self-explanation:words={10**30}": "self-explanation: words = .*: at most 1,000,000 is possible",
        "random:seed=1": "'seed=1' is not an option of 'random'; it has no options",
        "tund:steps=1": r"no attribution named 'tund'; did you mean 'tuned'\?",
    }.items(),
)
def test_what_is_no_option_or_no_value_is_refused_with_those_there_are(spec, message):
    with pytest.raises(ConfigError, match=message):
        method_of(spec)


def test_methods_with_other_options_stand_side_by_side_under_their_whole_names(sentiment_task, tmp_path):
    task, names = sentiment_task(["a gorgeous but dull film", "an awful film"]), ["tuned:steps=5", "tuned:steps=3"]
    settings = {"operators": ["delete"], "n": 2, "m": 5, "out": tmp_path / "run"}
    first = ice_eval.evaluate("toy", task, attributions=names, **settings)
    assert first.summary().attribution.tolist() == names
    vectors = [row.attributions for part in first.folder.parts() for row in first.folder.inputs(part)]
    assert vectors[0][names[0]] != vectors[0][names[1]]
    again = ice_eval.evaluate("toy", task, attributions="random", **settings)
    assert again.summary().attribution.tolist() == [*names, "random"]


def test_a_wrong_option_stops_before_anything_is_written(sentiment_task, tmp_path):
    with pytest.raises(ConfigError, match="not an option of 'tuned'"):
        ice_eval.evaluate("toy", sentiment_task(["a b"]), attributions=["tuned:stepz=1"], out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
