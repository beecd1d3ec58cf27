"""Runs put to further tests: `ice audit-infill` and `ice f-fidelity`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from ice_eval.choices import Unit
from ice_eval.cli._options import TASK, DataFolder, Format, Json, TaskFlags, check_format, takes, task_of, task_of_run
from ice_eval.cli._output import is_data, print_data, print_json, print_tables
from ice_eval.errors import ConfigError
from ice_eval.settings import RunFields, run_config

if TYPE_CHECKING:
    from ice_eval.models import Model
    from ice_eval.results import RunFolder


@takes(*TASK)
def audit_infill(
    values: dict[str, Any],
    folder: Annotated[Path | None, Argument(metavar="[RUN]", help="A finished run with infill rows.")] = None,
    model: Annotated[str | None, Option(help="Whose tokenizer to use; by default the run's.")] = None,
    n: Annotated[int | None, Option(min=2, help="Examples of the pool; by default 2,000.")] = None,
    unit: Annotated[str | None, Option(help="token (by default) or word.")] = None,
    words: Annotated[
        Path | None, Option(help="Text file of label-indicative words, in place of the task's list.")
    ] = None,
    seed: Annotated[int, Option(help="Seed of the shuffles.")] = 0,
    style: Format = None,
    out: DataFolder = None,
    as_json: Json = False,
) -> None:
    """Show which label-indicative units infill may still write, and in a finished run whether that mattered.

    Needs no weights. With RUN, its fills are read from the ledger, and win rates with and without label-indicative
    fills are compared.
    """
    from ice_eval.analysis import audit_fills
    from ice_eval.analysis import audit_infill as audited
    from ice_eval.choices import PROTOCOLS
    from ice_eval.encoding import encode
    from ice_eval.operators import POOL_EXAMPLES
    from ice_eval.report.analyses import audit_data, audit_notes, audit_tables

    check_format(style, out, json=as_json)
    run = _run(folder, model, n, unit)
    config: RunFields = run_config({"n": 1, "unit": unit}) if run is None else run.manifest().config
    if config.unit == "sentence":
        raise ConfigError(
            "infill of sentences writes whole ones of other texts; only units of token or word are audited."
        )
    flags = TaskFlags(**values)
    chosen = task_of(flags) if run is None else task_of_run(run, flags)
    listed = None if words is None else _words(words)
    chosen.examples(limit=1)  # a bad file is reported before a tokenizer is loaded
    reader = _reader(model, run)
    reserve = reader.labels(chosen, scoring=config.label_scoring).reserve
    cut_into: Unit = "word" if config.unit == "word" else "token"
    items = [
        (encode(reader.codec, chosen, each, unit=cut_into, scope=config.scope, reserve=reserve), each.gold)
        for each in chosen.examples(limit=max(n or POOL_EXAMPLES, config.n))
    ]
    alone = PROTOCOLS[config.protocol].label_words_only
    pool = items[: n or POOL_EXAMPLES]
    found = audited(reader.codec, chosen, pool, model=reader.name, words=listed, label_words_only=alone, seed=seed)
    fills = None if run is None else audit_fills(run, found, {item.example_id: item for item, _ in items})
    if as_json:
        print_json({**found.as_dict(), **({} if fills is None else {"run": str(folder), **fills.as_dict()})})
    elif is_data(style):
        print_data(audit_data(found, fills), style, out)
    else:
        print_tables(audit_tables(found, fills), audit_notes(found, fills), style=style)


def _run(folder: Path | None, model: str | None, n: int | None, unit: str | None) -> "RunFolder | None":
    """Return the run to audit; None if a model and a task are given."""
    from ice_eval.results import RunFolder

    if folder is None:
        if model is None:
            raise ConfigError("neither a run nor a model was given: ice audit-infill RUN, or --model M --task T.")
        return None
    run = RunFolder.existing(folder)
    if n is not None or unit is not None:
        raise ConfigError("a run has its own --n and --unit; leave them out.")
    run.require_complete()
    return run


def _refuse_served(run: "RunFolder") -> None:
    server = run.manifest().server
    if server is None:
        return
    if server.tokenizer is not None:
        raise ConfigError(f"{run.path} is of a served model; give its tokenizer: --model {server.tokenizer}.")
    raise ConfigError(
        f"{run.path} is of a model behind a server that was evaluated without --tokenizer, and its fills are no tokens "
        "that could be audited; `ice audit-infill --model M --task T` audits the data as another model reads them."
    )


def _reader(model: str | None, run: "RunFolder | None") -> "Model":
    """Return a model that reads texts: the named one, or the run's."""
    from ice_eval.models import load_reader

    if model is not None:
        return load_reader(model)
    assert run is not None, "without a run a model is given"
    _refuse_served(run)
    name = run.manifest().config.model
    try:
        return load_reader(name)
    except ConfigError as exc:  # the name of a folder does not include its path
        raise ConfigError(f"the run's model '{name}' was not found by its name; give --model ({exc})") from exc


