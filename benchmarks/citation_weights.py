"""Compare the attribution `context-cite` with the package of that name: the same weights, and time per ablation.

Needs an environment with `context-cite==0.0.4` beside ice-eval. Model, prompt, units and ablations are the same; both
are timed in this process, one after the other.

    python benchmarks/citation_weights.py answers.jsonl [--n 3] [--ablations 256] [--unit passage] [--batch-size 1]
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from context_cite.context_partitioner import BaseContextPartitioner
from context_cite.solver import LassoRegression
from context_cite.utils import aggregate_logit_probs, get_masks_and_logit_probs
from scipy.stats import spearmanr

from ice_eval.attributions.perturbation import ContextCite
from ice_eval.models import load_model
from ice_eval.operators.remove import Delete
from ice_eval.records import SCORED
from ice_eval.scoring import Scorer
from ice_eval.settings import run_config
from ice_eval.subjects.context.subject import ContextSubject
from ice_eval.subjects.context.tasks import CitationTask
from ice_eval.tasks import FileData


class Units(BaseContextPartitioner):
    """Our units as the sources of the package."""

    def __init__(self, texts: list[str]) -> None:
        super().__init__("".join(texts))
        self._texts = texts

    @property
    def num_sources(self) -> int:
        return len(self._texts)

    def split_context(self) -> None:
        """Nothing is left to split."""

    def get_source(self, index: int) -> str:
        return self._texts[index]

    def get_context(self, mask: np.ndarray | None = None) -> str:
        kept = np.ones(len(self._texts), dtype=bool) if mask is None else mask
        return "".join(text for text, keep in zip(self._texts, kept, strict=True) if keep)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--n", type=int, default=3)
    parser.add_argument("--ablations", type=int, default=256)
    parser.add_argument("--unit", choices=["passage", "sentence"], default="passage")
    parser.add_argument("--batch-size", type=int, default=1)
    parser.add_argument("--model", default="smollm2")
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    model = load_model(given.model)
    task = CitationTask(
        data=FileData(given.data),
        name="citations",
        prompt="Context: {passages}\n\nQuery: {question}",
        passage="{text} ",
    )
    config = run_config({"unit": given.unit}, "context")
    first = {answer.id: answer for answer in task.answers() if len(answer.claims) and len(answer.passages) > 1}
    subject = ContextSubject(task, list(first.values())[: given.n])
    seen: set[str | None] = set()
    for example in subject.examples:
        if example.group in seen:
            continue
        seen.add(example.group)
        compare(model, subject, config, example, given)


def compare(model, subject, config, example, given) -> None:  # type: ignore[no-untyped-def]
    item = subject.encode(model, config, example, reserve=0)
    tokenizer = model.codec.tokenizer
    units = [tokenizer.decode(ids) + (" " if given.unit == "passage" else "") for ids in item.unit_ids()]
    partitioner, question = Units(units), example.fields["question"]
    before, after = model.codec.chat_frame([])

    def prompt_ids(mask: np.ndarray) -> list[int]:
        text = f"{before}Context: {partitioner.get_context(mask)}\n\nQuery: {question}{after}"
        found: list[int] = tokenizer.encode(text, add_special_tokens=False)
        return found

    scored = item.segments == SCORED
    response = item.ids[np.flatnonzero(scored)[0] :].tolist()
    own_tokens = scored[np.flatnonzero(scored)[0] :]
    started = time.perf_counter()
    masks, logits = get_masks_and_logit_probs(
        model.model, tokenizer, given.ablations, len(units), prompt_ids, response, 0.5, given.batch_size
    )
    theirs = time.perf_counter() - started
    outputs = aggregate_logit_probs(logits[:, own_tokens])
    weights, _ = LassoRegression().fit(masks, outputs, int(own_tokens.sum()))

    scorer = Scorer(model, model.text_labels("claim"), budget=model.default_budget())
    started = time.perf_counter()
    inputs = Delete().build(item, masks, fills=np.zeros(0, dtype=np.int64))
    values = scorer.score(inputs)[:, 0]
    credit = ContextCite().credit(masks, values)
    ours = time.perf_counter() - started
    rank = spearmanr(weights, credit).statistic if len(units) > 1 else float("nan")
    print(
        f"{example.group}: {len(units)} units, {given.ablations} ablations ({scorer.counts.forwards} distinct), "
        f"context-cite {1000 * theirs / given.ablations:.0f} ms, ours {1000 * ours / given.ablations:.0f} ms per "
        f"ablation, {theirs / ours:.1f} times faster; rank correlation of weights {rank:.3f}, of outputs "
        f"{np.corrcoef(outputs / own_tokens.sum(), values)[0, 1]:.4f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
