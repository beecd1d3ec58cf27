"""Signed attributions rank by support of the explained label, or by magnitude."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import ice_eval
from ice_eval.attributions import Attribution, Lens
from ice_eval.errors import ConfigError

TEXTS = ["a good film that is awful now", "one great but hated story of it"]
VALUES = [-4.0, 1.0, 2.0, 0.0, -3.0, 0.5, 0.25]


@dataclass(frozen=True, kw_only=True)
class Signed(Attribution):
    signed: ClassVar[bool] = True

    def attribute(self, lens: Lens, batch: Sequence) -> list:
        return [np.array(VALUES) for _ in batch]


class Unsigned(Signed):
    signed: ClassVar[bool] = False


@pytest.fixture
def evaluate(sentiment_task):
    def run(method, **settings):
        return ice_eval.evaluate(
            "toy", sentiment_task(TEXTS), attributions={"mine": method}, operators=["delete"], k=0.3, m=5, **settings
        )

    return run


def rationales(run):
    return {tuple(units) for units in run.examples().rationale}


@pytest.mark.parametrize(
    ("method", "sign", "units"),
    [
        (Signed(), "support", (1, 2)),
        (Signed(), "abs", (0, 4)),
        (Unsigned(), "support", (1, 2)),
        (Unsigned(), "abs", (1, 2)),
        (lambda item: VALUES, "support", (1, 2)),
        (lambda item: VALUES, "abs", (0, 4)),
    ],
)
def test_only_signed_and_brought_attributions_rank_by_magnitude_and_only_where_asked(evaluate, method, sign, units):
    found = evaluate(method, sign=sign)
    assert rationales(found) == {units}
    assert ("sign_abs" in found.folder.manifest().flags) == (sign == "abs")


def test_the_numbers_in_the_folder_keep_their_sign(evaluate):
    found = evaluate(Signed(), sign="abs")
    assert list(next(iter(found.folder.inputs(0))).attributions["mine"]) == VALUES


def test_a_folder_goes_on_and_one_of_the_other_sign_is_refused(evaluate, tmp_path):
    evaluate(Signed(), out=tmp_path / "run")
    assert rationales(evaluate(Signed(), out=tmp_path / "run")) == {(1, 2)}
    with pytest.raises(ConfigError, match="sign is 'support' there and 'abs' here"):
        evaluate(Signed(), sign="abs", out=tmp_path / "run")


def test_another_word_is_refused(evaluate):
    with pytest.raises(ConfigError, match="sign 'absolute'.*Expected: support, abs"):
        evaluate(Signed(), sign="absolute")


@pytest.mark.parametrize("name", ["occlusion", "lime", "kernel-shap", "input-x-gradient", "integrated-gradients"])
def test_what_speaks_against_the_label_is_named_by_magnitude_only(name):
    # The text is positive by two words, and the third speaks against it as much as the stronger one speaks for it.
    task = ice_eval.Task(
        data=ice_eval.Records([{"text": "a great and excellent film with an awful end"}]),
        prompt="Review: {text}\nSentiment:",
        label_words={"negative": " negative", "positive": " positive"},
    )
    named = {}
    for sign in ("support", "abs"):
        run = ice_eval.evaluate("toy", task, attributions=[name], operators=["delete"], k=0.25, m=20, sign=sign)
        words = "a great and excellent film with an awful end".split()
        named[sign] = {words[unit] for unit in run.examples().iloc[0]["rationale"]}
    assert named["support"] == {"great", "excellent"}
    assert named["abs"] == {"excellent", "awful"}
