"""A run folder on disk: parts are written whole, a kill loses at most the part in flight."""

import contextlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ice_eval._files import DRAFT, alone, read_json, write_atomically, write_json
from ice_eval.errors import ConfigError, DamagedPartError
from ice_eval.results.checksums import Checksums, checksum
from ice_eval.results.schema import LEDGER, PROBE, SCHEMA, InputRow, LedgerRow
from ice_eval.results.tables import input_row, inputs_table, ledger_row, ledger_table

_PART = re.compile(r"part-(\d{6})-(\d{3})\.parquet")
_KINDS = ("ledger", "inputs")
"""Folders of part files, in the order of writing: an attribution counts as there only when its rows are."""
_COST = b"ice_cost"
_NO_PROBES = ~pc.starts_with(pc.field("kind"), PROBE)


class RunFolder:
    """`manifest.json`, `inputs/`, `ledger/`, `parts.sha256`, `examples.jsonl`, `summary.json`.

    A part is 16 consecutive examples. What a later command adds to a part (another attribution, say) becomes a further
    file of it: `part-000003-000.parquet`, `part-000003-001.parquet`. Readers see their union, and compare every file
    that they read with its checksum.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._checksums = Checksums(path)
        self.keeps: object = None
        """What must live as long as the folder is looked into."""

    @classmethod
    def existing(cls, path: Path) -> "RunFolder":
        """A folder that holds a run.

        Raises:
            ConfigError: It does not, or in a format of another version.
        """
        if not (path / "manifest.json").is_file():
            inside = sorted(found.parent.name for found in path.glob("*/manifest.json"))
            hint = f"; a folder in it does: {path / inside[0]}" if inside else ""
            raise ConfigError(f"{path} holds no run (no manifest.json there){hint}.")
        folder = cls(path)
        manifest = folder.manifest()
        schema = manifest.get("schema")
        if schema != SCHEMA:
            raise ConfigError(f"{path} is in format {schema}, and this version reads format {SCHEMA}.")
        missing = {"status", "config", "identity"} - set(manifest)
        if missing:
            raise ConfigError(f"{path / 'manifest.json'} is damaged: it has no {sorted(missing)[0]}.")
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
        with alone(self.path):
            for draft in self.path.rglob(f"{DRAFT}*"):
                draft.unlink(missing_ok=True)
            self._checksums.adopt([self._name(path) for path in self._written() if path.exists()])
            yield

    def manifest(self) -> dict[str, Any]:
        return read_json(self.path / "manifest.json")

    def write_manifest(self, content: Mapping[str, Any]) -> None:
        write_json(self.path / "manifest.json", {"schema": SCHEMA, **content})

    def write_part(
        self, index: int, inputs: Sequence[InputRow], ledger: Sequence[LedgerRow], cost: Mapping[str, Any]
    ) -> None:
        """Add to a part; `cost` (rows, forwards, tokens, seconds) is kept with it, so that sums survive a kill."""
        rows = ledger_table(ledger).replace_schema_metadata({_COST: json.dumps(cost).encode()})
        written = {}
        for kind, table in zip(_KINDS, (rows, inputs_table(inputs)), strict=True):
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink, compression="zstd")
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
        """The examples of a part, with all attributions that were ever added."""
        found: dict[str, InputRow] = {}
        for path in self._files("inputs", index):
            for record in self._records(path):
                row = input_row(record)
                before = found.get(row.example_id, row)
                found[row.example_id] = replace(
                    row,
                    attributions={**before.attributions, **row.attributions},
                    answers={**before.answers, **row.answers},
                )
        return list(found.values())

    def ledger(
        self,
        index: int,
        *,
        inputs: bool = False,
        texts: bool = False,
        probes: bool = True,
        kinds: Sequence[str] | None = None,
    ) -> list[LedgerRow]:
        """The rows of a part, or those of some kinds.

        What the model saw is read only if `inputs`, as text alone if `texts`; what attributions asked for only if
        `probes`.
        """
        wanted = None if probes else _NO_PROBES
        if kinds is not None:
            wanted = pc.field("kind").isin(list(kinds))
        left_out = set() if inputs else {"input_ids", "segment_ids"} if texts else {"input_ids", "segment_ids", "text"}
        columns = [column for column in LEDGER.names if column not in left_out]
        rows = []
        for path in self._files("ledger", index):
            rows += [ledger_row(record) for record in self._records(path, columns, wanted)]
        return rows

    def costs(self, *, sound_only: bool = False) -> list[dict[str, Any]]:
        """What every part file cost, in the order of parts; `sound_only` passes over files that are damaged."""
        found = []
        for path in sorted((self.path / "ledger").glob("part-*.parquet")):
            try:
                with _reading(path):
                    found.append(json.loads(pq.read_schema(pa.BufferReader(self._content(path))).metadata[_COST]))
            except DamagedPartError:
                if not sound_only:
                    raise
        return found

    def require_complete(self) -> None:
        """Refuse a run that is not finished.

        Raises:
            ConfigError: It is not: it was interrupted, or something is being added to it.
        """
        if self.manifest().get("status") != "complete":
            raise ConfigError(f"{self.path} holds an unfinished run; run the same command again to finish it.")

    def summary(self) -> dict[str, Any]:
        self.require_complete()
        try:
            return read_json(self.path / "summary.json")
        except ConfigError as exc:
            raise ConfigError(f"{exc} `ice rescore {self.path}` writes it again.") from exc

    def examples(self) -> Iterator[dict[str, Any]]:
        """The lines of `examples.jsonl`."""
        self.require_complete()
        path, number = self.path / "examples.jsonl", 0
        try:
            with path.open("rb") as lines:
                for line in lines:
                    number += 1
                    yield json.loads(line)
        except (ValueError, OSError) as exc:
            where = f"line {number} of {path}" if number else str(path)
            raise ConfigError(f"{where} is damaged: {exc}. `ice rescore {self.path}` writes it again.") from exc

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

    def _records(self, path: Path, columns: list[str] | None = None, rows: Any = None) -> list[dict[str, Any]]:
        with _reading(path):
            table = pq.read_table(pa.BufferReader(self._content(path)), columns=columns, filters=rows)
        records: list[dict[str, Any]] = table.to_pylist()
        return records

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


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Files of earlier versions have no checksum: what parquet cannot read is damaged too."""
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
