"""Identity of a run: hashes and names of its settings, and the differences between two runs."""

import datetime
import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ice_eval import stats
from ice_eval._registry import plugin_packages
from ice_eval.encoding import WHOLE
from ice_eval.errors import ConfigError
from ice_eval.files import as_text
from ice_eval.rationales import Share
from ice_eval.results.folder import FinishedRun, RunFolder
from ice_eval.results.records import Configuration, Manifest, Scalar, SummaryLine

NUMBERS = "numbers"
"""Manifest field of a user-supplied attribution: the hash of its numbers, known only after the run."""
ENOUGH_SHARED = 0.5
"""Runs are compared on shared examples if these are at least this share of the smaller run."""
PROMPT_HASH = "hash of prompt, label words, shots and explained fields"
_LONGEST = 80
"""Bytes of a name within a file name; file systems allow 255 in all."""
_RESERVED = frozenset(
    ["CON", "PRN", "AUX", "NUL", *(f"{port}{number}" for port in ("COM", "LPT") for number in range(1, 10))]
)
"""Device names of Windows; a suffix does not make them valid."""


def content_hash(content: Any) -> str:
    """Return the hash of content as canonical JSON."""
    return hashlib.sha256(_canonical(content)).hexdigest()[:32]


def content_hash_of_all(items: Iterable[Any]) -> str:
    """Return `content_hash` of the list of items, read one at a time, since data may be large."""
    digest = hashlib.sha256(b"[")
    for place, item in enumerate(items):
        digest.update((b"," if place else b"") + _canonical(item))
    digest.update(b"]")
    return digest.hexdigest()[:32]


def _canonical(content: Any) -> bytes:
    return json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode()


