"""Attributions of a run against those of captum with its best batching, in one process and in turns.

    python benchmarks/against_captum.py --model MODEL --data sst2.jsonl
    python benchmarks/against_captum.py --model smollm2 --data sst2.jsonl --n 2 --methods lime --batches 1,64
    python benchmarks/against_captum.py --device cuda --model random:qwen2-7b --n 16

Needs captum. Prints JSON. Machines are noisy: medians of ratios, not seconds, are what to compare, and where others
work on the same machine `OMP_NUM_THREADS=1` with `--clock cpu`. Both explain the same model.

ratio         seconds of captum with the batch that suited it best, against seconds of the attribution in a run
one_by_one    the same for captum's own default, one perturbation at a time, where `--batches` has a 1
difference    largest difference of two attributions of the same definition; of LIME and KernelSHAP, by the probes that
              the run drew
error         of KernelSHAP: mean distance from the Shapley values of many probes, ours and captum's with as many
"""

import argparse
import dataclasses
import json
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import torch
from captum.attr import FeatureAblation, IntegratedGradients, KernelShap, Lime, LimeBase
from numpy.typing import NDArray

import ice_eval as ice
from ice_eval.attributions import method_of
from ice_eval.attributions.perturbation import KernelShap as OurKernelShap
from ice_eval.encoding import encode
from ice_eval.pipeline import part
from ice_eval.records import PROTECTED, Encoded, Inputs
from ice_eval.seeding import rng_for
from ice_eval.tasks import FileData, load_task

sys.path.insert(0, str(Path(__file__).parent))
from _synthetic import device_name, is_random, model_of, random_task

Clock = Callable[[], float]
CLOCKS: dict[str, Clock] = {"wall": time.perf_counter, "cpu": time.process_time}
METHODS = ("occlusion", "integrated-gradients", "lime", "kernel-shap")
_MANY, _MOST_TEXTS = 2048, 4
"""Probes of the Shapley values that errors are counted from, and texts whose errors are counted."""


def main() -> None:
    arguments = _arguments()
    warnings.filterwarnings("ignore")
    model = model_of(arguments.model, device=arguments.device)
    task = _task(arguments)
    items = [encode(model.codec, task, example) for example in task.examples(limit=arguments.n)]
    labels, clock = model.labels(task), CLOCKS[arguments.clock]
    result: dict[str, Any] = {
        "model": model.name,
        "device": device_name(model),
        "threads": torch.get_num_threads(),
        "texts": len(items),
        "units": [item.n_units for item in items],
    }
    for name in arguments.methods:
        spec = _spec(name, arguments)
        texts = [Text(model, labels, item) for item in items]
        ours, theirs = list[float](), list[dict[int, float]]()
        _run(model, task, name, spec, 1, clock)  # warms up
        _captum(texts[0], name, arguments, arguments.batches[-1])
        for repetition in range(arguments.repetitions):
            seconds, explained = _run(model, task, name, spec, len(items), clock)
            ours.append(seconds)
            # Later rounds try the two batches that were best in the first.
            batches = sorted(theirs[0], key=theirs[0].__getitem__)[:2] if repetition else arguments.batches
            theirs.append({size: _seconds(texts, name, arguments, size) for size in batches})
        ratios = [min(tried.values()) / mine for tried, mine in zip(theirs, ours, strict=True)]
        result[name] = {
            "probes_or_steps": sum(_n_evaluations(name, spec, item) for item in items),
            "best_batch": min(theirs[0], key=theirs[0].__getitem__),
            "ratio": round(statistics.median(ratios), 2),
            "ratios": [round(ratio, 2) for ratio in ratios],
            **({"one_by_one": round(theirs[0][1] / ours[0], 2)} if 1 in theirs[0] else {}),
            "difference": max(
                _difference(text, name, spec, vector) for text, vector in zip(texts, explained, strict=True)
            ),
        }
        if name == "kernel-shap" and arguments.errors:
            result[name]["error"] = _errors(texts, explained, arguments)
        print(json.dumps({name: result[name]}), file=sys.stderr, flush=True)
    print(json.dumps(result, indent=2))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2", help="as for `ice run`, or random:qwen2-7b, random:bert-base")
    parser.add_argument("--data", type=Path, help="sentences with labels; default: the demo reviews")
    parser.add_argument("--n", type=int, default=16)
    parser.add_argument("--n-samples", type=int, default=500)
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--operator", default="delete", choices=["delete", "mask-unk", "mask-pad"])
    parser.add_argument("--methods", type=lambda text: text.split(","), default=METHODS)
    parser.add_argument("--batches", type=lambda text: [*map(int, text.split(","))], default=[16, 64, 256])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--errors", action="store_true", help="count the errors of KernelSHAP; takes long")
    return parser.parse_args()


