"""Progress where there is no terminal: a line every ten seconds, and no guess before there are rows to guess from."""

import os
import signal
import sys

import pytest

import ice_eval as ice
from ice_eval.api.progress import Bar, watched
from ice_eval.pipeline import Silent


@pytest.fixture
def told(monkeypatch, capsys):
    """What is said when so many rows are done, eleven seconds after the last time."""
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    bar = Bar()
    bar.start(1640, examples=41)

    def advance(rows, *, scored=True):
        nonlocal now
        now += 11
        bar.advance(rows, scored=scored)
        return capsys.readouterr().err.strip()

    yield advance
    bar.stop()


def test_the_time_left_is_told_when_enough_rows_are_scored(told):
    assert told(24) == "0 of 41 examples"
    assert told(56) == "2 of 41 examples"
    assert told(8) == "2 of 41 examples, about 10 min left"  # more than one in twenty: 88 rows in 33 seconds


def test_rows_that_the_folder_held_tell_nothing_about_the_time_left(told):
    assert told(820, scored=False) == "20 of 41 examples"
    assert told(100) == "23 of 41 examples, about 3 min left"
    assert told(600) == "38 of 41 examples, about 5 s left"


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX signals")
def test_the_first_interrupt_waits_for_the_part_and_the_second_does_not(capsys):
    def stop_at_once(number, frame):
        raise SystemExit(130)

    before = signal.signal(signal.SIGINT, stop_at_once)
    try:
        bar = Bar()
        bar.start(10)
        with pytest.raises(SystemExit):  # nobody asks
            signal.raise_signal(signal.SIGINT)
        assert not bar.asked_to_stop()
        signal.raise_signal(signal.SIGINT)
        assert bar.asked_to_stop() and "Ctrl-C again stops at once" in capsys.readouterr().err.replace("\n", " ")
        with pytest.raises(SystemExit):
            signal.raise_signal(signal.SIGINT)
        bar.stop()
        bar = Bar()
        bar.start(10)
        assert not bar.asked_to_stop()
        bar.stop()
        assert signal.getsignal(signal.SIGINT) is stop_at_once
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_notebook_and_a_terminal_are_watched_and_a_log_is_not(monkeypatch):
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    assert isinstance(watched(continues=True), Silent)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert isinstance(watched(continues=True), Bar)
    monkeypatch.setattr("sys.stderr.isatty", lambda: False)
    monkeypatch.setitem(sys.modules, "ipykernel", None)
    assert isinstance(watched(continues=True), Bar)


def test_an_evaluation_in_a_notebook_tells_what_it_did(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ipykernel", None)
    ice.evaluate("toy", "demo", n=2, m=3, attributions="random", operators="delete")
    assert "rows in" in capsys.readouterr().err


def test_an_interrupt_is_not_held_up_where_nothing_would_be_kept():
    before = signal.getsignal(signal.SIGINT)
    bar = Bar(continues=False)
    assert not bar.asked_to_stop() and signal.getsignal(signal.SIGINT) is before
