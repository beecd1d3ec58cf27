"""How a deployed model and its adapted copy answer the inputs of a run; A is the deployed model, B the copy."""

from collections.abc import Sequence

from ice_eval.analysis.answers import Answered
from ice_eval.report.tables import Table, percent
from ice_eval.results.records import Adaptation

_HEADER = (
    "inputs", "rows", "accuracy A", "accuracy B", "loss A", "loss B", "rescaled A", "rescaled B", "B − A", "95 % CI",
)  # fmt: skip


def adaptation_table(found: Sequence[Answered]) -> Table:
    """Accuracy and loss on full inputs and on those of the null; losses also at each model's best temperature."""
    return Table("How they answer", _HEADER, tuple(_row(line) for line in found))


def adaptation_notes(adaptation: Adaptation, found: Sequence[Answered]) -> list[str]:
    """How the copy was adapted, whether it learnt something, and what is explained."""
    seen = "the evaluated ones too" if adaptation.rows_evaluated else "none of them evaluated"
    losses = ", ".join(f"{loss:.3f}" for loss in adaptation.losses)
    removed = [line for line in found if line.operator is not None]
    learnt = "; ".join(_inputs(line) for line in removed if line.learnt)
    others = "; ".join(_inputs(line) for line in removed if not line.learnt)
    return [
        f"B is {adaptation.of}, trained on {adaptation.rows} examples ({seen}; epochs: {adaptation.epochs}) "
        f"with up to {100 * adaptation.share:.0f} % of units removed by {', '.join(adaptation.operators)}: "
        f"losses {losses}, {adaptation.seconds:g} s.",
        *([f"B reads better than A, beyond being less sure of itself: {learnt}."] if learnt else []),
        *(
            [
                f"B does not measurably read better than A: {others}. Where only the plain loss is lower, B is less "
                "sure of itself and no more, and equal win rates are no evidence that odd inputs do not matter."
            ]
            if others
            else []
        ),
        "Both explain A: explanations and explained labels are those of the deployed model.",
    ]


def _row(line: Answered) -> tuple[str, ...]:
    losses = (line.loss_deployed, line.loss_adapted, line.rescaled_deployed, line.rescaled_adapted)
    ci = line.difference_ci
    return (
        _inputs(line),
        str(line.rows),
        percent(line.accuracy_deployed),
        percent(line.accuracy_adapted),
        *(f"{loss:.3f}" for loss in losses),
        f"{line.difference:+.3f}",
        "–" if ci is None else f"[{ci[0]:+.3f}, {ci[1]:+.3f}]",
    )


def _inputs(line: Answered) -> str:
    if line.operator is None:
        return "full"
    kept = "random set kept" if line.direction == "sufficiency" else "random set removed"
    return f"{line.operator}, {kept}"
