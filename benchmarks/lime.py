"""LIME through the run's scorer against a plain batch-1 loop over the same probes, in one process.

    python benchmarks/lime.py --device cpu --n 3
    python benchmarks/lime.py --device cuda --model random:qwen2-7b --n 32

Prints JSON. Machines are noisy: ratios, not seconds, are what to compare.

ratio         seconds of the loop, from a sample of the probes, against seconds of the attribution, regression included
ratio_captum  the same for captum's Lime with its own loop and as many probes, where captum is installed
"""

import argparse
import importlib.util
import json
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import ice_eval as ice
from ice_eval.attributions.lime import Lime
from ice_eval.encoding import encode
from ice_eval.models import Labels, load_model
from ice_eval.records import Encoded
from ice_eval.results import LedgerRow
from ice_eval.tasks import load_task

sys.path.insert(0, str(Path(__file__).parent))
from _synthetic import random_model, random_task


def main() -> None:
    arguments = _arguments()
    model, task = _model_and_task(arguments)
    method = Lime(n_samples=arguments.n_samples, operator=arguments.operator)
    ice.evaluate(model, task, n=2, m=2, attributions={"lime": Lime(n_samples=8)}, operators=["delete"])  # warms up
    with tempfile.TemporaryDirectory() as folder:
        run = ice.evaluate(
            model, task, n=arguments.n, m=2, attributions={"lime": method}, operators=["delete"], out=folder + "/run"
        )
        manifest = run.folder.manifest()
        parts = [run.folder.ledger(part, inputs=True) for part in run.folder.parts()]
    probes = [row for part in parts for row in part if row.key.kind == "probe:lime"]
    labels, ours = model.labels(task), manifest["attribution_seconds"]["lime"]
    order = np.random.default_rng(0).permutation(len(probes))[: arguments.loop_rows]
    per_row = _batch_one(model, [probes[i] for i in order], labels)
    result = {
        "model": model.name,
        "device": torch.cuda.get_device_name() if model.device.startswith("cuda") else platform.processor(),
        "threads": torch.get_num_threads(),
        "examples": arguments.n,
        "operator": arguments.operator,
        "probes": len(probes),
        "distinct_probes": len({row.input_ids for row in probes}),
        "tokens_of_probes": sum(len(row.input_ids) for row in probes),
        "tokens_computed": manifest["probe_tokens"]["lime"],
        "seconds": ours,
        "probes_per_second": round(len(probes) / ours, 1),
        "loop_probes_timed": len(order),
        "loop_probes_per_second": round(1 / per_row, 2),
        "ratio": round(len(probes) * per_row / ours, 1),
    }
    if _has_captum() and arguments.operator == "delete":
        examples = task.examples(limit=arguments.n)
        items = [encode(model.codec, task, example) for example in examples]
        seconds = np.mean([_captum(model, item, labels, arguments.loop_rows) for item in items])
        result["ratio_captum"] = round(len(probes) * float(seconds) / ours, 1)
    print(json.dumps(result, indent=2))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2", help="as for `ice run`, or random:qwen2-7b, random:qwen2-tiny")
    parser.add_argument("--task", default="demo", help="for models that are not random")
    parser.add_argument("--n", type=int, default=3)
    parser.add_argument("--n-samples", type=int, default=500)
    parser.add_argument("--operator", default="delete")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--loop-rows", type=int, default=60)
    return parser.parse_args()


def _model_and_task(arguments: argparse.Namespace) -> tuple[Any, ice.Task]:
    if arguments.model.startswith("random:"):
        dtype = torch.bfloat16 if arguments.device.startswith("cuda") else torch.float32
        model = random_model(arguments.model.removeprefix("random:"), device=arguments.device, dtype=dtype)
        return model, random_task(max(arguments.n, 64))
    return load_model(arguments.model, device=arguments.device), load_task(arguments.task)


def _batch_one(model: Any, rows: Sequence[LedgerRow], labels: Labels) -> float:
    """Seconds per probe, one forward pass of the whole model each, as a simple script would do it."""
    started = time.perf_counter()
    for row in rows:
        _log_odds(model, np.array(row.input_ids), labels)
    return (time.perf_counter() - started) / len(rows)


def _log_odds(model: Any, ids: Any, labels: Labels) -> float:
    first = [each[0] for each in labels.ids]
    with torch.inference_mode():
        logits = model.model(input_ids=torch.tensor(ids[None], device=model.device)).logits
        scores = torch.log_softmax(logits[0, -1].float(), dim=-1)[first].cpu()
    return float(scores[1] - scores[0])


def _has_captum() -> bool:
    """Whether captum can be imported; it needs matplotlib to."""
    return all(importlib.util.find_spec(name) is not None for name in ("captum", "matplotlib"))


def _captum(model: Any, item: Encoded, labels: Labels, n_samples: int) -> float:
    """Seconds per probe of captum's own loop, which asks for one probe at a time unless told otherwise."""
    from captum.attr import Lime as CaptumLime

    def forward(keep: torch.Tensor) -> torch.Tensor:
        kept = item.tokens_kept(keep[0].bool().numpy())
        return torch.tensor([_log_odds(model, item.ids[kept], labels)])

    method = CaptumLime(forward)
    method.attribute(torch.ones(1, item.n_units), baselines=0.0, n_samples=2)  # loads the regression
    started = time.perf_counter()
    method.attribute(torch.ones(1, item.n_units), baselines=0.0, n_samples=n_samples)
    return (time.perf_counter() - started) / n_samples


if __name__ == "__main__":
    main()
