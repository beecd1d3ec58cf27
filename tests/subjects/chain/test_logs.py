"""Logs in the shapes that inspect_ai 0.3.285 and lm_eval 0.4.13 write, less what no chain needs."""

import io
import json
import zipfile

import pyarrow as pa
import pytest

from ice_eval import Served, plan
from ice_eval.errors import DataError
from ice_eval.subjects.chain import FinalAnswer, read_given
from ice_eval.subjects.chain import logs as module
from ice_eval.subjects.chain.logs import read_log

REASONED = [
    {"type": "reasoning", "reasoning": "Add 3 and 4.\nThat is 7.", "redacted": False},
    {"type": "text", "text": "ANSWER: 7"},
]
STEPS = "Add 3 and 4.\nThat is 7.\n\nANSWER: 7"


def sample(identity, content=STEPS, *, epoch=1, target="7", asked="What is 3 + 4?", **fields):
    choices = [] if content is None else [{"message": {"role": "assistant", "content": content}, "stop_reason": "stop"}]
    output = {"model": "mockllm/model", "choices": choices}
    return {"id": identity, "epoch": epoch, "input": asked, "target": target, "output": output, **fields}


def as_json(path, samples):
    log = {"version": 2, "status": "success", "eval": {"task": "sums"}, "plan": {}, "samples": samples}
    path.write_text(json.dumps(log, indent=2), encoding="utf-8")
    return path


