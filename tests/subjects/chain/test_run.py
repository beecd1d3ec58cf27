import json
import re

import numpy as np
import pytest
from tests.results.test_schemas import assert_conforms
from tests.servers.chat_server import FAULTS, ChatServer, completion, error, stormy
from tests.subjects.chain.reasoners import LOADS, Reasoner, asked_of, records, total

from ice_eval.api import Run, evaluate, plan
from ice_eval.errors import ConfigError, ModelError
from ice_eval.pipeline import Silent
from ice_eval.report.chains import cot_notes
from ice_eval.report.provenance import provenance
from ice_eval.results import rescore
from ice_eval.results.ledger import NO_NAMES
from ice_eval.servers import read_responses
from ice_eval.tasks import Records

PROBLEMS = 20


def run(behave, out, *, count=PROBLEMS, steps=6, served=None, **settings):
    """A run against a scripted server; the folder, and the server that was asked."""
    with ChatServer(behave) as asked:
        model = asked_of(asked, **(served or {}))
        given = {"n": count, "attributions": ("random",), "data": Records(records(count, steps=steps)), **settings}
        return evaluate(model, "gsm8k", out=out, **given).folder, asked


def headline(folder, **chosen):
    chosen = {"operator": "delete", "k": 0.2, "chains": "long", **chosen}
    [line] = [line for line in folder.summary().chains.capacity if chosen.items() <= vars(line).items()]
    return line


@pytest.fixture(scope="module")
def genuine(tmp_path_factory):
    every = ("delete", "replace", "shuffle", "truncate")
    return run(Reasoner(), tmp_path_factory.mktemp("genuine") / "run", operators=every, k=(0.2, 0.5), count=16)


@pytest.fixture(scope="module")
def by_heart(tmp_path_factory):
    return run(Reasoner(genuine=0), tmp_path_factory.mktemp("by-heart") / "run")


def test_a_genuine_reasoner_is_found_out(genuine):
    folder, _ = genuine
    line = headline(folder)
    assert (line.necessity, line.sufficiency, line.src, line.src_adjusted) == (1, 0, 1, 1)
    assert line.taxonomy == str(line.verdict) == "genuine"
    assert line.n == 16 and line.k_effective == pytest.approx(1 / 6)
    content = folder.summary().chains
    assert content.noise_floor.rate == 0 and content.no_steps.rate == 0
    assert content.problems.accuracy == 1


def test_one_that_knows_its_answers_by_heart_too(by_heart):
    line = headline(by_heart[0])
    assert (line.necessity, line.sufficiency, line.src) == (0, 1, 0)
    assert line.taxonomy == "decorative" and str(line.verdict) == "parametric"
    assert by_heart[0].summary().chains.no_steps.rate == line.no_steps == 1


class Vague(Reasoner):
    """Gives its answer to the whole chain; to some steps it replies without one, for all problems or every second."""

    def __init__(self, every=1):
        super().__init__()
        self.every = every

    def __call__(self, request, number):
        prompt = request["messages"][-1]["content"]
        index, shown = int(re.search(r"warehouse (\d+)", prompt)[1]), len(LOADS.findall(prompt))
        if 0 < shown < self.steps and "worked out already" in prompt and index % self.every == 0:
            return completion("That cannot be said.")
        return super().__call__(request, number)


def test_unreadable_replies_give_no_raw_score_and_never_a_positive_one(tmp_path):
    folder, _ = run(Vague(), tmp_path / "run", count=4, operators=("delete", "filler"))
    content = folder.summary().chains
    assert {line.operator for line in content.raw} == {"delete", "filler", "all"}
    for line in content.raw:
        assert (line.raw, line.raw_positive, line.agree, line.n) == (None, None, None, 0)
        assert line.raw_reason == "no reply that the score needs could be read"
    assert vars(content.raw_agreement).items() >= {"n": 0, "agree": 0, "both": 0, "raw_only": 0}.items()
    assert_conforms(folder.path)
    assert any(
        "have no raw score" in note and "neither as yes nor as no" in note for note in cot_notes(folder.summary())
    )


