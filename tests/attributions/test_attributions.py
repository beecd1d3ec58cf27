import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

import ice_eval
from ice_eval.attributions import Attribution, DataView, Lens, Observer, attribution, attributions
from ice_eval.errors import CapabilityError, ConfigError, DataError
from ice_eval.models import Generated
from ice_eval.models.toy import Toy
from ice_eval.operators import Blacklist
from ice_eval.operators.remove import Delete
from ice_eval.records import Span

ON_TEXTS = [name for name, each in attributions.items() if "token" in each.units]
TEXTS = ["a gorgeous but dull film", "an awful film with witty words", "good fun, bad mess", "no words at all here"]


@pytest.fixture
def lens(toy, sentiment_task):
    """What an attribution may see, for examples that are explained towards the positive label."""

    def build(*needs, name="mine", seed=0, targets=None):
        labels = toy.labels(sentiment_task(["x"]))
        observer = Observer(toy, labels, targets or {str(index): 1 for index in range(9)}, needs)
        data = DataView(
            counts={"film": 9, "a": 4, "words": 2},
            lexicon=Blacklist(frozenset(), frozenset({"good", "witty", "words", "dull"}), frozenset()),
            human={str(index): (Span("text", 2, 6),) for index in range(9)},
        )

        def prober(batch, masks, repeat=0):
            rows = [Delete().build(item, keep, fills=item.ids[:0]) for item, keep in zip(batch, masks, strict=True)]
            scores = [toy.log_scores(each, labels) for each in rows]
            return [each[:, 1] - each[:, 0] for each in scores]

        # Asked for the words that matter, it names the last one.
        toy.generate = lambda prompts, **how: [Generated(prompt.splitlines()[-3].split()[-1], 9) for prompt in prompts]
        return Lens(observer, frozenset(needs), seed, name, data, prober)

    return build


@pytest.fixture
def batch(encoded):
    return [encoded(text, example_id=str(index)) for index, text in enumerate(TEXTS)]


@pytest.fixture
def evaluate(sentiment_task):
    """A small run of the toy model with some attributions."""

    def run(given, model="toy", texts=TEXTS, **settings):
        task = sentiment_task(texts)
        return ice_eval.evaluate(model, task, attributions=given, operators=["delete"], n=len(texts), m=5, **settings)

    return run


def vectors(run, name="mine"):
    """Example id -> the numbers that went into the run."""
    rows = [row for part in run.folder.parts() for row in run.folder.inputs(part)]
    return {row.example_id: list(row.attributions[name]) for row in rows}


@pytest.mark.parametrize("name", ON_TEXTS)
def test_every_attribution_gives_a_finite_number_per_unit(name, lens, batch):
    method = attributions.get(name)()
    found = method.attribute(lens(*method.needs, name=name), batch)
    assert [values.shape for values in found] == [(item.n_units,) for item in batch]
    assert all(values.dtype == np.float64 and np.isfinite(values).all() for values in found)


@pytest.mark.parametrize("name", ON_TEXTS)
def test_every_attribution_declares_what_it_asks_for(name, lens, batch):
    method = attributions.get(name)()
    for left_out in method.needs:
        with pytest.raises(TypeError, match=rf"the attribution '{name}' did not declare needs={{'{left_out}'}}"):
            method.attribute(lens(*(method.needs - {left_out}), name=name), batch)


@pytest.mark.parametrize("name", ON_TEXTS)
def test_an_example_gets_the_same_numbers_alone_and_in_a_batch(name, lens, batch):
    method = attributions.get(name)()
    view = lens(*method.needs, name=name)
    together = method.attribute(view, batch)
    alone = [method.attribute(view, [item])[0] for item in batch]
    assert [values.tolist() for values in together] == [values.tolist() for values in alone]


@pytest.mark.parametrize("need", ["attentions", "gradients"])
def test_the_lens_refuses_what_was_not_declared(lens, batch, need):
    with pytest.raises(TypeError, match=rf"the attribution 'mine' did not declare needs={{'{need}'}}"):
        getattr(lens(), need)(batch)
    assert len(getattr(lens(need), need)(batch)) == len(batch)


def test_a_need_that_no_lens_offers_is_refused_when_the_method_is_declared():
    with pytest.raises(
        TypeError, match=r"the attribution 'odd' needs \['smell'\], which no lens offers; known: \['attent"
    ):
        attribution("odd", needs={"smell", "gradients"})
    assert "odd" not in attributions


