"""`Run`: a finished evaluation in a notebook."""

import gc
import warnings

import numpy as np
import pandas as pd
import pytest

import ice_eval
from ice_eval.errors import ConfigError


def test_a_run_gives_frames(evaluate):
    run = evaluate(attributions=["attention", "random"], k=[0.2, 0.4])
    summary, examples, agreement = run.summary(), run.examples(), run.agreement()
    assert isinstance(summary, pd.DataFrame) and len(summary) == 2 * 3 * 2
    assert summary["win_rate"].between(0, 1).all() and set(summary["n"]) == {4}
    assert len(examples) == 4 * len(summary)
    assert set(examples["example_id"]) == {"0", "1", "2", "3"}
    assert len(agreement) == 2 * 2
    means = examples.groupby(["attribution", "operator", "k"])["win_rate"].mean()
    for line in summary.itertuples():
        assert means[line.attribution, line.operator, line.k] == pytest.approx(line.win_rate)


def test_a_run_is_read_back_from_its_folder(evaluate):
    run = evaluate()
    again = ice_eval.Run(run.path)
    assert repr(again) == f"Run({str(run.path)!r})"
    pd.testing.assert_frame_equal(again.summary(), run.summary())


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="holds no run"):
        ice_eval.Run(tmp_path)


def test_a_report_goes_into_the_folder_or_elsewhere(evaluate, tmp_path):
    run = evaluate()
    assert run.report() == run.path / "report.html"
    elsewhere = run.report(tmp_path / "new" / "page.html")
    assert elsewhere.read_bytes() == (run.path / "report.html").read_bytes()
    assert "toy on reviews" in elsewhere.read_text()


def test_a_notebook_shows_the_summary_and_escapes_names(evaluate):
    html = evaluate(attributions={"<b>mine</b>": lambda item: np.arange(item.n_units)})._repr_html_()
    assert "<table" in html and "win rate" in html
    assert "&lt;b&gt;mine&lt;/b&gt;" in html and "<b>" not in html


def test_a_temporary_folder_lives_as_long_as_its_run(evaluate):
    run = evaluate(out=None)
    path = run.path
    gc.collect()
    assert len(run.summary()) == 3 and path.is_dir()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del run
        gc.collect()
    assert not path.exists() and not path.parent.exists()
    assert caught == []
