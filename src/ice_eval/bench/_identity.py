"""Names for the runs of a grid: readable, the same for the same rows, and others for others."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ice_eval.models import SERVED, Served
from ice_eval.results import config_hash, slug
from ice_eval.settings import SETTINGS
from ice_eval.tasks import FileData, Task

_NO_ROWS = {each.name for each in SETTINGS.values() if each.role != "rows"}
"""Settings that may change without other rows: what is asked of a run may grow."""


def run_name(ref: str | Served, name: str, task: Task, settings: Mapping[str, Any]) -> str:
    """As `smollm2_sst2-minimal_1a2b3c4d`; a server shows no weights, and what cuts its texts defines rows."""
    what = {
        "model": SERVED + ref.name if isinstance(ref, Served) else ref,
        "weights": [ref.tokenizer] if isinstance(ref, Served) else _weights(Path(ref)),
        "data": _content(task),
        "task": {
            "name": task.name,
            "version": task.version,
            "prompt": [task.prompt, task.classifier_prompt, dict(task.label_words), [asdict(s) for s in task.shots]],
            "explained": task.explained,
            "chat": [task.chat, task.system],
            "lexicon": sorted(task.lexicon),
        },
        "settings": {key: value for key, value in sorted(settings.items()) if key not in _NO_ROWS},
    }
    return f"{_slug(name)}_{_slug(task.name)}_{config_hash(what)[:8]}"


def _weights(path: Path) -> list[Any]:
    """Size and time of the weights in a folder: a model that was trained on is another model."""
    files = [path] if path.is_file() else sorted(path.glob("*.safetensors")) if path.is_dir() else []
    return [[file.name, (stat := file.stat()).st_size, stat.st_mtime_ns] for file in files]


def _content(task: Task) -> str:
    """What the data are: of a file its content and what its columns stand for, wherever it lies."""
    if isinstance(task.data, FileData):
        found = hashlib.sha256(task.data.path.read_bytes()).hexdigest()
        return f"{found} {sorted(task.data.columns.items())}" if task.data.columns else found
    return repr(task.data)


def _slug(text: str) -> str:
    """In plain letters and digits; of a folder, its own name."""
    return slug(re.sub(r"[^A-Za-z0-9.]+", "-", Path(text).name if Path(text).is_absolute() else text))