def _words(path: Path) -> list[str]:
    try:
        found = path.read_text(encoding="utf-8").replace(",", " ").split()
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{path} cannot be read as text: {exc}.") from exc
    if not found:
        raise ConfigError(f"{path} holds no words; words with spaces or lines between are expected.")
    return found


# --- ice f-fidelity -------------------------------------------------------------------------------------------------


@takes(*TASK, "device")
def f_fidelity(
    values: dict[str, Any],
    run: Annotated[Path, Argument(help="The folder of a finished run of a sequence classifier.")],
    out: Annotated[Path, Option(help="Folder of the new run, of the adapted copy.")],
    model: Annotated[str | None, Option(help="The run's model, if its name does not lead to it.")] = None,
    epochs: Annotated[int, Option(help="Passes over the training examples.")] = 3,
    share: Annotated[float | None, Option(help="Largest share of units to remove in training.")] = None,
    lr: Annotated[float, Option(help="Learning rate.")] = 5e-5,
    batch_size: Annotated[int, Option(help="Examples per step of training.")] = 16,
    seed: Annotated[int, Option(help="Defines what training removes, its order and dropout.")] = 0,
    save_model: Annotated[Path | None, Option(metavar="DIR", help="Where to write the adapted copy.")] = None,
    as_json: Json = False,
) -> None:
    """Repeat a run on a copy of its classifier that was fine-tuned on inputs with units removed.

    Explanations, labels, random sets and fills are those of the run (F-Fidelity, Zheng et al. 2025). Options of the
    task are needed only where the manifest does not lead to it.
    """
    from ice_eval.api.progress import Bar
    from ice_eval.f_fidelity import f_fidelity as adapted_run
    from ice_eval.f_fidelity import require_adaptable
    from ice_eval.models import load_model
    from ice_eval.report import write_html
    from ice_eval.results import RunFolder

    deployed = RunFolder.existing(run)
    require_adaptable(deployed)
    manifest = deployed.manifest()
    device = values.pop("device")
    chosen = task_of_run(deployed, TaskFlags(**values))
    loaded = load_model(model or manifest.config.model, device=device, dtype=str(manifest.identity["dtype"]))
    found = adapted_run(
        deployed,
        model=loaded,
        task=chosen,
        out=out,
        share=share,
        training={"epochs": epochs, "lr": lr, "batch_size": batch_size, "seed": seed},
        save_model=save_model,
        reporter=Bar(),
    )
    write_html([found], found.path / "report.html")
    _print(deployed, found, as_json=as_json)


def _print(deployed: "RunFolder", found: "RunFolder", *, as_json: bool) -> None:
    from ice_eval.analysis.checks import answered
    from ice_eval.report import adaptation_notes, adaptation_table, difference_notes, difference_tables
    from ice_eval.results import differences
    from ice_eval.results.json_files import as_json as json_of

    [compared] = differences(deployed, [found])
    lines = answered(deployed, found)
    adaptation = found.manifest().adaptation
    assert adaptation is not None, "the run is of an adapted model"
    if as_json:
        print_json(
            {
                "deployed": str(deployed.path),
                "adapted": str(found.path),
                "adaptation": json_of(adaptation),
                "answers": [{**vars(line), "learnt": line.learnt} for line in lines],
                "comparison": compared.as_dict(),
            }
        )
        return
    tables = [*difference_tables([compared]), adaptation_table(lines)]
    print_tables(tables, [*difference_notes([compared]), *adaptation_notes(adaptation, lines)])
