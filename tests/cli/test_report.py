"""`ice report`: tables, formats, figures and pages, and what makes it fail."""

import csv
import json
import re
import sys

import pytest
from tests.cli.commands import assert_refused


def test_a_format_that_is_unknown_or_would_be_ignored_exits_2(ice, finished):
    assert_refused(ice("report", finished, "--format", "xls"), "no format 'xls'; use md, latex, csv, parquet, json")
    assert_refused(ice("report", finished, "--format", "md", "--json"), "--format and --json exclude each other")
    assert_refused(ice("report", finished, "--format", "md", "--html", "x.html"), "--format and --html exclude")
    assert_refused(ice("report", finished, "--format", "md", "--figures", "x"), "--format and --figures exclude")


def test_a_page_that_cannot_be_written_exits_2(ice, finished, reviews):
    assert_refused(ice("report", finished, "--html", finished), str(finished))
    assert_refused(ice("report", finished, "--html", reviews / "page.html"), str(reviews))
    assert not [path for path in finished.parent.rglob("*") if "draft" in path.name]


def test_a_report_is_printed_as_tables(ice, finished):
    done = ice("report", finished, "--full")
    assert done.code == 0 and "Faithfulness" in done.out and "small_n" in done.out


def test_a_report_is_printed_as_json(ice, finished):
    done = ice("report", finished, finished, "--json")
    printed = json.loads(done.out)
    summary = json.loads((finished / "summary.json").read_text())
    [alone] = json.loads(ice("report", finished, "--json").out)
    assert alone == {"folder": str(finished), **summary}
    # Twice as many configurations are adjusted together; nothing else changes.
    for run in printed:
        assert run["folder"] == str(finished) and run["agreement"] == summary["agreement"]
        for line, own in zip(run["configurations"], summary["configurations"], strict=True):
            assert line["p_adjusted"] >= own["p_adjusted"]
            assert {**line, "p_adjusted": 0} == {**own, "p_adjusted": 0}


def test_a_report_is_printed_as_markdown(ice, finished):
    lines = ice("report", finished, "--format", "md").out.splitlines()
    assert lines[0] == "**Faithfulness**"
    table = [line for line in lines if line.startswith("|")]
    header = [cell.strip() for cell in table[0].strip("|").split("|")]
    assert header[:2] == ["attribution", "operator"] and "win rate" in header
    assert set(table[1]) == set("| -:")
    assert all(line.count("|") == table[0].count("|") for line in table[: 2 + 9])


@pytest.mark.parametrize("options", [(), ("--full",), ("--format", "md"), ("--simultaneous",)])
def test_a_report_is_printed_in_the_columns_of_the_paper(ice, finished, options):
    done = ice("report", finished, "--columns", "paper", *options)
    assert done.code == 0
    for header in ("WR", "NSR (Suf.)", "sig. rate", "d_null", "word (estimate)"):
        assert header in done.out
    assert "d_null" not in ice("report", finished, "--columns", "default", *options).out
    assert ice("report", finished, "--columns", "default", *options).out == ice("report", finished, *options).out


def test_a_page_and_data_have_the_columns_of_the_paper(ice, finished, tmp_path):
    assert ice("report", finished, "--columns", "paper", "--html", tmp_path / "page.html").code == 0
    page = (tmp_path / "page.html").read_text()
    assert "d_null" in page and "NSR (Suf.)" in page
    [row, *_] = csv.DictReader(ice("report", finished, "--format", "csv").out.splitlines())
    assert {"win_rate", "nsr_mean", "significant_rate", "effect_size_median", "taxonomy", "p_adjusted"} <= set(row)


def test_unknown_columns_exit_2(ice, finished):
    assert_refused(ice("report", finished, "--columns", "papr"), "--columns papr; did you mean 'paper'?")
    assert_refused(ice("show", finished, "--columns", "papr"), "did you mean 'paper'?")


def test_configurations_are_printed_as_data(ice, finished):
    lines = json.loads((finished / "summary.json").read_text())["configurations"]
    rows = list(csv.DictReader(ice("report", finished, "--format", "csv").out.splitlines()))
    assert [(row["attribution"], row["operator"]) for row in rows] == [(x["attribution"], x["operator"]) for x in lines]
    assert [float(row["win_rate"]) for row in rows] == [line["win_rate"] for line in lines]
    assert json.loads(ice("report", finished, "--format", "json").out)[0]["win_rate_low"] == lines[0]["win_rate_ci"][0]


