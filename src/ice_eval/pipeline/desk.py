"""Where the rows of a part go to the model, except those that the folder holds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ice_eval.errors import ConfigError
from ice_eval.pipeline.rows import Row
from ice_eval.results.schema import LedgerRow, RowKey
from ice_eval.scoring import Progress, Scorer, Submitted

Answers = dict[tuple[bytes, bytes], tuple[float, ...]]
"""Scores by what the model saw. An input is scored once per part: twice would differ by rounding, and untie a tie."""


@dataclass(frozen=True)
class Asked:
    """Rows on their way through the model."""

    rows: Sequence[Row]
    new: Sequence[Row]
    """Those whose input has no answer yet."""
    submitted: Submitted

    def answers(self, answered: Answers) -> dict[RowKey, tuple[float, ...]]:
        """The score of every row, as soon as the model has it; what is new is noted in `answered`."""
        if any(row.input.key() not in answered for row in self.new):
            scores = self.submitted.collect().tolist()
            answered.update({row.input.key(): tuple(values) for row, values in zip(self.new, scores, strict=True)})
        return {row.key: answered[row.input.key()] for row in self.rows}


@dataclass(frozen=True)
class Desk:
    """Sends the rows of a part to the model, except those that the folder holds."""

    scorer: Scorer
    prefix: int
    known: Mapping[RowKey, LedgerRow]
    answered: Answers
    progress: Progress

    def ask(self, rows: Iterable[Row]) -> Asked:
        missing = [row for row in rows if not self._is_known(row)]
        new = [row for row in missing if row.input.key() not in self.answered]
        self.progress(len(missing) - len(new))
        inputs = [row.input for row in new]
        return Asked(missing, new, self.scorer.submit(inputs, prefix=self.prefix, progress=self.progress))

    def _is_known(self, row: Row) -> bool:
        if row.key in self.known and self.known[row.key].kept != row.kept:
            raise changed(row.key.kind.removeprefix("rationale:").removeprefix("probe:"), row.key.example_id)
        return row.key in self.known


def changed(name: str, example_id: str) -> ConfigError:
    return ConfigError(
        f"the folder holds other values of the attribution '{name}' for example '{example_id}'; give it another "
        "name, or use another folder."
    )
