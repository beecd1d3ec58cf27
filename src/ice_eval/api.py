"""What a notebook user sees: `evaluate`, `Run`, `randomization_test`."""

import contextlib
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ice_eval import stats
from ice_eval.attributions import Attribution, Computed, Given, explained, method_of
from ice_eval.cot import rescore_chains
from ice_eval.errors import ConfigError, DataError
from ice_eval.executors import Executor, executor_named
from ice_eval.interop import Explanation
from ice_eval.interop import formats as explanation_formats
from ice_eval.models import DeviceMap, MaxMemory, ModelRef, Served
from ice_eval.pipeline import Replicas, Reporter, RunConfig, Silent, examples_read, execute, load_replicas
from ice_eval.rationales import DYNAMIC, Share, keep_mask, null_of, random_sets
from ice_eval.records import Example
from ice_eval.results import Plan, RunFolder, differences, rescore, view_example
from ice_eval.results import plan as plan_from
from ice_eval.results.planning import PILOT_SETS
from ice_eval.tasks import FileData, Task, in_chat, load_task

if TYPE_CHECKING:
    import pandas as pd

    from ice_eval.report import ShownExample

AttributionSpec = Attribution | ArrayLike | Callable[..., ArrayLike] | str | Path | Explanation | None
"""Beside these, objects of the libraries that `ice_eval.interop` knows, and sequences or mappings of any of them."""