def test_data_are_one_file_for_each_table(ice, finished, tmp_path):
    names = ["configurations", "agreement", "robustness", "kappa", "rankings", "differences", "examples"]
    for style in ("csv", "parquet", "json"):
        done = ice("report", finished, "--format", style, "--out", tmp_path / style)
        assert done.out.split() == [str(tmp_path / style / f"{name}.{style}") for name in names]
    assert_refused(ice("report", finished, "--format", "csv", "--out", finished / "manifest.json"), "cannot be written")
    assert_refused(ice("report", finished, "--format", "parquet"), "parquet cannot be printed; write it to a folder")
    assert_refused(ice("report", finished, "--format", "md", "--out", "x"), "give --format csv, parquet, json with it")
    assert_refused(ice("report", finished, "--out", "x"), "--out takes tables as data")


def test_a_report_is_printed_as_latex(ice, finished):
    text = ice("report", finished, "--format", "latex").out
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 5
    assert r"95 \% CI" in text
    assert all(line.startswith("% ") for line in text.splitlines() if re.search(r"(?<!\\)%", line))


def test_figures_are_written_and_listed(ice, finished, tmp_path, monkeypatch):
    from ice_eval.report import figures

    monkeypatch.setattr(figures, "figures", lambda *given, all_of=figures.figures, **how: all_of(*given, **how)[:1])
    target = tmp_path / "paper" / "figures"
    done = ice("report", finished, "--figures", target, "--json")
    printed = json.loads(done.out)
    assert done.code == 0 and printed["html"] is None
    names = [figure["name"] for figure in printed["figures"]]
    assert names == ["win-rate-heatmap"]
    assert all(figure["title"] and figure["caption"] for figure in printed["figures"])
    files = [file for figure in printed["figures"] for file in figure["files"]]
    assert files == [str(target / f"{name}.{kind}") for name in names for kind in ("svg", "pdf", "png")]
    assert sorted(files) == sorted(map(str, target.iterdir()))
    done = ice("report", finished, "--figures", target, "--html", tmp_path / "page.html")
    assert done.out.splitlines() == [str(tmp_path / "page.html"), *files]


def test_figures_that_cannot_be_drawn_exit_2(ice, finished, reviews, monkeypatch):
    assert_refused(ice("report", finished, "--figures", reviews), f"figures cannot be written to {reviews}")
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    assert_refused(
        ice("report", finished, "--figures", "new"), "'vl_convert' is not installed", "pip install 'vl-convert-python'"
    )


def judge(folder, field, *, gradient, others):
    """Change the verdicts of a finished run."""
    path = folder / "summary.json"
    summary = json.loads(path.read_text())
    for line in summary["configurations"]:
        word = gradient if line["attribution"] == "gradient" else others
        line[field] = {"word": word, "excludes_chance": True, "tie_rate": None, "text": word}
    path.write_text(json.dumps(summary))


def test_an_unwanted_verdict_exits_1_and_names_the_configurations(ice, finished):
    judge(finished, "verdict", gradient="anti-faithful", others="faithful")
    assert ice("report", finished, "--fail-if", "weakly faithful", "--fail-if", "operators disagree").code == 0
    done = ice("report", finished, "--fail-if", "weakly faithful,anti-faithful", "--json")
    assert done.code == 1 and json.loads(done.out)
    assert done.err.splitlines() == [
        f"ice: gradient under {operator} (k = 0.2, sufficiency): anti-faithful" for operator in ("delete", "infill")
    ]


def test_a_gate_may_be_about_some_attributions_alone(ice, finished):
    gate = ("report", finished, "--fail-if", "not distinguishable from random")
    judge(finished, "verdict", gradient="faithful", others="not distinguishable from random")
    assert ice(*gate, "--fail-for", "gradient").code == 0
    done = ice(*gate, "--fail-for", "gradient,random")
    assert done.code == 1 and all(line.startswith("ice: random under") for line in done.err.splitlines())
    done = ice(*gate, "--fail-for", "gradent")
    assert_refused(done, "no attribution 'gradent' here; did you mean 'gradient'?")
    assert_refused(
        ice("report", finished, "--fail-for", "gradient"), "--fail-for limits --fail-if to some attributions"
    )


