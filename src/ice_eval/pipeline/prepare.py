"""Put together what a configuration names."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ice_eval.attributions import OF_EVERY_MODEL, Attribution
from ice_eval.attributions import attributions as attribution_registry
from ice_eval.errors import CapabilityError, ConfigError
from ice_eval.models import Model
from ice_eval.nulls import nulls
from ice_eval.operators import POOL_EXAMPLES, operators
from ice_eval.pipeline.data import counts_in, data_view, fill_pool
from ice_eval.pipeline.engine import Engine
from ice_eval.records import Example
from ice_eval.scoring import Scorer
from ice_eval.settings import RunConfig
from ice_eval.tasks import Task


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
    engine = Engine(
        config, task, model, Scorer(model, labels, budget=1), acts, chosen, pool=None, probing=probing, longest=config.m
    )
    if any(act.needs_fills for act in (*acts.values(), *probing.values())):
        engine = replace(engine, pool=fill_pool(engine, examples[:POOL_EXAMPLES]))
    if any(nulls.get(name).needs_counts for name in config.nulls):
        engine = replace(engine, unit_counts=counts_in(engine, examples))
    return replace(engine, data=data_view(engine, examples))


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


def _supported(model: Model) -> list[str]:
    return [name for name, method in attribution_registry.items() if method.needs <= model.offers | OF_EVERY_MODEL]
