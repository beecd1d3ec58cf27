import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.rows import each_row

from ice_eval.errors import DataError
from ice_eval.operators import Blacklist, FillPool, PooledUnits, label_indicative
from ice_eval.operators.infill import Infill, _z
from ice_eval.records import Encoded, Span
from ice_eval.seeding import rng_for

NOTHING = Blacklist(frozenset(), frozenset(), frozenset())


def blacklist(*, words=(), lexicon=(), tokens=()):
    return Blacklist(frozenset(words), frozenset(lexicon), frozenset(tokens))


def pooled(example_id, *units, gold=None):
    """An example of the pool; a unit is a tuple of ids, or one id."""
    tuples = [unit if isinstance(unit, tuple) else (unit,) for unit in units]
    return PooledUnits(example_id, gold, tuple((ids, "-".join(map(str, ids))) for ids in tuples))


def fills(pool, item, n=1, purpose="test"):
    """Draws of all units of an example, as tuples of ids."""
    return [by_unit(pool.draw(item, rng_for(draw, purpose)), item) for draw in range(n)]


def by_unit(drawn, item):
    """The ids that were drawn for each unit."""
    assert drawn.ids.dtype == np.int64 and len(drawn.texts) == item.n_units
    return [tuple(fill.tolist()) for fill in np.split(drawn.ids, np.cumsum(item.unit_lengths())[:-1])]


def test_an_encoded_example_gives_its_units(handmade):
    item = handmade((10,), (20, 21), example_id="x", texts=["a", "b"])
    assert PooledUnits.of(item, 1) == PooledUnits("x", 1, (((10,), "a"), ((20, 21), "b")))


def test_fills_come_from_other_examples_and_never_from_its_own(handmade):
    pool = FillPool([pooled("a", 1, 2), pooled("b", 3, 4, 5), pooled("c", 6)], blacklist=NOTHING)
    for name, own in (("a", {1, 2}), ("b", {3, 4, 5}), ("c", {6})):
        [[*drawn]] = fills(pool, handmade(*[(9,)] * 500, example_id=name))
        assert {fill[0] for fill in drawn} == {1, 2, 3, 4, 5, 6} - own


def test_an_example_that_gave_nothing_draws_from_all(handmade):
    pool = FillPool([pooled("a", 1, 2), pooled("b", 3)], blacklist=NOTHING)
    [drawn] = fills(pool, handmade(*[(9,)] * 200, example_id="z"))
    assert {fill[0] for fill in drawn} == {1, 2, 3}


@pytest.mark.parametrize("name", ["first", "middle", "last"])
def test_draws_are_uniform_over_the_units_of_the_others(handmade, name):
    pool = FillPool([pooled("first", 1, 2, 2), pooled("middle", 3, 4, 5, 6), pooled("last", 7, 8)], blacklist=NOTHING)
    [drawn] = fills(pool, handmade(*[(9,)] * 7000, example_id=name))
    own = {"first": {1, 2}, "middle": {3, 4, 5, 6}, "last": {7, 8}}[name]
    counts = Counter(fill[0] for fill in drawn)
    ids = sorted({1, 2, 3, 4, 5, 6, 7, 8} - own)
    expected = np.array([2.0 if i == 2 else 1.0 for i in ids])  # a unit that occurs twice is drawn twice as often
    assert set(counts) == set(ids)
    assert stats.chisquare([counts[i] for i in ids], expected / expected.sum() * len(drawn)).pvalue > 1e-3


def test_a_fill_has_as_many_tokens_as_the_unit(handmade):
    pool = FillPool([pooled("a", 1, (2, 2), (3, 3, 3)), pooled("b", 4, (5, 5), (6, 6, 6))], blacklist=NOTHING)
    [drawn] = fills(pool, handmade((9,), (9, 9), (9, 9, 9), example_id="a"))
    assert drawn == [(4,), (5, 5), (6, 6, 6)]


def test_shorter_units_are_joined_where_none_is_long_enough(handmade):
    pool = FillPool([pooled("a", 1), pooled("b", 4, 5, (6, 7))], blacklist=NOTHING)
    drawn = {fill for [fill] in fills(pool, handmade((9,) * 5, example_id="a"), n=40)}
    assert drawn == {(6, 7, 6, 7, 4), (6, 7, 6, 7, 5)}


