"""Run the same settings with two source trees, and compare every number.

    git worktree add ../before COMMIT
    python tools/nothing_moved.py ../before [--only NAME] [--folder FOLDER]

Compares, for every setting of `SETTINGS`: random sets, fills (by their ids), scores, win rates, p-values, effect sizes,
intervals and verdicts. Scores of the toy model and all statistics must agree to 1e-9, scores of real models to 1e-5.
Settings whose model or data are not on this machine are skipped, and named.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("ICE_SHARED", HERE.parent / "shared"))
_MASKS = ["delete", "infill", "mask-unk", "mask-pad"]
SETTINGS: dict[str, dict[str, Any]] = {
    "toy-one-fill": {"model": "toy", "n": 30, "m": 20, "n_fills": 1, "operators": _MASKS, "k": [0.2, 0.5],
                     "directions": ["sufficiency", "necessity"], "nulls": ["size", "position"]},
    "toy": {"model": "toy", "n": 60, "m": 20, "operators": _MASKS, "directions": ["sufficiency", "necessity"],
            "k": [0.1, 0.2, 0.5], "attributions": ["attention", "gradient", "random"]},
    "toy-nulls": {"model": "toy", "n": 50, "m": 15, "nulls": ["size", "contiguity", "position"], "k": [0.2, 0.5],
                  "directions": ["sufficiency", "necessity"]},
    "toy-adaptive-dataset": {"model": "toy", "n": 60, "adaptive": "dataset", "k": [0.1, 0.3]},
    "toy-adaptive-examples": {"model": "toy", "n": 40, "adaptive": "examples", "k": [0.1, 0.3]},
    "toy-adaptive-nulls": {"model": "toy", "n": 20, "adaptive": "examples", "nulls": ["size", "contiguity"]},
    "toy-probes": {"model": "toy", "n": 20, "m": 10,
                   "attributions": ["lime:n_samples=40", "occlusion", "longest-words"]},
    "toy-eraser": {"model": "toy", "n": 20, "m": 10, "eraser": True, "attributions": ["attention", "random"]},
    "toy-dynamic": {"model": "toy", "n": 30, "m": 12, "k": ["dynamic", 0.2], "sign": "abs"},
    "toy-fills": {"model": "toy", "n": 20, "m": 10, "n_fills": 3},
    "toy-paper": {"model": "toy", "n": 20, "m": 10, "protocol": "paper"},
    "toy-released": {"model": "toy", "n": 20, "m": 10, "protocol": "released"},
    "toy-calibrated": {"model": "toy", "n": 20, "m": 10, "calibration": "contextual", "target": "gold"},
    "minilm": {"model": str(SHARED / "models" / "minilm-sentiment"), "task": "sst2",
               "data": str(SHARED / "data" / "sst2.jsonl"), "n": 24, "m": 12, "operators": [*_MASKS, "mask"],
               "k": [0.2, 0.5], "directions": ["sufficiency", "necessity"]},
    "smollm2": {"model": "smollm2", "task": "sst2", "data": str(SHARED / "data" / "sst2.jsonl"), "n": 8, "m": 10,
                "operators": ["delete", "infill", "mask-unk"], "k": [0.2]},
    "chains": {"chains": True},
}  # fmt: skip
EXACT, REAL = 1e-9, 1e-5
_KEY = ["example_id", "kind", "attribution", "null", "operator", "direction", "size", "set", "draw"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="the tree to compare with")
    parser.add_argument("--only", action="append", choices=list(SETTINGS))
    parser.add_argument("--folder", type=Path, help="keep the run folders here")
    parser.add_argument("--run", nargs=2, metavar=("SETTING", "OUT"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        _run(SETTINGS[arguments.run[0]], Path(arguments.run[1]))
        return
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder or Path(scratch)
        for name, setting in SETTINGS.items():
            if arguments.only and name not in arguments.only:
                continue
            if not _is_here(setting):
                print(f"{name}: skipped, its model or data are not here")
                continue
            runs = [
                _in_tree(tree, name, folder / f"{name}-{side}")
                for side, tree in (("before", arguments.before), ("after", HERE))
            ]
            differences = list(_differences(*runs, scores=EXACT if setting.get("model") == "toy" else REAL))
            failed += bool(differences)
            print(f"{name}: {'; '.join(differences) if differences else f'equal ({_size(runs[1])})'}", flush=True)
    sys.exit(1 if failed else 0)


def _is_here(setting: dict[str, Any]) -> bool:
    paths = [value for value in setting.values() if isinstance(value, str) and value.startswith(str(SHARED))]
    return all(Path(path).exists() for path in paths)


def _in_tree(tree: Path, name: str, out: Path) -> Path:
    if not (out / "summary.json").exists():
        environment = {**os.environ, "PYTHONPATH": str(tree.resolve() / "src"), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, str(Path(__file__).resolve()), str(tree), "--run", name, str(out)]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    return out


def _run(setting: dict[str, Any], out: Path) -> None:
    import ice_eval as ice

    options = dict(setting)
    if options.pop("chains", False):
        _run_chains(out)
        return
    ice.evaluate(options.pop("model"), options.pop("task", "demo"), out=out, **options)


def _run_chains(out: Path) -> None:
    """Evaluate chains of thought of a scripted reasoner, behind a server on the loopback."""
    import ice_eval as ice

    sys.path.insert(0, str(HERE))
    from tests.servers.chat_server import ChatServer
    from tests.subjects.chain.reasoners import Reasoner, records

    settings: dict[str, Any] = {
        "data": ice.Records(records(20)),
        "out": out,
        "operators": ["delete", "replace", "shuffle", "truncate"],
        "k": [0.2, 0.5],
        "attributions": ["random", "leave-one-out", "self-report", "position"],
    }
    with ChatServer(Reasoner(genuine=0.5, ratings=lambda step: step)) as server:
        if hasattr(ice, "evaluate_chains"):  # before chains were a subject of every run
            ice.evaluate_chains("scripted", "gsm8k", base_url=server.url, **settings)
        else:
            ice.evaluate(ice.Served("scripted", base_url=server.url), "gsm8k", **settings)


def _size(run: Path) -> str:
    ledger, examples = _ledger(run), _examples(run)
    return f"{len(ledger)} rows, {len(examples)} outcomes"


def _differences(before: Path, after: Path, *, scores: float) -> Iterator[str]:
    """Describe everything in which two runs differ."""
    yield from _compared("ledger", _ledger(before), _ledger(after), tolerance=scores)
    yield from _compared("examples", _examples(before), _examples(after), tolerance=max(EXACT, scores))
    yield from _compared_json("summary", _summary(before), _summary(after), tolerance=max(EXACT, scores))


def _compared(what: str, before: pd.DataFrame, after: pd.DataFrame, *, tolerance: float) -> Iterator[str]:
    for side, missing in (
        ("lost", before.index.difference(after.index)),
        ("new", after.index.difference(before.index)),
    ):
        if len(missing):
            yield f"{what}: {len(missing)} {side} rows, as {missing[0]}"
    shared = before.index.intersection(after.index)
    left, right = before.loc[shared], after.loc[shared]
    for column in (name for name in before.columns if name in after.columns):
        differ = [
            key for key, a, b in zip(shared, left[column], right[column], strict=True) if not _same(a, b, tolerance)
        ]
        if differ:
            first = differ[0]
            yield (
                f"{what}.{column}: {len(differ)} of {len(shared)} differ, as {first}: "
                f"{left.loc[first][column]!r} and {right.loc[first][column]!r}"
            )


def _compared_json(where: str, before: Any, after: Any, *, tolerance: float) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in before:
            if name not in after:
                yield f"{where}.{name} is lost"
            else:
                yield from _compared_json(f"{where}.{name}", before[name], after[name], tolerance=tolerance)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, (a, b) in enumerate(zip(before, after, strict=True)):
            yield from _compared_json(f"{where}[{place}]", a, b, tolerance=tolerance)
    elif not _same(before, after, tolerance):
        yield f"{where}: {before!r} and {after!r}"


def _same(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, float | np.ndarray | list | tuple) and not isinstance(a, str) and b is not None:
        left, right = np.asarray(a), np.asarray(b)
        if left.dtype.kind in "fiub" and right.dtype.kind in "fiub":
            return left.shape == right.shape and bool(np.allclose(left, right, rtol=0, atol=tolerance, equal_nan=True))
        return left.tolist() == right.tolist()
    if a is None or b is None or a is pd.NA:
        return _is_missing(a) and _is_missing(b)
    return bool(a == b)


def _is_missing(value: Any) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value))


def _ledger(run: Path) -> pd.DataFrame:
    table = pd.concat([pd.read_parquet(path) for path in sorted(run.glob("ledger/*.parquet"))], ignore_index=True)
    rows = [_row(record) for record in table.to_dict("records")]
    frame = pd.DataFrame(rows)
    return _by_key(frame)


def _by_key(frame: pd.DataFrame) -> pd.DataFrame:
    found = frame.set_index("key").sort_index()
    assert found.index.is_unique, "a row is there twice"
    return found


def _row(record: dict[str, Any]) -> dict[str, Any]:
    """A row of format 1 or 2 by the names of format 2."""
    if "set_index" in record:
        record = {**record, **_of_format_1(record)}
    if record["kind"] == "probe" and record["attribution"] == "leave-one-out":  # once a row of its own kind
        record = {**record, "direction": "necessity", "size": 1, "draw": None}
    key = tuple(
        ""
        if _is_missing(record[name])
        else str(int(record[name]))
        if isinstance(record[name], float)
        else str(record[name])
        for name in _KEY
        if not (name == "set" and record["kind"] == "rationale")
    )
    ids = None if record["scores"][0] in (0.0, -1000.0, np.log(0.5)) else np.asarray(record["input_ids"])  # of steps
    return {"key": "|".join(key), "kept": np.asarray(record["kept"]), "input_ids": ids,
            "scores": np.asarray(record["scores"])}  # fmt: skip


def _of_format_1(record: dict[str, Any]) -> dict[str, Any]:
    kind, *names = record["kind"].split(":", 1)
    name = names[0] if names else None
    found: dict[str, Any] = {"kind": kind, "attribution": None, "null": None, "set": record["set_index"]}
    if kind == "random":
        null, _, attribution = (name or "").partition(":")
        shared = name is None
        found |= {"null": "size" if shared or not attribution else null, "attribution": attribution or name}
    elif kind == "rationale":
        found["attribution"] = name
    elif kind == "probe" and name == "leave-one-out" and not _is_missing(record["draw"]):
        found["kind"] = "leave-one-out"
    elif kind == "probe" and name is not None and name.startswith("eraser:"):
        found |= {"kind": "eraser", "attribution": name.removeprefix("eraser:")}
    elif kind == "probe":
        found["attribution"] = name
    elif kind in ("shuffle", "truncate"):
        found |= {"kind": "arranged", "operator": kind}
    return found


def _examples(run: Path) -> pd.DataFrame:
    if (run / "examples.jsonl").exists():
        frame = pd.DataFrame([json.loads(line) for line in (run / "examples.jsonl").read_text().splitlines()])
    else:
        frame = pd.read_parquet(run / "examples.parquet")
    names = ["example_id", "attribution", "null", "operator", "direction", "k"]
    frame["key"] = [
        "|".join(str(None if _is_missing(v) else v) for v in row) for row in frame[names].astype(object).values
    ]
    numbers = [
        name
        for name in frame.columns
        if name not in (*names, "flags", "exact", "weak_signal", "negative_signal", "ties")
    ]
    return _by_key(frame[numbers])


def _summary(run: Path) -> Any:
    content = json.loads((run / "summary.json").read_text())
    content["chains"] = content.pop("cot", content.get("chains"))
    for line in content["configurations"]:
        if isinstance(line.get("verdict"), dict):
            line["excludes_chance"] = line["verdict"]["excludes_chance"]
    for line in (content["chains"] or {}).get("raw", ()):
        line.pop("agree", None)  # it follows from the two fields beside it
    del content["schema"]
    return _with_texts(content)


def _with_texts(content: Any) -> Any:
    """The content with the text of each verdict in its place."""
    if isinstance(content, list):
        return [_with_texts(each) for each in content]
    if not isinstance(content, dict):
        return content.removeprefix("openai:") if isinstance(content, str) else content
    return content["text"] if "highest" in content else {name: _with_texts(each) for name, each in content.items()}


if __name__ == "__main__":
    main()
