"""What the blacklist of infill lets through, and whether it mattered in a run."""

import json
import os

import numpy as np
import pytest
from tests.helpers import save_tiny
from tests.small_runs import Waves, lines_of, picks, rows_of, run, task_of, texts

from ice_eval import stats
from ice_eval.analysis import audit_fills, audit_infill, giveaways
from ice_eval.encoding import blacklist_of, encode
from ice_eval.errors import ConfigError, DataError
from ice_eval.models import load_model, load_reader
from ice_eval.models.toy import Toy
from ice_eval.operators import PooledUnits
from ice_eval.records import Kind
from ice_eval.tasks import load_task


class Halving:
    """The toy's tokenizer, which cuts words of eight letters in two."""

    def __init__(self):
        self._toy = Toy().codec
        self.reads_pairs, self.max_tokens, self.special = False, 10_000, self._toy.special

    def tokenize(self, text, pair=None, *, framed=False):
        whole, cut = self._toy.tokenize(text), []
        for start, end in zip(whole.start.tolist(), whole.end.tolist(), strict=True):
            word = text[start:end]
            halves = len(word) == 8
            cut += [(start, start + 4), (start + 4, end)] if halves else [(start, end)]
        start, end = np.array(cut).T
        ids = np.array([hash_of(text[s:e]) for s, e in cut])
        return type(whole)(ids, np.zeros_like(ids), np.zeros_like(ids), start, end)

    def writes_special(self, text):
        return False

    def decode(self, rows):
        return [" ".join(map(str, row)) for row in rows]


def hash_of(text):
    return 100 + int.from_bytes(text.encode()[:7], "big") % 1_000_003


def audited(records, *, codec=None, **settings):
    task = task_of(records, **settings.pop("task", {}))
    codec = codec or Toy().codec
    items = [(encode(codec, task, example), example.gold) for example in task.examples()]
    found = audit_infill(codec, task, items, model="toy", **settings)
    return found, {each.reference: each for each in found.judged}


def labelled(found):
    return [{"text": text, "label": place % 2} for place, text in enumerate(found)]


def test_words_of_the_list_are_full_words_prefixes_or_sub_words():
    found, by = audited(
        labelled(["a charming tale", "a dull charming walk", "charismatic charm", "we walk on"]),
        codec=Halving(),
        words=["Charming", "dull"],
    )
    words = by["words"]
    kinds = {piece.text: piece.kind for piece in words.surviving.values()}
    assert kinds == {"char": "prefix", "ming": "sub-word", "dull": "full word"}
    assert (words.considered, words.blocked, found.word_list) == (3, {}, "given")
    assert {piece.text: piece.count for piece in words.surviving.values()} == {"char": 2, "ming": 2, "dull": 1}
    assert words.rate == pytest.approx(5 / found.units)
    lengths = np.array([len(text) for text in ([1, 2, 3, 4], [1, 2, 3, 4, 5], [1, 2], [1, 2, 3])])
    assert words.rate_per_example == pytest.approx(np.mean(1 - (1 - words.rate) ** (lengths - 1)))


def test_pieces_that_mostly_stand_elsewhere_are_not_indicative():
    _, by = audited(
        labelled(["a charming tale", "a charcoal sky", "some charcoal"]), codec=Halving(), words=["charming"]
    )
    assert {piece.text for piece in by["words"].surviving.values()} == {"ming"}


def test_what_the_blacklist_holds_is_blocked():
    found, by = audited(
        labelled(["a positive dull tale", "a grim walk of sorts"]),
        words=["dull", "grim"],
        task={"lexicon": frozenset({"dull"})},
    )
    words = by["words"]
    assert {piece.text for piece in words.blocked.values()} == {"positive", "dull"}
    assert [piece.text for piece in words.surviving.values()] == ["grim"]
    assert found.units_blocked == 2
    ids = next(iter(words.surviving))
    assert ids in found.pool


def test_a_word_that_tells_the_label_in_both_halves_is_blocked_and_one_of_a_single_half_is_not():
    records = []
    for place, text in enumerate(texts(120, vocabulary=40)):
        label = place % 2
        words = [text, ["both", "sides"][label]]
        if place // 2 % 2:  # the examples of a label go into the halves in turn
            words.append("single" if label else "other")
        records.append({"text": " ".join(words), "label": label})
    _, by = audited(records)
    held = by["held out"]
    assert held.surviving.keys().isdisjoint({(i,) for i in Toy().codec.tokenize("both sides").ids.tolist()})
    assert {"single", "other"} <= {piece.text for piece in held.surviving.values()}
    assert {"both", "sides"} <= {piece.text for piece in held.blocked.values()}
    assert held.considered == len(held.blocked) + len(held.surviving)
    assert held.p_value < 0.02
    assert held.rate > held.rate_by_chance


def test_where_no_word_tells_the_label_no_more_survives_than_by_chance():
    _, by = audited(labelled(texts(200, vocabulary=60, seed=3)))
    held = by["held out"]
    assert held.p_value > 0.05
    assert len(held.surviving) < 3 * held.surviving_by_chance


def test_without_gold_labels_the_words_judge_alone():
    found, by = audited([{"text": text} for text in texts(6)])
    assert list(by) == ["words"]
    assert any("no gold labels" in note for note in found.notes)


def test_lists_go_by_labels():
    words, name = giveaways(load_task("sst2"))
    assert name == "sentiment" and {"dull", "gorgeous"} <= words
    topics = task_of(["x"], label_words={each: f" {each}" for each in ("World", "Sports", "Business", "Sci/Tech")})
    assert giveaways(topics)[1] == "topics"
    assert giveaways(task_of(["x"], label_words={"a": " a", "b": " b"})) == (frozenset(), None)


