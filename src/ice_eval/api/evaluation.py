"""`evaluate`: from what a user asks to a finished run."""

import contextlib
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ice_eval.api.given import AttributionSpec, methods_of, specs_of
from ice_eval.api.progress import watched
from ice_eval.api.run import Run
from ice_eval.api.settings import config_of, task_of
from ice_eval.executors import Executor, executor_named
from ice_eval.models import DeviceMap, MaxMemory, ModelRef
from ice_eval.pipeline import Replicas, Reporter, Scored, examples_read, finish, load_replicas, score
from ice_eval.rationales import Share
from ice_eval.tasks import DataSource, Task, in_chat


def evaluate(
    model: ModelRef | Replicas,
    task: str | Task,
    *,
    attributions: str | Sequence[str] | Mapping[str, AttributionSpec] = ("attention", "gradient", "random"),
    operators: str | Sequence[str] = ("delete", "infill"),
    k: Share | Sequence[Share] = 0.2,
    n: int = 500,
    m: int | None = None,
    seed: int = 0,
    data: str | Path | DataSource | None = None,
    chat: bool | None = None,
    system: str | None = None,
    device: str = "auto",
    dtype: str = "auto",
    device_map: DeviceMap | None = None,
    max_memory: MaxMemory | None = None,
    load_in: str | None = None,
    token_budget: int | None = None,
    out: str | Path | None = None,
    default_out: bool = False,
    executor: str = "local",
    address: str | None = None,
    gpus_per_worker: float | None = None,
    reporter: Reporter | None = None,
    **settings: Any,
) -> Run:
    """Compare explanations of a model with random ones of equal size, under several operators.

    Args:
        model: A hub id, a folder, a `.gguf` file, a known name (`smollm2`, `gpt2-xl`), a pair of a transformers
            model and its tokenizer, or a model behind a server (`Served`).
        task: A known task (`sst2`), perhaps in another of its prompts (`sst2/minimal`, `sst2/minimal/few-shot`), a task
            file (`mine.yaml`), or a `Task`.
        attributions: Names (`"attention"`, or with options `"attention:layer=-1"`), or a mapping from names to None
            (the known method of that name), to numbers (a sequence with an array per example, or a mapping from example
            ids to arrays), to a function that takes an encoded example and returns a number per unit (`item.texts` are
            its units), to a file with explanations, or to what shap, captum, ferret or interpreto returned: tokens are
            matched with the units by the text they share.
        operators: What happens to the units that are not kept.
        k: Share of units in a rationale, or `"dynamic"`: one for each peak of the attribution. Several are evaluated
            side by side.
        n: Examples, from the first on.
        m: Random sets that each rationale is compared with: 50 by default. With `adaptive` the most of them.
        seed: Defines random sets, fills and the random control.
        data: A `.jsonl` or `.csv` file to use instead of the task's own data, or a `FileData` with what it calls its
            columns.
        chat: Make the prompt a user turn of the model's chat template; by default as the task says.
        system: System turn of the chat.
        device: `auto`, `cpu`, `cuda`, …
        dtype: `auto` (bfloat16 on a GPU, else float32), `float32`, `bfloat16`, `float16`.
        device_map: Spread the model over several devices in place of one: `auto`, `balanced`, `balanced_low_0` or
            `sequential`, a JSON file, or a mapping from modules to devices (a GPU's number, `cpu`, `disk`).
        max_memory: What such a map may put on each device, as `"0=20GiB,cpu=60GiB"`.
        load_in: Quantise the weights: `8bit`, `4bit` (bitsandbytes), `torchao-8bit`, `quanto-8bit`, `quanto-4bit`.
        token_budget: Tokens per batch; by default what suits the device.
        out: The run folder, continued if it holds the same run. By default a temporary one that goes with the result.
        default_out: Without `out`, use a folder under `ice-runs/` that is named after the configuration.
        executor: Where the model computes: `local` (this process) or `ray` (replicas on the nodes of a Ray cluster).
            Scores do not depend on it.
        address: Of a Ray cluster that is there; by default what `$RAY_ADDRESS` says, else one is started here.
        gpus_per_worker: GPUs of each replica on the cluster, or a share of one; by default 1 where it has GPUs, else 0.
        reporter: Gets progress and messages; by default a terminal and a notebook show them, and nothing else does.
        **settings: Further fields of `RunConfig`: `directions`, `unit`, `scope`, `target`, `sign`, `fills`,
            `n_fills`, `label_scoring`, `calibration`, `protocol`, `nulls`, `adaptive`, `eraser`.

    Raises:
        ConfigError: What was asked cannot be done; nothing has been written.
        ModelError: The model failed, or no example could be evaluated.
    """
    config = config_of(attributions=attributions, operators=operators, k=k, n=n, m=m, seed=seed, **settings)
    place = executor_named(executor, address=address, gpus_per_worker=gpus_per_worker)
    chosen = in_chat(task_of(task, data), chat, system)
    specs = specs_of(config.attributions, attributions)
    loading = {"device": device, "dtype": dtype, "device_map": device_map, "max_memory": max_memory, "load_in": load_in}
    temporary = _Temporary() if out is None and not default_out else None
    reporter = reporter or watched(continues=temporary is None)

    def scored() -> Scored:
        """Score all rows; examples and model are gone when statistics are computed."""
        examples = chosen.examples(limit=examples_read(n))
        # User-supplied attributions are read before a model is loaded: a wrong file should not take minutes to show.
        methods = methods_of(specs, examples)
        with _replicas(model, place, loading, reporter) as replicas:
            return score(
                config,
                model=replicas,
                task=chosen,
                examples=examples,
                attributions=methods,
                out=temporary.path / "run" if temporary is not None else None if out is None else Path(out),
                token_budget=token_budget,
                reporter=reporter,
            )

    folder = finish(scored())
    run = Run(folder.path)
    run.folder.keeps = temporary  # a temporary folder lives as long as somebody looks into it
    return run


@contextlib.contextmanager
def _replicas(
    model: ModelRef | Replicas, place: Executor, loading: Mapping[str, Any], reporter: Reporter | None
) -> Iterator[Replicas]:
    """The model where it computes, as long as it is needed; replicas that are given stay."""
    if isinstance(model, Replicas):
        yield model
        return
    with place.opened():
        replicas = load_replicas(model, place, reporter=reporter, **loading)
        try:
            yield replicas
        finally:
            replicas.release()


class _Temporary:
    """A folder that goes when the last reference to it goes, or with the program."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="ice-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
