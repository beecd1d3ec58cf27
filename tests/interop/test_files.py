"""The same attribution, computed by us and written in each format, gives the same win rates as its numbers."""

import base64
import gzip
import json
import re
import zlib

import numpy as np
import pytest
from safetensors.numpy import save
from tests.small_runs import Waves

import ice_eval
from ice_eval.errors import ConfigError, DataError
from ice_eval.interop import Explanation, TextPart, formats, read
from ice_eval.tasks import load_task

TASK = load_task("demo")
EXAMPLES = TASK.examples(limit=12)
TEXTS = {example.id: example.fields["text"] for example in EXAMPLES}


def weights(item):
    """A number for every word, the same wherever it stands."""
    return np.array([1 + zlib.crc32(text.encode()) % 97 for text in item.texts], dtype=float)


def items():
    found = []

    def keep(item):
        found.append(item)
        return weights(item)

    ice_eval.evaluate("toy", TASK, attributions={"mine": keep}, operators=["delete"], n=len(EXAMPLES), m=3)
    return list({item.example_id: item for item in found}.values())


ITEMS = items()


def results(given, name="mine"):
    run = ice_eval.evaluate(Waves(), TASK, attributions={name: given}, operators=["delete", "infill"], n=12, m=20)
    found = run.examples().reindex(columns=["example_id", "operator", "win_rate", "p_value"])
    return found.fillna(-1).to_dict("list")  # skipped examples have no numbers


@pytest.fixture(scope="module")
def expected():
    return results(weights)


def halves(item, values):
    """Every unit as two pieces of a byte-level tokenizer, which share its number."""
    tokens, scores = [], []
    for text, value in zip(item.texts, values, strict=True):
        middle = len(text) // 2
        for piece, share in (("Ġ" + text[:middle], 0.25), (text[middle:], 0.75)) if middle else (("Ġ" + text, 1.0),):
            tokens.append(piece.replace("’", "âĢĻ"))
            scores.append(value * share)
    return tokens, scores


def rows(way):
    for item in ITEMS:
        values = weights(item).tolist()
        text = TEXTS[item.example_id]
        tokens, scores = halves(item, values)
        yield {
            "tokens": {"id": item.example_id, "tokens": tokens, "scores": scores},
            "words": {"text": text, "words": list(item.texts), "scores": values},
            "spans": {
                "id": item.example_id,
                "spans": [[s.start, s.end, v] for s, v in zip(item.spans, values, strict=True) if v],
            },
            "named spans": {
                "id": item.example_id,
                "spans": [
                    {"field": "text", "start": s.start, "end": s.end, "score": v, "text": t}
                    for s, v, t in zip(item.spans, values, item.texts, strict=True)
                ],
            },
            "numbers": {"id": item.example_id, "scores": values},
            "in order": {"tokens": tokens, "scores": scores},
        }[way]


