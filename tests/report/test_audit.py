"""The audit document: every page names the run, and all texts are shown as they are."""

import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from tests.small_runs import METHODS, Waves, run, task_of, texts

from ice_eval.errors import ConfigError, MissingExtraError
from ice_eval.report.provenance import _exclusions, provenance, write_audit
from ice_eval.results import RunFolder
from ice_eval.tasks._base import Shot

pytest.importorskip("typst", reason="needs typst: pip install 'ice-eval[pdf]'")
ODD = '#panic("x") *b* $y$ `z` <b> \\ [q]'
"""A name that is markup to the program that sets the document."""


class Lossy(Waves):
    """Gives no number for the rows of one text."""

    def log_scores(self, batch, labels, *, prefix=0):
        scores = super().log_scores(batch, labels, prefix=prefix)
        scores[batch.lengths > 17] = np.nan
        return scores


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    shots = (Shot({"text": "worked one"}, "positive"), Shot({"text": f"worked two {ODD}"}, "negative"))
    rows = [{"text": text, "label": index % 2} for index, text in enumerate(texts(8))]
    task = task_of([*rows, {"text": "single", "label": 1}], shots=shots, name=ODD)
    names = {ODD: METHODS["hat"], "strong": METHODS["strong"], **{f"m{i}": METHODS["hat"] for i in range(6)}}
    return run(
        task, attributions=names, operators=["delete", "mask-unk"], k=[0.2, 0.4],
        m=10, n=9, out=tmp_path_factory.mktemp("audit") / "run",
    )  # fmt: skip


@pytest.fixture(scope="module")
def path(found):
    return write_audit([found.folder], found.path / "audit.pdf")


def pages_of(path):
    """The text of each page."""
    program = shutil.which("pdftotext")
    if program is None:
        pytest.skip("needs pdftotext of poppler")
    done = subprocess.run([program, "-layout", path, "-"], capture_output=True, check=True, text=True)
    return done.stdout.split("\f")[:-1]


def plain(text):
    return " ".join(text.split())


def test_hash_and_page_number_are_on_every_page(found, path):
    pages = pages_of(path)
    assert len(pages) > 2
    for number, page in enumerate(pages, start=1):
        last = plain(page).rpartition("configuration ")[2]
        assert last.startswith(found.folder.manifest().config_hash)
        assert last.endswith(f"page {number} of {len(pages)}")


def test_the_whole_prompt_is_there_with_its_worked_examples(found, path):
    text = plain("\n".join(pages_of(path)))
    assert found.folder.manifest().worked == (
        "Review: worked one\nSentiment: positive",
        f"Review: worked two {ODD}\nSentiment: negative",
    )
    for part in (*found.folder.manifest().worked, found.folder.manifest().prompt):
        assert plain(part) in text
    assert dict(provenance(found.folder.manifest()))["worked examples"].startswith("Review: worked one")


def test_notes_are_words_without_the_names_of_flags(found, path):
    text, told = plain("\n".join(pages_of(path))), found.folder.summary()
    assert {flag for line in told.configurations for flag in line.flags} >= {"small_n"}
    assert "Fewer than 50 examples" in text and "[small_n]" not in text


def test_names_are_text_and_never_markup(path):
    text = plain("\n".join(pages_of(path)))
    assert text.count(ODD) > 3


def test_every_section_and_every_verdict_is_there(found, path):
    text = plain("\n".join(pages_of(path)))
    headings = ("Conclusion", "Scope", "Prompt", "Exclusions", "Verdicts", "Limits", "To repeat this run")
    places = [text.index(f"{number} {name}") for number, name in enumerate(headings, start=1)]
    assert places == sorted(places)
    for line in found.folder.summary().configurations:
        low, high = line.win_rate_ci
        assert f"[{100 * low:.1f}, {100 * high:.1f}]" in text
    assert "It does not mean that the model is right, fair or safe" in text
    assert "Fewer than 50 examples" in text


