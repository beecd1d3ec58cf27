"""What a notebook and a terminal show of a run and of one example."""

import html
import io
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.console import Console
from tests.small_runs import lines_of, picks, run, task_of, texts

from ice_eval.errors import ConfigError
from ice_eval.report.colours import WORD_COLOURS
from ice_eval.report.example import N_BINS, example_lines, histogram, pieces
from ice_eval.results.ledger import sigmoid
from ice_eval.results.view import Scores

MARKUP = "<script>alert(1)</script>"


class Elements(HTMLParser):
    """Every element with its attributes and the text in it; nested elements are closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.found = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.open.append((tag, dict(attrs), []))

    def handle_data(self, data):
        for _, _, text in self.open:
            text.append(data)

    def handle_endtag(self, tag):
        opened = self.open.pop()
        assert opened[0] == tag
        self.found.append((tag, opened[1], "".join(opened[2])))

    def all(self, tag):
        return [(attributes, text) for name, attributes, text in self.found if name == tag]


def signed(item):
    """Strong support of the second unit, half as strong opposition of the third."""
    return [4.0 if unit == 1 else -2.0 if unit == 2 else 0.0 for unit in range(item.n_units)]


@pytest.fixture(scope="module")
def found():
    records = [{"id": f"e{place}", "text": text} for place, text in enumerate(texts(6))]
    records[2]["text"] = f"{MARKUP} and some more words \x1b[31m to remove from here"
    records[3]["text"] = "one"
    return run(
        task_of(records),
        attributions={"signed": signed, "picks": picks("picks")},
        operators=["delete", "mask-unk"],
        directions=["sufficiency", "necessity"],
        k=[0.1, 0.3],
        m=12,
        n=6,
    )


def test_an_example_is_seen_under_all_configurations_or_those_chosen(found):
    whole = found.example("e0").view
    assert len(whole.compared) == 2 * 3 * 2 * 2
    chosen = found.example("e0", attribution="signed", operator="delete", direction="sufficiency", k=0.3)
    assert [each.line for each in chosen.view.compared] == lines_of(
        found, example_id="e0", attribution="signed", operator="delete", direction="sufficiency", k=0.3
    )
    averaged = found.example("e0", attribution="signed", operator="all", direction="sufficiency", k=0.3)
    assert "signed under all" in repr(averaged) and "under all" not in repr(found.example("e0"))


@pytest.mark.parametrize("direction", ["sufficiency", "necessity"])
@pytest.mark.parametrize("operator", ["delete", "all"])
def test_the_scores_are_those_that_were_compared(found, direction, operator):
    [each] = found.example("e0", attribution="picks", operator=operator, direction=direction, k=0.3).view.compared
    sign = 1 if direction == "sufficiency" else -1
    assert sigmoid(np.array([each.scores.rationale]))[0] == pytest.approx(each.line.score)
    assert np.mean(sign * each.scores.rationale > sign * each.scores.null) == pytest.approx(each.line.win_rate)


def test_a_sequential_test_shows_the_sets_it_looked_at():
    long = texts(3, words=(20, 22))
    found = run(long, attributions={"picks": picks("picks")}, m=499, n=3, adaptive="examples")
    lines = list(found.folder.examples())
    assert min(line.m for line in lines) < 499
    for line in lines:
        [each] = found.example(line.example_id).view.compared
        assert each.scores.null.size == line.m


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"attribution": "sigend"}, "no attribution 'sigend'; did you mean 'signed'"),
        ({"operator": "infill"}, "no operator 'infill'. It has delete, mask-unk, all"),
        ({"k": 0.5}, r"no k '0.5'. It has 0.1, 0.3"),
    ],
)
def test_what_the_run_does_not_hold_is_refused(found, chosen, message):
    with pytest.raises(ConfigError, match=message):
        found.example("e0", **chosen)


def test_an_unknown_example_is_refused(found):
    with pytest.raises(ConfigError, match="no example 'e9'"):
        found.example("e9")


def test_pieces_add_up_to_the_text_and_carry_attribution_and_rationale(found):
    view = found.example("e0", attribution="signed", k=0.3).view
    [(name, parts)] = pieces(view, view.compared[0].line)
    assert (name, "".join(part.text for part in parts)) == ("text", view.example.fields["text"])
    words = view.example.fields["text"].split()
    strengths = {part.text: part.strength for part in parts if part.strength}
    assert strengths == {words[1]: 1.0, words[2]: -0.5}
    assert [part.text for part in parts if part.in_rationale] == [
        words[unit] for unit in view.compared[0].line.rationale
    ]


def test_the_null_is_binned_whole_and_the_rationale_is_in_its_place():
    null = np.array([-2.0, -1.0, 0.0, 0.0, 1.0])
    bins = histogram(Scores(2.0, null, tuple(range(5))))
    assert (len(bins.counts), sum(bins.counts), bins.place) == (N_BINS, 5, N_BINS - 1)
    assert (bins.counts[0], bins.counts[N_BINS // 2]) == (1, 2)
    assert (bins.low, bins.high) == pytest.approx((1 / (1 + np.exp(2)), 1 / (1 + np.exp(-2))))
    assert bins.null == pytest.approx((1 / (1 + np.exp(2)), 1 / (1 + np.exp(-1)))), "the rationale is none of them"
    same = histogram(Scores(0.5, np.full(4, 0.5), (0, 1, 2, 3)))
    assert (same.counts[0], same.place) == (4, 0)
    assert histogram(Scores(np.inf, null, tuple(range(5)))).place == N_BINS - 1


def test_without_a_notebook_an_example_is_text(found):
    text = repr(found.example("e0", attribution="signed", operator="delete", direction="necessity", k=0.3))
    assert text.startswith("example e0\ntext: ")
    assert re.search(r"signed under delete, necessity, k = 0.3: win rate \d+ % of 12, p = [01]\.\d{3}", text)
    assert re.search(r"12 random sets(, \d\.\d{3} to \d\.\d{3})? \(less is better\)", text)
    [bars, mark] = re.search(
        r"  \d\.\d{3} (.{24}) \d\.\d{3}  12 random.*\n {8}( *)▲ \d\.\d{3} rationale", text
    ).groups()
    assert set(bars) <= set(" ▁▂▃▄▅▆▇█") and "█" in bars and len(mark) < 24
    assert "[" in text and not re.search("\x1b", repr(found.example("e2")))


def test_a_terminal_shows_strength_as_shade_and_underlines_the_rationale(found):
    view = found.example("e0", attribution="signed", operator="delete", direction="sufficiency", k=0.1).view
    out = Console(force_terminal=True, color_system="truecolor", width=200, record=True, file=io.StringIO())
    for line in example_lines(view, colour=True):
        out.print(line)
    text = out.export_text(styles=True)
    words = view.example.fields["text"].split()
    assert f"\x1b[1;4;38;2;255;255;255;48;2;15;107;98m{words[1]}" in text  # the strongest: the full colour
    assert re.search(rf"\x1b\[38;2;255;255;255;48;2;[0-9;]+m{words[2]}\x1b", text)  # weaker, and not in the rationale
    assert f"[{words[1]}]" not in text


def test_a_notebook_shades_units_and_outlines_the_rationale(found):
    view = found.example("e0", attribution="signed", operator="delete", direction="sufficiency", k=0.1)
    page = Elements(view._repr_html_())
    words = view.view.example.fields["text"].split()
    styles = {text: attributes["style"] for attributes, text in page.all("span")}
    assert "rgba(15,107,98,0.60)" in styles[words[1]] and "outline" in styles[words[1]]
    assert "rgba(181,64,14,0.30)" in styles[words[2]] and "outline" not in styles[words[2]]
    assert styles[words[3]] == ""
    assert len(page.all("svg")) == 1
    heights = [float(attributes["height"]) for attributes, _ in page.all("rect")]
    assert max(heights) == 22 and min(heights) > 0
    assert "win rate" in page.all("div")[-1][1]


def test_an_example_that_takes_no_part_says_why(found):
    shown = found.example("e3")
    assert "skipped: the text has one unit" in repr(shown)
    assert "skipped: the text has one unit" in shown._repr_html_() and "<svg" not in shown._repr_html_()


def test_what_a_text_holds_is_text(found):
    page = found.example("e2")._repr_html_()
    assert "<script" not in page
    assert "alert(1)" in html.unescape("".join(text for _, text in Elements(page).all("span")))


def test_a_run_is_a_table_with_the_colours_of_its_words(found):
    page = Elements(found._repr_html_())
    cells = {text: attributes["style"] for attributes, text in page.all("td")}
    lines = found.folder.summary().configurations
    coloured = [text for text, style in cells.items() if any(c in style for c in WORD_COLOURS.values())]
    assert {str(line.verdict) for line in lines} <= set(coloured)
    assert len(page.all("tr")) == 1 + len(lines)
    assert [text for _, text in page.all("caption")] == ["waves on waves"]
    assert page.all("li")
