"""`ice validate`, and `--attribution-file` of `ice run` and `ice plan`."""

import json

import pytest

from ice_eval.results import RunFolder

PROMPT = r"Review: {text}\nSentiment:"
NAMED = ("--model", "toy", "--prompt", PROMPT, "--labels", "negative,positive")


@pytest.fixture
def explained(reviews, tmp_path):
    """A file with an explanation of every review; longer words count more."""

    def write(change=lambda lines: lines):
        texts = [json.loads(line)["text"] for line in reviews.read_text().splitlines()]
        lines = [{"tokens": [f"Ġ{w}" for w in t.split()], "scores": [len(w) for w in t.split()]} for t in texts]
        path = tmp_path / "mine.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in change(lines)))
        return path

    return write


def test_explanations_that_fit(ice, reviews, explained):
    done = ice("validate", explained(), *NAMED, "--data", reviews)
    assert done.code == 0
    assert done.out.splitlines() == [
        "examples:  8 of 8 have an explanation that fits",
        "units:     95 of 95 are covered",
    ]


def test_units_that_no_span_covers_count_as_0_and_are_told(ice, reviews, explained):
    path = explained(lambda lines: [{"spans": [[0, 1, 2.5]]} for _ in lines])
    done = ice("validate", path, *NAMED, "--data", reviews)
    assert done.code == 0 and "units:     8 of 95 are covered; the others count as 0\n" in done.out


def test_the_first_mismatch_is_shown_side_by_side_and_the_code_is_2(ice, reviews, explained):
    def change(lines):
        lines[1]["tokens"][2] = "Ġmovie"
        return lines[:-2]

    path = explained(change)
    done = ice("validate", path, *NAMED, "--data", reviews)
    assert done.code == 2
    assert done.out == (
        "examples:  5 of 8 have an explanation that fits\n"
        "units:     62 of 62 are covered\n"
        "missing:   2 examples have none: 6, 7\n"
        "mismatch:  1 do not fit; the first:\n\n"
        "example '1': the tokens do not spell the text.\n"
        "theirs: Ġthe | Ġworst | »Ġmovie« | Ġof | Ġthe | Ġyear | Ġboring | …\n"
        "ours:   the | worst | »film« | of | the | year | boring | …\n\n"
        'An example with {"id": …, "spans": []} is skipped for this attribution, and counted.\n'
    )
    found = json.loads(ice("validate", path, *NAMED, "--data", reviews, "--json").out)
    assert (found["fits"], found["covered"], found["missing"]) == (False, 5, ["6", "7"])


SHORT = {
    1: "a gorgeous film with warm heart and good jokes",
    2: "the worst film of the year boring and bad",
    3: "good",
    4: "the worst film of the year boring and bad",
}
LINES = [{"id": i, "tokens": text.split(), "scores": [*range(len(text.split()))]} for i, text in SHORT.items()]
"""An explanation of each."""


def changed(**values):
    """All of them with other values, which may be made from the line; None takes one away."""
    for line in LINES:
        new = line | {name: value(line) if callable(value) else value for name, value in values.items()}
        yield {name: value for name, value in new.items() if value is not None}


CASES = {
    "one unit needs no explanation": (3, [LINES[0], LINES[1]], 0),
    "two units need one": (3, [LINES[0]], 2),
    "a text that an example beyond n has too": (2, changed(id=None, text=lambda line: SHORT[line["id"]]), 2),
    "more lines than n": (2, changed(id=None), 0),
    "too few classes": (4, changed(scores=lambda line: [[1]] * len(line["tokens"])), 2),
    "classes of another task": (4, changed(scores=lambda line: [[1, 2]] * len(line["tokens"]), classes=["x", "y"]), 2),
    "three dimensions": (4, changed(scores=lambda line: [[[1, 2]]] * len(line["tokens"])), 2),
    "no tokens": (4, [LINES[0] | {"tokens": [], "scores": []}, *LINES[1:]], 2),
    "no words": (4, [{"id": 1, "words": [], "scores": []}, *LINES[1:]], 2),
    "sets beside scores": (4, [{"id": 1, "spans": [[0, 2]]}, *LINES[1:]], 2),
}


