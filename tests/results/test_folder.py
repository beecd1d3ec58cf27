import json
import math
import os
import signal
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ice_eval._files import DRAFT, write_atomically, write_json
from ice_eval.errors import ConfigError
from ice_eval.records import Span
from ice_eval.results import SCHEMA, InputRow, LedgerRow, RowKey, RunFolder


@pytest.fixture
def folder(tmp_path):
    made = RunFolder(tmp_path / "run")
    with made.opened():
        return made


def full_row(example_id="e0", scores=(-0.1, -2.0), text="a film"):
    return LedgerRow(RowKey(example_id, "full"), (0, 1), (5, 6), (0, 0), scores, text)


def random_row(index, example_id="e0"):
    key = RowKey(example_id, "random", "infill", "sufficiency", 1, index, 0)
    return LedgerRow(key, (1,), (7, 8), (0, 1), (-0.5, -1.0), "x")


def files_of(path):
    return {p.relative_to(path): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}


def test_inputs_come_back_as_they_were_written(folder):
    rows = [
        InputRow(
            example_id="ø/1\n“2”",
            fields={"premise": "Ein Mädchen 👩‍🚀 läuft.\r\n", "hypothesis": "少女は\u2028走る。"},
            spans=(Span("premise", 0, 3), Span("hypothesis", 1, 2)),
            gold=2,
            target=0,
            group="g 7",
            human=(Span("hypothesis", 0, 4),),
            truncated=True,
            attributions={"mine": (0.1 + 0.2, -1e-300), "β": (5e-324, 1.7976931348623157e308)},
        ),
        InputRow(example_id="", fields={"text": ""}, skip_reason="the text has no unit"),
        InputRow(example_id="e2", fields={"text": "a b"}, spans=(Span("text", 0, 1), Span("text", 2, 3)), target=1),
    ]
    folder.write_part(0, rows, [], {})
    assert folder.inputs(0) == rows


def test_ledger_rows_come_back_as_they_were_written(folder):
    rows = [
        full_row(text=None),
        LedgerRow(RowKey("e1", "empty"), (), (), (), (-1e-17, -745.1, -0.0), ""),
        LedgerRow(
            RowKey("é", "rationale:β", "delete", "necessity", 3, None, 2), (0, 4), (2**31 - 1,), (0,), (-1.0,), "ß"
        ),
        random_row(50),
    ]
    folder.write_part(0, [], rows, {})
    assert folder.ledger(0, inputs=True) == rows


def test_scores_and_attributions_that_are_not_finite_are_kept(folder):
    example = InputRow("e0", {"text": "a b"}, attributions={"mine": (math.nan, -math.inf)})
    folder.write_part(0, [example], [full_row(scores=(math.nan, -math.inf))], {})
    [row], [read] = folder.ledger(0), folder.inputs(0)
    assert math.isnan(row.scores[0]) and row.scores[1] == -math.inf
    assert math.isnan(read.attributions["mine"][0]) and read.attributions["mine"][1] == -math.inf


def test_what_the_model_saw_is_read_only_when_asked_for(folder):
    folder.write_part(0, [], [full_row()], {})
    assert folder.ledger(0) == [full_row()._replace(input_ids=(), segment_ids=(), text=None)]
    assert folder.ledger(0, inputs=True) == [full_row()]


def test_an_id_beyond_the_column_is_refused_rather_than_wrapped(folder):
    with pytest.raises((pa.ArrowInvalid, OverflowError)):
        folder.write_part(0, [], [full_row()._replace(input_ids=(2**63,))], {})
    assert folder.parts() == [] and folder.ledger(0) == []


def test_the_files_of_a_part_are_read_as_one(folder):
    example = InputRow("e0", {"text": "a b"}, target=1, attributions={"first": (1.0, 2.0)})
    other = InputRow("e1", {"text": "c d"}, target=0, attributions={"first": (3.0, 4.0)})
    folder.write_part(3, [example, other], [full_row(), random_row(0)], {})
    added = InputRow("e0", {"text": "a b"}, target=1, attributions={"second": (5.0, 6.0)})
    folder.write_part(3, [added], [random_row(1)], {})

    assert [p.name for p in sorted((folder.path / "ledger").iterdir())] == [
        "part-000003-000.parquet",
        "part-000003-001.parquet",
    ]
    assert [row.key for row in folder.ledger(3)] == [full_row().key, random_row(0).key, random_row(1).key]
    first, second = folder.inputs(3)
    assert first.attributions == {"first": (1.0, 2.0), "second": (5.0, 6.0)}
    assert second == other


def test_parts_are_counted_by_number_and_other_files_are_none(folder):
    for index in (11, 2, 0):
        folder.write_part(index, [], [], {})
    (folder.path / "inputs" / "notes.parquet").write_bytes(b"")
    assert folder.parts() == [0, 2, 11]


def test_a_part_that_was_never_written_is_empty(folder):
    assert folder.parts() == [] and folder.inputs(4) == [] and folder.ledger(4) == []


def test_a_folder_name_that_looks_like_a_partition_changes_nothing(tmp_path):
    folder = RunFolder(tmp_path / "k=0.2" / "example_id=7")
    with folder.opened():
        folder.write_part(0, [InputRow("e0", {"text": "a"})], [full_row()], {})
    assert folder.inputs(0) == [InputRow("e0", {"text": "a"})]
    assert folder.ledger(0, inputs=True) == [full_row()]