def numbers_hash(folder: RunFolder, name: str) -> str:
    """Return the hash of an attribution's numbers over all examples, independent of their order."""
    found = {
        row.example_id: row.attributions[name]
        for part in folder.parts()
        for row in folder.inputs(part)
        if name in row.attributions
    }
    digest = hashlib.sha256()
    for example_id in sorted(found):
        values = np.array(found[example_id], dtype="<f8")
        digest.update(f"{example_id!r}:{len(values)}:".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()[:32]


def stored_run(folder: RunFolder, asked: Mapping[str, Scalar]) -> Manifest | None:
    """Return the manifest of the run to continue, or None for a new folder.

    Raises:
        ConfigError: The folder holds another run (the message lists every differing field), or other files.
    """
    if folder.is_new:
        if folder.is_foreign:
            raise ConfigError(f"{folder.path} exists but is not a run folder; choose an --out that is empty or new.")
        return None
    manifest = RunFolder.existing(folder.path).manifest()
    stored = manifest.identity
    differ = [
        f"{name} is {stored.get(name)!r} there and {asked.get(name)!r} here"
        for name in dict.fromkeys([*asked, *stored])
        if stored.get(name) != asked.get(name)
    ]
    if differ:
        raise ConfigError(
            f"{folder.path} holds another run: {'; '.join(differ)}. Use another --out, or the same settings to "
            "continue it."
        )
    return manifest


def versions_of(packages: Sequence[str]) -> dict[str, str]:
    """Return the versions of Python, this package, the installed ones of `packages`, and all plug-in packages."""
    found = {"python": platform.python_version()}
    for name in ("ice-eval", *packages, *plugin_packages()):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def slug(name: str) -> str:
    """Return a valid name in any file system: no separators or control characters, not hidden, long or empty."""
    kept = "".join(c if c.isalnum() or c in "-_." else "-" for c in name).strip("-.")
    cut = kept.encode("utf-8")[:_LONGEST].decode("utf-8", "ignore").rstrip("-.")
    return f"run-{cut}" if cut.partition(".")[0].upper() in _RESERVED else cut or "run"


def now() -> str:
    """Return the current time in UTC, in ISO format."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


class SettingDifference(NamedTuple):
    """A field that differs between two runs."""

    field: str
    first: object
    second: object


@dataclass(frozen=True, kw_only=True)
class WinRateDifference:
    """Win rates of one configuration in two runs."""

    attribution: str
    operator: str
    direction: str
    k: Share | None
    null: str
    n_first: int
    """Number of examples behind the win rate of the first run."""
    n_second: int
    paired: bool
    """True if both win rates are over the same examples; others are then ignored."""
    win_rate_first: float | None
    win_rate_second: float | None
    difference: float | None
    """Win rate of the second run minus that of the first."""
    difference_ci: stats.Interval | None
    """95 %; None where it is undefined: a single example, or the same difference for all."""
    p_value: float | None
    """Two-sided test of no difference."""
    p_adjusted: float | None = None
    """Adjusted by Holm, over all configurations compared together."""
    verdict_first: stats.Verdict | None
    """Verdict on the first run, over all its examples."""
    verdict_second: stats.Verdict | None


@dataclass(frozen=True, kw_only=True)
class RunDifference:
    """Differences between two runs: settings, and win rates over shared examples."""

    first: RunFolder
    second: RunFolder
    by_id: bool = False
    """True if examples are matched by id alone, for instance translations of each other."""
    n_first: int
    n_second: int
    n_shared: int
    """Examples in both runs: same id, and same text unless `by_id`."""
    n_other_text: int
    """Examples that share an id but not the text."""
    settings: tuple[SettingDifference, ...]
    configurations: tuple[WinRateDifference, ...]
    only_first: tuple[Configuration, ...]
    only_second: tuple[Configuration, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the differences as JSON content; verdicts become text."""
        lines = [
            {name: str(value) if isinstance(value, stats.Verdict) else value for name, value in vars(line).items()}
            for line in self.configurations
        ]
        names = ("settings", "only_first", "only_second")
        named = {name: [each._asdict() for each in getattr(self, name)] for name in names}
        paths = {"first": as_text(self.first.path), "second": as_text(self.second.path)}
        return {**vars(self), **paths, **named, "configurations": lines}


def differences(first: RunFolder, others: Sequence[RunFolder], *, by_id: bool = False) -> list[RunDifference]:
    """Compare a run with each of some others; p-values are adjusted over all of them together.

    With `by_id`, examples match by id alone, for instance translations of each other.

    Raises:
        ConfigError: A run is not finished; or, with `by_id`, one id has two gold labels.
    """
    known = _Compared(folder=first)
    found = [_difference(known, _Compared(folder=other), by_id=by_id) for other in others]
    adjusted = iter(stats.adjusted_known([line.p_value for each in found for line in each.configurations]))
    return [
        replace(each, configurations=tuple(replace(line, p_adjusted=next(adjusted)) for line in each.configurations))
        for each in found
    ]


@dataclass(frozen=True, kw_only=True)
class _Compared(FinishedRun):
    """A run that is compared with others."""

    @cached_property
    def lines(self) -> dict[Configuration, SummaryLine]:
        return {line.configuration: line for line in self.folder.summary().configurations}

    @cached_property
    def texts(self) -> dict[str, dict[str, str]]:
        """The fields of each example; with scope `prompt` the whole prompt is one too, whatever surrounds the text."""
        rows = self.all_inputs.items()
        return {name: {field: text for field, text in row.fields.items() if field not in WHOLE} for name, row in rows}


def _difference(first: _Compared, second: _Compared, *, by_id: bool) -> RunDifference:
    common = [each for each in first.texts if each in second.texts]
    alike = [each for each in common if first.texts[each] == second.texts[each]]
    same = common if by_id else alike
    for each in common if by_id else ():  # with two gold labels, examples are not translations of each other
        golds = first.all_inputs[each].gold, second.all_inputs[each].gold
        if None not in golds and golds[0] != golds[1]:
            raise ConfigError(
                f"example '{each}' has the gold label {golds[0]} in {first.folder.path} and {golds[1]} in "
                f"{second.folder.path} (counted from 0): the ids do not name the same examples, so they cannot be "
                "compared by id."
            )
    return RunDifference(
        first=first.folder,
        second=second.folder,
        n_first=len(first.texts),
        n_second=len(second.texts),
        n_shared=len(same),
        n_other_text=len(common) - len(alike),
        settings=tuple(_changed_settings(first.manifest, second.manifest)),
        configurations=tuple(_line(cell, first, second, same) for cell in first.lines if cell in second.lines),
        only_first=tuple(cell for cell in first.lines if cell not in second.lines),
        only_second=tuple(cell for cell in second.lines if cell not in first.lines),
        by_id=by_id,
    )


def _line(cell: Configuration, first: _Compared, second: _Compared, same: Sequence[str]) -> WinRateDifference:
    left, right = first.win_rates.get(cell, {}), second.win_rates.get(cell, {})
    shared = [each for each in same if each in left and each in right]
    paired = bool(shared) and len(shared) >= ENOUGH_SHARED * min(len(left), len(right))
    ids = (shared, shared) if paired else (list(left), list(right))
    rates = np.array([left[each] for each in ids[0]]), np.array([right[each] for each in ids[1]])
    groups = first.groups_of(ids[0]), second.groups_of(ids[1])
    found = None
    if paired:
        anytime = any(each.manifest.config.until is not None for each in (first, second))
        found = stats.paired_difference(*rates, groups=groups[0], anytime=anytime)
    elif left and right:
        found = stats.unpaired_difference(*rates, first_groups=groups[0], second_groups=groups[1])
    return WinRateDifference(
        **cell._asdict(),
        n_first=len(ids[0]),
        n_second=len(ids[1]),
        paired=paired,
        win_rate_first=float(rates[0].mean()) if ids[0] else None,
        win_rate_second=float(rates[1].mean()) if ids[1] else None,
        difference=None if found is None else found.difference,
        difference_ci=None if found is None else found.interval,
        p_value=None if found is None else found.p_value,
        verdict_first=first.lines[cell].verdict,
        verdict_second=second.lines[cell].verdict,
    )


def _changed_settings(first: Manifest, second: Manifest) -> Iterator[SettingDifference]:
    """Yield settings that differ, then differing fields of attributions with the same name."""
    left, right = _all_settings(first), _all_settings(second)
    for name in dict.fromkeys([*left, *right]):
        values = left.get(name), right.get(name)
        # Several names or shares are the same in any order.
        own, other = (sorted(map(str, value)) if isinstance(value, list) else value for value in values)
        if own != other:
            yield SettingDifference(name, *values)
    for name in (name for name in first.attributions if name in second.attributions):
        own_fields, fields = first.attributions[name], second.attributions[name]
        for field in (field for field in own_fields if field in fields and own_fields[field] != fields[field]):
            yield SettingDifference(f"{field} of {name}", own_fields[field], fields[field])


def _all_settings(manifest: Manifest) -> dict[str, object]:
    """Return everything that may change a number: settings, model, data and versions."""
    settings: dict[str, object] = dict(vars(manifest.config))
    del settings["chain"]
    if manifest.config.chain is not None:
        settings |= vars(manifest.config.chain)
    identity: dict[str, object] = dict(manifest.identity)
    identity[PROMPT_HASH] = identity.pop("prompt", None)  # `prompt` is the text, and the hash covers more than that
    names = ("prompt", "explained", "label_scoring", "device", "token_budget")
    settings |= identity | {name: getattr(manifest, name) for name in names} | {"labels": ", ".join(manifest.labels)}
    settings |= {f"version of {name}": value for name, value in manifest.versions.items()}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()}
