"""`--scope prompt` and the protocols of the paper, its package and its scripts, on models whose answers are known."""

import json
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from tests.rows import ledger_rows, name_of

import ice_eval as ice
from ice_eval.choices import PROTOCOLS, ProtocolName
from ice_eval.rationales import independent_sets, units_of
from ice_eval.records import Kind
from ice_eval.results.ledger import clipped_nsr
from ice_eval.results.summary import adjusted_jointly, dropped
from ice_eval.results.view import shown_text
from ice_eval.settings import RunConfig, run_config
from ice_eval.stats import adjusted_known, percentile_interval, resampled_means, taxonomy, verdict
from ice_eval.tasks import HubData, read_as, tasks

TEXTS = ["a good warm film", "a bad cold slow film", "good food and good wine", "we waited and it was bad"]


@pytest.fixture
def evaluate(toy, sentiment_task):
    kept = []  # a run's folder goes with the run

    def run(**settings):
        task = sentiment_task(TEXTS, ["positive", "negative", "positive", "negative"])
        settings = {"attributions": ["gradient", "random"], "k": 0.3, "m": 8, **settings}
        kept.append(ice.evaluate(toy, task, **settings))
        return kept[-1]

    return run


def rows(run, name, **wanted):
    found = [row for row in ledger_rows(run.folder, 0) if name_of(row) == name]
    return [row for row in found if all(getattr(row.key, field) == value for field, value in wanted.items())]


def test_with_the_whole_prompt_every_word_of_the_template_may_go(evaluate):
    run = evaluate(scope="prompt", operators=["delete"])
    example = run.folder.inputs(0)[0]
    whole = example.fields["whole prompt"]
    assert whole == "Review: a good warm film\nSentiment:"
    assert [whole[span.start : span.end] for span in example.spans] == [
        "Review", ":", "a", "good", "warm", "film", "Sentiment", ":",
    ]  # fmt: skip
    for row in rows(run, "random", example_id=example.example_id):
        assert len(row.input_ids) == row.key.size == 2


def test_content_alone_is_the_default(evaluate):
    example = evaluate(operators=["delete"]).folder.inputs(0)[0]
    assert "whole prompt" not in example.fields
    assert [span.field for span in example.spans] == ["text"] * 4


def test_a_protocol_sets_scope_and_fills_and_a_flag_overrides_it(evaluate):
    released = evaluate(protocol="released").folder.manifest().config
    assert (released.scope, released.fills) == ("prompt", "own")
    mixed = evaluate(protocol="released", scope="content").folder.manifest().config
    assert (mixed.scope, mixed.fills) == ("content", "own")
    paper = evaluate(protocol="paper").folder.manifest().config
    assert (paper.scope, paper.fills) == ("content", "own")
    assert [config.sign for config in (released, mixed, paper)] == ["abs", "abs", "support"]
    assert evaluate(protocol="released", sign="support").folder.manifest().config.sign == "support"


def test_an_unknown_protocol_is_refused(evaluate):
    with pytest.raises(ice.ConfigError, match="protocol 'relased'; did you mean 'released'"):
        evaluate(protocol="relased")


@pytest.mark.parametrize("protocol", ["released", "authors"])
def test_every_attribution_of_the_package_and_the_scripts_has_random_sets_of_its_own(evaluate, protocol):
    run = evaluate(protocol=protocol)
    first = {name_of(row) for row in ledger_rows(run.folder, 0)}
    assert first == {
        "full", "empty", "random:gradient", "random:random", "rationale:gradient", "rationale:random"
    }  # fmt: skip
    sets = {name: [row.kept for row in rows(run, name, operator="delete")] for name in first}
    assert len(sets["random:gradient"]) == len(sets["random:random"]) == 8 * len(TEXTS)
    assert sets["random:gradient"] != sets["random:random"]
    assert all(line.m == 8 for line in run.folder.examples())


def test_independent_sets_repeat_and_hold_every_set():
    drawn = independent_sets(4, 1, 400, seed=0, example_id="x", attribution="a")
    shares = np.bincount([unit for (unit,) in map(units_of, drawn)], minlength=4) / 400
    np.testing.assert_allclose(shares, 0.25, atol=0.08)