def _task(arguments: argparse.Namespace) -> ice.Task:
    if is_random(arguments.model):
        return random_task(max(arguments.n, 64))
    if arguments.data is None:
        return load_task("demo")
    return dataclasses.replace(load_task("sst2"), data=FileData(arguments.data))


def _spec(name: str, arguments: argparse.Namespace) -> str:
    if name == "integrated-gradients":
        return f"{name}:steps={arguments.steps}"
    samples = "" if name == "occlusion" else f":n_samples={arguments.n_samples}"
    return f"{name}{samples}:operator={arguments.operator}"


def _n_evaluations(name: str, spec: str, item: Encoded) -> int:
    method: Any = method_of(spec)
    return int(method.steps if name == "integrated-gradients" else method.n_probes(item.n_units))


def _run(
    model: Any, task: ice.Task, name: str, spec: str, n: int, clock: Clock
) -> tuple[float, list[NDArray[np.float64]]]:
    """Return the seconds that a run counts for an attribution of `n` texts, and the numbers of each text."""
    run_clock = mock.patch.object(part, "time", SimpleNamespace(monotonic=clock))
    with tempfile.TemporaryDirectory() as folder, run_clock:
        chosen = {name: method_of(spec)}
        run = ice.evaluate(model, task, n=n, m=2, attributions=chosen, operators=["delete"], out=folder + "/run")
        rows = [row for part in run.folder.parts() for row in run.folder.inputs(part)]
        cost = run.folder.manifest().cost
    assert cost is not None, "a finished run has summed its costs"
    return cost.attribution_seconds[name], [np.array(row.attributions.get(name, ())) for row in rows]


class Text:
    """One text, and the model as a user of captum wraps it: log-odds of the predicted label."""

    def __init__(self, model: Any, labels: Any, item: Encoded) -> None:
        self.model, self.labels, self.item = model, labels, item
        self.first = torch.tensor([each[0] for each in labels.ids], device=model.device)
        with torch.inference_mode():
            self.target = int(self._scores(item.full())[0].argmax())
        self.tokens = torch.from_numpy(np.flatnonzero(item.unit_of != PROTECTED)).to(model.device)
        with torch.no_grad():
            self.embedded = model.model.get_input_embeddings()(torch.from_numpy(item.ids).to(model.device))[None]

    def kept(self, keep: torch.Tensor, operator: str) -> torch.Tensor:
        """Return the log-odds of rows of 0 and 1, (rows, units); a batch is padded to its longest row, if uneven."""
        inside = self.item.tokens_kept(keep.bool().cpu().numpy())
        special = self.item.special
        written = {"mask-unk": special.unk, "mask-pad": special.pad}
        rows = self.item.without(inside) if operator == "delete" else self.item.overwritten(inside, written[operator])
        with torch.inference_mode():
            return self._odds(self._scores(rows)).clone()

    def at(self, points: torch.Tensor) -> torch.Tensor:
        """Return the log-odds with `points` as the embeddings of units, (rows, tokens of units, width)."""
        moved = self.embedded.expand(len(points), -1, -1).index_copy(1, self.tokens, points)
        return self._odds(self._read(Inputs.join([self.item.full()] * len(points)), inputs_embeds=moved))

    def _scores(self, rows: Inputs) -> torch.Tensor:
        ids = torch.from_numpy(rows.padded(0)[0]).to(self.model.device)
        return self._read(rows, input_ids=ids)

    def _read(self, rows: Inputs, **given: torch.Tensor) -> torch.Tensor:
        _, mask, segments = (torch.from_numpy(each).to(self.model.device) for each in rows.padded(0))
        network = self.model.model
        if np.ptp(rows.lengths):
            given["attention_mask"] = mask
        if self.labels.are_classes:
            if getattr(network.config, "type_vocab_size", 0) > 1:
                given["token_type_ids"] = segments
            return network(**given).logits[:, self.first]  # type: ignore[no-any-return]
        states = network.base_model(**given, use_cache=False).last_hidden_state
        last = states[torch.arange(len(states)), torch.from_numpy(rows.lengths - 1)]
        return network.get_output_embeddings()(last)[:, self.first]  # type: ignore[no-any-return]

    def _odds(self, scores: torch.Tensor) -> torch.Tensor:
        others = [label for label in range(len(self.first)) if label != self.target]
        return scores[:, self.target] - scores[:, others].logsumexp(dim=1)