def test_costs_are_kept_with_their_files_in_the_order_of_parts(folder):
    folder.write_part(1, [], [], {"rows": 3, "rows_by_kind": {"rationale:é": 3}})
    folder.write_part(0, [], [], {"rows": 1})
    folder.write_part(0, [], [], {"rows": 2, "attribution_seconds": {"mine": 0.25}})
    assert folder.costs() == [
        {"rows": 1},
        {"rows": 2, "attribution_seconds": {"mine": 0.25}},
        {"rows": 3, "rows_by_kind": {"rationale:é": 3}},
    ]


def test_drafts_of_a_killed_run_are_cleaned_up_and_nothing_else(folder):
    folder.write_part(0, [], [full_row()], {})
    before = files_of(folder.path)
    for name in ("", "inputs", "ledger"):
        (folder.path / name / f"{DRAFT}abc").write_bytes(b"half of it")
    with RunFolder(folder.path).opened():
        assert files_of(folder.path) == before


HOLDER = """
import sys, time
from pathlib import Path
from ice_eval.results import RunFolder
with RunFolder(Path(sys.argv[1])).opened():
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(os.name != "posix", reason="locks are POSIX locks")
def test_a_second_process_is_refused_until_the_first_is_gone(folder):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, folder.path], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "held\n"
        draft = folder.path / "ledger" / f"{DRAFT}abc"
        draft.write_bytes(b"the first process is writing this")
        with pytest.raises(ConfigError, match=r"another process is writing to .*run; wait for it or use another --out"):
            with folder.opened():
                pytest.fail("two processes hold the folder")
        assert draft.exists()
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        holder.stdout.close()
    with folder.opened():
        assert not draft.exists()


def test_a_writer_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "summary.json"
    path.write_text("old")
    with pytest.raises(RuntimeError, match="half way"), write_atomically(path) as stream:
        stream.write(b"new")
        raise RuntimeError("half way")
    assert files_of(tmp_path) == {path.relative_to(tmp_path): b"old"}


def test_a_first_writer_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError, match="half way"), write_atomically(tmp_path / "new") as stream:
        stream.write(b"new")
        raise RuntimeError("half way")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_not_there_under_its_name_before_it_is_whole(tmp_path):
    path = tmp_path / "part"
    with write_atomically(path) as stream:
        stream.write(b"whole")
        stream.flush()
        assert not path.exists()
    assert path.read_bytes() == b"whole"


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX modes")
def test_written_files_can_be_read_by_others(tmp_path):
    with write_atomically(tmp_path / "part") as stream:
        stream.write(b"x")
    assert (tmp_path / "part").stat().st_mode & 0o777 == 0o644


def test_json_with_nan_is_refused_and_the_old_file_stays(tmp_path):
    path = tmp_path / "summary.json"
    write_json(path, {"win_rate": None, "word": "ü"})
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(path, {"win_rate": math.nan})
    assert files_of(tmp_path) == {path.relative_to(tmp_path): b'{\n  "win_rate": null,\n  "word": "\xc3\xbc"\n}\n'}


def test_a_folder_without_a_manifest_holds_no_run(tmp_path):
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(ConfigError, match="holds no run"):
            RunFolder.existing(path)


@pytest.mark.parametrize("content", [b"", b'{"schema": 1, "sta', b"[]", b"null", b'{"schema": "\xff"}'])
def test_a_damaged_manifest_is_named(folder, content):
    (folder.path / "manifest.json").write_bytes(content)
    with pytest.raises(ConfigError, match=r"manifest\.json is damaged"):
        RunFolder.existing(folder.path)


@pytest.mark.parametrize("schema", [SCHEMA + 1, None, "1"])
def test_another_format_is_refused(folder, schema):
    (folder.path / "manifest.json").write_text(json.dumps({"schema": schema}))
    with pytest.raises(ConfigError, match=rf"is in format {schema}, and this version reads format {SCHEMA}"):
        RunFolder.existing(folder.path)


def test_a_manifest_carries_the_format_and_comes_back(folder):
    content = {"status": "running", "config": {}, "identity": {}, "labels": ["négatif"]}
    folder.write_manifest(content)
    assert RunFolder.existing(folder.path).manifest() == {"schema": SCHEMA, **content}


@pytest.mark.parametrize("name", ["status", "config", "identity"])
def test_a_manifest_without_its_parts_is_damaged(folder, name):
    folder.write_manifest({key: {} for key in ("status", "config", "identity") if key != name})
    with pytest.raises(ConfigError, match=rf"manifest\.json is damaged: it has no {name}"):
        RunFolder.existing(folder.path)


def test_results_of_an_unfinished_run_are_refused(folder):
    folder.write_manifest({"status": "running"})
    with pytest.raises(ConfigError, match="holds an unfinished run; run the same command again"):
        folder.summary()
    with pytest.raises(ConfigError, match="holds an unfinished run"):
        list(folder.examples())


def test_a_damaged_summary_is_named(folder):
    folder.write_manifest({"status": "complete"})
    (folder.path / "summary.json").write_text('{"schema": 1, "conf')
    with pytest.raises(ConfigError, match=r"summary\.json is damaged: .*\. `ice rescore .*` writes it again"):
        folder.summary()


@pytest.mark.parametrize("kind", ["inputs", "ledger"])
def test_a_damaged_part_is_named(folder, kind):
    folder.write_part(0, [InputRow("e0", {"text": "a b"})], [full_row()], {})
    path = folder.path / kind / "part-000000-000.parquet"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ConfigError, match=rf"{kind}.part-000000-000\.parquet is damaged"):
        getattr(folder, kind)(0)


def test_ledger_columns_are_those_of_the_contract(folder):
    folder.write_part(0, [], [full_row()], {})
    names = pq.read_schema(folder.path / "ledger" / "part-000000-000.parquet").names
    contract = "example_id operator size kind direction set_index draw kept input_ids segment_ids scores"
    assert names[: len(contract.split())] == contract.split()
