"""Sources of examples (a file, a file of this package, a hub data set, records in memory), and parsing of rows."""

import csv
import functools
import importlib.resources
import itertools
import json
import numbers
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ice_eval.errors import DataError, is_broken, require
from ice_eval.files import as_text, readable, why_no_json
from ice_eval.records import Example, Span

Row = Mapping[str, Any]
OPTIONAL = frozenset({"id", "label", "group", "rationale"})
"""Columns that data may have beside the fields of the prompt."""
SAME_TEXT = "same text as "
"""Beginning of the name of a group that was found; the id of its first example follows."""
SHORTEST_SHARED = 20
"""Characters of the shortest text that makes a group of examples which differ in other fields."""
_MOST_DIGITS = 10
"""Longest index of a label: Python refuses to read numbers of thousands of digits."""


class DataSource(ABC):
    """A source of rows: the prompt's fields, perhaps `label`, `id`, `group`, `rationale`, `highlights_…`."""

    @property
    @abstractmethod
    def origin(self) -> str:
        """Name of the source in error messages and in the manifest."""

    @abstractmethod
    def rows(self) -> Iterable[Row]:
        """Return the rows, in order, from the start."""

    @property
    def commit(self) -> str | None:
        """Full commit id of data of the hub, for the manifest; None for other data, or if the hub does not tell it."""
        return None

    def load(self, fields: Sequence[str], labels: Sequence[str], *, limit: int | None = None) -> list[Example]:
        """Read and check the first `limit` examples.

        Raises:
            DataError: No rows, a missing field, an unknown label or an id given twice.
        """
        rows = itertools.islice(self.rows(), limit)
        examples = [example_of(row, index, fields, labels, self.origin) for index, row in enumerate(rows)]
        if not examples:
            raise DataError(f"{self.origin} holds no examples; at least one is needed.")
        seen: set[str] = set()
        for example in examples:
            if example.id in seen:
                raise DataError(
                    f"{self.origin}: two examples have the id '{example.id}'; ids must be unique (leave them out to "
                    "count rows)."
                )
            seen.add(example.id)
        return examples


@dataclass(frozen=True)
class FileData(DataSource):
    """A `.jsonl` file with an object per line, or a `.csv` file with a header."""

    path: Path
    columns: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Field of the prompt, `id`, `label`, `group` or `rationale` -> column of the file, where the names differ."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))  # a string is welcome too

    @property
    def origin(self) -> str:
        return as_text(self.path)

    def rows(self) -> Iterator[Row]:
        if not self.path.is_file():
            raise DataError(f"no such file: {self.path}. --data takes a .jsonl or .csv file.")
        kind = self.path.suffix.lower()
        if kind not in {".jsonl", ".csv"}:
            raise DataError(f"{self.path} is neither .jsonl nor .csv; convert it to one of them.")
        with readable(self.path), self.path.open(encoding="utf-8-sig", newline="") as lines:
            rows = _csv_rows(lines, self.origin) if kind == ".csv" else _jsonl_rows(lines, self.origin)
            for row in _renamed(_from_esnli(rows), self.columns, self.origin):
                blank = {name for name in OPTIONAL if kind == ".csv" and row.get(name) == ""}
                yield {name: value for name, value in row.items() if name not in blank}


@dataclass(frozen=True)
class PackageData(DataSource):
    """A `.jsonl` file that ships with this package."""

    name: str

    @property
    def origin(self) -> str:
        return f"ice_eval/tasks/data/{self.name}"

    def rows(self) -> Iterator[Row]:
        text = (importlib.resources.files("ice_eval.tasks") / "data" / self.name).read_text(encoding="utf-8")
        return _jsonl_rows(text.splitlines(), self.origin)


@dataclass(frozen=True)
class Records(DataSource):
    """Rows that are already in memory."""

    records: Sequence[Row]

    @property
    def origin(self) -> str:
        return "the records"

    def rows(self) -> Iterable[Row]:
        return self.records


@dataclass(frozen=True)
class NoData(DataSource):
    """The data of a task that has a prompt and label words only; the user supplies the texts."""

    @property
    def origin(self) -> str:
        return "no data"

    def rows(self) -> Iterable[Row]:
        raise DataError("this task has no data of its own; give the examples as a file: --data FILE.jsonl")


