"""From what a user calls a task to a `Task`."""

from dataclasses import replace
from pathlib import Path

from ice_eval.tasks._base import Task, tasks
from ice_eval.tasks._file import is_task_file, task_from_file


def load_task(name: str) -> Task:
    """The task of a name (`sst2`), in one of its prompts (`sst2/minimal`, `sst2/minimal/few-shot`), or of a file.

    Raises:
        ConfigError: There is no such task, prompt or file, or the file is not as it should be.
    """
    if is_task_file(name):
        return task_from_file(Path(name))
    known, *ways = name.split("/")
    factory = tasks.get(known)
    description = (factory.__doc__ or "").strip().partition("\n")[0]
    return replace(factory(), name=known, description=description).asked(*ways)
