"""Tables about chains of thought, cell by cell against the grids' `bench.json`, of scripted reasoners."""

import json
import re
import shutil

import pytest
from tests.helpers import save_tiny
from tests.servers.chat_server import ChatServer, completion
from tests.subjects.chain.conftest import CHAT_TEMPLATE
from tests.subjects.chain.reasoners import LOADS, Reasoner, loads

from ice_eval.errors import ConfigError
from ice_eval.models.causal import CausalLM
from ice_eval.pipeline import Silent
from ice_eval.reproduce import EXPERIMENTS, ITEMS, Reproduction, chosen
from ice_eval.reproduce.contents import eraser, steps_and_tokens
from ice_eval.reproduce.findings import findings
from ice_eval.servers import Completion, TokenUsage

LABELS = ["tab:eraser-comparison", "tab:step_vs_token", "tab:frontier_cot"]
STEPS = 5
QUESTION = "How many crates are in warehouse {} at last?"
OPTIONS = ["red", "green", "blue", "white"]


def answer(prompt, total):
    """The answer of the kind that the question asks for, from a sum."""
    if "speak well of the film" in prompt:
        return ("negative", "positive")[total % 2]
    if "section of a newspaper" in prompt:
        return ("World", "Sports", "Business", "Sci/Tech")[total % 4]
    return "ABCD"[total % 4] if "white" in prompt else total


class Scripted(Reasoner):
    """Answers questions of every kind."""

    def __call__(self, request, number):
        prompt = request["messages"][-1]["content"]
        found = super().__call__(request, number)["choices"][0]["message"]["content"]
        change = re.compile(r"Answer: (\d+)")
        return completion(change.sub(lambda each: f"Answer: {answer(prompt, int(each[1]))}", found))


def converse(model, chats):
    """A local reasoner that adds up the steps it is shown in its begun turn, and writes them if it has begun none."""
    for place, chat in enumerate(chats):
        role, last = chat.messages[-1]
        index = int(re.search(r"warehouse (\d+)", " ".join(text for _, text in chat.messages))[1])
        lines = [f"Load {n} brings {load} crates." for n, load in enumerate(loads(index, STEPS), 1)]
        total = sum(map(int, LOADS.findall(last)))
        text = f" {total}" if role == "assistant" else "\n".join([*lines, f"Answer: {sum(loads(index, STEPS))}"])
        yield place, Completion(status="ok", text=text, finish_reason="stop", usage=TokenUsage(10, 5))


