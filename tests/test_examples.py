"""The scripts in examples/ do what they say."""

import re
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.smollm2
def test_a_function_word_that_stands_for_the_adjectives_is_anti_faithful(smollm2, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["anti_faithful_cases.py"])
    monkeypatch.setattr("ice_eval.api.load_model", lambda *_, **__: smollm2)
    runpy.run_path(str(EXAMPLES / "anti_faithful_cases.py"))
    out = capsys.readouterr().out
    articles = out.partition("uses high comedy")[0]  # the three cases in which "a" is named
    under_infill = re.findall(r"function word +infill +win rate +(\d+) %.*effect -\S+ \((\w+ negative)\)", articles)
    assert under_infill == [("0", "large negative")] * 3
    named = re.findall(r"reader's word +\w+ +win rate +(\d+) %", articles)
    assert len(named) == 6 and min(map(int, named)) >= 75
    # SmolLM2 does not take "poignance" for praise: what a reader would name is not what the model uses.
    assert re.findall(r"reader's word +\w+ +win rate +(\d+) %", out.removeprefix(articles)) == ["0", "0"]
