import numpy as np
import pytest
import torch
from tests.helpers import CAUSAL, CLASSIFIERS

from ice_eval.attributions import method_of
from ice_eval.attributions.gradients import GradientShap, IntegratedGradients, baseline_of
from ice_eval.encoding import encode
from ice_eval.errors import ConfigError, OutOfMemoryError


def log_odds_of(scores, target=1):
    return scores[:, target] - scores[:, 1 - target]


@pytest.mark.parametrize("family", CAUSAL + CLASSIFIERS)
def test_at_the_text_itself_the_log_odds_are_those_of_the_scores(tiny, reviews, family):
    model = tiny(family)
    labels = model.labels(reviews)
    for example in reviews.examples()[:3]:
        item = encode(model.codec, reviews, example)
        text = model.embedded(item, 1, labels)
        expected = log_odds_of(model.log_scores(item.full(), labels))
        np.testing.assert_allclose(text.log_odds(text.embedding[None].repeat(2, axis=0)), expected[0], atol=2e-4)


@pytest.mark.parametrize("family", ["gpt2", "bert"])
def test_the_norm_of_the_gradient_may_be_the_sum_of_its_absolute_values(tiny, reviews, explained, family):
    model = tiny(family)
    item, labels = encode(model.codec, reviews, reviews.examples()[0]), model.labels(reviews)
    text = model.embedded(item, 1, labels)
    [gradient] = text.gradients(text.embedding[None])
    for name, expected in (
        ("gradient:norm=l1", np.abs(gradient).sum(axis=1)),
        ("gradient", np.sqrt((gradient**2).sum(axis=1))),
    ):
        per_token = np.zeros(len(item.ids))
        per_token[text.tokens] = expected
        np.testing.assert_allclose(
            explained(model, reviews, name)[1][0], item.per_unit(per_token), rtol=2e-4, atol=1e-7
        )
    with pytest.raises(ConfigError, match="norm = 'l3' is not l1 or l2"):
        method_of("gradient:norm=l3")


# What the path crosses decides how many steps it takes: a norm without positions jumps near zeros.
PATHS = {
    "gpt2": "steps=32",
    "llama": "steps=256:baseline=pad",
    "phi": "steps=256",
    "bert": "steps=8",
    "deberta-v2": "steps=32",
    "modernbert": "steps=32:baseline=pad",
    "roberta": "baseline=pad",
}


@pytest.mark.parametrize("family", PATHS)
def test_the_numbers_add_up_to_what_lies_between_text_and_baseline(tiny, reviews, explained, family):
    model, spec = tiny(family), f"integrated-gradients:{PATHS[family]}"
    items, found = explained(model, reviews, spec)
    for item, values in zip(items, found, strict=True):
        text = model.embedded(item, 1, model.labels(reviews))
        ends = np.stack([text.embedding, baseline_of(text, method_of(spec).baseline)])
        full, none = text.log_odds(ends)
        assert values.sum() == pytest.approx(full - none, abs=2e-4)


def test_labels_of_several_tokens_add_up_too(tiny, long_labels, explained):
    model = tiny("gpt2")
    [item, _], [values, _] = explained(model, long_labels, "integrated-gradients:steps=64")
    text = model.embedded(item, 1, model.labels(long_labels))
    full, none = text.log_odds(np.stack([text.embedding, 0 * text.embedding]))
    assert values.sum() == pytest.approx(full - none, abs=1e-3)
    assert full == pytest.approx(log_odds_of(model.log_scores(item.full(), model.labels(long_labels)))[0], abs=1e-3)


@pytest.mark.parametrize("family", ["bert", "gpt2", "lfm2", "llama", "mistral", "modernbert"])
@pytest.mark.parametrize("baseline", ["zero", "pad"])
def test_the_numbers_are_those_of_captum(tiny, reviews, explained, family, baseline):
    captum = pytest.importorskip("captum.attr", exc_type=ImportError)
    model = tiny(family)
    items, found = explained(model, reviews, f"integrated-gradients:steps=20:baseline={baseline}", n=2)
    words = [ids[0] for ids in model.labels(reviews).ids]

    def forward(embedded):
        logits = model.model(inputs_embeds=embedded).logits
        return log_odds_of(logits[:, words] if logits.dim() == 2 else logits[:, -1, words])

    for item, values in zip(items, found, strict=True):
        embedded = model.model.get_input_embeddings()(torch.tensor(item.ids))[None].detach()
        base = embedded.clone()
        special = item.special.pad if item.special.pad is not None else item.special.end
        start = model.model.get_input_embeddings()(torch.tensor(special)).detach() if baseline == "pad" else 0.0
        base[0, torch.tensor(item.unit_of >= 0)] = start
        theirs = captum.IntegratedGradients(forward).attribute(embedded, base, n_steps=20, internal_batch_size=4)
        expected = item.per_unit(theirs[0].sum(dim=1).double().detach().numpy())
        np.testing.assert_allclose(values, expected, atol=1e-4 * np.abs(expected).max())


def test_of_the_toy_they_are_its_weights(toy, sentiment_task, explained):
    task = sentiment_task(["a gorgeous but dull film"])
    for target, sign in ((1, 1), (0, -1)):
        _, [values] = explained(toy, task, "integrated-gradients:steps=3", target=target)
        np.testing.assert_allclose(values, sign * np.array([0, 2.5, 0, -1, 0]), atol=1e-12)


