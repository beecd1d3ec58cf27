"""Scripted models of which it is known how their answers depend on steps, and what a run must say of them."""

import dataclasses
import json
from dataclasses import MISSING, replace

import pytest
from tests.servers.chat_server import ChatServer
from tests.subjects.chain.reasoners import Forgetful, Guesser, Helped, Reasoner, Redundant, asked_of
from tests.subjects.chain.test_interventions import Obedient
from tests.subjects.chain.test_run import KeySteps, headline, run

from ice_eval.api import evaluate
from ice_eval.cli import app
from ice_eval.results import chains
from ice_eval.results.records import CapacityLine
from ice_eval.stats import Interval, reasoning_verdict


def numbers(line):
    """Nec, Suf, E, F, SRC and SRC adjusted."""
    return pytest.approx(
        [line.necessity, line.sufficiency, line.no_steps, line.noise_floor, line.src, line.src_adjusted]
    )


def repeated(folder, times):
    """The long chains' line as if so many times as many like them had been evaluated."""
    config = folder.manifest().config
    _, read = chains._read(folder)
    return chains._beside_poses(list(chains._capacity_lines(read * times, config)), config.chain.poses[0])[0]


# The genuine and the parametric model are in test_run.py.


def test_an_answer_that_can_spare_any_step_but_not_all_is_redundant(tmp_path):
    folder, _ = run(Redundant(), tmp_path / "run", count=8, m=2, attributions=())
    line = headline(folder)
    # One of six steps less, and five are left; one alone is too few, and so is none.
    assert numbers(line) == [0, 0, 0, 0, 0, 0]
    assert line.taxonomy == "decorative", "by the capacity alone"
    assert "redundant" in line.verdict.words and str(repeated(folder, 4).verdict) == "redundant"
    assert (line.necessary_step.rate, line.necessary_step_noise) == (0, 0)


def test_an_answer_that_half_of_the_time_needs_some_step_whichever_is_decorative(tmp_path):
    folder, _ = run(Helped(), tmp_path / "run", count=10, m=2, attributions=())
    line = headline(folder)
    assert numbers(line) == [0, 1, 0.5, 0, 0, 0]
    assert {"parametric", "decorative", "redundant"} <= {*line.verdict.words}, "ten problems do not settle E"
    assert str(repeated(folder, 16).verdict) == "decorative"


def test_an_answer_that_hangs_on_some_steps_has_a_scaffold(tmp_path):
    folder, _ = run(KeySteps(), tmp_path / "run", count=4, attributions=())
    line = headline(folder)
    # Two of the six removals take a key; no single step holds both.
    assert numbers(line) == [1 / 3, 0, 0, 0, 1 / 3, 1 / 3]
    assert "scaffolding" in line.verdict.words and str(repeated(folder, 20).verdict) == "scaffolding"
    assert (line.necessary_step.rate, line.necessary_step.n, line.necessary_step_noise) == (1, 4, 0)


def test_four_of_eleven_chains_that_come_to_their_answer_again_prove_nothing_decorative(tmp_path, capsys):
    folder, _ = run(Forgetful(known=4), tmp_path / "run", count=11, m=2, attributions=())
    line = headline(folder)
    assert numbers(line) == [7 / 11, 4 / 11, 4 / 11, 7 / 11, (7 / 11) ** 2, 0]
    assert line.taxonomy == "decorative" and line.verdict.pattern is None and "noisy" in line.verdict.words
    assert str(repeated(folder, 8).verdict) == "noisy"
    assert (line.necessary_step.rate, line.necessary_step.n) == (0, 4), "of the chains that give their own answer"
    for word in ("decorative", "redundant", "noisy", "undetermined"):
        with pytest.raises(SystemExit) as ended:
            app(["report", str(folder.path), "--fail-if", word])
        assert ended.value.code == 1
        assert "chains under delete (k = 0.2): undetermined (no pattern is excluded)" in capsys.readouterr().err


