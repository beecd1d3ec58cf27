"""The result of an evaluation, and the test of a single rationale."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ice_eval import stats
from ice_eval.choices import TableColumns
from ice_eval.errors import ConfigError, DataError
from ice_eval.rationales import keep_mask, null_of, random_sets
from ice_eval.results import RunFolder, differences, rescore, view_example
from ice_eval.results.json_files import as_json
from ice_eval.results.records import Record, flat

if TYPE_CHECKING:
    import pandas as pd

    from ice_eval.report import ShownExample
    from ice_eval.report.figures.figure import Chart


class Run:
    """A finished evaluation, read from its folder.

    Example:
        >>> run = Run("ice-runs/demo")          # doctest: +SKIP
        >>> run.summary()[["attribution", "operator", "win_rate", "verdict"]]   # doctest: +SKIP
    """

    def __init__(self, path: str | Path) -> None:
        self.folder = RunFolder.existing(Path(path))

    @property
    def path(self) -> Path:
        return self.folder.path

    def summary(self) -> "pd.DataFrame":
        """Return a table with a row per configuration."""
        import pandas as pd

        return pd.DataFrame([flat(line) for line in self.folder.summary().configurations])

    def agreement(self) -> "pd.DataFrame":
        """Return a table with a row per attribution and pair of operators."""
        return _frame(self.folder.summary().agreement)

    def examples(self) -> "pd.DataFrame":
        """Return a table with a row per example and configuration."""
        return _frame(self.folder.examples())

    def example(
        self,
        example_id: str,
        *,
        attribution: str | None = None,
        operator: str | None = None,
        direction: str | None = None,
        k: float | None = None,
        null: str | None = None,
    ) -> "ShownExample":
        """Return one example, under all or the selected configurations.

        A notebook shows attributions as shades and the rationale outlined, with win rate, p-value and the scores of the
        null; elsewhere it prints as text.

        Raises:
            ConfigError: The run holds no such example or configuration.
        """
        from ice_eval.report import ShownExample

        chosen = {"attribution": attribution, "operator": operator, "direction": direction, "k": k, "null": null}
        return ShownExample(view_example(self.folder, str(example_id), **chosen))  # type: ignore[arg-type]

    def plot(self) -> "Chart":
        """Return the win rates of all methods with their intervals, ranked, as an altair chart.

        Raises:
            ConfigError: The run has no explanation.
        """
        from ice_eval.report.figures import ranked

        return ranked(self.folder).plot()

    def compare(self, other: "Run | str | Path", *, by_id: bool = False) -> "pd.DataFrame":
        """Return the changes from this run to another: a row per configuration that both have, as `ice compare`.

        `difference` is the other's mean win rate minus this run's, with its 95 % interval and a test. It is paired over
        the examples that both hold (same id, same text), and unpaired if these are less than half of the smaller run.
        With `by_id`, examples match by id alone, as for translations. Differing settings are in `attrs["settings"]`.
        """
        import pandas as pd

        folder = other.folder if isinstance(other, Run) else RunFolder.existing(Path(other))
        [found] = differences(self.folder, [folder], by_id=by_id)
        frame = pd.DataFrame(found.as_dict()["configurations"])
        frame.attrs["settings"] = [setting._asdict() for setting in found.settings]
        return frame

    def report(self, path: str | Path | None = None, *, columns: TableColumns | None = None) -> Path:
        """Write the report as one HTML file, by default into the run folder.

        `columns` are those of the tables of configurations: `default` or `paper`, or else those of the protocol.
        """
        from ice_eval.report import write_html

        return write_html([self.folder], self.path / "report.html" if path is None else Path(path), columns=columns)

    def rescore(self) -> None:
        """Recompute all statistics from the ledger, without a model."""
        self.folder.require_complete()
        with self.folder.opened():
            rescore(self.folder)

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    def _repr_html_(self) -> str:
        from ice_eval.report import summary_html

        return summary_html(self.folder)


def _frame(lines: Iterable[Record]) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame([as_json(line) for line in lines])


def randomization_test(
    score_masks: Callable[[NDArray[np.bool_]], ArrayLike],
    *,
    n_units: int,
    rationale: Sequence[int],
    m: int = 50,
    seed: int = 0,
) -> stats.Comparison:
    """Test one rationale of any model, in any modality.

    Args:
        score_masks: Takes a bool matrix of keep-masks (rows, units) and returns a score per row, larger for a better
            kept input.
        n_units: Number of units (words, patches, frames, …) of the input.
        rationale: Indices of the units that the explanation selects.
        m: Number of random sets; if at most m + 1 sets exist, all are used and the test is exact.
        seed: Seed of the random sets.

    Raises:
        DataError: The rationale is not a set of units, leaves no other set, or a score is not finite.
    """
    units = tuple(sorted({int(unit) for unit in rationale}))
    if len(units) != len(list(rationale)) or not units or units[0] < 0 or units[-1] >= n_units:
        raise DataError(f"the rationale {list(rationale)} is not a set of units 0 … {n_units - 1}.")
    if m < 1:
        raise ConfigError(f"m = {m}: at least 1 is needed.")
    sets = random_sets(n_units, len(units), m + 1, seed=seed, example_id="")
    chosen = keep_mask(units, n_units)
    null = sets[null_of(chosen, sets, m)]
    if not len(null):
        raise DataError(
            f"the rationale holds all {n_units} units, so there is no other set of its size to compare with."
        )
    masks = np.concatenate([chosen[None], null])
    scores = np.asarray(score_masks(masks), dtype=np.float64)
    if scores.shape != (len(masks),):
        raise DataError(
            f"score_masks returned shape {scores.shape} for {len(masks)} rows; one score per row is expected."
        )
    return stats.compare(float(scores[0]), scores[1:])
