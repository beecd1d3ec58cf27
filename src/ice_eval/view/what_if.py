"""What-if questions to the model of a run: own texts, own units, and the null of random sets of the same size."""

import contextlib
import hashlib
import itertools
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ice_eval.attributions.user_supplied import Given
from ice_eval.encoding import WHOLE
from ice_eval.errors import ConfigError, DataError, IceError
from ice_eval.models import SERVED, load_model, models
from ice_eval.nulls import SIZE
from ice_eval.pipeline import TextSubject, examples_read
from ice_eval.pipeline.part import names_of, start_part
from ice_eval.pipeline.replicas import Replica, RunPart, RunSpec
from ice_eval.records import Example, Inputs
from ice_eval.report.example import cut_at_units
from ice_eval.report.provenance import stored_task
from ice_eval.results import Configuration, Manifest, content_hash_of_all
from ice_eval.results.comparisons import ScoredExamples
from ice_eval.results.examples import Examples
from ice_eval.results.ledger import Ledger, log_odds
from ice_eval.results.outcomes import outcome_lines, outcome_table
from ice_eval.settings import RunConfig
from ice_eval.tasks import FileData, HubData, Task
from ice_eval.view.index import RunEntry

PICKED = "picked"
"""Name of the attribution whose rationale is what a person picks."""
LONGEST = 20_000
EXAMPLES = 200
"""Examples of a run that a question may start from."""


def refusal(manifest: Manifest) -> str | None:
    """Return why the model of a run cannot be asked, as far as that is known before it is loaded."""
    model, config = manifest.config.model, manifest.config
    if config.subject != "text" or manifest.target_text is not None:
        return "Only the labels of texts can be tried, and this run is about something else."
    if manifest.server is not None or model.startswith(SERVED):
        return "The model of this run is behind a server, which is not asked here."
    if model.startswith("python:") or manifest.adaptation is not None:
        return "The model of this run is made by Python code or training, and cannot be loaded by its name."
    if stored_task(manifest) is None:
        return "The task of this run comes from a file or from Python, and the run folder does not hold all of it."
    return None


class _LoadedRun(NamedTuple):
    run: tuple[str, tuple[int, ...], str]
    """Id and stamp of the run, and the operator."""
    replica: Replica
    spec: RunSpec


class WhatIf:
    """Answers one question at a time, with one model in memory."""

    def __init__(self, folders: Sequence[Path] = ()) -> None:
        self.folders = folders
        """Folders that hold local models by the names that runs give them."""
        self._lock = threading.Lock()
        self._model: tuple[Mapping[str, object], Replica] | None = None
        self._loaded: _LoadedRun | None = None
        self._picked: dict[str, ArrayLike] = {}

    def is_ready(self, manifest: Manifest) -> bool:
        return self._model is not None and self._model[0] == _identity(manifest)

    def ask(self, entry: RunEntry, values: Mapping[str, str], units: Sequence[int], operator: str) -> dict[str, Any]:
        """Return a text in units with its prediction, and the comparison of the picked units if there are any."""
        why = refusal(entry.manifest)
        if why is not None:
            raise ConfigError(why)
        if sum(map(len, values.values())) > LONGEST:
            raise DataError(f"The text is longer than {LONGEST:,} characters.")
        if operator not in entry.manifest.config.operators:
            raise ConfigError("The run has no such operator.")
        with self._lock:
            loaded = self._of(entry, operator)
            if values.keys() != loaded.spec.examples[0].fields.keys():
                raise DataError("The fields of the text are not those of the run.")
            example = _example(values, loaded.spec.examples)
            return {**_read(loaded, example), "compared": self._compared(loaded, example, units) if units else None}

    def _of(self, entry: RunEntry, operator: str) -> _LoadedRun:
        run = entry.id, entry.stamp, operator
        if self._loaded is None or self._loaded.run != run:
            replica = self._replica(entry.manifest)
            spec = _spec(entry, replica, operator, Given(values=self._picked, sized=True))
            self._loaded = _LoadedRun(run, replica, spec)
        return self._loaded

    def _replica(self, manifest: Manifest) -> Replica:
        """Return the model of a run; one that is in memory already is not loaded again, another one is released."""
        identity = _identity(manifest)
        if self._model is None or self._model[0] != identity:
            if self._model is not None:
                self._model[1].model.release()
                self._model = self._loaded = None
            ref, loading = self._reference(manifest.config.model), dict[str, Any]()
            if ref not in models or ref == "smollm2":
                loading = {"dtype": str(identity["dtype"]), "load_in": identity["load_in"]}
            replica = Replica(load_model(ref, **loading))
            if replica.info().fingerprint != identity["weights"]:
                name = manifest.config.model
                raise ConfigError(f"The weights of '{name}' that are found here are not those of the run.")
            self._model = identity, replica
        return self._model[1]

    def _reference(self, name: str) -> str:
        """Return a registered name, a folder or file of this name, or else the name as one of the hub's."""
        inside = not Path(name).is_absolute() and ".." not in Path(name).parts
        places = (folder / f"{name}{suffix}" for folder in self.folders if inside for suffix in ("", ".gguf"))
        return name if name in models else next((str(path) for path in places if path.exists()), name)

    def _compared(self, loaded: _LoadedRun, example: Example, units: Sequence[int]) -> dict[str, Any]:
        """Return where the score of some units lies in the null of random sets of the same size."""
        spec, replica = loaded.spec, loaded.replica
        engine = replica.engine(spec)
        n_units = engine.encode(example).n_units
        if not all(0 <= unit < n_units for unit in units) or len(set(units)) >= n_units:
            raise DataError("Pick some units, but not all of them: a set of all units has no other to compare with.")
        self._picked[example.id] = np.isin(np.arange(n_units), units).astype(float)
        part = RunPart(0, spec.config, [example], [], Ledger.empty(names_of(engine, [example])))
        done = start_part(replica, part, lambda n: None, spec=spec).finish()
        config, [operator], direction = engine.settings(model=""), spec.config.operators, spec.config.directions[0]
        scored = ScoredExamples(Examples.of(done.inputs), done.ledger, config)
        cell = Configuration(PICKED, operator, direction, None, SIZE)
        [line] = outcome_lines(outcome_table({cell: scored.outcomes(cell, (operator,))}))
        if line.error is not None:
            raise DataError(f"These units cannot be compared: {line.error}.")
        own, *null = scored.compared(cell, (operator,)).log_odds[0, : 1 + line.m].tolist()
        asked = {"operator": operator, "direction": direction, "units": sorted(set(units))}
        numbers = {name: getattr(line, name) for name in ("win_rate", "tie_rate", "p_value")}
        return {**asked, "log_odds": own, "probability": line.score, "null": null, **numbers}


