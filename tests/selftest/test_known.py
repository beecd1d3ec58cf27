"""The known models: what they answer is what is said of them."""

import itertools

import numpy as np
import pytest
from tests.rows import join

from ice_eval.encoding import encode
from ice_eval.errors import CapabilityError
from ice_eval.operators import operators
from ice_eval.rationales import keep_mask, set_size, top_k, units_of
from ice_eval.results.ledger import log_odds as log_odds_of
from ice_eval.selftest.known import NEUTRAL, SHARE, decisive_words, faint_words, planted, toy

MODELS = {"toy": toy, "planted": planted}


@pytest.fixture(scope="module", params=MODELS)
def known(request):
    return MODELS[request.param]()


@pytest.fixture(scope="module")
def transformer():
    return planted()


def items(known, n=20, seed=3):
    task = known.task(n, seed=seed, purpose="test")
    return task, [encode(known.model.codec, task, example) for example in task.examples()]


def log_odds(known, task, inputs, target=1):
    rows = known.model.log_scores(inputs, known.model.labels(task))
    return log_odds_of(rows, target)


def test_the_same_seed_gives_the_same_texts(known):
    first, second, other = (items(known, seed=seed)[0].examples() for seed in (3, 3, 4))
    assert first == second != other


def test_decisive_words_stand_early(known):
    _, found = items(known, n=200)
    places = [
        place / item.n_units for item in found for place, w in enumerate(item.texts) if w.strip() in known.decisive
    ]
    assert np.mean(places) < 0.35


def test_some_texts_have_so_few_sets_that_all_are_enumerated(known):
    sizes = np.array([item.n_units for item in items(known, n=300)[1]])
    assert 0.08 < (sizes < 10).mean() < 0.25
    assert sizes.min() >= 4 and sizes.max() <= 20


def test_the_truth_speaks_for_the_predicted_label(known):
    task, found = items(known, n=60)
    predicted = log_odds(known, task, join(item.full() for item in found)) > 0
    assert 0.2 < predicted.mean() < 0.8
    for item, positive in zip(found, predicted, strict=True):
        words = {**known.decisive, **known.fillers}
        values = np.array([words[text.strip()] for text in item.texts])
        assert np.array_equal(known.truth(item), values if positive else -values)


@pytest.mark.parametrize(
    "operator", [name for name, each in operators.items() if not each.needs_fills and "token" in each.units]
)
@pytest.mark.parametrize("keeps", [True, False], ids=["sufficiency", "necessity"])
def test_the_truth_names_the_best_of_all_sets(known, operator, keeps):
    task, found = items(known, n=6)
    method = operators.get(operator)()
    if operator == "mask" and known.model.codec.special.mask is None:
        with pytest.raises(CapabilityError, match="mask token"):
            method.prepare(known.model.codec.special)
        return
    for item in found:
        size = set_size(item.n_units, SHARE)
        best = units_of(top_k(known.truth(item), size, rng=np.random.default_rng(0)))
        sets = list(itertools.combinations(range(item.n_units), size))[:300]
        masks = np.array([keep_mask(units, item.n_units) for units in [best, *sets]])
        target = int(log_odds(known, task, item.full())[0] > 0)
        inputs = method.build(item, masks if keeps else ~masks, fills=item.ids[:0])
        scores = log_odds(known, task, inputs, target) * (1 if keeps else -1)
        assert scores[0] >= scores.max() - 1e-9
        if known.unique:
            others = [score for units, score in zip(sets, scores[1:], strict=True) if units != best]
            assert scores[0] > max(others)


def test_only_planted_words_move_the_transformer(transformer):
    task, _ = items(transformer)
    ids = transformer.model.codec.tokenizer.convert_tokens_to_ids
    item = items(transformer, n=1)[1][0]
    row = item.full()

    def answer(word):
        changed = row.ids.copy()
        changed[item.content.start] = ids(word)
        return log_odds(transformer, task, type(row).one(changed, row.segments))[0]

    silent = {answer(word) for word in (*NEUTRAL, "<mask>", "<pad>", "<unk>", "Review", "positive")}
    assert len(silent) == 1
    planted_words = {**decisive_words(), **faint_words()}
    moved = {word: answer(word) - next(iter(silent)) for word in planted_words}
    assert sorted(moved, key=moved.get) == sorted(planted_words, key=planted_words.get)
    assert all(np.sign(moved[word]) == np.sign(value) for word, value in planted_words.items())


def test_planted_contributions_are_all_different():
    values = [*decisive_words().values(), *faint_words().values()]
    assert np.diff(np.sort(values)).min() > 1e-5
    assert min(map(abs, decisive_words().values())) >= 0.5 > 20 * max(map(abs, faint_words().values()))


def test_noise_weakens_the_truth_and_negation_turns_it_round(known):
    _, [item] = items(known, n=1)
    truth = known.truth(item)
    plain, negated = known.attribution(), known.attribution(sign=-1.0)
    assert np.array_equal(plain.function(item), truth)
    assert np.array_equal(negated.function(item), -truth)
    first, second = (known.attribution(noise=2.0, seed=1).function(item) for _ in range(2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, truth)
