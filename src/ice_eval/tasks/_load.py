"""From what a user calls a task to a `Task`."""

import re
from dataclasses import replace
from pathlib import Path

from ice_eval.tasks._base import Task, tasks
from ice_eval.tasks._file import task_from_file

_FILE = re.compile(r"(?P<path>.*?\.ya?ml)(?:/(?P<ways>.*))?", re.IGNORECASE)


def load_task(name: str) -> Task:
    """The task of a name (`sst2`) or a file (`mine.yaml`), perhaps in another of its prompts.

    `sst2/minimal` is another wording, `sst2/few-shot` has worked examples before the question, and
    `sst2/minimal/few-shot` is both; see `Task.asked`.

    Raises:
        ConfigError: There is no such task, prompt or file, or the file is not as it should be.
    """
    file = _FILE.fullmatch(name)
    if file is not None:
        return task_from_file(Path(file["path"])).asked(*(file["ways"].split("/") if file["ways"] else ()))
    known, *ways = name.split("/")
    factory = tasks.get(known)
    description = (factory.__doc__ or "").strip().partition("\n")[0]
    return replace(factory(), name=known, description=description).asked(*ways)