def test_simultaneous_verdicts_are_printed_and_gated(ice, finished):
    judge(finished, "verdict", gradient="faithful", others="faithful")
    judge(finished, "verdict_simultaneous", gradient="better than random", others="faithful")
    gate = ("--fail-if", "better than random")
    assert ice("report", finished, *gate).code == 0
    assert "(simultaneous 95 % intervals)" in ice("report", finished, "--simultaneous").out
    done = ice("report", finished, *gate, "--simultaneous", "--full")
    assert done.code == 1 and "95 % CI (simultaneous)" in done.out
    assert "Intervals and verdicts are simultaneous: in 95 % of runs" in done.out
    assert done.err.splitlines() == [
        f"ice: gradient under {operator} (k = 0.2, sufficiency): better than random"
        for operator in ("delete", "infill")
    ]


def test_every_form_of_a_report_takes_simultaneous_intervals(ice, finished, tmp_path):
    [run] = json.loads(ice("report", finished, "--json", "--simultaneous").out)
    assert [run] == json.loads(ice("report", finished, "--json").out)  # it has both
    text = ice("report", finished, "--format", "md", "--simultaneous").out
    header, _, *lines = [list(map(str.strip, x.strip("|").split("|"))) for x in text.splitlines() if x.startswith("| ")]
    rows = [dict(zip(header, cells, strict=True)) for cells in lines[: len(run["configurations"]) - 1]]
    for row, line in zip(rows, run["configurations"], strict=False):
        low, high = line["win_rate_ci_simultaneous"]
        assert row["95 % CI (simultaneous)"] == f"[{100 * low:.1f}, {100 * high:.1f}]"
        is_control = line["attribution"] == "random"
        said = f"control: {100 * line['win_rate']:.1f} %, expected 50 %"
        assert row["verdict"] == (said if is_control else line["verdict_simultaneous"]["text"])
        assert low <= line["win_rate_ci"][0] and high >= line["win_rate_ci"][1]
    data = ice("report", finished, "--format", "csv", "--simultaneous").out
    for row, line in zip(csv.DictReader(data.splitlines()), run["configurations"], strict=True):  # they have both, too
        assert float(row["win_rate_low"]) == line["win_rate_ci"][0]
        assert float(row["win_rate_simultaneous_low"]) == line["win_rate_ci_simultaneous"][0]
    assert ice("report", finished, "--html", tmp_path / "page.html", "--simultaneous").code == 0
    page = (tmp_path / "page.html").read_text()
    assert "95 % CI (simultaneous)" in page and "Intervals and verdicts are simultaneous" in page


def test_an_unknown_verdict_exits_2_before_anything_is_printed_or_written(ice, finished, tmp_path):
    done = ice("report", finished, "--fail-if", "unfaithful", "--html", tmp_path / "page.html")
    assert_refused(done, "no verdict 'unfaithful'", "anti-faithful, better than random, weakly faithful, faithful")
    assert not (tmp_path / "page.html").exists()


def test_a_report_is_written_as_a_page(ice, finished, tmp_path):
    done = ice("report", finished, "--html", tmp_path / "pages" / "report.html")
    assert done.out.strip() == str(tmp_path / "pages" / "report.html")
    page = (tmp_path / "pages" / "report.html").read_text()
    assert page.startswith("<!doctype html>") and "toy on reviews" in page


def test_a_page_escapes_what_users_wrote(run, ice, tmp_path, tmp_path_factory, reviews):
    path = tmp_path_factory.mktemp("odd") / "<script>alert(1)</script>.jsonl".replace("/", "_")
    path.write_bytes(reviews.read_bytes())
    assert run(data=path, prompt="<b>{text}</b> is", labels="<i>no</i>,yes").code == 0
    page = (tmp_path / "run" / "report.html").read_text()
    assert "&lt;script&gt;" in page and "<script>" not in page and "<b>" not in page and "<i>" not in page


def test_an_audit_document_is_written_and_named(ice, finished, tmp_path, monkeypatch):
    pytest.importorskip("typst", reason="needs typst: pip install 'ice-eval[pdf]'")
    done = ice("report", finished, "--pdf", tmp_path / "new" / "audit.pdf", "--json")
    assert json.loads(done.out) == {"html": None, "pdf": str(tmp_path / "new" / "audit.pdf"), "figures": []}
    assert (tmp_path / "new" / "audit.pdf").read_bytes().startswith(b"%PDF")
    assert_refused(ice("report", finished, "--format", "md", "--pdf", "x.pdf"), "--format and --pdf exclude each other")
    assert_refused(ice("report", finished, "--pdf", finished), str(finished), "a folder is in the place of this file")
    monkeypatch.setitem(sys.modules, "typst", None)
    assert_refused(ice("report", finished, "--pdf", "x.pdf"), "pip install 'ice-eval[pdf]'")