@dataclass(frozen=True)
class HubData(DataSource):
    """A data set of the Hugging Face hub at a pinned revision; no loading script is ever run."""

    path: str
    config: str | None = None
    split: str = "validation"
    revision: str | None = None
    """Full commit id of the data set's repository; None: the current state of `branch`."""
    branch: str = "main"
    """Branch that is read without a revision; `refs/convert/parquet` is the hub's own conversion of a script's data."""
    file: str | None = None
    """File (.json or .parquet) that holds the split, for a repository that would need its loading script."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Our field name, or `label` -> column of the data set, where the names differ."""
    labels: Mapping[Any, str] = field(default_factory=dict)
    """Value of the column `label`, or the name that the data set gives this value -> label name."""
    only_labels: bool = False
    """True if rows with other labels than these (neutral texts, for example) are skipped, not refused."""
    quotes: str | None = None
    """Column with passages that people copied from the field `text`: the human rationale."""
    shuffle_seed: int | None = 0
    """Seed of the shuffle of hub data, since some are sorted by label; None: rows are read as they are stored."""

    @property
    def origin(self) -> str:
        return "/".join(filter(None, (self.path, self.config, self.split)))

    @functools.cached_property
    def commit(self) -> str | None:
        if Path(self.path).exists():
            return None
        return self.revision or self._ask_hub(self.branch)  # once, so that the manifest names the commit that is read

    def _ask_hub(self, revision: str) -> str | None:
        """Return a revision's commit; without a network, let the hub's clients read their caches and return None.

        By themselves they would retry for minutes.
        """
        hub = require("huggingface_hub", install="huggingface_hub", purpose="to read data of the hub")
        try:
            return hub.HfApi().dataset_info(self.path, revision=revision, timeout=10).sha  # type: ignore[no-any-return]
        except (hub.errors.HfHubHTTPError, ValueError):  # it answered, or no repository has such a name
            return None
        except Exception:  # it cannot be reached: types of several libraries
            datasets = require("datasets", install="ice-eval[hub]", purpose="to load data of the hub")
            hub.constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = True
            return None

    def rows(self) -> Iterator[Row]:
        datasets = require(
            "datasets", install="ice-eval[hub]", purpose=f"to load '{self.origin}' from the hub; or give --data FILE"
        )
        revision = None if Path(self.path).exists() else self.commit or self.branch
        try:
            if revision is not None and self.revision is not None:
                self._ask_hub(revision)
            data = self._loaded(datasets, revision)
        except Exception as exc:  # the hub's client raises many types, and all of them mean: not to be had now
            reason = str(exc).strip().partition("\n")[0][:200]
            at = "" if revision is None else f" at {revision}"
            raise DataError(
                f"the data set '{self.origin}' could not be loaded from the hub{at} ({type(exc).__name__}: {reason}). "
                "Give the examples as a file instead: --data FILE.jsonl; a grid takes --data-dir DIR with TASK.jsonl"
            ) from exc
        names = self._names(data.features)
        for row in data if self.shuffle_seed is None else data.shuffle(seed=self.shuffle_seed):
            found = self._row(row, names)
            if not self.only_labels or found["label"] in self.labels.values():
                yield found

    def _loaded(self, datasets: Any, revision: str | None) -> Any:
        if self.file is None:
            return datasets.load_dataset(self.path, self.config, split=self.split, revision=revision)
        hub = require("huggingface_hub", install="huggingface_hub", purpose="to read a file of the hub")
        local = Path(hub.hf_hub_download(self.path, self.file, repo_type="dataset", revision=revision))
        if local.suffix != ".json":
            return datasets.load_dataset(local.suffix[1:], data_files=str(local), split="train")
        text = local.read_text(encoding="utf-8")  # an array, or an object per line; only our columns have one type
        found = json.loads(text) if text.lstrip()[:1] == "[" else _jsonl_rows(text.split("\n"), self.origin)
        return datasets.Dataset.from_list(
            [{theirs: row.get(theirs) for theirs in self.fields.values()} for row in found]
        )

    def _names(self, features: Mapping[str, Any]) -> Sequence[str]:
        """Return the data set's own names of its labels, none where it has none; raise if it lacks one of ours."""
        names = getattr(features.get(self.fields.get("label", "label")), "names", None) or []
        missing = [label for label in self.labels if isinstance(label, str) and names and label not in names]
        if missing:
            raise DataError(
                f"the data set '{self.origin}' has no label '{missing[0]}'; it has {', '.join(map(str, names))}."
            )
        return names

    def _row(self, row: Row, names: Sequence[str]) -> dict[str, Any]:
        needed = [*self.fields.values(), *([] if self.quotes is None else [self.quotes])]
        missing = [theirs for theirs in needed if theirs not in row]
        if missing:
            raise DataError(f"the data set '{self.origin}' has no column '{missing[0]}'; it has {', '.join(row)}.")
        named = {**row, **{ours: row[theirs] for ours, theirs in self.fields.items()}}
        label: Any = named.get("label")
        own = names[label] if isinstance(label, int) and 0 <= label < len(names) else label
        named["label"] = self.labels.get(own, self.labels.get(label, label))
        if self.quotes is not None:  # passages that are not in the text verbatim are skipped
            places = [(named["text"].find(quote), len(quote)) for quote in row[self.quotes] if quote]
            named["rationale"] = [[start, start + length] for start, length in places if start >= 0]
        return named


