"""Rows per second of a full evaluation against a plain batch-1 loop over the same rows, in one process.

    python benchmarks/throughput.py [--model smollm2] [--task demo] [--n 20] [--m 50] [--device cpu] [--loop-rows 60]

Prints JSON. Machines are noisy: the ratio, not the seconds, is what to compare.
"""

import argparse
import json
import platform
import time
from pathlib import Path

import numpy as np
import torch

import ice_eval as ice
from ice_eval.models import load_model
from ice_eval.results import RunFolder
from ice_eval.tasks import load_task


def main() -> None:
    arguments = _arguments()
    model = load_model(arguments.model, device=arguments.device)
    task = load_task(arguments.task)
    started = time.perf_counter()
    run = ice.evaluate(model, task, n=arguments.n, m=arguments.m, data=arguments.data)
    ours = time.perf_counter() - started
    rows = _rows(run)
    labels = model.labels(task)
    chosen = np.random.default_rng(0).permutation(len(rows))[: arguments.loop_rows]
    loop = _batch_one(model, [rows[i] for i in chosen], labels)
    rate, plain = len(rows) / ours, len(chosen) / loop
    print(
        json.dumps(
            {
                "model": model.name,
                "device": model.device,
                "dtype": model.dtype,
                "threads": torch.get_num_threads(),
                "machine": platform.processor() or platform.machine(),
                "rows": len(rows),
                "seconds_end_to_end": round(ours, 2),
                "rows_per_second": round(rate, 1),
                "loop_rows_timed": len(chosen),
                "loop_rows_per_second": round(plain, 2),
                "ratio": round(rate / plain, 2),
            },
            indent=2,
        )
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--task", default="demo")
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--n", type=int, default=20)
    parser.add_argument("--m", type=int, default=50)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--loop-rows", type=int, default=60)
    return parser.parse_args()


def _rows(run: ice.Run) -> list[tuple[int, ...]]:
    folder = RunFolder.existing(run.path)
    return [row.input_ids for part in folder.parts() for row in folder.ledger(part, inputs=True)]


def _batch_one(model, rows, labels) -> float:  # type: ignore[no-untyped-def]
    """Seconds of a forward per row with the whole head, as a simple script would do it."""
    first = [ids[0] for ids in labels.ids]
    started = time.perf_counter()
    for row in rows:
        with torch.inference_mode():
            logits = model.model(input_ids=torch.tensor([row], device=model.device)).logits
            torch.log_softmax(logits[0, -1].float(), dim=-1)[first].cpu()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
