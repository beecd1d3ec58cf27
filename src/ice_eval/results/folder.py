"""A run folder on disk. Parts are written atomically, so a kill loses at most the current part."""

import contextlib
import hashlib
import itertools
import json
import mmap
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ice_eval.errors import ConfigError, DamagedPartError
from ice_eval.files import DRAFT, append, check_target, exclusive, write_atomically
from ice_eval.rationales import Share, Units
from ice_eval.records import Kind
from ice_eval.results.examples import INPUTS, Examples, InputRow, groups_among, input_rows, inputs_table
from ice_eval.results.json_files import read_record, write_record
from ice_eval.results.ledger import LEDGER, Ledger, Names
from ice_eval.results.outcomes import OUTCOMES, Outcomes, outcome_lines, outcome_table
from ice_eval.results.records import Configuration, ExampleOutcome, Manifest, RunSettings, Summary
from ice_eval.settings import check_stored
from ice_eval.stats import Groups

CHECKSUMS = "parts.sha256"
OUTCOME_FILE = "examples.parquet"
_PART = re.compile(r"part-(\d{6})-(\d{3})\.parquet")
_CHECKSUM_LINE = re.compile(rf"([0-9a-f]{{64}})  ((?:ledger|inputs)/{_PART.pattern})")
_KINDS = ("ledger", "inputs")
"""Folders of part files in the order of writing: an attribution is written only after its rows."""
_IDENTITY = ("weights", "dtype", "data", "chat", "system")
"""Fields of the identity that every run has, apart from those about chains."""
_COST = b"ice_cost"
_LINES_AT_ONCE = 1024
"""Outcomes converted to records together: a record takes some kilobytes."""
ANSWERS = "answers.jsonl"
"""Answers that a model wrote before the run, where the data had none."""


def checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Checksums:
    """`parts.sha256`: checksum and path of every part file, in the format of `sha256sum --check`.

    A line is added after its file is in place. A file without a line was written by a process that was killed just
    then; a line without a file means that the file was lost.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / CHECKSUMS
        self._known: dict[str, str] | None = None

    @property
    def known(self) -> dict[str, str]:
        """Path within the run folder -> checksum."""
        if self._known is None:
            content = self._path.read_bytes() if self._path.exists() else b""
            lines = content.decode("utf-8", errors="replace").splitlines()
            found = (_CHECKSUM_LINE.fullmatch(line) for line in lines)  # a line cut off by a kill is ignored
            self._known = {match[2]: match[1] for match in found if match}
        return self._known

    def fits(self, name: str, content: bytes) -> bool:
        """Return True if a file is unchanged; a file without a checksum is trusted."""
        found = checksum(content)
        if self.known.get(name, found) != found:
            self._known = None  # another process may have written the part again
        return self.known.get(name, found) == found

    def add(self, found: Mapping[str, str]) -> None:
        """Append checksums: path -> checksum."""
        if not found:
            return
        torn = b""  # a kill may have left the last line incomplete
        if self._path.exists() and self._path.stat().st_size:
            with self._path.open("rb") as stream:
                stream.seek(-1, os.SEEK_END)
                torn = b"" if stream.read() == b"\n" else b"\n"
        append(self._path, torn + _checksum_lines(found))
        self.known.update(found)

    def drop(self, names: Collection[str]) -> None:
        """Remove the lines of deleted files."""
        kept = {name: digest for name, digest in self.known.items() if name not in names}
        with write_atomically(self._path) as stream:
            stream.write(_checksum_lines(kept))
        self._known = kept


def _checksum_lines(found: Mapping[str, str]) -> bytes:
    return "".join(f"{digest}  {name}\n" for name, digest in found.items()).encode()


class RunFolder:
    """`manifest.json`, `inputs/`, `ledger/`, `parts.sha256`, `examples.parquet`, `summary.json`.

    A part is a range of consecutive examples (`part_size` of the manifest). A later command adds further files to it:
    `part-000003-000.parquet`, `part-000003-001.parquet`. Readers get their union and verify every checksum.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._checksums = Checksums(path)
        self.keeps: object = None
        """Owner of a temporary folder, kept alive as long as this object."""

    @classmethod
    def existing(cls, path: Path) -> "RunFolder":
        """Return a folder that holds a run of this format version, or raise ConfigError."""
        if not (path / "manifest.json").is_file():
            inside = sorted(found.parent.name for found in path.glob("*/manifest.json"))
            hint = f"Try {path / inside[0]}." if inside else "Give the folder that `ice run` printed."
            raise ConfigError(f"{path} is not a run folder: it has no manifest.json. {hint}")
        folder = cls(path)
        folder.manifest()
        return folder

    @property
    def is_new(self) -> bool:
        return not (self.path / "manifest.json").exists()

    @property
    def is_foreign(self) -> bool:
        """True if the path holds files that no run wrote; drafts of a killed run do not count."""
        if not self.path.is_dir():
            return self.path.exists()
        ours = {"inputs", "ledger", ".lock", ANSWERS, "responses.jsonl", ".responses.jsonl.lock"}
        return self.is_new and any(
            path.suffix == ".parquet" or (path.parent == self.path and path.name not in ours)
            for path in self.path.rglob("*")
            if not path.name.startswith(DRAFT)
        )

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Create and lock the folder, and delete unfinished files of killed processes."""
        try:
            for name in _KINDS:
                (self.path / name).mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise ConfigError(f"the folder {self.path} cannot be made: {exc.strerror}; choose another --out.") from exc
        with exclusive(self.path):
            for draft in self.path.rglob(f"{DRAFT}*"):
                if not draft.is_dir():  # a folder of that name is somebody else's
                    draft.unlink(missing_ok=True)
            unknown = [path for path in self._written() if path.exists() and _name(path) not in self._checksums.known]
            self._checksums.add({_name(path): checksum(path.read_bytes()) for path in unknown})
            yield

    def manifest(self) -> Manifest:
        """Return the manifest, or raise ConfigError if it is damaged."""
        path = self.path / "manifest.json"
        found = read_record(path, Manifest)
        try:
            check_stored(found.config)
        except ConfigError as exc:
            raise ConfigError(f"{path} is damaged: config: {exc}") from exc
        lost = [name for name in _IDENTITY if name not in found.identity]
        if lost and found.config.chain is None:
            raise ConfigError(f"{path} is damaged: it has no identity.{lost[0]}.")
        for name in ("part_size", "token_budget"):
            if (number := getattr(found, name)) is not None and number < 1:
                raise ConfigError(f"{path} is damaged: {name} is {number} (a number from 1 on is expected).")
        return found

    def write_manifest(self, manifest: Manifest) -> None:
        write_record(self.path / "manifest.json", manifest)

    def write_part(self, index: int, inputs: Sequence[InputRow], ledger: Ledger, cost: Mapping[str, Any]) -> None:
        """Add to a part; `cost` (rows, forwards, tokens, seconds) is stored in it, so that sums survive a kill."""
        rows = ledger.table().replace_schema_metadata({_COST: json.dumps(cost).encode()})
        written = {}
        for kind, table in zip(_KINDS, (rows, inputs_table(inputs)), strict=True):
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink, **_layout(table.schema))
            content = sink.getvalue().to_pybytes()
            path = self._file(kind, index, len(self._files(kind, index)))
            with write_atomically(path) as stream:
                stream.write(content)
            written[_name(path)] = checksum(content)
        self._checksums.add(written)

    def discard(self, index: int) -> None:
        """Delete all files of a part."""
        names = [_name(path) for kind in _KINDS for path in self._files(kind, index)]
        for name in names:
            (self.path / name).unlink(missing_ok=True)
        self._checksums.drop(names)

    def damage(self) -> list[DamagedPartError]:
        """Return an error for each part file that is lost, truncated or changed."""
        found = []
        for path in sorted(self._written()):
            try:
                with self._reading(path) as content:
                    pq.read_metadata(content)
            except DamagedPartError as exc:
                found.append(exc)
        return found

    def parts(self) -> list[int]:
        """Return the indices of all written parts."""
        return sorted({_part_of(path) for path in self._written() if path.parent.name == "inputs"})

    def inputs(self, index: int) -> list[InputRow]:
        """Return the examples of a part with all their attributions."""
        with self._decoding("inputs", index):
            return input_rows([self._table(path) for path in self._files("inputs", index)])

    def columns(self, index: int) -> Examples:
        """Return the examples of a part as columns."""
        with self._decoding("inputs", index):
            return Examples.read([self._table(path) for path in self._files("inputs", index)])

    def ledger(
        self, index: int, names: Names, *, kept: bool = True, inputs: bool = False, kinds: Sequence[Kind] | None = None
    ) -> Ledger:
        """Return the rows of a part, or those of some `kinds`; `names` as in `Ledger.read`.

        `kept` reads the units that rows keep, `inputs` the inputs of the model.
        """
        left_out = {*(() if kept or inputs else ("kept", "text")), *(() if inputs else ("input_ids", "segment_ids"))}
        columns, found = [name for name in LEDGER.names if name not in left_out], list[Ledger]()
        for path in self._files("ledger", index):
            with self._decoding("ledger", index):
                ledger = Ledger.read(self._table(path, columns), names)
            names = ledger.names
            found.append(ledger if kinds is None else ledger.take(np.flatnonzero(np.isin(ledger.head["kind"], kinds))))
        return found[0] if len(found) == 1 else Ledger.join(found, names)

    def costs(self, *, sound_only: bool = False) -> list[dict[str, Any]]:
        """Return the cost of every part file, in the order of parts; `sound_only` skips damaged files."""
        found = []
        for path in sorted((self.path / "ledger").glob("part-*.parquet")):
            try:
                with self._reading(path) as content:
                    metadata = pq.read_schema(content).metadata or {}
                    if _COST not in metadata:
                        raise _damaged(path, "it does not say what it cost")
                    found.append(dict(json.loads(metadata[_COST])))
            except DamagedPartError:
                if not sound_only:
                    raise
        return found

    def require_complete(self) -> None:
        """Raise ConfigError if the run is not finished."""
        if self.manifest().status != "complete":
            raise ConfigError(f"{self.path} holds an unfinished run; run the same command again to finish it.")

    def summary(self) -> Summary:
        self.require_complete()
        try:
            check_target(path := self.path / "summary.json")
            return read_record(path, Summary)
        except ConfigError as exc:
            raise ConfigError(f"{exc} `ice rescore {self.path}` writes it again.") from exc

    @contextlib.contextmanager
    def writing_outcomes(self) -> Iterator[Callable[[Mapping[Configuration, Outcomes]], None]]:
        """Rewrite `examples.parquet`; yield a function that adds the outcomes of some examples."""
        with (
            write_atomically(self.path / OUTCOME_FILE) as stream,
            pq.ParquetWriter(stream, OUTCOMES, **_layout(OUTCOMES)) as writer,
        ):
            yield lambda outcomes: writer.write_table(outcome_table(outcomes))

    def examples(self) -> Iterator[ExampleOutcome]:
        """Yield the outcomes of `examples.parquet`: every example under every configuration."""
        self.require_complete()
        path = self.path / OUTCOME_FILE
        try:
            check_target(path)
            # Arrow takes no path that is not text; Python opens any. From a file of Python, or in batches, Arrow reads
            # with threads of its own, which take the interpreter's lock and are still there when it ends.
            with path.open("rb") as stream:
                content = pa.BufferReader(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
            with pq.ParquetFile(content) as file:
                for group in range(file.num_row_groups):
                    found = file.read_row_group(group, columns=OUTCOMES.names, use_threads=False)
                    for batch in found.to_batches(max_chunksize=_LINES_AT_ONCE):
                        table = pa.Table.from_batches([batch])
                        yield from outcome_lines(table if table.schema.equals(OUTCOMES) else table.cast(OUTCOMES))
        except (ConfigError, pa.ArrowException, OSError, KeyError, TypeError, ValueError) as exc:
            said = str(exc) if isinstance(exc, ConfigError) else f"{path} is damaged: {exc}."
            raise ConfigError(f"{said} `ice rescore {self.path}` writes it again.") from exc

    def _written(self) -> set[Path]:
        """Return all part files, lost ones included."""
        existing = (path for kind in _KINDS for path in (self.path / kind).glob("part-*.parquet"))
        noted = (self.path / name for name in self._checksums.known)
        return {path for path in (*existing, *noted) if _PART.fullmatch(path.name)}

    def _files(self, kind: str, index: int) -> list[Path]:
        """Return the files of a part, lost ones included; their numbers have no gaps."""
        paths = (self._file(kind, index, number) for number in itertools.count())
        known = self._checksums.known
        return list(itertools.takewhile(lambda path: _name(path) in known or path.exists(), paths))

    def _file(self, kind: str, index: int, number: int) -> Path:
        return self.path / kind / f"part-{index:06d}-{number:03d}.parquet"

    def _table(self, path: Path, columns: list[str] | None = None) -> pa.Table:
        known = LEDGER if path.parent.name == "ledger" else INPUTS
        with self._reading(path) as content:
            table = pq.ParquetFile(content).read(columns=columns, use_threads=False)
            for name in columns or known.names:
                if (count := table.column_names.count(name)) != 1:
                    raise _damaged(path, f"it has {'several columns' if count else 'no column'} {name}")
            own = pa.schema([known.field(name) for name in table.column_names])
            return table if table.schema.equals(own) else table.cast(own)

    @contextlib.contextmanager
    def _decoding(self, kind: str, index: int) -> Iterator[None]:
        """Turn errors of values that cannot be into DamagedPartError."""
        try:
            yield
        except (pa.ArrowException, AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as exc:
            raise _damaged(self._file(kind, index, 0), f"its columns hold wrong values ({exc})") from exc

    @contextlib.contextmanager
    def _reading(self, path: Path) -> Iterator[pa.BufferReader]:
        """Open a part file, or raise DamagedPartError."""
        try:
            content = path.read_bytes()
            if not self._checksums.fits(_name(path), content):
                raise _damaged(path, "its checksum is not the one it was written with")
            yield pa.BufferReader(content)
        except FileNotFoundError as exc:
            raise _damaged(path, "it is missing") from exc
        except OSError as exc:
            raise _damaged(path, exc.strerror or str(exc)) from exc
        except (pa.ArrowException, KeyError, TypeError, ValueError) as exc:  # columns of other types and values
            raise _damaged(path, str(exc).partition("\n")[0]) from exc


@dataclass(frozen=True, kw_only=True)
class FinishedRun:
    """A finished run, of which every part is read once: its settings, its examples, and numbers of each."""

    folder: RunFolder

    @cached_property
    def manifest(self) -> Manifest:
        return self.folder.manifest()

    @property
    def config(self) -> RunSettings:
        return self.manifest.config

    @cached_property
    def all_inputs(self) -> dict[str, InputRow]:
        """The examples by id, skipped ones included."""
        self.folder.require_complete()
        return {row.example_id: row for part in self.folder.parts() for row in self.folder.inputs(part)}

    @cached_property
    def inputs(self) -> dict[str, InputRow]:
        """The examples by id that were not skipped."""
        return {name: row for name, row in self.all_inputs.items() if row.skip_reason is None}

    def outcomes(self) -> Iterator[ExampleOutcome]:
        """Yield the outcomes of evaluated examples, under every configuration."""
        return (line for line in self.folder.examples() if line.error is None)

    @cached_property
    def win_rates(self) -> dict[Configuration, dict[str, float]]:
        """Win rate of every example, by configuration."""
        found: dict[Configuration, dict[str, float]] = {}
        for line in self.outcomes():
            found.setdefault(line.configuration, {})[line.example_id] = line.win_rate
        return found

    @cached_property
    def rationales(self) -> dict[tuple[str, Share | None], dict[str, Units]]:
        """Rationale of every example, by attribution and k (None: size of its own)."""
        found: dict[tuple[str, Share | None], dict[str, Units]] = {}
        for line in self.outcomes():
            found.setdefault((line.attribution, line.k), {})[line.example_id] = line.rationale
        return found

    @cached_property
    def confidences(self) -> dict[str, float]:
        """Probability of the target label on the full text of every example."""
        return {line.example_id: line.score_full for line in self.outcomes()}

    def groups_of(self, ids: Collection[str]) -> Groups:
        """Return the group of each of some examples; None if no two share a group."""
        return groups_among(ids, [self.all_inputs[name].group for name in ids])


def _layout(schema: pa.Schema) -> dict[str, Any]:
    """Return parquet options: dictionaries for names only, since numbers are faster and no larger without."""
    names = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    return {"compression": "zstd", "use_dictionary": names, "write_statistics": False}


def _name(path: Path) -> str:
    """Return the path within the run folder, with forward slashes on every system."""
    return f"{path.parent.name}/{path.name}"


def _damaged(path: Path, why: str) -> DamagedPartError:
    return DamagedPartError(f"{path} is damaged: {why.rstrip('.')}", _part_of(path))


def _part_of(path: Path) -> int:
    match = _PART.fullmatch(path.name)
    assert match is not None, path
    return int(match[1])
