"""Data, prompt and label words. One file per task."""

from ice_eval.tasks._base import Shot, Task, adhoc_task, in_chat, load_task, relabelled, task, tasks
from ice_eval.tasks._data import DataSource, FileData, HubData, PackageData, Records, numbered_rows
from ice_eval.tasks._prompt import Piece, Template

__all__ = [
    "DataSource",
    "FileData",
    "HubData",
    "PackageData",
    "Piece",
    "Records",
    "Shot",
    "Task",
    "Template",
    "adhoc_task",
    "in_chat",
    "load_task",
    "numbered_rows",
    "relabelled",
    "task",
    "tasks",
]
