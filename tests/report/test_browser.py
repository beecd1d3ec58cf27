import itertools
import json

import numpy as np
import pytest
from tests.rows import name_of
from tests.small_runs import Waves, lines_of, picks, run, shown_rows, task_of, texts

from ice_eval.records import Kind, Span
from ice_eval.report.browser import (
    BUDGET,
    COLUMNS,
    SIX_BITS,
    browser_data,
    example_records,
    run_record,
    scaled,
    script_json,
    telling,
    within,
)
from ice_eval.report.example import cut_at_units, shortened
from ice_eval.results import ExampleOutcome, InputRow

SETTINGS = {
    "attributions": {"mine": picks("mine"), "yours": picks("yours")}, "operators": ["delete", "mask-unk"],
    "directions": ["sufficiency", "necessity"], "m": 20,
}  # fmt: skip


@pytest.fixture(scope="module")
def found():
    return run([*texts(12), "alone"], model=Waves(), **SETTINGS)


@pytest.fixture(scope="module")
def record(found):
    return run_record(found.folder, budget=BUDGET)


def cells(record, example):
    for place, cell in zip(record["configurations"], example["cells"], strict=True):
        yield place, dict(zip(COLUMNS, cell, strict=True))


def test_every_example_is_there_with_its_text(found, record):
    assert record["total"] == len(record["examples"]) == 13
    inputs = [row for part in found.folder.parts() for row in found.folder.inputs(part)]
    for row, example in zip(inputs, record["examples"], strict=True):
        [field] = example["fields"]
        assert "".join(field["pieces"]) == row.fields["text"]
        units = {unit: piece for unit, piece in zip(field["units"], field["pieces"], strict=True) if unit >= 0}
        assert units == {unit: row.fields["text"][span.start : span.end] for unit, span in enumerate(row.spans)}
        assert set(example["vectors"]) == set(row.attributions)


def test_the_numbers_of_a_cell_are_those_of_the_run(found, record):
    for example in record["examples"][:-1]:
        for place, cell in cells(record, example):
            [line] = lines_of(found, example_id=example["id"], **place)
            assert cell["win_rate"] == pytest.approx(line.win_rate, abs=5e-5)
            assert cell["p"] == pytest.approx(line.p_value, abs=5e-5)
            assert example["rationales"][cell["rationale"]] == list(line.rationale)
            assert 1 / (1 + np.exp(-cell["score"] / 1000)) == pytest.approx(line.score, abs=5e-4)


def test_the_null_of_a_cell_gives_its_win_rate(record):
    for example in record["examples"][:-1]:
        for place, cell in cells(record, example):
            if place["operator"] == "all":
                assert cell["null"] is None  # the operators are shown side by side
                continue
            null, side = np.array(example["nulls"][cell["null"]]), 1 if place["direction"] == "sufficiency" else -1
            beaten = side * cell["score"] > side * null
            assert len(null) == 20
            # Rounding to thousandths may make one tie of two scores that lie very close.
            assert beaten.mean() + (null == cell["score"]).mean() / 2 == pytest.approx(cell["win_rate"], abs=0.5 / 20)


