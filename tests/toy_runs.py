"""Runs of the toy model over reviews whose right explanation is known."""

import numpy as np
from tests import small_runs

import ice_eval
from ice_eval.models.toy import BIAS, WEIGHTS, Toy

NEUTRAL = ["film", "plot", "cast", "scene", "music", "story", "camera", "actor", "ending", "script", "light", "town"]


class Counting(Toy):
    """Counts the inputs that it is asked about."""

    def __init__(self):
        super().__init__()
        self.asked = 0

    def log_scores(self, batch, labels, *, prefix=0):
        self.asked += len(batch)
        return super().log_scores(batch, labels, prefix=prefix)


def reviews(n=24, seed=1):
    """Reviews of 12 to 14 distinct words, three of them decisive for one side and one for the other, with labels."""
    rng = np.random.default_rng(seed)
    good, bad = ([w for w in WEIGHTS if sign * WEIGHTS[w] > 0] for sign in (1, -1))
    records = []
    for index in range(n):
        main, other = (good, bad) if index % 2 else (bad, good)
        words = [
            *rng.choice(main, 3, replace=False),
            rng.choice(other),
            *rng.choice(NEUTRAL, 8 + index % 3, replace=False),
        ]
        records.append({"text": " ".join(rng.permutation(words)), "label": index % 2})
    return records


def task_of(records, **changes):
    return small_runs.task_of(records, **{"name": "reviews"} | changes)


def run(records=None, *, model=None, task=None, **settings):
    settings = {"attributions": ["attention", "random"], "m": 8} | settings
    task = task or task_of(reviews() if records is None else records)
    return ice_eval.evaluate(model or Toy(), task, **settings)


def stamps_of(path):
    """Every file of a folder, with its content and time; the lock is opened by every command, and says nothing."""
    files = [p for p in path.rglob("*") if p.is_file() and p.name != ".lock"]
    return {p.relative_to(path): (p.read_bytes(), p.stat().st_mtime_ns) for p in files}


def planted(item):
    """How much each word supports what the toy predicts: the right answer."""
    weights = np.array([WEIGHTS.get(text.lower(), 0.0) for text in item.texts])
    return weights if BIAS + weights.sum() > 0 else -weights
