"""The whole pipeline: from a configuration to a finished run folder."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ice_eval import stats
from ice_eval.attributions import Attribution, Explained, Given, fields_of, fit_of
from ice_eval.errors import ConfigError, ModelError
from ice_eval.executors import Crew
from ice_eval.models import Model
from ice_eval.pipeline.adapted import Adapted
from ice_eval.pipeline.config import ADDABLE, RunConfig, identity
from ice_eval.pipeline.engine import Engine
from ice_eval.pipeline.parts import estimated_rows, score_parts
from ice_eval.pipeline.progress import Reporter, Silent
from ice_eval.pipeline.replica import Card, Order, Replica
from ice_eval.pipeline.replicas import Replicas
from ice_eval.records import Example
from ice_eval.results import RunFolder, config_hash, now, numbers_hash, rescore, slug, stored_run, versions_of
from ice_eval.results.planning import PILOT_EXAMPLES, PILOT_SETS, cost_of, sets_for, spreads_of
from ice_eval.results.summary import ALPHA
from ice_eval.tasks import Task

_VERSIONS = ("torch", "transformers", "numpy", "scipy", "tokenizers")
_SAMPLE = 16
"""Examples that show what rows cost."""
_RANDOM = stats.Spread(between=1 / 12, within=1 / 6)
"""Of win rates of random rationales, which are uniform: what to expect before anything is scored."""
_CLEARLY_FAITHFUL = 0.60
NUMBERS = "numbers"
"""Field of a brought attribution: the hash of its numbers, which are known when the run is done."""
_COUNTED = ("rows", "forwards", "tokens", "attribution_tokens")


def execute(
    config: RunConfig,
    *,
    model: Model | Replicas,
    task: Task,
    examples: Sequence[Example],
    attributions: Mapping[str, Attribution],
    out: Path | None = None,
    token_budget: int | None = None,
    reporter: Reporter | None = None,
    adapted: Adapted | None = None,
) -> RunFolder:
    """Run, or continue, an evaluation and return its folder.

    Args:
        config: What to evaluate.
        model: A loaded model, or replicas of one.
        task: Its data and prompt.
        examples: The first examples of the task: those to evaluate, and those that fill the pool of infill.
        attributions: The attributions of `config`, by name, and any that the folder may hold.
        out: The run folder; by default one under `ice-runs/` whose name tells the configuration, so that the same
            command continues.
        token_budget: Tokens per batch; by default what suits the device.
        reporter: Gets progress and messages.
        adapted: Where the model is an adapted copy of another one: how, and the labels to explain.

    Raises:
        ConfigError: Something is wrong with what was asked; nothing has been written.
        ModelError: No example could be evaluated, or the model failed.
    """
    reporter = reporter or Silent()
    replicas = Replicas.here(model) if isinstance(model, Model) else model
    card = replicas.crew.ask(Replica.card)
    asked = identity(config, model=card.identity, task=task, examples=examples)
    asked |= {} if adapted is None else {"adaptation": adapted.how}
    folder = RunFolder(out or Path("ice-runs") / f"{slug(task.name)}-{slug(card.name)}-{config_hash(asked)[:8]}")
    stored = stored_run(folder, asked)
    if stored is not None:
        replicas.reader.model.continues(folder.path)
    order = Order(
        config=config if stored is None else config.extended_by(stored["config"]),
        task=task,
        examples=examples,
        attributions=attributions,
        budget=_budget(token_budget, card, stored, reporter),
        lowered={} if stored is None else _lowered(folder),
        threads=replicas.reader.model.use_threads(None if stored is None else stored["threads"]),
        targets=None if adapted is None else adapted.targets,
        weights=card.fingerprint,
    )
    engine = replicas.reader.engine(order)
    config = engine.config
    _refuse_other_fields(engine.attributions, stored)
    _refuse_other_server(engine.model, stored)
    evaluated = examples[: config.n]
    brought = _check_given(engine, evaluated)
    order = replace(order, checked=replicas.crew.ask(partial(Replica.checked, order=order)))
    done = stored["config"]["attributions"] if stored is not None and stored["status"] == "complete" else ()
    replicas.crew.ask(partial(Replica.try_attributions, order=order, done=done))
    manifest = _manifest(engine, order, card, asked, stored)
    manifest |= {} if adapted is None else {"adaptation": dict(adapted.record)}
    note = engine.scorer.labels.note
    noted = [*replicas.crew.ask(Replica.notes), *([note] if note else []), *brought, *_about_methods(engine, evaluated)]
    manifest["messages"] = [*noted, *(order.checked or ())]
    for message in (*_remarks(manifest, config), *manifest["messages"], *_outlook(engine, evaluated)):
        reporter.say(message)
    with folder.opened():
        if stored_run(folder, asked) != stored:
            raise ConfigError(f"another process wrote to {folder.path} in the meantime; run the same command again.")
        if stored is None:
            folder.write_manifest(manifest)
        with engine.model.keeping(folder.path):
            if config.adaptive == "dataset":
                engine, manifest = _with_enough_sets(folder, replicas.crew, order, engine, manifest, stored, reporter)
            score_parts(folder, replicas.crew, order, engine, evaluated, manifest, reporter)
            summary = _finish(folder, replicas.crew, order, engine, manifest, stored)
    if not any(line["n"] for line in summary["configurations"]):
        first = next(iter(folder.examples()))
        raise ModelError(
            f"no example could be evaluated (example '{first['example_id']}': {first['error']}); see {folder.path}."
        )
    return folder


def _with_enough_sets(
    folder: RunFolder,
    crew: Crew[Replica],
    order: Order,
    engine: Engine,
    manifest: dict[str, Any],
    stored: Mapping[str, Any] | None,
    reporter: Reporter,
) -> tuple[Engine, dict[str, Any]]:
    """The same run with as many random sets as its first examples show to be enough for the data set.

    The sets of an example have one order, so those that the pilot scored are not lost. How many are enough depends on
    how win rates spread, which is the same for an explanation and for its opposite: the choice favours neither.
    """
    found = (stored or {}).get("planned")
    if found is None:
        # The rows of ERASER's measures are no part of what random sets cost beside.
        pilot = replace(engine, config=replace(engine.config, m=min(PILOT_SETS, engine.config.m), eraser=False))
        first = order.examples[: engine.config.n][:PILOT_EXAMPLES]
        reporter.say(f"pilot: {len(first)} examples with {pilot.config.m} random sets each.")
        score_parts(folder, crew, order, pilot, first, manifest, reporter)
        spreads = spreads_of(folder, {**manifest["config"], "m": pilot.config.m})
        enough = sets_for(spreads, cost_of(folder), m=engine.config.m)
        found = {"pilot_n": len(first), "pilot_m": pilot.config.m, **asdict(enough)}
        reporter.say(
            f"the run goes on with {enough.m} random sets: intervals become at most about {100 * enough.wider:.0f} % "
            f"wider than with {engine.config.m}."
        )
    planned = replace(engine, config=replace(engine.config, m=found["m"]))
    return planned, {**manifest, "planned": found, "config": {**manifest["config"], "m": found["m"]}}


def _budget(asked: int | None, card: Card, stored: Mapping[str, Any] | None, reporter: Reporter) -> int:
    """Tokens per batch; they stay the same when a run is continued, or scores would move by rounding."""
    if asked is not None and asked < 1:
        raise ConfigError(f"token budget = {asked}: at least 1 is needed.")
    if stored is None:
        return asked or card.budget
    kept = int(stored["token_budget"])
    if asked is not None and asked != kept:
        reporter.say(f"the run goes on with its token budget of {kept}, not {asked}.")
    return kept


def _lowered(folder: RunFolder) -> dict[int, int]:
    """Budgets that memory did not reach for, by length of row."""
    found: dict[int, int] = {}
    for cost in folder.costs(sound_only=True):
        for length, budget in cost["lowered_budgets"].items():
            found[int(length)] = min(budget, found.get(int(length), budget))
    return found


def _manifest(
    engine: Engine, order: Order, card: Card, asked: Mapping[str, Any], stored: Mapping[str, Any] | None
) -> dict[str, Any]:
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
        "data": {"origin": task.data.origin, "examples": len(order.examples[: engine.config.n])},
        "prompt": task.prompt,
        "explained": list(task.explained),
        "language": task.language,
        "device": card.places,
        "threads": order.threads,
        "token_budget": order.budget,
        "flags": _flags(engine),
        "versions": versions_of(_VERSIONS),
        "started": stored["started"] if stored is not None else now(),
        **({} if engine.model.server is None else {"server": dict(engine.model.server)}),
    }


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


def _remarks(manifest: Mapping[str, Any], config: RunConfig) -> Iterator[str]:
    """What a user should know before the first row."""
    n_examples = manifest["data"]["examples"]
    if n_examples < config.n:
        yield f"{config.n} examples were asked for, and the data hold {n_examples}: all of them are used."
    detectable = stats.detectable(_RANDOM, n=max(n_examples, 1), m=config.m)
    if n_examples < 2:
        yield "a single example has no interval: nothing can be said about a mean win rate."
    elif detectable > _CLEARLY_FAITHFUL:
        yield (
            f"{n_examples} examples tell win rates from about {100 * min(detectable, 1):.0f} % on from chance: weaker "
            "explanations will read as not distinguishable from random."
        )
    if config.adaptive is None and config.m + 1 < 1 / ALPHA:
        yield f"with {config.m} random sets no single example can be significant; {round(1 / ALPHA) - 1} are the least."
    if "blacklist_without_gold" in manifest["flags"]:
        yield "the data have no labels, so infill avoids the label words only, not label-indicative words."


def _refuse_other_fields(methods: Mapping[str, Attribution], stored: Mapping[str, Any] | None) -> None:
    """A name stands for one method with one set of fields; folders of earlier versions do not know them."""
    for name, before in (stored or {}).get("attributions", {}).items():
        now = fields_of(methods[name])
        differ = [
            f"{field} is {value!r} there and {now.get(field)!r} here"
            for field, value in before.items()
            if field != NUMBERS and now.get(field) != value
        ]
        if differ:
            raise ConfigError(
                f"the folder holds another attribution '{name}': {'; '.join(differ)}. Give it another name, or the "
                "same fields to continue."
            )


def _refuse_other_server(model: Model, stored: Mapping[str, Any] | None) -> None:
    """The rows of a run reach the model in one way; the address and its patience may change."""
    before, now = (stored or {}).get("server"), model.server
    for name in ("prompts", "label_tokens"):
        if before is not None and now is not None and before[name] != now[name]:
            raise ConfigError(
                f"the folder holds rows of a server with {name.replace('_', ' ')} {before[name]}, and this one has "
                f"{now[name]}; use another --out, or the same server to continue."
            )


def _outlook(engine: Engine, examples: Sequence[Example]) -> list[str]:
    """What the run will cost, where somebody else charges for it."""
    items = [item for item in map(engine.encode, examples[:_SAMPLE]) if item.n_units > 1]
    return engine.model.outlook(estimated_rows(engine, examples), [item.full() for item in items]) if items else []


def _check_given(engine: Engine, examples: Sequence[Example]) -> list[str]:
    """What a user brings must fit the units and the labels, and is checked before the first row is scored."""
    given = {name: method for name, method in engine.attributions.items() if isinstance(method, Given | Explained)}
    remarks = list(_unused(given))
    for name, method in given.items():
        remarks += fit_of(method, name, map(engine.encode, examples), engine.scorer.labels).remarks(name)
    return remarks


def _unused(given: Mapping[str, Given | Explained]) -> Iterator[str]:
    """Explanations that belong to no example: further ones of long data, or those of other data."""
    for name, method in given.items():
        if isinstance(method, Explained) and method.n_unused:
            yield (
                f"the attribution '{name}': {method.n_unused} of {method.n_given} explanations belong to none of the "
                f"{len(method.fields)} examples that were read, and are not used."
            )


def _about_methods(engine: Engine, examples: Sequence[Example]) -> list[str]:
    """What a user should know of the methods that ask for scores, on texts of these lengths."""
    lengths = [engine.encode(example).n_units for example in examples] if engine.probing else []
    found = {name: engine.attributions[name].remark(lengths) for name in engine.probing}
    return [f"the attribution '{name}': {remark}" for name, remark in found.items() if remark]


def _finish(
    folder: RunFolder,
    crew: Crew[Replica],
    order: Order,
    engine: Engine,
    manifest: Mapping[str, Any],
    stored: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Sum up the costs, compute all statistics, and call the run complete, in this order."""
    costs = folder.costs()
    kinds = sorted({kind for cost in costs for kind in cost["rows_by_kind"]})
    content = {
        **manifest,
        **{name: sum(cost.get(name, 0) for cost in costs) for name in _COUNTED},
        "rows_by_kind": {kind: sum(cost["rows_by_kind"].get(kind, 0) for cost in costs) for kind in kinds},
        "attribution_seconds": {
            name: round(sum(cost["attribution_seconds"].get(name, 0.0) for cost in costs), 3)
            for name in engine.attributions
        },
        "attribution_rows": _by_name(costs, "attribution_rows"),
        "probe_tokens": _by_name(costs, "probe_tokens"),
        "answer_tokens": _by_name(costs, "answer_tokens"),
        "seconds": round(sum(cost["seconds"] for cost in costs), 3),
        "peak_memory": crew.ask(Replica.peak_memory),
    }
    content["attributions"] = {
        name: {**fields, NUMBERS: numbers_hash(folder, name)} if engine.attributions[name].brought else fields
        for name, fields in manifest["attributions"].items()
    }
    content["noise_guard"] = (stored or {}).get("noise_guard") or crew.ask(
        partial(Replica.noise, order=order, rows=folder.ledger(0, inputs=True, probes=False))
    )
    if any(cost["out_of_memory"] for cost in costs):
        content["token_budgets_by_length"] = _lowered(folder)
        content["flags"] = [*manifest["flags"], "out_of_memory"]
    if "server" in content:
        unscored = _n_unscored(folder)
        content["server"] = {**content["server"], "rows_without_score": unscored}
        content["flags"] = [*content["flags"], *(["labels_not_listed"] if unscored else [])]
    folder.write_manifest(content)
    summary = rescore(folder)
    folder.write_manifest({**content, "status": "complete", "finished": now()})
    return summary


def _n_unscored(folder: RunFolder) -> int:
    """Rows of which a label is not known."""
    rows = (row for part in folder.parts() for row in folder.ledger(part))
    return sum(not np.isfinite(row.scores).all() for row in rows)


def _by_name(costs: Sequence[Mapping[str, Any]], field: str) -> dict[str, int]:
    """A cost of every attribution, over all parts; parts of earlier versions know of none."""
    names = dict.fromkeys(name for cost in costs for name in cost.get(field, {}))
    return {name: sum(cost.get(field, {}).get(name, 0) for cost in costs) for name in names}


def _plain(config: RunConfig) -> dict[str, Any]:
    return {name: list(value) if name in ADDABLE else value for name, value in vars(config).items()}