def _identity(manifest: Manifest) -> dict[str, object]:
    return {name: manifest.identity.get(name) for name in ("model", "weights", "dtype", "load_in")}


def examples_of(entry: RunEntry, *, most: int | None = None) -> list[Example]:
    """Return the examples of a run, or the first ones, as they were evaluated."""
    rows = (row for part in entry.folder.parts() for row in entry.folder.inputs(part))
    found = list[Example]()
    for row in itertools.islice(rows, most):
        texts = {name: text for name, text in row.fields.items() if name not in WHOLE}
        found.append(Example(row.example_id, texts, row.gold, row.group, row.human))
    return found


def _read_examples(entry: RunEntry, task: Task) -> Sequence[Example]:
    """Return all examples that a run read, which infill draws from; where they are not at hand, those it evaluated."""
    about, data, file = entry.manifest.data, task.data, Path(entry.manifest.data.origin)
    if data.origin != about.origin and file.suffix in (".jsonl", ".csv") and file.is_file():
        data = FileData(file, about.columns or (data.columns if isinstance(data, FileData) else {}))
    if data.origin == about.origin and not isinstance(data, HubData):
        with contextlib.suppress(IceError, OSError):
            found = replace(task, data=data).examples(limit=examples_read(entry.manifest.config.n))
            if content_hash_of_all(map(Example.identity, found)) == entry.manifest.identity["data"]:
                return found
    return examples_of(entry)


def _spec(entry: RunEntry, replica: Replica, operator: str, picked: Given) -> RunSpec:
    """Return the run of a single question: the settings of a run under one operator, with picked units."""
    stored, info = entry.manifest.config, replica.info()
    task = stored_task(entry.manifest)
    assert task is not None, "checked by refusal"
    settings = {each.name: getattr(stored, each.name) for each in fields(RunConfig)}
    settings |= {"attributions": (PICKED,), "operators": (operator,), "directions": stored.directions[:1]}
    settings |= {"nulls": (SIZE,), "adaptive": None, "until": None, "eraser": False, "n": 1}
    settings |= {"target": "predicted"} if stored.target == "gold" else {}  # new texts have no gold label
    return RunSpec(
        config=RunConfig(**settings), subject=TextSubject(task), examples=_read_examples(entry, task),
        attributions={PICKED: picked}, budget=info.budget, part_size=info.part_size, lowered={}, threads=None,
        targets=None, weights=info.fingerprint,
    )  # fmt: skip


def _example(values: Mapping[str, str], known: Sequence[Example]) -> Example:
    """Return the example of the run with these texts, whose sets and fills are then those of the run, or a new one."""
    same = next((each for each in known if dict(each.fields) == dict(values)), None)
    digest = hashlib.sha256(json.dumps(sorted(values.items())).encode()).hexdigest()
    return same or Example(f"typed {digest[:16]}", dict(values))


def _read(loaded: _LoadedRun, example: Example) -> dict[str, Any]:
    """Return the fields of an example in pieces, and the label that the model predicts."""
    engine = loaded.replica.engine(loaded.spec)
    item = engine.encode(example)
    if item.n_units < 2:
        raise DataError("The text has fewer than two units, so there is no set to compare with.")
    scores = engine.scorer.score(Inputs.join([item.full(), item.empty()]))
    if not np.isfinite(scores).all():
        raise DataError("The model's score of this text is not finite.")
    target = engine.subject.target(engine.config, example, scores[0], scores[1])
    texts = {**example.fields, **item.whole}
    cut = {name: cut_at_units(text, item.spans, name) for name, text in texts.items()}
    return {
        "fields": [{"name": name, "pieces": pieces} for name, pieces in cut.items()],
        "label": engine.scorer.labels.names[target],
        "log_odds": float(log_odds(scores[:1], target, versus=engine.versus)[0]),
        "probability": float(np.exp(scores[0, target])),
        "truncated": item.truncated,
    }