def test_leaving_an_example_out_may_leave_only_shorter_units(handmade):
    pool = FillPool([pooled("a", 1, (2, 2)), pooled("b", 3, 4)], blacklist=NOTHING)
    drawn = {fill for [fill] in fills(pool, handmade((9, 9), example_id="a"), n=40)}
    assert drawn == {(3, 3), (3, 4), (4, 3), (4, 4)}


def test_a_longer_unit_is_never_cut(handmade):
    pool = FillPool([pooled("a", 1), pooled("b", (2, 3), (2, 3), 4)], blacklist=NOTHING)
    assert {fill for [fill] in fills(pool, handmade((9,), example_id="a"), n=30)} == {(4,)}


def test_units_of_several_tokens_alone_make_a_pool(handmade):
    pool = FillPool([pooled("a", (1, 2)), pooled("b", (3, 4))], blacklist=NOTHING)
    assert fills(pool, handmade((9, 9), example_id="a")) == [[(3, 4)]]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=8), st.integers(0, 5))
def test_any_unit_gets_a_fill_of_its_length_from_the_others(lengths, seed):
    pool = FillPool(
        [pooled("a", 1, (2, 2)), pooled("b", 3, (4, 4), (5, 5, 5)), pooled("c", 6, (7, 7))], blacklist=NOTHING
    )
    item = _item(lengths, "a")
    drawn = pool.draw(item, rng_for(seed))
    assert len(drawn.ids) == sum(lengths)
    assert not {1, 2} & set(drawn.ids.tolist())
    # The text of a fill is that of the pooled units it is made of, which are named after their ids.
    assert ["".join(map(str, ids)) for ids in by_unit(drawn, item)] == [text.replace("-", "") for text in drawn.texts]


def test_texts_are_those_of_the_units_that_were_drawn(handmade):
    pool = FillPool([pooled("a", 1), pooled("b", 4, 5, (6, 7))], blacklist=NOTHING)
    drawn = pool.draw(handmade((9,) * 5, (9,), (9, 9), example_id="a"), rng_for(0, "test"))
    joined, single, pair = by_unit(drawn, handmade((9,) * 5, (9,), (9, 9)))
    assert drawn.texts == (f"6-76-7{joined[-1]}", str(single[0]), "6-7") and pair == (6, 7)


def _item(lengths, example_id):
    owners = np.repeat(np.arange(len(lengths)), lengths)
    spans = tuple(Span("text", unit, unit + 1) for unit in range(len(lengths)))
    return Encoded(example_id, np.zeros(len(owners), dtype=np.int64), owners, owners, spans, ("x",) * len(lengths))


def test_the_same_generator_draws_the_same_fills_whatever_was_drawn_before(handmade):
    entries = [pooled("a", 1, 2), pooled("b", *range(10, 40))]
    item = handmade(*[(9,)] * 20, example_id="a")
    pool = FillPool(entries, blacklist=NOTHING)
    first = fills(pool, item)
    fills(pool, handmade(*[(9,)] * 50, example_id="b"), n=3)
    assert fills(pool, item) == first == fills(FillPool(entries, blacklist=NOTHING), item)


def test_the_fill_of_a_unit_depends_on_no_unit_after_it(handmade):
    pool = FillPool([pooled("a", 1), pooled("b", *range(10, 99), (3, 3))], blacklist=NOTHING)
    [short] = fills(pool, handmade((9,), (9, 9), (9,), example_id="a"))
    [long] = fills(pool, handmade((9,), (9, 9), (9,), (9, 9, 9), (9,), example_id="a"))
    assert long[:3] == short


def test_how_units_are_joined_does_not_move_the_fills_after_them(handmade):
    item = handmade((9, 9, 9), (9,), example_id="a")
    joined = FillPool([pooled("a", 1), pooled("b", *range(10, 99))], blacklist=NOTHING)
    whole = FillPool([pooled("a", 1), pooled("b", *range(10, 99), (3, 3, 3))], blacklist=NOTHING)
    assert fills(joined, item)[0][1] == fills(whole, item)[0][1]


def test_a_draw_takes_as_long_from_a_large_pool_as_from_a_small_one(handmade):
    class Counting(list):
        reads = 0

        def __getitem__(self, index):
            Counting.reads += 1
            return super().__getitem__(index)

        def __iter__(self):
            raise AssertionError("the whole bucket was read")

    item = handmade(*[(9,)] * 30, example_id="a")
    pool = FillPool([pooled("a", 1), pooled("b", *range(5000))], blacklist=NOTHING)
    first = fills(pool, item)
    pool._texts = {length: Counting(texts) for length, texts in pool._texts.items()}
    assert fills(pool, item) == first
    assert Counting.reads == 30


