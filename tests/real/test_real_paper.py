"""Every number in a table or a chart of the paper's source is in the package, in its row and column."""

import re

import pytest

from ice_eval import stats
from ice_eval.analysis import eraser_agreement
from ice_eval.analysis.paper import english_cells, model_of, paper_table
from ice_eval.report.analyses import paper_layout

NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)")
WORDS = {"F": "faithful", "WF": "weakly faithful", "NR": "near-random", "AF": "anti-faithful"}

SAME_SHAPE = {
    "tab:nllb": ("translation", 1, ["french", "german"]),
    "tab:eraser-comparison": ("eraser", 2, ["raw", "win rate"]),
    "tab:contamination": ("contamination", 1, ["blocked", "surviving", "rate"]),
    "tab:operator_ablation": ("operator_ablation", 1, ["attention", "gradient"]),
    "tab:ksweep": ("k_sweep", 2, ["0.1", "0.2", "0.3", "0.4", "0.5"]),
    "tab:prompt_sensitivity": ("prompts", 2, ["accuracy", "confidence", "attention", "gradient", "difference"]),
    "tab:multilingual": ("multilingual", 1, ["french", "german", "hindi", "chinese", "turkish", "arabic"]),
    "tab:tokenization": ("tokenization", 1, ["french", "german", "hindi", "chinese"]),
    "tab:encoder_results": ("encoder", 1, ["sufficiency", "significant rate", "auc sufficiency"]),
    "tab:effect_sizes": ("effect_sizes", 1, ["win rate", "effect size"]),
    "tab:anti_faith_examples": ("anti_faithful_examples", 1, ["win rate", "effect size"]),
    "tab:bootstrap_ci": ("intervals", 1, ["win rate", "low", "high"]),
    "tab:alignment_appendix": ("plausibility", 2, ["r", "p", "n"]),
    "tab:retrieval_comparison_appendix": ("operator_comparison", 1, ["delete", "infill"]),
    "tab:english_results_appendix": ("english_attention", 1, ["sst2", "imdb", "esnli", "ag_news"]),
    "tab:step_vs_token": (
        "steps_and_tokens",
        1,
        ["token necessity", "token sufficiency", "step necessity", "step sufficiency"],
    ),
    "tab:frontier_cot": ("frontier", 1, ["gsm8k src", "gsm8k accuracy", "sst2 src", "sst2 accuracy"]),
}
"""Label -> our table, columns of words before the numbers there, and the columns of numbers here."""
OTHER_SHAPE = {"tab:pipeline", "tab:models", "tab:versions", "tab:anti_faithful_configs", "tab:guidelines_appendix"}

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def source(shared_data):
    path = shared_data.parent / "paper.tex"
    if not path.is_file():
        pytest.skip(f"needs the paper's source, and {path} is not there")
    return path.read_text(encoding="utf-8")


def environments(source):
    """Label -> its tabular, without the header."""
    found = {}
    for block in re.findall(r"\\begin\{table\}.*?\\end\{table\}", source, re.DOTALL):
        [body] = re.findall(r"\\begin\{tabular\}\{(?:[^{}]|\{[^{}]*\})*\}(.*?)\\end\{tabular\}", block, re.DOTALL)
        body = re.split(r"\\midrule|\\hline.*?\\hline", body, maxsplit=1, flags=re.DOTALL)[1]
        found[re.search(r"\\label\{(tab:[^}]*)\}", block)[1]] = body
    return found


def rows_of(body):
    """Cells of every row, in groups that `multicolumn` lines or rules with words divide."""
    groups = [[]]
    for line in body.split(r"\\"):
        cells = [plain(cell) for cell in line.split("&")]
        if len(cells) > 1 and "multicolumn" not in line:
            groups[-1].append(cells)
        elif "multicolumn" in line and groups[-1]:
            groups.append([])
    return groups


def plain(cell):
    cell = re.sub(r"\\(?:toprule|midrule|bottomrule|hline|rowcolor\{[^}]*\}|cmidrule\S*|cite\{[^}]*\})", "", cell)
    cell = re.sub(r"\\(?:textbf|textit|texttt)\{((?:[^{}]|\{[^{}]*\})*)\}", r"\1", cell)
    cell = cell.replace(r"\%", "%").replace("--", " to ").replace("$", "").replace(r"\times", "")
    return re.sub(r"\^?\\dagger|\^\{?\\dagger\}?", "", cell).strip()


def numbers(cells):
    return [float(number) for cell in cells for number in NUMBER.findall(cell.replace("+", ""))]


def named(cell):
    """The paper's model that a row begins with, where it does."""
    words = cell.split(" (")[0]
    for name in (words, words.split(" / ")[0], " ".join(words.split()[:2]), words.split()[0] if words else ""):
        if (found := model_of(name)) is not None:
            return found["model"]
    return None


def test_every_table_of_the_source_is_looked_at(source):
    assert set(environments(source)) == set(SAME_SHAPE) | OTHER_SHAPE


