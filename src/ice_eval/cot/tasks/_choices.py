"""Records of multiple-choice questions, in the shapes that data sets give them."""

import string
from collections.abc import Mapping

from ice_eval.cot.answers import Option
from ice_eval.cot.tasks._base import CotTask, Problem, Row, Worked, gold_of, text_of
from ice_eval.errors import DataError
from ice_eval.tasks import HubData

_SHAPES = '["…", "…"], {"A": "…", "B": "…"} or {"label": ["A", "B"], "text": ["…", "…"]}'


def choice_task(
    hub: HubData, *, question: str, options: tuple[str, ...], steps: tuple[str, ...], answer: str
) -> CotTask:
    """A task whose answers are letters; the other arguments are its worked example."""
    example = Worked(Problem("", question, options, None, Option(options)), steps, answer)
    return CotTask(read=choice_problem, example=example, hub=hub)


def choice_problem(row: Row, identity: str) -> Problem:
    """A problem from `question`, `choices` (or `options`) and `answer` (or `answerKey`, `answer_idx`).

    Options may go by other names than letters (some of ARC's by 1 to 4): they are shown and answered by letters here.
    """
    names, options = _options(row.get("choices", row.get("options")))
    kind = Option(options)
    given = next((row[key] for key in ("answerKey", "answer_idx", "answer") if row.get(key) is not None), None)
    if given is None:
        raise DataError(f"the field 'answer' is missing; the record has {', '.join(map(str, row))}.")
    answer = kind.letters[names.index(str(given))] if str(given) in names else given
    return Problem(identity, text_of(row, "question"), options, gold_of(answer, kind), kind)


def _options(given: object) -> tuple[list[str], tuple[str, ...]]:
    """The names of the options in the data, and their texts."""
    if isinstance(given, list | tuple):
        names, texts = list(string.ascii_uppercase[: len(given)]), list(given)
    elif isinstance(given, Mapping) and {"label", "text"} <= set(given):
        names, texts = [str(name) for name in given["label"]], list(given["text"])
    elif isinstance(given, Mapping):
        names, texts = [str(name) for name in given], list(given.values())
    else:
        names, texts = [], []
    if not 2 <= len(texts) <= len(string.ascii_uppercase) or len(names) != len(texts):
        raise DataError(f"the field 'choices' holds {given!r}, and two options or more are expected, as {_SHAPES}.")
    if not all(isinstance(text, str) and text.strip() for text in texts):
        raise DataError(f"the field 'choices' holds {given!r}, and every option must be a text.")
    return names, tuple(texts)
