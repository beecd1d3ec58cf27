"""Tasks: data, prompt and label words. The shipped ones are in `suite`."""

from ice_eval.tasks._base import (
    FEW_SHOT,
    STANDARD,
    AnyTask,
    ChatTask,
    Piece,
    Shot,
    Task,
    Template,
    Wording,
    adhoc_task,
    in_chat,
    read_as,
    relabelled,
    task,
    tasks,
    with_file,
)
from ice_eval.tasks._data import DataSource, FileData, HubData, NoData, Records, numbered_rows
from ice_eval.tasks._file import as_functions_read, data_notes, draft, is_task_file, load_task, named_task

__all__ = [
    "FEW_SHOT", "STANDARD", "AnyTask", "ChatTask", "DataSource", "FileData", "HubData", "NoData", "Piece", "Records",
    "Shot", "Task", "Template", "Wording", "adhoc_task", "as_functions_read", "data_notes", "draft", "in_chat",
    "is_task_file", "load_task", "named_task", "numbered_rows", "read_as", "relabelled", "task", "tasks", "with_file",
]  # fmt: skip