@pytest.fixture
def short(tmp_path):
    """Options for a data set of a few short texts, and a file of lines."""
    data = [{"id": identity, "text": text, "label": "positive"} for identity, text in SHORT.items()]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in data))

    def write(lines):
        (tmp_path / "mine.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return tmp_path / "mine.jsonl", (*NAMED, "--data", tmp_path / "data.jsonl")

    return write


@pytest.mark.parametrize("case", CASES)
def test_what_fits_can_be_run_and_what_does_not_is_refused_before_a_row_is_scored(ice, short, tmp_path, case):
    n, lines, code = CASES[case]
    path, given = short(lines)
    checked = ice("validate", path, *given, "--n", n)
    assert checked.code == code, checked.out + checked.err
    rest = ("--n", n, "--m", 4, "--operators", "delete", "--attributions", "random", "--out", tmp_path / "run")
    done = ice("run", *given, *rest, "--attribution-file", f"mine={path}")
    assert (done.code, (tmp_path / "run").exists()) == (code, not code), done.out + done.err


def test_what_says_nothing_is_counted_not_ranked_by_a_draw(ice, short, tmp_path):
    same, silent = LINES[0] | {"scores": [2] * 9}, {"id": 2, "spans": []}
    path, given = short([same, silent, LINES[3]])
    done = ice("validate", path, *given)
    assert (done.code, done.out.splitlines()[3:]) == (
        0,
        [
            "skipped:   1 explanations cover no unit",
            "constant:  1 have the same number for all units: their rationale is a random draw",
        ],
    )
    rest = ("--m", 4, "--operators", "delete", "--attributions", "random", "--out", tmp_path / "run")
    assert ice("run", *given, *rest, "--attribution-file", f"mine={path}").code == 0
    [shared, *messages] = json.loads((tmp_path / "run" / "manifest.json").read_text())["messages"]
    assert shared.startswith("1 text occurs in several examples (2 of 4)")
    assert messages == [
        "the attribution 'mine' covers no unit of 1 of 3 examples, which are skipped.",
        "the attribution 'mine' has the same number for all units in 1 of 3 examples: their rationale is a random "
        "draw.",
    ]
    lines = RunFolder.existing(tmp_path / "run").examples()
    errors = {line.example_id: line.error for line in lines if line.attribution == "mine"}
    assert (errors["1"], errors["2"]) == (None, "the attribution 'mine': its explanation covers no part of the text")


def test_numbers_that_are_not_finite_are_counted(ice, short, tmp_path):
    nothing = [float("nan")] * 9
    path, given = short([LINES[0] | {"scores": nothing}, *LINES[1:]])
    done = ice("validate", path, *given)
    assert (done.code, done.out.splitlines()[2:]) == (
        0,
        [
            "skipped:   1 examples have fewer than two units, and need no explanation",
            "skipped:   1 explanations have numbers that are not finite",
        ],
    )
    path, given = short([line | {"scores": nothing} for line in (LINES[0], LINES[1], LINES[3])])
    assert ice("validate", path, *given).code == 2


def test_explanations_of_other_examples_are_counted(ice, reviews, explained):
    path = explained(lambda lines: [*lines, {"text": "nobody wrote this", "words": ["nobody"], "scores": [1]}])
    done = ice("validate", path, *NAMED, "--data", reviews)
    assert done.code == 0
    assert done.out.splitlines()[-1] == "unused:    1 explanations belong to none of these examples"


def test_it_looks_at_the_units_of_the_run_that_is_meant(ice, reviews, explained, tmp_path):
    prompted = explained(
        lambda lines: [
            {"tokens": ["Review:", *line["tokens"], "ĊSentiment:"], "scores": [9, *line["scores"], 9]} for line in lines
        ]
    )
    (tmp_path / "run.yaml").write_text("scope: prompt\noperators: [delete]\nattributions: random\nk: [0.1, 0.2]\n")
    for more in (("--scope", "prompt"), ("--config", tmp_path / "run.yaml"), ("--protocol", "released")):
        done = ice("validate", prompted, *NAMED, "--data", reviews, *more)
        assert done.code == 0, done.out + done.err
        assert "units:     127 of 127 are covered" in done.out
    content = ice("validate", prompted, *NAMED, "--data", reviews)
    assert "units:     95 of 95 are covered" in content.out
    refused = ice("validate", prompted, *NAMED, "--data", reviews, "--scope", "all")
    assert (refused.code, refused.err) == (2, "ice: scope 'all'. Expected: content, prompt.\n")


def test_its_help_names_what_matters_and_nothing_else(ice):
    told = ice("validate", "--help-all").out
    assert all(option in told for option in ("--scope", "--system", "--config", "--unit", "--label-scoring"))
    assert not any(option in told for option in ("--operators", "--attributions", "--seed"))


def test_a_file_that_cannot_be_read_is_told_in_one_line(ice, reviews, tmp_path):
    done = ice("validate", tmp_path / "no.jsonl", *NAMED, "--data", reviews)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("ice: no such file: ")


def test_a_run_takes_a_file_beside_known_methods(ice, reviews, explained, tmp_path):
    given = (*NAMED, "--data", reviews, "--attributions", "random", "--attribution-file", f"mine={explained()}")
    done = ice("run", *given, "--m", 6, "--out", tmp_path / "run", "--json")
    assert done.code == 0, done.err
    assert {line["attribution"] for line in json.loads(done.out)["configurations"]} == {"random", "mine"}
    assert ice("plan", *given, "--m", 6).code == 0


def test_a_file_may_stand_in_a_configuration(ice, reviews, explained, tmp_path):
    (tmp_path / "run.yaml").write_text(
        f"attribution-file: [one={explained()}, two={explained()}]\nattributions: random\n"
    )
    done = ice("run", *NAMED, "--data", reviews, "--config", tmp_path / "run.yaml", "--m", 6, "--json")
    assert {line["attribution"] for line in json.loads(done.out)["configurations"]} == {"random", "one", "two"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("mine.jsonl", "NAME=FILE is expected, such as mine=explanations.jsonl"),
        ("random=x.jsonl", "another attribution is named 'random'"),
        ("lime=x.jsonl", "'lime' is the name of a known attribution, but these scores were not computed by it"),
        ("lime:n_samples=9=x.jsonl", "'lime:n_samples' is the name of a known attribution"),
        ("mine=nowhere.jsonl", "the attribution 'mine' is 'nowhere.jsonl', and there is no such file"),
    ],
)
def test_a_wrong_file_is_refused(ice, reviews, tmp_path, given, message):
    done = ice("run", *NAMED, "--data", reviews, "--attribution-file", given, "--out", tmp_path / "run")
    assert done.code == 2 and message in done.err
    assert not (tmp_path / "run").exists()