@pytest.mark.parametrize("label", SAME_SHAPE)
def test_every_number_is_in_its_row_and_column(source, label):
    name, words, columns = SAME_SHAPE[label]
    table = paper_layout(paper_table(name))
    places = [table.header.index(column) for column in columns]
    ours = [([row[place] for place in places], row) for row in table.rows]
    for group in rows_of(environments(source)[label]):
        printed = [(numbers(cells[words:]), named(cells[0])) for cells in group if numbers(cells[words:])]
        here, ours = ours[: len(printed)], ours[len(printed) :]
        if label == "tab:english_results_appendix":  # the rows of a group are in another order there
            printed.sort(key=lambda line: line[1])
            here.sort(key=lambda line: line[1][0])
        for (values, model), (cells, row) in zip(printed, here, strict=True):
            assert numbers(cells) == values, (label, row)
            assert model is None or table.header[0] != "model" or model == row[0]
    assert ours == []


@pytest.mark.parametrize("operator", ["delete", "infill"])
@pytest.mark.parametrize("attribution", ["attention", "gradient"])
def test_every_cell_of_the_heatmap_is_in_its_place(source, operator, attribution):
    title = f"{'Delete' if operator == 'delete' else 'Retrieval'} + {attribution.title()}"
    panel = source.partition(title)[2].partition("paneltitle")[0]
    printed = re.findall(r"\\hcell\{(.*?)\}\{\\(r.)\}\{.*?\}\{(?:\\textbf\{)?([\d.]+)", panel)
    rows = dict(zip(["rg", "ra", "rb", "rc", "rd", "re", "rf"], MODELS, strict=True))
    columns = {"0.0": "sst2", r"\cw": "imdb", r"2*\cw": "esnli", r"3*\cw": "ag_news"}
    here = {
        (c.model, c.task): c.win_rate for c in english_cells() if (c.attribution, c.operator) == (attribution, operator)
    }
    assert len(printed) == 28
    assert here == {(rows[row], columns[column]): float(value) / 100 for column, row, value in printed}


MODELS = ["GPT-2", "LFM2-2.6B", "Llama-3.2-3B", "Llama-3.1-8B", "Qwen2.5-7B", "Mistral-7B", "DeepSeek-7B"]


def test_the_charts_of_the_operators_show_the_same_numbers(source):
    table = paper_table("operator_comparison")
    bars = re.findall(r"\(\{[^}]*/[^}]*\}, ([\d.]+)\)", source)
    assert bars == [row[operator] for operator in ("delete", "infill") for row in table.rows]
    chart = source.partition("random baseline}")[2].partition("\\legend")[0]
    dots = re.findall(r"^ +\(([\d.]+), \d\)", chart, re.MULTILINE)
    shown = {operator: sorted(row[operator] for row in table.rows) for operator in ("delete", "infill")}
    assert [sorted(dots[:6]), sorted(dots[6:])] == [shown["delete"], shown["infill"]]


def test_the_words_of_the_operator_table_follow_from_the_taxonomy(source):
    [rows] = rows_of(environments(source)["tab:retrieval_comparison_appendix"])
    lines = [cells for cells in rows if numbers(cells[1:])]
    assert len(lines) == 6
    for _, first, first_word, second, second_word in lines:
        for value, word in ((first, first_word), (second, second_word)):
            assert stats.taxonomy(float(value) / 100) == WORDS[word]


def test_the_marks_of_the_eraser_table_follow_from_its_thresholds(source):
    marks = [cells[-1] for group in rows_of(environments(source)["tab:eraser-comparison"]) for cells in group]
    agree = [r"\cmark" in mark for mark in marks if "mark" in mark]
    rows = paper_table("eraser").rows
    found = eraser_agreement([float(row["raw"]) for row in rows], [float(row["win_rate"]) for row in rows])
    assert list(found.agree) == agree


def test_the_worked_example(source):
    groups = rows_of(environments(source)["tab:pipeline"])
    printed = [numbers(cells[1:]) for group in groups for cells in group if numbers(cells[1:])]
    rows = paper_table("worked_example").rows
    assert printed == [[float(row[name]) for row in rows] for name in ("score", "nsr", "win_rate")]


def test_models_and_data_sets(source):
    tables = environments(source)
    sizes = [(named(cells[0]), cells[1]) for group in rows_of(tables["tab:models"]) for cells in group]
    assert sizes == [(row["model"], row["size"]) for row in paper_table("models").rows]
    hashes = re.findall(r"texttt\{([0-9a-f]+)\.\.\.\}", tables["tab:versions"])
    assert hashes == [row["revision"] for row in paper_table("datasets").rows if row["revision"]]


def test_the_list_of_anti_faithful_configurations(source):
    [rows] = rows_of(environments(source)["tab:anti_faithful_configs"])
    ours = [(float(row["win_rate"]), float(row["effect_size"])) for row in paper_table("anti_faithful").rows]
    together, *single = [numbers(cells[2:]) for cells in rows]
    assert [list(line) for line in ours[2:]] == single
    # Its first row stands for two configurations, rounded.
    assert together == [round(ours[1][0]), round(ours[0][0]), round(ours[0][1], 1)]


def test_the_guidelines_round_what_other_tables_have(source):
    printed = re.findall(r"(\d+)(?=(?:--\d+)?\\%)|(?<=--)(\d+)(?=\\%)", environments(source)["tab:guidelines_appendix"])
    values = [float(row["win_rate"]) for row in paper_table("guidelines").rows if row["win_rate"]]
    assert [int(first or second) for first, second in printed] == [int(value + 0.5) for value in values]