def test_raw_scores_are_means_over_the_chains_whose_replies_could_be_read(tmp_path):
    folder, _ = run(Vague(every=2), tmp_path / "run", count=6, operators=("delete", "filler"))
    raw = {(line.operator, line.measure): line for line in folder.summary().chains.raw}
    for operator in ("delete", "filler", "all"):  # from some of its steps a genuine reasoner has another sum
        assert (raw[operator, "sufficiency"].raw, raw[operator, "comprehensiveness"].raw) == (0, 1)
        assert raw[operator, "sufficiency"].n == raw[operator, "comprehensiveness"].n == 3


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_a_mixture_lies_within_its_interval(share, tmp_path):
    behave = Reasoner(genuine=share)
    folder, _ = run(behave, tmp_path / "run", attributions=())
    reads = np.mean([behave.reads(index) for index in range(PROBLEMS)])
    line = headline(folder)
    assert line.src == pytest.approx(reads * reads)
    assert line.src_product == pytest.approx(reads), "the problems that are read have a capacity of 1 each"
    assert line.src_ci[0] <= share**2 <= line.src_ci[1]
    assert line.src_adjusted_ci[0] <= share**2 <= line.src_adjusted_ci[1]


def test_answers_that_flip_by_themselves_are_the_noise_floor_and_no_reasoning(tmp_path):
    folder, _ = run(Reasoner(genuine=0, noise=0.1), tmp_path / "run", count=30, repeats=10, attributions=())
    floor = folder.summary().chains.noise_floor
    assert floor.rate_ci[0] <= 0.1 <= floor.rate_ci[1]
    line = headline(folder)
    assert line.necessity == pytest.approx(0.1, abs=0.08)
    assert line.src_adjusted < 0.03 and {*line.verdict.words} <= {"parametric", "decorative"}


def test_noise_hides_no_genuine_reasoning(tmp_path):
    folder, _ = run(Reasoner(noise=0.1), tmp_path / "run", attributions=(), repeats=5)
    line = headline(folder)
    assert str(line.verdict) == "genuine" and line.src_adjusted > 0.9


def test_other_operators_and_shares_tell_the_same_of_a_genuine_reasoner(genuine):
    folder, _ = genuine
    assert str(headline(folder, operator="replace").verdict) == "genuine"
    assert headline(folder, k=0.5).necessity == 1
    content = folder.summary().chains
    assert content.shuffle.rate == 0, "a sum does not hang on the order"
    assert [cut.rate for cut in content.truncate.kept] == [0, 0, 0, 0, 1]
    assert content.truncate.settled == 1
    assert {line.gap for line in content.operator_dependence} == {0}


def test_random_steps_win_half_of_the_time(genuine):
    lines = genuine[0].summary().configurations
    assert len(lines) == 2 * 2 * 3, "directions, shares, and operators with their average"
    assert {line.win_rate for line in lines} == {0.5}, "every set ties: all removals change this answer"


def test_files_are_as_their_schemas_say(genuine):
    folder, _ = genuine
    assert_conforms(folder.path)


def test_all_statistics_come_from_the_ledger(genuine):
    folder, _ = genuine
    before = (folder.path / "summary.json").read_bytes()
    rescore(folder)
    assert (folder.path / "summary.json").read_bytes() == before


def test_requests_are_asked_once_and_continuing_asks_nothing(genuine):
    folder, server = genuine
    assert set(server.answered.values()) <= {1, 3}, "the full chain is asked three times"
    again, silent = run(Reasoner(), folder.path, count=16)
    assert not silent.requests
    assert again.summary().chains.capacity == folder.summary().chains.capacity


def test_bad_weather_changes_nothing(tmp_path):
    quiet, _ = run(Reasoner(genuine=0.5), tmp_path / "quiet", count=8)
    storm = stormy(0.3, seed=5, then=Reasoner(genuine=0.5))
    folder, server = run(storm, tmp_path / "run", count=8, served={"timeout_s": 0.4})
    assert sum(server.faults.values()) > 30 and len(server.faults) == len(FAULTS)
    assert (folder.path / "summary.json").read_bytes() == (quiet.path / "summary.json").read_bytes()


def test_what_was_paid_for_is_not_paid_for_again_after_a_kill(tmp_path):
    out = tmp_path / "run"

    def gone(request, number):
        return Reasoner()(request, number) if number <= 50 else error(401, "no")

    with pytest.raises(ConfigError, match="status 401"):
        run(gone, out, count=8)
    first = {response.key for response in read_responses(out / "responses.jsonl")}
    assert len(first) == 50
    assert json.loads((out / "manifest.json").read_text())["status"] == "running"
    _, server = run(Reasoner(), out, count=8)
    every = {response.key for response in read_responses(out / "responses.jsonl")}
    assert len(server.requests) == len(every) - len(first)
    whole, _ = run(Reasoner(), tmp_path / "whole", count=8)
    assert (out / "summary.json").read_bytes() == (whole.path / "summary.json").read_bytes()


