"""Seconds, peak memory and rows per second of a run of the toy model, against N, M and length.

    python benchmarks/growth.py --out FOLDER [--n 1000,10000] [--m 10,50] [--words 10,100]

Every setting is a run and its report in a process of its own, since peak memory never goes down; seconds are those of
the processor, so that other work on the machine counts little. Writes a table
(`cost.md`), a figure (`cost.svg`) and the numbers (`cost.json`) into the folder. The toy model costs next to nothing:
what is measured is everything around a model.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

_BASE = {"n": 200, "m": 5, "words": 20}
_GRID = {"n": [100, 1000, 10_000], "m": [10, 50, 200, 500], "words": [10, 50, 200, 500]}
_AXES = {"n": "examples", "m": "random sets", "words": "words per text"}
_MEASURES = {"peak_mb": "peak memory, MB", "rows_per_second": "rows per second"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for table, figure and numbers")
    for name, values in _GRID.items():
        parser.add_argument(f"--{name}", default=",".join(map(str, values)), help=f"{_AXES[name]}, with commas")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one is not None:
        print(json.dumps(_measured(**json.loads(arguments.one))))
        return
    asked = {name: [int(value) for value in getattr(arguments, name).split(",")] for name in _GRID}
    lines = [
        {"axis": name, **_in_own_process({**_BASE, name: value})} for name, values in asked.items() for value in values
    ]
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "cost.json").write_text(json.dumps({"base": _BASE, "lines": lines}, indent=2) + "\n")
    (arguments.out / "cost.md").write_text(_table(lines))
    (arguments.out / "cost.svg").write_text(_drawn(lines))
    print(_table(lines))


def _in_own_process(setting: dict[str, int]) -> dict[str, Any]:
    command = [sys.executable, __file__, "--one", json.dumps(setting)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    print(json.dumps(found), file=sys.stderr, flush=True)
    return found


def _measured(n: int, m: int, words: int) -> dict[str, Any]:
    """One run of defaults but for these, and its report."""
    import ice_eval as ice

    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.jsonl"
        _write(data, n, words)
        started = time.process_time()
        run = ice.evaluate("toy", "demo", data=data, n=n, m=m, out=Path(folder) / "run")
        ran = time.process_time()
        peak_of_run = _peak_mb()
        run.report()
        reported = time.process_time()
        manifest = run.folder.manifest()
        size = sum(path.stat().st_size for path in run.path.rglob("*") if path.is_file())
    return {
        **{"n": n, "m": m, "words": words, "rows": manifest.cost.rows},
        "seconds": round(ran - started, 1),
        "report_seconds": round(reported - ran, 1),
        "rows_per_second": round(manifest.cost.rows / (ran - started)),
        "peak_mb_of_run": round(peak_of_run),
        "peak_mb": round(_peak_mb()),
        "folder_mb": round(size / 1e6, 1),
    }


def _write(path: Path, n: int, words: int) -> None:
    rng = np.random.default_rng(0)
    with path.open("w", encoding="utf-8") as lines:
        for _ in range(n):
            text = " ".join(f"w{word}" for word in rng.integers(0, 5000, words))
            lines.write(json.dumps({"text": text, "label": ["negative", "positive"][rng.integers(2)]}) + "\n")


def _peak_mb() -> float:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def _table(lines: list[dict[str, Any]]) -> str:
    head = ["examples", "random sets", "words", "rows", "seconds", "report, seconds", "rows/s", "peak MB", "folder MB"]
    names = ["n", "m", "words", "rows", "seconds", "report_seconds", "rows_per_second", "peak_mb", "folder_mb"]
    rows = [[f"{line[name]:,}" for name in names] for line in lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---:"] * len(head), *rows]) + "\n"


def _drawn(lines: list[dict[str, Any]]) -> str:
    import altair as alt
    import vl_convert

    from ice_eval.report.figures import theme

    def panel(axis: str, measure: str) -> alt.Chart:
        values = [{"x": line[axis], "y": line[measure]} for line in lines if line["axis"] == axis]
        return (
            alt.Chart(alt.Data(values=values))
            .mark_line(point=True)
            .encode(
                x=alt.X("x:Q", title=_AXES[axis], scale=alt.Scale(type="log"), axis=alt.Axis(tickCount=4)),
                y=alt.Y("y:Q", title=_MEASURES[measure], scale=alt.Scale(zero=True)),
            )
            .properties(width=170, height=120)
        )

    rows = [alt.hconcat(*(panel(axis, measure) for axis in _AXES)) for measure in _MEASURES]
    spec = {**alt.vconcat(*rows).to_dict(), "config": theme("print")}
    return vl_convert.vegalite_to_svg(spec)


if __name__ == "__main__":
    main()
