"""What changed between two runs: their settings, and their win rates, over the same examples where they share some."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ice_eval import stats
from ice_eval.encoding import WHOLE
from ice_eval.errors import ConfigError
from ice_eval.rationales import Share
from ice_eval.results.folder import RunFolder
from ice_eval.results.records import Configuration, Manifest
from ice_eval.seeding import rng_for

ENOUGH_SHARED = 0.5
"""Runs are compared over the examples that they share where these are at least this share of the smaller run."""

PROMPT_HASH = "hash of prompt, label words, shots and explained fields"
"""What the hash of the prompt is called among settings."""


class Setting(NamedTuple):
    """One field that two runs disagree about."""

    field: str
    first: object
    second: object


@dataclass(frozen=True, kw_only=True)
class WinRateDifference:
    """One configuration in two runs."""

    attribution: str
    operator: str
    direction: str
    k: Share | None
    null: str
    n_first: int
    """Examples that the first run's win rate is a mean over."""
    n_second: int
    paired: bool
    """Whether they are the same examples; those that only one run holds then take no part."""
    win_rate_first: float | None
    win_rate_second: float | None
    difference: float | None
    """The second run's win rate less the first one's."""
    difference_ci: stats.Interval | None
    """95 %; None where it is undefined: a single example, or the same difference for all."""
    p_value: float | None
    """Two-sided test of no difference."""
    p_adjusted: float | None = None
    """Benjamini-Yekutieli, over all configurations that were compared together."""
    verdict_first: stats.Verdict | None
    """As the first run has it, over all its examples."""
    verdict_second: stats.Verdict | None


@dataclass(frozen=True)
class RunDifference:
    """What changed from one run to another."""

    first: RunFolder
    second: RunFolder
    n_first: int
    """Examples of the first run."""
    n_second: int
    n_shared: int
    """Examples of both: the same id, and the same text unless they go by their ids alone."""
    n_other_text: int
    """Examples that share an id but not the text: they are not the same, unless ids alone decide."""
    settings: tuple[Setting, ...]
    configurations: tuple[WinRateDifference, ...]
    only_first: tuple[Configuration, ...]
    only_second: tuple[Configuration, ...]
    by_id: bool = False
    """Whether examples of one id are the same whatever their texts: translations of each other, say."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        counts = ("by_id", "n_first", "n_second", "n_shared", "n_other_text")
        return {
            "first": str(self.first.path),
            "second": str(self.second.path),
            **{name: getattr(self, name) for name in counts},
            "settings": [setting._asdict() for setting in self.settings],
            "configurations": [_plain(line) for line in self.configurations],
            "only_first": [cell._asdict() for cell in self.only_first],
            "only_second": [cell._asdict() for cell in self.only_second],
        }


def differences(first: RunFolder, others: Sequence[RunFolder], *, by_id: bool = False) -> list[RunDifference]:
    """Compare a run with each of some others; p-values are adjusted over all of them together.

    Args:
        first: What the others are compared with.
        others: The other runs.
        by_id: Whether examples of one id are the same whatever their texts: translations of each other, say.

    Raises:
        ConfigError: A run is not finished; or examples go by their ids, and one has two gold labels.
    """
    known = _Results(first)
    found = [_difference(known, _Results(other), by_id=by_id) for other in others]
    p_values = [line.p_value for each in found for line in each.configurations if line.p_value is not None]
    adjusted = iter(stats.adjusted(np.array(p_values)).tolist() if p_values else ())
    return [replace(each, configurations=tuple(_adjusted(each.configurations, adjusted))) for each in found]


def _plain(line: WinRateDifference) -> dict[str, Any]:
    """A line for JSON, with the text of verdicts."""
    names = ("verdict_first", "verdict_second")
    return {**vars(line), **{name: str(found) if (found := getattr(line, name)) else None for name in names}}


class _Results:
    """The win rates of a run, by configuration and example."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder, self.manifest = folder, folder.manifest()
        self.lines = {line.configuration: line for line in folder.summary().configurations}
        self.rates: dict[Configuration, dict[str, float]] = {cell: {} for cell in self.lines}
        for line in folder.examples():
            if line.error is None:
                self.rates[line.configuration][line.example_id] = line.win_rate
        inputs = [row for part in folder.parts() for row in folder.inputs(part)]
        # With scope `prompt` the whole prompt is a field too; the text is the same whatever stands around it.
        self.texts = {row.example_id: {k: v for k, v in row.fields.items() if k not in WHOLE} for row in inputs}
        self.groups = {row.example_id: row.group for row in inputs}
        self.golds = {row.example_id: row.gold for row in inputs}

    def rates_of(self, cell: Configuration, ids: Sequence[str]) -> NDArray[np.float64]:
        """The win rate of each example."""
        return np.array([self.rates[cell][each] for each in ids], dtype=np.float64)

    def groups_of(self, ids: Sequence[str]) -> stats.Groups:
        """The group of each example; one without stands for itself."""
        return [(self.groups[each], each if self.groups[each] is None else "") for each in ids]


