import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ice_eval.models import Labels, load_model
from ice_eval.models.toy import BIAS, WEIGHTS, Toy, ToyCodec
from ice_eval.records import Inputs


def log_odds(toy, task, item):
    """Log-odds of the second label for the full input."""
    [[negative, positive]] = toy.log_scores(item.full(), toy.labels(task))
    return positive - negative


def test_weights_are_as_published():
    assert (BIAS, len(WEIGHTS)) == (0.25, 28)
    assert [WEIGHTS[word] for word in ("good", "great", "excellent", "cold", "bad", "awful")] == [1, 2, 3, -0.5, -1, -3]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a film", 0.25),
        ("a good film", 1.25),
        ("good good", 2.25),
        ("an awful mess, slow and dull", 0.25 - 3.0 - 1.25 - 0.75 - 1.0),
        ("Great! LOVE it.", 4.25),
        ("goodness", 0.25),
        ("", 0.25),
        ("<unk> <unk>", 0.25),
    ],
)
def test_log_odds_are_the_bias_and_the_weights_of_the_words(toy, encoded, sentiment_task, text, expected):
    assert log_odds(toy, sentiment_task(["x"]), encoded(text)) == pytest.approx(expected)


def test_probabilities_add_up_to_one(toy, encoded, sentiment_task):
    rows = Inputs.join([encoded(text).full() for text in ("awful", "excellent best", "")])
    scores = toy.log_scores(rows, toy.labels(sentiment_task(["x"])))
    assert np.exp(scores).sum(axis=1) == pytest.approx([1, 1, 1])
    assert scores[1] == pytest.approx([-np.log1p(np.exp(5.5)), -np.log1p(np.exp(-5.5))])


def test_further_labels_stay_out_of_reach(toy, encoded, sentiment_task):
    task = sentiment_task(["x"], label_words={"a": " a", "b": " b", "c": " c"})
    [scores] = toy.log_scores(encoded("a film").full(), toy.labels(task))
    assert scores - scores[0] == pytest.approx([0, 0.25, -10])


def test_deleting_a_word_moves_the_log_odds_by_its_weight(toy, encoded, sentiment_task):
    task = sentiment_task(["x"])
    assert log_odds(toy, task, encoded("a gorgeous film")) - log_odds(toy, task, encoded("a film")) == pytest.approx(
        2.5
    )


def test_attention_is_the_size_of_the_weights(toy, encoded, sentiment_task):
    item = encoded("a gorgeous but dull film")
    [found] = toy.observe([item], [1], toy.labels(sentiment_task(["x"])), {"attentions"}).attentions
    assert item.per_unit(found).tolist() == [0, 2.5, 0, 1.0, 0]


@pytest.mark.parametrize(("target", "sign"), [(1, 1), (0, -1)])
def test_the_gradient_is_the_weight_towards_the_target(toy, encoded, sentiment_task, target, sign):
    item = encoded("a gorgeous but dull film")
    [found] = toy.observe([item], [target], toy.labels(sentiment_task(["x"])), {"gradients"}).gradients
    assert found.embedding.shape == found.gradient.shape == (len(item.ids), 1)
    assert item.per_unit(found.gradient[:, 0]).tolist() == [0, sign * 2.5, 0, sign * -1.0, 0]


def test_a_shared_prefix_changes_nothing(toy, encoded, sentiment_task):
    labels = toy.labels(sentiment_task(["x"]))
    rows = Inputs.join([encoded("a good film").full(), encoded("bad").full()])
    assert toy.log_scores(rows, labels, prefix=2).tolist() == toy.log_scores(rows, labels).tolist()


def test_it_loads_by_name_and_has_the_same_fingerprint_every_time():
    model = load_model("toy")
    assert isinstance(model, Toy)
    assert model.name == "toy"
    assert model.fingerprint == Toy().fingerprint == "1fedacbc"


def test_known_words_have_one_id_in_every_casing_and_others_one_each():
    codec = ToyCodec()
    good, upper, film, capital = codec.tokenize("good GOOD film Film").ids
    assert good == upper
    assert len({good, film, capital}) == 3


def test_ids_do_not_depend_on_what_was_read_before():
    first, second = ToyCodec(), ToyCodec()
    second.tokenize("some other words before")
    assert first.tokenize("a fine film").ids.tolist() == second.tokenize("a fine film").ids.tolist()


def test_what_was_read_can_be_written_back():
    codec = ToyCodec()
    assert codec.decode([codec.tokenize("A good film, no?").ids, np.array([], dtype=np.int64)]) == [
        "A good film , no ?",
        "",
    ]
    assert codec.decode([np.array([codec.special.unk, codec.special.pad, codec.special.mask])]) == [
        "<unk> <pad> <mask>"
    ]


def test_an_id_that_is_no_word_is_written_as_unknown():
    codec = ToyCodec()
    [good] = codec.tokenize("good").ids
    assert codec.decode([np.array([0, good, 10**9])]) == ["<unk> good <unk>"]


@given(st.text())
def test_offsets_point_at_the_token_in_any_text(text):
    tokens = ToyCodec().tokenize(text)
    pieces = [text[start:end] for start, end in zip(tokens.start, tokens.end, strict=True)]
    assert "".join(pieces) == "".join(text.split())
    assert len(tokens.ids) == len(tokens.segments) == len(tokens.sequence) == len(pieces)


@given(st.lists(st.sampled_from(sorted(WEIGHTS)), max_size=8))
def test_words_add_up_in_any_order(words):
    toy = Toy()
    labels = Labels(("negative", "positive"), ((0,), (1,)))
    ids = toy.codec.tokenize(" ".join(words)).ids
    [[negative, positive]] = toy.log_scores(Inputs.one(ids), labels)
    assert positive - negative == pytest.approx(BIAS + sum(WEIGHTS[word] for word in words))
