"""Functions from texts to probabilities, as models."""

import re
import runpy
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import ledger_rows
from tests.small_runs import shown_rows

import ice_eval as ice
from ice_eval.models import load_model
from ice_eval.models.function import TextCodec, WordCodec
from ice_eval.report import conclude
from ice_eval.results.records import NoiseGuard
from ice_eval.tasks import adhoc_task, as_functions_read, load_task

PROMPT = "Review: {text}\nSentiment:"
WEIGHTS = {"good": 2.0, "great": 3.0, "bad": -2.0, "dull": -1.0}
TEXTS = ["A good film, with a great cast!", "bad sound and a dull plot… really", "it isn't good; it's great"]


def judge(texts):
    """Probabilities of (negative, positive), from the words of each text."""
    odds = np.array([sum(WEIGHTS.get(word, 0.0) for word in re.findall(r"\w+", text.lower())) for text in texts])
    return np.stack([1 / (1 + np.exp(odds)), 1 / (1 + np.exp(-odds))], axis=1)


def task(**changes):
    return ice.Task(
        **{
            "data": ice.Records([{"text": text, "label": i % 2} for i, text in enumerate(TEXTS)]),
            "prompt": "{text}",
            "label_words": {"negative": " negative", "positive": " positive"},
            **changes,
        }
    )


def listened(**settings):
    """A run, and the texts that its function was asked about."""
    seen = []

    def spy(texts):
        seen.extend(texts)
        return judge(texts)

    return ice.evaluate(spy, task(), attributions=["random"], m=5, **settings), set(seen)


def without_spaces(text):
    return "".join(text.split())


def test_the_function_sees_the_text_that_a_row_shows():
    run, seen = listened(operators=["delete"])
    shown = {row.text for row in shown_rows(run.folder)}
    assert shown == seen
    assert set(TEXTS) <= shown  # nothing removed: the text to the letter


def test_the_function_sees_the_fills_that_a_row_shows():
    run, seen = listened(operators=["infill"])
    shown = {row.text for row in shown_rows(run.folder)}
    assert {without_spaces(text) for text in shown} == {without_spaces(text) for text in seen}
    assert set(TEXTS) <= shown & seen


def test_scores_are_the_functions_log_probabilities():
    run, seen = listened()
    exact = {without_spaces(text): text for text in seen}
    assert len(exact) == len(seen)
    for row in shown_rows(run.folder):
        np.testing.assert_allclose(row.scores, np.log(judge([exact[without_spaces(row.text)]])[0]), atol=1e-12)


def test_a_planted_explanation_is_faithful_and_its_opposite_is_not():
    planted = {
        "best": lambda item: [abs(WEIGHTS.get(text.lower(), 0.0)) for text in item.texts],
        "worst": lambda item: [-abs(WEIGHTS.get(text.lower(), 0.0)) for text in item.texts],
    }
    run = ice.evaluate(judge, task(), attributions=planted, operators=["delete"], k=0.1, m=30)
    rates = run.summary().set_index("attribution")["win_rate"]
    assert rates["best"] > 0.9
    assert rates["worst"] < 0.5


def test_two_fields_come_as_pairs():
    seen = []

    def spy(pairs):
        seen.extend(pairs)
        return np.full((len(pairs), 2), 0.5)

    pairs = task(data=ice.Records([{"a": "one two", "b": "three four"}] * 1), prompt="{a} {b}")
    ice.evaluate(spy, pairs, attributions=["random"], operators=["delete"], m=3)
    assert ("one two", "three four") in seen


def asked_of(prompt, **changes):
    """All that a function reads about the fields `a` and `b`."""
    seen = []

    def spy(texts):
        seen.extend(texts)
        return np.full((len(texts), 2), 0.5)

    row = {"a": "one two", "b": "three four", "label": 0}
    own = task(data=ice.Records([row]), prompt=prompt, **changes)
    ice.evaluate(spy, own, attributions=["random"], operators=["delete"], m=3)
    return seen


