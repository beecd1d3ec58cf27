"""What runs are called, in figures and on the page: by model and task, and by their folder where that is not enough."""

from collections.abc import Sequence
from pathlib import Path

from ice_eval.files import as_text
from ice_eval.results import RunFolder


def run_names(folders: Sequence[RunFolder]) -> list[tuple[str, str]]:
    """The model and the task of every run; together they tell different folders apart."""
    there = {folder.path.resolve(): folder for folder in folders}
    configs = [folder.manifest().config for folder in there.values()]
    given = [(config.model, config.task) for config in configs]
    named = dict(zip(there, _names(given, [folder.path for folder in there.values()]), strict=True))
    return [named[folder.path.resolve()] for folder in folders]


def _names(given: Sequence[tuple[str, str]], paths: Sequence[Path]) -> list[tuple[str, str]]:
    """Models by the last part of their path where that is enough, and with their folder where it is not."""
    models = {model for model, _ in given}
    short = {model: Path(model).name if Path(model).is_absolute() else model for model in models}
    if len(set(short.values())) < len(models):
        short = {model: model for model in models}
    names = [(short[model], task) for model, task in given]
    folders = [as_text(Path(path.name)) for path in paths]
    if len(set(folders)) < len(folders):
        folders = [as_text(path) for path in paths]
    return [
        (f"{model} ({folder})", task) if names.count((model, task)) > 1 else (model, task)
        for (model, task), folder in zip(names, folders, strict=True)
    ]
