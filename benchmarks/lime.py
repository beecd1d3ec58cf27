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
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import ice_eval as ice
from ice_eval.attributions.surrogates import Lime
from ice_eval.encoding import encode
from ice_eval.models import Labels
from ice_eval.records import Encoded
from ice_eval.tasks import load_task

sys.path.insert(0, str(Path(__file__).parent))
from _one_by_one import label_scores, seconds_per_row, some_of
from _synthetic import device_name, is_random, model_of, random_task


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
    labels, ours = model.labels(task), manifest.cost.attribution_seconds["lime"]
    timed = some_of(probes, arguments.loop_rows)
    per_row = seconds_per_row(model, [row.input_ids for row in timed], labels)
    result = {
        "model": model.name,
        "device": device_name(model),
        "threads": torch.get_num_threads(),
        "examples": arguments.n,
        "operator": arguments.operator,
        "probes": len(probes),
        "distinct_probes": len({row.input_ids for row in probes}),
        "tokens_of_probes": sum(len(row.input_ids) for row in probes),
        "tokens_computed": manifest.cost.probe_tokens["lime"],
        "seconds": ours,
        "probes_per_second": round(len(probes) / ours, 1),
        "loop_probes_timed": len(timed),
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
    task = random_task(max(arguments.n, 64)) if is_random(arguments.model) else load_task(arguments.task)
    return model_of(arguments.model, device=arguments.device), task


def _has_captum() -> bool:
    """Whether captum can be imported; it needs matplotlib to."""
    return all(importlib.util.find_spec(name) is not None for name in ("captum", "matplotlib"))


def _captum(model: Any, item: Encoded, labels: Labels, n_samples: int) -> float:
    """Seconds per probe of captum's own loop, which asks for one probe at a time unless told otherwise."""
    from captum.attr import Lime as CaptumLime

    def forward(keep: torch.Tensor) -> torch.Tensor:
        kept = item.tokens_kept(keep[0].bool().numpy())
        scores = label_scores(model, item.ids[kept], labels)
        return scores[1:2] - scores[0:1]

    method = CaptumLime(forward)
    method.attribute(torch.ones(1, item.n_units), baselines=0.0, n_samples=2)  # loads the regression
    started = time.perf_counter()
    method.attribute(torch.ones(1, item.n_units), baselines=0.0, n_samples=n_samples)
    return (time.perf_counter() - started) / n_samples


if __name__ == "__main__":
    main()