@pytest.mark.parametrize("prompt", ["{a} {b}", "{a}\n{b}"])
def test_every_input_of_a_pair_is_a_pair_even_if_a_text_is_empty(prompt):
    seen = asked_of(prompt)
    assert all(isinstance(each, tuple) and len(each) == 2 for each in seen)
    assert {("one two", "three four"), ("", "")} <= set(seen)


def test_a_prompt_with_words_reaches_a_function_as_one_text():
    seen = asked_of("First: {a}\nSecond: {b}\nAnswer:")
    assert {"First: one two\nSecond: three four\nAnswer:", "First:\nSecond:\nAnswer:"} <= set(seen)
    assert all(isinstance(each, str) for each in seen)


@pytest.mark.parametrize(("prompt", "given"), [("{a} {b}", "pairs of texts"), ("{a} and {b}", "texts")])
def test_a_function_that_expects_another_input_is_told_what_it_got(prompt, given):
    def fails(texts):
        raise ValueError("too many values to unpack")

    own = task(data=ice.Records([{"a": "one two", "b": "three four", "label": 0}]), prompt=prompt)
    with pytest.raises(ice.ModelError, match=f"fails, given {given}, failed: ValueError: too many values"):
        ice.evaluate(fails, own, attributions=["random"], operators=["delete"], m=3)


def test_a_classifier_prompt_takes_precedence_for_functions():
    assert ("one two", "three four") in asked_of("First: {a} Second: {b}", classifier_prompt="{a} {b}")


def test_a_known_task_gives_a_function_its_bare_fields():
    known = load_task("esnli")
    row = {"premise": "one two", "hypothesis": "three four", "label": "neutral"}
    seen = []

    def spy(pairs):
        seen.extend(pairs)
        return np.full((len(pairs), 3), 1 / 3)

    ice.evaluate(spy, replace(known, data=ice.Records([row])), attributions=["random"], operators=["delete"], m=3)
    assert ("one two", "three four") in seen


def test_a_task_of_python_and_the_command_give_a_function_the_same_text():
    by_command = adhoc_task(ice.Records([]), prompt=PROMPT, labels=["negative", "positive"])
    assert as_functions_read(task(prompt=PROMPT)).classifier_text == by_command.classifier_text == PROMPT


def problems_of(function, **changes):
    run = ice.evaluate(function, task(**changes), attributions=["random"], operators=["delete"], m=3)
    manifest = run.folder.manifest()
    return conclude(run.folder.summary(), manifest).problems, (*manifest.messages, *manifest.warnings)


def test_rows_that_do_not_sum_to_1_are_a_problem_that_says_what_is_done():
    problems, told = problems_of(lambda texts: 3 * judge(texts))
    [said] = [
        each for each in problems if "do not sum to 1 (the sums are 3 to 3): every row is divided by its sum" in each
    ]
    assert said in told
    assert not problems_of(judge)[0]


def test_a_function_that_depends_on_its_batch_is_reported_before_and_after():
    def relative(texts):
        odds = judge(texts)[:, 1] - judge(texts)[:, 1].mean()
        return np.stack([0.5 - odds / 2, 0.5 + odds / 2], axis=1)

    problems, told = problems_of(relative)
    assert any("depend on the other inputs of a batch: a probability changes by" in each for each in told)
    assert any("were scored again alone, a probability changed by" in each for each in problems)
    assert sum("depend on the other inputs of a batch" in each for each in problems) == 1


