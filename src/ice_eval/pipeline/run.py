"""The whole pipeline: from a configuration to a finished run folder."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from ice_eval import stats
from ice_eval.attributions import OF_EVERY_MODEL, Attribution, Explained, Given, Lens, Observer, fields_of, fit_of
from ice_eval.attributions import attributions as attribution_registry
from ice_eval.encoding import shared_prefix
from ice_eval.errors import CapabilityError, ConfigError, IceError, ModelError
from ice_eval.models import Model
from ice_eval.nulls import nulls
from ice_eval.operators import POOL_EXAMPLES, operators
from ice_eval.pipeline.adapted import Adapted
from ice_eval.pipeline.config import ADDABLE, RunConfig, identity
from ice_eval.pipeline.data import counts_in, data_view, fill_pool
from ice_eval.pipeline.engine import Engine
from ice_eval.pipeline.noise import noise_guard
from ice_eval.pipeline.parts import estimated_rows, score_parts
from ice_eval.pipeline.progress import Reporter, Silent
from ice_eval.records import Example
from ice_eval.results import RunFolder, config_hash, now, numbers_hash, rescore, slug, stored_run, versions_of
from ice_eval.results.planning import PILOT_EXAMPLES, PILOT_SETS, cost_of, sets_for, spreads_of
from ice_eval.results.summary import ALPHA
from ice_eval.scoring import Scorer
from ice_eval.tasks import Task

_VERSIONS = ("torch", "transformers", "numpy", "scipy", "tokenizers")
_CHECKED_EXAMPLES = 2
_TRIED_EXAMPLES = 16
"""The shortest of these is tried."""
_RANDOM = stats.Spread(between=1 / 12, within=1 / 6)
"""Of win rates of random rationales, which are uniform: what to expect before anything is scored."""
_CLEARLY_FAITHFUL = 0.60
NUMBERS = "numbers"
"""Field of a brought attribution: the hash of its numbers, which are known when the run is done."""
_COUNTED = ("rows", "forwards", "tokens", "attribution_tokens")


def execute(
    config: RunConfig,
    *,
    model: Model,
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
        model: A loaded model.
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
    card = {"id": model.name, "fingerprint": model.fingerprint, "dtype": model.dtype, "load_in": model.load_in}
    asked = identity(config, model=card, task=task, examples=examples)
    asked |= {} if adapted is None else {"adaptation": adapted.how}
    folder = RunFolder(out or Path("ice-runs") / f"{slug(task.name)}-{slug(model.name)}-{config_hash(asked)[:8]}")
    stored = stored_run(folder, asked)
    if stored is not None:
        config = config.extended_by(stored["config"])
        model.continues(folder.path)
    engine = prepare(config, model, task, attributions, examples)
    engine = engine if adapted is None else replace(engine, targets=adapted.targets)
    _refuse_other_fields(engine.attributions, stored)
    _refuse_other_server(model, stored)
    engine = replace(engine, scorer=_scorer(engine, folder, token_budget, stored, reporter))
    evaluated = examples[: config.n]
    brought = _check_given(engine, evaluated)
    checked = _check_model(engine, evaluated)
    _try_attributions(engine, evaluated, stored)
    manifest = _manifest(engine, asked, len(evaluated), stored)
    manifest |= {} if adapted is None else {"adaptation": dict(adapted.record)}
    note = engine.scorer.labels.note
    told = [*model.notes, *([note] if note else []), *brought, *_about_methods(engine, evaluated), *checked]
    manifest["messages"] = told
    for message in (*_remarks(manifest, config), *manifest["messages"], *_outlook(engine, evaluated)):
        reporter.say(message)
    with folder.opened():
        if stored_run(folder, asked) != stored:
            raise ConfigError(f"another process wrote to {folder.path} in the meantime; run the same command again.")
        if stored is None:
            folder.write_manifest(manifest)
        with model.keeping(folder.path):
            if config.adaptive == "dataset":
                engine, manifest = _with_enough_sets(folder, engine, evaluated, manifest, stored, reporter)
            score_parts(folder, engine, evaluated, manifest, reporter)
            summary = _finish(folder, engine, manifest, stored)
    if not any(line["n"] for line in summary["configurations"]):
        first = next(iter(folder.examples()))
        raise ModelError(
            f"no example could be evaluated (example '{first['example_id']}': {first['error']}); see {folder.path}."
        )
    return folder


def _with_enough_sets(
    folder: RunFolder,
    engine: Engine,
    examples: Sequence[Example],
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
        reporter.say(f"pilot: {len(examples[:PILOT_EXAMPLES])} examples with {pilot.config.m} random sets each.")
        score_parts(folder, pilot, examples[:PILOT_EXAMPLES], manifest, reporter)
        spreads = spreads_of(folder, {**manifest["config"], "m": pilot.config.m})
        enough = sets_for(spreads, cost_of(folder), m=engine.config.m)
        found = {"pilot_n": len(examples[:PILOT_EXAMPLES]), "pilot_m": pilot.config.m, **asdict(enough)}
        reporter.say(
            f"the run goes on with {enough.m} random sets: intervals become at most about {100 * enough.wider:.0f} % "
            f"wider than with {engine.config.m}."
        )
    planned = replace(engine, config=replace(engine.config, m=found["m"]))
    return planned, {**manifest, "planned": found, "config": {**manifest["config"], "m": found["m"]}}


def _scorer(
    engine: Engine, folder: RunFolder, asked: int | None, stored: Mapping[str, Any] | None, reporter: Reporter
) -> Scorer:
    """The batches of a run stay the same when it is continued, or scores would move by rounding."""
    if asked is not None and asked < 1:
        raise ConfigError(f"token budget = {asked}: at least 1 is needed.")
    if stored is None:
        return Scorer(engine.model, engine.scorer.labels, budget=asked or engine.model.default_budget())
    kept = int(stored["token_budget"])
    if asked is not None and asked != kept:
        reporter.say(f"the run goes on with its token budget of {kept}, not {asked}.")
    return Scorer(engine.model, engine.scorer.labels, budget=kept, lowered=_lowered(folder))


def _lowered(folder: RunFolder) -> dict[int, int]:
    """Budgets that memory did not reach for, by length of row."""
    found: dict[int, int] = {}
    for cost in folder.costs(sound_only=True):
        for length, budget in cost["lowered_budgets"].items():
            found[int(length)] = min(budget, found.get(int(length), budget))
    return found


def prepare(
    config: RunConfig,
    model: Model,
    task: Task,
    attributions: Mapping[str, Attribution],
    examples: Sequence[Example],
) -> Engine:
    """All that a configuration names, as `execute` takes it.

    Raises:
        ConfigError: It does not fit the model or the data.
    """
    chosen = _attributions(config, attributions, model)
    if config.unit not in model.units:
        raise CapabilityError(
            f"the model '{model.name}' can be explained by {' or '.join(model.units)} only: its tokens are not seen "
            f"here; use --unit {model.units[0]}."
        )
    labels = model.labels(task, scoring=config.label_scoring)
    acts = {name: operators.get(name)() for name in config.operators}
    probing = {name: operators.get(method.operator)() for name, method in chosen.items() if "values" in method.needs}
    for act in (*acts.values(), *probing.values()):
        act.prepare(model.codec.special)
    engine = Engine(config, task, model, Scorer(model, labels, budget=1), acts, chosen, pool=None, probing=probing)
    if any(act.needs_fills for act in (*acts.values(), *probing.values())):
        engine = replace(engine, pool=fill_pool(engine, examples[:POOL_EXAMPLES]))
    if any(nulls.get(name).needs_counts for name in config.nulls):
        engine = replace(engine, unit_counts=counts_in(engine, examples))
    return replace(engine, data=data_view(engine, examples))


def _manifest(
    engine: Engine, asked: Mapping[str, Any], n_examples: int, stored: Mapping[str, Any] | None
) -> dict[str, Any]:
    model, task, labels = engine.model, engine.task, engine.scorer.labels
    return {
        "status": "running",
        "config": {"model": model.name, "task": task.name, **_plain(engine.config), **engine.reading},
        "attributions": {name: fields_of(method) for name, method in engine.attributions.items()},
        "config_hash": config_hash(asked),
        "identity": dict(asked),
        "labels": list(labels.names),
        "label_ids": [list(ids) for ids in labels.ids],
        "label_scoring": labels.scoring,
        "data": {"origin": task.data.origin, "examples": n_examples},
        "prompt": task.prompt,
        "explained": list(task.explained),
        "language": task.language,
        "device": model.places,
        "threads": model.use_threads(stored["threads"] if stored is not None else None),
        "token_budget": engine.scorer.budget,
        "flags": _flags(engine),
        "versions": versions_of(_VERSIONS),
        "started": stored["started"] if stored is not None else now(),
        **({} if model.server is None else {"server": dict(model.server)}),
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


def _attributions(config: RunConfig, given: Mapping[str, Attribution], model: Model) -> dict[str, Attribution]:
    """The attributions of a run; one that the model cannot support stops it here, not after an hour."""
    for name in config.attributions:
        if name not in given:
            raise ConfigError(
                f"the folder holds the attribution '{name}', which is not given now; give it again to continue."
            )
        lacking = given[name].needs - model.offers - OF_EVERY_MODEL
        if lacking:
            raise CapabilityError(
                f"the attribution '{name}' needs {' and '.join(sorted(lacking))}, which the model '{model.name}' "
                f"does not offer. Attributions that work with it: {', '.join(_supported(model))}, or your own."
            )
    return {name: given[name] for name in config.attributions}


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
    items = [item for item in map(engine.encode, examples[:_TRIED_EXAMPLES]) if item.n_units > 1]
    return engine.model.outlook(estimated_rows(engine, examples), [item.full() for item in items]) if items else []


def _supported(model: Model) -> list[str]:
    return [name for name, method in attribution_registry.items() if method.needs <= model.offers | OF_EVERY_MODEL]


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


def _try_attributions(engine: Engine, examples: Sequence[Example], stored: Mapping[str, Any] | None) -> None:
    """Every attribution looks at one short example: what it cannot do with this model stops the run here.

    Raises:
        CapabilityError: The model does not show what an attribution needs.
        ConfigError: An option is out of the model's range.
    """
    done = stored["config"]["attributions"] if stored is not None and stored["status"] == "complete" else ()
    items = [item for item in map(engine.encode, examples[:_TRIED_EXAMPLES]) if item.n_units > 1]
    if not items:
        return
    item = min(items, key=lambda each: len(each.ids))
    for name, method in engine.attributions.items():
        if name in done:
            continue
        needs, targets = method.needs - OF_EVERY_MODEL, {item.example_id: 0}
        observer = Observer(engine.model, engine.scorer.labels, targets, needs, chat=engine.in_turns)
        try:
            method.check(Lens(observer, method.needs, engine.config.seed, name, engine.data), item)
        except IceError as exc:
            if not isinstance(exc, CapabilityError):
                raise
            raise _unable(name, engine.model, str(exc)) from exc
        except Exception as exc:  # models fail in their own ways when they are asked for what they do not foresee
            told = str(exc).strip().partition("\n")[0]
            raise _unable(name, engine.model, f"{type(exc).__name__}: {told}") from exc


def _unable(name: str, model: Model, why: str) -> CapabilityError:
    probing = [known for known, method in attribution_registry.items() if "values" in method.needs]
    return CapabilityError(
        f"the attribution '{name}' does not work with the model '{model.name}' ({why.rstrip('.')}). Those that need "
        f"nothing but scores work with every model: {', '.join(probing)}."
    )


def _check_model(engine: Engine, examples: Sequence[Example]) -> list[str]:
    """Compare fast and plain scores on a few rows before anything depends on them."""
    evaluated = (item for item in map(engine.encode, examples) if item.n_units > 1)
    items = list(itertools.islice(evaluated, _CHECKED_EXAMPLES))
    if not items:
        return []
    rows = [row for item in items for row in (item.full(), item.empty())]
    return engine.model.check(rows, engine.scorer.labels, prefix=shared_prefix(items))


def _finish(
    folder: RunFolder, engine: Engine, manifest: Mapping[str, Any], stored: Mapping[str, Any] | None
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
        "peak_memory": engine.model.peak_memory(),
    }
    content["attributions"] = {
        name: {**fields, NUMBERS: numbers_hash(folder, name)} if engine.attributions[name].brought else fields
        for name, fields in manifest["attributions"].items()
    }
    content["noise_guard"] = (stored or {}).get("noise_guard") or noise_guard(
        engine.model, engine.scorer.labels, folder.ledger(0, inputs=True, probes=False), seed=engine.config.seed
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
