import contextlib
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers
from tests.rows import join

import ice_eval as ice
from ice_eval.attributions.user_supplied import column_of
from ice_eval.encoding import encode
from ice_eval.errors import ConfigError
from ice_eval.models import load_model
from ice_eval.models.classifier import _beginning_alike
from ice_eval.tasks import Records, Task, adhoc_task


def pair_task():
    return Task(
        data=Records([{"first": "the room was warm", "second": "it rained outside"}]),
        prompt="One: {first} Two: {second}",
        label_words={"negative": " negative", "positive": " positive"},
    )


def test_padded_batches_give_the_scores_of_single_rows(tiny, reviews):
    model = tiny("bert")
    labels = model.labels(reviews)
    rows = [encode(model.codec, reviews, e).full() for e in reviews.examples()[:8]]
    with torch.no_grad():
        single = [model.model(input_ids=torch.tensor(row.ids[None])).logits[0].double().numpy() for row in rows]
    expected = np.stack([s - np.logaddexp.reduce(s) for s in single])
    assert np.ptp(expected[:, 0]) > 0.05
    np.testing.assert_allclose(model.log_scores(join(rows), labels, prefix=1), expected, atol=1e-5)


def test_two_fields_become_text_and_pair_with_segments(tiny):
    model = tiny("bert")
    task = pair_task()
    item = encode(model.codec, task, task.examples()[0])
    assert item.texts[:2] == ("the", "room")
    assert set(item.segments[item.unit_of >= 0].tolist()) == {0, 1}
    with torch.no_grad():
        logits = (
            model.model(input_ids=torch.tensor(item.ids[None]), token_type_ids=torch.tensor(item.segments[None]))
            .logits[0]
            .double()
            .numpy()
        )
    found = model.log_scores(item.full(), model.labels(task))[0]
    np.testing.assert_allclose(found, logits - np.logaddexp.reduce(logits), atol=1e-5)


def test_the_empty_input_is_special_tokens_only(tiny, reviews):
    model = tiny("bert")
    empty = encode(model.codec, reviews, reviews.examples()[0]).empty()
    assert model.codec.decode([empty.ids]) == ["[CLS] [SEP]"]


def test_literal_words_of_an_explicit_prompt_are_read_and_protected(tiny):
    model = tiny("bert")
    task = adhoc_task(Records([{"text": "the room"}]), prompt="the film: {text}", labels=["negative", "positive"])
    item = encode(model.codec, task, task.examples()[0])
    assert item.texts == ("the", "room")
    assert (item.unit_of == -1).sum() >= 5  # [CLS] the film : [SEP]


def test_labels_match_classes_by_name_in_any_order(tiny):
    task = adhoc_task(Records([{"text": "a b"}]), prompt="{text}", labels=["Positive", "negative"])
    assert tiny("bert").labels(task).ids == ((1,), (0,))


@pytest.mark.parametrize("labels", [["Pos", "neg"], ["positively", "negatively"]])
def test_names_that_begin_alike_are_matched_in_any_order_and_noted(tiny, labels):
    found = tiny("bert").labels(adhoc_task(Records([{"text": "a b"}]), prompt="{text}", labels=labels))
    assert found.ids == ((1,), (0,))
    assert f"matched by how they begin: positive = {labels[0]}, negative = {labels[1]}" in found.note


@pytest.mark.parametrize("labels", [["n", "ne"], ["", "neg"], ["neg", "pos", "neutral"]])
def test_names_that_begin_like_one_class_or_none_are_not_matched_by_that(labels):
    assert _beginning_alike(labels, ["negative", "positive"]) is None


def test_a_folder_whose_labels_are_other_classes_is_not_continued(tiny, tmp_path):
    task = adhoc_task(Records([{"text": "a b c"}]), prompt="{text}", labels=["pos", "neg"])
    settings = {"operators": ["delete"], "m": 2, "out": tmp_path / "run"}
    run = ice.evaluate(tiny("bert"), task, attributions=["random"], **settings)
    run.folder.write_manifest(replace(run.folder.manifest(), label_ids=((0,), (1,))))
    with pytest.raises(
        ConfigError, match="the labels pos, neg are the classes 0, 1 of the model, and here they are 1, 0"
    ):
        ice.evaluate(tiny("bert"), task, attributions=["random", "first-k"], **settings)


