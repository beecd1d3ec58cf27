import json

import pytest


@pytest.fixture
def run(ice, tmp_path):
    """`ice run` with a configuration file of this text."""

    def run(text, *options):
        path = tmp_path / "config.yaml"
        path.write_text(text)
        return ice("run", "--config", path, *options)

    return run


GOOD = """
model: toy
task: demo
attributions: [gradient, random]
operators: delete
m: 6
n: 5
k: [0.2, dynamic]
label-scoring: first
"""


def test_a_file_says_what_flags_say(run, ice, tmp_path):
    by_file = run(GOOD, "--out", tmp_path / "file", "--json")
    by_flags = ice(
        "run", "--model", "toy", "--task", "demo", "--attributions", "gradient,random", "--operators", "delete",
        "--m", "6", "--n", "5", "--k", "0.2,dynamic", "--label-scoring", "first", "--out", tmp_path / "flags", "--json",
    )  # fmt: skip
    assert by_file.code == by_flags.code == 0
    found, expected = json.loads(by_file.out), json.loads(by_flags.out)
    assert found["configurations"] == expected["configurations"]
    assert len(found["configurations"]) == 4


def test_a_mapping_says_what_pairs_say(run, tmp_path):
    (tmp_path / "data.csv").write_text("number,body\nr7,a good film\nr8,a bad film\n")
    text = "model: toy\ntask: demo\ndata: data.csv\ncolumns: {id: number, text: body}\nattributions: random\nm: 3\n"
    assert run(text, "--operators", "delete", "--out", "run").code == 0
    manifest = json.loads((tmp_path / "run/manifest.json").read_text())
    assert manifest["data"]["columns"] == {"id": "number", "text": "body"}


def test_flags_take_precedence(run, tmp_path):
    done = run(GOOD, "--out", tmp_path / "run", "--n", "3", "--json")
    assert {line["n"] for line in json.loads(done.out)["configurations"]} == {3}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model: toy\nattribution: x\n", "no option 'attribution'; did you mean 'attributions'?"),
        ("- a\n- b\n", "keys and values are expected"),
        ("model: [unclosed\n", "is not YAML"),
        ("model: toy\ntask: demo\nm: many\n", "Invalid value for '--m'"),
        ("model: !!python/object/apply:os.system ['true']\n", "is not YAML"),
    ],
)
def test_a_bad_file_exits_2_with_one_message(run, tmp_path, text, message):
    done = run(text, "--out", tmp_path / "run")
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "run").exists()


def test_other_labels_change_nothing_but_the_labels(ice, tmp_path):
    data = tmp_path / "d.jsonl"
    data.write_text("".join(json.dumps({"text": t, "label": "bad"}) + "\n" for t in ("a good film", "an awful mess")))
    common = ("--model", "toy", "--task", "demo", "--attributions", "random", "--data", data, "--m", "2")
    done = ice("run", *common, "--labels", "bad,fine", "--out", tmp_path / "run")
    assert done.code == 0
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["labels"] == ["bad", "fine"]
    shown = json.loads(ice("show", tmp_path / "run", "--example", "0", "--json").out)
    full = next(row for row in shown["rows"] if row["kind"] == "full")
    assert len(full["input_ids"]) > 40  # the shots are still there
    assert ice("run", *common, "--labels", "a,b,c", "--out", tmp_path / "x").code == 2


def test_control_characters_of_a_text_do_not_reach_the_terminal(ice, tmp_path):
    data = tmp_path / "d.jsonl"
    data.write_text("".join(json.dumps({"text": f"a \x1b[31mred\x07 film {i}"}) + "\n" for i in range(2)))
    run = ("--model", "toy", "--prompt", "{text} :", "--labels", "a,b", "--attributions", "random", "--m", "2")
    assert ice("run", *run, "--data", data, "--operators", "delete", "--out", tmp_path / "run").code == 0
    shown = ice("show", tmp_path / "run", "--example", "0").out
    assert "red" in shown
    assert "\x1b" not in shown and "\x07" not in shown


def test_a_missing_file_exits_2(ice, tmp_path):
    done = ice("run", "--config", tmp_path / "none.yaml")
    assert done.code == 2
    assert "cannot be read: No such file" in done.err


RUN = ("run", "--model", "toy", "--task", "demo", "--attributions", "random", "--operators", "delete", "--m", "4")


@pytest.mark.parametrize(
    ("pairs", "field", "expected"),
    [
        (("n_fills=2",), "n_fills", 2),
        (("n-fills=2",), "n_fills", 2),
        (("directions=necessity,sufficiency",), "directions", ["necessity", "sufficiency"]),
        (("direction = necessity",), "directions", ["necessity"]),
        (("eraser=true",), "eraser", True),
        (("k=0.1,dynamic", "nulls=size"), "k", [0.1, "dynamic"]),
    ],
)
def test_a_setting_may_be_given_by_its_name(ice, tmp_path, pairs, field, expected):
    chosen = [part for pair in pairs for part in ("--set", pair)]
    assert ice(*RUN, "--n", "3", *chosen, "--out", "run").code == 0
    assert json.loads((tmp_path / "run/manifest.json").read_text())["config"][field] == expected


def test_options_precede_set_and_set_precedes_a_file(ice, tmp_path):
    (tmp_path / "config.yaml").write_text("n: 2\nseed: 5\nunit: word\n")
    for place, order in enumerate(
        [("--config", "config.yaml", "--set", "n=3"), ("--set", "n=3", "--config", "config.yaml")]
    ):
        assert ice(*RUN, *order, "--seed", "7", "--set", "seed=6", "--out", f"run{place}").code == 0
        config = json.loads((tmp_path / f"run{place}/manifest.json").read_text())["config"]
        assert (config["n"], config["seed"], config["unit"]) == (3, 7, "word")


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("scop=prompt", "ice: --set scop=prompt: no option 'scop'; did you mean 'scope'? Known: model, task"),
        ("scope", "ice: --set scope: NAME=VALUE is expected, such as --set n_fills=4."),
        ("scope=promt", "ice: scope 'promt'; did you mean 'prompt'? Expected: content, prompt."),
        ("n_fills=many", "Invalid value for '--n-fills'"),
    ],
)
def test_a_wrong_name_or_value_is_refused(ice, tmp_path, pair, message):
    done = ice(*RUN, "--set", pair, "--out", "run")
    assert (done.code, done.out) == (2, "") and message in done.err
    assert list(tmp_path.iterdir()) == []
