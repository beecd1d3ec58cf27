"""Classifications put as questions: SST-2 and AG News."""

from collections.abc import Mapping

from ice_eval.errors import DataError
from ice_eval.subjects.chain.answers import LabelAnswer
from ice_eval.subjects.chain.problems import CotTask, Problem, ProblemRecord, WorkedExample, cot_task, gold_of, text_of
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
    """Return a task with the data of a classification; `text`, `steps` and `answer` are its worked example.

    Args:
        task: Name of the classification.
        question: Template of the question, with `{text}`.
        words: Words that stand for each label.
        text: Text of the worked example.
        steps: Steps of the worked example.
        answer: Label of the worked example.
    """
    kind = LabelAnswer(words)

    def read(row: ProblemRecord, identity: str) -> Problem:
        label = row.get("label")
        if label is None:
            raise DataError(f"the field 'label' is missing; the record has {', '.join(map(str, row))}.")
        named = list(words)[label] if isinstance(label, int) and 0 <= label < len(words) else label
        return Problem(identity, question.format(text=text_of(row, "text")), (), gold_of(named, kind), kind)

    data = tasks.get(task)().data
    example = WorkedExample(Problem("", question.format(text=text), (), None, kind), steps, answer)
    return CotTask(read=read, kind=kind, example=example, hub=data if isinstance(data, HubData) else None)


@cot_task("sst2")
def sst2() -> CotTask:
    """Sentiment of one film-review sentence (Socher et al., 2013)."""
    return label_task(
        "sst2",
        question="Does this sentence from a film review speak well of the film or badly?\n\n{text}",
        words={"negative": (), "positive": ()},
        text="the jokes fall flat and the story drags.",
        steps=('"Fall flat" says that the jokes do not work.', '"Drags" says that the story is too slow.'),
        answer="negative",
    )


@cot_task("ag_news")
def ag_news() -> CotTask:
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