def test_other_names_are_taken_in_order_and_the_run_says_so(tiny):
    task = adhoc_task(Records([{"text": "a b c"}]), prompt="{text}", labels=["bad", "good"])
    model = tiny("bert")
    assert model.labels(task).ids == ((0,), (1,))
    run = ice.evaluate(model, task, attributions=["random"], operators=["delete"], m=2)
    [message] = run.folder.manifest().messages
    assert "taken in order: negative = bad, positive = good" in message


def test_names_that_match_in_part_are_refused(tiny):
    task = adhoc_task(Records([{"text": "a b"}]), prompt="{text}", labels=["positive", "neg"])
    with pytest.raises(ConfigError, match=r"labels positive, neg are not the classes of .* \(negative, positive\)"):
        tiny("bert").labels(task)


def test_labels_of_classes_have_no_tokens_to_score_in_full(tiny, reviews):
    with pytest.raises(ConfigError, match="its labels have no tokens to score in full"):
        tiny("bert").labels(reviews, scoring="full")


def test_special_tokens_in_a_text_are_just_characters(tiny):
    model = tiny("bert")
    data = Records([{"text": "the [SEP] room [MASK] was [PAD] warm"}, {"text": "a film and a book"}])
    task = adhoc_task(data, prompt="{text}", labels=["negative", "positive"])
    item = encode(model.codec, task, task.examples()[0])
    assert not set(item.ids[item.unit_of >= 0].tolist()) & (model.codec.special.every - {model.codec.special.unk})
    assert item.ids[0] == 2 and item.ids[-1] == 3  # its own are still added


def test_more_labels_than_classes_are_refused(tiny):
    task = adhoc_task(Records([{"text": "a b"}]), prompt="{text}", labels=["a", "b", "c"])
    with pytest.raises(ConfigError, match=r"3 labels \(a, b, c\), and .* has 2 classes"):
        tiny("bert").labels(task)


def test_a_half_precision_model_answers_from_a_float32_head(tiny_folder, reviews):
    half = load_model(str(tiny_folder("bert")), device="cpu", dtype="bfloat16")
    rows = [encode(half.codec, reviews, e).full() for e in reviews.examples()[:16]]
    with torch.inference_mode():
        scores, _ = half._label_scores(join(rows), half.labels(reviews), 0)
    assert scores.dtype == torch.float32
    rounded = scores.bfloat16().float()
    assert (scores != rounded).any()


def test_weights_in_pickle_files_are_not_read(tiny_folder, tmp_path):
    folder = tmp_path / "pickled"
    shutil.copytree(tiny_folder("bert"), folder)
    state = load_model(str(folder), device="cpu").model.state_dict()
    (folder / "model.safetensors").unlink()
    torch.save(state, folder / "pytorch_model.bin")
    with pytest.raises(Exception, match="safetensors"):
        load_model(str(folder), device="cpu")


def test_a_folder_without_a_config_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="holds no config.json"):
        load_model(str(tmp_path))


def test_an_unknown_device_or_dtype_is_refused(tiny_folder):
    with pytest.raises(ConfigError, match="the device 'gpu9' cannot be used here"):
        load_model(str(tiny_folder("bert")), device="gpu9")
    with pytest.raises(ConfigError, match="no dtype 'float31'"):
        load_model(str(tiny_folder("bert")), device="cpu", dtype="float31")


def test_long_texts_are_cut_to_the_window(tiny, reviews):
    model = tiny("bert")
    assert model.codec.max_tokens == 64
    task = adhoc_task(Records([{"text": "warm room " * 200}]), prompt="{text}", labels=["negative", "positive"])
    item = encode(model.codec, task, task.examples()[0])
    assert item.truncated
    assert len(item.ids) <= 64
    assert model.codec.decode([item.ids[-1:]]) == ["[SEP]"]


