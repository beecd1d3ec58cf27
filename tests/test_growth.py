"""Memory does not grow with the data: what a run and its report hold are parts, and columns of numbers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "growth.py"

pytestmark = pytest.mark.skipif(os.name != "posix", reason="peak memory is read the POSIX way")


def measured(**setting):
    """One run of defaults and its report, in a process of its own."""
    done = subprocess.run(
        [sys.executable, BENCHMARK, "--one", json.dumps(setting)], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


@pytest.mark.slow
def test_ten_times_the_examples_take_at_most_a_fifth_more_memory():
    few, many = (measured(n=n, m=5, words=20) for n in (1_000, 10_000))
    assert many["rows"] == 10 * few["rows"]
    assert many["peak_mb_of_run"] <= 1.2 * few["peak_mb_of_run"], (few, many)
    assert many["peak_mb"] <= 1.2 * few["peak_mb"], (few, many)
