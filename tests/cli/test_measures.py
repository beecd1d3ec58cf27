import csv
import json
from types import SimpleNamespace

import pytest
from tests.made_records import manifest, settings

import ice_eval
from ice_eval.analysis.measures import Column, Found, Measured, Missing, Part
from ice_eval.report.analyses import measure_notes, measure_tables


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small finished run without human rationales."""
    out = tmp_path_factory.mktemp("runs") / "run"
    ice_eval.evaluate("toy", "demo", attributions=["random", "gradient"], operators=["delete"], n=6, m=5, out=out)
    return out


def test_every_measure_gets_its_tables_or_a_line(ice, folder):
    done = ice("measures", folder)
    assert done.code == 0
    assert "Compactness" in done.out
    names = ice("list", "measures", "--json").out
    said = json.loads(ice("measures", folder, "--json").out)
    assert [each["measure"] for each in said["measures"]] == list(json.loads(names))
    for each in said["measures"]:
        [of_run] = each["runs"]
        assert ("missing" in of_run) == (f"{each['measure']}: no result: " in done.out)


def test_some_measures_alone_and_as_csv(ice, folder):
    done = ice("measures", folder, "--only", "compactness", "--format", "csv")
    rows = list(csv.DictReader(done.out.splitlines()))
    [result] = json.loads(ice("measures", folder, "--only", "compactness", "--json").out)["measures"]
    [lines] = result["runs"][0]["parts"].values()
    assert [row["attribution"] for row in rows] == ["random", "gradient"] and rows[0]["folder"] == str(folder)
    for row, line in zip(rows, lines, strict=True):
        assert [float(row[f"entropy_{end}"]) for end in ("low", "high")] == line["entropy_ci"]


def test_options_of_a_measure_come_after_its_name(ice, folder):
    asked = "diagnosticity:faithful=gradient:unfaithful=random"
    [result] = json.loads(ice("measures", folder, "--only", asked, "--json").out)["measures"]
    [lines] = result["runs"][0]["parts"].values()
    assert result["measure"] == asked
    assert {(line["attribution"], line["against"]) for line in lines} == {("gradient", "random")}


def test_a_measure_of_several_runs_says_so_of_one(ice, folder):
    assert "give runs of two models" in ice("measures", folder, "--only", "model-consistency").out
    done = ice("measures", folder, folder, "--only", "model-consistency")
    assert "no two models have 10 texts" in " ".join(done.out.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--only", "compact"), "no measure named 'compact'; did you mean 'compactness'?"),
        (("--only", "diagnosticity:faithfull=x"), "'faithfull=x' is not an option of 'diagnosticity'"),
        (("--format", "pdf"), "no format 'pdf'; use md, latex, csv, parquet, json."),
    ],
)
def test_bad_input_is_one_message(ice, folder, arguments, message):
    done = ice("measures", folder, *arguments)
    assert done.code == 2
    assert message in done.err
    assert done.out == ""


def test_a_folder_without_a_run_is_refused(ice, tmp_path):
    done = ice("measures", tmp_path)
    assert done.code == 2
    assert "is not a run folder" in done.err


def run_of(model, task):
    return SimpleNamespace(path=f"{model}-{task}", manifest=lambda: manifest(config=settings(model=model, task=task)))


def some(title="Some"):
    columns = (Column("x", "x", "signed"), Column("ci", "95 % CI", "signed interval"))
    return Found((Part(title, columns, ({"x": 1, "ci": None},)),), (f"{title} is not all.",))


def test_a_measure_that_says_nothing_of_a_run_gets_a_line():
    results = [Measured("some", (some(), Missing("it has none")), None)]
    runs = [run_of("a", "t"), run_of("b", "t")]
    [table] = measure_tables(results, runs)
    assert (table.header, table.rows) == (("x", "95 % CI"), (("+1.000", "–"),))
    assert measure_notes(results, runs) == ["some: Some is not all.", "some: no result for b-t: it has none."]


def test_runs_stand_in_one_table_under_their_names_and_what_they_say_together_in_another():
    results = [Measured("some", (some(), some()), some("Together"))]
    each, together = measure_tables(results, [run_of("a", "t"), run_of("b", "t")])
    assert (each.header, [row[0] for row in each.rows]) == (("model", "x", "95 % CI"), ["a", "b"])
    assert (together.title, together.header) == ("Together", ("x", "95 % CI"))
    each, _ = measure_tables(results, [run_of("a", "t"), run_of("a", "t")])
    assert (each.header, [row[0] for row in each.rows]) == (("run", "x", "95 % CI"), ["1", "2"])


def test_eraser_is_added_by_the_same_command(ice, tmp_path):
    command = ("run", "--model", "toy", "--task", "demo", "--n", "6", "--m", "5", "--operators", "delete")
    command = (*command, "--attributions", "gradient,random", "--k", "0.2,0.4", "--out", tmp_path / "run")
    assert ice(*command).code == 0
    missing = ice("measures", tmp_path / "run", "--only", "eraser,k-sweep")
    assert "eraser: no result: it has no rows for it; run the same command again with --eraser." in missing.out
    assert "Over k from 0.2 to 0.4" in missing.out
    assert ice(*command, "--eraser").code == 0
    said = json.loads(ice("measures", tmp_path / "run", "--only", "eraser", "--json").out)
    [of_run] = said["measures"][0]["runs"]
    assert {line["attribution"] for line in of_run["parts"]["ERASER over several sizes"]} == {"gradient", "random"}
    assert "win rates of comprehensiveness" in of_run["notes"][1]
    html = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "aopc_suff" in html
    assert "--eraser" in html
    assert "--eraser True" not in html
