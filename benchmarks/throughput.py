"""A full evaluation against a plain batch-1 loop over the same rows, in one process.

    python benchmarks/throughput.py --device cpu --task sst2 --data sst2.jsonl
    python benchmarks/throughput.py --device cuda --model random:qwen2-7b --n 500
    python benchmarks/throughput.py --device cuda --model random:qwen2-7b --n 16 --tokens 400
    python benchmarks/throughput.py --device cuda --model random:bert-base --n 500 --dtype bfloat16

Prints JSON. Machines are noisy: ratios, not seconds, are what to compare.

ratio            end to end (encoding, attributions, statistics and files included) against the loop
ratio_package    against what the paper's package does: batch 1, a null for each attribution, and the full input scored
                 again with every row
share_of_peak    2 × parameters without embeddings × computed tokens / seconds / the largest matrix product measured
                 here, for the scoring of each operator's rows
"""

import argparse
import dataclasses
import json
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

import ice_eval as ice
from ice_eval.models import Labels
from ice_eval.records import Ids, Inputs, Kind
from ice_eval.results import RunFolder
from ice_eval.results.ledger import NO_NAMES, Ledger
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
        parts = _parts(run.folder)
        manifest = run.folder.manifest()
    cost, noise = manifest.cost, manifest.noise_guard
    assert cost is not None, "a finished run has summed its costs"
    labels, n_rows = model.labels(task), sum(map(len, parts))
    result = {
        "model": model.name,
        "device": device_name(model),
        "dtype": model.dtype,
        "threads": torch.get_num_threads(),
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__, "ice-eval": ice.__version__},
        "examples": arguments.n,
        "random_sets": arguments.m,
        "rows": n_rows,
        "tokens_of_rows": sum(len(part.inputs.ids) for part in parts),
        "tokens_computed": cost.tokens,
        "seconds": round(ours, 2),
        "rows_per_second": round(n_rows / ours, 1),
        "tokens_per_second": round(cost.tokens / ours),
        "seconds_of_attributions": round(sum(cost.attribution_seconds.values()), 2),
        "noise": None if noise is None else dataclasses.asdict(noise),
        "peak_memory_gb": round(_peak_memory(model.device), 2),
    }
    result |= _loop(model, labels, parts, ours, arguments) | _scoring(model, labels, parts)
    print(json.dumps(result, indent=2))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2", help="as for `ice run`, or random:qwen2-7b, random:bert-base")
    parser.add_argument("--task", default="demo", help="for models that are not random")
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--n", type=int, default=20)
    parser.add_argument("--m", type=int, default=50)
    parser.add_argument("--tokens", type=int, default=None, help="length of random texts; else that of SST-2")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default=None, help="float32, bfloat16 or float16; else what suits the device")
    parser.add_argument("--loop-rows", type=int, default=60)
    return parser.parse_args()


def _model_and_task(arguments: argparse.Namespace) -> tuple[Any, ice.Task]:
    model = model_of(arguments.model, device=arguments.device, dtype=arguments.dtype)
    if is_random(arguments.model):
        return model, random_task(max(arguments.n, 64), tokens=arguments.tokens, bare=model.codec.reads_pairs)
    task = load_task(arguments.task)
    return model, task if arguments.data is None else dataclasses.replace(task, data=FileData(arguments.data))


def _warm(model: Any, task: ice.Task) -> None:
    """Libraries load and choose their kernels on first use, for us and for the loop alike."""
    ice.evaluate(model, task, n=2, m=4, attributions=["attention", "gradient"])


def _parts(folder: RunFolder) -> list[Ledger]:
    return [folder.ledger(part, NO_NAMES, inputs=True) for part in folder.parts()]


def _loop(
    model: Any, labels: Labels, parts: Sequence[Ledger], ours: float, arguments: argparse.Namespace
) -> dict[str, Any]:
    """Return the cost of the same rows one by one, from a sample of them."""
    inputs = Inputs.join([part.inputs for part in parts])
    full = np.flatnonzero(np.concatenate([part.head["kind"] for part in parts]) == Kind.FULL)
    timed = some_of(range(len(inputs)), arguments.loop_rows)
    per_row = seconds_per_row(model, [inputs.row(index) for index in timed], labels)
    per_full = seconds_per_row(model, [inputs.row(index) for index in full[: arguments.loop_rows]], labels)
    # Two attributions, two operators, m + 1 sets each: every row with the full input beside it.
    package = len(full) * 2 * 2 * (arguments.m + 1) * (per_row + per_full)
    return {
        "loop_rows_timed": len(timed),
        "loop_rows_per_second": round(1 / per_row, 2),
        "ratio": round(len(inputs) * per_row / ours, 1),
        "ratio_package": round(package / ours, 1),
    }


def _scoring(model: Any, labels: Labels, parts: Sequence[Ledger]) -> dict[str, Any]:
    """Rows and tokens per second of scoring alone, for each operator, part by part as in a run."""
    parameters = sum(
        p.numel() for name, p in model.model.named_parameters() if "embed" not in name and "lm_head" not in name
    )
    peak, prefix = _matmul_peak(model.model.dtype, model.device), _common(parts)
    found: dict[str, Any] = {"non_embedding_parameters": parameters, "matmul_peak_tflops": round(peak / 1e12, 2)}
    for operator in ("delete", "infill"):
        rows = [part.inputs.take(_under(part, operator)) for part in parts]
        scorer = Scorer(model, labels, budget=model.default_budget())
        started = time.perf_counter()
        for submitted in [scorer.submit(each, prefix=prefix) for each in rows]:
            submitted.collect()
        seconds = time.perf_counter() - started
        found[f"scoring_{operator}"] = {
            "rows_per_second": round(scorer.counts.rows / seconds, 1),
            "tokens_per_second": round(scorer.counts.tokens / seconds),
            "share_of_peak": round(2 * parameters * scorer.counts.tokens / seconds / peak, 3),
        }
    return found


def _under(part: Ledger, operator: str) -> Ids:
    """Indices of the rows of one operator."""
    return np.flatnonzero(part.head["operator"] == part.names.operators.index(operator))


def _common(parts: Sequence[Ledger]) -> int:
    """Leading ids that all rows have in common."""
    whole = [
        part.inputs.row(index)
        for part in parts
        for index in np.flatnonzero(np.isin(part.head["kind"], [Kind.FULL, Kind.EMPTY]))
    ]
    columns = zip(*whole, strict=False)
    return next((place for place, column in enumerate(columns) if len(set(column)) > 1), 0)


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