def test_single_tokens_are_drawn_from_units_of_one_token_alone():
    pool = FillPool([pooled("a", 1, (2, 3)), pooled("b", 4)], blacklist=NOTHING)
    assert set(pool.tokens(200, rng_for(0, "test")).tolist()) == {1, 4}
    longer = FillPool([pooled("a", (2, 3)), pooled("b", (4, 5))], blacklist=NOTHING)
    with pytest.raises(DataError, match=r"^infill found no unit of one token in the data\.$"):
        longer.tokens(1, rng_for(0, "test"))


@pytest.mark.parametrize("n", [0, 1])
def test_a_pool_of_one_example_is_refused(n):
    with pytest.raises(DataError, match=rf"infill draws from other examples, and the data hold {n}; give at least 2"):
        FillPool([pooled("a", 1, 2)] * n, blacklist=NOTHING)


def test_a_pool_where_everything_is_blacklisted_is_refused():
    with pytest.raises(DataError, match="every unit of the data is on the blacklist"):
        FillPool([pooled("a", 1), pooled("b", 2)], blacklist=blacklist(tokens=[1, 2]))


def test_a_pool_that_one_example_fills_alone_is_refused():
    with pytest.raises(DataError, match="only one example has units that may be written"):
        FillPool([pooled("a", 1, 2), pooled("b")], blacklist=NOTHING)


def test_an_example_for_which_no_other_has_a_unit_short_enough_is_named(handmade):
    pool = FillPool([pooled("a", 1), pooled("b", (2, 3))], blacklist=NOTHING)
    with pytest.raises(DataError, match="infill found no unit of other examples for example 'a': its data are too few"):
        fills(pool, handmade((9,), example_id="a"))


def test_blacklisted_units_are_never_drawn(handmade):
    pool = FillPool([pooled("a", 1), pooled("b", 2, 3, (3, 4), (5, 5))], blacklist=blacklist(tokens=[3]))
    [drawn] = fills(pool, handmade(*[(9,)] * 50, *[(9, 9)] * 50, example_id="a"))
    assert set(drawn) == {(2,), (5, 5)}


@pytest.mark.parametrize("text", ["positive", "Positive", " POSITIVE", "positive.", "positively", "nonpositive"])
def test_label_words_are_blocked_in_every_casing_and_derived_form(text):
    assert blacklist(words=["positive"]).blocks(text, [1])


@pytest.mark.parametrize("text", ["posi", "posit", "Positiv", "tive", "itive", "ositive", " positi"])
def test_pieces_of_label_words_are_blocked(text):
    assert blacklist(words=["positive"]).blocks(text, [1])


@pytest.mark.parametrize("text", ["pos", "ive", "sitiv", "post", "film", "native", ""])
def test_what_is_no_piece_of_a_label_word_is_free(text):
    assert not blacklist(words=["positive"]).blocks(text, [1])


def test_short_label_words_block_themselves_and_not_the_words_that_contain_them():
    short = blacklist(words=["no", "yes"])
    assert all(short.blocks(text, [1]) for text in ("no", "No", " NO ", "Yes"))
    assert not any(short.blocks(text, [1]) for text in ("know", "nothing", "eyes", "piano", "n"))


def test_the_lexicon_blocks_whole_units_alone():
    listed = blacklist(lexicon=["great", "straße"])
    assert listed.blocks("Great", [1]) and listed.blocks(" great ", [1])
    assert listed.blocks("straße".casefold(), [1]) == listed.blocks("straße".upper(), [1])
    assert not listed.blocks("greatly", [1]) and not listed.blocks("grea", [1])


def test_a_unit_is_blocked_by_any_of_its_tokens():
    listed = blacklist(tokens=[7])
    assert listed.blocks("x", [1, 7]) and not listed.blocks("x", [1, 2])


def slow_indicative(entries):
    """Label against the rest, one token and one label at a time, with a prior of one half on every token."""
    entries = [entry for entry in entries if entry.gold is not None]
    tokens = [(entry.gold, i) for entry in entries for ids, _ in entry.units for i in ids]
    vocabulary, labels = {i for _, i in tokens}, {gold for gold, _ in tokens}
    found = set()
    for token in vocabulary:
        for label in labels:
            y1 = sum(g == label and i == token for g, i in tokens) + 0.5
            y2 = sum(g != label and i == token for g, i in tokens) + 0.5
            n1 = sum(g == label for g, _ in tokens) + 0.5 * len(vocabulary)
            n2 = sum(g != label for g, _ in tokens) + 0.5 * len(vocabulary)
            z = (math.log(y1 / (n1 - y1)) - math.log(y2 / (n2 - y2))) / math.sqrt(1 / y1 + 1 / y2)
            if y1 + y2 - 1 >= 5 and abs(z) > 1.96:
                found.add(token)
    return found