@pytest.mark.parametrize(
    ("protocol", "win_rate", "p_value"), [("default", 0.5, 1.0), ("paper", 0.0, 1.0), ("released", 0.0, 1.0)]
)
def test_what_a_model_without_an_opinion_is_given(toy, sentiment_task, protocol, win_rate, p_value):
    """All rows tie: half a win for us, a loss for the paper and its package."""
    task = sentiment_task(["one two three four five", "six seven eight nine ten"], [0, 1])
    run = ice.evaluate(toy, task, attributions=["random"], operators=["delete"], m=4, protocol=protocol)
    assert run.summary()["win_rate"].tolist() == [win_rate]
    assert run.examples()["p_value"].tolist() == [p_value] * 2


def test_nsr_is_cut_and_a_weak_signal_is_nothing():
    values = np.tile([0.9, 0.5, 0.1], (4, 1))
    found = clipped_nsr(values, np.array([0.6, 0.9, 0.54, 0.1]), np.array([0.5, 0.1, 0.5, 0.5]))
    np.testing.assert_allclose(found[0], [2.0, 0.0, -2.0])
    np.testing.assert_allclose(found[1], [1.0, 0.5, 0.0])
    assert found[2].tolist() == [0.0, 0.0, 0.0]
    assert found[3].tolist() == [-1.0, 0.0, 1.0]  # a negative signal turns the order round


@pytest.mark.parametrize("protocol", ["paper", "released", "authors"])
@pytest.mark.parametrize("direction", ["sufficiency", "necessity"])
def test_numbers_follow_from_the_ledger_by_the_rules_of_the_protocol(evaluate, protocol, direction):
    """Every win rate, p-value and effect size once more, with loops, from the rows alone."""
    run = evaluate(protocol=protocol, directions=[direction], m=20)
    targets = {row.example_id: row.target for row in run.folder.inputs(0)}
    ledger = ledger_rows(run.folder, 0)

    def chance(row):
        return np.exp(row.scores[targets[row.key.example_id]])

    def measure(found, operators, example_id):
        """One value per set: their mean over operators."""
        [full] = [chance(r) for r in ledger if r.key[:2] == (example_id, Kind.FULL)]
        values = []
        for operator in operators:
            place = (example_id, Kind.EMPTY, operator if protocol == "released" else None)
            [empty] = [chance(r) for r in ledger if r.key[:3] == place]
            chosen = [r for r in found if r.key.operator == operator and r.key.example_id == example_id]
            scores = np.array([chance(r) for r in sorted(chosen, key=lambda r: r.key.set or 0)])
            if protocol == "released":
                scores = np.clip((scores - empty) / (full - empty), -2, 2) if abs(full - empty) >= 0.05 else 0 * scores
            values.append(scores)
        return np.mean(values, axis=0) * (1 if direction == "sufficiency" else -1)

    checked = 0
    for line in run.folder.examples():
        name, operators = line.attribution, [line.operator]
        if operators == ["all"]:
            operators = ["delete", "infill"]
        kind = "random" if protocol == "paper" else f"random:{name}"
        [observed] = measure([r for r in ledger if name_of(r) == f"rationale:{name}"], operators, line.example_id)
        own = [r for r in ledger if (name_of(r), r.key.example_id) == (f"rationale:{name}", line.example_id)]
        kept = next(r.kept for r in own if r.key.operator == operators[0])
        random = [r for r in ledger if name_of(r) == kind]
        if protocol == "paper":  # sets that differ from the rationale, the first m of them
            random = [r for r in random if r.kept != kept]
        null = measure(random, operators, line.example_id)[:20]
        assert line.m == len(null)
        assert line.win_rate == pytest.approx(np.mean(observed > null + 1e-12))
        assert line.p_value == pytest.approx((1 + np.sum(null >= observed - 1e-12)) / (len(null) + 1))
        if line.effect_size is not None:
            assert line.effect_size == pytest.approx((observed - null.mean()) / null.std(), abs=1e-6)
        checked += 1
    assert checked == len(TEXTS) * 2 * 3