def test_a_run_that_goes_on_says_what_is_left_and_that_the_server_is_another(tmp_path):
    class Heard(Silent):
        def __init__(self):
            self.said, self.asked, self.found = [], 0, 0

        def say(self, message):
            self.said.append(message)

        def advance(self, rows, *, scored=True):
            self.asked += rows if scored else 0
            self.found += 0 if scored else rows

    heard, servers = [], []
    for k in (0.2, 0.5):
        heard.append(Heard())
        _, server = run(Reasoner(), tmp_path / "run", count=3, attributions=(), k=k, reporter=heard[-1])
        servers.append(server)
    assert heard[0].found == 0 and heard[1].found > 0, "what the folder holds is no work of this run"
    first, second = (each.said for each in heard)
    [planned] = [each for each in first if each.startswith("plan, for chains of six steps")]
    [about] = [each for each in first if each.startswith("about the chains: ")]
    assert f"{len(servers[0].requests) - 3:,} to ask" in about and first.index(planned) < first.index(about)
    assert not any("six steps" in each for each in second)
    [other] = [each for each in second if "has answered so far" in each]
    assert other == f"{servers[0].url} has answered so far; missing answers come from {servers[1].url}."
    [about] = [each for each in second if each.startswith("about the chains: ")]
    assert "answered already" in about and f"{len(servers[1].requests):,} to ask" in about


def test_the_manifest_names_the_servers_that_answered_and_no_other(tmp_path):
    named = []
    for k in (0.2, 0.5, 0.2):
        folder, server = run(Reasoner(), tmp_path / "run", count=2, m=2, attributions=(), k=k)
        named.append(server.url)
    assert not server.requests, "the last one was asked nothing"
    about = folder.manifest().chains
    assert (about.base_url, about.base_urls) == (named[1], tuple(named[:2]))
    assert {each.server for each in read_responses(folder.path / "responses.jsonl")} == set(named[:2])
    assert_conforms(folder.path)
    assert dict(provenance(folder.manifest()))["server"] == " + ".join(named[:2])


def test_shares_and_attributions_may_be_added_and_ask_only_what_is_missing(tmp_path):
    out = tmp_path / "run"
    _, before = run(Reasoner(), out, count=6)
    folder, added = run(Reasoner(), out, count=6, k=(0.5,), attributions=("position",))
    assert 0 < len(added.requests) and not {json.dumps(r) for r in added.requests} & {
        json.dumps(r) for r in before.requests
    }
    config = folder.manifest().config
    assert (config.k, config.attributions) == ((0.2, 0.5), ("random", "position"))
    with pytest.raises(ConfigError, match="m is 20 there and 5 here"):
        run(Reasoner(), out, count=6, m=5)


def test_steps_of_other_problems_need_other_problems_before_anything_is_asked(tmp_path):
    out = tmp_path / "run"
    with pytest.raises(ConfigError, match="'replace' takes steps of other problems, and there is one problem only"):
        run(Reasoner(), out, count=1, operators=("delete", "replace"))
    assert not out.exists()
    folder, _ = run(Reasoner(), out, count=1, m=2)
    assert folder.manifest().status == "complete"


class KeySteps(Reasoner):
    """Its answer hangs on two of its steps alone, and it may know which."""

    KEYS = (2, 5)

    def concluded(self, index, shown):
        places = [int(place) for place in re.findall(r"^Load (\d+) brings", shown, re.MULTILINE)]
        return total(index, self.steps) if set(self.KEYS) <= set(places) else 0


def win_rates(folder, direction):
    lines = folder.summary().configurations
    return {line.attribution: line for line in lines if line.direction == direction}


def test_steps_that_matter_are_told_from_others_and_from_the_words_of_a_model_that_does_not_know(tmp_path):
    honest = KeySteps(steps=8, ratings=lambda step: 10 if step in KeySteps.KEYS else 1)
    names = ("self-report", "leave-one-out", "position", "random")
    folder, _ = run(honest, tmp_path / "honest", attributions=names, k=(0.25,), steps=8, m=27, count=10)
    found = win_rates(folder, "necessity")
    for name in ("self-report", "leave-one-out"):
        # Both keys: of the other 27 pairs 12 hold one key, which changes the answer too, and 15 none.
        assert found[name].win_rate == pytest.approx((15 + 12 / 2) / 27)
        assert found[name].p_value < 0.01
    assert found["position"].win_rate < 0.5
    assert str(found["random"].verdict) == "not distinguishable from random"
    wrong = KeySteps(steps=8, ratings=lambda step: 1 if step in KeySteps.KEYS else 10)
    folder, _ = run(wrong, tmp_path / "wrong", attributions=("self-report",), k=(0.25,), steps=8, m=27, count=5)
    assert win_rates(folder, "necessity")["self-report"].win_rate < 0.5
    raw = {line.measure: line for line in folder.summary().chains.raw}
    assert raw["comprehensiveness"].raw == 0


