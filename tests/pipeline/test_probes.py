"""Probes: rows that attributions ask for are scored with all others, kept, and never mistaken for a null."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from tests.rows import each_row, name_of
from tests.small_runs import Waves, rows_of, task_of, texts, wave
from tests.toy_runs import Counting

import ice_eval
from ice_eval.attributions import Attribution, Lens
from ice_eval.errors import CapabilityError, ConfigError
from ice_eval.models.toy import BIAS, WEIGHTS, Toy
from ice_eval.operators import FillPool
from ice_eval.pipeline import queue as queue_module
from ice_eval.pipeline import rows as rows_module
from ice_eval.records import Encoded, PerUnit
from ice_eval.results.folder import CHECKSUMS
from ice_eval.results.ledger import NO_NAMES
from ice_eval.results.planning import cost_of
from ice_eval.results.summary import COMPARED
from ice_eval.results.view import shown_text

TEXTS = ["a gorgeous but dull film", "an awful film with witty words", "good fun and bad mess", "no words at all here"]


@dataclass(frozen=True, kw_only=True)
class Drops(Attribution):
    """What the log-odds lose when a unit goes."""

    needs: ClassVar[frozenset[str]] = frozenset({"values"})
    operator: str = "delete"

    def n_probes(self, n_units: int) -> int:
        return n_units + 1

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        masks = [np.concatenate([[[True] * item.n_units], ~np.eye(item.n_units, dtype=bool)]) for item in batch]
        return [values[0] - values[1:] for values in lens.values(batch, masks)]


@dataclass(frozen=True, kw_only=True)
class OneByOne(Drops):
    """The same, with a question for every unit."""

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        [full] = zip(*lens.values(batch, [np.ones((1, item.n_units), dtype=bool) for item in batch]), strict=True)
        found = []
        for item, whole in zip(batch, full, strict=True):
            gone = ~np.eye(item.n_units, dtype=bool)
            found.append(np.array([whole - lens.values([item], [gone[i : i + 1]])[0][0] for i in range(item.n_units)]))
        return found


def run(found=TEXTS, *, model=None, **settings):
    settings = {"attributions": {"drops": Drops()}, "operators": ["delete"], "m": 5} | settings
    return ice_eval.evaluate(model or Toy(), task_of(found), **settings)


def vectors(found, name="drops"):
    rows = [row for part in found.folder.parts() for row in found.folder.inputs(part)]
    return {row.example_id: list(row.attributions[name]) for row in rows}


def test_values_are_the_log_odds_of_the_explained_label():
    found = vectors(run())
    for index, text in enumerate(TEXTS):
        weights = np.array([WEIGHTS.get(word, 0.0) for word in text.split()])
        sign = 1 if BIAS + weights.sum() > 0 else -1
        assert found[str(index)] == pytest.approx((sign * weights).tolist())


def test_every_probe_is_a_row_of_the_ledger():
    found = run()
    rows = rows_of(found, "probe:drops")
    assert len(rows) == sum(1 + len(text.split()) for text in TEXTS)
    one = [row for row in rows if row.key.example_id == "0"]
    assert [row.key.set for row in one] == list(range(6))
    assert [row.kept for row in one] == [(0, 1, 2, 3, 4), *(tuple(set(range(5)) - {i}) for i in range(5))]
    assert {(row.key.operator, row.key.direction, row.key.draw) for row in rows} == {("delete", "sufficiency", 0)}
    assert all(row.key.size == len(row.kept) for row in rows)
    assert shown_text(found.folder.inputs(0)[0], one[2]) == "a but dull film"
    manifest = found.folder.manifest()
    assert manifest.cost.rows_by_kind["probe"] == manifest.cost.attribution_rows["drops"] == len(rows)
    assert manifest.cost.rows == sum(manifest.cost.rows_by_kind.values())


def test_statistics_read_no_probe():
    found = run()
    read = found.folder.ledger(0, NO_NAMES, kinds=COMPARED).records()
    assert {name_of(row) for row in read} == {"full", "empty", "random", "rationale:drops"}
    assert {name_of(row) for row in rows_of(found)} == {name_of(row) for row in read} | {"probe:drops"}


def test_a_method_may_ask_as_often_as_it_likes():
    at_once, one_by_one = run(), run(attributions={"drops": OneByOne()})
    assert vectors(at_once) == vectors(one_by_one)
    assert set(rows_of(at_once, "probe:drops")) == set(rows_of(one_by_one, "probe:drops"))


def test_an_input_that_a_probe_and_a_random_set_share_goes_through_the_model_once():
    model = Waves()
    found = ice_eval.evaluate(
        model, task_of(texts(3)), attributions={"drops": Drops()}, operators=["delete"], m=9, k=0.95
    )
    manifest = found.folder.manifest()
    assert manifest.cost.forwards < manifest.cost.rows
    assert manifest.cost.forwards == len({(row.input_ids) for row in rows_of(found)})


def test_probes_are_no_null_rows():
    # Sets of all units but one are what the probes keep too: as rows of a null they would come in twice.
    alone = run(attributions=["random"], k=0.9, m=3)
    beside = run(attributions={"random": None, "drops": Drops()}, k=0.9, m=3)
    lines = [[x for x in found.folder.examples() if x.attribution == "random"] for found in (alone, beside)]
    assert lines[0] == lines[1]
    assert rows_of(alone, "random") == rows_of(beside, "random")


def test_a_continued_run_never_scores_a_probe_again(tmp_path):
    model = Counting()
    first = run(model=model, out=tmp_path / "run")
    asked, rows = model.asked, rows_of(first)
    again = run(model=model, out=tmp_path / "run")
    assert model.asked == asked
    assert rows_of(again) == rows
    for name in ("inputs/part-000000-000.parquet", CHECKSUMS):  # as if killed between ledger and inputs
        (tmp_path / "run" / name).unlink()
    killed = run(model=model, out=tmp_path / "run")
    assert model.asked == asked
    assert sorted(rows_of(killed), key=repr) == sorted(rows, key=repr)
    assert vectors(killed) == vectors(again)


def test_probes_of_an_added_attribution_are_those_it_would_have_asked_for_at_once(tmp_path):
    both = {"random": None, "drops": Drops()}
    at_once = run(attributions=both, out=tmp_path / "once")
    run(attributions=["random"], out=tmp_path / "added")
    added = run(attributions=both, out=tmp_path / "added")
    assert vectors(at_once) == vectors(added)
    assert sorted(rows_of(at_once), key=repr) == sorted(rows_of(added), key=repr)
    assert at_once.folder.summary() == added.folder.summary()
    assert at_once.folder.manifest().cost.attribution_rows == added.folder.manifest().cost.attribution_rows


@pytest.mark.parametrize("budget", [1, 10_000])
def test_probes_do_not_depend_on_batches_or_other_attributions(budget):
    found = run(texts(20), model=Waves(), token_budget=budget)
    among = run(texts(20), model=Waves(), attributions={"random": None, "other": Drops(), "drops": Drops()})
    ours, theirs = rows_of(found, "probe:drops"), rows_of(among, "probe:drops")
    assert [(r.key, r.kept, r.input_ids) for r in ours] == [(r.key, r.kept, r.input_ids) for r in theirs]
    np.testing.assert_allclose([r.scores for r in ours], [r.scores for r in theirs], rtol=0, atol=1e-9)


@pytest.mark.parametrize("operator", ["mask-unk", "mask", "mask-pad", "infill"])
def test_a_method_chooses_the_operator_of_its_probes(operator):
    found = run(attributions={"drops": Drops(operator=operator)}, operators=["delete"])
    rows = rows_of(found, "probe:drops")
    assert {row.key.operator for row in rows} == {operator}
    assert len({len(row.input_ids) for row in rows if row.key.example_id == "0"}) == 1


def test_an_unknown_operator_or_one_that_the_model_cannot_write_is_refused_before_it_runs(tmp_path):
    with pytest.raises(ConfigError, match=r"no operator named 'masks'; did you mean 'mask'\?"):
        run(attributions={"drops": Drops(operator="masks")}, out=tmp_path / "run")

    def always(found):
        return [[0.3, 0.7]] * len(found)

    with pytest.raises(CapabilityError, match="mask"):
        run(model=always, attributions={"drops": Drops(operator="mask")}, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_function_answers_probes_too():
    def shouts(found):
        share = np.array([0.2 + 0.6 * ("film" in text) for text in found])
        return np.stack([1 - share, share], axis=1)

    task = task_of(["a film", "one more film here"], prompt="{text}")
    found = ice_eval.evaluate(shouts, task, attributions={"drops": Drops()}, operators=["delete"], m=3)
    assert np.argmax(vectors(found)["1"]) == 2


def test_scores_that_are_not_finite_reach_the_method_and_the_run_goes_on():
    class Fails(Toy):
        def log_scores(self, batch, labels, *, prefix=0):
            scores = super().log_scores(batch, labels, prefix=prefix)
            scores[[len(row.ids) == 4 + 4 for row in each_row(batch)]] = np.nan  # texts of four words
            return scores

    found = run(["one good film with words", "two bad films with more words"], model=Fails())
    assert np.isnan(vectors(found)["0"]).any()
    assert [line.error for line in found.folder.examples()] == ["the attribution 'drops' is not finite", None]


def test_calibrated_runs_give_calibrated_values():
    task = task_of(TEXTS, label_words={"a": " a", "b": " b", "c": " c"})
    found = ice_eval.evaluate(
        "toy", task, attributions={"drops": Drops()}, operators=["delete"], m=3, calibration="contextual"
    )
    prior = np.array(rows_of(found, "empty")[0].scores)
    targets = {row.example_id: row.target for part in found.folder.parts() for row in found.folder.inputs(part)}
    for name, target in targets.items():
        rows = [np.array(row.scores) - prior for row in rows_of(found, "probe:drops") if row.key.example_id == name]
        odds = [scores[target] - np.logaddexp.reduce(np.delete(scores, target)) for scores in rows]
        assert vectors(found)[name] == pytest.approx([odds[0] - each for each in odds[1:]])


def test_progress_counts_probes():
    class Heard:
        def __init__(self):
            self.totals, self.done = [], 0

        def say(self, message): ...
        def stop(self): ...

        def asked_to_stop(self):
            return False

        def start(self, total, *, examples):
            self.totals.append(total)

        def correct(self, total):
            self.totals.append(total)

        def advance(self, rows, *, scored=True):
            self.done += rows

    heard = Heard()
    found = run(texts(20, words=(12, 12)), model=Waves(), reporter=heard)
    assert heard.totals == [heard.done] * 3 and heard.done == found.folder.manifest().cost.rows


def test_a_plan_reckons_with_probes(tmp_path):
    found = run(texts(20, words=(12, 12)), model=Waves(), out=tmp_path / "run")
    cost, manifest = cost_of(found.folder), found.folder.manifest()
    assert cost.rows_example == 2 + 1 + 13 + 1  # references, rationale, probes, the set beyond m
    assert cost.rows_set == 1
    assert (
        cost.tokens_attribution == manifest.cost.attribution_tokens / 20 == manifest.cost.probe_tokens["drops"] / 20 > 0
    )
    planned = ice_eval.plan(
        Waves(), task_of(texts(20, words=(12, 12))), attributions={"drops": Drops()}, operators=["delete"], n=20, m=5
    )
    asked = planned.choices[0]
    assert asked.rows == manifest.cost.rows
    assert asked.tokens == pytest.approx(manifest.cost.tokens + manifest.cost.attribution_tokens, rel=0.05)


# --- fills of probes ----------------------------------------------------------------------------------------------


class ReadsFills(Toy):
    """No word of the explained texts means anything to it; words of the others, which infill writes, do."""

    def log_scores(self, batch, labels, *, prefix=0):
        strange = [self.codec.decode([row.ids])[0].split() for row in each_row(batch)]
        log_odds = np.array([1.0 + sum(wave([hash_of(w)]) for w in each if w.startswith("x")) for each in strange])
        return np.stack([-np.logaddexp(0, log_odds), -np.logaddexp(0, -log_odds)], axis=1)


def hash_of(word):
    return 7919 * int(word[1:])


def without_signal(operator="infill"):
    """A run on texts that mean nothing, filled from others that do; the mean win rate of what the probes show."""
    pooled = [text.replace("w", "x") for text in texts(200, seed=1)]
    found = ice_eval.evaluate(
        ReadsFills(),
        task_of([*texts(80), *pooled]),
        attributions={"drops": Drops(operator=operator)},
        operators=["infill"],
        n=80,
        m=20,
        n_fills=1,
    )
    return found.summary()["win_rate"][0]


def test_probes_have_fills_of_their_own_so_that_nothing_wins_where_nothing_is_to_be_found():
    assert without_signal() == pytest.approx(0.5, abs=0.12)


def test_with_the_fills_of_the_evaluation_nothing_would_seem_faithful(monkeypatch):
    def reused(engine, item, name):
        return rows_module._draw_fills(engine, item, "infill", 0).ids

    monkeypatch.setattr(queue_module, "probe_fills", reused)
    assert without_signal() > 0.9


def test_two_methods_draw_different_fills():
    found = run(attributions={"one": Drops(operator="infill"), "two": Drops(operator="infill")})
    one, two = ([row.input_ids for row in rows_of(found, f"probe:{name}")] for name in ("one", "two"))
    assert one != two
    again = run(attributions={"one": Drops(operator="infill")})
    assert [row.input_ids for row in rows_of(again, "probe:one")] == one


def test_an_example_that_cannot_be_filled_fails_for_the_methods_that_fill_and_for_no_other(monkeypatch):
    monkeypatch.setattr(FillPool, "can_fill", lambda pool, item: item.example_id != "1")
    found = run(attributions={"drops": Drops(operator="infill"), "random": None}, operators=["delete"])
    assert found.summary().set_index("attribution")["n"].to_dict() == {"drops": 3, "random": 4}
    [error] = [line.error for line in found.folder.examples() if line.error is not None]
    assert error == "the attribution 'drops' is not finite"
