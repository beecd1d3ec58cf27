"""Tables in terminals of any width: nothing is cut off, broken within a word, or lost without a note."""

import io
import re

import pytest
from rich.cells import cell_len
from rich.console import Console
from tests import made_records
from tests.made_records import summary_line, verdict_of

from ice_eval.cli._output import MINOR, fitted
from ice_eval.report import Table, summary_table
from ice_eval.report.colours import WORD_COLOURS, word_of
from ice_eval.stats import WORDS, Interval

ANSI = re.compile(r"\x1b\[[0-9;]*m")
RANDOM = "not distinguishable from random"

LINES = [
    {"attribution": "attention", "operator": "delete", "win_rate": 0.49, "verdict": RANDOM},
    {"attribution": "integrated-gradients", "operator": "mask-unk", "verdict": "weakly faithful"},
    {"attribution": "integrated-gradients", "operator": "infill", "win_rate": 0.21, "verdict": "anti-faithful"},
]


@pytest.fixture
def summary():
    def build(*lines):
        whole = {
            "n": 1234, "win_rate": 0.7321, "win_rate_ci": Interval(0.681, 0.7849), "p_value": 0.0001,
            "p_adjusted": 0.0004, "rank_effect": 0.4642, "rank_effect_ci": Interval(0.362, 0.5698),
        }  # fmt: skip
        made = [{**whole, **line, "verdict": verdict_of(line["verdict"])} for line in lines or LINES]
        return made_records.summary([summary_line(**line) for line in made])

    return build


def printed(table, width, **looks):
    stream = io.StringIO()
    looks = {"force_terminal": True, "color_system": "truecolor", "legacy_windows": False} | looks
    out = Console(file=stream, width=width, _environ={}, **looks)
    out.print(fitted(table, out))
    return stream.getvalue()


@pytest.mark.parametrize("width", [40, 60, 72, 80, 100, 140, 200])
def test_no_line_is_wider_than_the_terminal_and_no_word_is_broken(summary, width):
    table = summary_table([summary()])
    text = ANSI.sub("", printed(table, width))
    assert max(map(len, text.splitlines())) <= width
    words = set(text.split())
    for row in table.rows:
        for name, cell in zip(table.header, row, strict=True):
            assert name in MINOR or set(cell.split()) <= words, (name, cell)


def test_a_wide_terminal_shows_all_and_a_narrow_one_says_what_is_left_out(summary):
    table = summary_table([summary()])
    assert "not shown" not in printed(table, 200)
    narrow = ANSI.sub("", printed(table, 80))
    assert "not shown at this width: n, effect, p" in narrow
    assert "p adj." in narrow and RANDOM.split()[1] in narrow


def test_minor_columns_go_one_by_one(summary):
    table = summary_table([summary()])
    left_out = [re.findall("not shown at this width: (.*?)\x1b", printed(table, width)) for width in (120, 105, 90)]
    assert left_out == [[], ["effect"], ["n, effect"]]


def test_where_it_is_too_narrow_for_names_these_stand_above(summary):
    several = [summary(*({**line, "model": model} for line in LINES)) for model in ("smollm2", "minilm-sentiment")]
    text = ANSI.sub("", printed(summary_table(several), 84))
    assert re.findall("^Faithfulness, (.*?) *$", text, re.MULTILINE) == ["model smollm2", "model minilm-sentiment"]


def test_a_pipe_gets_the_whole_table_without_colours(summary):
    text = printed(summary_table([summary()]), 10_000, force_terminal=False, color_system=None)
    assert not ANSI.search(text) and "not shown" not in text
    assert re.search(rf"^attention +delete +1234 +49.0 % .*{RANDOM}$", text, re.MULTILINE)


def background(word):
    red, green, blue = (int(WORD_COLOURS[word][place : place + 2], 16) for place in (1, 3, 5))
    return f"48;2;{red};{green};{blue}m"


def test_cells_have_the_colours_of_their_words(summary):
    text = printed(summary_table([summary()]), 200)
    for cell, word in [
        (RANDOM, RANDOM),
        ("49.0 %", RANDOM),  # not told from chance: no alarm
        ("73.2 %", "weakly faithful"),  # as much as its interval allows
        ("weakly faithful", "weakly faithful"),
        ("21.0 %", "anti-faithful"),
        ("anti-faithful", "anti-faithful"),
    ]:
        assert f"{background(word)}{cell}" in text, cell


def test_no_colour_is_honoured(summary):
    text = printed(summary_table([summary()]), 100, no_color=True)
    assert not re.search(r"\x1b\[[0-9;]*[34]8;", text)


def test_words_of_cells():
    assert all(word_of("gradient", verdict_of(word)) == word for word in WORDS)
    assert word_of("gradient", verdict_of("undecidable: 85 % of sets tie")) == "undecidable"
    assert word_of("gradient", None) is None and word_of("random", verdict_of("faithful")) is None


def test_wide_characters_are_measured_as_they_are_shown():
    wide = Table("Wide", ("word", "n"), (("満足" * 12, "1"),))
    text = ANSI.sub("", printed(wide, 30))
    assert text.count("満足") + text.count("満\n") == 12 and "…" not in text
    assert max(map(cell_len, text.splitlines())) <= 30


def test_the_best_cells_are_bold_wherever_they_come_to_stand():
    table = Table("T", ("model", "n", "win rate"), (("m", "1", "40 %"), ("l", "2", "90 %")), frozenset({(1, 2)}))
    for width in (80, 12, 8):  # whole, without n, a line per cell
        text = printed(table, width)
        assert re.search("\x1b\\[1m90 %", text) and not re.search("\x1b\\[1m40 %", text)
