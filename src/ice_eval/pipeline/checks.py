"""Checks and messages before the first row is scored."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from ice_eval import stats
from ice_eval.attributions import Attribution, Explained, Given, fields_of, fit_of
from ice_eval.errors import ConfigError
from ice_eval.models import Labels, Model
from ice_eval.pipeline.engine import Engine, estimated_rows
from ice_eval.pipeline.manifest import server_info
from ice_eval.pipeline.replicas import Job, Replica
from ice_eval.records import Example, Inputs
from ice_eval.results import Manifest
from ice_eval.results.identity import NUMBERS
from ice_eval.results.records import CutTexts
from ice_eval.results.summary import ALPHA
from ice_eval.settings import RunConfig

_SAMPLE = 16
"""Number of examples used to estimate the cost of rows."""
_LOOKED_AT = 500
"""Number of examples whose tokens are looked at for messages."""
_RANDOM = stats.Spread(between=1 / 12, within=1 / 6)
"""Spread of the uniform win rates of random rationales: the prior before anything is scored."""
_CERTAIN = 0.995
"""Win rates from here on print as 100 %."""


class Checked(NamedTuple):
    """A validated job, and what the user should know."""

    job: Job
    notes: list[str]
    warnings: tuple[str, ...]
    """Reasons why the scores may be wrong."""


def checked(job: Job) -> Checked:
    """Return the validated job with its messages, or raise ConfigError."""
    _refuse_other_fields(job.engine.attributions, job.stored)
    _refuse_other_server(job.engine.model, job.stored)
    _refuse_other_classes(job.engine.scorer.labels, job.stored)
    brought = _check_given(job.engine, job.evaluated)
    found = job.workers.ask(partial(Replica.checked, spec=job.spec))
    spec, stored = replace(job.spec, checked=found), job.stored
    done = stored.config.attributions if stored is not None and stored.status == "complete" else ()
    job.workers.ask(partial(Replica.try_attributions, spec=spec, done=done))
    note = job.engine.scorer.labels.note
    of_methods = _about_methods(job.engine, job.evaluated)
    of_data = job.engine.subject.notes(job.evaluated)
    of_data += _about_tokens(job.engine, job.evaluated[:_LOOKED_AT])
    of_data += _about_lengths(job.engine, job.evaluated[:_LOOKED_AT])
    notes = [*job.workers.ask(Replica.notes), *([note] if note else []), *of_data, *brought, *of_methods, *found]
    if stored is not None:  # nothing is scored where nothing is missing
        return Checked(replace(job, spec=spec), notes, stored.warnings)
    return Checked(replace(job, spec=spec), notes, job.workers.ask(partial(Replica.doubts, spec=spec)))


def _refuse_other_fields(methods: Mapping[str, Attribution], stored: Manifest | None) -> None:
    """Raise ConfigError if a name in the folder now means another method, or other fields."""
    for name, before in ({} if stored is None else stored.attributions).items():
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


def _refuse_other_server(model: Model, stored: Manifest | None) -> None:
    """Raise ConfigError if the rows would be sent to the model differently; address and timeouts may change."""
    if stored is None or stored.server is None or model.server is None:
        return
    now = server_info(model.server)
    for name in ("prompts", "label_tokens"):
        before, here = (getattr(each, name) for each in (stored.server, now))
        if before != here:
            raise ConfigError(
                f"the folder holds rows of a server with {name.replace('_', ' ')} {before}, and this one has "
                f"{here}; use another --out, or the same server to continue."
            )


def _refuse_other_classes(labels: Labels, stored: Manifest | None) -> None:
    """Raise ConfigError if a label was another class of the classifier in the stored rows."""
    now = tuple(tuple(ids) for ids in labels.ids)
    if labels.are_classes and stored is not None and stored.label_ids != now:
        before, here = (
            ", ".join(" ".join(map(str, places)) or "none" for places in each) for each in (stored.label_ids, now)
        )
        raise ConfigError(
            f"the folder holds rows in which the labels {', '.join(labels.names)} are the classes {before} of the "
            f"model, and here they are {here}; use another --out."
        )


def _check_given(engine: Engine, examples: Sequence[Example]) -> list[str]:
    """Check that user-supplied attributions fit the units and labels, and return messages about them."""
    given = {name: method for name, method in engine.attributions.items() if isinstance(method, Given | Explained)}
    remarks = list(_unused(given))
    for name, method in given.items():
        items, labels = [item for item in map(engine.encode, examples) if item.n_units], engine.scorer.labels
        remarks += fit_of(method, name, items, labels, shares=engine.config.k).remarks(name)
    return remarks


def _unused(given: Mapping[str, Given | Explained]) -> Iterator[str]:
    """Yield a message about explanations that belong to no example."""
    for name, method in given.items():
        if isinstance(method, Explained) and method.n_unused:
            yield (
                f"the attribution '{name}': {method.n_unused} of {method.n_given} explanations belong to none of the "
                f"{len(method.fields)} examples that were read, and are not used."
            )


def _about_methods(engine: Engine, examples: Sequence[Example]) -> list[str]:
    """Return messages about methods that request scores, for texts of these lengths."""
    lengths = [engine.encode(example).n_units for example in examples] if engine.probing else []
    found = {name: engine.attributions[name].remark(lengths) for name in engine.probing}
    return [f"the attribution '{name}': {remark}" for name, remark in found.items() if remark]


def _about_tokens(engine: Engine, examples: Sequence[Example]) -> list[str]:
    """Return a message if the tokenizer by itself would join characters of template and content in a token."""
    n_divided = sum(engine.encode(example).divided for example in examples)
    if not n_divided:
        return []
    rest = "so their ids are not the tokenizer's own."
    if engine.model.server is not None and engine.model.server["prompts"] == "text":
        rest = "but prompts are sent as text, and the server may join what a row keeps of both."
    return [
        f"in {n_divided} of {len(examples)} texts the tokenizer joins the template and the text in one token (such as "
        f"a full stop and the line break after it); they are kept apart, {rest}"
    ]


def _about_lengths(engine: Engine, examples: Sequence[Example]) -> list[str]:
    """Return a message if texts are cut."""
    items = [engine.encode(example) for example in examples]
    sizes = np.array([(item.n_cut, item.n_units) for item in items if item.n_units], dtype=np.int64).reshape(-1, 2)
    cut = CutTexts.of(sizes[:, 0], sizes[:, 1])
    advice = "a model that takes longer inputs reads more of them; --max-characters makes the same cut for every model"
    if engine.config.max_characters is not None:
        advice = f"--max-characters {engine.config.max_characters} is the limit, or what the model takes"
    return [] if cut is None else [f"{cut.said(engine.config.unit)}; {advice}."]


def remarks(manifest: Manifest, config: RunConfig) -> Iterator[str]:
    """Yield messages for the user before the first row."""
    n_examples = manifest.data.examples
    if n_examples < config.n:
        yield f"the data have {n_examples} examples, fewer than n = {config.n}: all are used."
    if not config.attributions:
        return
    detectable = stats.detectable(_RANDOM, n=max(n_examples, 1), m=config.m)
    if n_examples < 2:
        yield "one example is not enough to estimate a mean win rate."
    elif detectable > _CERTAIN:
        yield f"{n_examples} examples are too few to distinguish any win rate from chance; use at least 20."
    elif detectable > stats.FAITHFUL:
        yield (
            f"with {n_examples} examples, only win rates above about {100 * detectable:.0f} % can be distinguished "
            "from chance; weaker explanations will read as not distinguishable from random."
        )
    if config.adaptive is None and config.m + 1 < 1 / ALPHA:
        yield f"with {config.m} random sets no single example can be significant; use at least {round(1 / ALPHA) - 1}."
    if "blacklist_without_gold" in manifest.flags:
        yield "the data have no labels, so infill avoids the label words only, not label-indicative words."


def outlook(engine: Engine, examples: Sequence[Example]) -> list[str]:
    """Return messages about the cost of the run, if a server charges for it."""
    items = [item for item in map(engine.encode, examples[:_SAMPLE]) if item.n_units > 1]
    inputs = Inputs.join([item.full() for item in items])
    return engine.model.outlook(estimated_rows(engine, examples), inputs) if items else []
