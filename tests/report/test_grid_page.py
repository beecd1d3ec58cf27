"""The page of several runs: its answer, its matrix, its problems, and the one rule of its colours."""

import html
import re
import shutil

import pytest
from tests import axe
from tests.report.drawings import rows
from tests.small_grids import content, write_reviews

from ice_eval.analysis import GridLine, GridRun
from ice_eval.analysis.across import answers
from ice_eval.bench import finished_runs, grid_of, results_of, run_grid
from ice_eval.bench import run as bench_run
from ice_eval.report import tables, write_grid, write_html
from ice_eval.report.analyses import grid_table
from ice_eval.report.colours import UNKNOWN_COLOUR, word_of_line
from ice_eval.report.figures import figures, grid_figures
from ice_eval.report.grid_page import GridContent, grid_page, link_to, matrix_of
from ice_eval.results import RunFolder
from ice_eval.results.outcomes import ALL
from ice_eval.results.summary import CONTROL
from ice_eval.table import percent

ODD = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    """Three models, one with markup for a name, on two tasks: 144 configurations."""
    folder = tmp_path_factory.mktemp("wide")
    data = [write_reviews(folder / f"{name}.jsonl", n=n) for name, n in (("a", 12), ("b", 9))]
    chosen = content(
        data[0],
        models=[{"model": "toy", "name": name} for name in ("alpha", "beta", ODD)],
        tasks=[{"task": task, "data": str(each)} for task, each in zip(("sst2", "imdb"), data, strict=True)],
        prompts="standard", attributions=["gradient", "attention", "integrated-gradients", "random"],
        operators=["delete", "mask-unk"], k=[0.2, 0.3, 0.5], n=12, m=8,
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench_run, "write_grid_figures", lambda *_: [])
        made = grid_of(chosen, where="grid", folder=folder, default_name="wide <b>grid</b>")
        return made, run_grid(made, folder / "bench")


@pytest.fixture(scope="module")
def results(grid):
    return results_of(finished_runs(*grid))


