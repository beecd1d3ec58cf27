"""The scripts in examples/ do what they say."""

import ast
import json
import re
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
ELSEWHERE = {"anti_faithful_cases", "sklearn_classifier"}
"""Examples that need more than this package; they have tests of their own."""
SAYS = {
    "quickstart": [r"gradient +delete +0\.9\d+ .* faithful", r"random +delete .* not distinguishable", r"\[gorgeous\]"],
    "own_arrays": [r"words of feeling +36 +0\.9\d+ +faithful", r"random +36 .* not distinguishable"],
    "any_model": [r"the middle: win rate 100 %", r"the corners: win rate 1\d %"],
    "cited_answers": [r"'faithful': 12, 'uncited but used': 12", r"cited: carries 50% of claims, random passages \d%"],
    "given_chains": [r"genuine: necessity 1\.00, sufficiency 0\.00"],
}
"""What each script prints."""


def test_every_script_is_tried():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == ELSEWHERE | set(SAYS)


def test_every_script_is_on_the_list():
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in EXAMPLES.glob("*.*") if f"]({path.name})" not in page] == ["README.md"]


@pytest.mark.parametrize("name", SAYS)
def test_a_script_says_what_its_docstring_promises(name, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [f"{name}.py"])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    printed = capsys.readouterr().out
    for line in SAYS[name]:
        assert re.search(line, printed), printed
    assert list(tmp_path.iterdir()) == [], "an example leaves nothing where it is run"


def test_the_cells_of_the_notebook_run_in_order_and_show_what_they_announce():
    """Without Jupyter: each code cell is executed in one namespace, and its last expression is what would be shown."""
    notebook = json.loads((EXAMPLES / "quickstart.ipynb").read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    names, shown = {}, {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            *statements, last = ast.parse("".join(cell["source"])).body
            shows = isinstance(last, ast.Expr)
            exec(compile(ast.Module(statements if shows else [*statements, last], []), cell["id"], "exec"), names)
            if shows:
                shown[cell["id"]] = eval(compile(ast.Expression(last.value), cell["id"], "eval"), names)
    assert "gradient" in shown["run"]._repr_html_() and "gorgeous" in shown["example"]._repr_html_()
    kept = {cell["id"]: cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"}
    assert all(len(outputs) == (name in shown) for name, outputs in kept.items()), "run: python tools/notebook.py"
    assert "".join(kept["numbers"][0]["data"]["text/html"]) == shown["numbers"]._repr_html_()
    verdicts = shown["numbers"].set_index(["attribution", "operator"])["verdict"]
    assert verdicts["gradient", "delete"] == "faithful"
    assert verdicts["random", "delete"] == "not distinguishable from random"
    assert list(shown["own"]["attribution"]) == ["longest words", "random"]


@pytest.mark.smollm2
def test_a_function_word_that_stands_for_the_adjectives_is_anti_faithful(smollm2, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["anti_faithful_cases.py"])
    monkeypatch.setattr("ice_eval.pipeline.replicas.load_model", lambda *_, **__: smollm2)
    runpy.run_path(str(EXAMPLES / "anti_faithful_cases.py"))
    out = capsys.readouterr().out
    articles = out.partition("uses high comedy")[0]  # the three cases in which "a" is named
    under_infill = re.findall(r"function word +infill +win rate +(\d+) %.*d = (-\S+)", articles)
    assert len(under_infill) == 3 and max(int(rate) for rate, _ in under_infill) <= 33
    assert all(float(d) <= -0.5 for _, d in under_infill)
    named = re.findall(r"reader's word +\w+ +win rate +(\d+) %", articles)
    assert len(named) == 6 and min(map(int, named)) >= 75
    # SmolLM2 does not take "poignance" for praise: what a reader would name is not what the model uses.
    assert re.findall(r"reader's word +\w+ +win rate +(\d+) %", out.removeprefix(articles)) == ["0", "17"]
