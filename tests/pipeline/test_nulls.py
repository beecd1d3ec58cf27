"""Matched nulls in whole runs, against classes that are listed by trying every set."""

import math
import re
from collections import Counter

import numpy as np
import pytest
from tests.rows import each_row, name_of
from tests.small_runs import (
    DIRECTIONS,
    OPERATORS,
    Plain,
    Waves,
    files_of,
    line_of,
    lines_of,
    picks,
    results_of,
    rows_of,
    run,
    task_of,
    texts,
)

from ice_eval.errors import ConfigError, ModelError

NULLS = ["size", "contiguity", "position", "frequency", "sub-word"]
METHODS = {"one": picks("one"), "two": picks("two", towards=0.5)}


def reviews(n, n_words, seed=3):
    """Texts of common and of rare words, some of them joined with a hyphen: three tokens to the toy's tokenizer."""
    rng = np.random.default_rng(seed)
    ranks = np.arange(1, 61)
    known, odds = np.array([f"v{rank}" for rank in ranks]), 1 / ranks / (1 / ranks).sum()
    found = []
    for _ in range(n):
        words = rng.choice(known, n_words, replace=False, p=odds).tolist()
        found.append(" ".join([*words[:-4], f"{words[-4]}-{words[-3]}", f"{words[-2]}-{words[-1]}"]))
    return found


