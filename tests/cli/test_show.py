"""`ice show`."""

import json
import re

import pytest
from tests.cli.commands import assert_refused

from ice_eval.report.example import quoted


def test_an_unknown_example_gets_a_suggestion(ice, run, finished, tmp_path_factory):
    assert_refused(ice("show", finished, "--example", "8"), "no example '8'", "It holds 8, from '0' to '7'")
    path = tmp_path_factory.mktemp("named") / "d.jsonl"
    path.write_text("".join(json.dumps({"id": f"review-{i}", "text": "a dull slow film"}) + "\n" for i in range(3)))
    assert run("--operators", "delete", data=path, out=finished.parent / "named").code == 0
    done = ice("show", finished.parent / "named", "--example", "revew-1")
    assert_refused(done, "no example 'revew-1'", "did you mean 'review-1'?")


def test_without_an_example_all_are_listed_on_one_screen(ice, finished, run, tmp_path_factory):
    done = ice("show", finished)
    assert done.code == 0 and len(done.out.splitlines()) < 24
    for example in json.loads(ice("show", finished, "--json").out):
        [line] = [line for line in done.out.splitlines() if line.startswith(f"{example['example_id']} ")]
        assert example["prediction"] in line and example["text"][:30] in line
        assert all(f"{100 * rate:.1f} %" in line for rate in example["win_rates"].values() if rate is not None)
    assert "win rates under all" in done.out and f"ice show {finished} --example 0" in done.out
    assert "random" not in ice("show", finished, "--attribution", "attention").out
    path = tmp_path_factory.mktemp("many") / "d.jsonl"
    path.write_text("".join(json.dumps({"text": f"a dull slow film {i}"}) + "\n" for i in range(60)))
    out = finished.parent / "many"
    assert run("--operators", "delete", "--n", "60", data=path, out=out).code == 0
    done = ice("show", out)
    assert len(done.out.splitlines()) <= 40 and "28 more examples are not shown" in done.out
    assert_refused(ice("show", finished, "--operator", "nosuch"), "has no operator 'nosuch'")


def test_an_example_has_the_numbers_of_the_paper_if_asked(ice, finished):
    ours = ice("show", finished, "--example", "0").out
    paper = ice("show", finished, "--example", "0", "--columns", "paper").out
    outcomes = json.loads(ice("show", finished, "--example", "0", "--json").out)["outcomes"]
    [line] = [each for each in outcomes if (each["attribution"], each["operator"]) == ("gradient", "delete")]
    said = f"WR {100 * line['win_rate']:.0f} % of 6, NSR = {line['nsr']:.3f}, d_null = {line['effect_size']:+.2f}, p = "
    assert f"gradient under delete, sufficiency, k = 0.2: {said}" in paper
    assert "NSR" not in ours and ours == ice("show", finished, "--example", "0", "--columns", "default").out


def test_an_example_is_shown_as_text(ice, finished):
    done = ice("show", finished, "--example", "0", "--rows", "2")
    assert done.code == 0
    assert "text: a gorgeous witty film with a great cast and one dull scene" in done.out
    assert "explained label: positive, gold: positive" in done.out
    assert "[gorgeous]" in done.out
    assert "2 of 7 random rows under delete" in done.out and "2 of 7 random rows under infill" in done.out
    assert re.search(r"attention under delete, sufficiency, k = 0.2: win rate \d+ % of 6, p = 0\.\d{3}", done.out)
    assert done.out.count("6 random sets") == done.out.count("▲") == 6
    chosen = ice("show", finished, "--example", "0", "--attribution", "random", "--operator", "infill").out
    assert chosen.count("6 random sets") == 1 and "rows under delete" not in chosen


def test_an_example_is_shown_as_json(ice, finished):
    shown = json.loads(ice("show", finished, "--example", "3", "--json").out)
    assert shown["example_id"] == "3" and shown["fields"]["text"].startswith("a broken plot")
    assert len(shown["outcomes"]) == 9
    # Full and empty; 7 sets and 3 rationales under delete, and under infill 7 sets and 3 rationales with 6 fills.
    assert len(shown["rows"]) == 2 + (7 + 3) + (7 + 3 * 6)
    for row in shown["rows"]:
        assert sum(row["probabilities"].values()) == pytest.approx(1)
        assert len(row["input_ids"]) == len(row["segment_ids"])


def test_text_that_looks_like_markup_is_shown_as_it_is(run, ice, tmp_path, tmp_path_factory):
    path = tmp_path_factory.mktemp("odd") / "d.jsonl"
    path.write_text(json.dumps({"text": "a [bold]dull[/bold] film [/] :smile:"}) + "\n" + '{"text": "a fun film"}\n')
    assert run(data=path).code == 0
    assert "text: a [bold]dull[/bold] film [/] :smile:" in ice("show", tmp_path / "run", "--example", "0").out


def test_the_direction_of_a_text_stays_and_its_beginning_in_the_list_has_none(run, ice, tmp_path, tmp_path_factory):
    path, text = tmp_path_factory.mktemp("turned") / "d.jsonl", "the film \u2067קסם\u2069 is fun"
    path.write_text(json.dumps({"text": text}) + "\n" + '{"text": "a fun film"}\n')
    assert run(data=path).code == 0
    assert f"text: {text}\n" in ice("show", tmp_path / "run", "--example", "0").out
    assert "the film קסם is fun" in ice("show", tmp_path / "run").out


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("می\u200cخواهم 👨\u200d👩\u200d👧", "'می\u200cخواهم 👨\u200d👩\u200d👧'"),  # joiners are part of the script
        ('it\'s\u3000\\ "so"', "'it's\u3000\\ \"so\"'"),
        ("a\nb\u2028c\x1b[1md\ud800", "'a\\nb\\u2028c\\x1b[1md\\ud800'"),
    ],
)
def test_a_row_is_quoted_as_it_is_written_but_on_one_line(text, shown):
    assert quoted(text) == shown


def test_a_rationale_is_marked_in_each_field_by_its_name(run, ice, tmp_path, tmp_path_factory):
    path = tmp_path_factory.mktemp("pair") / "d.jsonl"
    rows = [{"plot": f"a witty plot {i}", "cast": f"an awful cast {i}", "note": "none"} for i in range(2)]
    path.write_text("\n".join(map(json.dumps, rows)))
    prompt = "{note} {plot}\n{cast}\nSentiment:"
    assert run("--explain", "plot,cast", "--k", "0.9", "--operators", "delete", data=path, prompt=prompt).code == 0
    shown = ice("show", tmp_path / "run", "--example", "0").out
    [plot, cast] = re.search("p = .*\n  plot: (.*)\n  cast: (.*)\n", shown).groups()
    assert plot.count("[") + cast.count("[") == 7  # of 8 words
    assert re.sub(r"[\[\]]", "", plot + cast) == "a witty plot 0an awful cast 0"


def test_an_example_that_takes_no_part_is_shown_with_the_reason(run, ice, tmp_path, tmp_path_factory):
    path = tmp_path_factory.mktemp("short") / "d.jsonl"
    path.write_text('{"text": "awful"}\n{"text": "a fun film"}\n')
    assert run("--operators", "delete", data=path).code == 0
    assert "skipped: the text has one unit" in ice("show", tmp_path / "run", "--example", "0").out
