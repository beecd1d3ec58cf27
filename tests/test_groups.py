"""Examples that share a passage, in whole runs."""

import zlib

import numpy as np
import pytest
from tests.small_runs import line_of, lines_of, run, texts

from ice_eval import stats


def by_text(item):
    """The same rationale for the same text."""
    return [zlib.crc32(f"{word}|{len(item.texts)}".encode()) / 2**32 for word in item.texts]


def records(n_groups, *, grouped):
    """Four questions about each text."""
    found = [{"text": text, "group": f"passage {i}"} for i, text in enumerate(texts(n_groups, words=(16, 16)))]
    several = [record for record in found for _ in range(4)]
    return several if grouped else [{"text": record["text"]} for record in several]


@pytest.fixture(scope="module")
def both():
    return [run(records(30, grouped=each), attributions={"mine": by_text}, m=20) for each in (False, True)]


def test_shared_passages_widen_the_interval_and_are_flagged(both):
    alone, shared = map(line_of, both)
    assert shared.win_rate == alone.win_rate
    low, high = shared.win_rate_ci
    assert high - low > 1.5 * (alone.win_rate_ci[1] - alone.win_rate_ci[0])
    assert shared.p_value > alone.p_value
    assert shared.detectable_win_rate > alone.detectable_win_rate
    assert "grouped" in shared.flags and "grouped" not in alone.flags


def test_the_interval_is_that_of_group_means_where_groups_are_equally_large(both):
    rates = np.array([line.win_rate for line in lines_of(both[1])]).reshape(30, 4).mean(axis=1)
    assert line_of(both[1]).win_rate_ci == pytest.approx(stats.mean_interval(rates), abs=1e-9)
    # By the definition, for the lower limit: four gamblers own 40 on average against it.
    low, bets = line_of(both[1]).win_rate_ci.low, np.array([0.25, 0.5, 0.75, 1.0])
    wealth = np.prod(1 + bets[:, None] * (rates / low - 1), axis=1)
    assert wealth.mean() == pytest.approx(40, rel=1e-6)


def test_lines_of_examples_are_the_same_with_and_without_groups(both):
    alone, shared = map(lines_of, both)
    assert alone == shared


@pytest.mark.parametrize("settings", [{"adaptive": "examples"}, {"adaptive": "dataset"}, {"nulls": ["position"]}])
def test_groups_go_with_every_kind_of_run(settings):
    found = run(records(6, grouped=True), attributions={"mine": by_text}, **settings)
    line = line_of(found)
    assert "grouped" in line.flags
    # Six passages, each with four questions, tell no more than six texts.
    assert line.win_rate_ci == pytest.approx(
        stats.mean_interval(np.array([each.win_rate for each in lines_of(found)]), groups=np.repeat(range(6), 4))
    )