def test_examples_without_units_are_refused():
    with pytest.raises(DataError, match="the examples have no units"):
        audited(labelled(["", ""]))


@pytest.fixture(scope="module")
def finished():
    records = [
        {"text": text, "label": place % 2, "id": f"e{place}"} for place, text in enumerate(texts(30, words=(5, 9)))
    ]
    task = task_of(records)
    mine = {"good": picks("good", towards=3.0), "poor": picks("poor")}
    made = run(task, attributions=mine, operators=["delete", "infill"], m=6, n=30, k=[0.2, 0.4], n_fills=1)
    items = {e.id: (encode(Toy().codec, task, e), e.gold) for e in task.examples()}
    audit = audit_infill(
        Toy().codec, task, list(items.values()), model="waves", words=[f"w{n}" for n in range(0, 400, 9)]
    )
    return made, task, {name: item for name, (item, _) in items.items()}, audit


def test_fills_are_counted_as_a_slow_loop_counts_them(finished):
    made, _, items, audit = finished
    found = {each.reference: each for each in audit_fills(made.folder, audit, items).counts}["words"]
    marked = {ids[0] for ids in audit.judged[0].surviving}
    assert marked
    fills = bad = rows = bad_rows = 0
    around = set()
    for row in rows_of(made):
        if row.key.operator == "infill":
            full = items[row.key.example_id]
            content = row.input_ids[2 : 2 + full.n_units]
            written = [token for unit, token in enumerate(content) if unit not in row.kept]
            hits = sum(token in marked for token in written)
            fills, bad, rows, bad_rows = fills + len(written), bad + hits, rows + 1, bad_rows + (hits > 0)
            if hits and row.key.kind == Kind.RATIONALE:
                around.add(row.key.example_id)
    assert 0 < bad < fills
    assert (found.fills, found.contaminated_fills) == (fills, bad)
    assert (found.rows, found.contaminated_rows) == (rows, bad_rows)
    assert (found.examples, found.contaminated_examples) == (30, len(around))


def test_win_rates_with_and_without_telling_fills_are_compared(finished):
    made, _, items, audit = finished
    effects = audit_fills(made.folder, audit, items).effects
    assert len(effects) == 2 * 2 * 2  # references, attributions, k
    marked = {ids[0] for ids in audit.judged[0].surviving}
    [effect] = [e for e in effects if (e.reference, e.attribution, e.k) == ("words", "good", 0.2)]
    lines = {line.example_id: line for line in lines_of(made, attribution="good", operator="infill", k=0.2)}
    sides = {True: [], False: []}
    for row in rows_of(made, "rationale:good"):
        line = lines[row.key.example_id]
        if row.key.operator == "infill" and row.key.size == len(line.rationale):
            content = row.input_ids[2 : 2 + items[row.key.example_id].n_units]
            told = any(token in marked for unit, token in enumerate(content) if unit not in row.kept)
            sides[told].append(line.win_rate)
    assert (effect.n_contaminated, effect.n_clean) == (len(sides[True]), len(sides[False]))
    expected = stats.unpaired_difference(np.array(sides[False]), np.array(sides[True]))
    assert effect.difference == pytest.approx(np.mean(sides[True]) - np.mean(sides[False]))
    assert (effect.difference_ci, effect.p_value) == (expected.interval, expected.p_value)
    assert effect.p_adjusted >= effect.p_value


def test_fills_of_the_run_are_units_of_its_pool(finished):
    made, task, _, audit = finished
    entries = [PooledUnits.of(encode(Toy().codec, task, e), e.gold) for e in task.examples()]
    blacklist = blacklist_of(Toy().codec, task, entries)
    assert audit.pool == {ids for e in entries for ids, text in e.units if not blacklist.blocks(text, ids)}


def test_other_examples_than_those_of_the_run_are_refused(finished):
    made, task, items, audit = finished
    other = {**items, "e3": encode(Toy().codec, task, task_of([{"id": "e3", "text": "quite another"}]).examples()[0])}
    with pytest.raises(ConfigError, match=r"example 'e3' differs from that of .*give --model"):
        audit_fills(made.folder, audit, other)


def test_a_run_without_infill_is_refused(finished):
    _, _, items, audit = finished
    bare = run(texts(4), n=4, m=3, model=Waves())
    with pytest.raises(ConfigError, match="holds no infill rows; run it with --operators infill"):
        audit_fills(bare.folder, audit, items)


@pytest.mark.parametrize("family", ["gpt2", "bert"])
def test_a_reader_needs_no_weights_and_reads_as_the_model_does(tmp_path, family):
    save_tiny(tmp_path, family)
    task = load_task("demo")
    example = task.examples(limit=1)[0]
    model = load_model(str(tmp_path), device="cpu")
    expected, labels = encode(model.codec, task, example), model.labels(task)
    for file in tmp_path.glob("*.safetensors"):
        os.unlink(file)
    reader = load_reader(str(tmp_path))
    assert encode(reader.codec, task, example).ids.tolist() == expected.ids.tolist()
    assert reader.labels(task) == labels


def test_results_go_into_json(finished):
    made, _, items, audit = finished
    content = json.loads(json.dumps({**audit.as_dict(), **audit_fills(made.folder, audit, items).as_dict()}))
    assert content["judged"][0]["surviving"][0].keys() == {"text", "kind", "count"}
    assert "pool" not in content
    assert content["judged"][0]["considered"] == sum(
        len(content["judged"][0][each]) for each in ("blocked", "surviving")
    )
