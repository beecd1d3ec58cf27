"""Whether explanations that another tool wrote fit the examples, before a run is spent on them."""

from collections.abc import Sequence
from dataclasses import dataclass

from ice_eval.encoding import encode
from ice_eval.errors import DataError
from ice_eval.interop import align, of_examples
from ice_eval.models import LabelScoring, Model
from ice_eval.records import Example, Scope, Unit
from ice_eval.tasks import Task


@dataclass(frozen=True)
class ExplanationCheck:
    """How explanations fit the examples of a task."""

    explanations: int
    """That belong to one of the examples."""
    examples: int
    covered: int
    """Examples whose explanation fits."""
    units: int
    """Of the examples that are covered."""
    units_covered: int
    """Of these, the units that the explanation says something about."""
    cut: int
    """Examples whose explanation ends before the text does."""
    missing: tuple[str, ...]
    """Ids of examples without an explanation."""
    unused: int
    """Explanations of other examples, or of none."""
    mismatches: tuple[str, ...]
    """What is wrong with each example whose explanation does not fit."""

    @property
    def fits(self) -> bool:
        return not self.missing and not self.mismatches


def check_explanations(
    model: Model,
    task: Task,
    examples: Sequence[Example],
    source: object,
    *,
    unit: Unit = "token",
    scope: Scope = "content",
    label_scoring: LabelScoring | None = None,
) -> ExplanationCheck:
    """Align every explanation with its example, and count what fits.

    Args:
        model: The model that was explained.
        task: Its prompt.
        examples: Those that were explained.
        source: A file or objects, as `evaluate` takes them.
        unit: As in the run that is meant.
        scope: As in that run.
        label_scoring: As in that run: long labels leave less room for the text.

    Raises:
        DataError: The file cannot be read at all.
    """
    given, n_given = of_examples(source, examples, name="file")
    reserve = model.labels(task, scoring=label_scoring).reserve
    missing, mismatches, fitting = [], [], []
    for example in examples:
        if example.id not in given:
            missing.append(example.id)
            continue
        item = encode(model.codec, task, example, unit=unit, scope=scope, reserve=reserve)
        try:
            fitting.append(align(given[example.id], item, example.fields, name="file"))
        except DataError as exc:
            mismatches.append(str(exc).replace("the attribution 'file', ", "", 1))
    return ExplanationCheck(
        explanations=sum(example.id in given for example in examples),
        examples=len(examples),
        covered=len(fitting),
        units=sum(len(found.covered) for found in fitting),
        units_covered=sum(int(found.covered.sum()) for found in fitting),
        cut=sum(found.cut for found in fitting),
        missing=tuple(missing),
        unused=n_given - sum(example.id in given for example in examples),
        mismatches=tuple(mismatches),
    )
