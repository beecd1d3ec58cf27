"""A run beside the paper: the published cell of each of its configurations."""

from dataclasses import dataclass, replace
from typing import Any

from ice_eval import stats
from ice_eval.analysis.paper._published import protocol_differences, published
from ice_eval.nulls import SIZE
from ice_eval.results import RunSettings, Summary


@dataclass(frozen=True, kw_only=True)
class BesidePublished:
    """One configuration of a run, and the published cell that it belongs beside."""

    attribution: str
    operator: str
    k: float
    n: int
    """Examples of the run."""
    win_rate: float
    win_rate_ci: stats.Interval | None
    """95 %; None where it is undefined."""
    verdict: stats.Verdict
    taxonomy: str
    """The paper's word for the run's win rate."""
    published: float
    published_n: int | None
    """Examples of the paper, where it says so."""
    published_taxonomy: str
    difference: float
    """The run's win rate less the published one."""
    covered: bool | None
    """Whether the published win rate lies in the run's interval; None without an interval."""


@dataclass(frozen=True)
class BesidePaper:
    """What of a run the paper has measured too."""

    model: str
    task: str
    configurations: tuple[BesidePublished, ...]
    n_without: int
    """Configurations of the run that have no published cell."""
    protocol: tuple[str, ...]
    """In what the run was done otherwise than the paper's, a sentence each."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            **vars(self),
            "configurations": [{**vars(line), "verdict": str(line.verdict)} for line in self.configurations],
        }


def beside_paper(summary: Summary, config: RunSettings) -> BesidePaper:
    """Set a run beside the published tables.

    Args:
        summary: As `RunFolder.summary()` returns it.
        config: The `config` of its manifest.
    """
    model, task = config.model, config.task
    found, protocol = list[BesidePublished](), dict[str, None]()
    # Data may hold fewer examples than were asked for.
    done = replace(config, n=min(config.n, max((line.n for line in summary.configurations), default=0)))
    for line in summary.configurations:
        if line.null != SIZE or line.win_rate is None or line.verdict is None or not isinstance(line.k, float):
            continue
        cell = published(model, task, line.attribution, line.operator, k=line.k, direction=line.direction)
        if cell is None:
            continue
        interval = line.win_rate_ci
        found.append(
            BesidePublished(
                attribution=line.attribution,
                operator=line.operator,
                k=line.k,
                n=line.n,
                win_rate=line.win_rate,
                win_rate_ci=interval,
                verdict=line.verdict,
                taxonomy=stats.taxonomy(line.win_rate),
                published=cell.win_rate,
                published_n=cell.n,
                published_taxonomy=stats.taxonomy(cell.win_rate),
                difference=line.win_rate - cell.win_rate,
                covered=None if interval is None else interval[0] <= cell.win_rate <= interval[1],
            )
        )
        protocol.update(dict.fromkeys(protocol_differences(done, cell)))
    return BesidePaper(model, task, tuple(found), len(summary.configurations) - len(found), tuple(protocol))