def _difference(first: _Results, second: _Results, *, by_id: bool) -> RunDifference:
    common = [each for each in first.texts if each in second.texts]
    alike = [each for each in common if first.texts[each] == second.texts[each]]
    if by_id:
        _check_golds(first, second, common)
    same = common if by_id else alike
    return RunDifference(
        first=first.folder,
        second=second.folder,
        n_first=len(first.texts),
        n_second=len(second.texts),
        n_shared=len(same),
        n_other_text=len(common) - len(alike),
        settings=tuple(_settings(first.manifest, second.manifest)),
        configurations=tuple(_line(cell, first, second, same) for cell in first.lines if cell in second.lines),
        only_first=tuple(cell for cell in first.lines if cell not in second.lines),
        only_second=tuple(cell for cell in second.lines if cell not in first.lines),
        by_id=by_id,
    )


def _check_golds(first: _Results, second: _Results, ids: Sequence[str]) -> None:
    """Two examples of one id that have different gold labels are no translations of each other."""
    for each in ids:
        golds = first.golds[each], second.golds[each]
        if None not in golds and golds[0] != golds[1]:
            raise ConfigError(
                f"example '{each}' has the gold label {golds[0]} in {first.folder.path} and {golds[1]} in "
                f"{second.folder.path} (counted from 0): the ids do not name the same examples, so they cannot be "
                "compared by id."
            )


def _line(cell: Configuration, first: _Results, second: _Results, same: Sequence[str]) -> WinRateDifference:
    left, right = first.rates[cell], second.rates[cell]
    shared = [each for each in same if each in left and each in right]
    paired = bool(shared) and len(shared) >= ENOUGH_SHARED * min(len(left), len(right))
    of_first, of_second = (shared, shared) if paired else (list(left), list(right))
    found = None
    if paired:
        rng = rng_for(first.manifest.config.seed, "difference")
        rates = first.rates_of(cell, shared), second.rates_of(cell, shared)
        found = stats.paired_difference(*rates, rng=rng, groups=first.groups_of(shared))
    elif left and right:
        rates = first.rates_of(cell, of_first), second.rates_of(cell, of_second)
        groups = first.groups_of(of_first), second.groups_of(of_second)
        found = stats.unpaired_difference(*rates, first_groups=groups[0], second_groups=groups[1])
    return WinRateDifference(
        **cell._asdict(),
        n_first=len(of_first),
        n_second=len(of_second),
        paired=paired,
        win_rate_first=float(first.rates_of(cell, of_first).mean()) if of_first else None,
        win_rate_second=float(second.rates_of(cell, of_second).mean()) if of_second else None,
        difference=None if found is None else found.difference,
        difference_ci=None if found is None else found.interval,
        p_value=None if found is None else found.p_value,
        verdict_first=first.lines[cell].verdict,
        verdict_second=second.lines[cell].verdict,
    )


def _adjusted(lines: Sequence[WinRateDifference], p_values: Iterator[float]) -> Iterator[WinRateDifference]:
    for line in lines:
        yield line if line.p_value is None else replace(line, p_adjusted=next(p_values))


def _settings(first: Manifest, second: Manifest) -> Iterator[Setting]:
    left, right = _all_settings(first), _all_settings(second)
    for name in dict.fromkeys([*left, *right]):
        if _comparable(left.get(name)) != _comparable(right.get(name)):
            yield Setting(name, left.get(name), right.get(name))
    yield from _methods(first.attributions, second.attributions)


def _methods(
    first: Mapping[str, Mapping[str, object]], second: Mapping[str, Mapping[str, object]]
) -> Iterator[Setting]:
    """Yield the fields of attributions that have one name and differ: other methods, options or numbers."""
    for name in (name for name in first if name in second):
        for field in (field for field in first[name] if field in second[name]):
            if first[name][field] != second[name][field]:
                yield Setting(f"{field} of {name}", first[name][field], second[name][field])


def _all_settings(manifest: Manifest) -> dict[str, object]:
    """Everything that may change a number: settings, model, data and versions."""
    settings: dict[str, object] = dict(vars(manifest.config))
    del settings["chain"]
    if manifest.config.chain is not None:
        settings |= vars(manifest.config.chain)
    names = ("prompt", "explained", "label_scoring", "device", "token_budget")
    as_used = {name: getattr(manifest, name) for name in names}
    as_used["labels"] = ", ".join(manifest.labels)
    versions = {f"version of {name}": value for name, value in manifest.versions.items()}
    identity: dict[str, object] = dict(manifest.identity)
    identity[PROMPT_HASH] = identity.pop("prompt", None)  # the text has the name, and the hash holds more than the text
    found = {**settings, **identity, **as_used, **versions}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


def _comparable(value: object) -> object:
    """Several names or shares are the same in any order."""
    return sorted(map(str, value)) if isinstance(value, list) else value