def test_how_many_points_share_a_pass_does_not_matter(tiny, reviews, explained, monkeypatch):
    model = tiny("llama")
    _, together = explained(model, reviews, "integrated-gradients:steps=16")
    monkeypatch.setattr("ice_eval.models.transformer._ATTRIBUTION_TOKENS", 1)
    _, alone = explained(model, reviews, "integrated-gradients:steps=16")
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4 * np.abs(other).max())


def test_more_steps_take_more_passes_not_more_memory(tiny, reviews, explained, monkeypatch):
    model = tiny("llama")
    whole, sizes = model._scores_at, []
    monkeypatch.setattr(model, "_scores_at", lambda points, *rest: sizes.append(len(points)) or whole(points, *rest))
    monkeypatch.setattr("ice_eval.models.transformer._ATTRIBUTION_TOKENS", 200)
    largest = {}
    for steps in (8, 80):
        sizes.clear()
        [item], _ = explained(model, reviews, f"integrated-gradients:steps={steps}", n=1)
        assert sum(sizes) == steps
        largest[steps] = max(sizes)
    start = np.flatnonzero(item.unit_of >= 0)[0]  # what comes before is computed once
    assert largest == dict.fromkeys((8, 80), 200 // (len(item.ids) - start))


def test_a_pass_that_does_not_fit_is_halved(tiny, reviews, explained, monkeypatch):
    model = tiny("llama")
    _, expected = explained(model, reviews, "integrated-gradients", n=1)
    whole, sizes = model._scores_at, []

    def small(points, *rest):
        sizes.append(len(points))
        if len(points) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return whole(points, *rest)

    monkeypatch.setattr(model, "_scores_at", small)
    _, found = explained(model, reviews, "integrated-gradients", n=1)
    np.testing.assert_allclose(found[0], expected[0], atol=1e-4 * np.abs(expected[0]).max())
    assert max(sizes) > 3
    monkeypatch.setattr(model, "_scores_at", lambda *_: small(torch.zeros(4)))
    with pytest.raises(OutOfMemoryError, match="CUDA"):
        explained(model, reviews, "integrated-gradients", n=1)


def test_steps_and_baselines_that_do_not_exist_are_refused():
    with pytest.raises(ConfigError, match="steps = 0; at least 1 is needed"):
        method_of("integrated-gradients:steps=0")
    with pytest.raises(ConfigError, match="baseline = 'mean' is not zero or pad"):
        method_of("integrated-gradients:baseline=mean")
    for method in (IntegratedGradients, GradientShap):
        with pytest.raises(ConfigError, match="baseline = 'mean'; zero or pad is expected"):
            method(baseline="mean")


def test_without_noise_it_comes_to_integrated_gradients(tiny, reviews, explained):
    model = tiny("gpt2")
    [item], [exact] = explained(model, reviews, "integrated-gradients", n=1)
    _, [few] = explained(model, reviews, "gradient-shap:noise=0:samples=50", items=[item])
    _, [many] = explained(model, reviews, "gradient-shap:noise=0:samples=2000", items=[item])
    assert np.abs(many - exact).max() < 0.1 * np.abs(exact).max()
    assert np.linalg.norm(many - exact) < np.linalg.norm(few - exact)


def test_with_many_samples_it_comes_to_captums(tiny, reviews, explained):
    captum = pytest.importorskip("captum.attr", exc_type=ImportError)
    model = tiny("bert")
    [item], [values] = explained(model, reviews, "gradient-shap:samples=3000", n=1)
    text = model.embedded(item, 1, model.labels(reviews))
    embedded = model.model.get_input_embeddings()(torch.tensor(item.ids))[None].detach()
    moving = torch.tensor(item.unit_of >= 0)

    def forward(points):
        rows = embedded.repeat(len(points), 1, 1).index_copy(1, moving.nonzero()[:, 0], points.float())
        logits = model.model(inputs_embeds=rows).logits
        return logits[:, 1] - logits[:, 0]

    torch.manual_seed(0)
    np.random.seed(0)
    theirs = captum.GradientShap(forward).attribute(
        embedded[:, moving], torch.zeros_like(embedded[:, moving]), n_samples=3000, stdevs=0.1 * text.embedding.std()
    )
    expected = theirs[0].sum(dim=1).detach().numpy()
    np.testing.assert_allclose(values, item.per_unit(_spread(item, expected)), atol=0.05 * np.abs(expected).max())


def _spread(item, values):
    found = np.zeros(len(item.ids))
    found[item.unit_of >= 0] = values
    return found


def test_the_same_seed_gives_the_same_numbers_and_leaves_global_ones_alone(tiny, reviews, explained):
    model = tiny("bert")
    before = torch.get_rng_state().clone()
    _, first = explained(model, reviews, "gradient-shap")
    _, again = explained(model, reviews, "gradient-shap")
    assert [values.tolist() for values in first] == [values.tolist() for values in again]
    assert torch.equal(before, torch.get_rng_state())


def test_no_samples_or_negative_noise_are_refused():
    for spec in ("gradient-shap:samples=0", "gradient-shap:noise=-1", "gradient-shap:noise=nan"):
        with pytest.raises(ConfigError, match="at least 1 and 0 are needed"):
            method_of(spec)
