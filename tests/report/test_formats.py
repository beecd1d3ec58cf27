import re

import pytest

from ice_eval.report import FORMATS, Table, agreement_table, formatted, summary_table


def test_markdown_escapes_pipes_and_backslashes():
    table = Table("T", ("a|b", "c"), (("x | y", "back\\slash"),))
    assert formatted(table, "md").splitlines() == [
        "**T**", "", r"| a\|b | c |", "| --- | --- |", r"| x \| y | back\\slash |",
    ]  # fmt: skip


def test_markdown_keeps_every_row_on_one_line():
    table = Table("T", ("a", "b"), (("two\nlines", "x"),))
    assert len(formatted(table, "md").splitlines()) == 5


def test_markdown_lets_no_tag_through_and_leaves_small_p_values_alone():
    table = Table("<i>T", ("a",), (("<img src=x> </b> <!-- a < b",), ("<0.0001",)))
    title, _, _, _, tags, small = formatted(table, "md").splitlines()
    assert (title, tags, small) == (r"**\<i>T**", r"| \<img src=x> \</b> \<!-- a < b |", "| <0.0001 |")


@pytest.mark.parametrize("style", FORMATS)
def test_no_format_lets_a_control_character_through(summary, style):
    nasty = "\x1b]0;owned\x07mine\x9b31m"
    text = formatted(summary_table([summary({"attribution": nasty}, {"attribution": "b"})]), style)
    assert "mine" in text and not set("\x1b\x07\x9b") & set(text)


@pytest.mark.parametrize(
    ("cell", "escaped"),
    [
        ("a_b", r"a\_b"), ("a & b", r"a \& b"), ("#1", r"\#1"), ("$x$", r"\$x\$"),
        ("{x}", r"\{x\}"), ("~", r"\textasciitilde{}"), ("^", r"\textasciicircum{}"), ("\\", r"\textbackslash{}"),
        ("delete − infill", "delete $-$ infill"), ("–", "--"), ("a|b", r"a\textbar{}b"), ("<b>", "$<$b$>$"),
        ("mask-unk", "mask-unk"), ("-0.50 small", "$-$0.50 small"), ("two\nlines", "two lines"),
        ("[x]", "{}[x]"), ("*", "{}*"),
    ],
)  # fmt: skip
def test_latex_escapes_its_special_characters(cell, escaped):
    text = formatted(Table("T", ("h",), ((cell,),)), "latex")
    assert text.splitlines() == [
        r"% T; needs \usepackage{booktabs}",
        r"\begin{tabular}{l}", r"\toprule", r"h \\", r"\midrule", rf"{escaped} \\", r"\bottomrule", r"\end{tabular}",
    ]  # fmt: skip


@pytest.fixture
def two_runs(summary):
    """Two models, each with two attributions under one operator."""
    return [
        summary({"model": "gpt_2", "win_rate": 0.7}, {"model": "gpt_2", "attribution": "attention", "win_rate": 0.4}),
        summary({"model": "toy", "win_rate": 0.5}, {"model": "toy", "attribution": "random", "win_rate": 0.6}),
    ]


def test_latex_of_several_runs_is_ready_for_a_paper(two_runs):
    ci, interval, rest = "[68.1, 78.5]", "[+0.36, +0.57]", r"0.0001 & 0.0004 & faithful \\"
    control = r"control: 60.0 \%, expected 50 \% \\"
    assert formatted(summary_table(two_runs), "latex").splitlines() == [
        r"% Faithfulness; needs \usepackage{booktabs}",
        r"\begin{tabular}{lllrrrrrrl}",
        r"\toprule",
        r"model & attribution & operator & n & win rate & 95 \% CI & effect & p & p adj. & verdict \\",
        r"\midrule",
        rf"gpt\_2 & gradient & delete & 60 & \textbf{{70.0 \%}} & {ci} & +0.40 {interval} & {rest}",
        rf"gpt\_2 & attention & delete & 60 & 40.0 \% & {ci} & $-$0.20 {interval} & {rest}",
        r"\addlinespace",
        rf"toy & gradient & delete & 60 & 50.0 \% & {ci} & +0.00 {interval} & {rest}",
        rf"toy & random & delete & 60 & \textbf{{60.0 \%}} & {ci} & +0.20 {interval} & {rest[:15]} & {control}",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_markdown_of_several_runs_marks_the_best_and_aligns_numbers(two_runs):
    lines = formatted(summary_table(two_runs), "md").splitlines()
    assert lines[3] == "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
    assert [re.findall(r"\*\*(.+?)\*\*", line) for line in lines[4:]] == [["70.0 %"], [], [], ["60.0 %"]]


def test_a_win_rate_without_a_rival_is_not_bold(summary):
    assert summary_table([summary({}, {"operator": "infill"}, {"k": 0.5})]).best == frozenset()


def test_equal_win_rates_are_both_bold_and_a_missing_one_is_not(summary):
    table = summary_table([summary({}, {"attribution": "lime"}, {"attribution": "shap", "win_rate": None})])
    column = table.header.index("win rate")
    assert table.best == {(0, column), (1, column)}


def test_runs_of_the_same_model_and_task_are_numbered(summary):
    table = summary_table([summary({}), summary({})])
    assert [row[table.header.index("run")] for row in table.rows] == ["1", "2"]
    assert agreement_table([summary(agreements=[{}]), summary(agreements=[{}])]).header[0] == "run"
    assert "run" not in summary_table([summary({"model": "a"}), summary({"model": "b"})]).header


@pytest.mark.parametrize("style", FORMATS)
def test_every_format_holds_every_cell_of_a_real_table(style, summary):
    table = summary_table([summary({"verdict": "better than random"}, {"attribution": "attention"})])
    text = formatted(table, style)
    for cell in ("gradient", "attention", "[68.1, 78.5]", "better than random", "+0.46 [+0.36, +0.57]"):
        assert cell in text


@pytest.mark.parametrize("style", FORMATS)
def test_every_format_takes_a_table_without_rows(style, summary):
    assert "attribution" in formatted(agreement_table([summary()]), style)
