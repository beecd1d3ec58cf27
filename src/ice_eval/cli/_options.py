"""Options of commands: settings on the command line, with `--set` and in a file, and the task that they describe."""

import functools
import inspect
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args

import typer
from typer import Option

from ice_eval._registry import did_you_mean
from ice_eval.choices import DYNAMIC, SUBJECTS, Share, SubjectName, TableColumns
from ice_eval.cli._output import print_text
from ice_eval.errors import ConfigError
from ice_eval.files import read_yaml
from ice_eval.settings import (
    REQUIRED,
    SERVING,
    SETTINGS,
    SUBJECT,
    RunConfig,
    Setting,
    names_of,
    refuse_others,
    values_of,
)

if TYPE_CHECKING:
    from ice_eval.models import Served
    from ice_eval.results import RunFolder
    from ice_eval.tasks import DataSource, Task

Command = Callable[..., None]
Format = Annotated[
    str | None, Option("--format", help="Print the tables as md or latex, or the first as data: csv or json.")
]
DataFolder = Annotated[
    Path | None,
    Option("--out", metavar="DIR", help="With --format csv, parquet or json: write a file for each table into DIR."),
]
Json = Annotated[bool, Option("--json", help="Print the result as JSON.")]
Full = Annotated[bool, Option("--full", help="Print all tables and notes, not the conclusion alone.")]
Columns = Annotated[
    str | None,
    Option(metavar="NAME", help="Columns of configurations: default, or paper; by default those of the protocol."),
]
MAX_DROPPED = 0.1
MaxDropped = Annotated[float, Option(metavar="SHARE", help="Largest share of failed examples for exit 0.")]
ANSWER_FIELD = "{answer}"
"""Column of the data whose text is explained if neither labels nor a text are given."""


class TaskFlags(NamedTuple):
    """The options that describe a task; None if not given."""

    task: str | None = None
    data: Path | None = None
    prompt: str | None = None
    labels: str | None = None
    explain: str | None = None
    target_text: str | None = None
    columns: str | Mapping[str, str] | None = None
    """As `id=number,text=body`, or a manifest's mapping."""


TASK = TaskFlags._fields
"""Names of the settings that define the task."""
_TYPES: Mapping[str, Any] = {"count": int, "number": float, "flag": bool, "file": Path, "pairs": list[str]}


def takes(*settings: str) -> Callable[[Command], Command]:
    """Add the options of some settings to a command; its first parameter gets their values, by name."""
    chosen = [SETTINGS[name] for name in settings]
    return functools.partial(_with_options, chosen, [_parameter(each) for each in chosen])


def takes_evaluation(command: Command, *, relevant: Collection[str] = tuple(SETTINGS)) -> Command:
    """Add all settings of a run, `--config`, `--set` and `--help-all` to a command; irrelevant ones are hidden."""
    options = []
    for each in SETTINGS.values():
        is_relevant = each.name in relevant
        panel = each.panel if is_relevant else None
        options.append(_parameter(each, panel=panel, hidden=not (is_relevant and each.everyday)))
    return _with_options(SETTINGS.values(), [*options, *inspect.signature(_files).parameters.values()], command)


def _parameter(each: Setting, *, panel: str | None = None, hidden: bool = False) -> inspect.Parameter:
    """Return a setting as an option under a help heading."""
    kind = _TYPES.get(each.kind, str)
    default = inspect.Parameter.empty if each.default is REQUIRED else each.default
    if isinstance(default, tuple):
        default = ",".join(map(str, default))
    elif default is None:
        kind = kind | None
    option = Option(each.option, help=each.help, metavar=each.metavar, hidden=hidden, rich_help_panel=panel)
    return inspect.Parameter(
        each.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option]
    )


def _with_options(settings: Iterable[Setting], options: Sequence[inspect.Parameter], command: Command) -> Command:
    """Return a command with these options in place of its first parameter, which gets the values of the settings."""
    _, *own = inspect.signature(command).parameters.values()

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        values = {each.name: _parsed(each, given[each.name]) for each in settings}
        command(values, **{each.name: given[each.name] for each in own})

    together = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*options, *own)]
    with_options.__signature__ = inspect.Signature(together)  # type: ignore[attr-defined]
    with_options.__annotations__ = {each.name: each.annotation for each in together}
    return with_options


def _parsed(each: Setting, value: Any) -> Any:
    """Return the Python value of a command-line value."""
    if each.kind == "names":
        return None if value is None else names(value)
    if each.kind == "shares":
        return _shares(each, value)
    return value