def test_excluded_examples_are_named_with_their_reason(found, path):
    [skipped] = [row for part in found.folder.parts() for row in found.folder.inputs(part) if row.skip_reason]
    [line] = [line for page in pages_of(path) for line in page.splitlines() if skipped.skip_reason[:30] in line]
    assert line.split()[0] == "1" and line.split()[-1] == skipped.example_id


def test_a_run_with_failed_examples_says_so_first(tmp_path):
    failing = run(texts(6, words=(11, 40)), model=Lossy(), attributions=METHODS, m=5, out=tmp_path / "run")
    text = plain("\n".join(pages_of(write_audit([failing.folder], tmp_path / "a.pdf"))))
    assert text.index("examples have no result") < text.index("2 Scope")
    assert "None: all" not in text


def test_examples_that_fail_are_named_once_for_each_operator(tmp_path):
    class Sparse(Waves):
        def log_scores(self, batch, labels, *, prefix=0):
            scores = super().log_scores(batch, labels, prefix=prefix)
            scores[batch.lengths == 4 + 2] = np.nan  # texts of two words
            return scores

    methods = {"first": METHODS["hat"], "second": METHODS["strong"]}
    failing = run(
        texts(6), model=Sparse(), attributions=methods, operators=["delete", "mask-unk"], m=5, out=tmp_path / "run"
    )
    lost = [line for line in failing.folder.examples() if line.error is not None]
    assert {line.operator for line in lost} == {"delete", "all"}
    [(reason, n, ids)] = _exclusions(failing.folder)
    assert reason.endswith(" (first, second under delete)")
    assert n == len(ids.split(", ")) and set(ids.split(", ")) == {line.example_id for line in lost}


@pytest.mark.parametrize("finished", ["abc", "2026-13-45", "", "0001-01-01", "1900-01-01T00:00:00+00:00"])
def test_a_time_that_is_none_does_not_matter(found, tmp_path, finished):
    shutil.copytree(found.path, tmp_path / "run")
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    manifest |= {"finished": finished, "started": finished}
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(manifest))
    assert write_audit([RunFolder(tmp_path / "run")], tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")


def test_the_same_run_gives_the_same_file_and_nothing_else_is_left(found, path, tmp_path):
    again = write_audit([found.folder], tmp_path / "new" / "again.pdf")
    assert again.read_bytes() == path.read_bytes()
    assert [each.name for each in again.parent.iterdir()] == ["again.pdf"]
    with pytest.raises(ConfigError, match="cannot be written"):
        write_audit([found.folder], again / "inside.pdf")


def test_several_runs_have_a_document_each_with_its_own_hash(found, tmp_path):
    other = run(texts(6), attributions=METHODS, m=5, out=tmp_path / "other")
    pages = pages_of(write_audit([found.folder, other.folder], tmp_path / "both.pdf"))
    hashes = [re.search(r"configuration (\w{8,}) ·", page)[1] for page in pages]
    assert list(dict.fromkeys(hashes)) == [each.folder.manifest().config_hash for each in (found, other)]
    assert sum("1 Conclusion" in page for page in pages) == 2


def test_without_typst_the_message_says_how_to_get_it(found, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "typst", None)
    with pytest.raises(MissingExtraError, match=r"'typst' is not installed.*pip install 'ice-eval\[pdf\]'"):
        write_audit([found.folder], tmp_path / "a.pdf")
    assert not list(tmp_path.iterdir())


def test_chains_have_their_wide_table_across_the_page(chains, tmp_path):
    path = write_audit([chains], tmp_path / "chains.pdf")
    pages = pages_of(path)
    assert all(f"page {number} of {len(pages)}" in plain(page) for number, page in enumerate(pages, start=1))
    [wide] = [page for page in pages if "Do the steps carry the answer?" in page]
    assert "SRC adj." in wide and "Differences" not in wide
