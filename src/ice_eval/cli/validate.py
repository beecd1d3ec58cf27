"""`ice validate`."""

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ice_eval.cli._evaluation import takes_evaluation
from ice_eval.cli._options import Json

if TYPE_CHECKING:
    from ice_eval.analysis import ExplanationCheck


_MATTERS = {
    "model", "task", "data", "columns", "prompt", "labels", "explain", "n", "k", "unit", "scope", "protocol",
    "label_scoring", "chat", "system", "device", "dtype", "device_map", "max_memory", "load_in", "config",
}  # fmt: skip
"""Options of a run that decide which units an example has, and how many are chosen."""
_NAMED = 20
"""Examples that are named where they do not fit."""


@partial(takes_evaluation, shown=_MATTERS)
def validate(
    arguments: dict[str, Any],
    file: Annotated[Path, typer.Argument(help="Explanations: .jsonl, ERASER's .jsonl, or .json saved by inseq.")],
    as_json: Json = False,
) -> None:
    """Say whether explanations in a file fit the examples, before a run: exit 0 if all do, 2 if one does not.

    Takes the options and the configuration files of `ice run`; those that do not matter here are left aside.
    """
    from ice_eval.analysis import check_explanations
    from ice_eval.attributions import explained
    from ice_eval.cli._output import print_json, print_text
    from ice_eval.models import load_model
    from ice_eval.pipeline import RunConfig, examples_read
    from ice_eval.tasks import in_chat

    names = ("n", "unit", "scope", "protocol", "label_scoring")
    placing = ("device", "dtype", "device_map", "max_memory", "load_in")
    config = RunConfig(**{name: arguments[name] for name in names})
    task = in_chat(arguments["task"], arguments["chat"], arguments["system"])
    examples = task.examples(limit=examples_read(config.n))
    given = explained("file", file, examples)  # a bad file is told before a model is loaded
    found = check_explanations(
        load_model(arguments["model"], **{name: arguments[name] for name in placing}),
        task,
        examples[: config.n],
        given,
        unit=config.unit,
        scope=config.scope or "content",
        label_scoring=config.label_scoring,
        shares=arguments["k"],
    )
    if as_json:
        print_json({"fits": found.fit.fits, **asdict(found.fit), "unused": found.unused})
    else:
        print_text("\n".join(_lines(found)))
    if not found.fit.fits:
        raise typer.Exit(2)


def _lines(found: "ExplanationCheck") -> Iterator[str]:
    fit = found.fit
    yield f"examples:  {fit.covered} of {fit.examples} have an explanation that fits"
    others = "; the others count as 0" if fit.units_covered < fit.units else ""
    yield f"units:     {fit.units_covered} of {fit.units} are covered{others}"
    counted = (
        ("skipped", fit.too_short, "examples have fewer than two units, and need no explanation"),
        ("cut", fit.cut, "explanations end before the text does"),
        ("skipped", fit.silent, "explanations say nothing about any unit"),
        ("constant", fit.constant, "have the same number for all units: their rationale is a random draw"),
        ("drawn", fit.drawn, "have scores for fewer units than a rationale holds: the rest is a random draw"),
        ("skipped", fit.not_finite, "explanations have numbers that are not finite"),
        ("unused", found.unused, "explanations belong to none of these examples"),
    )
    yield from (f"{name + ':':<10} {count} {what}" for name, count, what in counted if count)
    if fit.missing:
        more = " …" if len(fit.missing) > 5 else ""
        yield f"missing:   {len(fit.missing)} examples have none: {', '.join(fit.missing[:5])}{more}"
    if fit.mismatches:
        named = [each.partition("'")[2].partition("'")[0] for each in fit.mismatches[1:_NAMED]]
        also = f" (also {', '.join(named)}{' …' if len(fit.mismatches) > _NAMED else ''})" if named else ""
        yield f"mismatch:  {len(fit.mismatches)} do not fit; the first{also}:\n\n{fit.mismatches[0]}\n"
    if fit.missing or fit.mismatches:
        yield 'An example with {"id": …, "spans": []} takes no part for this attribution, and is counted as left out.'
