import json
import math
import os
import signal
import subprocess
import sys
from dataclasses import replace

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.made_records import IDENTITY, manifest
from tests.rows import ledger_of as ledger_with
from tests.small_runs import run, texts

from ice_eval.errors import ConfigError, DamagedPartError
from ice_eval.files import DRAFT, write_atomically, write_json
from ice_eval.records import Answer, Kind, Span
from ice_eval.results import SCHEMA, InputRow, LedgerRow, RowKey, RunFolder, rescore
from ice_eval.results.examples import FillTexts
from ice_eval.results.folder import OUTCOME_FILE
from ice_eval.results.json_files import as_json
from ice_eval.results.ledger import NO_NAMES, Ledger, Names


@pytest.fixture
def folder(tmp_path):
    made = RunFolder(tmp_path / "run")
    with made.opened():
        return made


def full_row(example_id="e0", scores=(-0.1, -2.0), text="a film"):
    return LedgerRow(RowKey(example_id, Kind.FULL), (0, 1), scores, (5, 6), (0, 0), text)


def random_row(index, example_id="e0"):
    key = RowKey(example_id, Kind.RANDOM, "infill", "sufficiency", 1, index, 0, null="size")
    return LedgerRow(key, (1,), (-0.5, -1.0), (7, 8), (0, 1), "x")


def ledger_of(rows):
    """A ledger of single rows, whose names come in the order in which rows use them."""
    known = [
        tuple(dict.fromkeys(value for row in rows if (value := getattr(row.key, name)) is not None))
        for name in ("example_id", "attribution", "null", "operator")
    ]
    return ledger_with(rows, Names(*known)) if rows else Ledger.empty(NO_NAMES)


def records(folder, part, **asked):
    return folder.ledger(part, NO_NAMES, **asked).records()


def write_part(folder, index, inputs, rows, cost):
    folder.write_part(index, inputs, ledger_of(rows), cost)


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
            n_cut=3,
            attributions={"mine": (0.1 + 0.2, -1e-300), "β": (5e-324, 1.7976931348623157e308)},
        ),
        InputRow(example_id="", fields={"text": ""}, skip_reason="the text has no unit"),
        InputRow(example_id="e2", fields={"text": "a b"}, spans=(Span("text", 0, 1), Span("text", 2, 3)), target=1),
    ]
    write_part(folder, 0, rows, [], {})
    assert folder.inputs(0) == rows


def test_answers_and_fills_come_back_as_they_were_written(folder):
    rows = [
        InputRow(
            "e0",
            {"text": "a b"},
            spans=(Span("text", 0, 1), Span("text", 2, 3)),
            attributions={"said": (1.0, 0.0)},
            answers={"said": Answer("«a»", 7, 1, 2, None), "mute": Answer(None, 0, problem="it said nothing")},
            fills=(FillTexts("infill", 0, (" x", "")), FillTexts("infill", 1, ("\n", "ß"))),
        ),
        InputRow("e1", {"text": "c"}),
    ]
    write_part(folder, 0, rows, [], {})
    assert folder.inputs(0) == rows


def test_ledger_rows_come_back_as_they_were_written(folder):
    rows = [
        full_row(text=None),
        LedgerRow(RowKey("e1", Kind.EMPTY), (), (-1e-17, -745.1), (), (), ""),
        LedgerRow(
            RowKey("é", Kind.RATIONALE, "delete", "necessity", 3, None, 2, attribution="β"),
            (0, 4),
            (-0.0, 5e-324),
            (2**31 - 1,),
            (0,),
            "ß",
        ),
        random_row(50),
    ]
    write_part(folder, 0, [], rows, {})
    assert records(folder, 0, inputs=True) == rows


def test_ledgers_of_three_labels_come_back_as_they_were_written(folder):
    rows = [
        LedgerRow(RowKey("e1", Kind.EMPTY), (), (-1e-17, -745.1, -0.0), (), (), ""),
        LedgerRow(RowKey("e1", Kind.FULL), (0,), (-1.0, -2.0, -3.0), (4,), (0,)),
    ]
    write_part(folder, 0, [], rows, {})
    assert records(folder, 0, inputs=True) == rows