@pytest.mark.parametrize("protocol", ["paper", "released"])
def test_intervals_are_percentiles_of_200_resamples(evaluate, protocol):
    run = evaluate(protocol=protocol, m=20)
    from ice_eval.seeding import rng_for

    for line in run.folder.summary().configurations:
        rates = np.array([e.win_rate for e in run.folder.examples() if e.configuration == line.configuration])
        assert line.win_rate == pytest.approx(rates.mean())
        rng = rng_for(0, "bootstrap")
        interval = percentile_interval(rates, rng=rng, n_resamples=200)
        assert line.win_rate_ci == interval
        drawn = resampled_means(rates, rng=rng_for(0, "bootstrap"), n_resamples=200)
        assert len(drawn) == 200 and interval == pytest.approx(np.quantile(drawn, [0.025, 0.975]))


@pytest.mark.parametrize("protocol", ["paper", "released"])
def test_words_are_those_of_the_win_rate_and_p_values_are_adjusted_as_in_the_paper(evaluate, protocol):
    run = evaluate(protocol=protocol, m=20)
    lines = run.folder.summary().configurations
    assert len(lines) == 6
    for line in lines:
        assert line.verdict.word == line.verdict_simultaneous.word == line.taxonomy == taxonomy(line.win_rate)
    by_rank = sorted(lines, key=lambda line: line.p_value)
    rejected = [line.p_value * len(lines) / rank for rank, line in enumerate(by_rank, start=1)]
    for place, line in enumerate(by_rank):
        assert line.p_adjusted == pytest.approx(min(1, *rejected[place:]))
    twice = adjusted_jointly([run.folder.summary()] * 2)
    joint = [line.p_adjusted for summary in twice for line in summary.configurations]
    assert joint == pytest.approx([line.p_adjusted for line in lines] * 2), "twice the same values, as often rejected"


def test_runs_of_the_default_protocol_keep_words_of_the_interval(evaluate):
    run, paper = evaluate(m=20), evaluate(m=20, protocol="paper")
    together = adjusted_jointly([run.folder.summary(), paper.folder.summary()])
    p_values = [line.p_value for summary in together for line in summary.configurations]
    found = [line.p_adjusted for summary in together for line in summary.configurations]
    assert found == pytest.approx(adjusted_known(p_values)), "Holm, as soon as one run is not the paper's"
    for line in run.folder.summary().configurations:
        assert line.verdict == verdict(line.win_rate_ci, tie_rate=line.tie_rate)


def test_the_mean_nsr_is_that_of_examples_with_a_signal(evaluate):
    run = evaluate(m=8)
    for line in run.folder.summary().configurations:
        known = [e.nsr for e in run.folder.examples() if e.configuration == line.configuration and e.nsr is not None]
        assert line.nsr_mean == pytest.approx(np.mean(known))
        assert all("weak_signal" not in e.flags or e.nsr is None for e in run.folder.examples())


def test_infill_of_the_package_and_the_scripts_may_write_what_gives_the_label_away(toy, sentiment_task):
    """The package keeps label words out and nothing else; we keep out what the labels tell apart."""
    texts = [word for n in range(12) for word in (f"good film number w{n}", f"bad film number w{n}")]
    task = sentiment_task(texts, [1, 0] * 12)

    def written(protocol):
        run = ice.evaluate(toy, task, attributions=["random"], operators=["infill"], m=8, protocol=protocol)
        examples = {row.example_id: row for part in run.folder.parts() for row in run.folder.inputs(part)}
        return {word for row in ledger_rows(run.folder) if row.key.kind == Kind.RANDOM
                for unit, word in enumerate(shown_text(examples[row.key.example_id], row).split())
                if word in {"good", "bad"} and unit not in row.kept}  # fmt: skip

    assert written("default") == set()
    assert written("released") == written("authors") == {"good", "bad"}