class Run:
    """A finished evaluation, read from its folder.

    Example:
        >>> run = Run("ice-runs/demo")          # doctest: +SKIP
        >>> run.summary()[["attribution", "operator", "win_rate", "verdict"]]   # doctest: +SKIP
    """

    def __init__(self, path: str | Path) -> None:
        self.folder = RunFolder.existing(Path(path))

    @property
    def path(self) -> Path:
        return self.folder.path

    def summary(self) -> "pd.DataFrame":
        """One row per configuration."""
        import pandas as pd

        return pd.DataFrame(self.folder.summary()["configurations"])

    def agreement(self) -> "pd.DataFrame":
        """One row per attribution and pair of operators."""
        import pandas as pd

        return pd.DataFrame(self.folder.summary()["agreement"])

    def examples(self) -> "pd.DataFrame":
        """One row per example and configuration."""
        import pandas as pd

        return pd.DataFrame(list(self.folder.examples()))

    def example(
        self,
        example_id: str,
        *,
        attribution: str | None = None,
        operator: str | None = None,
        direction: str | None = None,
        k: float | None = None,
        null: str | None = None,
    ) -> "ShownExample":
        """One example, under all configurations or those that are chosen.

        A notebook shows its text with every attribution as shades and the rationale outlined, win rate, p-value and the
        scores of the null; elsewhere it prints as lines of text.

        Raises:
            ConfigError: The run holds no such example or configuration.
        """
        from ice_eval.report import ShownExample

        chosen = {"attribution": attribution, "operator": operator, "direction": direction, "k": k, "null": null}
        return ShownExample(view_example(self.folder, str(example_id), **chosen))  # type: ignore[arg-type]

    def compare(self, other: "Run | str | Path", *, by_id: bool = False) -> "pd.DataFrame":
        """What changed from this run to another: one row per configuration that both have, as `ice compare`.

        `difference` is the other's mean win rate less this run's, with its 95 % interval and a test: paired over the
        examples that both hold (same id, same text), unpaired where these are less than half of the smaller run. With
        `by_id` the id alone decides, as for translations. The settings that differ are in `attrs["settings"]`.
        """
        import pandas as pd

        folder = other.folder if isinstance(other, Run) else RunFolder.existing(Path(other))
        [found] = differences(self.folder, [folder], by_id=by_id)
        frame = pd.DataFrame([vars(line) for line in found.configurations])
        frame.attrs["settings"] = [setting._asdict() for setting in found.settings]
        return frame

    def report(self, path: str | Path | None = None) -> Path:
        """Write the report as one HTML file, by default into the run folder."""
        from ice_eval.report import write_html

        return write_html([self.folder], Path(path) if path is not None else self.path / "report.html")

    def rescore(self) -> None:
        """Compute all statistics again from the ledger, without a model."""
        self.folder.require_complete()
        compute = rescore_chains if "cot" in self.folder.manifest() else rescore
        with self.folder.opened():
            compute(self.folder)

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    def _repr_html_(self) -> str:
        from ice_eval.report import summary_html

        return summary_html(self.folder)


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
    data: str | Path | None = None,
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
        data: A `.jsonl` or `.csv` file to use instead of the task's own data.
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
        reporter: Gets progress and messages.
        **settings: Further fields of `RunConfig`: `directions`, `unit`, `scope`, `target`, `sign`, `fills`,
            `n_fills`, `label_scoring`, `calibration`, `protocol`, `nulls`, `adaptive`, `eraser`.

    Raises:
        ConfigError: What was asked cannot be done; nothing has been written.
        ModelError: The model failed, or no example could be evaluated.
    """
    config = _config(attributions=attributions, operators=operators, k=k, n=n, m=m, seed=seed, **settings)
    place = executor_named(executor, address=address, gpus_per_worker=gpus_per_worker)
    chosen = in_chat(_task(task, data), chat, system)
    methods = {name: attributions[name] if isinstance(attributions, Mapping) else None for name in config.attributions}
    for name, spec in methods.items():
        if spec is None:
            method_of(name)
    examples = chosen.examples(limit=examples_read(n))
    # What a user brings is read before a model is loaded: a file that is wrong should not take minutes to say so.
    given = _Methods({name: _method(name, spec, examples) for name, spec in methods.items()})
    loading = {"device": device, "dtype": dtype, "device_map": device_map, "max_memory": max_memory, "load_in": load_in}
    temporary = _Temporary() if out is None and not default_out else None
    with _replicas(model, place, loading, reporter) as replicas:
        folder = execute(
            config,
            model=replicas,
            task=chosen,
            examples=examples,
            attributions=given,
            out=temporary.path / "run" if temporary is not None else None if out is None else Path(out),
            token_budget=token_budget,
            reporter=reporter,
        )
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


def plan(
    model: ModelRef,
    task: str | Task,
    *,
    n: int = 500,
    m: int | None = None,
    adaptive: str | None = None,
    width: float | None = None,
    detect: float | None = None,
    pilot: int = 32,
    **settings: Any,
) -> Plan:
    """Say what an evaluation would take, and how sure its answer would be, from a small pilot that is not kept.

    Args:
        model: As `evaluate` takes it.
        task: As `evaluate` takes it.
        n: Examples that are asked for.
        m: Random sets that are asked for.
        adaptive: As asked for; the pilot itself is not.
        width: Wanted width of the 95 % intervals, as 0.05: how many examples and sets it takes at the least cost.
        detect: Wanted smallest detectable win rate, as 0.55: the same.
        pilot: Examples of the pilot.
        **settings: Further arguments of `evaluate`.

    Raises:
        ConfigError: What was asked cannot be done.
    """
    known = {field.name for field in fields(RunConfig)}
    asked = _config(n=n, m=m, adaptive=adaptive, **{name: settings[name] for name in settings if name in known})
    if pilot < 2:
        raise ConfigError(f"pilot = {pilot}: at least 2 examples are needed.")
    for name, goal, low, usual in (("width", width, 0.0, 0.05), ("detect", detect, 0.5, 0.55)):
        if goal is not None and not low < goal < 1:
            raise ConfigError(
                f"{name} = {goal}: a number between {low:g} and 1 is expected, as {usual} for {100 * usual:.0f} %."
            )
    chosen = _task(task, settings.pop("data", None))
    limit = examples_read(n)
    n_examples = len(chosen.examples(limit=limit))
    shown = settings.get("reporter") or Silent()
    settings["reporter"] = _OfPilot(shown)
    if isinstance(model, Served):
        shown.say(f"the pilot asks {model.base_url}: its answers are charged for, and are not kept.")
    # One random set shows no spread.
    found = evaluate(model, chosen, n=min(n, pilot), m=min(max(asked.m, 2), PILOT_SETS), **settings)
    for message in found.folder.manifest()["messages"]:
        shown.say(message)
    return plan_from(
        found.folder,
        n=min(n, n_examples),
        m=asked.m,
        adaptive=asked.adaptive,
        width=width,
        detect=detect,
        available=n_examples if n_examples < limit else None,
    )


class _OfPilot:
    """Shows the progress of a pilot; what is said of its few examples and sets is not about the run that is planned."""

    def __init__(self, shown: Reporter) -> None:
        self._shown = shown

    def say(self, message: str) -> None: ...

    def start(self, total: int) -> None:
        self._shown.start(total)

    def advance(self, rows: int, *, scored: bool = True) -> None:
        self._shown.advance(rows, scored=scored)

    def correct(self, total: int) -> None:
        self._shown.correct(total)

    def stop(self) -> None:
        self._shown.stop()

    def asked_to_stop(self) -> bool:
        return self._shown.asked_to_stop()


def _task(task: str | Task, data: str | Path | None) -> Task:
    """A known task or a user's, with a file in place of its data if one is given."""
    chosen = load_task(task) if isinstance(task, str) else task
    return chosen if data is None else replace(chosen, data=FileData(Path(data)))


