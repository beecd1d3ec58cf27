"""What a model says of itself: asked, read, ranked, kept, and never scored where it cannot be read."""

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.cli.conftest import ice  # noqa: F401
from tests.results.test_schemas import assert_conforms
from tests.small_runs import Waves, line_of, lines_of, run, task_of

from ice_eval.attributions import method_of
from ice_eval.errors import ConfigError, ModelError
from ice_eval.models import Generated
from ice_eval.report import cost_table, notes
from ice_eval.tasks import load_task

NAME = "self-explanation"
TEXTS = [
    "a slow film with a gorgeous end and a witty host",
    "the worst plot of the year and a rude cast",
    "music that I loved and a town that I did not",
    "an old house by the sea where nobody speaks",
]
ANSWERS = ["gorgeous, witty, lovely, film", "1. rude\n2. the worst", "I cannot say", None]


class Scripted(Waves):
    """Answers as it is told to."""

    offers = Waves.offers | {"generate"}

    def __init__(self, answers=None):
        super().__init__()
        self.prompts, self._answers = [], dict(zip(TEXTS, ANSWERS, strict=True)) if answers is None else answers

    def generate(self, prompts, *, turns, max_tokens, stop):
        self.prompts += [(prompt, turns, max_tokens, stop) for prompt in prompts]
        found = [next(answer for text, answer in self._answers.items() if text in prompt) for prompt in prompts]
        return [Generated(answer, 0 if answer is None else 100) for answer in found]


def inputs_of(found):
    return [row for part in found.folder.parts() for row in found.folder.inputs(part)]


@pytest.fixture(scope="module")
def scripted():
    model = Scripted()
    return model, run(TEXTS, model=model, attributions=[NAME, "random"], m=9, k=[0.2])


def test_words_rank_by_the_order_in_which_they_are_mentioned(scripted):
    rows = inputs_of(scripted[1])
    #                                    a slow film with a gorgeous end and a witty host
    assert rows[0].attributions[NAME] == (0, 0, 1, 0, 0, 3, 0, 0, 0, 2, 0)
    assert rows[1].attributions[NAME] == (1, 1, 0, 0, 0, 0, 0, 0, 2, 0)
    first, second = (line.rationale for line in lines_of(scripted[1], attribution=NAME)[:2])
    assert first == (5, 9)
    assert 8 in second and set(second) <= {0, 1, 8}, "a draw decides between the words of a phrase"


def test_what_was_said_is_kept_with_what_came_of_it(scripted):
    answers = [row.answers[NAME] for row in inputs_of(scripted[1])]
    assert [answer.text for answer in answers] == ANSWERS
    assert [(answer.n_named, answer.n_absent) for answer in answers] == [(3, 1), (2, 0), (0, 1), (0, 0)]
    assert [answer.problem for answer in answers[:2]] == [None, None]
    assert all("random" not in row.answers for row in inputs_of(scripted[1]))


def test_an_answer_that_cannot_be_read_is_counted_and_its_example_takes_no_part(scripted):
    found = scripted[1]
    line = line_of(found, attribution=NAME)
    assert (line.n, line.n_skipped) == (2, 2)
    assert line_of(found, attribution="random").n == 4
    assert [line.error for line in lines_of(found, attribution=NAME)[2:]] == [
        "the attribution 'self-explanation': no word that the model's answer names is in the text (1 named)",
        "the attribution 'self-explanation': the question is longer than what the model takes",
    ]
    assert all(np.isnan(row.attributions[NAME]).all() for row in inputs_of(found)[2:])
    assert "2 examples were skipped for self-explanation; examples.parquet says why." in notes(found.folder.summary())


def test_the_model_is_asked_about_the_text_and_the_label_it_chose(scripted):
    model, found = scripted
    labels = found.folder.manifest().labels
    for row, (prompt, turns, max_tokens, stop) in zip(inputs_of(found), model.prompts, strict=True):
        worked, asked = prompt.split("\n\n")
        assert asked == (
            f"Text: {row.fields['text']}\nLabel: {labels[row.target]}\nThe 5 most important words for this label:"
        )
        assert worked.endswith("important words for this label: cold, rude, waiter, soup, arrived")
        assert (turns, max_tokens, stop) == (None, 48, "\n")


def test_several_texts_are_shown_under_their_names():
    model = Scripted({"Premise: a dog runs\nHypothesis: a cat sleeps here\nLabel: ": "cat, dog"})
    pairs = [{"premise": "a dog runs", "hypothesis": "a cat\n sleeps here"}]
    task = task_of(pairs, prompt="{premise} Then: {hypothesis} ?", explain=("hypothesis",))
    found = run(task, model=model, attributions=[f"{NAME}:words=2:max-tokens=9", "random"], m=2)
    [row] = inputs_of(found)
    assert row.attributions[f"{NAME}:words=2:max-tokens=9"] == (0, 1, 0, 0), "only words of the explained field"
    [(prompt, _, max_tokens, _)] = model.prompts
    assert "The 2 most important words for this label: cold, rude\n\n" in prompt and max_tokens == 9