def test_the_manifest_names_the_protocol_and_rescore_follows_it(evaluate, tmp_path):
    run = evaluate(protocol="released", out=tmp_path / "run")
    before = json.loads((run.path / "summary.json").read_text())
    assert run.folder.manifest().config.protocol == "released"
    assert all({"protocol_released", "scope_prompt"} <= set(line["flags"]) for line in before["configurations"])
    page = run.report().read_text()
    assert "The choices of the paper&#39;s released package" in page
    run.rescore()
    assert json.loads((run.path / "summary.json").read_text()) == before
    assert set(PROTOCOLS) == {"default", "paper", "released", "authors"} == set(get_args(ProtocolName))


def test_a_folder_of_another_protocol_is_not_continued(evaluate, tmp_path):
    evaluate(out=tmp_path / "run", fills="own")
    with pytest.raises(ice.ConfigError, match="protocol is 'default' there and 'paper' here"):
        evaluate(out=tmp_path / "run", protocol="paper")


def test_nsr_order_is_the_order_of_the_released_protocol_and_the_mirror_of_the_others(evaluate):
    for protocol in ("default", "paper", "released"):
        run = evaluate(protocol=protocol, m=20)
        lines = {(e.attribution, e.operator, e.example_id): e for e in run.folder.examples()}
        for line in run.folder.summary().configurations:
            used = [e for key, e in lines.items() if key[:2] == (line.attribution, line.operator)]
            lost = [e.tie_rate if protocol == "paper" else 0.0 for e in used]
            mirrored = [
                1 - e.win_rate - tie if "negative_signal" in e.flags and protocol != "released" else e.win_rate
                for e, tie in zip(used, lost, strict=True)
            ]
            assert line.win_rate_nsr_order == pytest.approx(np.mean(mirrored))


def test_the_released_package_has_an_empty_input_for_each_operator(toy, evaluate):
    run = evaluate(protocol="released")
    words = {word.lower() for text in TEXTS for word in text.split()} | {"review", ":", "sentiment"}
    found = {row.key.operator: toy.codec.decode([row.input_ids])[0] for row in rows(run, "empty")}
    assert set(found) == {None, "delete", "infill"}
    assert len(found["infill"].split()) == 5
    assert {word.lower() for word in found["infill"].split()} <= words
    assert len({row.input_ids for row in rows(run, "empty", operator="infill")}) == 1  # the same for all examples
    assert run.folder.manifest().cost.rows == len(ledger_rows(run.folder, 0))


# ------------------------------------------------------------------------------------------ the scripts of the authors


def test_the_authors_choices_depend_on_the_task():
    config = run_config({"protocol": "authors"}, task="sst2/minimal", language="en")
    assert (config.scope, config.fills, config.n_fills, config.sign) == ("prompt", "own", 1, "support")
    assert (config.order, config.max_characters, config.min_confidence) == ("stored", 400, 0.4)
    assert run_config({"protocol": "authors"}, task="imdb/rating", language="en").max_characters == 500
    assert config.attributions == RunConfig().attributions
    french = run_config({"protocol": "authors"}, task="french", language="fr")
    assert french.attributions == ("attention:layer=-1", "gradient:norm=l1", "random")
    asked = run_config({"protocol": "authors", "attributions": "attention", "max_characters": 80}, language="fr")
    assert (asked.attributions, asked.max_characters) == (("attention",), 80)
    assert not config.choices.by_clipped_nsr and config.choices.strict and config.choices.percentile
    chain = run_config({"protocol": "authors"}, "chain")
    assert (chain.order, chain.max_characters, chain.min_confidence) == (None, None, None)


@pytest.mark.parametrize("protocol", ["default", "paper", "released"])
def test_no_other_protocol_cuts_or_filters(protocol):
    config = run_config({"protocol": protocol}, task="imdb", language="fr")
    assert (config.order, config.max_characters, config.min_confidence) == (None, None, None)
    assert config.attributions == RunConfig().attributions


