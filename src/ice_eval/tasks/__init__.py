"""Data, prompt and label words. One file per task."""

from ice_eval.tasks._base import (
    FEW_SHOT,
    STANDARD,
    Shot,
    Task,
    Wording,
    adhoc_task,
    in_chat,
    relabelled,
    task,
    tasks,
    with_file,
)
from ice_eval.tasks._columns import data_notes
from ice_eval.tasks._data import DataSource, FileData, HubData, NoData, PackageData, Records, numbered_rows
from ice_eval.tasks._draft import draft
from ice_eval.tasks._file import is_task_file
from ice_eval.tasks._load import load_task
from ice_eval.tasks._prompt import Piece, Template

__all__ = [
    "FEW_SHOT",
    "STANDARD",
    "DataSource",
    "FileData",
    "HubData",
    "NoData",
    "PackageData",
    "Piece",
    "Records",
    "Shot",
    "Task",
    "Template",
    "Wording",
    "adhoc_task",
    "data_notes",
    "draft",
    "in_chat",
    "is_task_file",
    "load_task",
    "numbered_rows",
    "relabelled",
    "task",
    "tasks",
    "with_file",
]