def _jsonl_rows(lines: Iterable[str], origin: str) -> Iterator[Row]:
    return (row for _, row in numbered_rows(lines, origin))


def numbered_rows(lines: Iterable[str], origin: str) -> Iterator[tuple[int, Row]]:
    """Yield line number and object of a JSON-lines file; raise `DataError` where a line is no JSON object."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line.rstrip())  # so that all of it is on line 1
        except (ValueError, RecursionError) as exc:
            raise DataError(
                f"{origin}, line {number}: not JSON ({why_no_json(exc)}); one object per line is expected."
            ) from exc
        if not isinstance(row, dict):
            raise DataError(
                f'{origin}, line {number}: a JSON object is expected, as {{"text": …}}, not {type(row).__name__}.'
            )
        yield number, row


def _renamed(rows: Iterable[Row], columns: Mapping[str, str], origin: str) -> Iterator[Row]:
    for index, row in enumerate(rows):
        for ours, theirs in columns.items():
            if theirs not in row and (index == 0 or ours not in OPTIONAL):
                raise DataError(f"{origin}, example {index}: no column '{theirs}' for {ours}; it has {', '.join(row)}.")
        yield {**row, **{ours: row[theirs] for ours, theirs in columns.items() if theirs in row}}


def _from_esnli(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield rows; those of the published e-SNLI files also as the task `esnli` reads them.

    Words are highlighted if at least half of the annotators marked them.
    """
    for row in rows:
        if not {"gold_label", "Sentence1", "Sentence2"} <= set(row):
            yield row
        elif row["gold_label"] != "-":  # no majority
            fields = {name: row[f"Sentence{number}"] for number, name in enumerate(("premise", "hypothesis"), 1)}
            marks = {f"highlights_{name}": _most_marked(row, f"Sentence{n}") for n, name in enumerate(fields, 1)}
            identity = {"id": row["pairID"]} if row.get("pairID") else {}
            yield {**row, **identity, "label": row["gold_label"], **fields, **marks}


def _most_marked(row: Row, sentence: str) -> list[int]:
    """Return the words that at least half of the annotators marked, by their places or by stars around them."""
    words, found = row[sentence].split(), list[set[int]]()
    for annotator in ("1", "2", "3"):
        places, marked = (row.get(f"{sentence}_{kind}_{annotator}") for kind in ("Highlighted", "marked"))
        if places:  # "3,4", or "{}" for none
            found.append({int(place) for place in re.findall(r"\d+", places)})
        elif marked:
            found.append({n for n, (is_, was) in enumerate(zip(marked.split(), words, strict=False)) if is_ != was})
    counts = Counter(place for places in found for place in places)
    return sorted(place for place, count in counts.items() if 2 * count >= len(found))


def _csv_rows(lines: Iterable[str], origin: str) -> Iterator[Row]:
    csv.field_size_limit(2**31 - 1)  # the default refuses texts over 131,072 characters
    try:
        for number, row in enumerate(csv.DictReader(lines, strict=True), start=2):
            if None in row or None in row.values():
                raise DataError(
                    f"{origin}, row {number}: the number of cells differs from the header's; quote cells with commas."
                )
            yield row
    except csv.Error as exc:
        raise DataError(f"{origin} is not readable as CSV: {exc}.") from exc


def example_of(row: Row, index: int, fields: Sequence[str], labels: Sequence[str], origin: str) -> Example:
    where = f"{origin}, example {index}"
    if not isinstance(row, Mapping):
        raise DataError(f"{where}: fields with names are expected, as {{'text': …}}, not {type(row).__name__}.")
    missing = [name for name in fields if row.get(name) is None]
    if missing:
        raise DataError(
            f"{where}: the prompt needs the field '{missing[0]}', and the example has "
            f"{', '.join(map(str, row)) or 'no field'}. Name its column with --columns {missing[0]}=COLUMN."
        )
    for name in fields:
        if not isinstance(row[name], str):
            raise DataError(f"{where}: the field '{name}' holds {type(row[name]).__name__}, and text is expected.")
    for name in (*fields, "id", "group"):
        if is_broken(str(row.get(name))):
            raise DataError(f"{where}: the field '{name}' holds half of a character (a lone surrogate); fix the text.")
    identity = row.get("id")
    return Example(
        id=str(index if identity is None else identity),
        fields={name: row[name] for name in fields},
        gold=_gold(row.get("label"), labels, where),
        group=None if row.get("group") is None else str(row["group"]),
        human=_human(fields, row, where),
    )