def test_a_run_of_the_authors_protocol_cuts_texts_and_explains_the_whole_prompt(toy, sentiment_task, tmp_path):
    texts = ["good " * 120, "a bad cold slow film", "we waited there"]
    task = sentiment_task(texts, ["positive", "negative", "negative"])
    run = ice.evaluate(toy, task, operators=["delete"], m=5, protocol="authors", out=tmp_path / "run")
    first, second, _ = run.folder.inputs(0)
    assert (first.fields["text"], second.fields["text"]) == (texts[0][:400], texts[1])
    assert "whole prompt" in first.fields
    assert {"protocol_authors", "scope_prompt"} <= set(run.folder.summary().configurations[0].flags)
    identity = run.folder.manifest().identity
    assert (identity["order"], identity["max_characters"], identity["min_confidence"]) == ("stored", 400, 0.4)
    assert "d_null" in run.report().read_text()


def test_examples_below_the_smallest_confidence_are_skipped_with_a_reason_and_counted(evaluate):
    every = {line.example_id: line.score_full for line in evaluate().folder.examples()}
    low, *others = sorted(set(every.values()))
    run = evaluate(min_confidence=(low + others[0]) / 2)
    reason = f"the model's confidence in the explained label is below {(low + others[0]) / 2:g}"
    left_out = {row.example_id for row in run.folder.inputs(0) if row.skip_reason is not None}
    assert left_out == {name for name, value in every.items() if value == low} and left_out
    for line in run.folder.summary().configurations:
        assert line.skipped == {reason: len(left_out)} and line.n == len(every) - len(left_out)
    assert dropped(run.folder.summary()).n == 0, "nothing failed"
    assert not any(row.key.example_id in left_out and row.key.kind == Kind.RANDOM for row in ledger_rows(run.folder, 0))
    with pytest.raises(ice.ConfigError, match=r"min-confidence = 1.5: a share between 0 and 1"):
        evaluate(min_confidence=1.5)


def test_texts_are_cut_with_what_people_marked_in_them():
    rows = [{"text": "a good film and a warm one", "rationale": [[2, 6], [7, 14], [18, 22]]}]
    data = ice.Records([{**row, "topic": "cinema of the world"} for row in rows])
    words = {"a": " a", "b": " b"}
    task = ice.Task(data=data, prompt="{text}\nTopic: {topic}", label_words=words, explain=("text",))
    [example] = read_as(task, order=None, max_characters=11, max_tokens=None).examples()
    assert example.fields == {"text": "a good film", "topic": "cinema of the world"}, "what is not explained stays"
    assert [example.fields["text"][span.start : span.end] for span in example.human] == ["good", "film"]
    assert read_as(task, order=None, max_characters=None, max_tokens=None).examples() == task.examples()


def test_the_protocols_of_the_paper_alone_cut_texts_to_its_number_of_tokens():
    limits = {name: run_config({"protocol": name}).reading["max_tokens"] for name in PROTOCOLS}
    assert limits == {"default": None, "paper": 512, "released": 512, "authors": 512}


def test_what_defines_the_rows_defines_the_run(evaluate, tmp_path):
    plain = evaluate(out=tmp_path / "run").folder.manifest().identity
    assert not {"order", "max_characters", "min_confidence"} & set(plain), "runs of before keep their identity"
    with pytest.raises(ice.ConfigError, match="max_characters is None there and 8 here"):
        evaluate(out=tmp_path / "run", max_characters=8)
    with pytest.raises(ice.ConfigError, match="min_confidence is None there and 0.6 here"):
        evaluate(out=tmp_path / "run", min_confidence=0.6)
    assert evaluate(max_characters=8).folder.inputs(0)[0].fields["text"] == TEXTS[0][:8]


def test_a_text_that_a_model_wrote_has_no_confidence_of_a_label(toy):
    task = ice.Task(
        data=ice.Records([{"text": "a good film", "answer": "yes"}]), prompt="{text}", target_text="{answer}"
    )
    with pytest.raises(ice.ConfigError, match="--min-confidence are about labels"):
        ice.evaluate(toy, task, min_confidence=0.4, attributions=["random"], operators=["delete"], m=2)


def test_rows_of_the_hub_are_read_as_they_are_stored():
    data = HubData("somebody/reviews")
    task = replace(tasks.get("sst2")(), data=data)
    assert read_as(task, order="stored", max_characters=None).data.shuffle_seed is None
    assert read_as(task, order="shuffled", max_characters=None).data == data
    assert read_as(task, order=None, max_characters=None, max_tokens=None) == task
