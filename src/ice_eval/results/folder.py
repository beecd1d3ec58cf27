"""A run folder on disk: parts are written whole, a kill loses at most the part in flight."""

import contextlib
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
from ice_eval.errors import ConfigError
from ice_eval.records import Answer, Span
from ice_eval.results.schema import INPUTS, LEDGER, PROBE, SCHEMA, InputRow, LedgerRow, RowKey

_PART = re.compile(r"part-(\d{6})-(\d{3})\.parquet")
_COST = b"ice_cost"
_NO_PROBES = ~pc.starts_with(pc.field("kind"), PROBE)


class RunFolder:
    """`manifest.json`, `inputs/`, `ledger/`, `examples.jsonl`, `summary.json`.

    A part is 16 consecutive examples. What a later command adds to a part (another attribution, say) becomes a further
    file of it: `part-000003-000.parquet`, `part-000003-001.parquet`. Readers see their union.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.keeps: object = None
        """What must live as long as the folder is looked into."""

    @classmethod
    def existing(cls, path: Path) -> "RunFolder":
        """A folder that holds a run.

        Raises:
            ConfigError: It does not, or in a format of another version.
        """
        if not (path / "manifest.json").is_file():
            raise ConfigError(f"{path} holds no run (no manifest.json there).")
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
            for name in ("inputs", "ledger"):
                (self.path / name).mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise ConfigError(f"the folder {self.path} cannot be made: {exc.strerror}; choose another --out.") from exc
        with alone(self.path):
            for draft in self.path.rglob(f"{DRAFT}*"):
                draft.unlink(missing_ok=True)
            yield

    def manifest(self) -> dict[str, Any]:
        return read_json(self.path / "manifest.json")

    def write_manifest(self, content: Mapping[str, Any]) -> None:
        write_json(self.path / "manifest.json", {"schema": SCHEMA, **content})

    def write_part(
        self, index: int, inputs: Sequence[InputRow], ledger: Sequence[LedgerRow], cost: Mapping[str, Any]
    ) -> None:
        """Add to a part; `cost` (rows, forwards, tokens, seconds) is kept with it, so that sums survive a kill."""
        # Inputs last: an attribution counts as there only when its rows are.
        for name, table in (("ledger", _ledger_table(ledger)), ("inputs", _inputs_table(inputs))):
            if name == "ledger":
                table = table.replace_schema_metadata({_COST: json.dumps(cost).encode()})
            number = 1 + max((int(path.stem[-3:]) for path in self._files(name, index)), default=-1)
            with write_atomically(self.path / name / f"part-{index:06d}-{number:03d}.parquet") as stream:
                pq.write_table(table, stream, compression="zstd")

    def clear_parts(self) -> None:
        """Remove all parts, of a run that builds them anew from what it keeps beside them."""
        for name in ("inputs", "ledger"):  # a part is there when its inputs are
            for path in (self.path / name).glob("part-*.parquet"):
                path.unlink()

    def parts(self) -> list[int]:
        """Indices of the parts that have been written."""
        return sorted(
            {
                int(match[1])
                for path in (self.path / "inputs").glob("*.parquet")
                if (match := _PART.fullmatch(path.name))
            }
        )

    def inputs(self, index: int) -> list[InputRow]:
        """The examples of a part, with all attributions that were ever added."""
        found: dict[str, InputRow] = {}
        for path in self._files("inputs", index):
            for record in _read_parquet(path):
                row = _input_row(record)
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
            rows += [_ledger_row(record) for record in _read_parquet(path, columns, wanted)]
        return rows

    def costs(self) -> list[dict[str, Any]]:
        """What every part file cost, in the order of parts."""
        paths = sorted((self.path / "ledger").glob("part-*.parquet"))
        return [json.loads(pq.read_schema(path).metadata[_COST]) for path in paths]

    def require_complete(self) -> None:
        """Refuse a run that is not finished.

        Raises:
            ConfigError: It is not: it was interrupted, or something is being added to it.
        """
        if self.manifest().get("status") != "complete":
            raise ConfigError(f"{self.path} holds an unfinished run; run the same command again to finish it.")

    def summary(self) -> dict[str, Any]:
        self.require_complete()
        return read_json(self.path / "summary.json")

    def examples(self) -> Iterator[dict[str, Any]]:
        """The lines of `examples.jsonl`."""
        self.require_complete()
        with (self.path / "examples.jsonl").open(encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)

    def _files(self, name: str, index: int) -> list[Path]:
        return sorted((self.path / name).glob(f"part-{index:06d}-*.parquet"))


def _read_parquet(path: Path, columns: list[str] | None = None, rows: Any = None) -> list[dict[str, Any]]:
    try:
        records: list[dict[str, Any]] = pq.read_table(path, columns=columns, filters=rows).to_pylist()
    except (pa.ArrowException, OSError) as exc:
        raise ConfigError(f"{path} is damaged: {exc}. Remove it and run the same command again.") from exc
    return records


def _ledger_table(rows: Sequence[LedgerRow]) -> pa.Table:
    records = [{**row.key._asdict(), **{name: getattr(row, name) for name in LedgerRow._fields[1:]}} for row in rows]
    return pa.Table.from_pylist(records, schema=LEDGER)


def _ledger_row(record: Mapping[str, Any]) -> LedgerRow:
    return LedgerRow(
        key=RowKey(**{name: record[name] for name in RowKey._fields}),
        kept=tuple(record["kept"]),
        input_ids=tuple(record.get("input_ids") or ()),
        segment_ids=tuple(record.get("segment_ids") or ()),
        scores=tuple(record["scores"]),
        text=record.get("text"),
    )


def _inputs_table(rows: Sequence[InputRow]) -> pa.Table:
    records = [
        {
            **{name: getattr(row, name) for name in INPUTS.names},
            "fields": list(row.fields.items()),
            "spans": [span._asdict() for span in row.spans],
            "human": [span._asdict() for span in row.human],
            "attributions": list(row.attributions.items()),
            "answers": [(name, answer._asdict()) for name, answer in row.answers.items()],
        }
        for row in rows
    ]
    return pa.Table.from_pylist(records, schema=INPUTS)


def _input_row(record: dict[str, Any]) -> InputRow:
    spans = {name: tuple(Span(**span) for span in record[name]) for name in ("spans", "human")}
    vectors = {name: tuple(values) for name, values in record["attributions"]}
    # Folders of earlier versions know of no answers.
    answers = {name: Answer(**answer) for name, answer in record.get("answers") or ()}
    return InputRow(
        **{**record, **spans, "fields": dict(record["fields"]), "attributions": vectors, "answers": answers}
    )