@pytest.fixture(scope="module")
def text(grid):
    return (grid[1].path / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def address(grid):
    return (grid[1].path / "report.html").as_uri()


def test_every_configuration_is_one_cell_with_the_colour_of_its_verdict(results, text):
    cells = re.findall(
        r'<td class="number rate([^"]*)" data-value="([^"]*)"(?: data-word="([^"]*)")?[^>]*>([^<]*)', text
    )
    single = [each.line for each in results.configurations if each.line.operator != ALL]
    assert len(cells) == len(single) == 144
    found = sorted(
        (value.split()[0], html.unescape(word), "baseline" in kind, said) for kind, value, word, said in cells
    )
    assert found == sorted(
        (repr(line.win_rate), word_of_line(line) or "", line.attribution == CONTROL, percent(line.win_rate))
        for line in single
    )


def test_the_page_opens_with_its_answer_and_what_went_wrong(results, tmp_path):
    failed = {"gone": "no <b>weights</b>"}
    text = write_grid(results, answers(results), tmp_path / "page.html", name="g", failed=failed).read_text("utf-8")
    assert "The run gone failed: no &lt;b&gt;weights&lt;/b&gt;" in text
    places = [
        text.index(each) for each in ("The run gone failed", 'class="said"', "Guidelines", '<table class="matrix"')
    ]
    assert places == sorted(places)
    page = grid_page(GridContent(results, answers(results)), (), tmp_path)
    assert re.match(
        r"[A-Z].* beats? random sets of the same size under every operator in \d+ of 18 cases", page.sentences[0]
    )
    assert "cases" in page.sentences[1] and page.sentences[-1].startswith("The random control is at")
    assert page.subject == "6 runs (3 models, 2 tasks), 144 configurations"


def test_a_control_that_fails_is_a_problem_in_one_line(summary, tmp_path):
    runs = [GridRun(name=name, folder=None, model=name, task="t") for name in ("a", "b")]
    lines = summary(
        *({"attribution": CONTROL, "win_rate": 0.2, "p_adjusted": 0.001, "k": k} for k in (0.1, 0.2, 0.5)),
        {"attribution": "gradient", "verdict": "faithful"},
    ).configurations

    class Results:
        configurations = tuple(GridLine(run, line) for run in runs for line in lines)

    Results.runs = ()
    page = grid_page(GridContent(Results, {}), (), tmp_path)
    [problem] = page.problems
    assert problem.startswith("The random control fails in 6 of 6 configurations")
    assert "a on t, delete, k = 0.1: 20.0 %" in problem and problem.endswith("; …).")
    assert page.sentences[0] == "Gradient beats random sets of the same size under every operator in 2 of 2 cases."
    assert page.sentences[-1] == "The random control is at 20 %, where chance is expected."
    shown = [line for _, lines in page.matrix.rows for line in lines if line is not None]
    words = {word_of_line(line) for line in shown if line.attribution == CONTROL}
    assert words == {None} and page.matrix.words == ["faithful"]


def test_methods_that_win_as_often_are_named_together_the_higher_rates_first(summary, tmp_path):
    won = {"a": 0.8, "b": 0.9, "c": 0.7}
    rows = [{"attribution": name, "win_rate": rate, "k": k} for name, rate in won.items() for k in (0.1, 0.2)]
    rows[-1]["verdict"] = "better than random"
    rows += [{"attribution": "d", "verdict": "anti-faithful"}, {"attribution": "d", "operator": "infill"}]
    rows += [{"attribution": "c", "k": 0.2, "operator": "infill", "verdict": "random within ±5 pp"}]

    class Results:
        runs = ()
        configurations = tuple(
            GridLine(GridRun(name="a", folder=None, model="a", task="t"), line)
            for line in summary(*rows).configurations
        )

    [said] = grid_page(GridContent(Results, {}), (), tmp_path).sentences
    assert said == (
        "B and a beat random sets of the same size under every operator in 2 of 2 cases, c in 1 of 2, d in 0 of 1."
    )


def test_runs_without_any_winner_say_so(summary, tmp_path):
    class Results:
        runs = ()
        configurations = tuple(
            GridLine(GridRun(name="a", folder=None, model="a", task="t"), line)
            for line in summary({"verdict": "anti-faithful"}).configurations
        )

    [said] = grid_page(GridContent(Results, {}), (), tmp_path).sentences
    assert said == "No method is shown to beat random sets of the same size under every operator in any of 1 case."


def test_every_run_is_linked_by_a_relative_address(grid, text):
    links = set(re.findall(r'<a href="(runs/[^"]+)">', text))
    assert links == {f"runs/{run.name}/report.html" for run in grid[0].runs()}
    assert all((grid[1].path / link).is_file() for link in links)


def test_an_address_is_quoted_and_needs_a_file(tmp_path):
    page = tmp_path / 'a "b" ö?' / "report.html"
    page.parent.mkdir()
    assert link_to(page, tmp_path) == ""
    page.touch()
    assert link_to(page, tmp_path) == "a%20%22b%22%20%C3%B6%3F/report.html"
    assert link_to(page, tmp_path / "other").startswith("../a%20")


def test_names_of_models_and_grids_are_text(text):
    assert ODD not in text and "<b>grid</b>" not in text
    assert html.escape(ODD) in text and "wide &lt;b&gt;grid&lt;/b&gt;" in text


def test_many_runs_stay_on_a_short_page(opened, grid, tmp_path):
    folders = grid[1].finished()
    copies = [RunFolder(shutil.copytree(folders[0].path, tmp_path / f"run-{number}")) for number in range(20)]
    path = write_html(copies, tmp_path / "many.html", budget=0)
    page = opened(path.as_uri(), width=1440, drawn=True, shown=".matrix")
    assert page.locator(".matrix tbody tr").count() == 60
    assert page.evaluate("document.documentElement.scrollHeight") <= 6000
    assert page.locator("#runs details details").count() == 20


def test_several_runs_share_the_page_of_a_grid_with_their_examples(grid, tmp_path):
    text = write_html(grid[1].finished()[:2], tmp_path / "joint.html").read_text(encoding="utf-8")
    assert text.count('<table class="matrix">') == 1 and 'id="browser-data"' in text
    assert len(re.findall(r'<td class="number rate', text)) == 48
    assert "Operator dependence" in text and "Guidelines" in text


def test_every_figure_and_table_colours_a_win_rate_by_its_verdict(grid, results):
    lines = [each.line for each in results.configurations]
    allowed = {(line.win_rate, word_of_line(line)) for line in lines}
    grey = {"random", "undetermined"}
    drawn = [*figures(grid[1].finished()), *grid_figures(results), *figures(grid[1].finished()[:1])]
    rated = [row for figure in drawn for row in rows(figure, "word", "win_rate")]
    assert len(rated) > 144
    for row in rated:
        assert (row["win_rate"], None if row["word"] in grey else row["word"]) in allowed
    shown = [*tables([folder.summary() for folder in grid[1].finished()]), grid_table(results.configurations)]
    controlled = [row for figure in drawn for row in rows(figure, "control")]
    assert {row["control"] for row in controlled} == {True, False}
    for figure in drawn:
        if any("control" in row for row in rows(figure)):
            conditions = re.findall(r"'condition': \{'test': 'datum.control', 'value': '(#\w+)'", str(figure.spec()))
            assert conditions and set(conditions) == {UNKNOWN_COLOUR}
    rates = {(percent(rate), word) for rate, word in allowed}
    n = 0
    for table in shown:
        for row, words in zip(table.rows, table.words, strict=False):
            for cell, word, name in zip(row, words, table.header, strict=True):
                if name == "win rate" or (table.title == "Win rates" and "%" in cell):
                    assert (cell.removesuffix(" *"), word) in rates
                    n += 1
    assert n == len(lines) + 144
    matrix = matrix_of([each for each in results.configurations if each.line.operator != ALL])
    assert {(percent(line.win_rate), word_of_line(line)) for _, lines in matrix.rows for line in lines} <= rates


# --- in a browser -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_short_and_has_no_fault_of_accessibility(opened, address, scheme):
    page = opened(address, width=1440, drawn=True, shown=".matrix", color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollHeight") <= 6000
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    page.wait_for_timeout(500)
    assert axe.violations(page) == []


def test_nothing_hangs_over_the_edge_of_a_phone(opened, address):
    page = opened(address, width=390, shown=".matrix")
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_the_matrix_is_sorted_by_value_and_filtered_by_words(opened, address):
    page = opened(address, shown=".matrix")
    table = page.locator(".matrix")
    column = [name.split() for name in table.locator("th").all_text_contents()].index(["attention", "mask-unk"])

    def values():
        cells = table.locator(f"tbody td:nth-child({column + 1})")
        return [float(each.split()[0]) for each in cells.evaluate_all("all => all.map(each => each.dataset.value)")]

    table.locator("th").nth(column).locator("button").click()
    assert values() == sorted(values(), reverse=True)
    table.locator("th").nth(column).locator("button").click()
    assert values() == sorted(values()) and len(set(values())) > 1
    page.get_by_label("Filter: Win rates of all runs").fill("beta imdb")
    assert table.locator("tbody tr:visible").count() == 3
    page.get_by_label("Filter: Win rates of all runs").fill("onerror")
    assert table.locator("tbody tr:visible").count() == 6


def test_a_folded_figure_is_drawn_when_it_is_opened(opened, address):
    page = opened(address, drawn=True, shown=".matrix")
    figure = page.locator("details", has=page.locator("figure")).first
    figure.locator("summary").click()
    figure.locator("svg").first.wait_for()
    assert figure.locator("svg").first.bounding_box()["width"] > 300


def test_paper_shows_what_is_folded(opened, address):
    page = opened(address, shown=".matrix")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    assert not page.locator(".tools").first.is_visible()
