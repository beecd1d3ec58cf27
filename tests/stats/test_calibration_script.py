"""The simulations of `benchmarks/calibration.py` run, and find no error rate above its nominal value."""

import csv
import importlib
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ice_eval.stats import mean_interval, verdict

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def calibration():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield importlib.import_module("calibration")


@pytest.fixture(scope="module")
def claims(calibration):
    few = calibration.Simulation(share=0.0, sizes=(5, 50))
    return [measure(few) for measure in calibration.CLAIMS]


def test_every_claim_is_measured(claims):
    rates = [cell.after for claim in claims for line in claim.lines for cell in line.cells.values()]
    assert len({claim.title for claim in claims}) == len(claims)
    assert np.all(np.isfinite(rates)) and min(rates) >= 0 and max(rates) <= 1


def test_the_page_has_every_claim_and_all_rates_without_a_nominal_value(calibration, claims):
    page = calibration.page(claims)
    assert page.startswith("# ") and page.endswith("|\n")
    for claim in claims:
        free = [line for line in claim.lines if line.most is None and line.least is None]
        assert (f"## {claim.title}\n" in page) == bool(free)
        assert claim.note in page and all(f"| {line.case} | " in page for line in free)


def test_the_csv_file_has_every_rate(calibration, claims):
    rows = [*csv.DictReader(io.StringIO(calibration.as_csv(claims)))]
    cells = [cell for claim in claims for line in claim.lines for cell in line.cells.values()]
    assert [float(row["after"]) for row in rows] == pytest.approx([cell.after for cell in cells], rel=1e-5)
    assert [row["holds"] for row in rows].count("no") == sum(len(claim.failures) for claim in claims)
    assert {row["claim"] for row in rows} == {claim.title for claim in claims}


def test_a_rate_above_nominal_fails_and_is_marked(calibration):
    cells = {5: calibration.Cell(None, 0.02, 1000), 50: calibration.Cell(0.09, 0.09, 1000)}
    claim = calibration.Claim("Errors", [calibration.Line("some", cells, most=0.05)])
    assert claim.failures == ["Errors: some, N = 50"]
    assert "**9.0 % fails**" in claim.markdown()
    assert "**no**" in calibration.overview([claim])
    assert calibration.page([claim]).splitlines()[2].startswith("No:")
    coverage = calibration.Line("some", {5: calibration.Cell(None, 0.90, 1000)}, least=0.95)
    assert coverage.failures == [5]


def test_distributions_have_their_mean(calibration, rng):
    for draw, truth in calibration.DISTRIBUTIONS.values():
        assert draw(rng, 400, 500).mean() == pytest.approx(truth, abs=0.004)


def test_ranks_and_sides_are_those_of_verdicts_and_intervals(calibration, rng):
    for n in (10, 60):
        samples = calibration.benign(rng, 20, n)
        intervals = [mean_interval(row) for row in samples]
        excluded = [int(low > 0.6) - int(high < 0.6) for low, high in intervals]
        assert calibration.sides_of(samples, 0.6).tolist() == excluded
        words = [verdict(interval).word for interval in intervals]
        assert [calibration.rank_of(row) for row in samples] == [calibration.RANKS[word] for word in words]


@pytest.mark.slow
def test_no_error_rate_is_above_nominal(tmp_path):
    page = tmp_path / "page.md"
    command = [sys.executable, BENCHMARKS / "calibration.py", "--quick", "--write", page]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert page.read_text(encoding="utf-8").splitlines()[2].startswith("Yes, ")
    assert page.with_suffix(".csv").exists()
