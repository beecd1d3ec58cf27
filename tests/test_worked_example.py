"""The example that docs/concepts.md works out with a pencil: every number is what the program says."""

import math
from pathlib import Path

import numpy as np
import pytest
from tests.documents import play
from tests.rows import ledger_rows

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


def test_the_interval_by_counting(gradient):
    chances = [math.comb(5, count) * 0.4**count * 0.6 ** (5 - count) for count in range(6)]
    assert f"| probability | {' | '.join(f'{chance:.3f}' for chance in chances)} |" in SECTION
    assert f"| mean | {' | '.join(f'{100 - 5 * count} %' for count in range(6))} |" in SECTION
    assert chances[5] < 0.025 < chances[4] + chances[5] and f"it is {chances[4] + chances[5]:.3f}" in PLAIN
    assert chances[0] > 0.025
    assert gradient["win_rate_ci"] == pytest.approx([0.8, 1.0])


def test_mean_test_and_verdict(examples, gradient):
    rates = examples.loc["gradient", "win_rate"].to_numpy()
    error = rates.std(ddof=1) / np.sqrt(5)
    assert gradient["win_rate"] == pytest.approx(0.9) == rates.mean()
    assert f"p = {gradient['p_value']:.4f}" in PLAIN
    assert f"standard error is {error:.3f}" in PLAIN
    assert gradient["detectable_win_rate"] == pytest.approx(0.5 + 2.80 * error, abs=1e-3)
    assert f"= {100 * gradient['detectable_win_rate']:.1f} %" in PLAIN
    assert (gradient["verdict"], gradient["flags"]) == ("faithful", ["small_n"])