@pytest.fixture(scope="module")
def problems(tmp_path_factory):
    folder = tmp_path_factory.mktemp("problems")
    rows = {name: [] for name in ("gsm8k", "commonsense_qa", "arc_challenge", "medqa", "sst2", "ag_news")}
    for index in range(2):
        question, total = QUESTION.format(index), sum(loads(index, STEPS))
        rows["gsm8k"].append({"question": question, "answer": f"#### {total}"})
        for name in ("commonsense_qa", "arc_challenge", "medqa"):
            rows[name].append({"question": question, "choices": OPTIONS, "answer": "ABCD"[total % 4]})
        rows["sst2"].append({"text": question, "label": ("negative", "positive")[total % 2]})
        rows["ag_news"].append({"text": question, "label": 0})
    for name, own in rows.items():
        (folder / f"{name}.jsonl").write_text(
            "".join(json.dumps({"id": str(i), **row}) + "\n" for i, row in enumerate(own))
        )
    return folder


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A tiny model that chats, under the name of a model of the paper."""
    folder = tmp_path_factory.mktemp("models") / "Qwen3-0.6B"
    folder.mkdir()
    save_tiny(folder, "llama")
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE)
    return folder


@pytest.fixture(scope="module")
def work(problems, tiny, tmp_path_factory):
    """The three grids of chains, finished; the reports of single runs are not what is tested here."""
    with pytest.MonkeyPatch.context() as patch, ChatServer(Scripted(steps=STEPS)) as server:
        patch.delenv("OPENAI_API_KEY", raising=False)
        patch.setattr("ice_eval.api.run.Run.report", lambda *_, **__: None)
        patch.setattr("ice_eval.bench.run.write_grid_figures", lambda *_: None)
        patch.setattr(CausalLM, "converse", converse)
        models = {"steps": [str(tiny)], "eraser": ["openai:Grok4"], "": ["openai:Grok4", "openai:other"]}
        given = {
            "models": models,
            "n": 2,
            "data_dir": str(problems),
            "base_url": server.url,
            "loading": {"device": "cpu"},
        }
        found = Reproduction.opened(tmp_path_factory.mktemp("steps"), given)
        found.run(chosen(LABELS), executor=None, reporter=Silent())
        yield found


@pytest.fixture(scope="module")
def made(work):
    return {each.item.label: each for each in work.written(chosen(LABELS), Silent())}


def bench(work, experiment):
    return json.loads((work.path / "grids" / experiment / "bench.json").read_text())


def numbers(made, label, quantity):
    return {tuple(v.place.values()): v.ours for v in made[label].values if v.quantity == quantity}


def test_all_three_are_done_and_every_file_opens(work, made):
    assert {each.label: each.state for each in work.progress(chosen(LABELS))} == dict.fromkeys(LABELS, "done")
    for label in LABELS:
        found = made[label]
        texts = {kind: found.folder / f"{found.item.file}.{kind}" for kind in ("tex", "csv", "svg", "pdf")}
        assert texts["pdf"].read_bytes()[:5] == b"%PDF-" and texts["svg"].read_text("utf-8").startswith("<svg")
        assert r"\begin{tabular}" in texts["tex"].read_text("utf-8")


def test_tokens_and_steps_equal_the_summary(work, made):
    chains = bench(work, "steps")["chains"]
    [line] = [x for x in chains["capacity"] if (x["operator"], x["k"], x["chains"]) == ("delete", 0.2, "all")]
    tokens = {
        x["direction"]: x["win_rate"]
        for x in chains["levels"]
        if (x["unit"], x["attribution"]) == ("token", "attention")
    }
    for quantity in ("necessity", "sufficiency"):
        assert numbers(made, "tab:step_vs_token", quantity) == {
            ("Qwen3-0.6B", "token"): tokens[quantity],
            ("Qwen3-0.6B", "step"): line[quantity],
        }
    assert (line["necessity"], line["sufficiency"]) == (1, 0)  # it adds up what it is shown
    published = {(v.place["unit"], v.quantity): v.published for v in made["tab:step_vs_token"].values}
    assert published["token", "necessity"] == 0.48 and published["step", "sufficiency"] == 0.04
    header = made["tab:step_vs_token"].table.header
    assert header == ((("", 1), ("Token-level", 2), ("Step-level", 2)),
                      (("Model", 1), ("Nec", 1), ("Suf", 1), ("Nec", 1), ("Suf", 1)))  # fmt: skip


def test_capacity_and_accuracy_equal_the_summary(work, made):
    content, names = bench(work, "frontier"), {"gsm8k": "gsm8k", "sst2/reasoning": "sst2"}
    lines = [x for x in content["chains"]["capacity"] if (x["operator"], x["k"], x["chains"]) == ("delete", 0.2, "all")]
    models = {"openai:Grok4": "Grok4", "openai:other": "openai:other"}
    expected = {(models[x["model"]], names[x["task"]]): x["src"] for x in lines}
    assert numbers(made, "tab:frontier_cot", "src") == expected and len(expected) == 4
    assert numbers(made, "tab:frontier_cot", "accuracy") == {
        (models[x["model"]], names[x["task"]]): x["accuracy"] for x in content["runs"]
    }
    assert {v.published for v in made["tab:frontier_cot"].values} == {None}, "the paper names none of its models"


def test_raw_scores_and_win_rates_equal_the_summary(work, made):
    names = {"sst2/reasoning": "sst2", "ag_news/reasoning": "ag_news", "arc_challenge": "arc"}
    lines = {
        ("Grok4", names.get(x["task"], x["task"]), x["measure"]): x
        for x in bench(work, "eraser")["chains"]["raw"]
        if x["attribution"] == "self-report" and x["operator"] == "delete"
    }
    assert len(lines) == 6 * 2, "tasks and measures"
    for quantity in ("raw", "win_rate"):
        assert numbers(made, "tab:eraser-comparison", quantity) == {key: x[quantity] for key, x in lines.items()}
    agree = {True: "yes", False: "no"}
    assert numbers(made, "tab:eraser-comparison", "agree") == {
        key: agree[(x["raw"] >= 0.5) == (x["win_rate"] >= 0.55)] for key, x in lines.items()
    }
    known = {(*v.place.values(), v.quantity): v.published for v in made["tab:eraser-comparison"].values}
    assert known["Grok4", "arc", "sufficiency", "raw"] == 0.75 and known["Grok4", "arc", "sufficiency", "agree"] == "no"
    assert known["Grok4", "medqa", "comprehensiveness", "agree"] == "yes"
    assert known["Grok4", "gsm8k", "comprehensiveness", "raw"] is None
    assert len(made["tab:eraser-comparison"].table.blocks[0][1]) == 12


def test_the_finding_pools_all_configurations(work):
    sources = work.sources()
    pairs = list(
        zip(*([v.ours for v in eraser(sources) if v.quantity == name] for name in ("raw", "win_rate")), strict=True)
    )
    only = sum(raw >= 0.5 > 0 and rate < 0.55 for raw, rate in pairs)
    differ = sum((raw >= 0.5) != (rate >= 0.55) for raw, rate in pairs)
    [found] = [each for each in findings(sources) if each.published == "49 of 53 (92 %)"]
    assert found.ours.startswith(f"{only} of {differ}, among 12 configurations")


def test_two_models_that_the_paper_would_call_alike_keep_their_own_names(work, tiny, tmp_path):
    """The same weights in two folders of one name: no row hides another."""
    other = tmp_path / "Qwen3-0.6B"
    shutil.copytree(tiny, other)
    shutil.copytree(work.path, tmp_path / "copy")
    again = Reproduction.opened(tmp_path / "copy", {"models": {"steps": [str(tiny), str(other)]}})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ice_eval.api.run.Run.report", lambda *_, **__: None)
        patch.setattr("ice_eval.bench.run.write_grid_figures", lambda *_: None)
        patch.setattr(CausalLM, "converse", converse)
        again.run(chosen(["tab:step_vs_token"]), executor=None, reporter=Silent())
    names = {value.place["model"] for value in steps_and_tokens(again.sources())}
    assert names == {"Qwen3-0.6B", f"Qwen3-0.6B ({tmp_path})"}


def test_models_here_reason_in_tokens_and_served_ones_in_steps_alone(tmp_path):
    given = {"models": {"": ["smollm2", "openai:chat"]}, "base_url": "http://127.0.0.1:9/v1"}
    work = Reproduction.opened(tmp_path, given)
    assert [model.ref for model in work.grid("steps").models] == ["smollm2"]
    assert [model.ref.base_url for model in work.grid("eraser").models] == ["http://127.0.0.1:9/v1"]
    toy = Reproduction.opened(tmp_path / "toy", {"models": {"": ["toy"]}})
    with pytest.raises(ConfigError, match="steps needs a model with a chat template, which the toy is not: --models"):
        toy.run(chosen(["tab:step_vs_token"]), executor=None, reporter=Silent())
    assert [each.state for each in toy.progress(chosen(["tab:step_vs_token"]))] == ["needs data"]
    assert {name for name, each in EXPERIMENTS.items() if each.steps} == {
        e for label in LABELS for e in ITEMS[label].experiments
    }