def test_rows_of_some_kinds_are_read_alone(folder):
    rows = [full_row(), random_row(0), random_row(1), LedgerRow(RowKey("e0", Kind.EMPTY), (), (-1.0, -2.0))]
    write_part(folder, 0, [], rows[:2], {})
    write_part(folder, 0, [], rows[2:], {})
    found = records(folder, 0, inputs=True, kinds=[Kind.RANDOM])
    assert found == [random_row(0), random_row(1)]
    assert [row.key.kind for row in records(folder, 0, kinds=[Kind.EMPTY, Kind.FULL])] == [Kind.FULL, Kind.EMPTY]
    assert records(folder, 0, kinds=[Kind.PROBE]) == []


def test_codes_are_places_in_the_names_that_are_given(folder):
    rows = [random_row(0, example_id="b"), random_row(1, example_id="a"), full_row(example_id="new")]
    write_part(folder, 0, [], rows, {})
    found = folder.ledger(0, Names(("a", "b"), ("mine",), ("position", "size"), ("delete", "infill")))
    assert found.names == Names(("a", "b", "new"), ("mine",), ("position", "size"), ("delete", "infill"))
    assert found.head["example"].tolist() == [1, 0, 2]
    assert found.head["null"].tolist() == [1, 1, -1] and found.head["operator"].tolist() == [1, 1, -1]
    assert [row.key for row in found.records()] == [row.key for row in rows]


def test_scores_and_attributions_that_are_not_finite_are_kept(folder):
    example = InputRow("e0", {"text": "a b"}, attributions={"mine": (math.nan, -math.inf)})
    write_part(folder, 0, [example], [full_row(scores=(math.nan, -math.inf))], {})
    [row], [read] = records(folder, 0), folder.inputs(0)
    assert math.isnan(row.scores[0]) and row.scores[1] == -math.inf
    assert math.isnan(read.attributions["mine"][0]) and read.attributions["mine"][1] == -math.inf


def test_what_the_model_saw_is_read_only_when_asked_for(folder):
    write_part(folder, 0, [], [full_row()], {})
    plain = full_row()._replace(input_ids=(), segment_ids=())
    assert records(folder, 0) == [plain]
    assert records(folder, 0, kept=False) == [plain._replace(kept=(), text=None)]
    assert records(folder, 0, inputs=True) == [full_row()]


def test_an_id_beyond_the_column_is_refused_rather_than_wrapped(folder):
    with pytest.raises((pa.ArrowInvalid, OverflowError)):
        write_part(folder, 0, [], [full_row()._replace(input_ids=(2**63,))], {})
    assert folder.parts() == [] and records(folder, 0) == []


def test_the_files_of_a_part_are_read_as_one(folder):
    example = InputRow("e0", {"text": "a b"}, target=1, attributions={"first": (1.0, 2.0)})
    other = InputRow("e1", {"text": "c d"}, target=0, attributions={"first": (3.0, 4.0)})
    write_part(folder, 3, [example, other], [full_row(), random_row(0)], {})
    added = InputRow("e0", {"text": "a b"}, target=1, attributions={"second": (5.0, 6.0)})
    write_part(folder, 3, [added], [random_row(1)], {})

    assert [p.name for p in sorted((folder.path / "ledger").iterdir())] == [
        "part-000003-000.parquet",
        "part-000003-001.parquet",
    ]
    assert [row.key for row in records(folder, 3)] == [full_row().key, random_row(0).key, random_row(1).key]
    first, second = folder.inputs(3)
    assert first.attributions == {"first": (1.0, 2.0), "second": (5.0, 6.0)}
    assert second == other


def test_parts_are_counted_by_number_and_other_files_are_none(folder):
    for index in (11, 2, 0):
        write_part(folder, index, [], [], {})
    (folder.path / "inputs" / "notes.parquet").write_bytes(b"")
    assert folder.parts() == [0, 2, 11]


def test_a_part_that_was_never_written_is_empty(folder):
    assert folder.parts() == [] and folder.inputs(4) == [] and records(folder, 4) == []


def test_a_folder_name_that_looks_like_a_partition_changes_nothing(tmp_path):
    folder = RunFolder(tmp_path / "k=0.2" / "example_id=7")
    with folder.opened():
        write_part(folder, 0, [InputRow("e0", {"text": "a"})], [full_row()], {})
    assert folder.inputs(0) == [InputRow("e0", {"text": "a"})]
    assert records(folder, 0, inputs=True) == [full_row()]


