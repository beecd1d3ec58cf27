"""Part files that are lost, cut off or changed: found by their checksums, named, and done again alone."""

import hashlib
import json
import shutil

import pytest
from tests.rows import ledger_rows
from tests.small_runs import Waves, files_of, results_of, rows_of, run, texts

import ice_eval
from ice_eval.cli import main
from ice_eval.errors import ConfigError, DamagedPartError
from ice_eval.results import RunFolder
from ice_eval.results.folder import CHECKSUMS, OUTCOME_FILE, Checksums, checksum

ARGUMENTS = {"attributions": ["occlusion"], "m": 5}
TEXTS = texts(34)
DAMAGED = "part-000001-000.parquet"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished run of three parts."""
    return run(TEXTS, **ARGUMENTS, out=tmp_path_factory.mktemp("whole") / "run")


@pytest.fixture
def copy(whole, tmp_path):
    shutil.copytree(whole.path, tmp_path / "run")
    return tmp_path / "run"


def flipped(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


DAMAGES = {
    "a bit is flipped": flipped,
    "the end is lost": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "the file is empty": lambda path: path.write_bytes(b""),
    "the file is lost": lambda path: path.unlink(),
    # Parquet reads it without complaint.
    "the file is another one": lambda path: shutil.copy(path.with_name("part-000000-000.parquet"), path),
}


class Told:
    """A reporter that keeps what it is told."""

    def __init__(self):
        self.messages = []

    def say(self, message):
        self.messages.append(message)

    def ignore(self, *arguments, **options): ...

    start = advance = correct = stop = asked_to_stop = ignore


KINDS = dict(zip(DAMAGES, ["inputs", "ledger"] * 3, strict=False))


@pytest.mark.parametrize(("damage", "kind"), KINDS.items())
def test_a_damaged_part_is_done_again_alone_and_it_is_said(whole, copy, kind, damage):
    before = files_of(copy)
    DAMAGES[damage](copy / kind / DAMAGED)
    told, model = Told(), Waves()
    again = run(TEXTS, model=model, **ARGUMENTS, out=copy, reporter=told)
    [message] = [each for each in told.messages if "damaged" in each]
    assert f"{kind}/{DAMAGED} is damaged: " in message and message.endswith("; only part 1 is scored again.")
    assert rows_of(again) == rows_of(whole)
    assert results_of(again) == results_of(whole)
    ours, theirs = again.folder.manifest().cost, whole.folder.manifest().cost
    assert (ours.rows, ours.rows_by_kind, ours.probe_tokens) == (theirs.rows, theirs.rows_by_kind, theirs.probe_tokens)
    after = files_of(copy)
    others = [name for name in before if "part-000001" not in name.name and name.name.startswith("part-")]
    assert len(others) == 4 and all(after[name] == before[name] for name in others)
    assert again.folder.damage() == []


def test_what_a_damaged_part_held_is_scored_and_no_other_row(copy):
    (copy / "ledger" / DAMAGED).unlink()
    held = len(ledger_rows(RunFolder(copy), 0))
    asked = []
    for out in (copy, copy):  # the second time nothing is missing: what it asks are the checks before a run
        model = Waves()
        run(TEXTS, model=model, **ARGUMENTS, out=out)
        asked.append(model.asked)
    assert 0 < asked[0] - asked[1] <= 1.2 * held


@pytest.mark.parametrize("kind", ["inputs", "ledger"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_statistics_of_a_damaged_folder_are_refused_with_the_part_and_the_remedy(copy, kind, damage):
    DAMAGES[damage](copy / kind / DAMAGED)
    before = files_of(copy)
    with pytest.raises(DamagedPartError, match=rf"{kind}/{DAMAGED} is damaged: .* only part 1 is repeated"):
        ice_eval.Run(copy).rescore()
    assert files_of(copy) == before
    [found] = RunFolder(copy).damage()
    assert found.part == 1


def command(monkeypatch, capsys, *arguments):
    monkeypatch.setattr("sys.argv", ["ice", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    return stopped.value.code, *capsys.readouterr()


def test_the_command_line_says_which_part_is_damaged(copy, monkeypatch, capsys):
    flipped(copy / "ledger" / DAMAGED)
    code, out, err = command(monkeypatch, capsys, "rescore", copy)
    assert (code, out, err.count("\n")) == (2, "", 1) and f"{DAMAGED} is damaged" in err and "part 1 is repeated" in err
    code, out, err = command(monkeypatch, capsys, "report", copy, "--html", copy / "page.html")
    assert code == 2 and "part 1 is repeated" in err and not (copy / "page.html").exists()
    # The summary is whole, so its tables are shown.
    code, out, err = command(monkeypatch, capsys, "report", copy)
    assert code == 0 and "win rate" in out and err.count("\n") == 1 and "part 1 is repeated" in err


def test_checksums_are_what_sha256sum_prints(whole):
    lines = (whole.path / CHECKSUMS).read_text().splitlines()
    found = {name: hashlib.sha256((whole.path / name).read_bytes()).hexdigest() for name in names_of(whole.path)}
    assert sorted(lines) == sorted(f"{digest}  {name}" for name, digest in found.items())


def names_of(path):
    return [f"{each.parent.name}/{each.name}" for each in path.rglob("part-*.parquet")]


def test_a_folder_without_checksums_gets_them_when_it_is_continued(whole, copy):
    (copy / CHECKSUMS).unlink()
    assert RunFolder(copy).damage() == []
    again = run(TEXTS, **ARGUMENTS, out=copy)
    assert sorted((copy / CHECKSUMS).read_text().splitlines()) == sorted(
        (whole.path / CHECKSUMS).read_text().splitlines()
    )
    assert results_of(again) == results_of(whole)


def test_a_part_without_a_checksum_that_cannot_be_read_is_done_again(whole, copy):
    (copy / CHECKSUMS).unlink()
    DAMAGES["the end is lost"](copy / "ledger" / DAMAGED)
    assert results_of(run(TEXTS, **ARGUMENTS, out=copy)) == results_of(whole)


def test_what_a_later_command_added_to_a_damaged_part_comes_back_too(whole, copy):
    added = run(TEXTS, **{**ARGUMENTS, "attributions": ["first-k"]}, out=copy)
    expected, rows = results_of(added), sorted(rows_of(added), key=repr)
    (copy / "ledger" / "part-000001-001.parquet").unlink()
    again = run(TEXTS, **ARGUMENTS, out=copy)
    assert results_of(again) == expected and sorted(rows_of(again), key=repr) == rows
    assert not (copy / "ledger" / "part-000001-001.parquet").exists()


def test_a_run_that_lacks_a_part_is_never_called_finished(copy, monkeypatch):
    (copy / "inputs" / DAMAGED).unlink()
    monkeypatch.setattr(RunFolder, "write_part", lambda *arguments: pytest.fail("killed here"))
    with pytest.raises(pytest.fail.Exception):
        run(TEXTS, **ARGUMENTS, out=copy)
    assert json.loads((copy / "manifest.json").read_text())["status"] == "running"


def test_a_torn_line_is_passed_over_and_the_next_one_is_whole(tmp_path):
    first, second, third = (f"ledger/part-00000{number}-000.parquet" for number in range(3))
    Checksums(tmp_path).add({first: checksum(b"a"), second: checksum(b"b")})
    whole = (tmp_path / CHECKSUMS).read_bytes()
    for n_lost in range(1, len(whole) // 2):
        (tmp_path / CHECKSUMS).write_bytes(whole[:-n_lost])
        torn = Checksums(tmp_path)
        assert list(torn.known) == ([first] if n_lost > 1 else [first, second])
        torn.add({third: checksum(b"c")})
        assert set(Checksums(tmp_path).known) == {*torn.known}
        assert Checksums(tmp_path).fits(third, b"c") and not Checksums(tmp_path).fits(third, b"d")


def test_a_file_that_another_process_did_again_is_no_damage(tmp_path):
    ours, theirs, name = Checksums(tmp_path), Checksums(tmp_path), "ledger/part-000000-000.parquet"
    ours.add({name: checksum(b"old")})
    theirs.drop([name])
    theirs.add({name: checksum(b"new")})
    assert ours.fits(name, b"new") and not ours.fits(name, b"old")


@pytest.mark.parametrize("damage", ["the end is lost", "the file is empty", "the file is lost", "it is no table"])
def test_damaged_outcomes_of_examples_are_named_with_the_remedy(whole, copy, damage):
    path = copy / OUTCOME_FILE
    if damage == "it is no table":
        path.write_text('{"example_id": "0", "attr')
    else:
        DAMAGES[damage](path)
    with pytest.raises(ConfigError, match=r"examples\.parquet is damaged: .*ice rescore .*again"):
        list(RunFolder(copy).examples())
    ice_eval.Run(copy).rescore()
    assert list(RunFolder(copy).examples()) == list(whole.folder.examples())
