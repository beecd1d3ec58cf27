"""Cost of an evaluation as it grows: examples, random sets, length of texts, attributions.

    python benchmarks/scaling.py [--model random:qwen2-tiny] [--device cpu]

Prints JSON: a line per setting with rows, forward passes, tokens and seconds. `attributions` adds one after the other
to a finished run: the first brings the null along, and each further one scores its own rationales and nothing else.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import ice_eval as ice

sys.path.insert(0, str(Path(__file__).parent))
from _synthetic import model_of, random_task

_BASE = {"n": 32, "m": 20, "tokens": 24}
_GRID = {"n": [16, 32, 64, 128], "m": [10, 20, 50, 100], "tokens": [12, 24, 48, 96, 192]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="random:qwen2-tiny", help="as for `ice run`, or random:qwen2-7b")
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    model = model_of(arguments.model, device=arguments.device)
    _run(model, **{**_BASE, "n": 4}, attributions=["gradient"])  # libraries load on first use
    found: dict[str, Any] = {"model": model.name, "device": model.device, "base": _BASE}
    for name, values in _GRID.items():
        found[name] = [_run(model, **{**_BASE, name: value}, attributions=["gradient"]) for value in values]
    found["attributions"] = _one_by_one(model, ["gradient", "attention", "random"])
    print(json.dumps(found, indent=2))


def _run(
    model: Any, *, n: int, m: int, tokens: int, attributions: list[str], out: Path | None = None
) -> dict[str, Any]:
    started = time.perf_counter()
    run = ice.evaluate(model, random_task(n, tokens=tokens), n=n, m=m, attributions=attributions, out=out)
    seconds = time.perf_counter() - started
    spent = run.folder.manifest().cost
    cost = {name: getattr(spent, name) for name in ("rows", "forwards", "tokens", "rows_by_kind")}
    return {"n": n, "m": m, "tokens_per_text": tokens, **cost, "seconds": round(seconds, 2)}


def _one_by_one(model: Any, names: list[str]) -> list[dict[str, Any]]:
    """Return what each attribution adds to the same folder."""
    lines = []
    before: dict[str, Any] = {"rows": 0, "forwards": 0, "tokens": 0, "rows_by_kind": {}}
    with tempfile.TemporaryDirectory() as folder:
        for count, name in enumerate(names, start=1):
            after = _run(model, **_BASE, attributions=names[:count], out=Path(folder) / "run")
            added = {key: after[key] - before[key] for key in ("rows", "forwards", "tokens")}
            null = after["rows_by_kind"]["random"] - before["rows_by_kind"].get("random", 0)
            lines.append({"added": name, **added, "null_rows": null, "seconds": after["seconds"]})
            before = after
    return lines


if __name__ == "__main__":
    main()