def _shares(each: Setting, text: str) -> list[Share]:
    try:
        return [DYNAMIC if part == DYNAMIC else float(part) for part in names(text)]
    except ValueError as exc:
        expected = f"numbers between 0 and 1 or {DYNAMIC} are expected, such as 0.2 or 0.1,0.2,{DYNAMIC}"
        raise ConfigError(f"{each.option} {text}: {expected}.") from exc


def arguments_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `evaluate` from the values of all settings."""
    apart = names_of((*SUBJECT, *SERVING))
    served = {name: value for name, value in values_of(SERVING, values).items() if value is not None}
    return {
        **{name: value for name, value in values.items() if name not in apart},
        "model": _model(values["model"], served),
        **_task(values),
        "attributions": _attributions(values["attributions"], values["attribution_file"] or []),
    }


def _task(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the task, from all options that describe one; other subjects than texts have all they need in `data`."""
    flags = TaskFlags(*(values[name] for name in TASK))
    subject = "chain" if values["responses"] is not None else subject_of(flags.task)
    if subject == "text":
        return {"task": task_of(flags)}
    refuse_others(values, subject, flags.task or "given")
    return {"task": flags.task, "data": flags.data}


def _model(name: str, served: dict[str, Any]) -> "str | Served":
    """Return the name of a model, or a served model if a server is given."""
    if not name.startswith("openai:"):
        for given in served:
            raise ConfigError(
                f"{SETTINGS[given].option} applies only to served models, and {name} is not one; write "
                f"--model openai:{name} if a server has it."
            )
        return name
    from ice_eval.models import SERVED, Served

    if "base_url" not in served:
        raise ConfigError(f"--model {name} is served; add its address: --base-url http://localhost:8000/v1.")
    reached = {"timeout_s" if given == "timeout" else given: value for given, value in served.items()}
    return Served(name.removeprefix(SERVED), **reached)


def _attributions(known: tuple[str, ...] | None, files: list[str]) -> tuple[str, ...] | dict[str, Path | None] | None:
    """Return known methods, and files given as NAME=FILE; names must be unique."""
    if known == ("none",):
        known = ()
    usual = dict.fromkeys(RunConfig().attributions if files else ())
    found: dict[str, Path | None] = usual if known is None else dict.fromkeys(known)
    for each in files:
        name, _, file = (part.strip() for part in each.partition("="))
        if not name or not file:
            raise ConfigError(f"--attribution-file {each}: NAME=FILE is expected, such as mine=explanations.jsonl.")
        if name in found:
            raise ConfigError(f"--attribution-file {each}: another attribution is named '{name}'; choose another name.")
        found[name] = Path(file)
    return found if files else known


def check_share(option: str, value: float) -> None:
    """Raise ConfigError unless the value of an option is a share."""
    if not 0 <= value <= 1:
        raise ConfigError(f"{option} {value:g}: a share between 0 and 1 is expected, such as 0.1.")


def without_view(values: Mapping[str, Any]) -> tuple[Mapping[str, Any], TableColumns | None]:
    """Return the values of `ice run`, and the columns of its tables: `--columns` with a plain name is about these."""
    given = values["columns"]
    return ({**values, "columns": None}, table_columns(given)) if given in get_args(TableColumns) else (values, None)


def table_columns(name: str | None) -> TableColumns | None:
    """Return the name of the columns of a table; raise ConfigError for an unknown one."""
    known: tuple[TableColumns, ...] = get_args(TableColumns)
    for each in known:
        if name == each:
            return each
    if name is not None:
        raise ConfigError(f"--columns {name}{did_you_mean(name, list(known))} Expected: {', '.join(known)}.")
    return None


