"""Files of any content are read, or refused with a message: never anything else."""

import json

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz.odd_texts import broken_texts, texts

from ice_eval.bench.grid import load_grid
from ice_eval.errors import ConfigError
from ice_eval.interop import read
from ice_eval.subjects.chain import read_given
from ice_eval.tasks import FileData, Records, Template, load_task

N_FILES = {"ordinary": 100, "slow": 1_000}
READERS = {
    "data.jsonl": lambda path: FileData(path).load(["text"], ["negative", "positive"]),
    "data.csv": lambda path: FileData(path).load(["text"], ["negative", "positive"]),
    "explanations.jsonl": lambda path: list(read(path)),
    "explanations.json": lambda path: list(read(path)),
    "chains.jsonl": read_given,
    "task.yaml": lambda path: load_task(str(path)),
    "grid.yaml": load_grid,
}
KEYS = (
    "text label id group rationale highlights_text question steps response final gold choices fields tokens words "
    "spans scores classes start end score annotation_id evidences rationales docid prompt labels data explain shots "
    "worked variants chat system language lexicon models tasks prompts name model task n m k seed operators"
).split()
SHARP = [
    "[" * 1_200, '{"a":' * 1_200, "1" * 5_000, '{"text": "a", "label": ' + "1" * 5_000 + "}",
    "text,label\na," + "1" * 5_000,
    '{"text": "a", "label": 1e999}', '{"text": "a", "id": NaN}', '"text\n', 'text\n"a""',
    "text,text\na,b\n", "\ufefftext\na", "a: 2020-99-99", "prompt: !!python/object/apply:os.system [ls]", "a: &a [*a]",
    "? [a]\n: b", "<<: 3", "a: !!binary x",
    "models: toy\ntasks: demo\nn: 1e9", "models: toy\ntasks: demo\nname: ../../x", "prompt: '{text'\nlabels: [a, b]",
    "prompt: '{text}'\nlabels: [a, b]\nvariants: {x: '{y}'}", 'prompt: "\\ud800{text}"\nlabels: [a, b]', "%YAML 3.0",
]  # fmt: skip

leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), texts(max_pieces=2), broken_texts(),
    st.sampled_from(["", 10**400, -1, 0, 1, "text", "negative", "{text}", "Review: {text}"]),
)  # fmt: skip
names = st.sampled_from(KEYS) | texts(max_pieces=1)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4), max_leaves=10
)
records = st.dictionaries(names, values, max_size=6)
cells = texts(max_pieces=2) | st.sampled_from(["text", "label", "id", '"', '""', "1", "\x00"])
contents = st.one_of(
    st.binary(max_size=60),
    texts().map(str.encode),
    st.lists(records | values, max_size=3).map(lambda rows: "\n".join(map(json.dumps, rows)).encode()),
    values.map(lambda value: json.dumps(value).encode()),
    records.map(lambda value: yaml.safe_dump(value, allow_unicode=True).encode("utf-8", "replace")),
    st.lists(st.lists(cells, max_size=4).map(",".join), max_size=4).map(lambda rows: "\n".join(rows).encode()),
    st.sampled_from(SHARP).map(str.encode),
)


def fuzz(folder, *, n_files, fixed):
    """Put contents into a file for every reader; returns how many readings there were."""
    tried = 0

    @settings(max_examples=n_files, derandomize=fixed, database=None)
    @given(content=contents)
    def law(content):
        nonlocal tried
        for name, reader in READERS.items():
            (folder / name).write_bytes(content)
            try:
                reader(folder / name)
            except ConfigError as exc:
                assert str(exc).strip()
            tried += 1

    law()
    return tried


def test_every_file_is_read_or_refused(tmp_path, record_property):
    tried = fuzz(tmp_path, n_files=N_FILES["ordinary"], fixed=True)
    assert tried >= N_FILES["ordinary"] * len(READERS)
    record_property("fuzz_cases", tried)


@pytest.mark.slow
def test_many_other_files_are_read_or_refused(tmp_path, record_property):
    tried = fuzz(tmp_path, n_files=N_FILES["slow"], fixed=False)
    assert tried >= N_FILES["slow"]
    record_property("fuzz_cases", tried)


@pytest.mark.parametrize("content", SHARP, ids=range(len(SHARP)))
@pytest.mark.parametrize("name", READERS)
def test_what_once_went_wrong_is_read_or_refused(name, content, tmp_path):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    try:
        READERS[name](path)
    except ConfigError as exc:
        assert str(exc).strip()


@settings(max_examples=50, derandomize=True, database=None)
@given(text=broken_texts(), name=st.sampled_from(["text", "id", "group"]))
def test_half_of_a_character_is_refused_wherever_it_stands(text, name):
    with pytest.raises(ConfigError, match=f"the field '{name}' holds half of a character"):
        Records([{"text": "a film", name: text}]).load(["text"], ["negative", "positive"])


@settings(max_examples=80, derandomize=True, database=None)
@given(before=texts(), text=texts() | broken_texts(), after=texts())
def test_a_prompt_shows_what_is_between_its_fields_to_the_letter(before, text, after):
    escaped = [part.replace("{", "{{").replace("}", "}}") for part in (before, after)]
    pieces = Template.parse("{text}".join(escaped)).render({"text": text})
    assert "".join(piece.text for piece in pieces) == before + text + after
    assert [piece.text for piece in pieces if piece.field == "text"] == [text]


@settings(max_examples=200, derandomize=True, database=None)
@given(
    st.lists(st.sampled_from(["{", "}", "{{", "}}", "text", "{text}", "!r", ":>9", "[0]", ".a", "0", " ", "é"])).map(
        "".join
    )
)
def test_a_prompt_with_braces_anywhere_is_read_or_refused(prompt):
    try:
        template = Template.parse(prompt)
    except ConfigError as exc:
        assert "cannot be read" in str(exc) or "has no field" in str(exc)
        return
    assert all(name.isidentifier() for name in template.fields)
