"""A run folder on disk: parts are written whole, a kill loses at most the part in flight."""

import contextlib
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ice_eval.errors import ConfigError, DamagedPartError
from ice_eval.files import DRAFT, exclusive, write_atomically
from ice_eval.records import Kind
from ice_eval.results.checksums import Checksums, checksum
from ice_eval.results.columns import Outcomes
from ice_eval.results.examples import INPUTS, Examples, InputRow, input_rows, inputs_table
from ice_eval.results.json_files import read_record, write_record
from ice_eval.results.ledger import LEDGER, Ledger, Names, columns_to_read
from ice_eval.results.outcomes import OUTCOMES, outcome_lines, outcome_table
from ice_eval.results.records import Configuration, ExampleOutcome, Manifest, Summary

_PART = re.compile(r"part-(\d{6})-(\d{3})\.parquet")
_KINDS = ("ledger", "inputs")
"""Folders of part files, in the order of writing: an attribution counts as there only when its rows are."""
_COST = b"ice_cost"
OUTCOME_FILE = "examples.parquet"
_LINES_AT_ONCE = 1024
"""Outcomes that are made records together: a record takes some kilobytes."""


class RunFolder:
    """`manifest.json`, `inputs/`, `ledger/`, `parts.sha256`, `examples.parquet`, `summary.json`.

    A part is some consecutive examples (`part_size` of the manifest). What a later command adds to a part (another
    attribution, say) becomes a further file of it: `part-000003-000.parquet`, `part-000003-001.parquet`. Readers see
    their union, and compare every file that they read with its checksum.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._checksums = Checksums(path)
        self.keeps: object = None
        """What must live as long as the folder is looked into."""

    @classmethod
    def existing(cls, path: Path) -> "RunFolder":
        """Return a folder that holds a run.

        Raises:
            ConfigError: The folder holds none, or one in the format of another version, or its manifest is damaged.
        """
        if not (path / "manifest.json").is_file():
            inside = sorted(found.parent.name for found in path.glob("*/manifest.json"))
            hint = f"; a folder in it does: {path / inside[0]}" if inside else ""
            raise ConfigError(f"{path} holds no run (no manifest.json there){hint}.")
        folder = cls(path)
        folder.manifest()
        return folder

    @property
    def is_new(self) -> bool:
        return not (self.path / "manifest.json").exists()

    @property
    def is_foreign(self) -> bool:
        """Whether the path holds what no run left there; a run that was killed at once leaves next to nothing."""
        if not self.path.is_dir():
            return self.path.exists()
        ours = {"inputs", "ledger", ".lock"}
        return self.is_new and any(
            path.suffix == ".parquet" or (path.parent == self.path and path.name not in ours)
            for path in self.path.rglob("*")
            if not path.name.startswith(DRAFT)
        )

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Make the folder, keep other processes out, and remove what a killed one left half-written."""
        try:
            for name in _KINDS:
                (self.path / name).mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise ConfigError(f"the folder {self.path} cannot be made: {exc.strerror}; choose another --out.") from exc
        with exclusive(self.path):
            for draft in self.path.rglob(f"{DRAFT}*"):
                draft.unlink(missing_ok=True)
            self._checksums.adopt([self._name(path) for path in self._written() if path.exists()])
            yield

    def manifest(self) -> Manifest:
        return read_record(self.path / "manifest.json", Manifest)

    def write_manifest(self, manifest: Manifest) -> None:
        write_record(self.path / "manifest.json", manifest)

    def write_part(self, index: int, inputs: Sequence[InputRow], ledger: Ledger, cost: Mapping[str, Any]) -> None:
        """Add to a part; `cost` (rows, forwards, tokens, seconds) is kept with it, so that sums survive a kill."""
        rows = ledger.table().replace_schema_metadata({_COST: json.dumps(cost).encode()})
        written = {}
        for kind, table in zip(_KINDS, (rows, inputs_table(inputs)), strict=True):
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink, **_layout(table.schema))
            content = sink.getvalue().to_pybytes()
            path = self._file(kind, index, len(self._files(kind, index)))
            with write_atomically(path) as stream:
                stream.write(content)
            written[self._name(path)] = checksum(content)
        self._checksums.add(written)

    def discard(self, index: int) -> None:
        """Remove all files of a part, as if it had never been scored."""
        names = [self._name(path) for kind in _KINDS for path in self._files(kind, index)]
        for name in names:
            (self.path / name).unlink(missing_ok=True)
        self._checksums.drop(names)

    def damage(self) -> list[DamagedPartError]:
        """What is wrong with part files, one error for each that is lost, cut off or changed."""
        found = []
        for path in sorted(self._written()):
            try:
                with _reading(path):
                    pq.read_metadata(pa.BufferReader(self._content(path)))
            except DamagedPartError as exc:
                found.append(exc)
        return found

    def clear_parts(self) -> None:
        """Remove all parts, of a run that builds them anew from what it keeps beside them."""
        for index in {_part_of(path) for path in self._written()}:
            self.discard(index)

    def parts(self) -> list[int]:
        """Indices of the parts that have been written."""
        return sorted({_part_of(path) for path in self._written() if path.parent.name == "inputs"})

    def inputs(self, index: int) -> list[InputRow]:
        """Return the examples of a part, with all attributions that were ever added."""
        return input_rows([self._table(path) for path in self._files("inputs", index)])

    def columns(self, index: int) -> Examples:
        """Return the examples of a part, column by column."""
        return Examples.read([self._table(path) for path in self._files("inputs", index)])

    def ledger(
        self,
        index: int,
        names: Names,
        *,
        kept: bool = True,
        inputs: bool = False,
        kinds: Sequence[Kind] | None = None,
    ) -> Ledger:
        """Return the rows of a part, or those of some kinds.

        Args:
            index: The part.
            names: What codes stand for; see `Ledger.read`.
            kept: Whether the units that rows keep are read.
            inputs: Whether what the model saw is read.
            kinds: Kinds of rows; None: all.
        """
        columns, found = columns_to_read(kept=kept or inputs, inputs=inputs), list[Ledger]()
        for path in self._files("ledger", index):
            ledger = Ledger.read(self._table(path, columns), names)
            names = ledger.names
            found.append(ledger if kinds is None else ledger.take(np.flatnonzero(np.isin(ledger.head["kind"], kinds))))
        return found[0] if len(found) == 1 else Ledger.join(found, names)

    def costs(self, *, sound_only: bool = False) -> list[dict[str, Any]]:
        """What every part file cost, in the order of parts; `sound_only` passes over files that are damaged."""
        found = []
        for path in sorted((self.path / "ledger").glob("part-*.parquet")):
            try:
                with _reading(path):
                    metadata = pq.read_schema(pa.BufferReader(self._content(path))).metadata or {}
                if _COST not in metadata:
                    raise _damaged(path, "it does not say what it cost")
                found.append(json.loads(metadata[_COST]))
            except DamagedPartError:
                if not sound_only:
                    raise
        return found

    def require_complete(self) -> None:
        """Refuse a run that is not finished.

        Raises:
            ConfigError: It is not: it was interrupted, or something is being added to it.
        """
        if self.manifest().status != "complete":
            raise ConfigError(f"{self.path} holds an unfinished run; run the same command again to finish it.")

    def summary(self) -> Summary:
        self.require_complete()
        try:
            return read_record(self.path / "summary.json", Summary)
        except ConfigError as exc:
            raise ConfigError(f"{exc} `ice rescore {self.path}` writes it again.") from exc

    @contextlib.contextmanager
    def writing_outcomes(self) -> Iterator[Callable[[Mapping[Configuration, Outcomes]], None]]:
        """Write `examples.parquet` anew; what is yielded adds the outcomes of some examples."""
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
            # Arrow takes no path that is not text; Python opens any.
            with path.open("rb") as stream, pq.ParquetFile(stream) as file:
                for batch in file.iter_batches(batch_size=_LINES_AT_ONCE):
                    table = pa.Table.from_batches([batch]).select(OUTCOMES.names)
                    yield from outcome_lines(table if table.schema.equals(OUTCOMES) else table.cast(OUTCOMES))
        except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as exc:
            raise ConfigError(f"{path} is damaged: {exc}. `ice rescore {self.path}` writes it again.") from exc

    def _written(self) -> set[Path]:
        """All part files, those that were lost included."""
        there = (path for kind in _KINDS for path in (self.path / kind).glob("part-*.parquet"))
        noted = (self.path / name for name in self._checksums.names())
        return {path for path in (*there, *noted) if _PART.fullmatch(path.name)}

    def _files(self, kind: str, index: int) -> list[Path]:
        """The files of a part, those that were lost included; their numbers have no gaps."""
        numbers = itertools.takewhile(
            lambda number: self._was_written(self._file(kind, index, number)), itertools.count()
        )
        return [self._file(kind, index, number) for number in numbers]

    def _was_written(self, path: Path) -> bool:
        return self._name(path) in self._checksums or path.exists()

    def _file(self, kind: str, index: int, number: int) -> Path:
        return self.path / kind / f"part-{index:06d}-{number:03d}.parquet"

    def _name(self, path: Path) -> str:
        """The path within the folder, the same on every system."""
        return f"{path.parent.name}/{path.name}"

    def _table(self, path: Path, columns: list[str] | None = None) -> pa.Table:
        known = LEDGER if path.parent.name == "ledger" else INPUTS
        with _reading(path):
            table = pq.ParquetFile(pa.BufferReader(self._content(path))).read(columns=columns, use_threads=False)
            missing = [name for name in columns or known.names if name not in table.column_names]
            if missing:
                raise _damaged(path, f"it has no column {missing[0]}")
            own = pa.schema([known.field(name) for name in table.column_names])
            return table if table.schema.equals(own) else table.cast(own)

    def _content(self, path: Path) -> bytes:
        """The bytes of a part file.

        Raises:
            DamagedPartError: They are not those that were written.
        """
        try:
            content = path.read_bytes()
        except FileNotFoundError as exc:
            raise _damaged(path, "it is missing") from exc
        except OSError as exc:
            raise _damaged(path, str(exc.strerror)) from exc
        if not self._checksums.fits(self._name(path), content):
            raise _damaged(path, "its checksum is not the one it was written with")
        return content


def _layout(schema: pa.Schema) -> dict[str, Any]:
    """Return how parquet files are written: names by dictionary, numbers as they are, which is faster and no larger."""
    names = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    return {"compression": "zstd", "use_dictionary": names, "write_statistics": False}


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    """A file may have no checksum yet: what parquet cannot read is damaged too."""
    try:
        yield
    except (pa.ArrowException, OSError) as exc:
        raise _damaged(path, str(exc)) from exc


def _damaged(path: Path, why: str) -> DamagedPartError:
    return DamagedPartError(f"{path} is damaged: {why.rstrip('.')}", _part_of(path))


def _part_of(path: Path) -> int:
    """The part that a file belongs to."""
    match = _PART.fullmatch(path.name)
    assert match is not None, path
    return int(match[1])