def test_costs_are_kept_with_their_files_in_the_order_of_parts(folder):
    write_part(folder, 1, [], [], {"rows": 3, "rows_by_kind": {"rationale:é": 3}})
    write_part(folder, 0, [], [], {"rows": 1})
    write_part(folder, 0, [], [], {"rows": 2, "attribution_seconds": {"mine": 0.25}})
    assert folder.costs() == [
        {"rows": 1},
        {"rows": 2, "attribution_seconds": {"mine": 0.25}},
        {"rows": 3, "rows_by_kind": {"rationale:é": 3}},
    ]


def test_drafts_of_a_killed_run_are_cleaned_up_and_nothing_else(folder):
    write_part(folder, 0, [], [full_row()], {})
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
        with pytest.raises(ConfigError, match="is not a run folder"):
            RunFolder.existing(path)


@pytest.mark.parametrize("content", [b"", b'{"schema": 1, "sta', b"[]", b"null", b'{"schema": "\xff"}'])
def test_a_damaged_manifest_is_named(folder, content):
    (folder.path / "manifest.json").write_bytes(content)
    with pytest.raises(ConfigError, match=r"manifest\.json is damaged"):
        RunFolder.existing(folder.path)


@pytest.mark.parametrize("schema", [SCHEMA + 1, "1"])
def test_another_format_is_refused(folder, schema):
    (folder.path / "manifest.json").write_text(json.dumps({"schema": schema}))
    with pytest.raises(ConfigError, match=rf"is in format {schema}, and this version reads format {SCHEMA}"):
        RunFolder.existing(folder.path)


def test_a_manifest_without_a_format_is_refused(folder):
    (folder.path / "manifest.json").write_text("{}")
    with pytest.raises(ConfigError, match=rf"without a `schema`; this version reads format {SCHEMA}"):
        RunFolder.existing(folder.path)


@pytest.mark.parametrize("kind", ["ledger", "inputs"])
def test_a_part_file_with_other_columns_is_damaged(hand_made_run, book, kind):
    one = book(n_units=6).reference().null([(0, 1), (2, 3)], [0.5, 0.6]).rationale((4, 5), 0.7)
    folder = hand_made_run([one])
    (folder.path / "parts.sha256").unlink()
    pq.write_table(pa.table({"a": [1]}), folder.path / kind / "part-000000-000.parquet")
    found = RunFolder(folder.path)
    with pytest.raises(DamagedPartError, match=r"is damaged: it has no column (example_id|kind)"):
        found.ledger(0, NO_NAMES) if kind == "ledger" else found.inputs(0)
    if kind == "ledger":
        with pytest.raises(DamagedPartError, match="it does not say what it cost"):
            found.costs()


def test_a_folder_without_parts_has_no_statistics(hand_made_run, book):
    one = book(n_units=6).reference().null([(0, 1), (2, 3)], [0.5, 0.6]).rationale((4, 5), 0.7)
    folder = hand_made_run([one])
    folder.discard(0)
    with pytest.raises(ConfigError, match="holds no scored example; run the same command again"):
        rescore(folder)


def test_a_file_of_examples_that_another_program_wrote_is_read_as_ours(hand_made_run, book):
    one = book(n_units=6).reference().null([(0, 1), (2, 3)], [0.5, 0.6]).rationale((4, 5), 0.7)
    folder = hand_made_run([one])
    rescore(folder)
    folder.write_manifest(replace(folder.manifest(), status="complete"))
    before = list(folder.examples())
    pd.read_parquet(folder.path / OUTCOME_FILE).to_parquet(folder.path / OUTCOME_FILE)
    assert list(folder.examples()) == before


def test_a_manifest_carries_the_format_and_comes_back(folder):
    content = manifest(status="running", labels=("négatif", "positif"), identity={**IDENTITY, "m": 9})
    folder.write_manifest(content)
    assert RunFolder.existing(folder.path).manifest() == content
    assert json.loads((folder.path / "manifest.json").read_text(encoding="utf-8"))["schema"] == SCHEMA == 3


