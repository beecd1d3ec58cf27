import importlib
import json
import sys
from dataclasses import replace

import numpy as np
import pytest
import vl_convert
from tests.made_records import verdict_of
from tests.report.drawings import Drawing, place_of, rows
from tests.small_runs import Waves, picks, run, task_of, texts, write_lines

from ice_eval.api import Run
from ice_eval.errors import ConfigError, MissingExtraError
from ice_eval.report.colours import UNKNOWN_COLOUR, WORD_COLOURS
from ice_eval.report.figures import example_nulls, figures, ranked, theme, write_figures
from ice_eval.report.figures.examples import LIMIT
from ice_eval.results import RunFolder, view_example
from ice_eval.results.json_files import write_record
from ice_eval.stats import NOT_DISTINGUISHABLE

ATTRIBUTIONS, OPERATORS, SIZES = ("good", "hat"), ("delete", "mask-unk"), (0.2, 0.4)
EVERY = [
    "win-rate-heatmap", "operator-comparison", "operator-bars", "operator-agreement", "k-sweep",
    "win-rate-distribution", "effect-sizes", "p-values",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run with everything that a figure could show."""
    methods = {"good": picks("good", towards=1.0), "hat": picks("hat")}
    path = tmp_path_factory.mktemp("figures") / "run"
    return run(texts(24), attributions=methods, operators=list(OPERATORS), k=SIZES, m=12, out=path).folder


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A run of another model with one attribution, one operator and one k."""
    model = Waves()
    model.name = "/models/other"
    path = tmp_path_factory.mktemp("small") / "run"
    return run(
        task_of(texts(6), name="short"), model=model, attributions={"apart": picks("apart")}, m=5, out=path
    ).folder


@pytest.fixture(scope="module")
def drawn(folder):
    return {figure.name: figure for figure in figures([folder])}


@pytest.fixture(scope="module")
def drawings(drawn):
    return {name: Drawing(figure) for name, figure in drawn.items()}


def copied(folder, target, change):
    """The folder with every line of its results changed."""
    target.mkdir()
    (target / "manifest.json").write_bytes((folder.path / "manifest.json").read_bytes())
    summary = folder.summary()
    parts = {name: tuple(map(change, getattr(summary, name))) for name in ("configurations", "agreement")}
    write_record(target / "summary.json", replace(summary, **parts))
    write_lines(target, [change(line) for line in folder.examples()])
    return RunFolder(target)


def configurations(folder, **where):
    lines = folder.summary().configurations
    return [line for line in lines if all(getattr(line, name) == value for name, value in where.items())]


def test_a_run_with_everything_has_every_figure(drawn):
    assert list(drawn) == EVERY
    assert all(figure.title and figure.caption.endswith(".") for figure in drawn.values())


def test_a_run_with_one_operator_and_one_k_has_those_that_apply(small):
    names = [figure.name for figure in figures([small])]
    assert names == ["win-rate-heatmap", "operator-bars", "win-rate-distribution", "effect-sizes", "p-values"]


def test_the_same_run_gives_the_same_specifications(folder, drawn):
    again = {figure.name: figure for figure in figures([folder, RunFolder(folder.path)])}
    assert list(again) == list(drawn)
    assert all(rows(again[name]) == rows(figure) for name, figure in drawn.items())
    assert again["p-values"].spec() == drawn["p-values"].spec()


def test_specifications_stay_small(drawn):
    assert sum(len(json.dumps(figure.spec())) for figure in drawn.values()) < 100_000


def test_heatmap_has_a_cell_and_a_number_for_every_configuration(folder, drawn, drawings):
    lines = configurations(folder)
    assert sorted(row["win_rate"] for row in rows(drawn["win-rate-heatmap"])) == sorted(x.win_rate for x in lines)
    drawing = drawings["win-rate-heatmap"]
    assert drawing.count("rect") == drawing.count("text") == len(lines)
    # Panels by k, in each a line for every attribution.
    expected = [
        [
            f"{100 * line.win_rate:.1f}"
            for name in ATTRIBUTIONS
            for operator in (*OPERATORS, "all")
            for line in configurations(folder, k=k, attribution=name, operator=operator)
        ]
        for k in SIZES
    ]
    by_place = [sorted(panel, key=place_of) for panel in drawing.marks("text")]
    assert [[mark.text for mark in panel] for panel in by_place] == expected
    assert {"k = 0.2", "k = 0.4", *ATTRIBUTIONS, *OPERATORS, "all"} <= set(drawing.texts())


@pytest.mark.parametrize(
    ("verdict", "colour"),
    [
        ("anti-faithful", WORD_COLOURS["anti-faithful"]),
        (NOT_DISTINGUISHABLE, WORD_COLOURS["near-random"]),
        ("better than random", WORD_COLOURS["better than random"]),
        ("undecidable: 85 % of sets tie", WORD_COLOURS["undecidable"]),
        (None, UNKNOWN_COLOUR),
    ],
)
def test_cells_have_a_colour_that_the_verdict_allows(small, tmp_path, verdict, colour):
    def change(line):
        said = {"win_rate": 0.42, "verdict": verdict_of(verdict)}
        return replace(line, **{name: value for name, value in said.items() if hasattr(line, name)})

    found = copied(small, tmp_path / "run", change)
    heatmap = next(figure for figure in figures([found]) if figure.name == "win-rate-heatmap")
    assert {mark.get("fill") for panel in Drawing(heatmap).marks("rect") for mark in panel} == {colour}


def test_cells_of_a_run_have_the_colours_of_its_table(folder, drawings):
    fills = [mark.get("fill") for panel in drawings["win-rate-heatmap"].marks("rect") for mark in panel]
    assert sorted(fills) == sorted(WORD_COLOURS[line.verdict.word] for line in configurations(folder))


def test_operators_are_compared_by_their_numbers(folder, drawn, drawings):
    lines = [line for line in configurations(folder) if line.operator != "all"]
    found = rows(drawn["operator-comparison"])
    assert sorted((row["win_rate"], row["low"], row["high"]) for row in found) == sorted(
        (line.win_rate, *line.win_rate_ci) for line in lines
    )
    drawing = drawings["operator-comparison"]
    assert drawing.count("symbol") == len(lines)
    assert drawing.count("rule") == len(lines) + 2 * len(SIZES)  # intervals, and two lines in every panel
    assert sum(len(panel) for panel in drawing.marks("line")) == len(SIZES) * len(ATTRIBUTIONS)


def test_simultaneous_intervals_are_drawn_where_they_are_asked_for(folder):
    found = {figure.name: figure for figure in figures([folder], simultaneous=True)}
    lines = [line for line in configurations(folder) if line.operator != "all"]
    for name in ("operator-comparison", "k-sweep"):
        assert sorted((row["low"], row["high"]) for row in rows(found[name]) if "low" in row) == sorted(
            tuple(line.win_rate_ci_simultaneous) for line in lines
        )
    words = {row["verdict"] for row in rows(found["operator-comparison"])}
    assert words == {str(line.verdict_simultaneous) for line in lines}


def test_methods_are_ranked_and_the_control_is_last_in_grey(tmp_path):
    methods = {"good": picks("good", towards=2.0), "random": None, "bad": picks("bad", towards=-2.0)}
    done = run(texts(20), attributions=methods, operators=list(OPERATORS), m=12, out=tmp_path / "run")
    rows_ = [row for row in rows(ranked(done.folder)) if "win_rate" in row]
    lines = {(line.attribution, line.operator): line for line in done.folder.summary().configurations}
    assert list(dict.fromkeys(row["subject"] for row in rows_)) == ["good", "bad", "random"]
    assert len(rows_) == 6 and [row["control"] for row in rows_] == 4 * [False] + 2 * [True]
    for row in rows_:
        line = lines[row["subject"], row["operator"]]
        assert (row["win_rate"], row["low"], row["high"]) == (line.win_rate, *line.win_rate_ci)
    drawing = vl_convert.vegalite_to_svg(done.plot().to_dict())
    assert UNKNOWN_COLOUR in drawing and "Win rates" in drawing


def test_an_example_is_drawn_with_all_sets_and_rationales(folder):
    example = next(folder.examples()).example_id
    view = view_example(folder, example, k=0.4)
    found = rows(example_nulls(view))
    for each in view.compared:
        if each.line.operator != "all":
            [own] = [
                row
                for row in found
                if (row["attribution"], row["operator"]) == (each.line.attribution, each.line.operator)
            ]
            assert own["score"] == pytest.approx(each.scores.rationale) and own["win_rate"] == each.line.win_rate
            null = [row["null"] for row in found if row["operator"] == each.line.operator and row["null"] is not None]
            assert len(null) == 12 and (each.line.attribution != "good" or null == pytest.approx(each.scores.null))
    drawing = vl_convert.vegalite_to_svg(Run(folder.path).example(example, k=0.4).plot().to_dict())
    assert f"Example {example} (k = 0.4, sufficiency)" in drawing
    none = view_example(run(task_of(["alone", "a pair of words"]), model=Waves(), m=5).folder, "0")
    with pytest.raises(ConfigError, match="example '0' has no scores to draw"):
        example_nulls(none)


def test_bars_show_the_average_over_operators_too(folder, drawn, drawings):
    found = {(row["subject"], row["operator"], row["column"]): row["win_rate"] for row in rows(drawn["operator-bars"])}
    assert found == {
        (line.attribution, line.operator, f"k = {line.k}"): line.win_rate for line in configurations(folder)
    }
    assert drawings["operator-bars"].count("rect") == len(configurations(folder))


def test_gaps_are_those_of_the_summary(folder, drawn, drawings):
    lines = folder.summary().agreement
    found = rows(drawn["operator-agreement"])
    assert sorted((row["gap"], row["low"], row["high"], row["crosses"]) for row in found) == sorted(
        (line.gap, *line.gap_ci, line.crosses_threshold) for line in lines
    )
    assert drawings["operator-agreement"].count("symbol") == len(lines)


def test_curves_run_through_every_k(folder, drawn, drawings):
    found = {(row["column"], row["operator"], row["k"]): row["win_rate"] for row in rows(drawn["k-sweep"])}
    assert found == {
        (line.attribution, line.operator, line.k): line.win_rate
        for line in configurations(folder)
        if line.operator != "all"
    }
    drawing = drawings["k-sweep"]
    assert drawing.count("symbol") == len(found)
    assert drawing.count("line") == drawing.count("area") == len(ATTRIBUTIONS) * len(OPERATORS)


def test_distributions_hold_every_example_and_the_mean_of_the_summary(folder, drawn, drawings):
    figure = drawn["win-rate-distribution"]
    for line in configurations(folder, k=0.2):
        cell = [row for row in rows(figure) if (row["row"], row["column"]) == (line.attribution, line.operator)]
        assert sum(row.get("share", 0) for row in cell) == pytest.approx(1, abs=1e-5)
        assert [row["mean"] for row in cell if "mean" in row] == [pytest.approx(line.win_rate)]
    assert "k = 0.2, sufficiency" in figure.title
    assert drawings["win-rate-distribution"].count("rect") == len(rows(figure, "share"))


def test_p_values_are_drawn_beside_what_chance_would_give(folder, drawn, drawings):
    figure = drawn["p-values"]
    cell = [row for row in rows(figure) if (row["row"], row["column"]) == ("good", "delete")]
    examples = [
        line for line in folder.examples() if (line.attribution, line.operator, line.k) == ("good", "delete", 0.2)
    ]
    assert sum(row["share"] for row in cell if row["to"] <= 0.2) == pytest.approx(
        np.mean([line.p_value <= 0.2 for line in examples]), abs=1e-5
    )
    # 13 ranks are equally likely: 2 of them lie at or below 0.2.
    assert {line.m for line in examples} == {12}
    assert sum(row["chance"] for row in cell if row["to"] <= 0.2) == pytest.approx(2 / 13, abs=1e-5)
    assert drawings["p-values"].count("rule") == len(rows(figure))


def test_tests_that_stop_by_themselves_are_drawn_without_what_chance_would_give(tmp_path):
    found = run(texts(6), adaptive="examples", m=499, out=tmp_path / "run").folder
    figure = next(each for each in figures([found]) if each.name == "p-values")
    drawing = Drawing(figure)
    assert drawing.count("rule") == 0 and drawing.count("rect") == len(rows(figure)) > 0
    assert not any("chance" in row for row in rows(figure))
    assert "no steps show what chance would give" in figure.caption


def test_effect_sizes_have_the_median_of_the_summary_and_say_what_lies_beyond(folder, drawn, drawings):
    found = {(row["attribution"], row["operator"]): row for row in rows(drawn["effect-sizes"])}
    for line in configurations(folder, k=0.2):
        assert found[line.attribution, line.operator]["median"] == pytest.approx(line.effect_size_median)
    assert drawings["effect-sizes"].count("symbol") == len(found)


def test_an_effect_beyond_the_axis_is_clipped_and_counted(folder, tmp_path):
    for name in ("manifest.json", "summary.json"):
        (tmp_path / name).write_bytes((folder.path / name).read_bytes())
    lines = list(folder.examples())
    chosen = [i for i, x in enumerate(lines) if (x.attribution, x.operator, x.k) == ("good", "delete", 0.2)]
    for index in chosen[:21]:
        lines[index] = replace(lines[index], effect_size=None if index == chosen[20] else 1e6)
    write_lines(tmp_path, lines)
    [figure] = [figure for figure in figures([RunFolder(tmp_path)]) if figure.name == "effect-sizes"]
    row = rows(figure)[0]
    assert row["median"] == 1e6 and row["median_drawn"] == LIMIT
    assert row["beyond"] == "20 beyond ±4, 1 undefined"
    assert row["beyond"] in Drawing(figure).texts()


def test_several_runs_share_a_figure_and_keep_their_own_distributions(folder, small):
    found = {figure.name: figure for figure in figures([folder, small])}
    assert {"win-rate-distribution-waves-waves", "win-rate-distribution-other-short"} <= set(found)
    assert "win-rate-distribution" not in found
    assert {row["subject"] for row in rows(found["operator-bars"])} == {"waves · waves", "other · short"}
    heatmap = Drawing(found["win-rate-heatmap"])
    # The small run leaves holes in the grid: every number stands under its own header all the same.
    lines = configurations(folder) + configurations(small)
    cells = {
        (row["row"], row["column"], row["y"], row["x"]): row for row in rows(found["win-rate-heatmap"], "win_rate")
    }
    assert len(cells) == len(lines) == heatmap.count("rect")
    grid = [
        (row, column)
        for row in ("good · k = 0.2", "good · k = 0.4", "hat · k = 0.2", "hat · k = 0.4", "apart · k = 0.2")
        for column in (*OPERATORS, "all")
    ]
    for panel, (row, column) in zip(heatmap.marks("text"), grid, strict=True):
        shown = [mark.text for mark in sorted(panel, key=place_of) if mark.text]
        assert shown == [cell["text"] for place, cell in cells.items() if place[:2] == (row, column)]


def test_the_average_stands_after_all_operators_of_all_runs(folder, tmp_path):
    def renamed(line):
        """With an operator that the first run has not."""
        changed = {"model": "other"}
        if getattr(line, "operator", None) == OPERATORS[1]:
            changed["operator"] = "mask-pad"
        return replace(line, **{name: value for name, value in changed.items() if hasattr(line, name)})

    other = copied(folder, tmp_path / "other", renamed)
    found = {figure.name: figure for figure in figures([folder, other])}
    for name, field in (("operator-bars", "operator"), ("win-rate-heatmap", "x")):
        assert list(dict.fromkeys(row[field] for row in rows(found[name]))) == [*OPERATORS, "mask-pad", "all"]


def test_panels_stand_in_the_order_of_k(folder, tmp_path):
    early = copied(folder, tmp_path / "run", lambda line: replace(line, k=line.k / 4))
    found = {figure.name: figure for figure in figures([folder, early])}
    columns = dict.fromkeys(row["column"] for row in rows(found["operator-bars"]))
    assert list(columns) == ["k = 0.05", "k = 0.1", "k = 0.2", "k = 0.4"]


def test_runs_of_the_same_model_and_task_are_told_apart_by_their_folders(small, tmp_path):
    twin = tmp_path / "twin"
    twin.mkdir()
    for name in ("manifest.json", "summary.json", "examples.parquet"):
        (twin / name).write_bytes((small.path / name).read_bytes())
    found = {figure.name: figure for figure in figures([small, RunFolder(twin)])}
    assert {row["y"] for row in rows(found["win-rate-heatmap"])} == {"other (run)", "other (twin)"}
    assert {"p-values-other-run-short", "p-values-other-twin-short"} <= set(found)


def test_rationales_of_their_own_size_stand_beside_those_of_a_single_k(folder, tmp_path):
    own = copied(folder, tmp_path / "run", lambda line: replace(line, k=None if line.attribution == "hat" else 0.2))
    found = {figure.name: figure for figure in figures([own])}
    assert "k-sweep" not in found
    for name, field in (("win-rate-heatmap", "y"), ("operator-bars", "subject"), ("p-values", "row")):
        assert {row[field] for row in rows(found[name])} == {"good", "hat (own size)"}
    assert {row["column"] for row in rows(found["win-rate-heatmap"])} == {""}


def test_rationales_of_their_own_size_have_a_panel_beside_several_k(folder, tmp_path):
    own = copied(folder, tmp_path / "run", lambda line: replace(line, k=None if line.attribution == "hat" else line.k))
    found = {figure.name: figure for figure in figures([own])}
    assert {row["column"] for row in rows(found["win-rate-heatmap"])} == {"k = 0.2", "k = 0.4", "own size"}
    assert {row["column"] for row in rows(found["k-sweep"])} == {""}


def test_a_run_without_a_win_rate_still_has_a_heatmap(small, tmp_path):
    summary = small.summary()
    none = {"win_rate": None, "win_rate_ci": None, "taxonomy": None, "verdict": None}
    lines = tuple(replace(line, **none) for line in summary.configurations)
    (tmp_path / "manifest.json").write_bytes((small.path / "manifest.json").read_bytes())
    write_record(tmp_path / "summary.json", replace(summary, configurations=lines))
    write_lines(tmp_path, [])
    [heatmap] = figures([RunFolder(tmp_path)])
    drawing = Drawing(heatmap)
    assert "–" in drawing.texts() and "no win rate" in drawing.texts()


def test_what_a_user_named_is_text(tmp_path):
    name = "</script><b>'x' + \"y\" \\ {{1}}"
    found = run(texts(4), attributions={name: picks("a"), "b": picks("b")}, m=5, out=tmp_path / "run").folder
    for figure in figures([found])[:2]:
        assert name in Drawing(figure).texts()


def test_names_with_characters_that_svg_cannot_hold_are_drawn_without_them(drawn):
    """The converter ends the whole process over such a character."""
    figure = drawn["win-rate-heatmap"]
    nasty = replace(figure, chart=figure.chart.properties(title="a\x1b[31m\x00b\uffff\ud800"))
    assert nasty.spec()["title"] == "a\ufffd[31m\ufffdb\ufffd\ufffd"
    assert "a\ufffd[31m" in vl_convert.vegalite_to_svg(nasty.spec("print"))


def test_themes_differ_in_ink_and_are_named_when_unknown(drawn):
    light, dark = (theme(name)["axis"]["labelColor"] for name in ("light", "dark"))
    assert light != dark
    assert theme("light")["background"] == theme("dark")["background"] == "transparent"
    spec = drawn["k-sweep"].spec("dark")
    assert spec["config"] == theme("dark") and light not in json.dumps(spec)
    with pytest.raises(ConfigError, match="no theme 'sepia'; use light, dark, print"):
        theme("sepia")


def test_files_are_named_after_their_figures_and_are_what_they_claim(drawn, tmp_path):
    [written] = write_figures([drawn["k-sweep"]], tmp_path / "new" / "folder")
    assert [path.name for path in written.paths] == ["k-sweep.svg", "k-sweep.pdf", "k-sweep.png"]
    assert [path.read_bytes()[:4] for path in written.paths] == [b"<svg", b"%PDF", b"\x89PNG"]
    assert sorted(tmp_path.rglob("*.*")) == sorted(written.paths)


def test_figures_that_cannot_be_written_are_refused(drawn, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="figures cannot be written to"):
        write_figures([drawn["k-sweep"]], tmp_path / "file")


def test_without_altair_the_package_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    monkeypatch.delitem(sys.modules, "ice_eval.report.figures")
    with pytest.raises(MissingExtraError, match="'altair' is not installed.* pip install 'altair'"):
        importlib.import_module("ice_eval.report.figures")


def test_a_run_with_human_rationales_is_drawn_against_them(tmp_path):
    marked = [
        {"text": text, "rationale": [[0, len(" ".join(text.split()[: 1 + place]))]]}
        for place, text in enumerate(texts(8))
    ]
    methods = {"hat": picks("hat"), "human": None}
    found = run(task_of(marked), attributions=methods, operators=list(OPERATORS), m=5, out=tmp_path / "run").folder
    [figure] = [figure for figure in figures([found]) if figure.name == "plausibility"]
    assert figure.title.startswith("Faithfulness against plausibility: hat, delete: r = ")
    assert figure.title.endswith("(k = 0.2, sufficiency)")
    dots = rows(figure, "overlap")
    lines = [line for line in found.examples() if line.attribution == "hat" and line.operator in OPERATORS]
    assert sum(dot["examples"] for dot in dots) == len(lines) == 16
    overlaps = set()
    for line in lines:
        marks, units = set(range(1 + int(line.example_id))), set(line.rationale)
        overlaps.add(round(len(marks & units) / len(marks | units), 4))
    assert {dot["overlap"] for dot in dots} == overlaps