def test_a_name_that_is_taken_is_refused():
    @dataclass(frozen=True, kw_only=True)
    class Again(Attribution):
        def attribute(self, lens: Lens, batch: Sequence) -> list:
            return []

    attributions.names()
    with pytest.raises(ConfigError, match="two attributions are named 'random'"):
        attribution("random")(Again)


def test_attention_of_the_toy_ranks_by_the_size_of_the_weights(lens, batch):
    [values] = attributions.get("attention")().attribute(lens("attentions"), batch[:1])
    assert values.tolist() == [0, 2.5, 0, 1.0, 0]


@pytest.mark.parametrize("target", [0, 1])
def test_gradient_norm_of_the_toy_is_the_size_of_the_weights_for_either_label(lens, batch, target):
    view = lens("gradients", targets={"0": target})
    [values] = attributions.get("gradient")().attribute(view, batch[:1])
    assert values.tolist() == [0, 2.5, 0, 1.0, 0]


def test_input_times_gradient_of_the_toy_is_the_weight_towards_the_explained_label(lens, batch):
    method = attributions.get("input-x-gradient")()
    found = method.attribute(lens("gradients", targets={"0": 1, "1": 0}), batch[:2])
    assert method.signed
    assert [values.tolist() for values in found] == [[0, 2.5, 0, -1.0, 0], [0, 3.0, 0, 0, -1.5, 0]]


def test_gradients_are_those_of_each_examples_own_target(lens, batch):
    found = lens("gradients", targets={"0": 1, "1": 0}).gradients(batch[:2])
    assert batch[0].per_unit(found[0].gradient[:, 0]).tolist() == [0, 2.5, 0, -1.0, 0]
    assert batch[1].per_unit(found[1].gradient[:, 0]).tolist() == [0, 3.0, 0, 0, -1.5, 0]


def test_random_is_reproducible_and_differs_by_example_name_and_seed(lens, encoded):
    method = attributions.get("random")()

    def drawn(example_id="0", **changes):
        return method.attribute(lens(**{"name": "random", **changes}), [encoded(TEXTS[0], example_id)])[0].tolist()

    assert drawn() == drawn()
    assert len({tuple(drawn()), tuple(drawn("1")), tuple(drawn(name="random-2")), tuple(drawn(seed=1))}) == 4


def test_random_is_uniform(lens, encoded):
    method = attributions.get("random")()
    items = [encoded(TEXTS[0], str(index)) for index in range(400)]
    values = np.concatenate(method.attribute(lens(name="random"), items))
    assert stats.kstest(values, "uniform").pvalue > 1e-3


def test_the_right_attribution_of_the_toy_wins_and_its_opposite_loses(evaluate):
    texts = ["the film was good and the music was fun", "a great story with one or two other parts"] * 3
    given = {
        "right": lambda item: [1.0 if word in {"good", "great", "fun"} else 0.0 for word in item.texts],
        "wrong": lambda item: [-1.0 if word in {"good", "great", "fun"} else 0.0 for word in item.texts],
    }
    summary = evaluate(given, texts=[f"{text} {index}" for index, text in enumerate(texts)]).summary()
    assert summary.set_index("attribution").win_rate["right"] > 0.7
    assert summary.set_index("attribution").win_rate["wrong"] < 0.5


