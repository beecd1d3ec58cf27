"""The task of a command: from its options, or from a finished run."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ice_eval.choices import SUBJECTS, SubjectName
from ice_eval.errors import ConfigError

if TYPE_CHECKING:
    from ice_eval.results import RunFolder
    from ice_eval.tasks import DataSource, Task


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


def names(text: str) -> tuple[str, ...]:
    """Return the parts of `"a, b"`."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


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
        raise ConfigError(f"--columns {given}: NAME=COLUMN is expected, as text=comment,label=sentiment,id=review_id.")
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
        raise ConfigError(
            f"the lexicon of the task '{chosen.name}' is another than that of {run.path}; give its --task."
        )
    config = manifest.config
    chosen = read_as(chosen, **config.reading)
    return in_chat(chosen, bool(identity["chat"]), None if identity["system"] is None else str(identity["system"]))


def _data_of(run: "RunFolder", known: "Task | None") -> Path | None:
    """Return the file that a run read; None if its task has its own data."""
    origin = run.manifest().data.origin
    if known is not None and origin == known.data.origin:
        return None
    if not Path(origin).is_file():
        raise ConfigError(f"the data of {run.path} ({origin}) are not there; give them as --data FILE.")
    return Path(origin)