def test_a_folder_of_the_first_format_is_refused_in_one_line(folder):
    (folder.path / "manifest.json").write_text(json.dumps({"schema": 1, "status": "complete"}))
    with pytest.raises(
        ConfigError, match=r"^\S+ was written by an earlier version .* \(format 1\); .* Run the eval.* again\.$"
    ):
        RunFolder.existing(folder.path)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("config", "m"), "50", r"config\.m is '50' \(a whole number is expected\)"),
        (("config", "k"), [0.2, "dynamik"], r"config\.k\.1 is 'dynamik'"),
        (("config", "sign"), "plus", r"config\.sign is 'plus' \(expected: support, abs\)"),
        (("labels",), "negative", r"labels is 'negative'"),
        (("data", "rows"), 3, r"it has an unknown field data\.rows"),
        (("status",), None, r"status is None"),
    ],
)
def test_a_wrong_value_is_named_with_its_file_and_field(folder, path, value, said):
    content = as_json(manifest())
    place = content
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    (folder.path / "manifest.json").write_text(json.dumps(content))
    with pytest.raises(ConfigError, match=rf"manifest\.json is damaged: {said}"):
        RunFolder.existing(folder.path)


@pytest.mark.parametrize(
    "name", ["status", "config", "identity", *(f"identity.{each}" for each in ("data", "dtype", "chat", "system"))]
)
def test_a_manifest_without_its_parts_is_damaged(folder, name):
    content = as_json(manifest())
    del (content["identity"] if "." in name else content)[name.removeprefix("identity.")]
    (folder.path / "manifest.json").write_text(json.dumps(content))
    with pytest.raises(ConfigError, match=rf"manifest\.json is damaged: it has no {name}"):
        RunFolder.existing(folder.path)


def test_results_of_an_unfinished_run_are_refused(folder):
    folder.write_manifest(manifest(status="running"))
    with pytest.raises(ConfigError, match="holds an unfinished run; run the same command again"):
        folder.summary()
    with pytest.raises(ConfigError, match="holds an unfinished run"):
        list(folder.examples())


def test_a_damaged_summary_is_named(folder):
    folder.write_manifest(manifest())
    (folder.path / "summary.json").write_text('{"schema": 1, "conf')
    with pytest.raises(ConfigError, match=r"summary\.json is damaged: .*\. `ice rescore .*` writes it again"):
        folder.summary()


@pytest.mark.parametrize("name", ["summary.json", "examples.parquet"])
def test_a_folder_in_the_place_of_results_is_to_be_moved_before_they_are_written_again(folder, name):
    folder.write_manifest(manifest())
    (folder.path / name).mkdir()
    said = rf"{name}: a folder is in the place .*\. Move it away or rename it\. `ice rescore .*` writes it again\.$"
    with pytest.raises(ConfigError, match=said):
        folder.summary() if name == "summary.json" else list(folder.examples())


@pytest.mark.parametrize("kind", ["inputs", "ledger"])
def test_a_damaged_part_is_named(folder, kind):
    write_part(folder, 0, [InputRow("e0", {"text": "a b"})], [full_row()], {})
    path = folder.path / kind / "part-000000-000.parquet"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ConfigError, match=rf"{kind}.part-000000-000\.parquet is damaged"):
        read = {"inputs": folder.inputs, "ledger": lambda part: folder.ledger(part, NO_NAMES)}
        read[kind](0)


def test_ledger_columns_are_those_of_the_contract(folder):
    write_part(folder, 0, [], [full_row()], {})
    names = pq.read_schema(folder.path / "ledger" / "part-000000-000.parquet").names
    contract = (
        "example_id kind attribution null operator direction size set draw kept input_ids segment_ids scores text"
    )
    assert names == contract.split()


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts the threads that Linux lists")
def test_no_thread_is_left_of_reading_a_run():
    """A thread of a library that takes the interpreter's lock while it ends aborts the process."""
    script = """if True:
        import os, sys
        from pathlib import Path
        from ice_eval.results import RunFolder, view_example
        folder, before = RunFolder.existing(Path(sys.argv[1])), set(os.listdir("/proc/self/task"))
        assert view_example(folder, "1").compared and len(list(folder.examples())) == 3
        new = set(os.listdir("/proc/self/task")) - before
        print([Path(f"/proc/self/task/{each}/comm").read_text().strip() for each in new])"""
    path = run(texts(3), m=5).path
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
