"""A full evaluation against a plain batch-1 loop over the same rows, in one process.

    python benchmarks/throughput.py --device cpu --task sst2 --data sst2.jsonl
    python benchmarks/throughput.py --device cuda --model random:qwen2-7b --n 500
    python benchmarks/throughput.py --device cuda --model random:qwen2-7b --n 16 --tokens 400

Prints JSON. Machines are noisy: ratios, not seconds, are what to compare.

ratio            end to end (encoding, attributions, statistics and files included) against the loop
ratio_package    against what the paper's package does: batch 1, a null for each attribution, and the full input scored
                 again with every row
share_of_peak    2 × parameters without embeddings × computed tokens / seconds / the largest matrix product measured
                 here, for the scoring of each operator's rows
"""

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

import ice_eval as ice
from ice_eval.models import Labels
from ice_eval.records import ModelInput
from ice_eval.results import LedgerRow, RunFolder
from ice_eval.scoring import Scorer
from ice_eval.tasks import FileData, load_task

sys.path.insert(0, str(Path(__file__).parent))
from _one_by_one import seconds_per_row, some_of
from _synthetic import device_name, is_random, model_of, random_task

_SHAPES = [(1024, 1024, 1024), (4096, 4096, 4096), (8192, 8192, 8192), (16384, 3584, 18944), (32768, 3584, 18944)]


def main() -> None:
    arguments = _arguments()
    model, task = _model_and_task(arguments)
    _warm(model, task)
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        run = ice.evaluate(
            model, task, n=arguments.n, m=arguments.m, attributions=["attention", "gradient"], out=Path(folder) / "run"
        )
        ours = time.perf_counter() - started
        rows = _rows(run.folder)
        manifest = run.folder.manifest()
    labels = model.labels(task)
    result = {
        "model": model.name,
        "device": device_name(model),
        "dtype": model.dtype,
        "threads": torch.get_num_threads(),
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__, "ice-eval": ice.__version__},
        "examples": arguments.n,
        "random_sets": arguments.m,
        "rows": len(rows),
        "tokens_of_rows": sum(len(row.input_ids) for row in rows),
        "tokens_computed": manifest["tokens"],
        "seconds": round(ours, 2),
        "rows_per_second": round(len(rows) / ours, 1),
        "tokens_per_second": round(manifest["tokens"] / ours),
        "seconds_of_attributions": round(sum(manifest["attribution_seconds"].values()), 2),
        "noise": manifest["noise_guard"],
        "peak_memory_gb": round(_peak_memory(model.device), 2),
    }
    print(
        json.dumps({**result, **_loop(model, labels, rows, ours, arguments), **_scoring(model, labels, rows)}, indent=2)
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2", help="as for `ice run`, or random:qwen2-7b, random:qwen2-tiny")
    parser.add_argument("--task", default="demo", help="for models that are not random")
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--n", type=int, default=20)
    parser.add_argument("--m", type=int, default=50)
    parser.add_argument("--tokens", type=int, default=None, help="length of random texts; else that of SST-2")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--loop-rows", type=int, default=60)
    return parser.parse_args()


def _model_and_task(arguments: argparse.Namespace) -> tuple[Any, ice.Task]:
    model = model_of(arguments.model, device=arguments.device)
    if is_random(arguments.model):
        return model, random_task(max(arguments.n, 64), tokens=arguments.tokens)
    task = load_task(arguments.task)
    return model, task if arguments.data is None else replace(task, data=FileData(arguments.data))


def _warm(model: Any, task: ice.Task) -> None:
    """Libraries load and choose their kernels on first use, for us and for the loop alike."""
    ice.evaluate(model, task, n=2, m=4, attributions=["attention", "gradient"])


def _rows(folder: RunFolder) -> list[LedgerRow]:
    return [row for part in folder.parts() for row in folder.ledger(part, inputs=True)]


def _loop(
    model: Any, labels: Labels, rows: Sequence[LedgerRow], ours: float, arguments: argparse.Namespace
) -> dict[str, Any]:
    """What the same rows cost one by one, from a sample of them."""
    timed = some_of(rows, arguments.loop_rows)
    per_row = seconds_per_row(model, [row.input_ids for row in timed], labels)
    full = [row.input_ids for row in rows if row.key.kind == "full"]
    per_full = seconds_per_row(model, full[: arguments.loop_rows], labels)
    # Two attributions, two operators, m + 1 sets each: every row with the full input beside it.
    package = len(full) * 2 * 2 * (arguments.m + 1) * (per_row + per_full)
    return {
        "loop_rows_timed": len(timed),
        "loop_rows_per_second": round(1 / per_row, 2),
        "ratio": round(len(rows) * per_row / ours, 1),
        "ratio_package": round(package / ours, 1),
    }


def _scoring(model: Any, labels: Labels, rows: Sequence[LedgerRow]) -> dict[str, Any]:
    """Rows and tokens per second of scoring alone, for each operator, part by part as in a run."""
    parameters = sum(
        p.numel() for name, p in model.model.named_parameters() if "embed" not in name and "lm_head" not in name
    )
    peak = _matmul_peak(model.model.dtype, model.device)
    found: dict[str, Any] = {"non_embedding_parameters": parameters, "matmul_peak_tflops": round(peak / 1e12, 2)}
    examples = list(dict.fromkeys(row.key.example_id for row in rows))
    part_of = {example: index // 16 for index, example in enumerate(examples)}
    for operator in ("delete", "infill"):
        parts: dict[int, list[ModelInput]] = {}
        for row in rows:
            if row.key.operator == operator:
                parts.setdefault(part_of[row.key.example_id], []).append(row.input)
        scorer = Scorer(model, labels, budget=model.default_budget())
        started = time.perf_counter()
        for submitted in [scorer.submit(part, prefix=_common(rows)) for part in parts.values()]:
            submitted.collect()
        seconds = time.perf_counter() - started
        found[f"scoring_{operator}"] = {
            "rows_per_second": round(scorer.counts.rows / seconds, 1),
            "tokens_per_second": round(scorer.counts.tokens / seconds),
            "share_of_peak": round(2 * parameters * scorer.counts.tokens / seconds / peak, 3),
        }
    return found


def _common(rows: Sequence[LedgerRow]) -> int:
    """Leading ids that all rows have in common."""
    columns = zip(*(row.input_ids for row in rows if row.key.kind in {"full", "empty"}), strict=False)
    return next((i for i, column in enumerate(columns) if len(set(column)) > 1), 0)


def _matmul_peak(dtype: torch.dtype, device: str) -> float:
    """Largest rate of a matrix product, in operations per second."""
    shapes = _SHAPES if device.startswith("cuda") else _SHAPES[:2]
    return max(_matmul_rate(*shape, dtype, device) for shape in shapes)


def _matmul_rate(rows: int, inner: int, columns: int, dtype: torch.dtype, device: str) -> float:
    first, second = (torch.randn(shape, dtype=dtype, device=device) for shape in ((rows, inner), (inner, columns)))
    times = []
    for _ in range(8):
        started = time.perf_counter()
        first @ second
        if device.startswith("cuda"):
            torch.cuda.synchronize()
        times.append(time.perf_counter() - started)
    return 2 * rows * inner * columns / float(np.median(times[3:]))


def _peak_memory(device: str) -> float:
    if device.startswith("cuda"):
        return torch.cuda.max_memory_allocated() / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


if __name__ == "__main__":
    main()