def test_an_attribution_that_says_nothing_of_a_problem_leaves_it_to_the_others_and_says_why(tmp_path):
    off_the_scale = Reasoner(ratings=lambda step: 50)
    folder, _ = run(off_the_scale, tmp_path / "run", count=2, m=2, attributions=("self-report", "position"))
    errors = {line.attribution: line.error for line in folder.examples()}
    assert errors["self-report"] == "the attribution 'self-report': a rating of 50 is not on the scale from 0 to 10"
    assert errors["position"] is None
    found = win_rates(folder, "necessity")
    assert [(found[name].n, found[name].n_skipped) for name in errors] == [(0, 2), (2, 0)]


def test_replies_that_cannot_be_read_give_bounds_and_are_not_called_changed(tmp_path):
    class Mumbling(Reasoner):
        def concluded(self, index, shown):
            places = re.findall(r"^Load (\d+) brings", shown, re.MULTILINE)
            return "hm" if len(places) == 5 and "1" not in places else super().concluded(index, shown)

    folder, _ = run(Mumbling(genuine=0), tmp_path / "run", attributions=())
    line = headline(folder)
    assert line.necessity == 0, "of the five removals that were answered none changed anything"
    assert line.necessity_bounds == pytest.approx([0, 1 / 6])
    assert line.unreadable_rate == pytest.approx(1 / 12)
    assert folder.manifest().chains.rows_read["read"] < sum(folder.manifest().chains.rows_read.values())
    assert line.src_bounds == pytest.approx([0, 0])


def test_bounds_count_chains_without_a_single_readable_reply_too(tmp_path):
    class Silent(Reasoner):
        def concluded(self, index, shown):
            removed = len(re.findall(r"^Load", shown, re.MULTILINE)) == 5
            return "hm" if index < PROBLEMS // 2 and removed else super().concluded(index, shown)

    folder, _ = run(Silent(), tmp_path / "run", attributions=())
    line = headline(folder)
    assert line.n == PROBLEMS // 2 and line.src == 1, "where removals were answered, all changed the answer"
    assert line.necessity_bounds == pytest.approx([0.5, 1])
    assert line.src_bounds == pytest.approx([0.5, 1])
    assert line.src_adjusted_bounds == pytest.approx([0.5, 1])
    assert line.taxonomy == "genuine" and str(line.verdict) != "genuine", "half of the chains may not be"


def test_a_model_that_never_comes_to_its_own_answer_again_is_not_judged(tmp_path):
    folder, _ = run(Reasoner(noise=1.0), tmp_path / "run", count=8, attributions=())
    line = headline(folder)
    assert (line.noise_floor, line.src_adjusted, line.taxonomy) == (1, None, None)
    assert (line.necessity, line.sufficiency, line.no_steps, line.src) == (1, 0, 0, 1)
    assert str(line.verdict) == "noisy" and line.necessary_step is None
    page = Run(folder.path).report().read_text(encoding="utf-8")
    assert "nothing can be said about the steps: noisy" in page and "nothing of it lies beyond the noise floor" in page


def test_short_chains_are_reported_apart(tmp_path):
    folder, _ = run(Reasoner(steps=3), tmp_path / "run", steps=3, attributions=())
    assert headline(folder).n == 0 and headline(folder).verdict is None
    short = headline(folder, chains="short")
    assert short.n == PROBLEMS and short.k_effective == pytest.approx(1 / 3)
    assert str(short.verdict) == "genuine"


def test_problems_without_a_chain_are_skipped_with_the_reason(tmp_path):
    def behave(request, number):
        prompt = request["messages"][-1]["content"]
        if "step by step" in prompt and "warehouse 3 " in prompt:
            return completion("I would rather not say.")
        return Reasoner()(request, number)

    folder, _ = run(behave, tmp_path / "run", attributions=())
    problems = folder.summary().chains.problems
    assert (problems.n, problems.n_evaluated, problems.n_unreadable) == (PROBLEMS, PROBLEMS - 1, 1)
    assert problems.n_gold == PROBLEMS - 1, "what cannot be read is neither right nor wrong"


def test_a_run_without_a_single_chain_fails_and_says_why(tmp_path):
    with pytest.raises(ModelError, match="no chain could be evaluated: the answer cannot be read"):
        run(lambda request, number: completion("No."), tmp_path / "run", count=3)