def _read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Read option values from a YAML file; the command line and `--set` take precedence."""
    if path is not None:
        content = read_yaml(path)
        if not isinstance(content, dict):
            raise ConfigError(f"{path}: keys and values are expected, as in 'model: smollm2'.")
        values = [_named(context, str(path), str(key), value) for key, value in content.items()]
        context.default_map = {**dict(values), **(context.default_map or {})}
    return path


def _read_set(context: typer.Context, pairs: list[str] | None) -> list[str] | None:
    """Read option values from NAME=VALUE; explicit options take precedence."""
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"--set {pair}: NAME=VALUE is expected, such as --set n_fills=4.")
        name, found = _named(context, f"--set {pair}", key.strip(), value.strip())
        context.default_map = {**(context.default_map or {}), name: found}
    return pairs


def _named(context: typer.Context, where: str, key: str, value: Any) -> tuple[str, Any]:
    """Return the option for a key in Python or command-line spelling, and its value; raise ConfigError if unknown."""
    apart = (None, "config", "set_", "help_all", "as_json")
    options = {str(each.opts[0]).removeprefix("--"): each for each in context.command.params if each.name not in apart}
    plain = key.replace("_", "-")
    found = options.get(plain) or next((each for each in options.values() if each.name == key.replace("-", "_")), None)
    if found is None:
        suggestion = did_you_mean(plain, list(options))
        raise ConfigError(f"{where}: no option '{key}'{suggestion} Known: {', '.join(options)}.")
    if getattr(found, "multiple", False):
        return str(found.name), list(map(str, value if isinstance(value, list) else [value]))
    if isinstance(value, dict) and found.name == "extra_body":
        value = json.dumps(value)
    elif isinstance(value, dict):
        value = ",".join(f"{name}={each}" for name, each in value.items())
    return str(found.name), ",".join(map(str, value)) if isinstance(value, list) else value


def _show_all(context: typer.Context, asked: bool) -> None:
    if asked:
        for each in context.command.params:
            if getattr(each, "rich_help_panel", None):
                each.hidden = False  # type: ignore[attr-defined]
        print_text(context.get_help())
        raise typer.Exit()


_Config = Annotated[
    Path | None, Option(metavar="FILE", help="YAML file with options as keys.", callback=_read_config, is_eager=True)
]
_SET_HELP = "Any option of --help-all; may be repeated."
_Set = Annotated[
    list[str] | None, Option("--set", metavar="NAME=VALUE", help=_SET_HELP, callback=_read_set, is_eager=True)
]
_HelpAll = Annotated[bool, Option("--help-all", help="Show all options and exit.", callback=_show_all, is_eager=True)]


def _files(*, config: _Config = None, set_: _Set = None, help_all: _HelpAll = False) -> None:
    """Declare the options that all these commands have beside settings; their callbacks do the work."""


def check_format(style: str | None, out: Path | None, *, also: Sequence[str] = (), **others: bool) -> None:
    """Check that `--format` is a known format, or one of `also`, and that none of the `others` is given with it.

    A folder, `out`, takes data, and parquet needs one.
    """
    from ice_eval.report import DATA_FORMATS, FORMATS

    known = [*FORMATS, *DATA_FORMATS, *also]
    if style is not None and style not in known:
        raise ConfigError(f"no format '{style}'; use {', '.join(known)}.")
    if out is not None and style not in DATA_FORMATS:
        raise ConfigError(f"--out takes tables as data; give --format {', '.join(DATA_FORMATS)} with it.")
    if style is None:
        return
    if style == "parquet" and out is None:
        raise ConfigError("parquet cannot be printed; write it to a folder: --out DIR.")
    for name in (name for name, given in others.items() if given):
        raise ConfigError(f"--format and --{name} exclude each other; give one of them.")


# --- tasks ---------------------------------------------------------------------------------------------------------


def names(text: str) -> tuple[str, ...]:
    """Return the parts of `"a, b"`."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def model_names(text: str) -> list[str]:
    """Return models given as `"a, b"`; their paths are relative to this folder, not to that of a grid."""
    from ice_eval.models import models

    return [name if name in models or not Path(name).exists() else str(Path(name).resolve()) for name in names(text)]


def subject_of(name: str | None) -> SubjectName:
    """Return the subject of a named task; tasks made of options are about texts."""
    from ice_eval.tasks import is_task_file, named_task

    return "text" if name is None or is_task_file(name) else named_task(name).subject


def task_of(flags: TaskFlags) -> "Task":
    """Return a known task with the given parts replaced, or one built from a file, a prompt and labels."""
    from ice_eval.tasks import NoData, adhoc_task, load_task, relabelled

    prompt = None if flags.prompt is None else flags.prompt.replace("\\n", "\n").replace("\\t", "\t")
    target = None if flags.target_text is None else flags.target_text.replace("\\n", "\n")
    explain = None if flags.explain is None else names(flags.explain)
    if flags.task is None:
        if flags.labels is None and target is None and prompt is not None and _has_answers(flags, prompt):
            target = ANSWER_FIELD
        if flags.data is None or prompt is None or (flags.labels or target) is None:
            missing = [f"--{name}" for name in ("data", "prompt", "labels") if getattr(flags, name) is None]
            raise ConfigError(
                f"without --task, {', '.join(missing)} must be given too (or --target-text in place of labels); "
                "`ice list tasks` shows the known tasks."
            )
        labels, data = names(flags.labels or ""), _data(flags, NoData())
        return adhoc_task(data, prompt=prompt, labels=labels, target_text=target, explain=explain, name=flags.data.stem)
    chosen = load_task(flags.task)
    if target is not None:
        raise ConfigError("--target-text goes with --data and --prompt: a known task has labels of its own.")
    if prompt is not None:
        chosen = replace(chosen, prompt=prompt, classifier_prompt=prompt)
    if flags.labels is not None:
        chosen = relabelled(chosen, names(flags.labels))
    if explain is not None:
        chosen = replace(chosen, explain=explain)
    return replace(chosen, data=_data(flags, chosen.data))