def as_archive(path, samples, *, packed="zstd"):
    """Write an `.eval` file; `zipfile` cannot write zstd, so its number is set in the headers afterwards."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED if packed == "deflate" else zipfile.ZIP_STORED) as archive:
        named = {f"samples/{each['id']}_epoch_{each['epoch']}.json": each for each in samples}
        for name, content in {"_journal/start.json": {}, **named, "header.json": {}}.items():
            data = json.dumps(content).encode()
            archive.writestr(name, pa.compress(data, "zstd", asbytes=True) if packed == "zstd" else data)
    content = bytearray(made.getvalue())
    for info in zipfile.ZipFile(made).infolist() if packed == "zstd" else ():
        content[info.header_offset + 8] = 93
        name = info.filename.encode()
        content[content.rindex(name) - 46 + 10] = 93
    path.write_bytes(content)
    return path


SAMPLES = [
    sample("n1", epoch=2),
    sample("n1", REASONED),
    sample(2, target=["7"], asked=[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "3 + 4?"}]),
    sample(1, None),
]
RECORDS = [
    {"id": 1, "question": "What is 3 + 4?", "response": "", "gold": "7", "n_further": 0},
    {"id": 2, "question": "3 + 4?", "response": STEPS, "gold": "7", "n_further": 0},
    {
        "id": "n1",
        "question": "What is 3 + 4?",
        "response": "<think>\nAdd 3 and 4.\nThat is 7.\n</think>\nANSWER: 7",
        "gold": "7",
        "n_further": 1,
    },
]


@pytest.mark.parametrize("packed", ["json", "zstd", "deflate"])
def test_inspect_logs_are_read_in_every_packing(tmp_path, packed):
    path = as_json(tmp_path / "a.json", SAMPLES) if packed == "json" else None
    path = path or as_archive(tmp_path / "a.eval", SAMPLES, packed=packed)
    assert read_log(path) == RECORDS
    error, plain, thought = read_given(path)
    assert [step.text for step in thought.chain.steps] == ["Add 3 and 4.", "That is 7."]
    assert plain.final == thought.final == FinalAnswer("7", "marker")
    assert thought.n_further == 1 and not isinstance(error.final, FinalAnswer)


def test_options_attachments_and_summaries_of_inspect_are_read(tmp_path):
    hidden = [{"type": "reasoning", "reasoning": "gAAA", "summary": "Saws cut.", "redacted": True}]
    content = [*hidden, {"type": "text", "text": "attachment://abc"}]
    one = sample(1, content, target="B", choices=["glue", "saw"], attachments={"abc": "ANSWER: B"})
    [record] = read_log(as_json(tmp_path / "a.json", [one]))
    assert record["response"] == "<think>\nSaws cut.\n</think>\nANSWER: B"
    [given] = read_given(tmp_path / "a.json")
    assert given.problem.options == ("glue", "saw") and given.problem.gold.value == "B"


def harness(path, *rows):
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def line(doc_id, doc, target, responses, **fields):
    arguments = {"gen_args_0": {"arg_0": "Question: 3 + 4?\nAnswer:", "arg_1": {"until": ["</s>"]}}}
    return {"doc_id": doc_id, "doc": doc, "target": target, "arguments": arguments, "resps": [responses], **fields}


def test_samples_of_the_harness_are_read_once_whatever_their_filters(tmp_path):
    doc = {"question": "What is 3 + 4?", "answer": "Add. #### 7"}
    rows = [line(0, doc, "Add. #### 7", [STEPS, "Another."], filter=name) for name in ("strict", "flexible")]
    path = harness(tmp_path / "samples_sums.jsonl", *rows, line(1, {"text": "x"}, "7", [STEPS], filter="strict"))
    one, other = read_log(path)
    assert one == {"id": "0", "question": "What is 3 + 4?", "response": STEPS, "gold": "7", "n_further": 1}
    assert (other["question"], other["n_further"]) == ("Question: 3 + 4?\nAnswer:", 0)  # the prompt
    assert [given.problem.gold.value for given in read_given(path)] == ["7", "7"]


@pytest.mark.parametrize(
    ("choices", "target", "gold"),
    [
        (["glue", "saw"], 1, "B"),
        (["glue", "saw"], "B", "B"),
        ({"label": ["1", "2"], "text": ["glue", "saw"]}, "2", "B"),
        ({"A": "glue", "B": "saw"}, " B", "B"),
        (["glue", "saw"], "saw", "B"),
    ],
)
def test_options_of_the_harness_go_by_letters(tmp_path, choices, target, gold):
    row = line(0, {"question": "What cuts?", "choices": choices}, target, ["Saws cut.\nAnswer: B"])
    [given] = read_given(harness(tmp_path / "samples_a.jsonl", row))
    assert given.problem.options == ("glue", "saw") and given.problem.gold.value == gold


def test_an_archive_may_not_grow_beyond_the_limits(tmp_path, monkeypatch):
    for packed in ("zstd", "deflate"):
        path = as_archive(tmp_path / f"{packed}.eval", [sample(1, "long " * 10_000)], packed=packed)
        assert path.stat().st_size < 2_000
        for name in ("_LARGEST_SAMPLE", "_LARGEST_LOG"):
            with monkeypatch.context() as patch, pytest.raises(DataError, match="1_epoch_1.json is too large"):
                patch.setattr(module, name, 10_000)
                read_log(path)
    assert [each.name for each in tmp_path.iterdir() if each.suffix != ".eval"] == []


def test_what_holds_no_responses_is_refused_with_one_message(tmp_path):
    def refused(path, match):
        with pytest.raises(DataError, match=match) as error:
            read_given(path)
        assert str(error.value).count("Expected: a .jsonl file of chains") == 1

    refused(as_json(tmp_path / "a.json", [sample(1, None)]), "holds no responses")
    refused(as_json(tmp_path / "b.json", None), "holds no responses")
    refused(as_archive(tmp_path / "c.eval", []), "holds no responses")
    refused(harness(tmp_path / "d.jsonl", line(0, {"question": "?"}, 0, [["-3.2", "False"]])), "holds no responses")
    refused(as_json(tmp_path / "e.json", [{"id": 1}]), "not have the shape of a log .KeyError: 'epoch'")
    (tmp_path / "results.json").write_text('{\n"results": {}, "configs": {}}', encoding="utf-8")
    refused(tmp_path / "results.json", "is JSON of another kind")
    whole = as_archive(tmp_path / "f.eval", SAMPLES).read_bytes()
    (tmp_path / "f.eval").write_bytes(whole[: len(whole) // 2])
    refused(tmp_path / "f.eval", "is a damaged log")


def test_a_plan_counts_the_responses_that_are_left_out(tmp_path):
    samples = [sample(1, epoch=epoch) for epoch in (1, 2, 3)] + [sample(2)]
    path = as_json(tmp_path / "a.json", samples)
    said = str(plan(Served("m", base_url="http://localhost:1/v1"), responses=path, attributions=(), m=2))
    assert "the first is evaluated, and 2 others are not." in said


@pytest.mark.filterwarnings("ignore")  # of the library and what it imports
def test_a_log_that_inspect_itself_has_written_is_read(tmp_path):
    inspect_ai = pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import match
    from inspect_ai.solver import generate

    usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # else it downloads a tokenizer to count
    outputs = [ModelOutput.from_content("mockllm/model", STEPS).model_copy(update={"usage": usage}) for _ in range(4)]
    task = inspect_ai.Task(
        dataset=[Sample(input="3 + 4?", target="7"), Sample(input="4 + 3?", target="7")],
        solver=generate(),
        scorer=match(),
        epochs=2,
    )
    for form in ("eval", "json"):
        model = get_model("mockllm/model", custom_outputs=list(outputs))
        [log] = inspect_ai.eval(task, model=model, log_dir=str(tmp_path), log_format=form, display="none")
        records = read_log(tmp_path / log.location.rpartition("/")[2])
        assert [record["question"] for record in records] == ["3 + 4?", "4 + 3?"]
        assert all(record["response"] == STEPS and record["n_further"] == 1 for record in records)