def test_a_model_that_lacks_what_an_attribution_needs_is_refused_before_it_runs(evaluate, tmp_path):
    class Silent(Toy):
        offers = frozenset()

    message = "the attribution 'gradient' needs gradients, which the model 'toy' does not offer"
    with pytest.raises(CapabilityError, match=message):
        evaluate(["random", "gradient"], model=Silent(), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_unknown_attribution_gets_a_suggestion(evaluate):
    with pytest.raises(ConfigError, match=r"no attribution named 'attenton'; did you mean 'attention'\?"):
        evaluate(["attenton"])


def test_numbers_may_come_as_one_array_per_example(evaluate):
    given = [np.arange(5.0), list(range(6)), (1, 2, 3, 4, 5), [0.5] * 5]
    assert vectors(evaluate({"mine": given})) == {
        "0": [0, 1, 2, 3, 4], "1": [0, 1, 2, 3, 4, 5], "2": [1, 2, 3, 4, 5], "3": [0.5] * 5,
    }  # fmt: skip


def test_numbers_may_come_as_a_table_when_texts_are_of_equal_length(evaluate):
    table = np.arange(6.0).reshape(2, 3)
    assert vectors(evaluate({"mine": table}, texts=["a b c", "d e f"])) == {"0": [0, 1, 2], "1": [3, 4, 5]}


def test_numbers_may_come_by_example_id(evaluate):
    given = {0: np.arange(5.0), "1": range(6), 2: [1, 2, 3, 4, 5], "3": np.ones(5), "unused": []}
    assert vectors(evaluate({"mine": given}))["2"] == [1, 2, 3, 4, 5]


def test_numbers_may_come_from_a_function_of_the_units(evaluate):
    found = vectors(evaluate({"mine": lambda item: [len(text) for text in item.texts]}))
    assert found["0"] == [1, 8, 3, 4, 4]


def test_known_and_own_attributions_may_stand_side_by_side(evaluate):
    run = evaluate({"random": None, "mine": lambda item: np.ones(item.n_units), "again": attributions.get("random")()})
    assert run.summary().attribution.tolist() == ["random", "mine", "again"]
    assert vectors(run, "random") != vectors(run, "again")


def test_a_wrong_number_of_values_is_named_with_the_units(evaluate):
    with pytest.raises(
        DataError,
        match=r"the attribution 'mine' gave 3 numbers for example '0', which has 5 units: a \| gorgeous \| but \| dull",
    ):
        evaluate({"mine": lambda item: [1, 2, 3]})


@pytest.mark.parametrize("given", [{"0": np.arange(5.0)}, [np.arange(5.0)]], ids=["mapping", "sequence"])
def test_an_example_without_values_is_named(evaluate, given):
    with pytest.raises(DataError, match="the attribution 'mine' has no values for example '1'"):
        evaluate({"mine": given})


@pytest.mark.parametrize(
    "given",
    [lambda item: ["high"] * item.n_units, {str(index): ["high"] * 5 for index in range(4)}, "random"],
    ids=["function", "mapping", "name"],
)
def test_values_that_are_no_numbers_are_refused(evaluate, given):
    with pytest.raises(ConfigError, match="the attribution 'mine'.*number"):
        evaluate({"mine": given})


def test_more_arrays_than_examples_are_refused(evaluate):
    with pytest.raises(DataError, match="the attribution 'mine'.*3.*2"):
        evaluate({"mine": np.zeros((3, 3))}, texts=["a b c", "d e f"])


def test_values_that_are_not_finite_are_recorded_and_the_run_goes_on(evaluate):
    run = evaluate({"mine": lambda item: [np.nan if item.example_id == "1" else 1.0] * item.n_units})
    examples = run.examples().set_index("example_id")
    assert run.summary().n.tolist() == [3] and run.summary().n_skipped.tolist() == [1]
    assert "finite" in examples.loc["1"].error


def test_brought_numbers_that_changed_are_refused_by_a_folder_that_holds_others(evaluate, tmp_path):
    evaluate({"mine": lambda item: np.arange(item.n_units)}, out=tmp_path / "run")
    with pytest.raises(ConfigError, match="the folder holds other values of the attribution 'mine' for example '0'"):
        evaluate({"mine": lambda item: -np.arange(item.n_units)}, out=tmp_path / "run")


def test_attributions_are_tried_on_one_short_example_and_not_again_once_the_folder_holds_them(sentiment_task, tmp_path):
    class Watched(Toy):
        looks = []

        def observe(self, batch, targets, labels, needs, **priors):
            self.looks.append(([item.example_id for item in batch], set(needs)))
            return super().observe(batch, targets, labels, needs, **priors)

    def looks(names):
        Watched.looks.clear()
        ice_eval.evaluate(Watched(), task, attributions=names, operators=["delete"], m=2, out=tmp_path / "run")
        return Watched.looks

    task = sentiment_task(["a gorgeous but dull film", "an awful film", "warm"])
    assert looks(["gradient", "random"]) == [(["1"], {"gradients"}), (["0", "1"], {"gradients"})]
    assert looks(["gradient", "random"]) == []
    assert looks(["gradient", "attention"]) == [(["1"], {"attentions"}), (["0", "1"], {"attentions"})]


def test_those_who_look_together_share_the_seconds(sentiment_task):
    class Slow(Toy):
        def observe(self, *arguments, **named):
            time.sleep(0.3)
            return super().observe(*arguments, **named)

    task, names = sentiment_task(["a gorgeous but dull film", "an awful film"]), ["attention", "gradient", "random"]
    found = ice_eval.evaluate(Slow(), task, attributions=names, operators=["delete"], m=2)
    seconds = found.folder.manifest().cost.attribution_seconds
    assert min(seconds["attention"], seconds["gradient"]) > 0.14
    assert seconds["attention"] + seconds["gradient"] > 0.29
