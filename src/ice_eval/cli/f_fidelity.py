"""`ice f-fidelity`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from ice_eval.cli._options import TASK, Json, takes
from ice_eval.cli._output import print_json, print_tables
from ice_eval.cli._tasks import TaskFlags, task_of_run

if TYPE_CHECKING:
    from ice_eval.results import RunFolder


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
    from ice_eval.analysis.answers import answered
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
