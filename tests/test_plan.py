"""What a plan says of a run, against the run itself."""

import json

import pytest
from tests.small_runs import Waves, line_of, picks, run, task_of, texts

import ice_eval as ice
from ice_eval.pipeline import Silent

DATA = texts(300, words=(18, 21), vocabulary=3000)
HAT = {"hat": picks("hat")}


def plan(data=DATA, **settings):
    return ice.plan(Waves(), task_of(data), **{"attributions": HAT, "operators": ["delete"]} | settings)


def choices(found):
    return {choice.name: choice for choice in found.choices}


GRIDS = {
    "plain": {},
    "several": {
        "attributions": {**HAT, "gradient": None},
        "operators": ["delete", "infill"],
        "directions": ["sufficiency", "necessity"],
        "k": [0.15, 0.2],
    },
    "fills": {"operators": ["infill"], "n_fills": 3},
    "nulls": {"nulls": ["size", "contiguity"], "k": 0.3},
}


@pytest.mark.parametrize("name", GRIDS)
def test_rows_and_tokens_are_those_of_the_run(name):
    data, m = DATA[:40], 24
    [asked, *_] = plan(data, n=40, m=m, **GRIDS[name]).choices
    found = run(data, n=40, m=m, **{"attributions": HAT} | GRIDS[name])
    manifest = found.folder.manifest()
    assert (asked.n, asked.m) == (40, m)
    assert asked.rows == manifest.cost.rows
    assert asked.tokens == pytest.approx(manifest.cost.tokens + manifest.cost.attribution_tokens, rel=0.05)
    assert asked.disk_mb < 20


def test_a_wanted_width_is_reached_by_the_examples_and_sets_that_are_named():
    found = plan(n=300, width=0.08, pilot=128)
    wanted = choices(found)["interval of 8 pp"]
    assert wanted.width == pytest.approx(0.08, rel=0.01)
    assert wanted.n < 300
    low, high = line_of(run(DATA, attributions=HAT, n=wanted.n, m=wanted.m)).win_rate_ci
    assert high - low == pytest.approx(0.08, rel=0.15)


def test_a_wanted_detectable_win_rate_is_reached_too():
    wanted = choices(plan(n=300, detect=0.56, pilot=128))["detect 56 %"]
    found = line_of(run(DATA, attributions=HAT, n=wanted.n, m=wanted.m))
    assert found.detectable_win_rate - 0.5 == pytest.approx(0.06, rel=0.15)


def test_the_interval_that_is_foretold_is_the_widest_of_the_run():
    methods = {**HAT, "strong": picks("strong", towards=4)}
    [asked, *_] = plan(n=200, m=20, attributions=methods, operators=["mask-unk"], pilot=96).choices
    found = run(DATA, attributions=methods, operators=["mask-unk"], n=200, m=20)
    widths = {name: line_of(found, attribution=name).win_rate_ci for name in methods}
    hat, strong = (widths[name][1] - widths[name][0] for name in ("hat", "strong"))
    assert strong < hat
    assert asked.width == pytest.approx(hat, rel=0.15)


def test_fewer_sets_are_offered_where_they_are_enough():
    found = choices(plan(n=200, m=50))
    assert found["as asked"].m == 50
    assert 8 <= found["--adaptive dataset"].m < 30
    assert found["--adaptive dataset"].rows < found["as asked"].rows / 2
    [only] = plan(n=200, m=50, adaptive="dataset").choices
    assert (only.m, only.rows) == (found["--adaptive dataset"].m, found["--adaptive dataset"].rows)


def test_a_sequential_run_is_foretold_within_a_third():
    [about] = plan(n=64, adaptive="examples", pilot=64).choices
    assert about.name == "as asked, about"
    found = run(DATA[:64], attributions=HAT, adaptive="examples")
    rows = found.folder.manifest().cost.rows
    assert 0.67 * rows < about.rows < 1.33 * rows


def test_no_more_examples_are_planned_than_the_data_hold():
    found = plan(DATA[:40], n=500, width=0.02)
    assert found.choices[0].n == 40
    assert any("and the data hold 40" in warning for warning in found.warnings)
    assert any("40 examples give an interval of" in warning for warning in found.warnings)


def test_a_plan_is_json_and_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = plan(DATA[:40], n=40, m=20)
    content = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert content["choices"][0]["n"] == 40
    assert (content["pilot"]["n"], content["pilot"]["m"]) == (32, 12)
    assert list(tmp_path.iterdir()) == []


def test_a_plan_for_a_single_random_set_has_a_pilot_of_more():
    [asked] = plan(DATA[:40], n=40, m=1).choices
    assert asked.m == 1 and asked.width > 0.2


def test_what_is_said_of_the_pilot_is_not_said_of_the_run():
    class Told(Silent):
        messages = []

        def say(self, message):
            self.messages.append(message)

    plan(DATA[:40], n=40, reporter=Told())
    assert Told.messages == []


REFUSED = {
    "too small a pilot": ({"pilot": 1}, "pilot = 1: at least 2 examples are needed"),
    "a width in percent": ({"width": 5}, "width = 5: a number between 0 and 1 is expected, such as 0.05 for 5 %"),
    "no width": ({"width": 0}, "width = 0"),
    "chance": ({"detect": 0.5}, "detect = 0.5: a number between 0.5 and 1 is expected, such as 0.55 for 55 %"),
    "nan": ({"detect": float("nan")}, "detect = nan"),
    "m of 0": ({"m": 0}, "m = 0: at least 1 is needed"),
    "unknown adaptive": ({"adaptive": "dataset s"}, "adaptive 'dataset s'; did you mean 'dataset'"),
    "too few sets": ({"adaptive": "examples", "m": 50}, "at least 499"),
    "unknown null": ({"nulls": ["positions"]}, "no null named 'positions'; did you mean 'position'"),
    "unknown setting": ({"nonsense": 1}, "nonsense"),
    "what the run refuses": (
        {"adaptive": "examples", "protocol": "released"},
        "'released' draws random sets of its own",
    ),
    "nothing to evaluate": ({"data": ["w1", "w2"]}, "no example could be evaluated"),
    "a single example": ({"data": DATA[:1]}, "fewer than two examples"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_planned_is_refused(name):
    settings, message = REFUSED[name]
    with pytest.raises(ice.IceError, match=message):
        plan(**{"data": DATA[:4], **settings})


def test_ties_make_for_narrower_intervals_than_wins_and_losses():
    # Toy texts of many neutral words: most sets score the same, and a tie says neither yes nor no.
    data = [f"{text} good" for text in texts(64, words=(12, 12))]
    settings = {"attributions": ["random"], "operators": ["delete"], "n": 64, "m": 40}
    [asked, *_] = ice.plan("toy", task_of(data), pilot=64, **settings).choices
    low, high = line_of(run(data, model="toy", **settings)).win_rate_ci
    assert asked.width == pytest.approx(high - low, rel=0.15)