class _Temporary:
    """A folder that goes when the last reference to it goes, or with the program."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="ice-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def _several(names: str | Iterable[str]) -> tuple[str, ...]:
    """One name or several."""
    return (names,) if isinstance(names, str) else tuple(names)


def _shares(k: Share | Sequence[Share]) -> tuple[Share, ...]:
    several: Any = (k,) if isinstance(k, str) or np.ndim(k) == 0 else k
    try:
        return tuple(DYNAMIC if value == DYNAMIC else float(value) for value in several)
    except (TypeError, ValueError) as exc:
        raise ConfigError(f"k = {k!r}: a share between 0 and 1 or '{DYNAMIC}' is expected, or several.") from exc


def _config(*, m: int | None, **values: Any) -> RunConfig:
    """The configuration of what a user gave: one name or several, a share or several, `m` or its default."""
    several = ("attributions", "operators", "directions", "nulls")
    values |= {name: _several(values[name]) for name in several if name in values}
    values |= {"k": _shares(values["k"])} if "k" in values else {}
    values |= {} if m is None else {"m": m}
    try:
        return RunConfig(**values)
    except TypeError as exc:
        known = ", ".join(field.name for field in fields(RunConfig))
        raise ConfigError(f"{exc}".replace("RunConfig.__init__()", "evaluate()") + f"; settings are {known}.") from exc


class _Methods(dict[str, Attribution]):
    """Attributions by name; a known method that a folder already holds needs not be named again."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or _is_known(str(name))

    def __missing__(self, name: str) -> Attribution:
        return method_of(name)


def _is_known(name: str) -> bool:
    try:
        method_of(name)
    except ConfigError:
        return False
    return True


_EXPECTED = "a file with explanations, numbers or a function are expected, or None for a known method"


def _method(name: str, spec: AttributionSpec, examples: Sequence[Example]) -> Attribution:
    """What a user gave for a name, as an `Attribution`."""
    if spec is None:
        return method_of(name)
    if isinstance(spec, Attribution):
        return spec
    if _is_known(name.partition(":")[0]):
        raise ConfigError(
            f"'{name}' is the name of a known attribution, and what was given is not computed by it; choose another "
            "name, so that nobody takes one for the other."
        )
    if isinstance(spec, str | Path) and not Path(spec).is_file():
        raise DataError(f"the attribution '{name}' is '{spec}', and there is no such file; {_EXPECTED}.")
    if _is_explanation(spec):
        return explained(name, spec, examples)
    if callable(spec):
        return Computed(function=spec)
    if isinstance(spec, Mapping):
        return Given(values={str(identity): values for identity, values in spec.items()})
    if not isinstance(spec, Iterable):
        raise DataError(f"the attribution '{name}' is {spec!r:.60}; {_EXPECTED}.")
    rows = list(spec)
    if len(rows) > len(examples):
        raise DataError(f"the attribution '{name}' has {len(rows)} arrays, and the data hold {len(examples)} examples.")
    return Given(values={example.id: row for example, row in zip(examples, rows, strict=False)})


def _is_explanation(spec: object) -> bool:
    """Whether it is a file, or something of a known library, alone or several in a sequence or mapping."""
    if isinstance(spec, str | Path | Explanation) or _is_readable(spec):
        return True
    several = list(spec.values()) if isinstance(spec, Mapping) else spec
    if not isinstance(several, list | tuple) or not several:
        return False
    return isinstance(several[0], Explanation) or _is_readable(several[0])


def _is_readable(spec: object) -> bool:
    return not isinstance(spec, np.ndarray) and any(known().reads(spec) for _, known in explanation_formats.items())


def randomization_test(
    score_masks: Callable[[NDArray[np.bool_]], ArrayLike],
    *,
    n_units: int,
    rationale: Sequence[int],
    m: int = 50,
    seed: int = 0,
) -> stats.Comparison:
    """Test one rationale of any model, in any modality.

    Args:
        score_masks: Takes a bool matrix of keep-masks (rows, units) and returns a score per row, larger for a better
            kept input.
        n_units: How many units (words, patches, frames, …) the input has.
        rationale: The units that the explanation names.
        m: Random sets to compare with; all sets, and an exact test, where there are no more than m + 1.
        seed: Defines the random sets.

    Returns:
        Win rate, p-values and the null they were computed from.

    Raises:
        DataError: The rationale is not a set of units, leaves no other set, or a score is not finite.
    """
    units = tuple(sorted(set(int(unit) for unit in rationale)))
    if len(units) != len(list(rationale)) or not units or units[0] < 0 or units[-1] >= n_units:
        raise DataError(f"the rationale {list(rationale)} is not a set of units 0 … {n_units - 1}.")
    if m < 1:
        raise ConfigError(f"m = {m}: at least 1 is needed.")
    sets = random_sets(n_units, len(units), m + 1, seed=seed, example_id="")
    chosen = [sets[index] for index in null_of(units, sets, m)]
    if not chosen:
        raise DataError(
            f"the rationale holds all {n_units} units, so there is no other set of its size to compare with."
        )
    masks = np.stack([keep_mask(each, n_units) for each in (units, *chosen)])
    scores = np.asarray(score_masks(masks), dtype=np.float64)
    if scores.shape != (len(masks),):
        raise DataError(
            f"score_masks returned shape {scores.shape} for {len(masks)} rows; one score per row is expected."
        )
    return stats.compare(float(scores[0]), scores[1:])
