"""Tasks of problems to reason about: GSM8K, multiple choice, and classifications put as questions."""

import string
from collections.abc import Mapping

from ice_eval.errors import DataError
from ice_eval.subjects.chain.answers import LabelAnswer, OptionAnswer
from ice_eval.subjects.chain.numbers import NumberAnswer
from ice_eval.subjects.chain.problems import Problem, ProblemRecord, ReasoningTask, WorkedExample, text_of, with_gold
from ice_eval.tasks import HubData, load_task, task


@task("gsm8k")
def gsm8k() -> ReasoningTask:
    """Word problems of primary school, answered with a number (Cobbe et al., 2021)."""
    question = "Tom fills 4 boxes with 12 jars each and gives 10 jars away. How many jars are left?"
    steps = ("4 boxes with 12 jars each hold 4 * 12 = 48 jars.", "After 10 are given away, 48 - 10 = 38 are left.")
    return ReasoningTask(
        read=_problem,
        kind=NumberAnswer(),
        example=WorkedExample(Problem("", question, (), None, NumberAnswer()), steps, "38"),
        data=HubData("openai/gsm8k", config="main", split="test", revision="740312add88f781978c0658806c59bc2815b9866"),
    )


def _problem(row: ProblemRecord, identity: str) -> Problem:
    """Return a problem; its gold answer is `final`, else what follows `####` at the end of the worked solution."""
    final = row["final"] if row.get("final") is not None else text_of(row, "answer").rpartition("####")[2]
    return with_gold(Problem(identity, text_of(row, "question"), (), None, NumberAnswer()), final)


_SHAPES = '["…", "…"], {"A": "…", "B": "…"} or {"label": ["A", "B"], "text": ["…", "…"]}'


def choice_task(
    hub: HubData, *, question: str, options: tuple[str, ...], steps: tuple[str, ...], answer: str
) -> ReasoningTask:
    """Return a task whose answers are letters; the other arguments are its worked example."""
    example = WorkedExample(Problem("", question, options, None, OptionAnswer(options)), steps, answer)
    return ReasoningTask(read=choice_problem, example=example, data=hub)


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
    return with_gold(Problem(identity, text_of(row, "question"), options, None, kind), answer)


def _options(given: object) -> tuple[list[str], tuple[str, ...]]:
    """Return the names of the options in the data, and their texts."""
    names: list[str] = []
    texts = list(given) if isinstance(given, list | tuple) else []
    if texts:
        names = list(string.ascii_uppercase[: len(texts)])
    elif isinstance(given, Mapping):
        pairs = (given["label"], given["text"]) if {"label", "text"} <= set(given) else (given, given.values())
        names, texts = [str(name) for name in pairs[0]], list(pairs[1])
    if not 2 <= len(texts) <= len(string.ascii_uppercase) or len(names) != len(texts):
        raise DataError(f"the field 'choices' holds {given!r}, and two options or more are expected, as {_SHAPES}.")
    if not all(isinstance(text, str) and text.strip() for text in texts):
        raise DataError(f"the field 'choices' holds {given!r}, and every option must be a text.")
    return names, tuple(texts)


@task("commonsense_qa")
def commonsense_qa() -> ReasoningTask:
    """Questions of common sense with five options (Talmor et al., 2019)."""
    return choice_task(
        HubData("tau/commonsense_qa", split="validation", revision="94630fe30dad47192a8546eb75f094926d47e155"),
        question="Where would you keep milk so that it stays fresh?",
        options=("drawer", "refrigerator", "car", "shelf", "oven"),
        steps=("Milk spoils where it is warm.", "Of these places only a refrigerator is kept cold."),
        answer="B",
    )


@task("arc_challenge")
def arc_challenge() -> ReasoningTask:
    """Science questions of school exams, the harder part (Clark et al., 2018)."""
    return choice_task(
        HubData("allenai/ai2_arc", "ARC-Challenge", "test", revision="210d026faf9955653af8916fad021475a3f00453"),
        question="Which of these makes its own light?",
        options=("a mirror", "the moon", "the sun", "a window"),
        steps=("A mirror and the moon throw light back.", "A window lets light through, and the sun burns."),
        answer="C",
    )


@task("medqa")
def medqa() -> ReasoningTask:
    """Questions of the medical licensing exam of the USA (Jin et al., 2021)."""
    return choice_task(
        HubData("GBaker/MedQA-USMLE-4-options", split="test", revision="0fb93dd23a7339b6dcd27e241cb9b5eca62d4d18"),
        question="A day after a walk through bushes a hiker has itchy red lines on one leg. What is the cause?",
        options=("contact with a plant", "a broken bone", "high blood pressure", "an infection of the ear"),
        steps=(
            "The rash follows lines, as where leaves brushed the skin.",
            "It itches and came a day after the contact.",
        ),
        answer="A",
    )


def label_task(
    classification: str,
    *,
    question: str,
    words: Mapping[str, tuple[str, ...]],
    text: str,
    steps: tuple[str, ...],
    answer: str,
) -> ReasoningTask:
    """Return a task with the data of a classification; `text`, `steps` and `answer` are its worked example.

    `question` is a template with `{text}`, and `words` stand for each label.
    """
    kind = LabelAnswer(words)

    def read(row: ProblemRecord, identity: str) -> Problem:
        label = row.get("label")
        if label is None:
            raise DataError(f"the field 'label' is missing; the record has {', '.join(map(str, row))}.")
        named = list(words)[label] if isinstance(label, int) and 0 <= label < len(words) else label
        return with_gold(Problem(identity, question.format(text=text_of(row, "text")), (), None, kind), named)

    example = WorkedExample(Problem("", question.format(text=text), (), None, kind), steps, answer)
    return ReasoningTask(read=read, kind=kind, example=example, data=load_task(classification).data)


@task("sst2/reasoning")
def sst2() -> ReasoningTask:
    """Sentiment of one film-review sentence (Socher et al., 2013)."""
    return label_task(
        "sst2",
        question="Does this sentence from a film review speak well of the film or badly?\n\n{text}",
        words={"negative": (), "positive": ()},
        text="the jokes fall flat and the story drags.",
        steps=('"Fall flat" says that the jokes do not work.', '"Drags" says that the story is too slow.'),
        answer="negative",
    )


@task("ag_news/reasoning")
def ag_news() -> ReasoningTask:
    """Topic of a news item: world, sports, business or technology (Zhang et al., 2015)."""
    return label_task(
        "ag_news",
        question="Which section of a newspaper does this item belong to?\n\n{text}",
        words={
            "World": ("world news",),
            "Sports": ("sport",),
            "Business": (),
            "Sci/Tech": ("science and technology", "science/technology", "sci-tech", "technology", "science", "tech"),
        },
        text="The home side won the cup final 3-1 after extra time.",
        steps=("A cup final is a match between two teams.", "The item reports the result of the match."),
        answer="Sports",
    )
