"""Figures of tables: a paper's own numbers, or a grid's."""

import itertools
import re

import pytest
from tests.report.drawings import Drawing, place_of

from ice_eval.errors import ConfigError
from ice_eval.report.figures import (
    ChainOfThought,
    LanguageWinRate,
    Plausibility,
    PromptWinRate,
    WinRate,
    chain_of_thought_scatter,
    language_heatmap,
    plausibility_scatter,
    prompt_sensitivity,
    win_rate_panels,
)
from ice_eval.report.figures.tables import label_places

MODELS, DATA = ("one", "two"), ("sst2", "imdb", "boolq")


def test_panels_of_a_table_hold_every_cell():
    given = [
        WinRate(model=model, dataset=data, attribution=attribution, operator=operator, win_rate=rate)
        for attribution in ("attention", "gradient")
        for operator in ("delete", "infill")
        for model, rates in zip(MODELS, [(0.45, 0.52, None), (0.55, 0.6, 0.601)], strict=True)
        for data, rate in zip(DATA, rates, strict=True)
    ]
    drawing = Drawing(win_rate_panels(given))
    assert len(drawing.marks("text")) == 4
    for panel in drawing.marks("text"):
        assert [m.text for m in sorted(panel, key=place_of)] == ["45.0", "52.0", "–", "55.0", "60.0", "60.1"]
    assert {"attention", "gradient", "delete", "infill", *MODELS, *DATA} <= set(drawing.texts())


def test_languages_are_columns_and_operators_panels():
    given = [
        LanguageWinRate(model=model, language=language, operator=operator, win_rate=0.4)
        for operator in ("delete", "infill")
        for model in MODELS
        for language in ("French", "Hindi")
    ]
    drawing = Drawing(language_heatmap(given))
    assert [len(panel) for panel in drawing.marks("rect")] == [4, 4]
    assert {"French", "Hindi", "anti-faithful"} <= set(drawing.texts())


def test_plausibility_gives_the_correlation_of_every_model():
    line = [Plausibility(model="one", overlap=x / 10, win_rate=0.2 + x / 20) for x in range(8)]
    flat = [Plausibility(model="two", overlap=x / 10, win_rate=0.5) for x in range(5)]
    figure = plausibility_scatter([*line, *flat])
    drawing = Drawing(figure)
    assert drawing.count("symbol") == 13
    assert "r = +1.00, n = 8" in " ".join(drawing.texts()), "points on a line have no interval"
    assert any(text.endswith("n = 5") for text in drawing.texts())
    assert plausibility_scatter(flat).title == "Faithfulness against plausibility: two, n = 5"


def test_examples_of_a_group_make_a_correlation_less_sure():
    pairs = [(0.1, 0.4), (0.3, 0.7), (0.2, 0.3), (0.8, 0.6), (0.6, 0.9), (0.5, 0.4)]

    def width(n_groups):
        given = [
            Plausibility(model="one", overlap=overlap, win_rate=rate, group=index if index < n_groups else None)
            for index, (overlap, rate) in enumerate(pairs)
            for _ in range(4)
        ]
        low, high = re.search(r"\[(.+), (.+)\], n = 24", plausibility_scatter(given).title).groups()
        return float(high) - float(low)

    assert width(n_groups=6) > width(n_groups=0)


def test_several_operators_have_a_row_of_panels_and_a_correlation_each():
    given = [
        Plausibility(model="one", overlap=x / 10, win_rate=rate, operator=operator)
        for operator, sign in (("delete", 1), ("infill", -1))
        for x in range(5)
        for rate in [0.5 + sign * x / 20] * 2
    ]
    drawing = Drawing(plausibility_scatter(given))
    assert [len(panel) for panel in drawing.marks("symbol")] == [5, 5]  # two examples on one dot
    title = plausibility_scatter(given).title
    assert "delete: r = +1.00" in title
    assert "infill: r = -1.00" in title


def test_prompts_have_a_dot_each_and_an_interval_where_one_is_known():
    given = [
        PromptWinRate(
            model="one", task="sst2", attribution=attribution, prompt=prompt, win_rate=0.6, low=low, high=high
        )
        for attribution in ("attention", "gradient")
        for prompt, low, high in (("plain", 0.5, 0.7), ("terse", None, None))
    ]
    drawing = Drawing(prompt_sensitivity(given))
    assert drawing.count("symbol") == 4
    assert drawing.count("rule") == 2 + 2 * 2
    assert {"one · sst2", "plain", "terse"} <= set(drawing.texts())


def test_chains_have_a_named_dot_each():
    given = [
        ChainOfThought(model=m, task="gsm8k", src=s, accuracy=a) for m, s, a in (("one", 0.1, 0.5), ("two", 0.7, 0.9))
    ]
    drawing = Drawing(chain_of_thought_scatter(given))
    assert drawing.count("symbol") == drawing.count("text") == 2
    assert drawing.count("rule") == 2


def test_names_of_dots_cover_neither_each_other_nor_a_dot():
    dots = [(273, 39), (357, 36), (84, 39), (147, 218), (315, 277), (357, 280), (357, 278), (357, 281)]
    names = ["Model A", "Model A", "Model B", "Model B", "Model C", "Model C", "some-longer-name", "Model D"]
    places = label_places(dots, names, width=420, height=280)
    boxes = [(x, y - 6, x + 5.5 * len(name), y + 6) for (x, y), name in zip(places, names, strict=True)]
    boxes += [(x - 5, y - 5, x + 5, y + 5) for x, y in dots[:5]]
    for one, other in itertools.combinations(boxes, 2):
        assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def test_the_interval_of_a_capacity_is_drawn_and_published_ones_are_hollow():
    own = ChainOfThought(model="one", task="gsm8k", src=0.5, accuracy=0.9, low=0.4, high=0.6)
    published = ChainOfThought(model="two", task="gsm8k", src=0.1, accuracy=0.8, published=True)
    drawing = Drawing(chain_of_thought_scatter([own, published]))
    assert drawing.count("symbol") == 2 and drawing.count("rule") == 2 + 1


@pytest.mark.parametrize(
    "draw", [win_rate_panels, language_heatmap, plausibility_scatter, prompt_sensitivity, chain_of_thought_scatter]
)
def test_a_table_without_rows_is_refused(draw):
    with pytest.raises(ConfigError, match="a figure needs at least one row"):
        draw([])