def _has_answers(flags: TaskFlags, prompt: str) -> bool:
    """Return True if the data have a column of texts that a model wrote, which the prompt does not show."""
    from ice_eval.tasks import NoData

    first = next(iter(_data(flags, NoData()).rows()), {}) if flags.data is not None else {}
    return ANSWER_FIELD.strip("{}") in first and ANSWER_FIELD not in prompt


def _data(flags: TaskFlags, own: "DataSource") -> "DataSource":
    """Return the given file, or the task's own data, with the given columns or else those of the task's file."""
    from ice_eval.tasks import FileData

    known = own.columns if isinstance(own, FileData) else {}
    columns = known if flags.columns is None else _columns(flags.columns)
    if flags.data is not None:
        return FileData(flags.data, columns)
    if flags.columns is None:
        return own
    if not isinstance(own, FileData):
        raise ConfigError("--columns is about a file; give it with --data FILE.")
    return replace(own, columns=columns)


def _columns(given: str | Mapping[str, str]) -> Mapping[str, str]:
    """Return `id=review_id,label=sentiment` as a mapping from our names."""
    if not isinstance(given, str):
        return given
    pairs = [[part.strip() for part in pair.partition("=")[::2]] for pair in names(given)]
    if not all(ours and theirs for ours, theirs in pairs):
        raise ConfigError(f"--columns {given}: NAME=COLUMN is expected, such as text=comment,id=review_id.")
    return dict(pairs)


def task_of_run(run: "RunFolder", flags: TaskFlags) -> "Task":
    """Return the task of a finished run, with missing options from its manifest, or raise ConfigError."""
    from ice_eval.pipeline import lexicon_hash
    from ice_eval.tasks import in_chat, load_task, read_as

    manifest = run.manifest()
    if manifest.config.subject != "text":
        about = SUBJECTS[manifest.config.subject]
        raise ConfigError(f"{run.path} is about {about}, and a run about texts is needed here.")
    name, known = flags.task or manifest.config.task, None
    try:
        known = load_task(name)
    except ConfigError:  # the task was made of options
        if flags.task is not None:
            raise
    stored = {"prompt": manifest.prompt, "labels": ",".join(manifest.labels), "explain": ",".join(manifest.explained)}
    if manifest.target_text is not None:
        stored |= {"labels": "", "target_text": manifest.target_text}
    if flags.prompt is not None or not manifest.explained:
        del stored["explain"]  # the explained fields belong to the prompt of the run
    if known is not None:
        own = {"prompt": known.prompt, "labels": ",".join(known.labels), "explain": ",".join(known.explained)}
        stored = {part: text for part, text in stored.items() if text != own[part]}
    given = {part: value for part, value in flags._asdict().items() if value is not None}
    data = flags.data or _data_of(run, known)
    columns = manifest.data.columns or None
    given = {**stored, "columns": columns, **given, "data": data, "task": None if known is None else name}
    chosen = task_of(TaskFlags(**given))
    identity = manifest.identity
    if identity.get("lexicon", lexicon_hash(chosen)) != lexicon_hash(chosen):
        raise ConfigError(f"the lexicon of the task '{chosen.name}' differs from that of {run.path}; give its --task.")
    config = manifest.config
    chosen = read_as(chosen, **config.reading)
    return in_chat(chosen, bool(identity["chat"]), None if identity["system"] is None else str(identity["system"]))


def _data_of(run: "RunFolder", known: "Task | None") -> Path | None:
    """Return the file that a run read; None if its task has its own data."""
    origin = run.manifest().data.origin
    if known is not None and origin == known.data.origin:
        return None
    if not Path(origin).is_file():
        raise ConfigError(f"the data of {run.path} ({origin}) were not found; give them as --data FILE.")
    return Path(origin)
