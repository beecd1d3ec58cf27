"""Results as data: they equal the summary to the last digit, in every format."""

import csv
import json
import math

import pandas as pd
import pytest
from tests.small_runs import METHODS, run, texts

from ice_eval.report import DATA_FORMATS, DataTable, data_of, data_table, data_text, write_data
from ice_eval.report.data import flat
from ice_eval.results.json_files import as_json
from ice_eval.results.records import CountedRate, LineHead
from ice_eval.stats import Interval, Verdict

ODD = "=1+1"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return run(
        texts(9), attributions={**METHODS, ODD: METHODS["hat"]}, operators=["delete", "mask-unk"], k=[0.2, 0.4], m=10,
        out=tmp_path_factory.mktemp("data") / "run",
    )  # fmt: skip


@pytest.fixture(scope="module")
def tables(found):
    return {table.name: table for table in data_of([found.folder], [found.folder.summary()])}


def leaves(content):
    """Every number, truth value and word of JSON content, in its order, without None."""
    if isinstance(content, dict):
        for part in content.values():
            yield from leaves(part)
    elif isinstance(content, list):
        for part in content:
            yield from leaves(part)
    elif content is not None:
        yield content


def test_every_number_of_the_summary_is_in_its_table(found, tables):
    summary = json.loads((found.path / "summary.json").read_text())
    for name in ("configurations", "agreement", "robustness", "kappa"):
        assert len(tables[name].rows) == len(summary[name]) > 0
        for row, line in zip(tables[name].rows, summary[name], strict=True):
            told = {each for each in leaves(row) if isinstance(each, int | float)}
            assert {each for each in leaves(line) if isinstance(each, int | float)} <= told
            assert {each for each in leaves(line) if isinstance(each, str)} <= set(leaves(row))
    pairs = [pair for line in summary["rankings"] for pair in line["pairs"]]
    assert len(tables["differences"].rows) == len(pairs) > 0
    for row, pair in zip(tables["differences"].rows, pairs, strict=True):
        assert (row["attribution_first"], row["attribution_second"]) == tuple(pair["attributions"])
        low, high = pair["difference_ci"] or (None, None)
        assert (row["difference"], row["difference_low"], row["difference_high"]) == (pair["difference"], low, high)
        assert row["p_adjusted"] == pair["p_adjusted"]


def test_examples_are_those_of_the_run_and_failed_ones_have_no_numbers(found, tables):
    lines = list(map(as_json, found.folder.examples()))
    assert len(tables["examples"].rows) == len(lines)
    for row, line in zip(tables["examples"].rows, lines, strict=True):
        assert all(row[name] == value for name, value in line.items() if name not in ("k", "flags", "rationale"))
        assert (row["k"], row["size"]) == (line["k"], "share")
    failed = flat(next(iter(found.folder.examples())).__class__(
        example_id="1", attribution="a", operator="o", direction="sufficiency", k=None, null="size", n_units=1,
        target=None, gold=None, error="bad",
    ))  # fmt: skip
    assert failed["win_rate"] is None and failed["size"] == "own" and failed["error"] == "bad"


@pytest.mark.parametrize("style", DATA_FORMATS)
def test_every_file_comes_back_with_the_same_numbers(tables, tmp_path, style):
    paths = write_data(list(tables.values()), style, tmp_path)
    assert [path.name for path in paths] == [f"{name}.{style}" for name in tables]
    for path, table in zip(paths, tables.values(), strict=True):
        read = {"csv": read_csv, "json": read_json, "parquet": read_parquet}[style](path)
        assert len(read) == len(table.rows)
        for mine, row in zip(read, table.rows, strict=True):
            for name in table.columns:
                value, back = row[name], mine[name]
                if isinstance(value, float | int) and not isinstance(value, bool):
                    assert float(back) == value, (table.name, name)
                elif value is None:
                    assert back in ("", None) or math.isnan(back)
                elif isinstance(value, str):
                    assert back == (f"'{value}" if style == "csv" and value.startswith("=") else value)


def read_csv(path):
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def read_json(path):
    return json.loads(path.read_text(encoding="utf-8"))


def read_parquet(path):
    return pd.read_parquet(path).to_dict("records")


def test_parquet_has_types(tables, tmp_path):
    write_data(list(tables.values()), "parquet", tmp_path)
    frame = pd.read_parquet(tmp_path / "configurations.parquet")
    assert frame["win_rate"].dtype == frame["p_value"].dtype == "float64" and frame["n"].dtype == "int64"
    assert frame["verdict_excludes_chance"].dtype == "bool" and set(frame["attribution"]) == {*METHODS, ODD}
    assert list(frame["flags"][0]) == list(tables["configurations"].rows[0]["flags"])


