"""YAML and JSON files are read as plain values or refused in words, whatever they hold; locks and the cache folder."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ice_eval
from ice_eval.errors import ConfigError
from ice_eval.files import (
    MOST_VALUES,
    append,
    cache_folder,
    exclusive,
    read_json,
    read_yaml,
    why_no_json,
    write_asked,
    write_json,
)
from ice_eval.servers.store import ResponseStore

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdef", "bcdefg", strict=True)
)
"""Seven lines that stand for ten million values."""


@pytest.fixture
def yaml(tmp_path):
    def content(text):
        (tmp_path / "x.yaml").write_text(text, encoding="utf-8")
        return read_yaml(tmp_path / "x.yaml")

    return content


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: !!python/object/apply:os.system [ls]", "could not determine a constructor"),
        ("a: !!python/name:os.system", "could not determine a constructor"),
        ("a: 2020-99-99", "ValueError, month must be in 1..12"),
        ("a: !!bool perhaps", "KeyError, 'perhaps'"),
        ("a: !!timestamp never", "AttributeError"),
        ("a: " + "1" * 5_000, "ValueError, Exceeds the limit"),
        ("[" * 1_200, "RecursionError"),
        ("a: \x1b[31m", "special characters are not allowed"),
    ],
)
def test_what_is_no_plain_yaml_is_refused_in_words(yaml, text, message):
    with pytest.raises(ConfigError, match=rf"x\.yaml is not YAML: [\s\S]*{message}"):
        yaml(text)


@pytest.mark.parametrize("text", [LAUGHS, "a: &a [*a]"], ids=["many times", "without end"])
def test_a_few_lines_cannot_stand_for_billions(yaml, text):
    with pytest.raises(ConfigError, match=f"repeats its parts by aliases until they are more than {MOST_VALUES:,}"):
        yaml(text)


def test_aliases_of_ordinary_size_are_read(yaml):
    assert yaml("a: &a [1, 2]\nb: [*a, *a]\nc: {d: *a}") == {"a": [1, 2], "b": [[1, 2], [1, 2]], "c": {"d": [1, 2]}}


def test_what_cannot_be_read_is_called_by_its_name(tmp_path):
    with pytest.raises(
        ConfigError, match=r"^the grid .*x\.yaml cannot be read: No such file or directory\. Write one\.$"
    ):
        read_yaml(tmp_path / "x.yaml", what="the grid", advice="Write one.")
    with pytest.raises(ConfigError, match=r"^/.*x\.yaml cannot be read: No such file or directory\.$"):
        read_yaml(tmp_path / "x.yaml")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "Expecting property name enclosed in double quotes at column 2"),
        ("[1,\n2", "Expecting ',' delimiter at line 2, column 2"),
        ("1" * 5_000, "a number has too many digits"),
        ("[" * 100_000, "it is nested too deeply"),
    ],
)
def test_why_a_text_is_no_json(text, reason, tmp_path):
    with pytest.raises((ValueError, RecursionError)) as raised:
        json.loads(text)
    assert why_no_json(raised.value) == reason
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"x\.json is damaged: "):
        read_json(tmp_path / "x.json")


def test_the_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("ICE_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.setenv("ICE_CACHE", "~/elsewhere")
    assert cache_folder() == Path.home() / "elsewhere"
    monkeypatch.delenv("ICE_CACHE")
    assert cache_folder().name == "ice-eval"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other cache folders")
def test_the_cache_is_where_it_always_was(monkeypatch, tmp_path):
    monkeypatch.delenv("ICE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "ice-eval"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "ice-eval"


@pytest.mark.parametrize("name", ["folder", "file.jsonl"])
def test_one_process_at_a_time_may_write_and_others_may_read(tmp_path, name):
    path = tmp_path / name
    path.mkdir() if name == "folder" else path.write_text("content", encoding="utf-8")
    code = f"import pathlib, ice_eval.files as f\nwith f.exclusive(pathlib.Path({str(path)!r})): pass"
    environment = {**os.environ, "PYTHONPATH": str(Path(ice_eval.__file__).parents[1])}
    command = [sys.executable, "-c", code]
    with exclusive(path):
        if name != "folder":
            assert path.read_text(encoding="utf-8") == "content"
        refused = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert f"another process is writing to {path}; wait for it or use another --out." in refused.stderr
    assert subprocess.run(command, env=environment, check=False).returncode == 0


WRITERS = {
    "at once": lambda path: write_json(path, {}),
    "asked for": lambda path: write_asked(path, b"page"),
    "line by line": lambda path: append(path, b"line"),
    "responses": lambda path: ResponseStore(path).__enter__(),
}


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_pipe_in_the_place_of_a_file_is_neither_replaced_nor_waited_for(tmp_path, write, linked):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    target = tmp_path / "link" if linked else pipe
    if linked:
        target.symlink_to(pipe)
    with pytest.raises(ConfigError, match=f"{target.name} is a pipe or a device, .* Give the name of a file"):
        write(target)
    assert pipe.is_fifo() and target.is_symlink() == linked
    assert {path.name for path in tmp_path.iterdir()} == {pipe.name, target.name}
