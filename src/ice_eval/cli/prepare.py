"""Before a run: `ice task` makes and shows a task, `ice validate` checks explanations, `ice translate` the data."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text
from typer import Argument, Option

from ice_eval.cli._options import TASK, Json, TaskFlags, arguments_of, names, takes, takes_evaluation, task_of
from ice_eval.cli._output import print_json, print_line, print_text
from ice_eval.errors import ConfigError
from ice_eval.settings import CHAT, LOADING, SUBJECT, names_of, run_config, values_of

if TYPE_CHECKING:
    from ice_eval.analysis import ExplanationCheck, TaskCheck

app = typer.Typer(help="Write your own task, and check a task before a run.", no_args_is_help=True)


@app.callback()
def _root() -> None:
    pass


@app.command("new")
def new(
    file: Annotated[Path, Argument(help="File to write, e.g. mine.yaml.")],
    data: Annotated[Path | None, Option(help="Your .jsonl or .csv: its fields and labels are filled in.")] = None,
    as_json: Json = False,
) -> None:
    """Write a commented draft of a task file; existing files are never overwritten."""
    from ice_eval.tasks import draft, is_task_file

    if not is_task_file(file.name):
        raise ConfigError(f"a task file ends in .yaml, as {file.with_suffix('.yaml')}, not in '{file.suffix}'.")
    text = draft(file, data)
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError as exc:
        raise ConfigError(f"{file} already exists and was not changed; choose another name.") from exc
    except OSError as exc:
        raise ConfigError(f"{file} cannot be written: {exc.strerror}.") from exc
    if as_json:
        print_json({"file": str(file)})
        return
    print_text(f"Wrote {file}. Fill it in, then: ice task check {file} --model MODEL")


@app.command("check")
@takes(*(name for name in TASK if name != "task"), "unit", "chat", "device", "device_map", "max_memory", "load_in")
def check(
    values: dict[str, Any],
    task: Annotated[str, Argument(help="A name of `ice list tasks`, a task file, or a .jsonl or .csv file.")],
    model: Annotated[str, Option(help="Model, as for `ice run`.")],
    as_json: Json = False,
) -> None:
    """Show rendered prompts, their protected parts, label tokens, and accuracy on 50 rows."""
    from ice_eval.analysis import check_task
    from ice_eval.models import is_function, load_model
    from ice_eval.tasks import as_functions_read

    unit, chat = values.pop("unit"), values.pop("chat")
    loading = {each.name: values.pop(each.name) for each in LOADING if each.name in values}
    is_file = Path(task).suffix.lower() in {".jsonl", ".csv"}
    flags = TaskFlags(**values, task=None if is_file else task)
    chosen = task_of(flags._replace(data=Path(task)) if is_file else flags)
    chosen = as_functions_read(chosen) if is_function(model) else chosen
    chosen.examples(limit=1)  # a bad file is reported before a model is loaded
    found = check_task(load_model(model, **loading), replace(chosen, chat=chat or chosen.chat), unit=unit)
    if as_json:
        print_json(asdict(found))
    else:
        _print(found)


_LITTLE_MASS = 0.1
"""Share of probability that the labels should hold."""
_UNIT_STYLES = ("black on cyan", "black on yellow")
"""Alternating styles that distinguish neighbouring units."""


def _print(found: "TaskCheck") -> None:
    for number, prompt in enumerate(found.prompts, start=1):
        print_line(Text(f"prompt {number} (units in brackets, the rest is protected)", style="bold"))
        line, units = Text(), itertools.cycle(_UNIT_STYLES)
        for segment in prompt:
            shown = f"[{segment.text}]" if segment.kind == "unit" else segment.text
            line.append(shown, style=next(units) if segment.kind == "unit" else "dim")
        print_line(line)
        print_line("")
    for text in _facts(found):
        print_line(text, indent=4)


def _facts(found: "TaskCheck") -> list[str]:
    way = {"first": "by the first token", "full": "by all tokens"}[found.label_scoring]
    lines: list[Any] = [f"label scoring: {way if any(label.tokens for label in found.labels) else 'by class'}"]
    for label in found.labels:
        tokens = " ".join(repr(token) for token in label.tokens) or f"class {label.token_ids[0]}"
        lines.append(
            f"  {label.label}: {label.word!r} = {tokens}; probability {label.prior:.2f} after an empty text, "
            f"predicted for {100 * label.predicted:.0f} % of {found.n} examples"
        )
    accuracy = "unknown (no gold labels)"
    if found.accuracy is not None and found.majority is not None:
        accuracy = f"{100 * found.accuracy:.0f} % (always the most frequent label: {100 * found.majority:.0f} %)"
    lines.append(f"accuracy on {found.n} examples: {accuracy}")
    if found.label_mass is not None:
        advice = "; the model would usually write something else: try another prompt, or --chat"
        held = f"{100 * found.label_mass:.2g} % of what the model may write next"
        lines.append(f"the labels hold {held} (median){advice if found.label_mass < _LITTLE_MASS else ''}")
    lines.append(f"units per text: {found.median_units:g} in the median; texts cut to fit: {found.truncated}")
    if found.human:
        lines.append(f"examples with a human rationale: {found.human} of {found.n}")
    return [*lines, *found.notes]


_RELEVANT = (
    *names_of((*SUBJECT[:-1], *CHAT, *LOADING)), "n", "k", "unit", "scope", "order", "max_characters", "protocol",
    "label_scoring",
)  # fmt: skip
"""Settings that define the units of an example and the size of rationales."""
_NAMED = 20
"""Largest number of listed examples that do not fit."""


@partial(takes_evaluation, relevant=_RELEVANT)
def validate(
    values: dict[str, Any],
    file: Annotated[Path, Argument(help="Explanations: .jsonl, ERASER's .jsonl, or .json saved by inseq.")],
    as_json: Json = False,
) -> None:
    """Check before a run that explanations in a file fit the examples: exit 0 if all do, 2 if one does not.

    Takes all options of `ice run`; options that do not matter here are ignored.
    """
    from ice_eval.analysis import check_explanations
    from ice_eval.attributions import explained
    from ice_eval.models import is_function, load_model
    from ice_eval.pipeline import examples_read
    from ice_eval.tasks import Task, as_functions_read, in_chat, read_as

    arguments = arguments_of(values)
    if not isinstance(arguments["task"], Task):
        raise ConfigError("`ice validate` is about explanations of texts; a run of another task checks its own.")
    task = in_chat(arguments["task"], arguments["chat"], arguments["system"])
    task = as_functions_read(task) if is_function(arguments["model"]) else task
    asked = {name: values[name] for name in _RELEVANT if name != "k"}
    config = run_config(asked, task=task.name, language=task.language)
    task = read_as(task, **config.reading)
    examples = task.examples(limit=examples_read(config.n))
    given = explained("file", file, examples)  # a bad file is reported before a model is loaded
    found = check_explanations(
        load_model(arguments["model"], **values_of(LOADING, values)),
        task,
        examples[: config.n],
        given,
        unit=config.unit,
        scope=config.scope,
        label_scoring=config.label_scoring,
        shares=values["k"],
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
        ("skipped", fit.silent, "explanations cover no unit"),
        ("constant", fit.constant, "have the same number for all units: their rationale is a random draw"),
        ("drawn", fit.drawn, "have scores for fewer units than a rationale holds: the rest is a random draw"),
        ("skipped", fit.not_finite, "explanations have numbers that are not finite"),
        ("coarse", fit.coarse, "have scores that cover several units, which share them"),
        ("labels", fit.some_labels, "explain some labels only: skipped where the run explains another"),
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
        yield 'An example with {"id": …, "spans": []} is skipped for this attribution, and counted.'


@takes(*names_of(LOADING))
def translate(
    loading: dict[str, Any],
    data: Annotated[Path, Option(help=".jsonl or .csv file to translate.")],
    to: Annotated[str, Option(help="Language as the model writes it: fra_Latn (NLLB), fr (M2M-100, Marian).")],
    out: Annotated[Path, Option(help="The .jsonl file to write.")],
    model: Annotated[
        str, Option(help="Hub id (org/name@revision) or folder of a translation model.")
    ] = "facebook/nllb-200-distilled-600M@refs/pr/39",  # the hub's conversion: the main branch has pickled weights only
    source: Annotated[str | None, Option("--from", help="Language of the texts; of NLLB, eng_Latn.")] = None,
    fields: Annotated[str | None, Option(help="Fields to translate; by default all texts.")] = None,
    beams: Annotated[int, Option(min=1, help="Beams of the search; 1 is greedy.")] = 4,
    batch: Annotated[int, Option(min=1, help="Rows at a time.")] = 16,
    as_json: Json = False,
) -> None:
    """Translate a data file; ids and labels are kept.

    Run the same command to continue. `ice compare ORIGINAL TRANSLATED --by-id` compares the two runs.
    """
    from ice_eval.models import LoadSettings
    from ice_eval.tasks import FileData
    from ice_eval.translation import Provenance, translate_file, translated_fields

    how = LoadSettings(**loading)

    def load() -> Callable[[Sequence[str]], list[str]]:
        from ice_eval.models.pretrained import load_translator

        return load_translator(model, source=source, target=to, beams=beams, settings=how).translate

    def progress(done: int, total: int) -> None:
        print_text(f"{done}/{total} rows", error=True)

    given = FileData(data)
    chosen = translated_fields(given, None if fields is None else names(fields))
    if not to.strip():
        raise ConfigError("--to is empty; a language is expected, such as fra_Latn.")
    provenance = Provenance(
        model=model, to=to, source=source, beams=beams, batch=batch, fields=chosen, load_in=how.load_in
    )
    found = translate_file(given, out, provenance, load, progress=progress)
    if as_json:
        content = {"out": str(found.path), "n": found.n, "n_before": found.n_before, "fields": list(chosen)}
        print_json({**content, "dropped": list(found.dropped)})
        return
    print_text(f"{found.path}: {found.n} examples, {', '.join(chosen)} in {to}.")
    if found.n_before:
        print_text(f"{found.n_before} of them were translated earlier.")
    if found.dropped:
        print_text(f"Left out, as they may point into the original texts: {', '.join(found.dropped)}.")