def test_rows_of_several_runs_name_their_folder_and_are_adjusted_together(found, tables):
    summary = found.folder.summary()
    both = {table.name: table.rows for table in data_of([found.folder, found.folder], [summary, summary])}
    assert len(both["configurations"]) == 2 * len(tables["configurations"].rows)
    assert {row["folder"] for row in both["examples"]} == {str(found.path)}
    for row, own in zip(both["configurations"], tables["configurations"].rows, strict=False):
        assert row["p_adjusted"] >= own["p_adjusted"] and row["p_value"] == own["p_value"]


def test_columns_follow_from_types_whatever_the_values():
    class_of = {"interval": Interval(0.1, 0.9), "none": None}
    rows = [flat(CountedRate(rate=None, rate_ci=each, rate_bounds=None, n=3)) for each in class_of.values()]
    assert (
        list(rows[0]) == list(rows[1]) == ["rate", "rate_low", "rate_high", "rate_bounds_low", "rate_bounds_high", "n"]
    )
    head = dict(
        model="m", task="t", attribution="a", operator="o", direction="necessity", null="size", n=1, n_skipped=0
    )
    sizes = [flat(LineHead(**head, k=k, accuracy=None)) for k in (0.3, "dynamic", None)]
    assert [(row["k"], row["size"]) for row in sizes] == [(0.3, "share"), (None, "dynamic"), (None, "own")]
    mapped = flat({"gap_ci": None, "k": 0.2, "names": ("a", "b"), "verdict": Verdict(word="faithful")})
    assert (mapped["gap_low"], mapped["size"], mapped["names"], mapped["verdict"]) == (
        None,
        "share",
        ["a", "b"],
        "faithful",
    )


@pytest.mark.parametrize("cell", ["=1+1", "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "- a name"])
def test_a_spreadsheet_works_out_no_text_of_a_csv_file(cell):
    [row] = list(csv.reader(data_text(data_table("t", [{"name": cell}]), "csv").splitlines()))[1:]
    assert row == [f"'{cell}"]
    assert json.loads(data_text(data_table("t", [{"name": cell}]), "json")) == [{"name": cell}]


def test_numbers_and_other_texts_of_a_csv_file_stay_as_they_are():
    values = {
        "a": -3.25,
        "b": 1e-300,
        "c": "a=b",
        "d": "–",
        "e": True,
        "f": None,
        "g": ["x", "=y"],
        "h": "two\nlines, 1",
    }
    header, row = csv.reader(data_text(data_table("t", [values]), "csv").splitlines(keepends=True))
    assert header == list(values)
    assert row == ["-3.25", "1e-300", "a=b", "–", "true", "", '["x", "=y"]', "two\nlines, 1"]


def test_no_text_lets_a_control_character_through():
    text = data_text(data_table("t", [{"name": "\x1b]0;owned\x07mine\x9b31m"}]), "csv")
    assert "mine" in text and not set("\x1b\x07\x9b") & set(text)


def test_columns_are_those_of_any_row_and_a_mixed_one_is_text(tmp_path):
    table = DataTable("t", [{"a": 1}, {"a": "x", "b": 2}])
    assert table.columns == ["a", "b"] and data_text(table, "csv") == "a,b\n1,\nx,2"
    [path] = write_data([table, DataTable("empty")], "parquet", tmp_path)
    assert pd.read_parquet(path)["a"].tolist() == ["1", "x"]


def test_chains_and_claims_have_tables_of_their_own(chains, cited):
    tables = {table.name: table for table in data_of([chains], [chains.summary()])}
    content = chains.summary().chains
    assert [row["src_adjusted_low"] for row in tables["chains_capacity"].rows] == [
        line.src_adjusted_ci and line.src_adjusted_ci.low for line in content.capacity
    ]
    [run_row] = tables["chains"].rows
    assert run_row["problems_n"] == content.problems.n and run_row["noise_floor_rate"] == content.noise_floor.rate
    tables = {table.name: table for table in data_of([cited], [cited.summary()])}
    claims = cited.summary().citations.claims
    assert [(row["example_id"], row["word"], row["win_rate"]) for row in tables["claims"].rows] == [
        (line.example_id, line.word, line.win_rate) for line in claims
    ]
    assert all(row["task"] == tables["citations"].rows[0]["task"] for row in tables["citations_words"].rows)


@pytest.fixture(scope="module")
def cited(tmp_path_factory):
    from tests.report.test_citations import run as cited_run

    return cited_run(tmp_path_factory.mktemp("cited") / "run").folder
