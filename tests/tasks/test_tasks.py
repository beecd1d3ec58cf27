from collections import Counter

import pytest

from ice_eval.encoding import encode
from ice_eval.errors import ConfigError
from ice_eval.models.toy import ToyCodec
from ice_eval.tasks import FileData, HubData, Piece, Records, Shot, Task, adhoc_task, load_task, named_task, tasks

LABEL_WORDS = {"negative": " negative", "positive": " positive"}


@pytest.fixture(scope="module")
def demo():
    return load_task("demo")


@pytest.fixture(scope="module")
def demo_examples(demo):
    return demo.examples()


def make_task(**changes):
    return Task(**{"data": Records([{}]), "prompt": "Review: {text}\n", "label_words": LABEL_WORDS, **changes})


@pytest.mark.parametrize("name", tasks.names())
def test_every_task_loads_under_its_name_with_a_description(name):
    task = named_task(name)
    assert task.name == name
    assert task.description.endswith(".")


def test_an_unknown_task_gets_a_suggestion():
    with pytest.raises(ConfigError, match=r"no task named 'sst-2'; did you mean 'sst2'\? Known: ag_news, "):
        load_task("sst-2")


def test_the_demo_has_enough_examples_and_as_many_of_each_label(demo_examples):
    counts = Counter(example.gold for example in demo_examples)
    assert len(demo_examples) >= 60
    assert counts[0] == counts[1] == len(demo_examples) / 2


def test_the_first_examples_of_the_demo_are_mixed(demo_examples):
    assert {2, 3, 4, 5, 6} >= {sum(e.gold for e in demo_examples[at : at + 8]) for at in range(0, 56, 8)}


def test_every_demo_rationale_is_whole_words_of_its_text(demo_examples):
    for example in demo_examples:
        assert example.human, example.id
        text = example.fields["text"]
        for span in example.human:
            marked = text[span.start : span.end]
            assert marked and marked == marked.strip(), example.id
            assert not text[: span.start][-1:].isalnum() and not text[span.end :][:1].isalnum(), example.id


def test_demo_texts_are_distinct_and_differ_from_the_shots(demo, demo_examples):
    texts = [example.fields["text"] for example in demo_examples] + [shot.fields["text"] for shot in demo.shots]
    assert len(set(texts)) == len(texts)


def test_demo_shots_show_both_labels_equally_often(demo):
    counts = Counter(shot.label for shot in demo.shots)
    assert set(counts) == set(demo.labels)
    assert len(set(counts.values())) == 1


def test_shots_are_rendered_before_the_question_with_their_label_words():
    task = make_task(
        prompt="Review: {text}\nSentiment:",
        shots=(Shot({"text": "dull"}, "negative"), Shot({"text": "fun"}, "positive")),
    )
    pieces = task.prompt_pieces({"text": "fine"})
    assert pieces[0] == Piece("Review: dull\nSentiment: negative\n\nReview: fun\nSentiment: positive\n\n")
    assert pieces[1:] == [Piece("Review: "), Piece("fine", "text"), Piece("\nSentiment:")]


def test_shots_of_the_demo_are_protected(demo, demo_examples):
    item = encode(ToyCodec(), demo, demo_examples[0])
    text = demo_examples[0].fields["text"]
    assert [text[span.start : span.end] for span in item.spans] == list(item.texts)
    assert "".join(item.texts) == "".join(text.split())


def test_a_shot_with_an_unknown_label_is_refused():
    with pytest.raises(ConfigError, match="'nice'.*negative, positive"):
        make_task(shots=(Shot({"text": "fun"}, "nice"),))


def test_a_shot_without_a_field_of_the_prompt_is_refused():
    with pytest.raises(ConfigError, match="'text'"):
        make_task(shots=(Shot({"sentence": "fun"}, "positive"),))


def test_sst2_is_the_pinned_validation_split():
    task = load_task("sst2")
    assert task.data == HubData(
        "nyu-mll/glue",
        config="sst2",
        split="validation",
        revision="bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c",
        fields={"text": "sentence"},
        labels={0: "negative", 1: "positive"},
    )
    assert task.prompt == "Review: {text}\nSentiment:"
    assert task.label_words == LABEL_WORDS
    assert task.data.origin == "nyu-mll/glue/sst2/validation"


@pytest.mark.real
def test_the_real_sst2_sample_has_the_shape_of_the_task(shared_data):
    task = load_task("sst2")
    examples = FileData(shared_data / "sst2.jsonl").load(task.template.fields, task.labels)
    assert {example.gold for example in examples} == {0, 1}
    assert all(example.fields["text"].strip() for example in examples)


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("Review: {text}\nSentiment:", [" bad", " good"]),
        ("Review: {text}\nSentiment: ", ["bad", "good"]),
        ("Review: {text}\nSentiment:\n", ["bad", "good"]),
        ("{text}", [" bad", " good"]),
    ],
)
def test_a_space_goes_before_each_label_unless_the_prompt_ends_in_whitespace(prompt, words):
    task = adhoc_task(Records([{}]), prompt=prompt, labels=["bad", "good"])
    assert list(task.label_words.values()) == words
    assert task.labels == ("bad", "good")


def test_a_task_from_flags_gives_its_prompt_to_classifiers_too():
    task = adhoc_task(
        Records([{}]), prompt="Premise: {a} Claim: {b}?", labels=["no", "yes"], explain=["b"], name="mine"
    )
    assert task.name == "mine"
    assert task.explained == ("b",)
    assert task.classifier_pieces({"a": "x", "b": "y"}) == (
        [Piece("Premise: "), Piece("x", "a")],
        [Piece("Claim: "), Piece("y", "b"), Piece("?")],
    )


def test_classifiers_read_the_bare_fields_unless_the_task_says_otherwise():
    task = make_task(prompt="Premise: {a} Claim: {b} Answer:")
    assert task.classifier_pieces({"a": "x", "b": "y"}) == ([Piece("x", "a")], [Piece("y", "b")])


@pytest.mark.parametrize("words", [{}, {"only": " only"}])
def test_a_task_needs_two_labels(words):
    with pytest.raises(ConfigError, match=r"a task needs at least two labels, and \[.*\] was given; see --labels"):
        make_task(label_words=words)


def test_two_labels_with_the_same_words_are_refused():
    with pytest.raises(ConfigError, match="two labels have the same words: ' x', ' x'"):
        make_task(label_words={"a": " x", "b": " x"})


def test_a_field_that_the_prompt_lacks_cannot_be_explained():
    with pytest.raises(ConfigError, match="cannot explain 'claim': the prompt has the fields text"):
        make_task(explain=("text", "claim"))


def test_a_classifier_prompt_with_a_field_that_the_prompt_lacks_is_refused():
    with pytest.raises(ConfigError, match="'claim'.*fields text"):
        make_task(classifier_prompt="{text} {claim}")


def test_a_task_that_explains_nothing_is_refused():
    with pytest.raises(ConfigError, match="explain"):
        make_task(explain=())


def test_a_prompt_that_cannot_be_read_is_refused_when_the_task_is_made():
    with pytest.raises(ConfigError, match="has no field"):
        make_task(prompt="Review:")


@pytest.mark.parametrize(
    "changes",
    [
        {"prompt": "\ud800{text}"},
        {"label_words": {"a\ud800": "a", "b": "b"}},
        {"label_words": {"a": "\udfff", "b": "b"}},
    ],
)
def test_half_characters_in_what_a_task_says_are_refused(changes):
    with pytest.raises(ConfigError, match="holds half of a character"):
        make_task(**changes)
