import re
import shutil
import subprocess
import unicodedata

import pytest
from tests import toy_runs

from ice_eval.analysis.paper import claims, discrepancies, paper_tables
from ice_eval.report import FORMATS, Table, agreement_table, summary_table
from ice_eval.report.analyses import claims_table, discrepancies_table, paper_index, paper_layout
from ice_eval.report.tables import cost_table, latex_text, tables


def test_markdown_escapes_pipes_and_backslashes():
    table = Table("T", ("a|b", "c"), (("x | y", "back\\slash"),))
    assert FORMATS["md"](table).splitlines() == [
        "**T**", "", r"| a\|b | c |", "| --- | --- |", r"| x \| y | back\\slash |",
    ]  # fmt: skip


def test_markdown_keeps_every_row_on_one_line():
    table = Table("T", ("a", "b"), (("two\nlines", "x"),))
    assert len(FORMATS["md"](table).splitlines()) == 5


def test_markdown_lets_no_tag_through_and_leaves_small_p_values_alone():
    table = Table("<i>T", ("a",), (("<img src=x> </b> <!-- a < b",), ("<0.0001",)))
    title, _, _, _, tags, small = FORMATS["md"](table).splitlines()
    assert (title, tags, small) == (r"**\<i>T**", r"| \<img src=x> \</b> \<!-- a < b |", "| <0.0001 |")


@pytest.mark.parametrize("style", FORMATS)
def test_no_format_lets_a_control_character_through(summary, style):
    nasty = "\x1b]0;owned\x07mine\x9b31m"
    text = FORMATS[style](summary_table([summary({"attribution": nasty}, {"attribution": "b"})]))
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
    text = FORMATS["latex"](Table("T", ("h",), ((cell,),)))
    assert text.splitlines() == [
        r"% T; needs \usepackage{booktabs}",
        r"\begin{tabular}{l}", r"\toprule", r"h \\", r"\midrule", rf"{escaped} \\", r"\bottomrule", r"\end{tabular}",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("better → worse", r"better $\rightarrow$ worse"), ("≥ 0.5 ± 1", r"$\geq$ 0.5 $\pm$ 1"),
        ("Türkçe: ağ, şey, İ, ı", r"T\"{u}rk\c{c}e: a\u{g}, \c{s}ey, \.{I}, {\i}"), ("e\u0301", r"\'{e}"),
        ("ệ", r"\^{\d{e}}"), ("Δ and λ", r"$\Delta$ and $\lambda$"), ("10⁻³ H₂O", "10$^{-}$$^{3}$ H$_{2}$O"),
        ("½ ﬁ", "1/2 fi"), ("--chat, 1,,2", "-{}-chat, 1,{},2"), ("a\u200bb\u00a0c", "ab~c"),
        ("中文 is Chinese", "{[}U+4E2D U+6587{]} is Chinese"), ("\x07\ud800", "{[}U+0007 U+D800{]}"), ("", ""),
    ],
)  # fmt: skip
def test_a_text_becomes_ascii_that_latex_reads(text, written):
    assert latex_text(text) == written


HOSTILE = (
    r"\input{x} %$&#_{}~^|<>[*]`'\" !` ?` -- ,, \\", "[x", "*", "a\nb\tc\x00\ud800",
    "→ ↓ ↑ ≥ − × – … ± Δ ≈ † ² ⁻ ₂ ς ½ ™ ® £ € ¥ © § ¶ « » „ “ ‚ ’ ¿ ¡",
    "Çay soğuktu, ağır İŞ ı", "Cà phê nguội, khung cảnh đẹp ệ ỹ ử", "中文 हिन्दी العربية 日本語 😀",
    *("".join(map(chr, range(*b))) for b in ((0xA0, 0x250), (0x370, 0x400), (0x1E00, 0x1F00), (0x2000, 0x2300))),
)  # fmt: skip
"""Names that a user might give, and whole blocks of letters and symbols."""


@pytest.fixture(scope="module")
def exported():
    """All tables of a run, all of the paper, and one of hostile names, as LaTeX."""
    run = toy_runs.run(attributions=["attention", "gradient", "random"], operators=["delete", "infill"]).folder
    of_paper = [paper_layout(each) for each in paper_tables().values()]
    lists = paper_index(list(paper_tables().values())), claims_table(claims()), discrepancies_table(discrepancies())
    hostile = Table("Hostile 中 % → \\ {", ("→", "model_50%"), tuple((name, name) for name in HOSTILE))
    of_run = *tables([run.summary()]), cost_table(run.manifest())
    return [FORMATS["latex"](each) for each in (*of_run, *of_paper, *lists, hostile)]


def test_exported_latex_is_ascii_and_its_braces_are_paired(exported):
    assert len(exported) > 10
    for text in exported:
        assert text.isascii() and not any(unicodedata.category(each) == "Cc" for each in text if each != "\n")
        plain = re.sub(r"\\[{}]", "", text)
        assert plain.count("{") == plain.count("}") and plain.count("$") % 2 == plain.count(r"\$") % 2


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_exported_latex_compiles(exported, tmp_path):
    head = "\\documentclass{article}\n\\usepackage[utf8]{inputenc}\n\\usepackage{booktabs}\n\\begin{document}\n"
    (tmp_path / "all.tex").write_text(head + "\n\n".join(exported) + "\n\\end{document}\n", encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, [line for line in done.stdout.splitlines() if line.startswith(("!", "l."))]


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
    assert FORMATS["latex"](summary_table(two_runs)).splitlines() == [
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
    lines = FORMATS["md"](summary_table(two_runs)).splitlines()
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
    text = FORMATS[style](table)
    for cell in ("gradient", "attention", "[68.1, 78.5]", "better than random", "+0.46 [+0.36, +0.57]"):
        assert cell in text


@pytest.mark.parametrize("style", FORMATS)
def test_every_format_takes_a_table_without_rows(style, summary):
    assert "attribution" in FORMATS[style](agreement_table([summary()]))
