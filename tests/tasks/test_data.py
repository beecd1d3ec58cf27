import json
import re
import sys
from types import SimpleNamespace

import pytest

from ice_eval.errors import DataError, MissingExtraError
from ice_eval.records import Span
from ice_eval.tasks import FileData, HubData, Records, load_task, with_file

LABELS = ("negative", "positive")


def load(rows, fields=("text",), labels=LABELS, **options):
    return Records(rows).load(fields, labels, **options)


def gold(label, labels=LABELS):
    return load([{"text": "a", "label": label}], labels=labels)[0].gold


@pytest.fixture
def write(tmp_path):
    """A name and content -> the data of that file."""

    def build(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return FileData(path)

    return build


def read(data, fields=("text",)):
    return data.load(fields, LABELS)


def test_jsonl_gives_text_label_id_and_group(write):
    lines = [
        {"id": "a7", "text": "fine", "label": "positive", "group": 3},
        {"text": "dull", "label": 0, "else": [1, 2]},
    ]
    first, second = read(write("data.jsonl", "\n".join(map(json.dumps, lines))))
    assert (first.id, first.fields, first.gold, first.group) == ("a7", {"text": "fine"}, 1, "3")
    assert (second.id, second.fields, second.gold, second.group) == ("1", {"text": "dull"}, 0, None)


def test_blank_lines_and_a_byte_order_mark_are_no_fault(write):
    data = write("data.jsonl", '\ufeff{"text": "a"}\n\n  \n{"text": "b"}\r\n')
    assert [example.fields["text"] for example in read(data)] == ["a", "b"]


def test_only_as_many_rows_are_read_as_are_asked_for(write):
    data = write("data.jsonl", '{"text": "a"}\nnot json')
    assert len(data.load(("text",), LABELS, limit=1)) == 1


def test_a_path_may_be_given_as_text(write):
    path = write("data.jsonl", '{"text": "a"}').path
    assert len(FileData(str(path)).load(("text",), LABELS)) == 1


def test_a_file_that_is_not_there_is_named(tmp_path):
    path = tmp_path / "none.jsonl"
    with pytest.raises(DataError, match=rf"^no such file: {re.escape(str(path))}\. --data takes a \.jsonl or \.csv"):
        read(FileData(path))


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(DataError, match="^no such file"):
        read(FileData(tmp_path))


def test_a_file_of_another_kind_is_refused(write):
    with pytest.raises(DataError, match=r"data\.parquet is neither \.jsonl nor \.csv; convert it"):
        read(write("data.parquet", ""))


def test_a_line_that_is_not_json_is_named_by_its_number(write):
    data = write("data.jsonl", '{"text": "a"}\n\n{"text": "b"\n')
    with pytest.raises(DataError, match=r"data\.jsonl, line 3: not JSON \(Expecting ',' delimiter at column \d+\)"):
        read(data)


@pytest.mark.parametrize(("line", "kind"), [('["a"]', "list"), ('"a"', "str"), ("7", "int"), ("null", "NoneType")])
def test_a_line_that_is_no_object_is_refused(write, line, kind):
    with pytest.raises(DataError, match=rf"line 1: a JSON object is expected, as {{\"text\": …}}, not {kind}\."):
        read(write("data.jsonl", line))


@pytest.mark.parametrize("name", ["data.jsonl", "data.csv"])
def test_an_empty_file_is_refused(write, name):
    with pytest.raises(DataError, match=rf"{name} holds no examples; at least one is needed"):
        read(write(name, ""))


def test_a_csv_file_with_a_header_alone_is_refused(write):
    with pytest.raises(DataError, match="holds no examples"):
        read(write("data.csv", "text,label\n"))


@pytest.mark.parametrize("name", ["data.jsonl", "data.csv"])
def test_a_file_that_is_not_utf8_is_refused(write, name):
    with pytest.raises(DataError, match=r"is not UTF-8 text \(.* at byte \d+\); save it as UTF-8"):
        read(write(name, "text\nfranç{}\n".encode("latin-1")))


def test_csv_cells_may_hold_commas_quotes_and_line_breaks(write):
    data = write("data.csv", '\ufeffid,text,label\nx,"a, ""b""\nc",positive\r\ny,plain,1\n')
    first, second = read(data)
    assert (first.id, first.fields["text"], first.gold) == ("x", 'a, "b"\nc', 1)
    assert (second.id, second.fields["text"], second.gold) == ("y", "plain", 1)


def test_empty_cells_of_id_label_and_group_mean_none(write):
    [example] = read(write("data.csv", "id,text,label,group\n,fine,,\n"))
    assert (example.id, example.gold, example.group) == ("0", None, None)


def test_an_empty_cell_of_text_is_an_empty_text(write):
    assert [example.fields["text"] for example in read(write("data.csv", 'id,text\n1,\n2,""\n'))] == ["", ""]


def test_a_cell_may_be_long(write):
    text = "word " * 100_000
    assert read(write("data.csv", f"text\n{text}\n"))[0].fields["text"] == text


@pytest.mark.parametrize("line", ["a", "a,b,c"], ids=["missing", "extra"])
def test_a_csv_row_with_another_number_of_cells_is_refused(write, line):
    with pytest.raises(DataError, match=r"row 3: the number of cells differs from the header's; quote cells"):
        read(write("data.csv", f"text,label\nfine,1\n{line}\n"))


def test_a_quote_that_is_never_closed_is_refused(write):
    with pytest.raises(DataError, match="is not readable as CSV: unexpected end of data"):
        read(write("data.csv", 'text,label\n"fine,1\n'))


def test_a_missing_field_is_named_with_those_that_are_there():
    with pytest.raises(
        DataError,
        match="example 1: the prompt needs the field 'text', and the example has sentence, label\\. Name its column",
    ):
        load([{"text": "a"}, {"sentence": "b", "label": 1}])


@pytest.mark.parametrize("row", [{}, {"text": None}])
def test_a_field_that_is_null_is_missing(row):
    with pytest.raises(DataError, match="example 0: the prompt needs the field 'text'"):
        load([row])


def test_an_example_without_any_field_says_so():
    with pytest.raises(DataError, match="and the example has no field"):
        load([{}])


@pytest.mark.parametrize(("value", "kind"), [(7, "int"), (["a"], "list"), (True, "bool")])
def test_a_field_that_is_no_text_is_refused(value, kind):
    with pytest.raises(DataError, match=f"example 0: the field 'text' holds {kind}, and text is expected"):
        load([{"text": value}])


@pytest.mark.parametrize(
    ("name", "row"), [("text", {"text": "half \ud83d"}), ("id", {"text": "a", "id": "\ud83d"})], ids=["text", "id"]
)
def test_half_a_character_is_refused(write, name, row):
    with pytest.raises(DataError, match=f"example 1: the field '{name}' holds half of a character"):
        read(write("data.jsonl", '{"text": "a"}\n' + json.dumps(row)))


def test_records_that_are_no_mappings_are_refused():
    with pytest.raises(DataError, match="example 0.*str"):
        load(["just a text"])


@pytest.mark.parametrize(
    ("label", "index"),
    [
        ("negative", 0), ("positive", 1), ("Positive", 1), (" NEGATIVE ", 0), (0, 0), (1, 1), ("0", 0), ("1", 1),
        (None, None),
    ],
)  # fmt: skip
def test_a_label_is_a_name_in_any_case_or_an_index(label, index):
    assert gold(label) == index


def test_a_name_goes_before_an_index():
    assert gold("1", labels=("1", "0")) == 0


def test_a_name_in_its_own_case_goes_before_the_same_in_another():
    assert gold("A", labels=("a", "A")) == 1
    assert gold("a", labels=("a", "A")) == 0


@pytest.mark.parametrize("label", ["neutral", "", 2, -1, "2", "-1", 1.5, True, [1]], ids=repr)
def test_an_unknown_label_is_refused_with_the_known_ones(label):
    with pytest.raises(DataError) as caught:
        gold(label)
    assert str(caught.value) == (
        f"the records, example 0: the label {label!r} is none of negative, positive, nor an index below 2; "
        "see --labels."
    )


def test_a_label_in_a_case_that_fits_two_names_is_refused():
    with pytest.raises(DataError, match="the label 'AB' is none of ab, aB"):
        gold("AB", labels=("ab", "aB"))


def test_ids_are_row_numbers_where_the_data_give_none():
    assert [example.id for example in load([{"text": "a"}, {"text": "b", "id": None}, {"text": "c"}])] == [
        "0",
        "1",
        "2",
    ]


def test_ids_may_be_numbers():
    assert [example.id for example in load([{"text": "a", "id": 17}, {"text": "b", "id": 0}])] == ["17", "0"]


@pytest.mark.parametrize(
    "rows", [[{"id": "x"}, {"id": "x"}], [{"id": 1}, {"id": "1"}], [{"id": 1}, {}]], ids=["text", "number", "default"]
)
def test_an_id_given_twice_is_refused(rows):
    with pytest.raises(DataError, match=r"the records: two examples have the id '.'; ids must be unique \(leave them"):
        load([{"text": "a", **row} for row in rows])


def test_no_records_are_refused():
    with pytest.raises(DataError, match="the records holds? no examples"):
        load([])


def test_human_spans_lie_in_the_first_field_unless_they_name_another():
    [example] = load(
        [{"premise": "it rains", "claim": "it is wet", "rationale": [[3, 8], ["claim", 6, 9]]}],
        fields=("premise", "claim"),
    )
    assert example.human == (Span("premise", 3, 8), Span("claim", 6, 9))


def test_human_spans_may_come_as_tuples():
    [example] = load([{"text": "it rains", "rationale": ((3, 8),)}])
    assert example.human == (Span("text", 3, 8),)


@pytest.mark.parametrize("rationale", [None, []])
def test_examples_may_have_no_human_spans(rationale):
    assert load([{"text": "it rains", "rationale": rationale}])[0].human == ()
    assert load([{"text": "it rains"}])[0].human == ()


@pytest.mark.parametrize(
    "span", [[3, 9], [3, 3], [5, 3], [-1, 3], ["other", 0, 2], [1], [1, 2, 3, 4], 5, ["0", "2"], [0, 1.5], None],
    ids=repr,
)  # fmt: skip
def test_a_human_span_that_is_not_in_the_text_is_refused(span):
    with pytest.raises(DataError, match="the records, example 0: the rationale span .* does not lie in the text"):
        load([{"text": "it rains", "rationale": [span]}])


def test_a_human_span_is_looked_for_in_a_field_that_the_message_names():
    row = {"question": "why", "passage": "it rains and rains", "rationale": [[3, 8]]}
    with pytest.raises(DataError, match=r"does not lie in the text of 'question'; .* or \[field, start, end\]"):
        load([row], fields=("question", "passage"))
    assert load([row], fields=("passage", "question"))[0].human == (Span("passage", 3, 8),)


def test_highlighted_words_of_every_field_are_human_spans():
    row = {"premise": "It rains,  again.", "claim": "wet", "highlights_premise": [1, 2], "highlights_claim": [0]}
    [example] = load([row], fields=("premise", "claim"))
    assert example.human == (Span("premise", 3, 9), Span("premise", 11, 17), Span("claim", 0, 3))
    assert load([{**row, "rationale": [[0, 2]]}], fields=("premise", "claim"))[0].human == (Span("premise", 0, 2),)
    assert load([row], fields=("claim",))[0].human == (Span("claim", 0, 3),)


@pytest.mark.parametrize("place", [2, -1, "0", 0.5, True, None, [0]], ids=repr)
def test_a_highlight_that_is_no_word_is_refused(place):
    with pytest.raises(DataError, match="'highlights_text' holds .* one of the 2 words of 'text' is expected, counted"):
        load([{"text": "it rains", "highlights_text": [place]}])


@pytest.fixture
def hub_folder(tmp_path, monkeypatch):
    """A data set in a folder, read by the real library, which keeps its cache beside it."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "reviews"
    folder.mkdir()
    rows = [{"sentence": f"text {index}", "label": index % 2, "idx": index} for index in range(20)]
    (folder / "validation.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return folder


def hub_data(folder, **changes):
    values = {"fields": {"text": "sentence"}, "labels": {0: "negative", 1: "positive"}, "revision": "abc", **changes}
    return HubData(str(folder), **values)


def test_a_data_set_is_read_with_our_names_and_shuffled_by_a_fixed_seed(hub_folder):
    examples = hub_data(hub_folder).load(("text",), LABELS)
    numbers = [int(example.fields["text"].removeprefix("text ")) for example in examples]
    assert sorted(numbers) == list(range(20))
    assert numbers != list(range(20))
    assert [example.gold for example in examples] == [number % 2 for number in numbers]
    assert [example.id for example in examples] == [str(index) for index in range(20)]
    again = hub_data(hub_folder).load(("text",), LABELS, limit=5)
    assert again == examples[:5]
    assert hub_data(hub_folder, shuffle_seed=1).load(("text",), LABELS) != examples
    stored = [row["text"] for row in hub_data(hub_folder, shuffle_seed=None).rows()]
    assert stored == [f"text {number}" for number in range(20)]


def test_labels_may_stand_in_another_column_and_rows_with_other_labels_be_left_out(hub_folder):
    columns = {"text": "sentence", "label": "idx"}
    data = hub_data(hub_folder, fields=columns, labels={3: "negative", 7: "positive"}, only_labels=True)
    assert {(e.fields["text"], e.gold) for e in data.load(("text",), LABELS)} == {("text 3", 0), ("text 7", 1)}


def test_passages_that_people_copied_out_of_a_text_are_found_in_it(hub_folder):
    rows = [{"text": "long but never dull", "said": ["never dull", "not there", "long"]}, {"text": "fine", "said": []}]
    (hub_folder / "validation.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    examples = hub_data(hub_folder, fields={}, quotes="said").load(("text",), LABELS)
    found = {example.fields["text"]: example.human for example in examples}
    assert found == {"long but never dull": (Span("text", 9, 19), Span("text", 0, 4)), "fine": ()}


def test_a_column_that_the_data_set_lacks_is_named(hub_folder):
    with pytest.raises(DataError, match="'review'.*sentence, label"):
        hub_data(hub_folder, fields={"text": "review"}).load(("text",), LABELS)
    with pytest.raises(DataError, match="'said'.*sentence, label"):
        hub_data(hub_folder, quotes="said").load(("text",), LABELS)


def test_a_split_that_the_data_set_lacks_is_an_error_that_names_it(hub_folder):
    with pytest.raises(DataError, match=r"could not be loaded from the hub \(ValueError: .*nosuch.*--data FILE\.jsonl"):
        hub_data(hub_folder, split="nosuch").load(("text",), LABELS)


def test_a_hub_that_cannot_be_reached_points_to_a_file(monkeypatch):
    datasets = pytest.importorskip("datasets")

    def fail(*args, **kwargs):
        raise ConnectionError("no route\nto the hub")

    monkeypatch.setattr(datasets, "load_dataset", fail)
    with pytest.raises(DataError) as caught:
        HubData("nyu-mll/glue", config="sst2", revision="abc").load(("text",), LABELS)
    assert str(caught.value) == (
        "the data set 'nyu-mll/glue/sst2/validation' could not be loaded from the hub at abc (ConnectionError: no "
        "route). Give the examples as a file instead: --data FILE.jsonl; a grid takes --data-dir DIR with TASK.jsonl"
    )


def test_without_the_library_the_message_holds_the_pip_command_and_the_way_around(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    message = r"'datasets' is not installed.*--data FILE.*pip install 'ice-eval\[hub\]'"
    with pytest.raises(MissingExtraError, match=message):
        HubData("nyu-mll/glue").load(("text",), LABELS)


@pytest.mark.parametrize("revision", ["abc", None])
def test_a_hub_that_does_not_answer_is_asked_once_and_then_only_its_cache(monkeypatch, revision):
    datasets, hub = pytest.importorskip("datasets"), pytest.importorskip("huggingface_hub")
    seen = []

    class Api:
        def dataset_info(self, path, *, revision, timeout):
            seen.append(("asked", hub.constants.HF_HUB_OFFLINE))
            raise OSError("no route")

    def load_dataset(path, config, *, split, revision):
        seen.append(("loaded", hub.constants.HF_HUB_OFFLINE and datasets.config.HF_HUB_OFFLINE))
        return datasets.Dataset.from_list([{"sentence": "a", "label": 1}])

    monkeypatch.setattr(hub, "HfApi", Api)
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    hub_data("org/reviews", revision=revision).load(("text",), LABELS)
    assert seen == [("asked", False), ("loaded", True)]


@pytest.mark.parametrize("known", [True, False])
def test_without_a_revision_the_current_commit_is_asked_for_once_and_read(monkeypatch, known):
    datasets, hub = pytest.importorskip("datasets"), pytest.importorskip("huggingface_hub")
    seen = []

    class Api:
        def dataset_info(self, path, *, revision, timeout):
            seen.append((path, revision))
            if not known:
                raise ConnectionError("no route")
            return SimpleNamespace(sha="f" * 40)

    def load_dataset(path, config, *, split, revision):
        seen.append(revision)
        return datasets.Dataset.from_list([{"sentence": "a", "label": 1}])

    monkeypatch.setattr(hub, "HfApi", Api)
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    data = hub_data("org/reviews", revision=None)
    data.load(("text",), LABELS)
    assert data.commit == ("f" * 40 if known else None)
    assert seen == [("org/reviews", "main"), data.commit or "main"]


PUBLISHED = (
    "pairID,gold_label,Sentence1,Sentence2,Sentence1_marked_1,Sentence2_marked_1,Sentence1_Highlighted_1,"
    "Sentence2_Highlighted_1,Sentence1_Highlighted_2,Sentence2_Highlighted_2,Sentence1_Highlighted_3,"
    "Sentence2_Highlighted_3\n"
    'a#0e,entailment,"A man, tall, sleeps.",He rests.,"A *man,* tall, *sleeps.*",He *rests.*,"1,3",1,3,{},"3,0",{}\n'
    "b#0n,neutral,A dog.,It is old.,A dog.,It is *old.*,,,,,,\n"
    "c#0n,-,A cat.,It purrs.,,,,,,,,\n"
)
"""Rows as the published files of e-SNLI have them."""


def test_the_published_files_of_esnli_are_read_as_they_are(tmp_path):
    path = tmp_path / "esnli_test.csv"
    path.write_text(PUBLISHED, encoding="utf-8")
    first, second = with_file(load_task("esnli"), path).examples()
    assert (first.id, first.fields, first.gold) == (
        "a#0e",
        {"premise": "A man, tall, sleeps.", "hypothesis": "He rests."},
        0,
    )
    # "sleeps." has three marks of three, "man," and "rests." one each, which is less than half.
    assert first.human == (Span("premise", 13, 20),)
    assert (second.id, second.gold, second.human) == ("b#0n", 1, (Span("hypothesis", 6, 10),))
