"""The task that a command is about: of its flags, or of a finished run."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ice_eval.errors import ConfigError

if TYPE_CHECKING:
    from ice_eval.results import Manifest, RunFolder
    from ice_eval.tasks import DataSource, Task


class TaskFlags(NamedTuple):
    """What a command line says of a task; None for what it does not say."""

    task: str | None = None
    data: Path | None = None
    prompt: str | None = None
    labels: str | None = None
    explain: str | None = None
    columns: str | Mapping[str, str] | None = None
    """As `id=number,text=body`, or a manifest's own mapping."""


def names(text: str) -> tuple[str, ...]:
    """Return the parts of `"a, b"`."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def task_of(flags: TaskFlags) -> "Task":
    """A known task with what was given in place of its own, or one made of a file, a prompt and labels."""
    from ice_eval.tasks import load_task, relabelled

    if flags.task is None:
        return _made_of(flags)
    chosen = load_task(flags.task)
    if flags.prompt is not None:
        prompt = _unescaped(flags.prompt)
        chosen = replace(chosen, prompt=prompt, classifier_prompt=prompt)
    if flags.labels is not None:
        chosen = relabelled(chosen, names(flags.labels))
    if flags.explain is not None:
        chosen = replace(chosen, explain=names(flags.explain))
    return replace(chosen, data=_data(flags, chosen.data))


def _made_of(flags: TaskFlags) -> "Task":
    from ice_eval.tasks import NoData, adhoc_task

    if flags.data is None or flags.prompt is None or flags.labels is None:
        missing = [f"--{name}" for name in ("data", "prompt", "labels") if getattr(flags, name) is None]
        raise ConfigError(
            f"without --task, {', '.join(missing)} must be given too; `ice list tasks` shows the known tasks."
        )
    return adhoc_task(
        _data(flags, NoData()),
        prompt=_unescaped(flags.prompt),
        labels=names(flags.labels),
        explain=None if flags.explain is None else names(flags.explain),
        name=flags.data.stem,
    )


def _data(flags: TaskFlags, own: "DataSource") -> "DataSource":
    """The file that is given, or the task's own data, with columns of other names; a file in its place has the same."""
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


def _columns(text: str | Mapping[str, str]) -> Mapping[str, str]:
    """`id=review_id,label=sentiment`, as a mapping from our names."""
    if not isinstance(text, str):
        return text
    pairs = [[part.strip() for part in pair.partition("=")[::2]] for pair in names(text)]
    if not all(ours and theirs for ours, theirs in pairs):
        raise ConfigError(f"--columns {text}: NAME=COLUMN is expected, as text=comment,label=sentiment,id=review_id.")
    return dict(pairs)


def _unescaped(prompt: str) -> str:
    """With line breaks and tabs as they are meant on a command line."""
    return prompt.replace("\\n", "\n").replace("\\t", "\t")


def task_of_run(run: "RunFolder", flags: TaskFlags) -> "Task":
    """The task of a finished run: what the flags do not say is taken from its manifest.

    Raises:
        ConfigError: Its data are not there, or what the flags name is another task.
    """
    from ice_eval.pipeline import lexicon_hash
    from ice_eval.tasks import in_chat

    manifest = run.manifest()
    name = flags.task or manifest.config.task
    known = _known(name, must=flags.task is not None)
    told = {name: value for name, value in flags._asdict().items() if value is not None}
    stored = _stored(manifest, explained=flags.prompt is None)
    own = {} if known is None else _wording(known.prompt, known.labels, known.explained)
    differs = {name: value for name, value in stored.items() if value != own.get(name)}
    data = flags.data or _data_of(run, manifest, known)
    columns = {"columns": manifest.data.columns or None}
    flags = TaskFlags(**{**differs, **columns, **told, "data": data, "task": None if known is None else name})
    chosen = task_of(flags)
    identity = manifest.identity
    if identity.get("lexicon", lexicon_hash(chosen)) != lexicon_hash(chosen):
        raise ConfigError(
            f"the lexicon of the task '{chosen.name}' is another than that of {run.path}; give its --task."
        )
    return in_chat(chosen, bool(identity["chat"]), None if identity["system"] is None else str(identity["system"]))


def _known(name: str, *, must: bool) -> "Task | None":
    """The task of that name; None for one that was made of flags."""
    from ice_eval.tasks import load_task

    try:
        return load_task(name)
    except ConfigError:
        if must:
            raise
        return None


def _data_of(run: "RunFolder", manifest: "Manifest", known: "Task | None") -> Path | None:
    """The file that a run read; None where its task has data of its own."""
    origin = manifest.data.origin
    if known is not None and origin == known.data.origin:
        return None
    if not Path(origin).is_file():
        raise ConfigError(f"the data of {run.path} ({origin}) are not there; give them as --data FILE.")
    return Path(origin)


def _stored(manifest: "Manifest", *, explained: bool) -> dict[str, str]:
    """Return the wording that a manifest holds; the explained fields belong to its prompt."""
    found = _wording(manifest.prompt, manifest.labels, manifest.explained)
    return found if explained and found["explain"] else {name: found[name] for name in ("prompt", "labels")}


def _wording(prompt: str, labels: Iterable[str], explained: Iterable[str]) -> dict[str, str]:
    """As flags write it."""
    return {"prompt": prompt, "labels": ",".join(labels), "explain": ",".join(explained)}
