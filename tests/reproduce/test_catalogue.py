import re

import pytest

from ice_eval.analysis.paper import paper_tables
from ice_eval.bench import presets
from ice_eval.errors import ConfigError
from ice_eval.reproduce import EXPERIMENTS, ITEMS, chosen


@pytest.mark.real
def test_every_table_and_figure_of_the_paper_is_listed_and_no_other(shared_data):
    labels = re.findall(r"\\label\{((?:tab|fig):[^}]+)\}", (shared_data.parent / "paper.tex").read_text("utf-8"))
    assert labels == list(ITEMS)


def test_every_published_table_is_of_an_item():
    assert {label for table in paper_tables().values() for label in table.labels} <= set(ITEMS)


def test_every_item_with_numbers_has_experiments_and_a_layout():
    for item in ITEMS.values():
        assert (item.content is None) == (item.layout is None) == (item.experiments == ()), item.label


def test_every_experiment_is_used_and_has_a_grid():
    assert set(EXPERIMENTS) == {name for item in ITEMS.values() for name in item.experiments}
    assert {each.preset for each in EXPERIMENTS.values()} <= set(presets())


def test_items_are_chosen_by_label_short_label_and_experiment():
    assert [each.label for each in chosen(["ksweep"])] == ["tab:ksweep"]
    assert {each.label for each in chosen(["prompts"])} == {
        "tab:prompt_sensitivity", "fig:method_gap", "fig:faith_conf", "fig:gap_by_task",
    }  # fmt: skip
    assert chosen([]) == chosen(["all"]) == list(ITEMS.values())


def test_an_unknown_item_is_refused_with_a_suggestion():
    with pytest.raises(ConfigError, match="no table or figure 'tab:ksweap'; did you mean 'tab:ksweep'"):
        chosen(["tab:ksweap"])
