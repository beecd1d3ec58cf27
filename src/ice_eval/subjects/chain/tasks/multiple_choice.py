"""Multiple-choice questions: CommonsenseQA, ARC-Challenge and MedQA."""

import string
from collections.abc import Mapping

from ice_eval.errors import DataError
from ice_eval.subjects.chain.answers import OptionAnswer
from ice_eval.subjects.chain.problems import CotTask, Problem, ProblemRecord, WorkedExample, cot_task, gold_of, text_of
from ice_eval.tasks import HubData

_SHAPES = '["…", "…"], {"A": "…", "B": "…"} or {"label": ["A", "B"], "text": ["…", "…"]}'


def choice_task(
    hub: HubData, *, question: str, options: tuple[str, ...], steps: tuple[str, ...], answer: str
) -> CotTask:
    """Return a task whose answers are letters; the other arguments are its worked example."""
    example = WorkedExample(Problem("", question, options, None, OptionAnswer(options)), steps, answer)
    return CotTask(read=choice_problem, example=example, hub=hub)


def choice_problem(row: ProblemRecord, identity: str) -> Problem:
    """Return a problem from `question`, `choices` (or `options`) and `answer` (or `answerKey`, `answer_idx`).

    Options may go by other names than letters (some of ARC's by 1 to 4): they are shown and answered by letters here.
    """
    names, options = _options(row.get("choices", row.get("options")))
    kind = OptionAnswer(options)
    given = next((row[key] for key in ("answerKey", "answer_idx", "answer") if row.get(key) is not None), None)
    if given is None:
        raise DataError(f"the field 'answer' is missing; the record has {', '.join(map(str, row))}.")
    answer = kind.letters[names.index(str(given))] if str(given) in names else given
    return Problem(identity, text_of(row, "question"), options, gold_of(answer, kind), kind)


def _options(given: object) -> tuple[list[str], tuple[str, ...]]:
    """Return the names of the options in the data, and their texts."""
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


@cot_task("commonsense_qa")
def commonsense_qa() -> CotTask:
    """Questions of common sense with five options (Talmor et al., 2019)."""
    return choice_task(
        HubData("tau/commonsense_qa", split="validation"),
        question="Where would you keep milk so that it stays fresh?",
        options=("drawer", "refrigerator", "car", "shelf", "oven"),
        steps=("Milk spoils where it is warm.", "Of these places only a refrigerator is kept cold."),
        answer="B",
    )


@cot_task("arc_challenge")
def arc_challenge() -> CotTask:
    """Science questions of school exams, the harder part (Clark et al., 2018)."""
    return choice_task(
        HubData("allenai/ai2_arc", config="ARC-Challenge", split="test"),
        question="Which of these makes its own light?",
        options=("a mirror", "the moon", "the sun", "a window"),
        steps=("A mirror and the moon throw light back.", "A window lets light through, and the sun burns."),
        answer="C",
    )


@cot_task("medqa")
def medqa() -> CotTask:
    """Questions of the medical licensing exam of the USA (Jin et al., 2021)."""
    return choice_task(
        HubData("GBaker/MedQA-USMLE-4-options", split="test"),
        question="A day after a walk through bushes a hiker has itchy red lines on one leg. What is the cause?",
        options=("contact with a plant", "a broken bone", "high blood pressure", "an infection of the ear"),
        steps=(
            "The rash follows lines, as where leaves brushed the skin.",
            "It itches and came a day after the contact.",
        ),
        answer="A",
    )