def test_formats_are_listed(ice):
    assert {"eraser", "inseq", "jsonl", "shap"} <= set(json.loads(ice("list", "formats", "--json").out))


def test_scores_for_fewer_units_than_a_rationale_holds_are_told_before_a_draw_fills_it(ice, short, tmp_path):
    few = {"id": 1, "spans": [[0, 1, 2.5]]}
    path, given = short([few, LINES[1], LINES[3]])
    told = "have scores for fewer units than a rationale holds: the rest is a random draw"
    assert f"drawn:     1 {told}" in ice("validate", path, *given, "--k", "0.5").out
    assert told not in ice("validate", path, *given, "--k", "0.01").out
    rest = ("--m", 4, "--operators", "delete", "--attributions", "random", "--k", "0.5", "--out", tmp_path / "run")
    assert ice("run", *given, *rest, "--attribution-file", f"mine={path}").code == 0
    messages = json.loads((tmp_path / "run" / "manifest.json").read_text())["messages"]
    assert any("has scores for fewer units than a rationale holds in 1 of 3 examples" in each for each in messages)
    against = LINES[0] | {"scores": [0, 0, *range(-1, -8, -1)]}  # a score for most units, if against the label
    assert told not in ice("validate", short([against, *LINES[1:]])[0], *given, "--k", "0.5").out


def test_all_explanations_that_do_not_fit_are_named(ice, short):
    other = {"tokens": ["not", "this"], "scores": [1, 2]}
    path, given = short([LINES[0] | other, LINES[1] | other, LINES[3]])
    assert "mismatch:  2 do not fit; the first (also 2):" in ice("validate", path, *given).out
