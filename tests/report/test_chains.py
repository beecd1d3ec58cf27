import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser

import pytest

pytest.importorskip("openai", reason="chains are asked of a server through the extra 'api'")

from tests.made_records import reasoning_of
from tests.report.chain_runs import EVERY, SCRIPT

import ice_eval
from ice_eval.cli import app
from ice_eval.records import Kind
from ice_eval.report import (
    FORMATS,
    difference_tables,
    failures,
    notes,
    tables,
    words_of,
    write_html,
)
from ice_eval.report.chains import chain_verdict, cot_notes, cot_tables, headlines, plain_words
from ice_eval.report.example import chain_view, example_lines, operator_of
from ice_eval.report.figures import figures
from ice_eval.report.provenance import command, provenance
from ice_eval.results import RunFolder, differences, view_example
from ice_eval.stats import PATTERNS, ReasoningVerdict


@pytest.fixture
def folder(chains):
    return chains


@pytest.fixture
def unread(shy_chains):
    return shy_chains


@pytest.fixture(scope="module")
def page(chains, tmp_path_factory):
    return write_html([chains], tmp_path_factory.mktemp("page") / "report.html").read_text(encoding="utf-8")


class Words(HTMLParser):
    """The text of a page, without scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.found, self.tags = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        if self.cdata_elem is None:
            self.found.append(data)

    def __str__(self):
        return " ".join(" ".join(self.found).split())


def table(summary, title):
    [found] = [each for each in cot_tables(summary) if each.title == title]
    return [dict(zip(found.header, row, strict=True)) for row in found.rows]


# --- tables and notes -------------------------------------------------------------------------------------------


def test_tables_hold_what_the_summary_says(folder):
    content = folder.summary().chains
    [problems] = table(folder.summary(), "Chains of thought")
    assert (problems["problems"], problems["evaluated"], problems["skipped"]) == ("5", "5", "0")
    assert problems["accuracy"] == "100.0 %" and problems["steps (mean)"] == "6.0"
    lines = table(folder.summary(), "Do the steps carry the answer?")
    assert len(lines) == 4, "two operators and two shares, of long chains alone"
    first = content.capacity[0]
    assert lines[0]["Nec"] == f"{100 * first.necessity:.1f} %"
    assert lines[0]["SRC adj."] == f"{first.src_adjusted:.2f}"
    assert lines[0]["SRC adj. 95 % CI"] == "[{:.2f}, {:.2f}]".format(*first.src_adjusted_ci)
    assert lines[0]["verdict"] == str(first.verdict) and lines[0]["chains"] == "5 steps or more"
    cut = [line["of the chains"] for line in table(folder.summary(), "Whole, empty, shuffled and cut chains")]
    assert "another answer to the steps in another order" in cut
    assert "own answer after the first 75 % of the steps" in cut
    gaps = table(folder.summary(), "How far the numbers depend on the operator and the pose")
    assert [line["measure"] for line in gaps] == [*["necessity", "sufficiency"] * 2, "capacity", "capacity"]
    [agreement] = table(folder.summary(), "Do raw scores and win rates agree?")
    counts = [int(agreement[name]) for name in ("both say yes", "neither", "raw score alone", "win rate alone")]
    assert sum(counts) == int(agreement["configurations"]) == len(content.raw)


def test_unreadable_replies_leave_bounds(folder, unread):
    title = "What unreadable replies leave open"
    assert title not in {each.title for each in cot_tables(folder.summary())}
    [line] = table(unread.summary(), title)
    found = next(each for each in unread.summary().chains.capacity if each.chains == "short")
    assert line["unreadable"] == f"{100 * found.unreadable_rate:.1f} %"
    assert line["SRC within"] == "[{:.2f}, {:.2f}]".format(*found.src_bounds)
    assert any("cannot be read" in note for note in cot_notes(unread.summary()))


def test_notes_say_what_is_said_and_why(folder, unread):
    found = cot_notes(folder.summary())
    verdict = folder.summary().chains.capacity[0].verdict
    assert found[0] == f"{plain_words(verdict)[:-1]} (delete, k = 0.2, chains: 5 steps or more, n = 5)."
    assert "Fewer than 50 chains: the intervals are rough." in found
    assert not any("one step is always more" in note for note in found)
    assert any(
        "fewer than 5 steps one step is always more than a fifth" in note for note in cot_notes(unread.summary())
    )


@pytest.mark.parametrize(
    ("open_", "said"),
    [
        ("decorative or genuine", "It is not certain whether the steps carry the answer"),
        ("noisy or genuine", "It is not certain whether the steps carry the answer"),
        ("scaffolding or genuine", "The answer depends on the steps, at least in part"),
        ("redundant or genuine", "The answer depends on the steps"),
        ("parametric or decorative", "The answer depends little on the steps, if at all"),
    ],
)
def test_an_undetermined_verdict_says_what_is_open_and_what_is_not(folder, open_, said):
    summary = judged(folder, lambda line: line.verdict and open_)
    assert "A verdict is undetermined where" in " ".join(cot_notes(summary))
    assert chain_verdict(summary).title == f"{said}: undetermined ({open_})."


def test_operators_that_differ_are_not_put_into_one_word(folder):
    summary = judged(folder, lambda line: line.verdict and ("genuine" if line.operator == "replace" else "decorative"))
    found = chain_verdict(summary)
    assert found.title == "The verdict depends on how steps are removed."
    assert [each.verdict for each in found.operators] == ["decorative", "genuine"]
    ends = {"delete": "scaffolding", "replace": "genuine"}
    by_heart = reasoning_of("parametric")
    alike = changed(folder, lambda line: replace(line, verdict=replace(by_heart, highest=ends[line.operator])))
    assert chain_verdict(alike).title == "The model gives this answer without the steps: parametric.", "of any capacity"


def changed(folder, change):
    """The summary of a run with other lines about the capacity of its chains."""
    summary = folder.summary()
    return replace(summary, chains=replace(summary.chains, capacity=tuple(map(change, summary.chains.capacity))))


def judged(folder, verdict):
    """The summary of a run with other verdicts on its chains."""
    return changed(folder, lambda line: replace(line, verdict=reasoning_of(verdict(line))))


def mixed(folder, n_long, n_short):
    """The summary of a run as if so many long and short chains had been evaluated."""
    counts = {"long": n_long, "short": n_short, "all": n_long + n_short}
    return changed(folder, lambda line: replace(line, n=counts[line.chains], k_effective=0.2))


@pytest.mark.parametrize(
    ("n_long", "n_short", "leading"),
    [(1, 13, "all"), (7, 7, "all"), (8, 7, "long"), (50, 400, "long"), (49, 400, "all"), (0, 3, "all")],
)
def test_few_long_chains_do_not_speak_for_a_run_of_short_ones(folder, n_long, n_short, leading):
    found = headlines(mixed(folder, n_long, n_short).chains)
    assert [line.operator for line in found] == ["delete", "replace"]
    assert {line.chains for line in found} == {leading}


def test_operators_without_a_capacity_and_other_poses_do_not_lead(folder):
    def other(line):
        named = line.operator.replace("replace", "paraphrase")
        return replace(line, operator=named, src=None, verdict=None) if named == "paraphrase" else line

    assert [line.operator for line in headlines(changed(folder, other).chains)] == ["delete"]
    posed = changed(folder, lambda line: replace(line, operator=line.operator.replace("replace", "delete@neutral")))
    assert [line.operator for line in headlines(posed.chains)] == ["delete"]
    assert not [line for line in failures([posed], ["undetermined"]) if "@" in line]


def test_the_verdict_says_of_which_chains_it_is_and_how_many(folder):
    summary = mixed(folder, 1, 13)
    capacity = [replace(each, src=0.5, verdict=reasoning_of("decorative")) for each in summary.chains.capacity]
    summary = replace(summary, chains=replace(summary.chains, capacity=tuple(capacity)))
    assert "n\u00a0=\u00a014 chains of any length" in chain_verdict(summary).operators[0].text
    assert any("Chains of 5 steps or more: 1 of 14, too few" in note for note in cot_notes(summary))
    assert "n\u00a0=\u00a05 chains of 5 steps or more" in chain_verdict(folder.summary()).operators[0].text


def test_runs_are_numbered_and_other_kinds_say_nothing_of_chains(folder, unread, summary):
    ordinary = summary({})
    assert cot_tables(ordinary) == cot_notes(ordinary) == []
    found = {each.title: each for each in cot_tables(ordinary, folder.summary(), unread.summary())}
    assert [row[0] for row in found["Chains of thought"].rows] == ["2", "3"]
    assert any(note.startswith("Run 3: ") for note in cot_notes(ordinary, folder.summary(), unread.summary()))


@pytest.mark.parametrize("style", ["md", "latex"])
def test_tables_have_every_format(folder, unread, style):
    for summaries in ([folder.summary()], [unread.summary()], [folder.summary(), unread.summary()]):
        text = "\n".join(FORMATS[style](each) for each in tables(summaries))
        assert "SRC adj." in text
        assert bool(re.search(r"\beffect\b", text)) == any(each.configurations for each in summaries)


def test_a_run_without_explanations_has_chains_to_speak_of(unread):
    assert not unread.summary().configurations
    assert notes(unread.summary()) == cot_notes(unread.summary())
    assert {each.title for each in tables([unread.summary()])} == {each.title for each in cot_tables(unread.summary())}


# --- single chains ----------------------------------------------------------------------------------------------


def test_steps_have_the_effect_of_their_removal(folder):
    view = view_example(folder, "p0")
    found = chain_view(view.example, view.rows, operator_of(view))
    assert found.alone and found.operator == "delete"
    assert [step.effect for step in found.steps] == [0, 1, 1, 1, 1, 1]
    assert found.steps[0].text == f"Note {SCRIPT.format('chain')} first."
    assert found.steps[0].n_read == 2, "a random set of one step, and the probe of leave-one-out"
    assert [reply.changed for reply in found.whole] == [False] and found.whole[0].times == 3
    assert [reply.changed for reply in found.empty] == [True]
    assert found.answer == found.gold and found.is_right


def test_random_sets_tell_where_no_step_was_removed_alone(folder):
    view = view_example(folder, "p0")
    pairs = [row for row in view.rows if row.key.size != 1 and row.key.kind != Kind.PROBE]
    found = chain_view(view.example, pairs, "delete")
    assert not found.alone
    sets = [row for row in pairs if row.key[1:4] == (Kind.RANDOM, "delete", "necessity")]
    gone = [row for row in sets if 1 not in row.kept]
    assert found.steps[1].n_read == len(gone) > 0
    loads = [row for row in pairs if row.key.kind != Kind.RANDOM or set(range(1, 6)) - set(row.kept)]
    assert chain_view(view.example, loads, "delete").always and not chain_view(view.example, view.rows, "delete").always


def test_show_numbers_the_steps_and_tells_what_was_said_without_them(folder):
    lines = [line.plain for line in example_lines(view_example(folder, "p0"), n_random=1)]
    [first] = [place for place, line in enumerate(lines) if line.startswith("  1  +0.00  0/2  Note ")]
    assert lines[first + 1].startswith("      without it: '<script>") and lines[first + 1].endswith("2 times)")
    assert sum(bool(re.match(r"  \d  \+1\.00  2/2  Load ", line)) for line in lines) == 5
    assert any(line.startswith("own answer: ") and line.endswith("(right)") for line in lines)
    assert any(re.match(r"  step \d removed: ", line) for line in lines), "what an explanation chose"
    assert not any("explained label" in line for line in lines)
    coloured = list(example_lines(view_example(folder, "p0"), colour=True))
    [step] = [line for line in coloured if line.plain.startswith("  2  +1.00")]
    assert any(span.style for span in step.spans)


def test_show_as_json_has_the_steps(folder, capsys):
    app(["show", str(folder.path), "--example", "p1", "--json"], standalone_mode=False)
    content = json.loads(capsys.readouterr().out)
    assert [step["effect"] for step in content["steps"]] == [0, 1, 1, 1, 1, 1]
    assert content["removed"] == {"operator": "delete", "alone": True}


def test_a_notebook_shows_the_chain_and_the_run(folder):
    run = ice_eval.Run(folder.path)
    shown = run.example("p0")._repr_html_()
    assert "<script" not in shown and "+1.00" in shown and "rgba(15,107,98,0.60)" in shown
    assert "SRC adj." in run._repr_html_() and repr(run.example("p0")).startswith("example p0\nquestion: ")


# --- the page ---------------------------------------------------------------------------------------------------


def test_the_page_leads_with_a_verdict_on_the_chains(folder, page):
    words = str(Words(page))
    assert "Do the steps carry the answer?" in words
    assert chain_verdict(folder.summary()).title in words
    assert words.index("SRC beyond noise") < words.index("Do explanations find the steps that matter?")
    for name in ("chain-capacity", "chain-necessity-sufficiency", "chain-early-answers"):
        assert f'data-figure="{name}"' in page


@pytest.mark.parametrize("term", ["NSR", "explained label", "forward passes", "same, changed", "units are"])
def test_the_page_says_nothing_that_makes_no_sense_of_steps(page, term):
    assert term not in str(Words(page))


@pytest.mark.parametrize("where", ["question", "chain", "reply"])
def test_what_models_and_users_write_is_never_markup(page, where):
    assert SCRIPT.format(where) not in page
    data = re.search(r'id="browser-data">(.*?)</script>', page, flags=re.DOTALL)[1]
    assert SCRIPT.format(where) in json.dumps(json.loads(data), ensure_ascii=False)
    assert Words(page).tags.count("script") == 5


def test_chains_of_the_page_hold_what_their_steps_do(page):
    [run] = json.loads(re.search(r'id="browser-data">(.*?)</script>', page, flags=re.DOTALL)[1])["runs"]
    assert run["chains"]
    chain = run["examples"][0]["chain"]
    assert [step["effect"] for step in chain["steps"]] == [0, 1, 1, 1, 1, 1]
    assert chain["right"] is True and chain["empty"][0][1] is True


def test_runs_with_and_without_explanations_share_a_page(folder, unread, tmp_path):
    words = str(Words(write_html([folder, unread], tmp_path / "both.html").read_text(encoding="utf-8")))
    assert "Run 1: " in words and "fewer than 5 steps" in words
    alone = str(Words(write_html([unread], tmp_path / "one.html").read_text(encoding="utf-8")))
    assert "Do explanations find" not in alone and "What unreadable replies leave open" in alone


def test_provenance_tells_who_answered(folder):
    found = dict(provenance(folder.manifest()))
    assert found["model"] == "openai:scripted, server; answers came from served"
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/v1", found["server"]) and found["fingerprints of answers"] == "fp_1"
    assert "tokens read" in found["cost"]
    assert command(folder.manifest()) is None


# --- figures ----------------------------------------------------------------------------------------------------


def rows_of(figure):
    """The rows that dots are drawn from."""
    spec = figure.chart.to_dict()
    return spec["datasets"][spec["data"]["name"]] if "datasets" in spec else spec["data"]["values"]


def test_a_classification_put_as_a_question_has_the_name_of_the_papers_task(folder, tmp_path):
    copy = RunFolder(shutil.copytree(folder.path, tmp_path / "run"))
    path = copy.path / "manifest.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"gsm8k"', '"sst2/reasoning"'), encoding="utf-8")
    dots = rows_of(next(figure for figure in figures([copy]) if figure.name == "chain-capacity"))
    assert [dot["task"] for dot in dots if not dot["published"]] == ["sst2"]


def test_a_run_stands_beside_the_published_models(folder):
    drawn = {figure.name: figure for figure in figures([folder])}
    dots = rows_of(drawn["chain-capacity"])
    assert [dot["published"] for dot in dots] == [False] + 6 * [True]
    line = folder.summary().chains.capacity[0]
    assert (dots[0]["src"], (dots[0]["low"], dots[0]["high"])) == (line.src, line.src_ci)
    assert "Hollow marks" in drawn["chain-capacity"].caption


def test_several_runs_have_a_dot_each(folder, unread):
    drawn = {figure.name: figure for figure in figures([folder, unread])}
    assert [dot["published"] for dot in rows_of(drawn["chain-capacity"])] == [False, False]
    assert {row["row"] for row in rows_of(drawn["chain-necessity-sufficiency"])} != {""}
    shares = [row["share"] for row in rows_of(drawn["chain-early-answers"])]
    assert shares == [0, 0.25, 0.5, 0.75, 1], "the other run has not cut its chains"


def test_necessity_is_drawn_with_intervals_and_the_noise_floor(folder):
    [figure] = [each for each in figures([folder]) if each.name == "chain-necessity-sufficiency"]
    rows = rows_of(figure)
    assert len(rows) == 2 * 2 * 2 and all(
        row["low"] is None or row["low"] <= row["rate"] <= row["high"] for row in rows
    )
    assert [row["floor"] for row in rows if row["column"].startswith("Suf")] == 4 * [None]
    assert {row["floor"] for row in rows if row["column"].startswith("Nec")} == {0}


# --- commands ---------------------------------------------------------------------------------------------------


def test_rescoring_keeps_what_is_said_of_chains(folder):
    before = (folder.path / "summary.json").read_bytes()
    ice_eval.Run(folder.path).rescore()
    assert (folder.path / "summary.json").read_bytes() == before


def test_runs_are_compared_by_their_capacity(folder, unread):
    found = differences(folder, [folder])
    [chains] = [each for each in difference_tables(found) if each.title == "Do the steps carry the answer?"]
    assert len(chains.rows) == 4
    row = dict(zip(chains.header, chains.rows[0], strict=True))
    line = folder.summary().chains.capacity[0]
    assert row["SRC adj. A"] == row["SRC adj. B"] == f"{line.src_adjusted:.2f}"
    assert row["verdict A"] == str(line.verdict) and row["n"] == "5, 5"
    titles = {each.title for each in difference_tables(differences(unread, [unread]))}
    assert titles == {"Do the steps carry the answer?"}, "without explanations there is nothing else to compare"


def test_a_gate_knows_the_words_for_chains(folder):
    def held(verdict):
        summary = judged(folder, lambda line: line.verdict and verdict)
        return {word for word in words_of([",".join((*PATTERNS, "undetermined"))]) if failures([summary], [word])}

    for word in PATTERNS[2:]:
        assert held(word) == {word}
    assert held("decorative or scaffolding") == {"decorative", "scaffolding", "undetermined"}
    assert held("parametric") == {"parametric", "decorative"}, "neither needs the steps"
    assert held("noisy") == {*PATTERNS}, "that says nothing of the steps"
    summary = judged(folder, lambda line: line.verdict and "decorative or scaffolding")
    named = "chains under delete (k = 0.2): undetermined (decorative or scaffolding)"
    assert failures([summary], ["decorative"])[0] == named


@pytest.mark.parametrize("verdict", [None, "undetermined (too few examples)"])
def test_a_gate_does_not_pass_where_there_is_no_verdict_on_chains(folder, verdict):
    summary = judged(folder, lambda line: verdict)
    for word in (*PATTERNS, "undetermined"):
        assert failures([summary], [word])[0] == f"chains under delete (k = 0.2): {verdict or 'undetermined'}"
    assert failures([folder.summary(), summary], ["genuine"])[-1].startswith("run 2: chains under replace (k = 0.2)")
    empty = replace(summary, chains=replace(summary.chains, capacity=()))
    assert failures([empty], ["genuine"]) == ["chains: undetermined (no chain could be evaluated)"]


def test_commands_take_step_level_runs(folder, unread, capsys, tmp_path):
    app(["report", str(folder.path)], standalone_mode=False)
    short = capsys.readouterr().out
    assert "Do the steps carry the answer?" in short and "Win rates against random sets" in short
    app(["report", str(folder.path), "--full"], standalone_mode=False)
    said = capsys.readouterr().out
    assert "Do the steps carry the answer?" in said and "Faithfulness of the explanations of steps" in said
    app(["compare", str(folder.path), str(folder.path)], standalone_mode=False)
    assert "position" in capsys.readouterr().out
    app(["report", str(unread.path), "--format", "md"], standalone_mode=False)
    assert "**Chains of thought**" in capsys.readouterr().out
    assert set(EVERY) == {*folder.manifest().config.operators, *folder.manifest().config.chain.arrangements}


def test_every_verdict_has_plain_words():
    sentences = {plain_words(reasoning_of(word)) for word in PATTERNS}
    assert (
        len(sentences) == len(PATTERNS) == sum(each.endswith(f": {word}.") for each in sentences for word in PATTERNS)
    )
    assert plain_words(ReasoningVerdict(reason="too few examples")) == (
        "Nothing can be said: undetermined (too few examples)."
    )
