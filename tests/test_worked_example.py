"""The example that docs/concepts.md works out with a pencil: every number is what the program says."""

import math
from pathlib import Path

import numpy as np
import pytest
from tests.documents import play
from tests.rows import ledger_rows

from ice_eval import stats
from ice_eval.models.toy import BIAS, WEIGHTS
from ice_eval.records import Kind

SECTION = (
    (Path(__file__).parents[1] / "docs/concepts.md")
    .read_text(encoding="utf-8")
    .partition("## One example by hand")[2]
    .partition("\n## ")[0]
)
PLAIN = " ".join(SECTION.split())


@pytest.fixture(scope="module")
def page():
    """What the code of the page leaves behind, after it has printed what the page shows."""
    return play("concepts.md")


@pytest.fixture(scope="module")
def gradient(page):
    return page["run"].summary().set_index("attribution").loc["gradient"]


@pytest.fixture(scope="module")
def examples(page):
    return page["run"].examples().set_index(["attribution", "example_id"])


def log_odds(words):
    return BIAS + sum(WEIGHTS.get(word, 0.0) for word in words)


def signed(value):
    return f"{value:.2f}".replace("-", "\N{MINUS SIGN}")


def test_the_full_text(page, examples):
    words = page["texts"][0].split()
    assert (WEIGHTS["gorgeous"], WEIGHTS["slow"], len(words), log_odds(words)) == (2.5, -0.75, 5, 2.0)
    assert "gradient" in PLAIN and "0, 2.5, 0, 0.75, 0" in PLAIN
    assert examples.loc[("gradient", "0"), "score_full"] == pytest.approx(1 / (1 + math.exp(-2)))
    assert f"= {1 / (1 + math.exp(-2)):.2f}" in PLAIN


def test_the_table_of_random_sets(page, examples):
    text = page["texts"][0].split()
    rows = ledger_rows(page["run"].folder)
    drawn = [row.kept for row in rows if row.key.example_id == "0" and row.key.kind == Kind.RANDOM]
    own, other = (tuple(examples.loc[(name, "0"), "rationale"]) for name in ("gradient", "input-x-gradient"))
    null = [kept for kept in drawn if kept != own][:4]
    lines = ["| kept | log-odds | against the rationale |", "|---|---|---|"]
    for kept in [own, *null]:
        words = [text[unit] for unit in kept]
        wins = "it wins" if log_odds(words) < 2 else "it loses"
        lines.append(
            f"| {' '.join(words)} | {signed(log_odds(words))} | {'the rationale itself' if kept == own else wins} |"
        )
    assert "\n".join(lines) in SECTION
    assert other in null and [text[unit] for unit in other] == ["gorgeous", "film"]
    assert [text[unit] for unit in drawn[4]] == ["a", "gorgeous"]


def test_win_rates_and_p_values_of_the_first_text(examples):
    of = examples[["win_rate", "p_value"]]
    assert of.loc[("gradient", "0")].tolist() == pytest.approx([3 / 4, 2 / 5])
    assert of.loc[("input-x-gradient", "0")].tolist() == pytest.approx([3.5 / 4, 2 / 5])


def test_the_table_of_texts(page, examples):
    lines = ["| text | rationale | win rate | p |", "|---|---|---|---|"]
    for place, text in enumerate(page["texts"]):
        found = examples.loc[("gradient", str(place))]
        rationale = " ".join(text.split()[unit] for unit in found["rationale"])
        lines.append(f"| {text} | {rationale} | {found['win_rate']:.0%} | {found['p_value']:g} |".replace("%", " %"))
    assert "\n".join(lines) in SECTION


def wealth(texts):
    """Of the four gamblers against one half; each text is there so many times."""
    bets = np.array([0.25, 0.5, 0.75, 1.0])
    return ((1 + bets) ** 3 * (1 + bets / 2) ** 2) ** texts


def test_the_interval_by_betting(examples, gradient):
    assert sorted(examples.loc["gradient", "win_rate"]) == [0.75, 0.75, 1, 1, 1]
    cells = [f"{each:.2f}" for each in (*wealth(1), wealth(1).mean())]
    assert f"| (1 + c)³ (1 + c/2)² | {' | '.join(cells)} |" in SECTION
    assert wealth(1).mean() < 40 < wealth(2).mean() and f"would be {wealth(2).mean():.1f}" in PLAIN
    low, high = gradient["win_rate_ci"]
    assert f"a mean of {100 * low:.1f} %" in PLAIN and f"[{100 * low:.1f} %, {100 * high:.1f} %]" in PLAIN
    # At the lower limit they own 40: a win rate of 1 multiplies by more, the smaller the mean.
    bets = np.array([0.25, 0.5, 0.75, 1.0])
    owned = (1 + bets * (1 / low - 1)) ** 3 * (1 + bets * (0.75 / low - 1)) ** 2
    assert owned.mean() == pytest.approx(40)


@pytest.mark.parametrize(
    ("times", "word"), [(1, "not distinguishable from random"), (2, "weakly faithful"), (3, "faithful")]
)
def test_more_texts_of_the_kind_would_settle_it(examples, times, word):
    interval = stats.mean_interval(np.tile(examples.loc["gradient", "win_rate"].to_numpy(), times))
    assert stats.verdict(interval).word == word and f"*{word}*" in PLAIN
    assert f"[{100 * interval.low:.1f} %, {100 * interval.high:.1f} %]" in PLAIN


def test_mean_test_and_verdict(gradient):
    assert gradient["win_rate"] == pytest.approx(0.9)
    assert f"p = {gradient['p_value']:.4f}" in PLAIN
    assert gradient["detectable_win_rate"] > 1  # five such texts can tell nothing from chance
    assert (gradient["verdict"], gradient["flags"]) == ("not distinguishable from random", ["small_n"])