def sets_of(example, cell):
    """The sets of a cell's null, as the page reads them."""
    (left_out, text), wide = example["sets"][cell["sets"]], -(-example["size"] // 6)
    found = []
    for start in range(0, len(text), wide):
        codes = [SIX_BITS.index(character) for character in text[start : start + wide]]
        found.append([6 * at + bit for at, code in enumerate(codes) for bit in range(6) if code >> bit & 1])
    return [(place + (0 <= left_out <= place), units) for place, units in enumerate(found)]


def test_sets_and_fills_give_what_the_model_saw(found, record):
    rows = {}
    for row in shown_rows(found.folder):
        place = row.key.set if row.key.kind == Kind.RANDOM else None
        rows[row.key.example_id, name_of(row), row.key.operator, row.key.direction, place] = row
    for example in record["examples"][:-1]:
        [field] = example["fields"]
        words = [piece for piece, unit in zip(field["pieces"], field["units"], strict=True) if unit >= 0]
        for place, cell in cells(record, example):
            if place["operator"] == "all":
                continue
            here, removes = (place["operator"], place["direction"]), place["direction"] == "necessity"

            def said(units, removes=removes, operator=place["operator"], words=words, example=example):
                fills = example["fills"].get(operator)
                kept = [(unit in units) != removes for unit in range(len(words))]
                shown = [word if each else fills and fills[0] for word, each in zip(words, kept, strict=True)]
                return " ".join(filter(None, shown))

            own = rows[example["id"], f"rationale:{place['attribution']}", *here, None]
            assert said(example["rationales"][cell["rationale"]]) == own.text and cell["text"] is None
            random = sets_of(example, cell)
            assert len(random) == len(example["nulls"][cell["null"]]) == 20
            assert [said(units) for _, units in random] == [
                rows[example["id"], "random", *here, number].text for number, _ in random
            ]


def test_a_null_names_the_set_that_it_leaves_out():
    done = run(texts(8, words=(6, 6)), model=Waves(), attributions={"mine": picks("mine")}, k=(0.34,), m=50)
    record = run_record(done.folder, budget=BUDGET)
    for example in record["examples"]:
        [(_, cell)] = cells(record, example)
        numbers, sets = zip(*sets_of(example, cell), strict=True)
        assert example["rationales"][cell["rationale"]] not in sets and len(set(map(tuple, sets))) == 14
        assert len(set(range(15)) - set(numbers)) == 1, "all 15 pairs of 6 units but the rationale"


def outcome_of(example_id, attribution="mine", operator="delete", *, error=None, win_rate=0.5, flags=()):
    named = {"example_id": example_id, "attribution": attribution, "operator": operator, "direction": "sufficiency"}
    numbers = ("win_rate_strict", "tie_rate", "p_value", "p_lower", "effect", "score", "score_full", "score_empty")
    made = {} if error else {**dict.fromkeys(numbers, 0.5), "win_rate": win_rate, "flags": flags}
    return ExampleOutcome(**named, k=0.2, null="size", n_units=9, target=1, gold=1, error=error, **made)


def test_the_most_telling_example_is_clear_under_all_operators_and_without_a_flaw():
    def rank(*rates, gold=1, n_units=12, n_cut=0, **changes):
        spans = tuple(Span("text", 2 * unit, 2 * unit + 1) for unit in range(n_units))
        example = InputRow("a", {"text": "a " * n_units}, spans=spans, gold=gold, target=1, n_cut=n_cut)
        named = itertools.product(("mine", "random"), ("delete", "infill"))
        lines = [outcome_of("a", *name, win_rate=rate, **changes) for name, rate in zip(named, rates, strict=True)]
        return telling(example, lines)

    clear = rank(0.9, 0.8, 0.5, 0.4)
    assert clear == pytest.approx(-0.4), "the least lead over the control of any operator"
    assert clear < rank(1.0, 0.6, 0.5, 0.5) < rank(0.5, 0.5, 0.9, 0.9)
    worse = [
        rank(1.0, 1.0, 0.0, 0.0, gold=0), rank(1.0, 1.0, 0.0, 0.0, n_units=3), rank(1.0, 1.0, 0.0, 0.0, n_units=60),
        rank(1.0, 1.0, 0.0, 0.0, n_cut=5), rank(1.0, 1.0, 0.0, 0.0, flags=("weak_signal",)),
    ]  # fmt: skip
    assert min(worse) > rank(0.0, 0.0, 1.0, 1.0)
    skipped = InputRow("b", {"text": "a"}, skip_reason="one unit")
    assert telling(skipped, [outcome_of("b", error="one unit")]) > max(worse)


def test_a_page_opens_with_the_most_telling_example(found, record):
    outcomes = {}
    for line in found.folder.examples():
        outcomes.setdefault(line.example_id, []).append(line)
    inputs = [row for part in found.folder.parts() for row in found.folder.inputs(part)]
    assert record["opens"] == min(inputs, key=lambda row: telling(row, outcomes[row.example_id])).example_id
    assert run_record(found.folder, budget=0)["opens"] is None


def test_attributions_share_a_null_that_is_the_same(record):
    # Two attributions, two operators, two directions: four nulls, and more only where a rationale was drawn too.
    numbers = [len(example["nulls"]) for example in record["examples"][:-1]]
    assert min(numbers) == 4 and max(numbers) <= 8


def test_an_example_that_takes_no_part_says_why(record):
    alone = record["examples"][-1]
    assert alone["skip"] is not None
    assert alone["cells"] == [alone["skip"]] * len(record["configurations"])
    assert alone["full"] is None and alone["flags"] == []


def test_operators_that_disagree_are_noted_as_the_summary_names_them(found, record):
    for line in found.folder.summary().agreement:
        noted = [
            example["id"]
            for example in record["examples"][:-1]
            for place, cell in cells(record, example)
            if place["operator"] == "delete" and cell["disagree"]
            and all(place[name] == getattr(line, name) for name in ("attribution", "direction", "k", "null"))
        ]  # fmt: skip
        assert sorted(noted) == sorted(line.disagree)


def test_some_operators_disagree_here(found):
    assert any(line.disagree for line in found.folder.summary().agreement)


def test_texts_are_cut_at_characters_not_at_their_halves():
    text = "so 😀 good"
    found = cut_at_units(text, [Span("text", 5, 9), Span("other", 0, 2), Span("text", 3, 4)], "text")
    assert found == [("so ", -1), ("😀", 2), (" ", -1), ("good", 0)]
    assert cut_at_units("a", [], "text") == [("a", -1)]


def test_scores_have_four_digits_and_an_end():
    assert scaled([0.12345, -1.0, float("inf"), -1e9]).tolist() == [123, -1000, 30000, -30000]


def test_very_long_counterfactuals_are_cut():
    assert shortened("a" * 600, 600) == "a" * 600
    assert shortened("a" * 2000, 600) == "a" * 600 + " …"


def test_the_page_gets_plain_values(found):
    data = browser_data([found.folder, found.folder])
    assert json.loads(json.dumps(data))["runs"][0] == json.loads(json.dumps(data["runs"][1]))


def shown(records, budget):
    """The records, each with its ranks, that fit the budget."""
    sketches = [(len(script_json(record).encode()), ranks) for record, ranks in records]
    return [records[place][0] for place in within(sketches, budget=budget)]


def ranked(number, skipped=0.0, rate=0.5, gap=0.0, telling_=0.0):
    return {"id": number}, (1 - skipped, rate, -gap, -telling_)


def test_where_not_all_fit_the_most_telling_examples_stay():
    records = [ranked(number) for number in range(100)]
    records[40], records[60], records[80] = ranked(40, skipped=1.0), ranked(60, rate=0.0), ranked(80, gap=1.0)
    records[90] = ranked(90, telling_=1.0)
    size = len(script_json({"id": 99}))
    kept = [record["id"] for record in shown(records, 5 * size)]
    assert kept == [0, 40, 60, 80, 90]
    assert shown(records, 101 * size) == [record for record, _ in records]
    assert shown(records, 0) == []


def test_records_of_a_budget_keep_the_order_of_the_data(found):
    records = list(example_records(found.folder))
    kept = [record["id"] for record in shown(records, 10_000)]
    assert 0 < len(kept) < 13
    assert kept == [record["id"] for record, _ in records if record["id"] in kept]


def test_a_page_that_holds_some_examples_reads_them_as_one_that_holds_all(found):
    every, some = (run_record(found.folder, budget=budget) for budget in (BUDGET, 10_000))
    ids = [record["id"] for record in some["examples"]]
    assert 0 < len(ids) < 13 and some["total"] == every["total"] == 13
    assert some["examples"] == [record for record in every["examples"] if record["id"] in ids]


def test_skipped_examples_alone_make_a_record():
    found = run(task_of(["alone", "a pair of words"]), model=Waves(), m=5)
    alone, pair = run_record(found.folder, budget=BUDGET)["examples"]
    assert (alone["skip"] is None, pair["skip"] is None) == (False, True)


def test_the_budget_is_that_of_the_page_where_markup_is_escaped():
    kept = shown([({"id": str(index), "text": "<" * 200}, (1.0, 0.5, 0.0, 0.0)) for index in range(20)], 10_000)
    assert 5 <= len(kept) < 20 and len(script_json(kept).encode()) <= 10_000 + len(kept) + 1  # brackets and commas


@pytest.mark.parametrize(
    "settings",
    [{"m": 20}, {"adaptive": "dataset", "m": 60}, {"adaptive": "examples", "n": 24}, {"protocol": "paper", "m": 20}],
    ids=["plain", "dataset", "examples", "paper"],
)
def test_the_browser_counts_the_disagreements_of_the_summary_under_every_option(settings):
    # Texts of a few words have fewer sets than are asked for: their nulls are exact, and others are not.
    given = [*texts(16, words=(6, 8)), *texts(16, words=(12, 14), seed=1)]
    attributions = {"hat": picks("hat"), "strong": picks("strong", towards=4)}
    done = run(given, attributions=attributions, operators=["delete", "infill", "mask-unk"], **settings)
    lines = list(done.folder.examples())
    assert {line.exact for line in lines if line.error is None} == {True, False}
    shown = run_record(done.folder, budget=10**9)
    for name in attributions:
        summary = [line for line in done.folder.summary().agreement if line.attribution == name]
        named = {example_id for line in summary for example_id in line.disagree or ()}
        noted = [
            example["id"]
            for example in shown["examples"]
            for place, cell in cells(shown, example)
            if (place["attribution"], place["operator"]) == (name, "delete") and cell["disagree"]
        ]
        assert set(noted) == named
