"""Methods that perturb: known answers on the toy, exact Shapley values, and what they share with the rest of a run."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare
from tests.rows import each_row
from tests.small_runs import Waves, rows_of, texts

import ice_eval
from ice_eval.attributions import attributions
from ice_eval.attributions.perturbation import KernelShap, Lime, Occlusion
from ice_eval.errors import ConfigError
from ice_eval.models.toy import BIAS, WEIGHTS, Toy
from ice_eval.records import Inputs
from ice_eval.tasks import Records, Task

METHODS = ["occlusion", "lime", "kernel-shap"]
NEUTRAL = np.array([f"w{index}" for index in range(200)])


def task_of(found, **changes):
    labels = {"negative": " negative", "positive": " positive"}
    records = [{"text": text} for text in found]
    return Task(**{"data": Records(records), "prompt": "Review: {text}\nSentiment:", "label_words": labels} | changes)


def reviews(n=12, neutral=10, seed=0):
    """Texts with two decisive words for each side, and neutral ones."""
    rng = np.random.default_rng(seed)
    good, bad = ([word for word in WEIGHTS if sign * WEIGHTS[word] > 0] for sign in (1, -1))
    parts = [(good, 2), (bad, 2), (NEUTRAL, neutral)]
    return [
        " ".join(rng.permutation([word for words, size in parts for word in rng.choice(words, size, replace=False)]))
        for _ in range(n)
    ]


def run(given, found=None, *, model=None, task=None, **settings):
    task = task or task_of(reviews() if found is None else found)
    settings = {"operators": ["delete"], "m": 5} | settings
    return ice_eval.evaluate(model or Toy(), task, attributions=given, **settings)


def vectors(found, name):
    rows = [row for part in found.folder.parts() for row in found.folder.inputs(part)]
    return {row.example_id: np.array(row.attributions[name]) for row in rows}


def true_weights(text):
    """What each word adds to the log-odds of the label that the toy predicts."""
    weights = np.array([WEIGHTS.get(word, 0.0) for word in text.split()])
    return weights if BIAS + weights.sum() > 0 else -weights


@pytest.mark.parametrize("name", ["occlusion", "kernel-shap"])
@pytest.mark.parametrize("neutral", [4, 12], ids=["all coalitions", "drawn coalitions"])
def test_on_an_additive_model_credit_is_the_weight(name, neutral):
    found = reviews(neutral=neutral)
    for example, values in vectors(run([name], found), name).items():
        assert values == pytest.approx(true_weights(found[int(example)]), abs=1e-9)


def test_lime_finds_the_order_of_the_weights():
    found = reviews()
    for example, values in vectors(run(["lime"], found), "lime").items():
        weights = true_weights(found[int(example)])
        decisive = np.flatnonzero(weights)
        # Ridge shrinks, so weights are smaller but their order is the same; neutral words lie between the signs.
        assert np.sign(values[decisive]).tolist() == np.sign(weights[decisive]).tolist()
        assert np.corrcoef(values, weights)[0, 1] > 0.99
        distinct = len(set(weights[decisive].tolist())) == len(decisive)
        assert not distinct or values[decisive].argsort().tolist() == weights[decisive].argsort().tolist()


def test_occlusion_is_leave_one_out():
    found = texts(4)
    run_ = run(["occlusion"], found, model=Waves())
    for example, values in vectors(run_, "occlusion").items():
        [full] = [row for row in rows_of(run_, "full") if row.key.example_id == example]
        target = int(np.argmax(full.scores))
        model, codec = Waves(), Toy().codec
        for unit in range(len(values)):
            words = found[int(example)].split()
            left = codec.tokenize(f"Review: {' '.join(words[:unit] + words[unit + 1 :])}\nSentiment:")
            [scores] = model.log_scores(Inputs.one(left.ids), None)
            odds = [each[target] - each[1 - target] for each in (full.scores, scores)]
            assert values[unit] == pytest.approx(odds[0] - odds[1], abs=1e-9)


def shapley(value, n_units):
    """By the definition: the mean gain of a unit over all orders, summed over sets."""
    credit = np.zeros(n_units)
    for unit in range(n_units):
        others = [each for each in range(n_units) if each != unit]
        for size in range(n_units):
            weight = 1 / (n_units * math.comb(n_units - 1, size))
            for kept in itertools.combinations(others, size):
                credit[unit] += weight * (value({*kept, unit}) - value(set(kept)))
    return credit


WORDS = ["not", "good", "very", "film", "bad", "plot"]


def judged(words):
    """Log-odds of a judge that reads negations, emphasis and pairs of words."""
    odds = 0.3 + 1.5 * ("good" in words) - 1.2 * ("bad" in words)
    odds *= 2 if "very" in words else 1
    odds *= -0.7 if "not" in words else 1
    return odds + 0.9 * ("film" in words and "plot" in words)


def judge(found):
    odds = np.array([judged(text.split()) for text in found])
    share = 1 / (1 + np.exp(-odds))
    return np.stack([1 - share, share], axis=1)


def test_kernel_shap_is_exact_where_all_coalitions_fit():
    task = task_of([" ".join(WORDS), "a film"], prompt="{text}")
    found = run({"kernel-shap": KernelShap(n_samples=64)}, task=task, model=judge)
    sign = 1 if judged(WORDS) > 0 else -1
    exact = shapley(lambda kept: sign * judged([WORDS[unit] for unit in kept]), len(WORDS))
    assert vectors(found, "kernel-shap")["0"] == pytest.approx(exact, abs=1e-9)
    kinds = [row for row in rows_of(found, "probe:kernel-shap") if row.key.example_id == "0"]
    assert len({row.kept for row in kinds}) == len(kinds) == 64


def keyword(found):
    """Log-odds of a judge who knows one word."""
    share = np.where(["key" in text.split() for text in found], 0.9, 0.3)
    return np.stack([1 - share, share], axis=1)


@pytest.mark.parametrize("name", METHODS)
def test_units_that_are_worth_the_same_are_chosen_evenly(name):
    found = [" ".join(["key", *words]) for words in itertools.permutations([f"w{i}" for i in range(5)])]
    run_ = run([name], task=task_of(found, prompt="{text}"), model=keyword, k=0.4, m=1)
    chosen = Counter(unit for row in rows_of(run_, f"rationale:{name}") for unit in row.kept)
    assert chosen.pop(0) == len(found)
    assert chisquare([chosen[unit] for unit in range(1, 6)]).pvalue > 1e-3


def test_drawn_coalitions_come_near_the_exact_values_and_add_up():
    rng = np.random.default_rng(5)
    n_units = 9
    pairs = rng.normal(size=(n_units, n_units))
    triple = rng.normal(size=n_units)

    def value(mask):
        mask = np.asarray(mask, dtype=float)
        return mask @ pairs @ mask + np.prod(1 + 0.3 * mask * triple)

    exact = shapley(lambda kept: value([unit in kept for unit in range(n_units)]), n_units)
    method = KernelShap(n_samples=400)
    masks = method.masks(n_units, np.random.default_rng(0))
    values = np.array([value(mask) for mask in masks])
    found = method.credit(masks, values)
    assert found.sum() == pytest.approx(values[-1] - values[0])
    assert np.abs(found - exact).max() < 0.1 * np.abs(exact).max()


def test_coalitions_come_with_their_complements_and_sizes_follow_the_kernel():
    method, n_units = KernelShap(n_samples=20_002), 12
    # More probes than there are sets would list them all: ask for those of a longer text.
    assert len(method.masks(n_units, np.random.default_rng(0))) == 2**n_units
    masks = method.masks(16, np.random.default_rng(0))
    assert (masks[0].sum(), masks[-1].sum(), len(masks)) == (0, 16, 20_002)
    drawn, paired = masks[1:10_001], masks[10_001:-1]
    assert (drawn == ~paired).all()
    sizes = Counter(drawn.sum(axis=1).tolist())
    share = np.array([1 / (size * (16 - size)) for size in range(1, 16)])
    expected = 10_000 * share / share.sum()
    assert chisquare([sizes[size] for size in range(1, 16)], expected).pvalue > 1e-3
    assert drawn.mean(axis=0) == pytest.approx(np.full(16, 0.5), abs=0.03)


def test_probes_of_lime_have_uniform_sizes_and_uniform_units():
    masks = Lime(n_samples=8_001).masks(14, np.random.default_rng(0))
    assert len(masks) == 8_001 and masks[0].all()
    sizes = Counter(masks[1:].sum(axis=1).tolist())
    assert set(sizes) == set(range(1, 14))
    assert chisquare([sizes[size] for size in range(1, 14)]).pvalue > 1e-3
    assert chisquare(masks[1:].sum(axis=0)).pvalue > 1e-3


def test_lime_is_a_weighted_ridge_regression():
    # Worked out with the normal equations: centre by weighted means, then (X'WX + I)⁻¹ X'Wy.
    rng = np.random.default_rng(1)
    method = Lime(n_samples=60, kernel_width=0.4)
    masks = method.masks(7, rng)
    values = rng.normal(size=len(masks))
    cosine = masks.sum(axis=1) / np.sqrt(masks.sum(axis=1) * 7)
    weights = np.exp(-((1 - cosine) ** 2) / 0.4**2) ** 0.5
    x, y = masks - np.average(masks, axis=0, weights=weights), values - np.average(values, weights=weights)
    expected = np.linalg.solve(x.T @ (x * weights[:, None]) + np.eye(7), x.T @ (y * weights))
    assert method.credit(masks, values) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("n_units", "n_probes"), [(2, 4), (5, 32), (8, 256), (9, 500), (300, 500)])
@pytest.mark.parametrize("name", ["lime", "kernel-shap"])
def test_as_many_probes_as_asked_for_or_all_there_are(name, n_units, n_probes):
    method = attributions.get(name)()
    masks = method.masks(n_units, np.random.default_rng(0))
    assert masks.shape == (n_probes, n_units) == (method.n_probes(n_units), n_units)
    values = method.credit(masks, masks.sum(axis=1).astype(float))
    assert values.shape == (n_units,) and np.isfinite(values).all()


@pytest.fixture(scope="module")
def among():
    return run(["random", *METHODS], reviews(18, neutral=12))


@pytest.mark.parametrize("name", METHODS)
def test_seeds_decide_what_is_drawn_and_nothing_else_does(name, among):
    found = reviews(18, neutral=12)
    alone, again = run([name], found), run([name], found, token_budget=64)
    other = run([name], found, seed=1)

    def probes(run_):
        return [(row.key, row.kept, row.input_ids) for row in rows_of(run_, f"probe:{name}")]

    own = probes(alone)
    assert own == probes(again) == probes(among)
    assert (own == probes(other)) == (name == "occlusion")
    expected = vectors(among, name)
    for example, values in vectors(alone, name).items():
        assert values == pytest.approx(expected[example], abs=1e-9)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_that_is_added_later_gives_what_it_would_have_given_at_once(name, tmp_path):
    at_once = run(["random", name], out=tmp_path / "once")
    run(["random"], out=tmp_path / "added")
    added = run(["random", name], out=tmp_path / "added")
    assert at_once.folder.summary() == added.folder.summary()
    assert sorted(rows_of(at_once)) == sorted(rows_of(added))


def test_methods_that_perturb_beat_the_controls():
    task = task_of(reviews(40), lexicon=frozenset(WEIGHTS))
    controls = ["random", "first-k", "last-k", "longest-words", "rarest-tokens", "lexicon"]
    summary = run([*METHODS, *controls], task=task, m=20).summary().set_index("attribution")
    assert summary["win_rate"][METHODS].min() > 0.95
    assert summary["win_rate"][METHODS].min() > summary["win_rate"][controls].max() + 0.1
    assert set(summary["verdict"][METHODS]) == {"faithful"}


@pytest.mark.parametrize("name", METHODS)
def test_a_model_that_fails_on_a_probe_is_recorded_and_the_run_goes_on(name):
    class Fails(Toy):
        def log_scores(self, batch, labels, *, prefix=0):
            scores = super().log_scores(batch, labels, prefix=prefix)
            bad = self.codec.tokenize("broken").ids[0]
            scores[[bad in row.ids and len(row.ids) < 4 + 6 for row in each_row(batch)]] = np.nan
            return scores

    found = run([name], ["one broken film with some words", "one good film with some words"], model=Fails())
    lines = list(found.folder.examples())
    assert [line.error for line in lines] == [f"the attribution '{name}' is not finite", None]


def test_a_text_that_is_deleted_whole_is_the_empty_input():
    task = task_of(["good film", "bad plot here"], prompt="{text}")
    found = run(["kernel-shap"], task=task)
    for row in rows_of(found, "probe:kernel-shap"):
        if not row.kept:
            assert row.input_ids == rows_of(found, "empty")[0].input_ids


@pytest.mark.parametrize(("method", "least"), [(Lime, 2), (KernelShap, 4)])
def test_too_few_probes_are_refused(method, least):
    with pytest.raises(ConfigError, match=f"n_samples = {least - 1}: at least {least} are needed"):
        method(n_samples=least - 1)


@pytest.mark.parametrize(("n_samples", "n_units"), [(20, 10), (21, 10), (21, 11)])
def test_too_few_probes_for_the_units_are_told_once_in_a_run(n_samples, n_units):
    method = KernelShap(n_samples=n_samples)
    ranks = []
    for seed in range(20):
        kept = method.masks(n_units, np.random.default_rng(seed)).astype(float)
        ranks.append(np.linalg.matrix_rank(kept - kept.mean(axis=1, keepdims=True)))
    decided = max(ranks) == n_units - 1
    assert decided == (method.remark([n_units]) is None)
    words = [f"w{index}" for index in range(n_units)]
    given = {"kernel-shap": method, "lime": Lime(n_samples=20)}
    found = run(given, [" ".join(words), " ".join(reversed(words)), "a good film"], model=Waves())
    told = [message for message in found.folder.manifest().messages if "'kernel-shap'" in message]
    expected = f"{n_samples} probes are too few for 2 of 3 texts, which have more than 10 units; the minimum-norm "
    expected += "solution is used. Use n_samples=22 or more."
    assert told == ([] if decided else [f"the attribution 'kernel-shap': {expected}"])


@pytest.mark.parametrize("width", [0, -1, np.nan, np.inf])
def test_a_kernel_has_a_positive_width(width):
    with pytest.raises(ConfigError, match=f"lime: kernel_width = {width}; a positive number is needed"):
        Lime(kernel_width=width)


def test_options_are_fields():
    assert (Lime().n_samples, Lime().operator, Lime().kernel_width) == (500, "delete", 0.25)
    assert (KernelShap().n_samples, Occlusion(operator="mask").operator) == (500, "mask")