@pytest.mark.parametrize("n_labels", [2, 3])
def test_label_indicative_tokens_are_those_of_the_slow_formula(n_labels):
    rng = np.random.default_rng(5)
    entries = []
    for index in range(90):
        gold = int(rng.integers(n_labels))
        words = rng.integers(0, 25, 12)  # used alike under every label
        own = 100 + gold if rng.random() < 0.4 else 110 + gold if rng.random() < 0.06 else 120
        entries.append(pooled(str(index), *map(int, words), own, gold=gold))
    found = label_indicative(entries)
    assert found == slow_indicative(entries)
    assert set(range(100, 100 + n_labels)) <= found
    assert len(found & set(range(25))) < 8


@pytest.mark.parametrize(("count", "called"), [(4, False), (5, True)])
def test_rare_tokens_are_not_called_indicative(count, called):
    common = [pooled(str(index), *range(20), gold=0) for index in range(40)]
    rare = [pooled(f"x{index}", 1, 99, gold=1) for index in range(count)]
    assert (99 in label_indicative(common + rare)) == called


def test_tokens_that_one_label_avoids_are_indicative_too():
    with_it = [pooled(f"a{index}", 1, 2, 3, 50, gold=0) for index in range(60)]
    without = [pooled(f"b{index}", 1, 2, 3, gold=1) for index in range(30)]
    assert 50 in label_indicative(with_it + without)


def test_tokens_used_alike_are_free():
    entries = [pooled(str(index), 1, 2, 3, gold=index % 2) for index in range(50)]
    assert label_indicative(entries) == frozenset()


@pytest.mark.parametrize("golds", [[None, None], [1, 1], [0, None]], ids=str)
def test_without_two_labels_nothing_is_indicative(golds):
    entries = [pooled(str(index), *[7] * 20, gold=gold) for index, gold in enumerate(golds)]
    assert label_indicative(entries) == frozenset()


def test_examples_without_gold_do_not_count():
    known = [pooled(str(index), 1, 2, 60 + index % 2, gold=index % 2) for index in range(20)]
    unknown = [pooled(f"u{index}", 60, 61, 1, gold=None) for index in range(200)]
    assert label_indicative(known + unknown) == label_indicative(known) == {60, 61}


def test_examples_without_units_do_not_hinder():
    entries = [pooled("a", gold=0), pooled("b", gold=1)]
    assert label_indicative(entries) == frozenset()


def test_units_that_are_not_kept_are_overwritten_by_their_own_fills(handmade):
    item = handmade((10,), (20, 21), (30,))
    fills = np.array([40, 50, 51, 60])
    rows = Infill().build(item, keep=[[True, False, True], [False, True, False]], fills=fills)
    assert [row.ids.tolist() for row in each_row(rows)] == [[900, 10, 50, 51, 30, 901], [900, 40, 20, 21, 60, 901]]


def test_a_removed_word_reads_as_the_word_that_fills_it(encoded, toy):
    fills = toy.codec.tokenize("x y z").ids
    found = Infill().build(encoded("a b c"), keep=[[False, True, False]], fills=fills)
    assert found.row(0).tolist() == encoded("x b z").ids.tolist()


def test_a_unit_has_the_same_fill_in_every_row(handmade):
    item = handmade((10,), (20,), (30,))
    fills = np.array([40, 50, 60])
    found = Infill().build(item, keep=[[True, False, False], [False, True, False]], fills=fills)
    assert found.row(0)[3] == found.row(1)[3] == 60


def test_an_example_without_units_stays_as_it_is(handmade):
    item = handmade()
    found = Infill().build(item, keep=np.ones((1, 0), dtype=bool), fills=np.zeros(0, dtype=np.int64))
    assert found.row(0).tolist() == item.ids.tolist()


def test_it_asks_for_fills():
    assert Infill().needs_fills


def test_the_only_token_of_the_data_indicates_no_label_and_warns_of_nothing():
    with np.errstate(all="raise"):
        assert np.isnan(_z(np.array([[3], [5]]))).all()
