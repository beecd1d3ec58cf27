"""A finished evaluation, as a notebook looks at it."""

from pathlib import Path
from typing import TYPE_CHECKING

from ice_eval.results import RunFolder, differences, rescore, view_example
from ice_eval.results.json_files import as_json
from ice_eval.results.records import flat
from ice_eval.subjects.chain import rescore_chains

if TYPE_CHECKING:
    import pandas as pd

    from ice_eval.report import ShownExample


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
        """One row per configuration."""
        import pandas as pd

        return pd.DataFrame([flat(line) for line in self.folder.summary().configurations])

    def agreement(self) -> "pd.DataFrame":
        """One row per attribution and pair of operators."""
        import pandas as pd

        return pd.DataFrame([as_json(line) for line in self.folder.summary().agreement])

    def examples(self) -> "pd.DataFrame":
        """One row per example and configuration."""
        import pandas as pd

        return pd.DataFrame([as_json(line) for line in self.folder.examples()])

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
        """One example, under all configurations or those that are chosen.

        A notebook shows its text with every attribution as shades and the rationale outlined, win rate, p-value and the
        scores of the null; elsewhere it prints as lines of text.

        Raises:
            ConfigError: The run holds no such example or configuration.
        """
        from ice_eval.report import ShownExample

        chosen = {"attribution": attribution, "operator": operator, "direction": direction, "k": k, "null": null}
        return ShownExample(view_example(self.folder, str(example_id), **chosen))  # type: ignore[arg-type]

    def compare(self, other: "Run | str | Path", *, by_id: bool = False) -> "pd.DataFrame":
        """What changed from this run to another: one row per configuration that both have, as `ice compare`.

        `difference` is the other's mean win rate less this run's, with its 95 % interval and a test: paired over the
        examples that both hold (same id, same text), unpaired where these are less than half of the smaller run. With
        `by_id` the id alone decides, as for translations. The settings that differ are in `attrs["settings"]`.
        """
        import pandas as pd

        folder = other.folder if isinstance(other, Run) else RunFolder.existing(Path(other))
        [found] = differences(self.folder, [folder], by_id=by_id)
        frame = pd.DataFrame(found.as_dict()["configurations"])
        frame.attrs["settings"] = [setting._asdict() for setting in found.settings]
        return frame

    def report(self, path: str | Path | None = None) -> Path:
        """Write the report as one HTML file, by default into the run folder."""
        from ice_eval.report import write_html

        return write_html([self.folder], Path(path) if path is not None else self.path / "report.html")

    def rescore(self) -> None:
        """Compute all statistics again from the ledger, without a model."""
        self.folder.require_complete()
        compute = rescore_chains if self.folder.manifest().chains is not None else rescore
        with self.folder.opened():
            compute(self.folder)

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    def _repr_html_(self) -> str:
        from ice_eval.report import summary_html

        return summary_html(self.folder)