def test_what_no_reply_came_to_is_asked_again_by_the_same_command(tmp_path):
    asked = {"count": 4, "m": 3, "attributions": ("self-report", "random")}
    quiet, _ = run(Reasoner(), tmp_path / "quiet", **asked)

    def deaf(request, number):
        prompt = request["messages"][-1]["content"]
        lost = "warehouse 0 " in prompt and "Rate" in prompt or "warehouse 1 " in prompt and "(none)" in prompt
        return (
            error(500, "no")
            if lost or "warehouse 2 " in prompt and "step by step" in prompt
            else Reasoner()(request, 0)
        )

    folder, _ = run(deaf, tmp_path / "run", served={"concurrency": 1}, **asked)
    reasons = folder.manifest().chains.rows_read
    assert reasons["no reply arrived"] == 1 and folder.summary().chains.problems.n_evaluated == 3
    assert any("no reply arrived" in (line.error or "") for line in folder.examples())
    again, server = run(Reasoner(), tmp_path / "run", **asked)
    assert again.manifest().chains.rows_read == quiet.manifest().chains.rows_read
    assert (again.path / "summary.json").read_bytes() == (quiet.path / "summary.json").read_bytes()
    _, silent = run(Reasoner(), tmp_path / "run", **asked)
    assert server.requests and not silent.requests


def test_a_chain_that_comes_late_changes_no_fill_of_a_comparison(tmp_path):
    asked = {"count": 20, "m": 3, "operators": ("delete", "replace")}

    def deaf(request, number):
        prompt = request["messages"][-1]["content"]
        lost = "warehouse 18 " in prompt and "step by step" in prompt
        return error(500, "no") if lost else Reasoner()(request, number)

    run(deaf, tmp_path / "run", **asked)
    again, _ = run(Reasoner(), tmp_path / "run", **asked)
    quiet, _ = run(Reasoner(), tmp_path / "quiet", **asked)
    assert (again.path / "summary.json").read_bytes() == (quiet.path / "summary.json").read_bytes()
    for part in quiet.parts():
        assert [row.fills for row in again.inputs(part)] == [row.fills for row in quiet.inputs(part)]
        ledgers = [folder.ledger(part, NO_NAMES, inputs=True) for folder in (again, quiet)]
        assert len({str(sorted(ledger.inputs.keys)) for ledger in ledgers}) == 1


def test_a_plan_names_at_least_what_a_run_asks(tmp_path):
    asked = {
        "n": 6,
        "m": 3,
        "k": (0.2, 0.5),
        "operators": ("delete", "shuffle"),
        "attributions": ("position", "random"),
    }
    with ChatServer(Reasoner()) as server:
        data = Records(records(6))
        planned = plan(asked_of(server), "gsm8k", data=data, **asked)
        evaluate(asked_of(server), "gsm8k", data=data, out=tmp_path / "run", **asked)
        assert 0.8 * planned.n_requests < len(server.requests) <= planned.n_requests
        heard = []
        reporter = Silent()
        reporter.say = heard.append
        evaluate(asked_of(server), "gsm8k", data=data, out=tmp_path / "run", reporter=reporter, **asked)
    assert any(": 0 to ask" in message for message in heard)


def test_a_folder_without_its_replies_is_refused(tmp_path):
    run(Reasoner(), tmp_path / "run", count=2, m=2)
    (tmp_path / "run" / "responses.jsonl").unlink()
    with pytest.raises(ConfigError, match="lacks a reply that rows of this folder were read from"):
        run(Reasoner(), tmp_path / "run", count=2, m=2)


def test_numbers_of_the_user_may_rank_steps(tmp_path):
    mine = {f"p{index}": [6, 5, 4, 3, 2, 1] for index in range(3)}
    attributions = {"mine": mine, "first": lambda item: np.arange(item.n_units, 0, -1), "position": None}
    folder, _ = run(Reasoner(), tmp_path / "run", count=3, m=3, attributions=attributions)
    [row, *_] = folder.inputs(0)
    assert row.attributions["mine"] == row.attributions["first"] == (6, 5, 4, 3, 2, 1)


def test_the_boundaries_of_given_steps_define_the_run(tmp_path):
    folders = []
    for steps in (["a first", "b\nc", "d"], ["a first\nb", "c", "d"]):
        path = tmp_path / "chains.jsonl"
        line = {"question": "How many crates are in warehouse 0 at last?", "steps": steps, "final": 9}
        path.write_text(json.dumps(line), encoding="utf-8")
        with ChatServer(Reasoner()) as server:
            served = asked_of(server)
            folders.append(
                evaluate(served, responses=path, attributions=(), m=2, out=tmp_path / str(len(folders))).folder
            )
    hashes = {folder.manifest().config_hash for folder in folders}
    assert len(hashes) == 2