def test_costs_and_answers_fit_the_schema_and_the_tables(scripted):
    manifest = scripted[1].folder.manifest()
    assert_conforms(scripted[1].path)
    assert manifest.cost.answer_tokens == {NAME: 300} and manifest.cost.attribution_tokens == 300
    table = cost_table(replace(manifest, cost=replace(manifest.cost, attribution_seconds={NAME: 3.0, "random": 1.0})))
    assert table.header[-1] == "tokens of answers"
    assert [row[-1] for row in table.rows] == ["300", "–"]


def test_show_prints_what_was_said(scripted, ice):  # noqa: F811
    path = scripted[1].path
    shown = ice("show", path, "--example", 0).out
    assert (
        "self-explanation: the model answered 'gorgeous, witty, lovely, film' (3 words of the text, 1 others)" in shown
    )
    assert "self-explanation: the question is longer" in ice("show", path, "--example", 3).out
    answer = json.loads(ice("show", path, "--example", 2, "--json").out)["answers"][NAME]
    assert answer["text"] == "I cannot say" and answer["problem"].startswith("no word")


def test_a_model_is_asked_once_and_adding_the_attribution_later_changes_nothing(scripted, tmp_path):
    model = Scripted()
    settings = {"model": model, "m": 9, "out": tmp_path / "run"}
    run(TEXTS, attributions=["random"], **settings)
    assert model.prompts == []
    found = run(TEXTS, attributions=[NAME], **settings)
    assert len(model.prompts) == 4
    for name in (NAME, "random"):
        assert line_of(found, attribution=name) == line_of(scripted[1], attribution=name)
        assert lines_of(found, attribution=name) == lines_of(scripted[1], attribution=name)
    again = run(TEXTS, attributions=[NAME, "random"], operators=["delete", "mask-unk"], **settings)
    assert len(model.prompts) == 4
    assert [row.answers for row in inputs_of(again)] == [row.answers for row in inputs_of(scripted[1])]
    assert again.folder.manifest().cost.answer_tokens == {NAME: 300}


def test_no_readable_answer_at_all_fails_the_run_with_the_reason():
    model = Scripted(dict.fromkeys(TEXTS, "no"))
    with pytest.raises(ModelError, match=r"no example could be evaluated .*no word that the model's answer names"):
        run(TEXTS, model=model, attributions=[NAME], m=9)


def test_tiny_models_talk_gibberish_and_the_run_goes_on(tiny, tmp_path):
    found = run(load_task("demo"), model=tiny("gpt2"), attributions=[f"{NAME}:max_tokens=8", "random"], n=3, m=3)
    answers = [row.answers[f"{NAME}:max_tokens=8"] for row in inputs_of(found)]
    assert all(answer.text is not None and answer.problem is not None for answer in answers)
    line = line_of(found, attribution=f"{NAME}:max_tokens=8", operator="delete")
    assert (line.n, line.n_skipped, line.flags) == (0, 3, ("no_examples",))
    assert line_of(found, attribution="random", operator="delete").n == 3


def test_in_a_chat_the_question_is_a_turn_after_a_worked_one(tiny, reviews, explained):
    model, heard = tiny("llama", chat=True), []
    model.generate = lambda prompts, **how: heard.append((prompts, how)) or [Generated("film", 9)] * len(prompts)
    items, _ = explained(model, reviews, f"{NAME}:words=3", n=1, chat=True)
    [([prompt], how)] = heard
    assert prompt.startswith(f"Text: {items[0].fields['text']}\nLabel: positive\nList the 3 words of the text")
    [(role, question), answer] = how["turns"]
    assert role == "user" and question.endswith(prompt.rpartition("\n")[2])
    assert answer == ("assistant", "cold, rude, waiter") and how["stop"] is None


@pytest.mark.parametrize("family", ["bert", "toy"])
def test_a_model_that_writes_nothing_stops_at_planning(tiny_folder, ice, tmp_path, family):  # noqa: F811
    model = "toy" if family == "toy" else tiny_folder(family)
    done = ice("run", "--model", model, "--task", "demo", "--attributions", f"{NAME},random", "--out", tmp_path / "run")
    assert done.code == 2 and not (tmp_path / "run").exists()
    message = " ".join(done.err.split())
    assert "the attribution 'self-explanation' needs generate, which the model" in message
    assert "does not offer. Attributions that work with it:" in message


def test_with_the_whole_prompt_it_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="'self-explanation' asks for words of the text, and with scope 'prompt'"):
        run(TEXTS, model=Scripted(), attributions=[NAME], scope="prompt", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("option", ["words", "max_tokens"])
def test_numbers_below_one_are_refused(option):
    with pytest.raises(ConfigError, match=f"self-explanation: {option} = 0; at least 1 is needed"):
        method_of(f"{NAME}:{option}=0")


@pytest.mark.slow
@pytest.mark.smollm2
@pytest.mark.parametrize("chat", [False, True])
def test_a_small_language_model_names_words_of_at_least_a_third_of_the_texts(smollm2, explained, chat):
    items, found = explained(smollm2, load_task("demo"), f"{NAME}:max_tokens=24", n=12, chat=chat)
    assert sum(np.isfinite(values).all() for values in found) >= len(items) / 3
