"""`ice selftest`: what it prints, and how it ends."""

import dataclasses
import json
from functools import partial

import numpy as np
import pytest

from ice_eval import selftest
from ice_eval.selftest import QUICK, Report, Sizes
from ice_eval.selftest.checks import About, at_most, measured

ABOUT = About("toy", "delete", "necessity", "random")
HOLDS = at_most("false positives", ABOUT, np.arange(100) < 4, 0.05)
WORSE = at_most("false positives", dataclasses.replace(ABOUT, operator="infill"), np.arange(100) < 7, 0.05)
FAILS = at_most("false discoveries", ABOUT, np.arange(100) < 30, 0.10)
POWER = measured("detected", ABOUT, np.arange(10) < 9, "power")


@pytest.fixture
def found(monkeypatch):
    """Let the self-test find these checks; returns what it was asked for."""

    def give(*checks, skipped=()):
        asked = {}

        def run(**settings):
            asked.update(settings)
            settings["say"]("toy: random, 5 texts …")
            return Report(checks, seed=settings["seed"], skipped=skipped, seconds=3.2)

        monkeypatch.setattr(selftest, "selftest", run)
        return asked

    return give


def test_it_exits_0_when_all_guarantees_hold(ice, found):
    asked = found(HOLDS, WORSE, POWER)
    done = ice("selftest")
    assert done.code == 0
    assert done.out.rstrip().endswith("All 2 guarantees hold (seed 0, 3 s).")
    assert "toy: random" in done.err
    assert asked["sizes"] == selftest.FULL


def test_the_worst_of_each_kind_is_shown_unless_all_are_asked_for(ice, found):
    found(HOLDS, WORSE, POWER)
    worst = ice("selftest", "--full").out
    assert "7.0 %" in worst and "4.0 %" not in worst
    assert "7.0 %" not in ice("selftest").out
    assert "4.0 %" in ice("selftest", "--all").out


def test_it_exits_1_and_names_what_fails(ice, found):
    found(HOLDS, FAILS)
    done = ice("selftest", "--seed", 7)
    assert done.code == 1
    assert "fails: false discoveries (random on toy, delete, necessity): 30.0 % [21.2, 40.0] of 100" in done.out
    assert done.out.rstrip().endswith("1 of 2 guarantees fail (seed 7, 3 s).")


def test_what_is_skipped_is_said(ice, found):
    found(HOLDS, skipped=("the transformer is skipped: torch is not installed.",))
    assert "the transformer is skipped: torch is not installed." in ice("selftest").out


@pytest.mark.parametrize(("check", "code"), [(HOLDS, 0), (FAILS, 1)])
def test_json_holds_every_check(ice, found, check, code):
    found(check, POWER)
    done = ice("selftest", "--json")
    content = json.loads(done.out)
    assert done.code == code
    assert content["ok"] == (code == 0)
    assert [each["is_guarantee"] for each in content["checks"]] == [True, False]
    assert content["checks"][0]["operator"] == "delete"


def test_quick_and_seed_are_passed_on(ice, found):
    asked = found(HOLDS)
    ice("selftest", "--quick", "--seed", 5)
    assert (asked["sizes"], asked["seed"]) == (QUICK, 5)


def test_help_says_what_is_tested_and_when_it_fails(ice):
    out = " ".join(ice("selftest", "--help").out.split())
    assert "models whose correct explanations are known" in out and "--quick" in out and "Exits with 1" in out


def test_a_small_run_end_to_end(ice, monkeypatch):
    sizes = Sizes(random=25, truth=25, weakened=25, mixture=20, covered=2, matched=50, sequential=25)
    monkeypatch.setattr(selftest, "QUICK", sizes)
    monkeypatch.setattr(selftest, "selftest", partial(selftest.selftest, operators=("delete",), with_transformer=False))
    done = ice("selftest", "--quick", "--json")
    assert done.code == 0, done.out
    assert "toy" in {check["model"] for check in json.loads(done.out)["checks"]}