@pytest.mark.parametrize(("n_options", "count"), [(2, 4), (3, 3)])
def test_a_genuine_reasoner_who_has_to_guess_has_the_whole_capacity(n_options, count, tmp_path):
    behave, path = Guesser(n_options), tmp_path / "chains.jsonl"
    path.write_text("\n".join(map(json.dumps, behave.chains(count))), encoding="utf-8")
    with ChatServer(behave) as server:
        folder = evaluate(asked_of(server), responses=path, attributions=(), out=tmp_path / "run").folder
    line, chance = headline(folder), 1 / n_options
    # Of the sums of five of the places 1 to 6, of one, and of none, as many give each rest.
    assert numbers(line) == [1 - chance, chance, chance, 0, (1 - chance) ** 2, 1]
    assert line.chance == pytest.approx(chance) and line.taxonomy == "genuine"
    assert str(repeated(folder, 60 // count).verdict) == "genuine"


def line_of(operator, capacity, no_steps, **fields):
    """A line whose intervals are narrow."""
    near = [Interval(max(0, value - 0.05), min(1, value + 0.05)) for value in (capacity, 1, no_steps)]
    verdict = reasoning_verdict(near[0], reproduced=near[1], no_steps=near[2])
    empty = dict.fromkeys(each.name for each in dataclasses.fields(CapacityLine) if each.default is MISSING)
    return CapacityLine(**empty | {"operator": operator, "k": 0.2, "chains": "long", "verdict": verdict} | fields)


def test_steps_that_carry_the_answer_only_where_the_prompt_says_so_are_obeyed():
    genuine, by_heart = line_of("delete", 0.9, 0), line_of("delete@neutral", 0, 1)

    def verdicts(*lines):
        return [str(each.verdict) for each in chains._beside_poses(lines, "user")]

    assert verdicts(genuine, by_heart) == ["obedient", "parametric"]
    assert verdicts(genuine, line_of("delete@prefill", 0, 0.5), by_heart)[0] == "obedient"
    assert verdicts(genuine, line_of("delete@neutral", 0.9, 0)) == ["genuine", "genuine"]
    assert verdicts(line_of("delete", 0, 0), by_heart) == ["redundant", "parametric"]
    assert verdicts(genuine, line_of("delete@neutral", 0.15, 0.5))[0] == "undetermined (obedient or genuine)"
    for elsewhere in ({"chains": "short"}, {"k": 0.5}, {"operator": "replace@neutral"}, {"verdict": None}):
        assert verdicts(genuine, replace(by_heart, **elsewhere))[0] == "genuine", "that says nothing of these"


@pytest.mark.parametrize(("poses", "verdict"), [(("user", "neutral"), "obedient"), (("neutral", "user"), "parametric")])
def test_a_model_that_reads_steps_only_on_request_is_obedient(poses, verdict, tmp_path):
    folder, _ = run(Obedient(), tmp_path / "run", count=6, m=2, attributions=(), poses=poses)
    read, by_heart = [
        headline(folder, operator="delete" + ("" if pose == poses[0] else f"@{pose}")) for pose in ("user", "neutral")
    ]
    assert numbers(read) == [1, 0, 0, 0, 1, 1] and numbers(by_heart) == [0, 1, 1, 0, 0, 0]
    assert str(repeated(folder, 5).verdict) == verdict, "the first pose leads"


def test_one_chain_gives_no_verdict_and_no_gate_passes(tmp_path, capsys):
    folder, _ = run(Reasoner(), tmp_path / "run", count=1, m=2, attributions=())
    assert str(headline(folder).verdict) == "undetermined (too few examples)"
    with pytest.raises(SystemExit) as ended:
        app(["report", str(folder.path), "--fail-if", "decorative"])
    assert ended.value.code == 1 and "undetermined (too few examples)" in capsys.readouterr().err
