import csv
import json
from functools import partial

import pytest
from rich.cells import cell_len
from rich.console import Console


def test_headline_figures_come_as_json(ice):
    done = ice("paper", "--json")
    content = json.loads(done.out)
    assert done.code == 0
    assert (content["crossings"], content["anti_faithful_delete"], content["max_gap_pp"]) == (5, 18, 43.8)
    assert len(content["claims"]) == 54
    assert content["tables"][0] == "english"
    assert content["discrepancies"]
    assert {line["word"] for line in content["step_reasoning_capacity"]} == {"genuine", "scaffolding", "decorative"}


def test_the_overview_lists_tables_and_figures(ice):
    done = ice("paper")
    assert "multilingual_gradient" in done.out
    assert "43.8" in done.out
    assert "ice paper discrepancies" in done.out


@pytest.mark.parametrize("arguments", [(), ("english",), ("discrepancies",)])
def test_no_line_is_wider_than_the_terminal(ice, monkeypatch, arguments):
    narrow = partial(Console, width=80, force_terminal=True, color_system=None, highlight=False)
    monkeypatch.setattr("ice_eval.cli._output.console", narrow)
    lines = ice("paper", *arguments).out.splitlines()
    assert 40 < max(map(cell_len, lines)) <= 80


def test_a_table_is_laid_out_as_in_the_paper(ice):
    lines = [line.split() for line in ice("paper", "english").out.splitlines()]
    assert ["model", "attribution", "operator", "sst2", "imdb", "esnli", "ag_news"] in lines
    assert ["Llama-3.2-3B", "attention", "infill", "52.7", "91.8", "42.6", "56.9"] in lines


def test_a_table_as_data_has_one_value_in_a_row(ice):
    rows = list(csv.DictReader(ice("paper", "english", "--format", "csv").out.splitlines()))
    assert len(rows) == 28 * 4
    [row] = [r for r in rows if list(r.values())[:4] == ["Llama-3.2-3B", "imdb", "attention", "infill"]]
    assert float(row["win_rate"]) == 91.8


@pytest.mark.parametrize(
    ("style", "line"),
    [("md", "| Model C | instruction | 0.01 | 95 |"), ("latex", "Model C & instruction & 0.01 & 95 &")],
)
def test_other_formats(ice, style, line):
    assert line in ice("paper", "frontier", "--format", style).out


def test_an_empty_cell_is_shown_as_such(ice):
    row = next(line for line in ice("paper", "multilingual").out.splitlines() if "80.0" in line)
    assert row.split() == ["DeepSeek-7B", "attention", "infill", "54.4", "12.0", "–", "–", "50.7", "80.0"]


def test_a_table_as_json(ice):
    content = json.loads(ice("paper", "intervals", "--json").out)
    assert content["rows"][0]["win_rate"] == 97.2
    assert content["unit"] == "win rate in percent"


def test_discrepancies_are_a_table_too(ice):
    assert "49.1 / 52.4 / 52.7" in ice("paper", "discrepancies").out
    assert json.loads(ice("paper", "discrepancies", "--json").out)[0]["values"] == ["49.1", "52.4", "52.7"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("englsh",), "did you mean 'english'"),
        (("english", "--format", "xls"), "no format 'xls'; use md, latex, csv, parquet, json"),
        (("english", "--format", "md", "--json"), "--format and --json exclude each other"),
    ],
)
def test_bad_input_is_told_in_a_sentence(ice, arguments, message):
    done = ice("paper", *arguments)
    assert done.code == 2
    assert message in done.err
    assert done.out == ""


def test_figures_are_redrawn_as_files(ice, tmp_path):
    written = json.loads(ice("paper", "--figures", tmp_path / "new", "--json").out)
    assert [figure["name"] for figure in written] == ["paper-english", "paper-languages", "paper-prompts"]
    names = {path.name for path in (tmp_path / "new").iterdir()}
    assert names == {f"{figure['name']}.{kind}" for figure in written for kind in ("svg", "pdf", "png")}
    assert "97.2" in (tmp_path / "new" / "paper-english.svg").read_text(encoding="utf-8")


def test_figures_go_without_a_table(ice, tmp_path):
    done = ice("paper", "english", "--figures", tmp_path / "new")
    assert done.code == 2
    assert "leave out TABLE and --format" in done.err
    assert not (tmp_path / "new").exists()
