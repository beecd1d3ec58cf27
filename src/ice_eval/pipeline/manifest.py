"""The manifest of a run, at its beginning and its end."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ice_eval.attributions import fields_of
from ice_eval.choices import protocol_flag
from ice_eval.pipeline.engine import Engine
from ice_eval.pipeline.part import names_of
from ice_eval.pipeline.replicas import Adapted, Job, ModelInfo, Replica
from ice_eval.pipeline.subject import Subject
from ice_eval.records import Example
from ice_eval.results import RunFolder, content_hash, content_hash_of_all, now, numbers_hash, versions_of
from ice_eval.results.identity import NUMBERS
from ice_eval.results.ledger import NO_NAMES
from ice_eval.results.records import (
    DataInfo,
    Manifest,
    NoiseGuard,
    RunCost,
    Scalar,
    ServerInfo,
    ServerNames,
)
from ice_eval.settings import RUN, SETTINGS, RunConfig

_VERSIONS = ("torch", "transformers", "numpy", "scipy", "tokenizers")
_COUNTED = ("rows", "forwards", "tokens", "attribution_tokens")


def at_beginning(
    job: Job, info: ModelInfo, asked: Mapping[str, Scalar], *, notes: Sequence[str], adapted: Adapted | None
) -> Manifest:
    """Return the manifest of a new run; `asked` is its identity, `notes` are messages for the user."""
    engine, spec, stored = job.engine, job.spec, job.stored
    labels, described = engine.scorer.labels, engine.subject.described(engine.model)
    described = {"label_scoring": labels.scoring, **described}
    columns, data = described.pop("columns", {}), engine.subject.task.data
    return Manifest(
        status="running",
        config=engine.settings(model=info.name),
        attributions={name: fields_of(method) for name, method in engine.attributions.items()},
        config_hash=content_hash(asked),
        identity=dict(asked),
        labels=tuple(labels.names),
        label_ids=tuple(tuple(ids) for ids in labels.ids),
        data=DataInfo(origin=data.origin, commit=data.commit, examples=len(job.evaluated), columns=columns),
        **described,
        model_commit=info.commit,
        device=info.devices,
        threads=spec.threads,
        token_budget=spec.budget,
        part_size=spec.part_size,
        flags=tuple(_flags(engine)),
        versions=versions_of((*_VERSIONS, "openai") if info.devices == "server" else _VERSIONS),
        started=stored.started if stored is not None else now(),
        server=None if engine.model.server is None else server_info(engine.model.server),
        adaptation=None if adapted is None else adapted.record,
        messages=tuple(notes),
    )


def server_info(server: Mapping[str, Any], *, rows_without_score: int | None = None) -> ServerInfo:
    listed = ("base_urls", "label_tokens")
    plain = {name: value for name, value in server.items() if name not in (*listed, "said")}
    return ServerInfo(
        **plain,
        base_urls=tuple(server.get("base_urls", ())),
        label_tokens=tuple(tuple(tokens) for tokens in server["label_tokens"]),
        said=ServerNames(**server["said"]),
        rows_without_score=rows_without_score,
    )


def _flags(engine: Engine) -> list[str]:
    """Return flags that readers need to interpret the numbers."""
    acts = (*engine.operators.values(), *engine.probing.values())
    flags = list(dict.fromkeys(flag for act in acts for flag in act.prepare(engine.model.codec.special)))
    if (flag := protocol_flag(engine.config.protocol)) is not None:
        flags.append(flag)
    if engine.config.scope == "prompt":
        flags.append("scope_prompt")
    if engine.config.sign == "abs":
        flags.append("sign_abs")
    if engine.targets is not None:
        flags.append("adapted_model")
    if engine.pool is not None and not engine.pool.knows_labels and not engine.scorer.labels.is_open:
        flags.append("blacklist_without_gold")
    return flags


def identity(
    config: RunConfig, *, model: Mapping[str, str | None], subject: Subject, examples: Sequence[Example]
) -> dict[str, Any]:
    """Return everything that defines rows: two runs with the same identity score the same inputs."""
    plain = {each.name: getattr(config, each.name) for each in RUN if each.role == "rows"}
    plain = {name: value for name, value in plain.items() if value is not None or not SETTINGS[name].optional}
    return {
        "model": model["id"],
        "weights": model["fingerprint"],
        "dtype": model["dtype"],
        "load_in": model["load_in"],
        **subject.identity(),
        "data": content_hash_of_all(example.identity() for example in examples),
        **plain,
    }


def at_end(job: Job, manifest: Manifest) -> Manifest:
    """Return the manifest with cost, noise guard and the flags raised during the run."""
    folder, engine, costs = job.folder, job.engine, job.folder.costs()
    flags = list(manifest.flags)
    cost = _sums(costs, list(engine.attributions), peak_memory=job.workers.ask(Replica.peak_memory))
    if any(each["out_of_memory"] for each in costs):
        budgets = {str(length): budget for length, budget in lowered_budgets(folder).items()}
        cost = replace(cost, token_budgets_by_length=budgets)
        flags.append("out_of_memory")
    server = manifest.server
    if engine.model.server is not None:
        unscored = _n_unscored(folder)
        server = server_info(engine.model.server, rows_without_score=unscored)
        flags += ["labels_not_listed"] if unscored else []
    known = None if job.stored is None else job.stored.noise_guard
    return replace(
        manifest,
        cost=cost,
        attributions={
            name: {**fields, NUMBERS: numbers_hash(folder, name)} if engine.attributions[name].user_supplied else fields
            for name, fields in manifest.attributions.items()
        },
        noise_guard=_noise(job) if known is None else known,
        server=server,
        flags=tuple(flags),
        **engine.subject.finish(folder, engine.config, job.reporter),
    )


def _sums(costs: Sequence[Mapping[str, Any]], names: Sequence[str], *, peak_memory: int | None) -> RunCost:
    """Return the summed cost of all parts."""
    kinds = sorted({kind for cost in costs for kind in cost["rows_by_kind"]})
    return RunCost(
        **{name: sum(cost[name] for cost in costs) for name in _COUNTED},
        rows_by_kind={kind: sum(cost["rows_by_kind"].get(kind, 0) for cost in costs) for kind in kinds},
        attribution_seconds={
            name: round(sum(cost["attribution_seconds"].get(name, 0.0) for cost in costs), 3) for name in names
        },
        attribution_rows=_by_name(costs, "attribution_rows"),
        probe_tokens=_by_name(costs, "probe_tokens"),
        answer_tokens=_by_name(costs, "answer_tokens"),
        seconds=round(sum(cost["seconds"] for cost in costs), 3),
        peak_memory=peak_memory,
    )


def _noise(job: Job) -> NoiseGuard | None:
    ledger = job.folder.ledger(0, names_of(job.engine, job.evaluated[: job.spec.part_size]), inputs=True)
    return job.workers.ask(partial(Replica.noise, spec=job.spec, ledger=ledger))


def _by_name(costs: Sequence[Mapping[str, Any]], field: str) -> dict[str, int]:
    """Return one summed cost of every attribution."""
    names = dict.fromkeys(name for cost in costs for name in cost[field])
    return {name: sum(cost[field].get(name, 0) for cost in costs) for name in names}


def _n_unscored(folder: RunFolder) -> int:
    """Return the number of rows without the score of a label."""
    scores = (folder.ledger(part, NO_NAMES, kept=False).scores for part in folder.parts())
    return sum(int(np.count_nonzero(~np.isfinite(each).all(axis=1))) for each in scores)


def lowered_budgets(folder: RunFolder) -> dict[int, int]:
    """Return the token budgets lowered after out-of-memory errors, by length of row."""
    found: dict[int, int] = {}
    for cost in folder.costs(sound_only=True):
        for length, budget in cost["lowered_budgets"].items():
            found[int(length)] = min(budget, found.get(int(length), budget))
    return found