@pytest.mark.parametrize(("family", "fails"), [("bert", False), ("bert", True), ("llama", False)])
def test_what_a_caller_hands_over_is_left_as_it_was(tiny_folder, reviews, family, fails):
    kind = transformers.AutoModelForCausalLM if family == "llama" else transformers.AutoModelForSequenceClassification
    model = kind.from_pretrained(tiny_folder(family), dtype=torch.bfloat16)
    pair = model, transformers.AutoTokenizer.from_pretrained(tiny_folder(family))
    model.train()
    model.base_model.train(False)

    def state():
        hooks = [len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()]
        settings = [module.training for module in model.modules()], model.config.to_dict()
        return hooks, settings, [(name, p.dtype, p.requires_grad) for name, p in model.named_parameters()]

    before, weights = state(), {name: tensor.clone() for name, tensor in model.state_dict().items()}
    settings = {"attributions": ["attention", "gradient"], "operators": ["delete"], "n": 2, "m": 2}
    with pytest.raises(ConfigError) if fails else contextlib.nullcontext():
        ice.evaluate(pair, reviews, **settings, token_budget=0 if fails else None)
    assert state() == before
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, weights[name])


def test_labels_that_do_not_compete_in_a_model_are_reported(tiny, reviews):
    model = tiny("bert")
    labels, row = model.labels(reviews), encode(model.codec, reviews, reviews.examples()[0]).full()
    assert model.doubts(join([row]), labels) == []
    model.model.config.problem_type = "multi_label_classification"
    [doubt] = model.doubts(join([row]), labels)
    assert "is a multi-label model" in doubt and "--labels 'not positive,positive'" in doubt


@pytest.mark.parametrize("names", [["not positive", "positive"], ["Positive", "Not Positive"]])
def test_a_class_of_a_multi_label_model_is_explained_by_its_own_probability(tiny, reviews, names):
    model = tiny("bert")
    model.model.config.problem_type = "multi_label_classification"
    task = replace(reviews, label_words={name: f" {name}" for name in names}, shots=())
    labels = model.labels(task)
    rows = [encode(model.codec, task, e).full() for e in reviews.examples()[:8]]
    with torch.no_grad():
        yes = [torch.sigmoid(model.model(input_ids=torch.tensor(row.ids[None])).logits[0, 1].double()) for row in rows]
    found = model.log_scores(join(rows), labels, prefix=1)
    place = names.index("positive") if "positive" in names else names.index("Positive")
    np.testing.assert_allclose(np.exp(found[:, place]), np.array(yes), atol=1e-5)
    np.testing.assert_allclose(np.exp(found).sum(axis=1), 1, atol=1e-9)
    assert model.doubts(join(rows), labels) == []


def test_methods_explain_one_class_of_a_multi_label_model(tiny, reviews):
    model = tiny("bert")
    model.model.config.problem_type = "multi_label_classification"
    task = replace(reviews, label_words={"not positive": "no", "positive": "yes"}, shots=())
    item = encode(model.codec, task, reviews.examples()[0])
    gradients = []
    for target in (0, 1):
        seen = model.observe([item], [target], model.labels(task), {"gradients"})
        gradients.append(seen.gradients[0].gradient)
    assert np.abs(gradients[1]).max() > 0
    np.testing.assert_allclose(gradients[0], -gradients[1], atol=1e-6)


def test_an_explanation_of_a_class_is_not_one_of_its_absence(tiny, reviews):
    model = tiny("bert")
    model.model.config.problem_type = "multi_label_classification"
    labels = model.labels(replace(reviews, label_words={"not positive": "no", "positive": "yes"}, shots=()))
    assert column_of(["negative", "positive"], 2, labels, 1) == 1
    assert column_of(["negative", "positive"], 2, labels, 0) is None
    assert column_of(["positive"], 1, labels, 0) is None
