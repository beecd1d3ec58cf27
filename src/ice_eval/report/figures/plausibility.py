"""Whether rationales that fit the human ones are the faithful ones."""

from dataclasses import replace

from ice_eval.analysis.measures.plausibility import HUMAN, iou, marks_of, tells_units_apart
from ice_eval.report.figures._base import Figure
from ice_eval.report.figures._examples import Examples
from ice_eval.report.figures._runs import own_size_name
from ice_eval.report.figures.from_tables import plausibility_scatter
from ice_eval.report.figures.records import Plausibility
from ice_eval.results.outcomes import ALL


def plausibility(examples: Examples) -> Figure | None:
    """A panel for every attribution and operator; None where the run's data have no human rationales."""
    folder = examples.folder
    inputs = ((row, marks_of(row)) for part in folder.parts() for row in folder.inputs(part) if row.human)
    known = {row.example_id: (marks, row.group) for row, marks in inputs if tells_units_apart(marks)}
    if not known:
        return None
    yardstick = own_size_name(HUMAN)
    rows = [
        Plausibility(
            model=line.attribution,
            operator=line.operator,
            overlap=iou(line.rationale, known[line.example_id][0]),
            win_rate=line.win_rate,
            group=known[line.example_id][1],
        )
        for line in examples.lines()
        if line.example_id in known and line.attribution != yardstick and line.operator != ALL
    ]
    if not rows:
        return None
    rows.sort(key=lambda row: examples.cells.index((row.model, row.operator)))
    drawn = plausibility_scatter(rows)
    return replace(drawn, title=f"{drawn.title} ({examples.setting})")
