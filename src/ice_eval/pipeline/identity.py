"""The identity of a run: equal for runs that score the same inputs."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ice_eval.records import Example
from ice_eval.results import content_hash, content_hash_of_all
from ice_eval.settings import RUN, RunConfig
from ice_eval.tasks import Task


def identity(
    config: RunConfig, *, model: Mapping[str, str | None], task: Task, examples: Sequence[Example]
) -> dict[str, Any]:
    """Return everything that defines rows: two runs with the same identity score the same inputs."""
    plain = {each.name: getattr(config, each.name) for each in RUN if each.role == "rows"}
    return {
        "model": model["id"],
        "weights": model["fingerprint"],
        "dtype": model["dtype"],
        "load_in": model["load_in"],
        **task_identity(task),
        "data": content_hash_of_all(asdict(example) for example in examples),
        **plain,
    }


def task_identity(task: Task) -> dict[str, Any]:
    """Return everything that defines a task, apart from its data."""
    return {
        "task": task.name,
        "task_version": task.version,
        "chat": task.chat,
        "system": task.system,
        "prompt": content_hash(
            [
                task.prompt,
                task.classifier_prompt,
                dict(task.label_words),
                [asdict(s) for s in task.shots],
                task.explained,
            ]
        ),
        "lexicon": lexicon_hash(task),
    }


def lexicon_hash(task: Task) -> str:
    """Return the hash of the words that a task excludes from infill."""
    return content_hash(sorted(task.lexicon))
