"""Runs under odd circumstances: models that answer nonsense, texts that nobody writes, clocks and locales."""

import datetime
import json
import locale
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from tests.rows import each_row
from tests.small_runs import Waves, lines_of, results_of, rows_of, run, texts

import ice_eval
from ice_eval.errors import DataError, ModelError
from ice_eval.models import toy
from ice_eval.models.toy import Toy, ToyCodec
from ice_eval.results import identity

GOOD = texts(20)
BAD = "w1 w2 w3 w4 unbearable w5 w6 w7"


class Nonsense(Waves):
    """Answers something else than numbers where it reads a certain word."""

    def __init__(self, *answer):
        super().__init__()
        self.answer, [self.word] = answer, self.codec.tokenize("unbearable").ids

    def log_scores(self, batch, labels, *, prefix=0):
        scores = super().log_scores(batch, labels, prefix=prefix)
        scores[[self.word in row.ids for row in each_row(batch)]] = self.answer
        return scores


@pytest.mark.parametrize("answer", [(np.nan, np.nan), (np.inf, -1.0), (-np.inf, 0.0)], ids=str)
def test_what_is_no_number_is_recorded_counted_and_spoils_its_example_alone(tmp_path, answer):
    model = Nonsense(*answer)
    found = run([*GOOD, BAD], model=model, m=5, out=tmp_path / "run")
    [line] = found.folder.summary().configurations
    assert (line.n, line.n_skipped) == (20, 1)
    [spoilt] = lines_of(found, example_id="20")
    assert spoilt.error == "the model's score of the full or the empty input is not finite"
    [full] = [row for row in rows_of(found, "full") if row.key.example_id == "20"]
    assert np.array_equal(full.scores, answer, equal_nan=True)
    alone = run(GOOD, model=model, m=5, out=tmp_path / "alone")
    assert lines_of(found)[:20] == lines_of(alone)
    with pytest.raises(ModelError, match="no example could be evaluated .*not finite"):
        run([BAD] * 2, model=model, m=5, out=tmp_path / "none")


ODD = {
    "a million characters": " ".join(f"{number:0999d}" for number in range(1_000)),
    "one word of a million characters": "x" * 1_000_000,
    "nothing but spaces": " \u3000\t" * 1000,
    "zero-width characters": "gre\u200bat \u200d\u200c film \ufeff dull \u2060 awful scene",
    "control characters": "a\x00b great\x07 film\x1b[31m dull \x7f awful \x85 scene",
    "directions": "\u202egreat film\u202c dull \u2066awful",
    "marks on marks": "a" + "\u0301" * 300 + " great dull film awful",
    "lines of all kinds": "great\n\r\n\u2028film\u2029 dull \v\f awful",
    "no characters": "great \ufffe\uffff\U0010ffff film dull awful",
}


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """A run of texts that nobody writes, and its page."""
    path = tmp_path_factory.mktemp("odd") / "odd.jsonl"
    lines = [json.dumps({"id": name, "text": text}) + "\n" for name, text in ODD.items()]
    path.write_text("".join(lines), encoding="utf-8")
    found = ice_eval.evaluate(
        Toy(),
        "demo",
        data=path,
        m=5,
        attributions=["random"],
        operators=["delete"],
        unit="word",
        out=path.parent / "run",
    )
    found.report()
    return found


def test_odd_texts_are_evaluated_or_skipped_with_a_reason(odd):
    said = {line.example_id: line.error for line in odd.folder.examples()}
    assert list(said) == list(ODD)
    assert {name: why for name, why in said.items() if why} == {
        "one word of a million characters": "the text has one unit, so there is no other set to compare with",
        "nothing but spaces": "the text has no unit",
    }


def test_odd_texts_come_back_as_they_were_and_spans_are_theirs(odd):
    rows = [row for part in odd.folder.parts() for row in odd.folder.inputs(part)]
    assert {row.example_id: row.fields["text"] for row in rows} == ODD
    for row in rows:
        pieces = [row.fields["text"][span.start : span.end] for span in row.spans]
        assert all(piece.strip() for piece in pieces)
        assert not row.truncated
        assert all(before.end <= after.start for before, after in zip(row.spans, row.spans[1:], strict=False))


def test_a_page_obeys_no_text(odd):
    page = (odd.path / "report.html").read_text(encoding="utf-8")
    assert "\x1b" not in page and "\x00" not in page