def with_groups(examples: Sequence[Example], *, explained: Sequence[str], group: str | None) -> list[Example]:
    """Return examples with the groups of those that share a text, unless the data have groups.

    Examples share a group if the field `group` is equal in them. Without one: if all explained fields are equal, or one
    of at least `SHORTEST_SHARED` characters; shorter ones (an aspect, a topic) may recur in texts that are independent.
    """
    if any(example.group is not None for example in examples):
        return list(examples)
    first: dict[object, int] = {}  # text -> first example that has it
    leader = list(range(len(examples)))  # an earlier example of the same group, or itself
    for place, example in enumerate(examples):
        fields = [(name, example.fields[name]) for name in ((group,) if group else explained)]
        for key in (tuple(fields), *(each for each in fields if len(each[1]) >= SHORTEST_SHARED)):
            one, other = sorted((_leader(leader, first.setdefault(key, place)), _leader(leader, place)))
            leader[other] = one
    found = [_leader(leader, place) for place in range(len(examples))]
    several = {place for place, count in Counter(found).items() if count > 1}
    return [
        replace(example, group=SAME_TEXT + examples[place].id) if place in several else example
        for example, place in zip(examples, found, strict=True)
    ]


def _leader(leader: Sequence[int], place: int) -> int:
    while leader[place] != place:
        place = leader[place]
    return place


def _gold(label: object, labels: Sequence[str], where: str) -> int | None:
    if label is None or not labels:
        return None
    if isinstance(label, str) and label in labels:
        return labels.index(label)
    folded = [name.casefold() for name in labels]
    if isinstance(label, str) and folded.count(label.strip().casefold()) == 1:
        return folded.index(label.strip().casefold())
    index = int(label) if isinstance(label, str) and label.isdecimal() and len(label) < _MOST_DIGITS else label
    if isinstance(index, numbers.Integral) and not isinstance(index, bool) and 0 <= int(index) < len(labels):
        return int(index)
    raise DataError(
        f"{where}: the label {label!r} is none of {', '.join(labels)}, nor an index below {len(labels)}; see --labels."
    )


def _human(fields: Sequence[str], row: Row, where: str) -> tuple[Span, ...]:
    """Return the human rationale: characters of `rationale`, or the words of a field F that `highlights_F` counts."""
    # `rationale` is `[[start, end], …]` in the first field or `[[field, start, end], …]`. Highlights are indices of
    # words between spaces, from 0; they are read where there is no rationale.
    spans = row.get("rationale")
    if not isinstance(spans, list | tuple):
        return tuple(span for name in fields for span in _highlighted(name, row, where))
    found = []
    for given in spans:
        span = _span(given, fields)
        if span is None or span.field not in fields or not 0 <= span.start < span.end <= len(row[span.field]):
            field = fields[0] if span is None else span.field
            raise DataError(
                f"{where}: the rationale span {given!r} does not lie in the text of '{field}'; [start, end] in the "
                "prompt's first field is expected, or [field, start, end]."
            )
        found.append(span)
    return tuple(found)


def _highlighted(name: str, row: Row, where: str) -> list[Span]:
    """Return the words of a field that people marked, by their indices."""
    places = row.get(f"highlights_{name}")
    if not isinstance(places, list | tuple):
        return []
    words = [match.span() for match in re.finditer(r"\S+", row[name])]
    for place in places:
        if type(place) is not int or not 0 <= place < len(words):
            raise DataError(
                f"{where}: 'highlights_{name}' holds {place!r}, and the place of one of the {len(words)} words of "
                f"'{name}' is expected, counted from 0."
            )
    return [Span(name, *words[place]) for place in places]


def _span(given: object, fields: Sequence[str]) -> Span | None:
    if not isinstance(given, list | tuple) or len(given) not in {2, 3}:
        return None
    name, start, end = given if len(given) == 3 else (fields[0], *given)
    return Span(name, start, end) if type(start) is int and type(end) is int else None
