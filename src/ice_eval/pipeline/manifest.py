"""The manifest of a run: what is known at its beginning, and what is added at its end."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ice_eval.attributions import fields_of
from ice_eval.pipeline.adapted import Adapted
from ice_eval.pipeline.config import ADDABLE, RunConfig
from ice_eval.pipeline.engine import Engine
from ice_eval.pipeline.job import Job
from ice_eval.pipeline.replica import Card, Replica
from ice_eval.results import RunFolder, config_hash, now, numbers_hash, versions_of
from ice_eval.results.numbers import NUMBERS
from ice_eval.tasks import DataSource, FileData

_VERSIONS = ("torch", "transformers", "numpy", "scipy", "tokenizers")
_COUNTED = ("rows", "forwards", "tokens", "attribution_tokens")


def at_beginning(
    job: Job, card: Card, asked: Mapping[str, Any], *, notes: Sequence[str], adapted: Adapted | None
) -> dict[str, Any]:
    """What is known before the first row is scored.

    Args:
        job: The run.
        card: Its model.
        asked: What defines its rows.
        notes: What a user is told of the model and of what was brought.
        adapted: Where the model is an adapted copy of another one.
    """
    engine, order, stored = job.engine, job.order, job.stored
    task, labels = engine.task, engine.scorer.labels
    return {
        "status": "running",
        "config": {"model": card.name, "task": task.name, **_plain(engine.config), **engine.reading},
        "attributions": {name: fields_of(method) for name, method in engine.attributions.items()},
        "config_hash": config_hash(asked),
        "identity": dict(asked),
        "labels": list(labels.names),
        "label_ids": [list(ids) for ids in labels.ids],
        "label_scoring": labels.scoring,
        "data": {"origin": task.data.origin, "examples": len(job.evaluated), **_columns(task.data)},
        "prompt": task.prompt,
        **({"classifier_text": task.classifier_text} if engine.model.codec.reads_pairs else {}),
        "explained": list(task.explained),
        "language": task.language,
        "device": card.places,
        "threads": order.threads,
        "token_budget": order.budget,
        "flags": _flags(engine),
        "versions": versions_of(_VERSIONS),
        "started": stored["started"] if stored is not None else now(),
        **({} if engine.model.server is None else {"server": dict(engine.model.server)}),
        **({} if adapted is None else {"adaptation": dict(adapted.record)}),
        "messages": list(notes),
    }


def _columns(data: DataSource) -> dict[str, Any]:
    """What a file calls its columns, where that is not what they are called here."""
    return {"columns": dict(data.columns)} if isinstance(data, FileData) and data.columns else {}


def _flags(engine: Engine) -> list[str]:
    """What a reader of the numbers must know of how they came about."""
    acts = (*engine.operators.values(), *engine.probing.values())
    flags = list(dict.fromkeys(flag for act in acts for flag in act.prepare(engine.model.codec.special)))
    if engine.config.protocol != "default":
        flags.append(f"protocol_{engine.config.protocol}")
    if engine.config.scope == "prompt":
        flags.append("scope_prompt")
    if engine.config.sign == "abs":
        flags.append("sign_abs")
    if engine.targets is not None:
        flags.append("adapted_model")
    if engine.pool is not None and not engine.pool.knows_labels:
        flags.append("blacklist_without_gold")
    return flags


def _plain(config: RunConfig) -> dict[str, Any]:
    return {name: list(value) if name in ADDABLE else value for name, value in vars(config).items()}


def at_end(job: Job, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest with what the run cost, how far its scores move by rounding, and what happened on the way."""
    folder, engine, costs = job.folder, job.engine, job.folder.costs()
    content = {
        **manifest,
        **_sums(costs, list(engine.attributions)),
        "peak_memory": job.crew.ask(Replica.peak_memory),
        "attributions": {
            name: {**fields, NUMBERS: numbers_hash(folder, name)} if engine.attributions[name].brought else fields
            for name, fields in manifest["attributions"].items()
        },
        "noise_guard": (job.stored or {}).get("noise_guard") or _noise(job),
    }
    if any(cost["out_of_memory"] for cost in costs):
        content["token_budgets_by_length"] = lowered_budgets(folder)
        content["flags"] = [*manifest["flags"], "out_of_memory"]
    if engine.model.server is not None:
        unscored = _n_unscored(folder)
        content["server"] = {**engine.model.server, "rows_without_score": unscored}
        content["flags"] = [*content["flags"], *(["labels_not_listed"] if unscored else [])]
    return content


def _sums(costs: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """What all parts cost together."""
    kinds = sorted({kind for cost in costs for kind in cost["rows_by_kind"]})
    return {
        **{name: sum(cost.get(name, 0) for cost in costs) for name in _COUNTED},
        "rows_by_kind": {kind: sum(cost["rows_by_kind"].get(kind, 0) for cost in costs) for kind in kinds},
        "attribution_seconds": {
            name: round(sum(cost["attribution_seconds"].get(name, 0.0) for cost in costs), 3) for name in names
        },
        **{name: _by_name(costs, name) for name in ("attribution_rows", "probe_tokens", "answer_tokens")},
        "seconds": round(sum(cost["seconds"] for cost in costs), 3),
    }


def _noise(job: Job) -> dict[str, Any] | None:
    rows = job.folder.ledger(0, inputs=True, probes=False)
    return job.crew.ask(partial(Replica.noise, order=job.order, rows=rows))


def _by_name(costs: Sequence[Mapping[str, Any]], field: str) -> dict[str, int]:
    """A cost of every attribution, over all parts; parts of earlier versions know of none."""
    names = dict.fromkeys(name for cost in costs for name in cost.get(field, {}))
    return {name: sum(cost.get(field, {}).get(name, 0) for cost in costs) for name in names}


def _n_unscored(folder: RunFolder) -> int:
    """Rows of which a label is not known."""
    rows = (row for part in folder.parts() for row in folder.ledger(part))
    return sum(not np.isfinite(row.scores).all() for row in rows)


def lowered_budgets(folder: RunFolder) -> dict[int, int]:
    """Budgets that memory did not reach for, by length of row."""
    found: dict[int, int] = {}
    for cost in folder.costs(sound_only=True):
        for length, budget in cost["lowered_budgets"].items():
            found[int(length)] = min(budget, found.get(int(length), budget))
    return found