def test_parts_of_which_every_text_is_too_short_change_nothing(tmp_path):
    mixed, settings = [*["film"] * 16, *GOOD[:16], *["word"] * 16], {"m": 5, "attributions": ["occlusion", "random"]}
    found = run(mixed, out=tmp_path / "mixed", **settings)
    assert len(found.folder.parts()) == 3
    reasons = {line.error for line in found.folder.examples() if not 16 <= int(line.example_id) < 32}
    assert reasons == {"the text has one unit, so there is no other set to compare with"}
    assert {(line.n, line.n_skipped) for line in found.folder.summary().configurations} == {(16, 32)}
    results = results_of(found)
    found.rescore()
    assert results_of(found) == results
    assert results_of(run(mixed, out=tmp_path / "mixed", **settings)) == results


class Lying(ToyCodec):
    """Says that every token stands somewhere else."""

    shift = 1000

    def tokenize(self, *arguments, **options):
        found = super().tokenize(*arguments, **options)
        return replace(found, start=found.start + self.shift, end=found.end + self.shift)


def test_a_tokenizer_that_points_beyond_the_text_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(toy, "ToyCodec", Lying)
    with pytest.raises(DataError, match="places token 0 beyond the end of the text"):
        run(GOOD, m=5, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_clock_that_goes_backwards_changes_nothing(tmp_path, monkeypatch):
    class Earlier(datetime.datetime):
        moments = iter(range(10_000))

        @classmethod
        def now(cls, tz=None):
            return super().now(tz) - datetime.timedelta(days=next(cls.moments))

    expected = run(GOOD, m=5, out=tmp_path / "expected")
    with monkeypatch.context() as patch:
        patch.setattr(identity.datetime, "datetime", Earlier)
        patch.setattr("time.time", lambda: 0.0)
        found = run(GOOD, m=5, out=tmp_path / "run")
        found.report()
    assert results_of(found) == results_of(expected)
    manifest = found.folder.manifest()
    assert manifest.started > manifest.finished and manifest.cost.seconds >= 0
    assert results_of(run(GOOD, m=5, out=tmp_path / "run")) == results_of(expected)


RUN = "run --model toy --task demo --m 5 --attributions random --operators delete".split()


@pytest.fixture(scope="module")
def worded(tmp_path_factory):
    """Data with letters that locales disagree on, and the results of a run in this process."""
    path = tmp_path_factory.mktemp("worded") / "data.jsonl"
    words = "der große Film ıssız İstanbul'da GÜZEL bir gün ÅNGSTRÖM naïve 好 1.234,5"
    path.write_text(json.dumps({"text": words, "label": "positive"}, ensure_ascii=False) + "\n", encoding="utf-8")
    found = ice_eval.evaluate(
        "toy", "demo", data=path, m=5, attributions=["random"], operators=["delete"], out=path.parent / "expected"
    )
    return path, results_of(found)


def test_a_locale_that_knows_ascii_alone_and_a_far_time_zone_change_nothing(worded, tmp_path):
    path, expected = worded
    out = tmp_path / "rün"
    ascii_only = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "TZ": "Pacific/Kiritimati"}
    command = [sys.executable, "-c", "from ice_eval.cli import main; main()", *RUN, "--data", path, "--out", out]
    done = subprocess.run([*command, "--json"], capture_output=True, env={**os.environ, **ascii_only}, timeout=120)
    assert done.returncode == 0, done.stderr
    assert os.fsdecode(json.loads(done.stdout.decode("ascii"))["folder"]).endswith(("rün", "r\udcc3\udcbcn"))
    assert [(out / name).read_bytes() for name in ("summary.json", "examples.parquet")] == expected


@pytest.mark.parametrize("name", ["de_DE.UTF-8", "tr_TR.UTF-8"])
def test_a_locale_with_other_letters_and_commas_changes_nothing(worded, tmp_path, name):
    path, expected = worded
    before = locale.setlocale(locale.LC_ALL)
    try:
        locale.setlocale(locale.LC_ALL, name)
    except locale.Error:
        pytest.skip(f"the locale {name} is not installed")
    try:
        found = ice_eval.evaluate(
            "toy", "demo", data=path, m=5, attributions=["random"], operators=["delete"], out=tmp_path / "run"
        )
    finally:
        locale.setlocale(locale.LC_ALL, before)
    assert results_of(found) == expected
