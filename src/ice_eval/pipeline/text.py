"""Texts as the subject of a run: tokens or words of a prompt's fields are kept or removed."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ice_eval._registry import did_you_mean
from ice_eval.attributions import DataView
from ice_eval.encoding import blacklist_of, encode, label_words
from ice_eval.errors import CapabilityError, ConfigError
from ice_eval.models import Labels, Model
from ice_eval.operators import POOL_EXAMPLES, Blacklist, FillPool, LongUnitPool, PooledUnits, label_indicative
from ice_eval.pipeline.engine import Engine, counts_in
from ice_eval.pipeline.subject import Pool, Subject
from ice_eval.records import Encoded, Example, LogScores
from ice_eval.results import content_hash
from ice_eval.settings import RunConfig
from ice_eval.tasks import DataSource, FileData, Task, data_notes

_TARGETS = ("predicted", "gold")


@dataclass(frozen=True)
class TextSubject(Subject):
    """The texts of a task."""

    task: Task

    def identity(self) -> dict[str, Any]:
        return task_identity(self.task)

    def labels(self, model: Model, config: RunConfig) -> Labels:
        _check_labels(config, self.task.labels)
        if self.task.target_text is None:
            return model.labels(self.task, scoring=config.label_scoring)
        of_labels = config.calibration != "none" or config.eraser or config.min_confidence is not None
        if config.scope == "prompt" or of_labels:
            raise ConfigError(
                "--scope prompt, --calibration, --eraser and --min-confidence are about labels; leave them out here."
            )
        return model.text_labels("answer")

    def described(self, model: Model) -> dict[str, Any]:
        return {
            "prompt": self.task.prompt,
            "worked": () if model.codec.reads_pairs else self.task.shot_texts,
            "classifier_text": self.task.classifier_text if model.codec.reads_pairs else None,
            "target_text": self.task.target_text,
            "explained": tuple(self.task.explained),
            "language": self.task.language,
            "columns": _columns(self.task.data),
        }

    def target(self, config: RunConfig, example: Example, full: LogScores, empty: LogScores) -> int:
        if config.target in _TARGETS:
            return super().target(config, example, full, empty)
        return self.task.labels.index(config.target)

    def notes(self, examples: Sequence[Example]) -> list[str]:
        return data_notes(self.task, examples)

    def encode(self, model: Model, config: RunConfig, example: Example, *, reserve: int) -> Encoded:
        return encode(
            model.codec, self.task, example, unit=config.unit, scope=config.scope or "content", reserve=reserve
        )

    def pool(self, engine: Engine, examples: Sequence[Example]) -> Pool:
        """Return units of the data that do not reveal the label."""
        if engine.config.unit == "sentence":
            if self.task.target_text is None:
                raise ConfigError(
                    "infill of sentences would write sentences that give a label away; use --operators delete, or "
                    "another --unit."
                )
            items = [(example.group or example.id, engine.encode(example)) for example in examples]
            return LongUnitPool(items, engine.model.codec.decode)
        units = _units(engine, examples)
        alone = engine.config.choices.label_words_only
        blacklist = blacklist_of(engine.model.codec, self.task, units, label_words_only=alone)
        return FillPool(units, blacklist=blacklist)

    def data(self, engine: Engine, examples: Sequence[Example]) -> DataView:
        """Return the data statistics that attributions need, or raise CapabilityError if the data lack them."""
        names = {need: name for name, method in engine.attributions.items() for need in method.needs}
        for need in {"citations", "retrieval"} & names.keys():
            raise CapabilityError(f"the attribution '{names[need]}' is about passages of cited answers; leave it out.")
        view = DataView(
            counts=(engine.unit_counts or counts_in(engine, examples)) if "counts" in names else {},
            lexicon=self._giveaways(engine, examples[:POOL_EXAMPLES]) if "lexicon" in names else None,
            human={e.id: e.human for e in examples if e.human} if "human" in names else {},
        )
        if view.lexicon is not None and not (view.lexicon.lexicon or view.lexicon.tokens):
            raise CapabilityError(
                f"the attribution '{names['lexicon']}' needs words that give a label away: the task '{self.task.name}' "
                "has no lexicon, and gold labels of the data show none."
            )
        if "human" in names:
            _check_human(names["human"], engine, examples)
        return view

    def _giveaways(self, engine: Engine, examples: Sequence[Example]) -> Blacklist:
        """Return the units that reveal a label."""
        lexicon = frozenset(word.casefold() for word in self.task.lexicon)
        return Blacklist(label_words(self.task), lexicon, label_indicative(_units(engine, examples)))


def _check_labels(config: RunConfig, labels: Sequence[str]) -> None:
    """Raise ConfigError if the explained label, or the one against it, is no label of the task."""
    known = ", ".join(labels) or "no labels"
    if config.target not in (*_TARGETS, *labels):
        meant = did_you_mean(config.target, [*_TARGETS, *labels])
        raise ConfigError(f"target '{config.target}'{meant} Expected: {', '.join(_TARGETS)}, or a label: {known}.")
    if config.versus is None:
        return
    if config.versus not in labels:
        raise ConfigError(
            f"versus '{config.versus}'{did_you_mean(config.versus, list(labels))} The labels of the task: {known}."
        )
    if config.target not in labels or config.target == config.versus:
        raise ConfigError(
            f"--versus {config.versus} needs another label to explain: --target LABEL, one of "
            f"{', '.join(label for label in labels if label != config.versus)}."
        )


def _check_human(name: str, engine: Engine, examples: Sequence[Example]) -> None:
    if not any(example.human for example in examples[: engine.config.n]):
        raise CapabilityError(
            f"the attribution '{name}' needs human rationales, and no example of the data has one; give them as "
            "`rationale`: [[start, end], …], in characters of the text."
        )
    if engine.config.scope == "prompt":
        raise CapabilityError(
            f"the attribution '{name}' marks the text, and with scope 'prompt' the template is explained too; use "
            "scope 'content'."
        )


def _units(engine: Engine, examples: Sequence[Example]) -> list[PooledUnits]:
    return [PooledUnits.of(engine.encode(example), example.gold) for example in examples]


def _columns(data: DataSource) -> dict[str, str]:
    """Return the columns of a file whose names differ from ours."""
    return dict(data.columns) if isinstance(data, FileData) and data.columns else {}


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
                *([] if task.target_text is None else [task.target_text]),
            ]
        ),
        "lexicon": lexicon_hash(task),
    }


def lexicon_hash(task: Task) -> str:
    """Return the hash of the words that a task excludes from infill."""
    return content_hash(sorted(task.lexicon))
