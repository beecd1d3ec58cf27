"""Whether explanations that another tool wrote fit the examples, before a run is spent on them."""

from collections.abc import Sequence
from dataclasses import dataclass

from ice_eval.attributions import Explained, Fit, fit_of
from ice_eval.encoding import encode
from ice_eval.models import LabelScoring, Model
from ice_eval.rationales import Share
from ice_eval.records import Example, Scope, Unit
from ice_eval.tasks import Task


@dataclass(frozen=True)
class ExplanationCheck:
    """How explanations fit the examples of a task."""

    fit: Fit
    """As the run will find it."""
    unused: int
    """Explanations of other examples than those to evaluate, or of none."""


def check_explanations(
    model: Model,
    task: Task,
    examples: Sequence[Example],
    given: Explained,
    *,
    unit: Unit = "token",
    scope: Scope = "content",
    label_scoring: LabelScoring | None = None,
    shares: Sequence[Share] = (),
) -> ExplanationCheck:
    """Align every explanation with its example, and count what fits.

    Args:
        model: The model that was explained.
        task: Its prompt.
        examples: Those to evaluate.
        given: The explanations, matched with all examples that the run reads.
        unit: As in the run that is meant.
        scope: As in that run.
        label_scoring: As in that run: long labels leave less room for the text.
        shares: The k of that run.
    """
    labels = model.labels(task, scoring=label_scoring)
    items = (encode(model.codec, task, e, unit=unit, scope=scope, reserve=labels.reserve) for e in examples)
    used = sum(example.id in given.explanations for example in examples)
    fit = fit_of(given, "file", items, labels, shares=shares, all_of_them=True)
    return ExplanationCheck(fit, given.n_given - used)
