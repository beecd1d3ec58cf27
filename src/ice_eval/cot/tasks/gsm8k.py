"""GSM8K."""

from ice_eval.cot.answers import Number
from ice_eval.cot.tasks._base import CotTask, Problem, Row, cot_task, gold_of, text_of
from ice_eval.tasks import HubData


@cot_task("gsm8k")
def gsm8k() -> CotTask:
    """Word problems of primary school, answered with a number (Cobbe et al., 2021)."""
    return CotTask(read=_problem, kind=Number(), hub=HubData("openai/gsm8k", config="main", split="test"))


def _problem(row: Row, identity: str) -> Problem:
    """The gold answer is `final`, else what follows `####` at the end of the worked solution."""
    final = row["final"] if row.get("final") is not None else text_of(row, "answer").rpartition("####")[2]
    return Problem(identity, text_of(row, "question"), (), gold_of(final, Number()), Number())