def test_a_batch_that_agrees_with_single_inputs_by_chance_does_not_hide_a_problem():
    """Only batches of four are answered the other way round: those of the check before the run."""
    data = ice.Records([{"text": text} for text in [*TEXTS, "a great film"]])
    problems, _ = problems_of(lambda texts: judge(texts)[:, :: -1 if len(texts) == 4 else 1], data=data)
    assert any("depend on the other inputs of a batch: a probability changes by" in each for each in problems)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_function_without_an_answer_to_the_first_text_of_each_batch_is_a_problem(value):
    def first_unknown(texts):
        found = judge(texts)
        found[0] = value
        return found

    run = ice.evaluate(first_unknown, task(), attributions=["random"], operators=["delete"], m=5)
    manifest = run.folder.manifest()
    assert manifest.noise_guard == NoiseGuard(rows=8, unscored=8, log_score=None, probability=None)
    problems = conclude(run.folder.summary(), manifest).problems
    assert any("of 8 rows that were scored again alone, 8 got NaN or infinity" in each for each in problems)
    assert any("inputs have a score only alone or only with others" in each for each in manifest.warnings)


def test_columns_in_another_order_are_a_problem():
    rows = [{"text": text, "label": label} for text, label in (("a good film", 1), ("a bad film", 0)) for _ in range(6)]
    problems, _ = problems_of(lambda texts: judge(texts)[:, ::-1], data=ice.Records(rows))
    assert any("right on 0.0 % of 12 examples, less than chance (50 %)" in each for each in problems)


def test_certain_answers_are_finite():
    def rules(texts):
        return [[0.0, 1.0] if "good" in text else [1.0, 0.0] for text in texts]

    run = ice.evaluate(rules, task(), attributions=["random"], operators=["delete"], m=5)
    assert all(np.isfinite(row.scores).all() for row in ledger_rows(run.folder))
    assert run.summary()["n"].tolist() == [3]


def two_lines(texts):
    raise ValueError("first\nsecond")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            lambda texts: [0.5] * len(texts),
            r"returned shape \(\d+,\) for \d+ texts and 2 labels \(negative, positive\)",
        ),
        (lambda texts: [[0.5, -0.5]] * len(texts), "returned negative values"),
        (lambda texts: 1 / 0, "failed: ZeroDivisionError"),
        (lambda texts: sys.exit(3), "failed: SystemExit: 3$"),
        (two_lines, r"failed: ValueError: first$"),
    ],
)
def test_a_function_that_answers_wrongly_is_told_so(answer, message):
    with pytest.raises(ice.ModelError, match=message):
        ice.evaluate(answer, task(), attributions=["random"], m=2)


def test_an_interrupt_while_a_function_computes_is_no_failure_of_it():
    with pytest.raises(SystemExit):
        ice.evaluate(lambda texts: sys.exit(130), task(), attributions=["random"], m=2)


def test_attention_is_refused_at_planning_with_what_works():
    with pytest.raises(
        ice.ConfigError, match="'attention' needs attentions.*that work with it: .*first-k, .*random, .*or your own"
    ):
        ice.evaluate(judge, task())


def test_ids_do_not_depend_on_what_was_read_before():
    one, other = WordCodec(), WordCodec()
    other.tokenize("something else first")
    assert one.tokenize(TEXTS[0]).ids.tolist() == other.tokenize(TEXTS[0]).ids.tolist()


def test_spaces_are_put_back_where_words_move():
    codec = WordCodec()
    ids = codec.tokenize("Good film, really (good)!").ids
    assert codec.decode([ids]) == ["Good film, really (good)!"]
    assert codec.decode([ids[[1, 0]]]) == ["film Good"]
    assert codec.decode([ids[[0, 2, 4]]]) == ["Good, ("]


@pytest.mark.parametrize(
    ("text", "kept", "left"),
    [
        ("well(done)!", [0, 2], "well done"),
        ("just(ly)s book", [0, 4, 5], "just s book"),
        ("3(14)", [0, 2], "3 14"),
        ("好，电影", [0, 2, 3], "好电影"),
        ("(a)", [0, 1], "(a"),
    ],
)
def test_words_that_a_removal_brings_together_stay_words(text, kept, left):
    codec = WordCodec()
    assert codec.decode([codec.tokenize(text).ids[kept]]) == [left]