def _captum(text: Text, name: str, arguments: argparse.Namespace, batch: int, seed: int = 0) -> NDArray[np.float64]:
    """Return captum's own explanation with as many evaluations, so many at once."""
    torch.manual_seed(seed)
    if name == "integrated-gradients":
        return _integrated(text, arguments.steps, batch)
    forward, (whole, nothing) = _rows(text, arguments.operator), _ends(text)
    if name == "occlusion":
        found = FeatureAblation(forward).attribute(whole, baselines=nothing, perturbations_per_eval=batch)
        return found[0].cpu().double().numpy()  # type: ignore[no-any-return]
    samples = _n_evaluations(name, _spec(name, arguments), text.item)
    method = Lime(forward) if name == "lime" else KernelShap(forward)
    found = method.attribute(whole, baselines=nothing, n_samples=samples, perturbations_per_eval=min(batch, samples))
    return found[0].cpu().double().numpy()  # type: ignore[no-any-return]


def _rows(text: Text, operator: str) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda keep: text.kept(keep, operator)


def _ends(text: Text) -> tuple[torch.Tensor, torch.Tensor]:
    whole = torch.ones(1, text.item.n_units, device=text.model.device)
    return whole, torch.zeros_like(whole)


def _integrated(text: Text, steps: int, batch: int) -> NDArray[np.float64]:
    units = text.embedded.index_select(1, text.tokens)
    found = IntegratedGradients(text.at).attribute(
        units, baselines=torch.zeros_like(units), n_steps=steps, method="gausslegendre", internal_batch_size=batch
    )
    per_token = np.zeros(len(text.item.ids))
    per_token[text.tokens.cpu().numpy()] = found[0].detach().double().sum(dim=1).cpu().numpy()
    return text.item.per_unit(per_token)


def _seconds(texts: Sequence[Text], name: str, arguments: argparse.Namespace, batch: int) -> float:
    clock = CLOCKS[arguments.clock]
    started = clock()
    for text in texts:
        _captum(text, name, arguments, batch)
    return clock() - started


def _difference(text: Text, name: str, spec: str, ours: NDArray[np.float64]) -> float:
    """Return the largest difference from captum's values of the same definition, with the same probes."""
    method: Any = method_of(spec)
    if name == "integrated-gradients":
        return float(np.abs(_integrated(text, method.steps, 64) - ours).max())
    forward, (whole, nothing) = _rows(text, method.operator), _ends(text)
    if name == "occlusion":
        found = FeatureAblation(forward).attribute(whole, baselines=nothing, perturbations_per_eval=64)
        return float(np.abs(found[0].cpu().double().numpy() - ours).max())
    masks = method.masks(text.item.n_units, rng_for(0, text.item.example_id, f"attribution:{name}"))

    def probes(_: object, **others: object) -> Iterator[torch.Tensor]:
        yield from torch.from_numpy(masks).float().to(text.model.device).split(1)

    class Credit:
        """Our regression, on what captum recorded."""

        def fit(self, batches: Any) -> None:
            [(rows, values, _)] = batches
            self.credit = method.credit(rows.bool().cpu().numpy(), values.double().cpu().numpy())

        def representation(self) -> torch.Tensor:
            return torch.from_numpy(self.credit)[None]

    base = LimeBase(
        forward,
        Credit(),  # type: ignore[arg-type]
        lambda *given, **others: 1.0,
        probes,  # type: ignore[arg-type]
        True,
        lambda row, *given, **others: row,
        None,
    )
    found = base.attribute(whole, n_samples=len(masks), perturbations_per_eval=64)
    return float(np.abs(found[0].cpu().double().numpy() - ours).max())


def _errors(
    texts: Sequence[Text], ours: Sequence[NDArray[np.float64]], arguments: argparse.Namespace
) -> dict[str, Any]:
    """Return mean absolute errors of both, over units, of texts whose values are estimates."""
    errors: dict[str, list[float]] = {"ours": [], "captum": []}
    estimated = [pair for pair in zip(texts, ours, strict=True) if 2 ** pair[0].item.n_units > arguments.n_samples]
    for text, vector in estimated[:_MOST_TEXTS]:
        many = OurKernelShap(n_samples=_MANY, operator=arguments.operator)
        masks = many.masks(text.item.n_units, np.random.default_rng(0))
        kept = torch.from_numpy(masks).split(256)
        values = torch.cat([text.kept(part, arguments.operator) for part in kept]).double().cpu().numpy()
        true = many.credit(masks, values)
        errors["ours"].append(float(np.abs(vector - true).mean()))
        errors["captum"].append(float(np.abs(_captum(text, "kernel-shap", arguments, 64) - true).mean()))
    return {side: float(np.mean(found)) for side, found in errors.items()}


if __name__ == "__main__":
    main()
