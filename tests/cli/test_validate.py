"""`ice validate`, and `--attribution-file` of `ice run` and `ice plan`."""

import json

import pytest

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
        "units:     95 of 95 are covered; the others count as 0",
    ]


def test_the_first_mismatch_is_shown_side_by_side_and_the_code_is_2(ice, reviews, explained):
    def change(lines):
        lines[1]["tokens"][2] = "Ġmovie"
        return lines[:-2]

    path = explained(change)
    done = ice("validate", path, *NAMED, "--data", reviews)
    assert done.code == 2
    assert done.out == (
        "examples:  5 of 8 have an explanation that fits\n"
        "units:     62 of 62 are covered; the others count as 0\n"
        "missing:   2 examples have none: 6, 7\n"
        "mismatch:  1 do not fit their text; the first:\n\n"
        "example '1': the tokens do not spell the text.\n"
        "theirs: Ġthe | Ġworst | »Ġmovie« | Ġof | Ġthe | Ġyear | Ġboring | …\n"
        "ours:   the | worst | »film« | of | the | year | boring | …\n"
    )
    found = json.loads(ice("validate", path, *NAMED, "--data", reviews, "--json").out)
    assert (found["fits"], found["covered"], found["missing"]) == (False, 5, ["6", "7"])


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
    told = ice("validate", "--help").out
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
        ("mine.jsonl", "NAME=FILE is expected, as mine=explanations.jsonl"),
        ("random=x.jsonl", "another attribution is named 'random'"),
        ("mine=nowhere.jsonl", "the attribution 'mine' is 'nowhere.jsonl', and there is no such file"),
    ],
)
def test_a_wrong_file_is_refused(ice, reviews, tmp_path, given, message):
    done = ice("run", *NAMED, "--data", reviews, "--attribution-file", given, "--out", tmp_path / "run")
    assert done.code == 2 and message in done.err
    assert not (tmp_path / "run").exists()


def test_formats_are_listed(ice):
    assert {"eraser", "inseq", "jsonl", "shap"} <= set(json.loads(ice("list", "formats", "--json").out))