@given(text=st.text() | st.text(alphabet="a1'’-.,( )好はก🇩🇪👍🏽\u0301\u200d\n"))
def test_a_whole_text_is_put_together_as_it_was(text):
    codec = TextCodec()
    assert codec.decode([codec.tokenize(text).ids]) == [text]


def test_a_function_is_found_by_its_path(tmp_path, monkeypatch):
    (tmp_path / "my_rules.py").write_text("def judge(texts):\n    return [[0.4, 0.6]] * len(texts)\nnumber = 3\n")
    (tmp_path / "my_script.py").write_text("import sys\n\nsys.exit(3)\n")
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    assert load_model("python:my_rules:judge").name == "my_rules:judge"
    assert sys.path == before
    for path, message in [
        ("my_rules:jugde", "cannot be imported"),
        ("no_such_module:f", "cannot be imported"),
        ("my_rules", "names no function"),
        ("my_rules:number", "is not a function"),
        ("my_script:main", "cannot be imported: SystemExit: 3$"),
    ]:
        with pytest.raises(ice.ConfigError, match=message):
            load_model(f"python:{path}")


def test_a_transformers_model_without_its_tokenizer_is_refused(tiny):
    with pytest.raises(ice.ConfigError, match=r"needs its tokenizer too: give the pair \(model, tokenizer\)"):
        load_model(tiny("bert").model)


def test_the_example_with_scikit_learn_runs(monkeypatch, capsys):
    pytest.importorskip("sklearn", reason="the example needs scikit-learn")
    root = Path(__file__).parents[2]
    monkeypatch.setattr(sys, "argv", ["example", str(root / "src/ice_eval/tasks/data/demo.jsonl")])
    runpy.run_path(str(root / "examples/sklearn_classifier.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "weights" in printed
    assert "verdict" in printed


def test_one_label_of_several_is_explained_by_its_own_logit():
    """As docs/bring-your-own.md shows it: other labels of the model neither help nor hinder."""
    weights = {"toxic": {"vile": 2.0, "rude": 1.0}, "funny": {"vile": 3.0, "joke": 2.5}}
    texts = ["vile rude joke then now", "a rude and vile old joke"]

    def toxic(given):
        logits = np.array([sum(weights["toxic"].get(word, 0.0) for word in text.split()) for text in given])
        yes = 1 / (1 + np.exp(-logits))
        return np.stack([1 - yes, yes], axis=1)

    data = ice.Records([{"text": text} for text in texts])
    task = ice.Task(data=data, prompt="{text}", label_words={"no": "no", "yes": "yes"})
    asked = {"attributions": ["occlusion"], "operators": ["delete"], "m": 5, "target": "yes"}
    run = ice.evaluate(toxic, task, **asked)
    for row, text in zip(run.folder.inputs(0), texts, strict=True):
        expected = [weights["toxic"].get(word, 0.0) for word in text.split()]
        np.testing.assert_allclose(row.attributions["occlusion"], expected, atol=1e-6)
    assert run.folder.manifest().warnings == ()


@pytest.mark.parametrize(("limit", "said"), [(None, None), (20, "--max-characters 20 is the limit, or what")])
def test_functions_read_whole_texts_unless_a_limit_is_asked_for(limit, said):
    texts = ["a good film " * 300, "a dull film with a great cast"]
    task = ice.Task(
        data=ice.Records([{"text": text} for text in texts]), prompt="{text}", label_words={"n": "n", "p": "p"}
    )
    run = ice.evaluate(judge, task, attributions=["random"], operators=["delete"], m=3, max_characters=limit)
    cut = [message for message in run.folder.manifest().messages if "were cut, and lost" in message]
    assert [said in message for message in cut] == [True] * (said is not None)
    assert all("longer inputs" not in message for message in cut)
