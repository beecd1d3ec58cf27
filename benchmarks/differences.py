"""Effect on a verdict of each point where we differ from the paper or its package.

python benchmarks/differences.py reviews.jsonl [--n 200] [--out FOLDER] [--only bf16-head] [--device cuda]

Runs SmolLM2 on the first reviews of a file (lines of {"text": …, "label": …}) with one choice changed at a time, and
prints win rate, interval and verdict beside those of the default. The prompt has four worked examples, except where the
whole prompt is in scope: there the default is repeated without them. About ten minutes per choice on two cores.
"""

import argparse
from pathlib import Path
from types import MethodType
from typing import Any

import ice_eval as ice
from ice_eval.models import Model, load_model

CHOICES: dict[str, dict[str, Any]] = {
    "default": {"task": "demo"},
    "own fills": {"task": "demo", "fills": "own"},
    "bf16 head": {"task": "demo"},
    "adaptive": {"task": "demo", "adaptive": "dataset"},
    "no shots": {"task": "sst2"},
    "whole-prompt scope": {"task": "sst2", "scope": "prompt"},
}


def with_bf16_head(model: Model) -> Model:
    """The same model with label logits rounded to bfloat16, as a model in half precision returns them."""
    exact = type(model)._head  # type: ignore[attr-defined]

    def rounded(self: Any, *arguments: Any) -> Any:
        return exact(self, *arguments).bfloat16().float()

    model._head = MethodType(rounded, model)  # type: ignore[attr-defined]
    model.check = MethodType(lambda self, *_, **__: [], model)  # type: ignore[method-assign]
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="keep the runs, and continue them")
    parser.add_argument("--only", choices=[name.replace(" ", "-") for name in CHOICES])
    given = parser.parse_args()
    for name, settings in CHOICES.items():
        slug = name.replace(" ", "-")
        if given.only in (None, slug):
            model = load_model(given.model, device=given.device, dtype="float32")
            run = ice.evaluate(
                with_bf16_head(model) if name == "bf16 head" else model,
                data=given.data,
                n=given.n,
                n_fills=1,  # as in the paper, so that one choice differs at a time
                out=None if given.out is None else given.out / slug,
                **settings,
            )
            show(name, run)


def show(name: str, run: ice.Run) -> None:
    for line in run.summary().itertuples():
        if line.operator != "all":
            low, high = line.win_rate_ci
            print(
                f"{name:<19} {line.attribution:<9} {line.operator:<7} {100 * line.win_rate:5.1f} % "
                f"[{100 * low:.1f}, {100 * high:.1f}]  strict {100 * line.win_rate_strict:5.1f} %  "
                f"ties {100 * line.tie_rate:4.1f} %  {line.verdict}",
                flush=True,
            )


if __name__ == "__main__":
    main()
