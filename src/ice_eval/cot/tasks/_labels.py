"""Classifications put as questions."""

from collections.abc import Mapping

from ice_eval.cot.answers import Label
from ice_eval.cot.tasks._base import CotTask, Problem, Row, Worked, gold_of, text_of
from ice_eval.errors import DataError
from ice_eval.tasks import HubData, tasks


def label_task(
    task: str,
    *,
    question: str,
    words: Mapping[str, tuple[str, ...]],
    text: str,
    steps: tuple[str, ...],
    answer: str,
) -> CotTask:
    """A task with the data of a classification.

    Args:
        task: Name of the classification.
        question: What is asked, with `{text}`.
        words: What stands for each label.
        text: A worked example.
        steps: Its steps.
        answer: Its label.
    """
    kind = Label(words)

    def read(row: Row, identity: str) -> Problem:
        label = row.get("label")
        if label is None:
            raise DataError(f"the field 'label' is missing; the record has {', '.join(map(str, row))}.")
        named = list(words)[label] if isinstance(label, int) and 0 <= label < len(words) else label
        return Problem(identity, question.format(text=text_of(row, "text")), (), gold_of(named, kind), kind)

    data = tasks.get(task)().data
    example = Worked(Problem("", question.format(text=text), (), None, kind), steps, answer)
    return CotTask(read=read, kind=kind, example=example, hub=data if isinstance(data, HubData) else None)
