"""What a run writes is what the published schemas say, key for key."""

import json
import math
from importlib.resources import files

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tools.schemas import PAGE, SCHEMAS, page, schema_text

import ice_eval as ice
from ice_eval.errors import ConfigError
from ice_eval.results import ExampleOutcome, Manifest, Summary, rescore
from ice_eval.results.folder import OUTCOME_FILE
from ice_eval.results.json_files import as_json, read_record, write_record
from ice_eval.results.outcomes import OUTCOMES
from ice_eval.results.summary import outcomes_by_configuration


def schema(name):
    return json.loads((files("ice_eval.results") / "schemas" / f"{name}.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def run():
    texts = ["a gorgeous witty film with a slow start", "an awful boring mess of a play", "good", "", "bad cold food"]
    task = ice.Task(
        data=ice.Records([{"text": text, "label": i % 2} for i, text in enumerate(texts)]),
        prompt="Review: {text}\nSentiment:",
        label_words={"negative": " negative", "positive": " positive"},
    )
    return ice.evaluate("toy", task, m=5, directions=["sufficiency", "necessity"])


@pytest.mark.parametrize("name", ["manifest", "summary"])
def test_schemas_are_schemas(name):
    jsonschema.Draft202012Validator.check_schema(schema(name))


def assert_conforms(path):
    """Every file of a run folder is as its schema says."""
    for name in ("manifest", "summary"):
        jsonschema.validate(json.loads((path / f"{name}.json").read_text(encoding="utf-8")), schema(name))
    assert pq.read_schema(path / OUTCOME_FILE).equals(OUTCOMES)


def test_a_run_conforms(run):
    assert {line.error is None for line in run.folder.examples()} == {True, False}
    assert_conforms(run.path)


def test_a_run_without_examples_conforms():
    task = ice.Task(data=ice.Records([{"text": "a"}]), prompt="{text} .", label_words={"a": " a", "b": " b"})
    with pytest.raises(ice.ModelError, match="no example could be evaluated"):
        ice.evaluate("toy", task, operators=["delete"])


@pytest.mark.parametrize("name", SCHEMAS)
def test_published_schemas_are_those_of_the_records(name):
    written = (files("ice_eval.results") / "schemas" / f"{name}.json").read_text(encoding="utf-8")
    assert written == schema_text(name), "run `python tools/schemas.py`"


def test_the_page_of_the_run_folder_is_that_of_the_records():
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python tools/schemas.py`"


@pytest.mark.parametrize("damage", [{"win_rate": "high"}, {"verdict": 3}, {"verdict": "faithful"}, {"surprise": 1}])
def test_other_contents_do_not_conform(run, damage):
    summary = as_json(run.folder.summary())
    summary["configurations"][0] |= damage
    with pytest.raises(jsonschema.ValidationError, match=r".+"):
        jsonschema.validate(summary, schema("summary"))


def test_what_was_written_is_read_back(run, tmp_path):
    manifest, summary = run.folder.manifest(), run.folder.summary()
    for name, record in {"manifest": manifest, "summary": summary}.items():
        write_record(tmp_path / f"{name}.json", record)
        assert (tmp_path / f"{name}.json").read_bytes() == (run.path / f"{name}.json").read_bytes()
        assert read_record(tmp_path / f"{name}.json", type(record)) == record
    assert rescore(run.folder) == summary
    read, computed = list(run.folder.examples()), outcomes_by_configuration(run.folder, manifest.config)
    assert len(read) == sum(len(outcomes) for outcomes in computed.values())
    for cell, outcomes in computed.items():
        lines = [line for line in read if line.configuration == cell]
        assert [line.example_id for line in lines] == list(outcomes.ids)
        assert {place: line.error for place, line in enumerate(lines) if line.error is not None} == outcomes.errors
        known = [line for line in lines if line.error is None]
        assert [line.exact for line in known] == outcomes.flag("exact")[outcomes.sound].tolist()
        for name in ("m", "win_rate", "p_value", "effect", "score", "predicted", "target", "n_units"):
            assert [getattr(line, name) for line in known] == outcomes.column(name)[outcomes.sound].tolist()


def test_a_verdict_is_written_with_its_text(run):
    [*_, line] = json.loads((run.path / "summary.json").read_text(encoding="utf-8"))["configurations"]
    assert list(line["verdict"]) == ["word", "excludes_chance", "tie_rate", "text"]
    assert line["verdict"]["text"] == str(run.folder.summary().configurations[-1].verdict)


@pytest.fixture
def written(run, tmp_path):
    """A record with one field changed or removed, by its path -> the file that holds it."""

    def write(name, *path, **value):
        content = json.loads((run.path / f"{name}.json").read_text(encoding="utf-8"))
        place = content
        for each in path[:-1]:
            place = place[each]
        if value:
            place[path[-1]] = value["value"]
        else:
            del place[path[-1]]
        (tmp_path / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
        return tmp_path / f"{name}.json"

    return write


KINDS = {"manifest": Manifest, "summary": Summary}
LINE = ("configurations", 0)


@pytest.mark.parametrize(
    ("name", "path", "said"),
    [
        ("manifest", ("status",), "it has no status"),
        ("manifest", ("part_size",), "it has no part_size"),
        ("manifest", ("config", "seed"), "it has no config.seed"),
        ("manifest", ("cost", "rows_by_kind"), "it has no cost.rows_by_kind"),
        ("summary", ("kappa",), "it has no kappa"),
        ("summary", (*LINE, "flags"), "it has no configurations.0.flags"),
        ("summary", ("agreement", 0, "operators"), "it has no agreement.0.operators"),
    ],
)
def test_a_field_that_is_missing_is_named(written, name, path, said):
    with pytest.raises(ConfigError) as caught:
        read_record(written(name, *path), KINDS[name])
    assert str(caught.value).endswith(f"{name}.json is damaged: {said}.")


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("manifest", ("surprise",)),
        ("manifest", ("config", "surprise")),
        ("manifest", ("config", "text")),
        ("manifest", ("cost", "text")),
        ("summary", ("surprise",)),
        ("summary", (*LINE, "surprise")),
        ("summary", (*LINE, "text")),
        ("summary", (*LINE, "verdict", "surprise")),
    ],
)
def test_a_field_that_is_not_known_is_named(written, name, path):
    with pytest.raises(ConfigError) as caught:
        read_record(written(name, *path, value=1), KINDS[name])
    where = ".".join(map(str, path))
    assert str(caught.value).endswith(f"{name}.json is damaged: it has an unknown field {where}.")


@pytest.mark.parametrize(
    ("name", "path", "value", "said"),
    [
        ("manifest", ("status",), "done", "status is 'done' (expected: running, complete)"),
        ("manifest", ("part_size",), 16.0, "part_size is 16.0 (a whole number is expected)"),
        ("manifest", ("part_size",), True, "part_size is True (a whole number is expected)"),
        ("manifest", ("prompt",), None, "prompt is None (a text is expected)"),
        ("manifest", ("labels",), "ab", "labels is 'ab' (a list is expected)"),
        ("manifest", ("labels",), [1, 2], "labels.0 is 1 (a text is expected)"),
        ("manifest", ("config",), [], "config is [] (an object is expected)"),
        ("manifest", ("config", "eraser"), 0, "config.eraser is 0 (true or false is expected)"),
        ("manifest", ("cost", "rows_by_kind"), {"random": "3"}, "cost.rows_by_kind.random is '3' (a whole number is"),
        ("summary", ("configurations",), {}, "configurations is {} (a list is expected)"),
        ("summary", (*LINE, "win_rate"), "high", "configurations.0.win_rate is 'high' (a finite number is expected)"),
        ("summary", (*LINE, "win_rate"), True, "configurations.0.win_rate is True (a finite number is expected)"),
        ("summary", (*LINE, "win_rate"), math.nan, "configurations.0.win_rate is nan (a finite number is expected)"),
        ("summary", (*LINE, "p_value"), math.inf, "configurations.0.p_value is inf (a finite number is expected)"),
        ("summary", (*LINE, "win_rate_ci"), [0.1], "configurations.0.win_rate_ci is [0.1] (a list of 2 is expected)"),
        ("summary", (*LINE, "direction"), "up", "configurations.0.direction is 'up' (expected: sufficiency, necessity"),
        ("summary", (*LINE, "verdict"), "faithful", "configurations.0.verdict is 'faithful' (an object is expected)"),
    ],
)
def test_a_field_that_is_wrong_is_named_with_what_is_expected(written, name, path, value, said):
    with pytest.raises(ConfigError) as caught:
        read_record(written(name, *path, value=value), KINDS[name])
    assert f"{name}.json is damaged: {said}" in str(caught.value)


def test_whole_numbers_are_numbers(written):
    path = written("summary", *LINE, "effect_size", value=1)
    effect = read_record(path, Summary).configurations[0].effect_size
    assert effect == 1.0 and isinstance(effect, float)


def test_an_example_without_an_error_has_its_numbers(run):
    line = next(line for line in run.folder.examples() if line.error is None)
    content = vars(line)
    with pytest.raises(ValueError, match="an example without an error has a win_rate"):
        ExampleOutcome(**{name: value for name, value in content.items() if name != "win_rate"})
    assert ExampleOutcome(**content) == line


def test_examples_without_their_numbers_are_damaged(run, tmp_path):
    table = pq.read_table(run.path / OUTCOME_FILE)
    place = table.column_names.index("win_rate")
    field = table.schema.field("win_rate")
    lost = table.set_column(place, field, pa.nulls(len(table), field.type))
    copy = tmp_path / "run"
    copy.mkdir()
    (copy / "manifest.json").write_bytes((run.path / "manifest.json").read_bytes())
    for damaged in (lost, table.drop_columns(["win_rate"]), table.drop_columns(["k"])):
        pq.write_table(damaged, copy / OUTCOME_FILE)
        with pytest.raises(ConfigError, match=r"examples\.parquet is damaged: .*`ice rescore .*` writes it again"):
            list(ice.results.RunFolder(copy).examples())
