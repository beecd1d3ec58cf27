import numpy as np
import pytest
import torch

from ice_eval.attributions import method_of
from ice_eval.errors import ConfigError


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
