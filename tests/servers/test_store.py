import errno
import json
import os

import pytest

from ice_eval.errors import ConfigError, StorageError
from ice_eval.servers import Response, ResponseStore, TokenUsage, read_responses


def response(name, status="ok", **changes):
    return Response(key=f"{name}-0", request=name, repeat=0, status=status, text=name, time="t", **changes)


@pytest.fixture
def path(tmp_path):
    """A file with two responses."""
    path = tmp_path / "folder" / "responses.jsonl"
    with ResponseStore(path) as store:
        store.add(response("a", billed=TokenUsage(3, 1)))
        store.add(response("b\n\u2028\ud800", lost=2, billed=TokenUsage(9, 3)))
    return path


def test_what_was_added_is_there_again(path):
    with ResponseStore(path) as store:
        assert [each.text for each in store.responses.values()] == ["a", "b\n\u2028\ud800"]
        assert store.billed == (12, 4)
        assert store.n_charged == 4
    assert len(path.read_bytes().splitlines()) == 2


def test_a_store_that_is_entered_again_counts_once(path):
    store = ResponseStore(path)
    for _ in range(2):
        with store:
            assert store.billed == (12, 4)


def test_a_response_is_on_disk_when_add_returns(tmp_path, monkeypatch):
    synced = []
    with ResponseStore(tmp_path / "responses.jsonl") as store:
        monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_size))
        store.add(response("a"))
        assert synced == [store.path.stat().st_size]


def test_every_torn_line_is_passed_over_and_removed(path):
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for cut in [first + 1, *range(first + 2, len(whole) - 2, 29), len(whole) - 2]:
        path.write_bytes(whole[:cut])
        assert [each.request for each in read_responses(path)] == ["a"]
        with ResponseStore(path) as store:
            store.add(response("c"))
        assert [each.request for each in read_responses(path)] == ["a", "c"]


def test_a_line_that_lacks_only_its_end_was_paid_for_and_is_kept(path):
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with ResponseStore(path) as store:
        assert len(store.responses) == 2
    assert path.read_bytes() == whole


@pytest.mark.parametrize("line", ["{", "7", "{}", '{"key": "a"}'])
def test_a_damaged_line_within_the_file_is_named(path, line):
    first, second = path.read_text(encoding="utf-8").splitlines()[:1], "{}"
    path.write_text("\n".join([*first, line, second, ""]), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"line 2 of .*responses\.jsonl is damaged; remove that line"):
        ResponseStore(path).__enter__()


def test_an_answer_outlives_an_error_and_an_error_an_earlier_one(path):
    with ResponseStore(path) as store:
        store.add(response("c", "error", error="first"))
        store.add(response("c", "error", error="second"))
        assert not store.has_answer("c-0")
        assert store.responses["c-0"].error == "second"
        store.add(response("c"))
        store.add(response("c", "error", error="third"))
        assert store.has_answer("c-0")
    with ResponseStore(path) as store:
        assert store.has_answer("c-0")


def test_a_second_writer_is_refused(path):
    # To the lock, a file that is opened twice is as good as two processes; the test of kills has two.
    with ResponseStore(path), pytest.raises(ConfigError, match="another process is writing to .*responses"):
        ResponseStore(path).__enter__()
    with ResponseStore(path) as store:
        store.add(response("free again"))


def test_a_full_disk_leaves_no_torn_line_behind(path, monkeypatch):
    before = path.read_bytes()

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    with ResponseStore(path) as store:
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(StorageError, match="cannot be written: No space left on device"):
                store.add(response("c"))
        assert path.read_bytes() == before
        assert not store.has_answer("c-0")
        store.add(response("d"))
    assert [json.loads(line)["request"] for line in path.read_bytes().splitlines()][2:] == ["d"]


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot be written"):
        ResponseStore(tmp_path / "file" / "responses.jsonl").__enter__()
