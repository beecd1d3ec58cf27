"""GSM8K."""

from ice_eval.subjects.chain.numbers import NumberAnswer
from ice_eval.subjects.chain.problems import CotTask, Problem, ProblemRecord, WorkedExample, cot_task, gold_of, text_of
from ice_eval.tasks import HubData

_EXAMPLE = WorkedExample(
    Problem(
        "",
        "Tom fills 4 boxes with 12 jars each and gives 10 jars away. How many jars are left?",
        (),
        None,
        NumberAnswer(),
    ),
    ("4 boxes with 12 jars each hold 4 * 12 = 48 jars.", "After 10 are given away, 48 - 10 = 38 are left."),
    "38",
)


@cot_task("gsm8k")
def gsm8k() -> CotTask:
    """Word problems of primary school, answered with a number (Cobbe et al., 2021)."""
    return CotTask(
        read=_problem, kind=NumberAnswer(), example=_EXAMPLE, hub=HubData("openai/gsm8k", config="main", split="test")
    )


def _problem(row: ProblemRecord, identity: str) -> Problem:
    """Return the gold answer is `final`, else what follows `####` at the end of the worked solution."""
    final = row["final"] if row.get("final") is not None else text_of(row, "answer").rpartition("####")[2]
    return Problem(identity, text_of(row, "question"), (), gold_of(final, NumberAnswer()), NumberAnswer())