def key_of(null, text, counts):
    """What the sets of a class have in common, from the definition of the null: a function of a set."""
    pieces = [re.findall(r"\w+|-", word) for word in text.split()]
    units = [piece for word in pieces for piece in word]
    word_of = [number for number, word in enumerate(pieces) for _ in word]
    n_units = len(units)

    def key(chosen):
        inside = set(chosen)
        if null == "size":
            return len(inside)
        if null == "contiguity":
            return len(inside), sum(unit - 1 not in inside for unit in inside)
        if null == "position":
            return Counter(4 * unit // n_units for unit in inside)
        if null == "frequency":
            return Counter(math.floor(math.log(counts[units[unit]]) / math.log(4) + 1e-9) for unit in inside)
        taken = Counter(word_of[unit] for unit in inside)
        return Counter((len(pieces[word]), number) for word, number in taken.items())

    return key


def counts_of(found):
    return Counter(piece for text in found for piece in re.findall(r"\w+|-", text))


def expected(value, null):
    """Win rate and p-values of a value against a null, from the definitions; two hyphens tie, as they read the same."""
    ties = sum(abs(each - value) < 1e-12 for each in null)
    wins = sum(each < value - 1e-12 for each in null)
    return {
        "win_rate": (wins + ties / 2) / len(null),
        "tie_rate": ties / len(null),
        "p_value": (1 + len(null) - wins) / (1 + len(null)),
        "p_lower": (1 + wins + ties) / (1 + len(null)),
        "m": len(null),
    }


def cells(nulls=NULLS):
    for null in nulls:
        for name, method in METHODS.items():
            for operators in ([OPERATORS[0]], [OPERATORS[1]], OPERATORS):
                for direction in DIRECTIONS:
                    yield null, name, method, operators, direction


class Item:
    """What an attribution is given, in so far as `picks` reads it."""

    def __init__(self, plain, example_id):
        self.example_id, self.n_units = example_id, plain.n_units
        self.ids = np.array([*plain.head, *plain.content, *plain.tail])
        self.unit_of = np.array([-1, -1, *range(plain.n_units), -1, -1])


@pytest.fixture(scope="module")
def few():
    """Texts so short that every class is listed: 5 words of one token and 2 of three, 3 units in a rationale."""
    found = reviews(6, 9)
    settings = {"attributions": METHODS, "operators": OPERATORS, "directions": DIRECTIONS, "k": 0.3, "m": 200}
    return found, run(found, nulls=NULLS, **settings)


@pytest.fixture(scope="module")
def many():
    """Longer texts: most classes hold more sets than the 25 that are drawn."""
    found = reviews(8, 24, seed=4)
    settings = {"attributions": METHODS, "operators": OPERATORS, "directions": DIRECTIONS, "k": 0.2, "m": 25}
    return found, run(found, nulls=NULLS, **settings)


def test_the_texts_have_words_of_several_frequencies_and_of_several_pieces(few):
    found, _ = few
    bands = {math.floor(math.log(count) / math.log(4) + 1e-9) for count in counts_of(found).values()}
    assert len(bands) > 1
    assert all(text.count("-") == 2 for text in found)


def test_every_number_of_an_example_is_that_of_its_whole_class(few):
    found, done = few
    counts, n_alone = counts_of(found), 0
    for index, text in enumerate(found):
        plain = Plain(text)
        for null, name, method, operators, direction in cells():
            rationale = plain.top(method(Item(plain, str(index))), plain.size(0.3))
            key = key_of(null, text, counts)
            others = [s for s in plain.sets(len(rationale)) if key(s) == key(rationale) and s != rationale]
            operator = operators[0] if len(operators) == 1 else "all"
            where = {"attribution": name, "operator": operator, "direction": direction, "null": null}
            [line] = lines_of(done, example_id=str(index), **where)
            if not others:
                n_alone += 1
                assert line.error == f"no other set is matched with the rationale of '{name}' ({null})"
                continue
            assert line.rationale == rationale
            values = [plain.value(units, operators, direction) for units in [rationale, *others]]
            numbers = expected(values[0], values[1:])
            assert {name: getattr(line, name) for name in numbers} == pytest.approx(numbers, abs=1e-12), (where, text)
    assert n_alone < 6 * len(list(cells())) / 4


def test_sampled_sets_are_distinct_members_of_the_class_and_never_the_rationale(many):
    found, done = many
    counts, ledger = counts_of(found), rows_of(done)
    sampled = Counter()
    for index, text in enumerate(found):
        plain = Plain(text)
        for null, name, method, operators, direction in cells(NULLS[1:]):
            if len(operators) > 1:
                continue
            rationale = plain.top(method(Item(plain, str(index))), plain.size(0.2))
            key = key_of(null, text, counts)
            rows = [
                row
                for row in ledger
                if row.key.example_id == str(index)
                and name_of(row) == f"random:{null}:{name}"
                and (row.key.operator, row.key.direction) == (operators[0], direction)
            ]
            units = [_set_of(row, plain.n_units) for row in rows]
            assert [row.key.set for row in rows] == list(range(len(rows)))
            assert len(set(units)) == len(units) <= 25
            assert rationale not in units
            assert all(key(each) == key(rationale) for each in units)
            sampled[null] += len(units) == 25
            if not units:
                continue
            values = [plain.value(each, operators, direction) for each in [rationale, *units]]
            [line] = lines_of(
                done, example_id=str(index), attribution=name, operator=operators[0], direction=direction, null=null
            )
            numbers = expected(values[0], values[1:])
            assert {name: getattr(line, name) for name in numbers} == pytest.approx(numbers, abs=1e-12)
            for row, value in zip(rows, values[1:], strict=True):
                log_odds = row.scores[plain.target] - row.scores[1 - plain.target]
                assert log_odds * (1 if direction == "sufficiency" else -1) == pytest.approx(value, abs=1e-9)
    assert all(sampled[null] > 20 for null in NULLS[1:])  # of 64: else nothing was sampled


def _set_of(row, n_units):
    return row.kept if row.key.direction == "sufficiency" else tuple(sorted(set(range(n_units)) - set(row.kept)))


def test_the_average_over_operators_is_of_the_same_matched_sets(many):
    _, done = many
    rows = rows_of(done)
    for null in NULLS[1:]:
        kept = {
            operator: {
                (row.key.example_id, row.key.set): row.kept
                for row in rows
                if (name_of(row), row.key.operator, row.key.direction)
                == (f"random:{null}:one", operator, "sufficiency")
            }
            for operator in OPERATORS
        }
        assert kept["delete"] == kept["mask-unk"] != {}


def test_attributions_with_the_same_rationale_are_compared_with_the_same_sets():
    same = {"one": picks("one"), "again": picks("one")}
    done = run(reviews(4, 24), attributions=same, nulls=["contiguity", "position"], m=9)
    for null in ("contiguity", "position"):
        first, second = ([row.kept for row in rows_of(done, f"random:{null}:{name}")] for name in same)
        assert first == second
        one, again = (lines_of(done, attribution=name, null=null) for name in same)
        assert [line.p_value for line in one] == [line.p_value for line in again]


def test_other_nulls_and_attributions_change_no_number_of_a_null(tmp_path):
    found, settings = reviews(5, 24), {"operators": OPERATORS, "m": 9}
    alone = run(found, attributions={"one": METHODS["one"]}, nulls=["position"], **settings)
    among = run(found, attributions=METHODS, nulls=NULLS, **settings)
    assert lines_of(alone) == lines_of(among, attribution="one", null="position")
    assert line_of(alone, operator="all").win_rate_ci == (
        line_of(among, operator="all", attribution="one", null="position").win_rate_ci
    )


def test_a_null_that_is_added_later_scores_only_its_own_sets(tmp_path):
    found, settings = reviews(5, 24), {"attributions": METHODS, "operators": OPERATORS, "m": 9}
    model = Waves()
    first = run(found, model=model, nulls=["size"], out=tmp_path / "grown", **settings)
    asked, rows, lines = model.asked, rows_of(first), lines_of(first)
    grown = run(found, model=model, nulls=["frequency", "contiguity"], out=tmp_path / "grown", **settings)
    kinds = {name_of(row) for row in rows_of(grown)} - {name_of(row) for row in rows}
    assert kinds == {f"random:{null}:{name}" for null in ("frequency", "contiguity") for name in METHODS}
    new = [row for row in rows_of(grown) if name_of(row) in kinds]
    assert model.asked - asked <= len(new)
    assert grown.folder.manifest().config.nulls == ("size", "frequency", "contiguity")
    assert [line for line in lines_of(grown) if line.null == "size"] == lines
    whole = run(found, nulls=["size", "frequency", "contiguity"], out=tmp_path / "whole", **settings)
    assert results_of(grown) == results_of(whole)


def test_a_null_of_equal_size_that_is_added_later_leaves_the_rationale_out_of_its_sets(tmp_path):
    found, settings = texts(5), {"attributions": METHODS, "m": 200}  # all sets are drawn, the rationale's too
    run(found, nulls=["position"], out=tmp_path / "grown", **settings)
    grown = run(found, nulls=["size"], out=tmp_path / "grown", **settings)
    whole = run(found, nulls=["position", "size"], out=tmp_path / "whole", **settings)
    assert lines_of(grown, null="size") == lines_of(whole, null="size")
    assert all(line.m == math.comb(line.n_units, 2) - 1 for line in lines_of(grown, null="size"))


def test_a_null_of_its_own_needs_no_rows_of_equal_size():
    done = run(reviews(4, 24), nulls=["position"], m=5)
    assert {name_of(row) for row in rows_of(done)} == {"full", "empty", "rationale:random", "random:position:random"}
    assert done.folder.manifest().cost.rows_by_kind["random"] == 4 * 5


def test_counts_are_those_of_all_examples_of_the_data_and_not_of_the_first_ones():
    found = reviews(40, 24)
    few, many = (
        run(task_of(found), attributions={"one": METHODS["one"]}, nulls=["frequency"], m=9, n=n) for n in (4, 12)
    )
    assert lines_of(few) == [line for line in lines_of(many) if int(line.example_id) < 4]


def test_an_attribution_that_is_not_finite_has_no_matched_sets():
    def sometimes(item):
        return np.full(item.n_units, np.nan) if item.example_id == "1" else METHODS["one"](item)

    done = run(reviews(3, 24), attributions={"mine": sometimes, "two": METHODS["two"]}, nulls=NULLS, m=5)
    errors = {line.error for line in lines_of(done, attribution="mine", example_id="1")}
    assert errors == {"the attribution 'mine' is not finite"}
    assert not [row for row in rows_of(done) if row.key.example_id == "1" and row.key.attribution == "mine"]
    assert line_of(done, attribution="mine", null="position").n == 2


def test_a_run_in_which_no_rationale_has_a_matched_set_fails_and_says_why(tmp_path):
    with pytest.raises(ModelError, match=r"no other set is matched with the rationale of 'random' \(position\)"):
        run(["w1 w2 w3", "w4 w5 w6 w7"], nulls=["position"], m=5, out=tmp_path / "run")


def test_a_rationale_that_wins_by_where_it_stands_alone_wins_nothing_against_its_position():
    class First(Waves):
        """Whatever the first quarter of a text says decides."""

        def log_scores(self, batch, labels, *, prefix=0):
            log_odds = np.array(
                [np.isin(row.ids, self.early).sum() + 0.01 * np.sin(row.ids).sum() for row in each_row(batch)]
            )
            return np.stack([-np.logaddexp(0, log_odds), -np.logaddexp(0, -log_odds)], axis=1)

    found = texts(60, words=(16, 16), vocabulary=2000)
    model = First()
    model.early = [model.codec.tokenize(word).ids[0] for text in found for word in text.split()[:4]]
    early = {"early": lambda item: picks("hat")(item) + (np.arange(item.n_units) < 4)}
    done = run(found, model=model, attributions=early, nulls=["size", "position"], m=20)
    assert line_of(done, null="size").win_rate > 0.9
    against = line_of(done, null="position")
    assert against.win_rate == pytest.approx(0.5, abs=0.12)
    assert str(against.verdict) == "not distinguishable from random"


REFUSED = {
    "unknown": ({"nulls": ["continuity"]}, "no null named 'continuity'; did you mean 'contiguity'"),
    "twice": ({"nulls": ["size", "size"]}, "nulls names something twice"),
    "none": ({"nulls": []}, "no nulls given; at least one is needed"),
    "released": ({"nulls": ["position"], "protocol": "released"}, "'released' draws random sets of its own"),
    "released and more": (
        {"nulls": ["size", "position"], "protocol": "released"},
        "'released' draws random sets of its own",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_null_that_cannot_be_is_refused_and_nothing_is_written(tmp_path, name):
    settings, message = REFUSED[name]
    with pytest.raises(ConfigError, match=message):
        run(reviews(3, 9), m=5, out=tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()


def test_a_refused_null_leaves_a_folder_as_it_was(tmp_path):
    run(reviews(3, 9), m=5, out=tmp_path / "run")
    before = files_of(tmp_path / "run")
    with pytest.raises(ConfigError, match="no null named 'positon'; did you mean 'position'"):
        run(reviews(3, 9), m=5, nulls=["positon"], out=tmp_path / "run")
    assert files_of(tmp_path / "run") == before
