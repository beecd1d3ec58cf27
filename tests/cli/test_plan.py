"""`ice plan` and `ice run --dry-run`, and the options that came with them."""

import json

import pytest

PROMPT = r"Review: {text}\nSentiment:"


@pytest.fixture
def given(reviews):
    return ["--model", "toy", "--data", reviews, "--prompt", PROMPT, "--labels", "negative,positive", "--m", "12"]


@pytest.fixture
def plan(ice, given):
    """`ice plan` of the toy model on the file of reviews."""
    return lambda *more: ice("plan", *given, *more)


def test_a_plan_is_a_table_and_what_it_rests_on(plan, tmp_path):
    done = plan("--width", "0.2")
    assert done.code == 0
    for words in (
        "as asked",
        "interval of 20 pp",
        "rows",
        "tokens",
        "minutes",
        "MB",
        "detectable",
        "From a pilot of 8",
    ):
        assert words in done.out
    assert "dollars" not in done.out
    assert list(tmp_path.iterdir()) == []


def test_a_plan_says_nothing_of_the_pilot_as_if_it_were_the_run(plan):
    done = plan()
    assert "from chance" not in done.err and "fewer than n = " not in done.err


def test_a_plan_as_json_can_be_read(plan):
    done = plan("--json", "--hourly-price", "6", "--detect", "0.6")
    content = json.loads(done.out)
    assert [choice["name"] for choice in content["choices"]][-1] == "detect 60 %, --n-fills 4"
    assert content["choices"][0]["n"] == 8 and content["choices"][0]["m"] == 12
    assert content["dollars"] == [choice["minutes"] / 60 * 6 for choice in content["choices"]]
    assert content["model"] == "toy"


def test_an_hourly_price_adds_a_column(plan):
    done = plan("--hourly-price", "2.5")
    assert "dollars" in done.out


def test_a_dry_run_is_a_plan_and_writes_nothing(ice, given, tmp_path):
    before = sorted(path.name for path in tmp_path.rglob("*"))
    done = ice("run", *given, "--dry-run", "--json", "--out", tmp_path / "run")
    assert done.code == 0
    assert json.loads(done.out)["choices"][0]["name"] == "as asked"
    assert sorted(path.name for path in tmp_path.rglob("*")) == before == []


def test_a_dry_run_leaves_a_folder_as_it_is(ice, given, tmp_path):
    assert ice("run", *given, "--out", tmp_path / "run").code == 0
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.rglob("*") if p.is_file()}
    assert ice("run", *given, "--dry-run", "--null", "position", "--out", tmp_path / "run").code == 0
    assert {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.rglob("*") if p.is_file()} == before


BAD = {
    "pilot": (["--pilot", "1"], "pilot = 1: at least 2 examples are needed."),
    "width": (["--width", "5"], "width = 5.0: a number between 0 and 1 is expected, such as 0.05 for 5 %."),
    "detect": (["--detect", "0.3"], "detect = 0.3: a number between 0.5 and 1 is expected, such as 0.55 for 55 %."),
    "price": (["--hourly-price", "-1"], "--hourly-price -1.0: dollars are expected"),
    "no price": (["--hourly-price", "nan"], "--hourly-price nan: dollars are expected"),
}
BAD_FOR_BOTH = {
    "null": (["--null", "contiguty"], "no null named 'contiguty'; did you mean 'contiguity'?"),
    "no null": (["--null", ","], "no nulls given; at least one is needed"),
    "adaptive": (["--adaptive", "examples"], "m = 12: with adaptive 'examples' m is the most sets"),
    "unknown adaptive": (["--adaptive", "yes"], "adaptive 'yes'. Expected: dataset, examples."),
    "released null": (["--protocol", "released", "--null", "position"], "'released' draws random sets of its own"),
    "released adaptive": (["--protocol", "released", "--adaptive", "dataset"], "draws random sets of its own"),
}


def assert_refused(done, message, folder):
    assert (done.code, done.out) == (2, "")
    assert message in done.err and "Traceback" not in done.err
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", [*BAD, *BAD_FOR_BOTH])
def test_a_bad_plan_exits_2_with_a_message(plan, tmp_path, name):
    options, message = (BAD | BAD_FOR_BOTH)[name]
    assert_refused(plan(*options), message, tmp_path)


@pytest.mark.parametrize("dry", [[], ["--dry-run"]], ids=["run", "dry-run"])
@pytest.mark.parametrize("name", BAD_FOR_BOTH)
def test_a_bad_run_exits_2_with_a_message_and_writes_nothing(ice, given, tmp_path, name, dry):
    options, message = BAD_FOR_BOTH[name]
    assert_refused(ice("run", *given, *options, *dry, "--out", tmp_path / "run"), message, tmp_path)


def test_nulls_and_adaptive_reach_the_run(ice, given, tmp_path):
    done = ice("run", *given, "--null", "size,position", "--adaptive", "dataset", "--out", tmp_path / "run", "--json")
    assert done.code == 0
    config = json.loads((tmp_path / "run" / "manifest.json").read_text())["config"]
    assert (config["nulls"], config["adaptive"]) == (["size", "position"], "dataset")
    assert {line["null"] for line in json.loads(done.out)["configurations"]} == {"size", "position"}


def test_nulls_are_listed_with_a_line_on_each(ice):
    done = ice("list", "nulls")
    assert done.code == 0
    lines = dict(line.split(maxsplit=1) for line in done.out.splitlines())
    assert set(lines) == {"size", "contiguity", "position", "frequency", "sub-word"}
    assert all(len(text) > 20 for text in lines.values())
    assert set(json.loads(ice("list", "nulls", "--json").out)) == set(lines)


def test_a_run_begins_with_what_its_examples_and_sets_can_show(ice, given, tmp_path):
    few = ice("run", *given, "--m", "5", "--operators", "delete", "--out", tmp_path / "few")
    assert "the data have 8 examples, fewer than n = 500: all are used." in few.err.replace("\n", " ")
    assert "8 examples are too few to distinguish any win rate from chance" in few.err.replace("\n", " ")
    assert "with 5 random sets no single example can be significant; use at least 9." in few.err.replace("\n", " ")
    enough = ice("run", *given, "--m", "9", "--n", "8", "--operators", "delete", "--out", tmp_path / "enough")
    assert "fewer than n = " not in enough.err and "no single example" not in enough.err