def written(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("way", ["tokens", "words", "spans", "named spans", "numbers", "in order"])
def test_a_file_of_json_lines_gives_the_win_rates_of_the_numbers(tmp_path, expected, way):
    assert results(written(tmp_path / "mine.jsonl", rows(way))) == expected


def test_a_list_in_one_json_file_does_too(tmp_path, expected):
    (tmp_path / "mine.json").write_text(json.dumps(list(rows("tokens"))))
    assert results(tmp_path / "mine.json") == expected


def test_records_in_memory_and_explanations_do_too(expected):
    assert results(list(rows("tokens"))) == expected
    made = {item.example_id: Explanation(weights(item), tuple(TextPart(text) for text in item.texts)) for item in ITEMS}
    assert results(made) == expected
    assert results(list(made.values())) == expected


def words_of(item):
    """Words between spaces, and the sum of the units in each."""
    text = TEXTS[item.example_id]
    owner = np.repeat(np.arange(len(text.split())), [len(word) for word in text.split()])
    solid = [index for index, c in enumerate(text) if not c.isspace()]
    scores = np.zeros(len(text.split()))
    for span, value in zip(item.spans, weights(item), strict=True):
        scores[owner[solid.index(span.start)]] += value
    return text.split(), scores.tolist()


def test_soft_rationales_of_eraser(tmp_path):
    lines = [
        {
            "annotation_id": item.example_id,
            "rationales": [{"docid": "x", "soft_rationale_predictions": words_of(item)[1]}],
            "classification": "positive",
        }
        for item in ITEMS
    ]
    as_words = [{"id": item.example_id, "words": words_of(item)[0], "scores": words_of(item)[1]} for item in ITEMS]
    soft = results(written(tmp_path / "soft.jsonl", lines))
    assert soft == results(written(tmp_path / "words.jsonl", as_words))


def test_hard_rationales_and_evidences_of_eraser(tmp_path):
    hard, evidences = [], []
    for item in ITEMS:
        words, scores = words_of(item)
        spans = [
            {"start_token": place, "end_token": place + 1, "docid": "x", "text": words[place]}
            for place, score in enumerate(scores)
            if score > 60
        ]
        hard.append(
            {"annotation_id": item.example_id, "rationales": [{"docid": "x", "hard_rationale_predictions": spans}]}
        )
        evidences.append({"annotation_id": item.example_id, "query": "", "evidences": [[span] for span in spans]})
    found = results(written(tmp_path / "hard.jsonl", hard))
    assert found == results(written(tmp_path / "evidences.jsonl", evidences))
    spans = [{"id": item.example_id, "spans": spans_of(item)} for item in ITEMS]
    assert found == results(written(tmp_path / "spans.jsonl", spans))
    assert max(found["win_rate"]) > 0  # not all are skipped


def spans_of(item):
    """The words between spaces that weigh much, as characters of the text."""
    ends = [match.span() for match in re.finditer(r"\S+", TEXTS[item.example_id])]
    return [list(ends[place]) for place, score in enumerate(words_of(item)[1]) if score > 60]


def test_a_file_has_scores_everywhere_or_nowhere(tmp_path):
    spans = ([[0, 1]], [], [[0, 1, 0.5]])
    lines = [{"id": item.example_id, "spans": each} for item, each in zip(ITEMS, spans, strict=False)]
    with pytest.raises(DataError, match="'mine': some explanations have scores and others are spans without"):
        results(written(tmp_path / "mixed.jsonl", lines))


def tensor(values):
    return base64.b64encode(save({"attribution": np.asarray(values, dtype=np.float32)})).decode()


def saved_by_inseq(path, *, encoder_decoder=False, kind="FeatureAttributionSequenceOutput", scores_of=weights):
    """As inseq writes it; its own output is read in test_libraries.py."""
    sequences = []
    for item in ITEMS:
        tokens, scores = halves(item, scores_of(item))
        around = tokens if encoder_decoder else ["Review", ":", *tokens, "Ċ", "Sentiment", ":"]
        values = scores if encoder_decoder else [9, 9, *scores, 9, 9, 9]
        listed = [{"__instance_type__": ["inseq.utils.typing", "TokenWithId"], "attributes": {"id": 0, "token": token}}
                  for token in [*around, "Ġpositive"]]  # fmt: skip
        steps = np.array([*values, 5.0])[:, None]
        content = {"source": listed[:-1], "target": listed, "attr_pos_start": len(around)}
        content |= {"source_attributions": tensor(steps[:-1])} if encoder_decoder else {"source_attributions": None}
        content |= {"target_attributions": None if encoder_decoder else tensor(steps)}
        sequences.append({"__instance_type__": ["inseq.data.attribution", kind], "attributes": content})
    whole = ["inseq.data.attribution", "FeatureAttributionOutput"]
    path.write_text(json.dumps({"__instance_type__": whole, "attributes": {"sequence_attributions": sequences}}))
    return path


@pytest.mark.parametrize("encoder_decoder", [False, True])
def test_what_inseq_saves(tmp_path, expected, encoder_decoder):
    assert results(saved_by_inseq(tmp_path / "out.json", encoder_decoder=encoder_decoder)) == expected


def test_what_inseq_saves_after_it_summed_the_width_keeps_its_signs(tmp_path):
    """`aggregate` leaves the class of the sequences as it was, so the class does not say whether a width is left."""

    def signed(item):
        return weights(item) - 50

    path = saved_by_inseq(tmp_path / "out.json", kind="GranularFeatureAttributionSequenceOutput", scores_of=signed)
    assert results(path) == results(signed) != results(lambda item: abs(signed(item)))


@pytest.mark.parametrize("name", ["out.json.gz", "out.json"])
def test_what_inseq_saves_compressed(tmp_path, expected, name):
    """inseq compresses under any name that it is given."""
    plain = saved_by_inseq(tmp_path / "plain.json")
    (tmp_path / name).write_bytes(gzip.compress(plain.read_bytes()))
    assert results(tmp_path / name) == expected


def test_compressed_lines_and_rationales(tmp_path, expected):
    (tmp_path / "mine.jsonl.gz").write_bytes(gzip.compress(written(tmp_path / "a.jsonl", rows("tokens")).read_bytes()))
    assert results(tmp_path / "mine.jsonl.gz") == expected
    lines = [{"annotation_id": item.example_id, "rationales": [{"soft_rationale_predictions": words_of(item)[1]}]}
             for item in ITEMS]  # fmt: skip
    plain = written(tmp_path / "soft.jsonl", lines)
    (tmp_path / "soft.jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
    assert results(tmp_path / "soft.jsonl.gz") == results(plain)


def test_a_compressed_file_that_breaks_off_is_named(tmp_path):
    whole = gzip.compress(written(tmp_path / "a.jsonl", rows("tokens")).read_bytes())
    (tmp_path / "mine.jsonl.gz").write_bytes(whole[:-20])
    with pytest.raises(DataError, match=r"mine\.jsonl\.gz cannot be read: Compressed file ended"):
        results(tmp_path / "mine.jsonl.gz")


def test_the_built_in_method_gives_the_same_as_its_file(tmp_path):
    run = ice_eval.evaluate(Waves(), TASK, attributions=["first-k"], operators=["delete"], n=12, m=20)
    lines = [{"id": item.example_id, "words": item.texts, "scores": [*range(item.n_units, 0, -1)]} for item in ITEMS]
    path = written(tmp_path / "first.jsonl", lines)
    brought = ice_eval.evaluate(Waves(), TASK, attributions={"mine": path}, operators=["delete"], n=12, m=20)
    assert brought.summary()["win_rate"].tolist() == run.summary()["win_rate"].tolist()


BAD = {
    "no scores": ({"id": "0", "tokens": ["a"]}, '"tokens" and "scores".* is expected, and the object has id, tokens'),
    "too few": (
        {"id": "0", "tokens": ["a", "b"], "scores": [1]},
        "line 1: 2 tokens and 1 scores; give one each",
    ),
    "no numbers": ({"id": "0", "tokens": ["a"], "scores": ["x"]}, "line 1: numbers are expected"),
    "a text": ({"id": "0", "tokens": "a b", "scores": [1]}, '"tokens" is .a b.; a list of texts is expected'),
    "no score": (
        {"id": "0", "spans": [[0, 1], [2, 3, 1.0]]},
        r"a span without a score among others; \[start, end, score\] is expected",
    ),
    "fractions": ({"id": "0", "spans": [[0.5, 1, 2]]}, "has no whole numbers for start and end"),
    "spans of text": ({"id": "0", "spans": "x"}, r"\[\[start, end, score\], …\] is expected"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_line_that_is_wrong_is_named(tmp_path, case):
    line, message = BAD[case]
    with pytest.raises(DataError, match=message):
        results(written(tmp_path / "bad.jsonl", [line]))


def test_other_files_are_refused(tmp_path):
    (tmp_path / "x.txt").write_text("a b")
    with pytest.raises(DataError, match=r"x\.txt is in no known format\. Known: captum, eraser, ferret, inseq"):
        results(tmp_path / "x.txt")
    with pytest.raises(DataError, match="the attribution 'mine' is 'nowhere.jsonl', and there is no such file"):
        results("nowhere.jsonl")
    with pytest.raises(DataError, match="holds no explanations"):
        results(written(tmp_path / "empty.jsonl", []))
    (tmp_path / "half.jsonl").write_text('{"id": ')
    with pytest.raises(DataError, match=r"half\.jsonl, line 1: not JSON"):
        results(tmp_path / "half.jsonl")


def test_examples_without_an_explanation_and_explained_twice_are_named(tmp_path):
    lines = list(rows("tokens"))
    with pytest.raises(DataError, match="has no explanation of example 'demo-06'; it has 11, of demo-01, demo-02, "):
        results(written(tmp_path / "less.jsonl", lines[:5] + lines[6:]))
    with pytest.raises(
        DataError, match="explanation 12: a second one of example 'demo-04'; one per example is expected"
    ):
        results(written(tmp_path / "more.jsonl", [*lines, lines[3]]))


def test_explanations_of_other_texts_are_counted_and_a_file_of_nothing_else_is_refused(tmp_path):
    others = [{"id": "who", "spans": [[0, 1, 1]]}, {"text": "nobody wrote this", "words": ["nobody"], "scores": [1]}]
    path = written(tmp_path / "more.jsonl", [*rows("tokens"), *others])
    run = ice_eval.evaluate("toy", TASK, attributions={"mine": path}, operators=["delete"], n=10, m=5)
    [said] = run.folder.manifest().messages
    assert said.startswith("the attribution 'mine': 2 of 14 explanations belong to none of the 64 examples")
    message = "none of its 2 explanations belongs to an example. Theirs: 'who', nobody wrote this…; ours: 'demo-01'"
    with pytest.raises(DataError, match=message):
        results(written(tmp_path / "others.jsonl", others))


def test_a_mismatch_stops_a_run_before_anything_is_written(tmp_path):
    lines = list(rows("tokens"))
    lines[2]["tokens"][0] = "Ġother"
    path = written(tmp_path / "mine.jsonl", lines)
    with pytest.raises(ConfigError, match="example 'demo-03': the tokens do not spell the text.\ntheirs: »Ġother«"):
        ice_eval.evaluate("toy", TASK, attributions={"mine": path}, n=12, m=5, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_what_was_cut_is_said(tmp_path):
    lines = [{**line, "tokens": line["tokens"][:-3], "scores": line["scores"][:-3]} for line in rows("tokens")]
    path = written(tmp_path / "mine.jsonl", lines)
    run = ice_eval.evaluate("toy", TASK, attributions={"mine": path}, operators=["delete"], n=12, m=5)
    assert "the attribution 'mine' ends before the text in 12 of 12 examples: the rest counts as 0." in (
        run.folder.manifest().messages
    )


def test_classes_are_told_by_name_and_the_one_that_is_explained_is_taken(expected):
    given = {}
    for item in ITEMS:
        both = np.stack([weights(item), -weights(item)], axis=1)
        given[item.example_id] = Explanation(both, tuple(map(TextPart, item.texts)), classes=("Positive", "Negative"))
    asked = {"operators": ["delete"], "n": 12, "m": 20, "target": "gold"}
    run = ice_eval.evaluate(Waves(), TASK, attributions={"mine": given}, **asked).examples()
    fair = ice_eval.evaluate(Waves(), TASK, attributions={"mine": weights}, **asked).examples()
    same = run["win_rate"] == fair["win_rate"]
    assert same.any() and not same.all()  # for texts that are called negative the other column is taken


def test_every_format_has_a_line_and_none_reads_what_is_anothers(tmp_path):
    path = saved_by_inseq(tmp_path / "out.json")
    assert [name for name, known in formats.items() if known().reads(path)] == ["inseq"]
    assert len(list(read(path))) == 12
    for name, known in formats.items():
        assert known.__doc__.strip().partition("\n")[0].endswith("."), name
