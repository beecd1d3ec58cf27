"""Host cost of a run: everything around a model, on the toy model, in one process and on one core.

    OMP_NUM_THREADS=1 python benchmarks/host.py [--n 2000] [--m 50]
    OMP_NUM_THREADS=1 PYTHONPATH=OTHER/src python benchmarks/host.py --no-rescore    # another tree, for comparison

Prints JSON. Seconds are those of the processor. Machines are noisy, so `plain_loop` is the time of one row in a
plain loop over the same rows (build one input, score it, look up its rank), in the same process. `against_plain_loop`
is the number of our rows that take as long.

us_per_row          end to end: reading, encoding, attributions, random sets, inputs, scores, ledger, statistics, files
rescore             rows per second of `ice rescore` without its tests and intervals, and with them
interval_ms         the interval of one configuration with 500 examples
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import ice_eval as ice

_ATTRIBUTIONS = ["attention", "gradient"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=2000, help="examples")
    parser.add_argument("--m", type=int, default=50, help="random sets")
    parser.add_argument("--no-rescore", action="store_true", help="measure the run alone")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.jsonl"
        _write(data, arguments.n)
        _evaluated(data, Path(folder) / "warm", n=32, m=5)  # libraries load on first use
        started = time.process_time()
        run = _evaluated(data, Path(folder) / "run", n=arguments.n, m=arguments.m)
        seconds = time.process_time() - started
        found = {"examples": arguments.n, "random_sets": arguments.m, **_costs(run, seconds)}
        if not arguments.no_rescore:
            found |= {"rescore": _rescored(run), "interval_ms": _interval_ms()}
    print(json.dumps(found, indent=2))


def _evaluated(data: Path, out: Path, *, n: int, m: int) -> ice.Run:
    return ice.evaluate("toy", "sst2", data=data, n=n, m=m, attributions=_ATTRIBUTIONS, out=out)


def _costs(run: ice.Run, seconds: float) -> dict[str, Any]:
    manifest = json.loads((run.path / "manifest.json").read_text())
    rows = manifest.get("cost", manifest)["rows"]
    plain = _plain_loop()
    return {
        "rows": rows,
        "seconds": round(seconds, 2),
        "us_per_row": round(1e6 * seconds / rows, 1),
        "plain_loop_us": round(1e6 * plain, 1),
        "against_plain_loop": round(plain / (seconds / rows), 2),
    }


def _plain_loop(rows: int = 20_000) -> float:
    """Seconds of a row that is drawn, built, scored and compared by itself, with weights in a dictionary."""
    rng = np.random.default_rng(0)
    words = [f"w{index}" for index in range(24)]
    weights = {word: float(rng.normal()) for word in words}
    started = time.process_time()
    beaten = 0
    for _ in range(rows):
        kept = sorted(rng.choice(24, 5, replace=False).tolist())
        text = [words[unit] for unit in kept]
        score = sum(weights[word] for word in text)
        beaten += score > 0.1
    return (time.process_time() - started) / rows


def _rescored(run: ice.Run) -> dict[str, int]:
    """Rows per second of all comparisons, and of these with tests, intervals and files."""
    from ice_eval.results import rescore
    from ice_eval.results.summary import outcomes_by_configuration

    manifest = run.folder.manifest()
    assert manifest.cost is not None
    seconds = []
    for work in (lambda: outcomes_by_configuration(run.folder, manifest.config), lambda: rescore(run.folder)):
        started = time.process_time()
        work()
        seconds.append(time.process_time() - started)
    return {
        "comparisons": round(manifest.cost.rows / seconds[0]),
        "whole": round(manifest.cost.rows / seconds[1]),
    }


def _interval_ms() -> float:
    from ice_eval import stats

    rates, times = np.random.default_rng(0).random(500), []
    for _ in range(5):
        started = time.process_time()
        stats.mean_interval(rates)
        times.append(time.process_time() - started)
    return round(1e3 * min(times), 1)


def _write(path: Path, n: int) -> None:
    """Reviews as long as the sentences of SST-2, of words that the toy model knows and others."""
    rng = np.random.default_rng(0)
    known = ["good", "great", "awful", "boring", "dull", "warm", "fun", "mess"]
    words = np.array([*known, *(f"w{index}" for index in range(400))])
    with path.open("w", encoding="utf-8") as lines:
        for _ in range(n):
            text = " ".join(rng.choice(words, int(np.clip(rng.gamma(4.5, 5.3), 4, 60))))
            lines.write(json.dumps({"text": text, "label": int(rng.integers(2))}) + "\n")


if __name__ == "__main__":
    main()
