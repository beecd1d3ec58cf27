"""What the libraries themselves return for tiny models is read, and lands on the units it belongs to."""

import json
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import transformers
from tests.helpers import save_tiny

import ice_eval
from ice_eval.encoding import encode
from ice_eval.errors import DataError
from ice_eval.interop import align, read
from ice_eval.models import load_model
from ice_eval.tasks import Records, Task

pytestmark = pytest.mark.filterwarnings("ignore")  # of the libraries; ours are checked elsewhere

TEXTS = ["a gorgeous film with a slow start", "the worst cast of the year"]
TASK = Task(
    data=Records([{"text": text} for text in TEXTS]),
    prompt="Review: {text}\nSentiment:",
    label_words={"negative": " negative", "positive": " positive"},
)
PROMPTS = [f"Review: {text}\nSentiment:" for text in TEXTS]


def library(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reason = f"needs {name}: pip install 'ice-eval[interop]'"
        return pytest.importorskip(name, reason=reason, exc_type=ImportError)


def tiny(tmp_path_factory, family):
    folder = tmp_path_factory.mktemp(family)
    save_tiny(folder, family)
    kind = "CausalLM" if family == "gpt2" else "SequenceClassification"
    # Attention is looked at too, so it must be written out.
    loader = getattr(transformers, f"AutoModelFor{kind}")
    model = loader.from_pretrained(folder, attn_implementation="eager").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    if family == "gpt2":
        tokenizer.pad_token = tokenizer.bos_token = tokenizer.eos_token
    return SimpleNamespace(
        folder=folder, model=model, tokenizer=tokenizer, loaded=load_model(str(folder), device="cpu")
    )


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return tiny(tmp_path_factory, "bert")


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    return tiny(tmp_path_factory, "gpt2")


def in_units(tiny, source, *, unit="token"):
    """The explanation of each text in our units."""
    examples = TASK.examples()
    return [
        align(each, encode(tiny.loaded.codec, TASK, example, unit=unit), example.fields).values
        for each, example in zip(read(source), examples, strict=False)
    ]


PAGE = Path(__file__).parents[2] / "docs/bring-your-own.md"
LINES = [line.strip("| ").split(" | ") for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
TABLE = [cells for cells in LINES if len(cells) == 5]
FOUND = {" ".join((name, what)): float(largest) for name, _, what, _, largest in TABLE[1:]}


def agree(row, ours, by_hand):
    """Fail if a unit differs more from scores placed by hand than the page says of this library and object."""
    [documented] = [value for name, value in FOUND.items() if name.startswith(row)]
    pairs = [(np.asarray(a, dtype=float), np.asarray(b, dtype=float)) for a, b in zip(ours, by_hand, strict=True)]
    assert all(a.shape == b.shape and np.abs(a).max() > 0 for a, b in pairs)
    largest = max(np.abs(a - b).max() for a, b in pairs)
    assert largest <= documented, f"{row}: {largest}"


def test_the_page_names_the_versions_that_are_tested():
    pins = (PAGE.parents[1] / "constraints.txt").read_text(encoding="utf-8").splitlines()
    versions = {name: version for name, version, *_ in TABLE[1:] if name != "ferret"}
    assert all(f"{name}=={version}" in pins for name, version in versions.items()) and len(versions) == 6


def explained(tiny, source, **options):
    """Examples with a win rate, of which the first is negative and the second positive; others are skipped."""
    rows = [{"id": f"text {label}", "text": text, "label": label} for label, text in enumerate(TEXTS)]
    given = {"attributions": {"theirs": source}, "operators": ["delete"], "m": 5, "target": "gold"} | options
    run = ice_eval.evaluate((tiny.model, tiny.tokenizer), replace(TASK, data=Records(rows)), **given)
    table = run.examples().set_index("example_id").reindex(columns=["win_rate", "error"])
    skipped = table.error[table.win_rate.isna()]
    reason = "the attribution 'theirs': its explanation is for another class than the explained label"
    assert skipped.tolist() == [reason] * len(skipped)
    said = "explains some labels only in 2 of 2 examples: where the run explains another label, the example is skipped"
    assert any(said in message for message in run.folder.manifest().messages) == bool(len(skipped))
    return table.index[table.win_rate.notna()].tolist()


def probabilities(tiny):
    def of(texts):
        with torch.no_grad():
            batch = tiny.tokenizer([str(text) for text in texts], return_tensors="pt", padding=True)
            return tiny.model(**batch).logits.softmax(-1).numpy()

    return of


def test_shap(bert):
    shap = library("shap")
    masker = shap.maskers.Text(bert.tokenizer)
    found = shap.Explainer(probabilities(bert), masker, output_names=["negative", "positive"])(TEXTS, silent=True)
    for ours, theirs in zip(in_units(bert, found), found.values, strict=True):
        agree("shap", [ours], [theirs[1:-1]])  # without [CLS] and [SEP]
    run = ice_eval.evaluate((bert.model, bert.tokenizer), TASK, attributions={"shap": found}, operators=["delete"], m=5)
    assert run.summary()["n"].tolist() == [2]


def test_shap_of_one_text_and_of_one_class(bert):
    shap = library("shap")
    masker = shap.maskers.Text(r"\W")
    found = shap.Explainer(probabilities(bert), masker, output_names=["negative", "positive"])(TEXTS, silent=True)
    [ours] = in_units(bert, found[0], unit="word")
    agree("shap", [ours], [found[0].values])
    for ours, theirs in zip(in_units(bert, found[:, :, 1], unit="word"), found.values, strict=True):
        agree("shap", [ours], [np.asarray(theirs)[:, 1]])


def test_a_slice_of_shap_is_used_for_the_class_that_it_names(bert):
    shap = library("shap")
    masker = shap.maskers.Text(bert.tokenizer)
    found = shap.Explainer(probabilities(bert), masker, output_names=["negative", "positive"])(
        TEXTS, silent=True, max_evals=30
    )
    assert explained(bert, found) == ["text 0", "text 1"]
    assert explained(bert, found[:, :, "positive"]) == explained(bert, found[:, :, 1]) == ["text 1"]
    assert explained(bert, found[:, :, 0]) == ["text 0"]
    unnamed = shap.Explainer(probabilities(bert), masker)(TEXTS, silent=True, max_evals=30)
    assert explained(bert, unnamed) == ["text 0", "text 1"]
    assert explained(bert, unnamed[:, :, 1]) == ["text 1"]
    found.output_names = ["bad", "good"]
    with pytest.raises(DataError, match="the explained classes are good, and the labels are negative, positive"):
        explained(bert, found[:, :, 1])


def test_shap_of_a_text_pipeline_and_as_a_dictionary(bert, tmp_path):
    shap = library("shap")
    pipeline = transformers.pipeline("text-classification", bert.model, tokenizer=bert.tokenizer, top_k=None)
    found = shap.Explainer(pipeline)(TEXTS, silent=True, max_evals=30)
    names = list(found.output_names)
    assert sorted(names) == sorted(bert.model.config.id2label.values())
    expected = in_units(bert, found)
    for ours, theirs in zip(expected, found.values, strict=True):
        agree("shap", [ours], [theirs[1:-1]])
    assert explained(bert, found) == ["text 0", "text 1"]
    assert explained(bert, found[:, :, names.index(bert.model.config.id2label[1])]) == ["text 1"]
    by_id = {f"text {place}": found[place] for place in (1, 0)}
    assert explained(bert, by_id) == ["text 0", "text 1"]
    saved = {"values": [v.tolist() for v in found.values], "data": [list(d) for d in found.data], "output_names": names}
    (tmp_path / "shap.json").write_text(json.dumps(saved))
    for source in (saved, tmp_path / "shap.json"):
        for ours, theirs in zip(in_units(bert, source), expected, strict=True):
            agree("shap", [ours], [theirs])
        assert explained(bert, source) == ["text 0", "text 1"]


def words_of_lime(tiny, **options):
    lime_text = library("lime.lime_text")
    explainer = lime_text.LimeTextExplainer(random_state=0, **options.pop("explainer", {}))
    return [explainer.explain_instance(text, probabilities(tiny), num_samples=50, **options) for text in TEXTS]


@pytest.mark.parametrize("bow", [True, False])
def test_lime_lands_on_every_occurrence_of_a_word(bert, bow):
    found = words_of_lime(bert, explainer={"bow": bow})
    for text, ours, theirs in zip(TEXTS, in_units(bert, found, unit="word"), found, strict=True):
        words = list(dict.fromkeys(text.split())) if bow else text.split()  # what LIME numbers
        by_hand = dict(theirs.as_map()[1])
        expected = [by_hand[words.index(word) if bow else place] for place, word in enumerate(text.split())]
        agree("lime", [ours[:, 0]], [expected])


def test_lime_is_used_for_the_classes_that_it_explains(bert, tmp_path):
    both = words_of_lime(bert, labels=(0, 1))
    assert explained(bert, both) == ["text 0", "text 1"]
    assert explained(bert, words_of_lime(bert)) == ["text 1"]  # LIME explains class 1 unless it is asked otherwise
    assert explained(bert, words_of_lime(bert, explainer={"class_names": ["positive", "negative"]})) == ["text 0"]
    lists = [each.as_list(label=0) for each in both]
    (tmp_path / "lists.json").write_text(json.dumps(lists))
    (tmp_path / "by_id.json").write_text(json.dumps({f"text {place}": lists[place] for place in (1, 0)}))
    rows = [{"text": text, "weights": dict(each)} for text, each in zip(TEXTS, lists, strict=True)]
    (tmp_path / "bags.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    expected = [values[:, 0].tolist() for values in in_units(bert, both)]
    for source in (lists, rows, tmp_path / "lists.json", tmp_path / "bags.jsonl"):
        assert [values.tolist() for values in in_units(bert, source)] == expected
        assert explained(bert, source) == ["text 0", "text 1"]
    assert explained(bert, tmp_path / "by_id.json") == ["text 0", "text 1"]
    with pytest.raises(DataError, match="give LIME's `Explanation` itself: `as_map` has positions"):
        explained(bert, [each.as_map() for each in both])


def test_transformers_interpret(bert):
    package = library("transformers_interpret")
    explainer = package.SequenceClassificationExplainer(bert.model, bert.tokenizer)
    found = [explainer(text, n_steps=5) for text in TEXTS]
    for ours, theirs in zip(in_units(bert, found), found, strict=True):
        assert [word for word, _ in theirs][:: len(theirs) - 1] == ["[CLS]", "[SEP]"]
        agree("transformers-interpret", [ours], [[score for _, score in theirs[1:-1]]])
    assert explained(bert, found) == ["text 0", "text 1"]


def test_captum_tensors(bert):
    attr = library("captum.attr")
    method = attr.LayerIntegratedGradients(lambda ids: bert.model(ids).logits, bert.model.bert.embeddings)
    found = [method.attribute(bert.tokenizer(text, return_tensors="pt")["input_ids"], target=1) for text in TEXTS]
    for text, tensor in enumerate(found):
        ours = in_units(bert, [tensor] if text == 0 else [found[0], tensor])[text]
        agree("captum tensor", [ours], [tensor.double().sum(-1)[0, 1:-1].detach().numpy()])
    run = ice_eval.evaluate((bert.model, bert.tokenizer), TASK, attributions={"ig": found}, operators=["delete"], m=5)
    assert run.summary()["n"].tolist() == [2]


def test_captum_padded_batches_and_arrays_with_special_tokens(bert):
    attr = library("captum.attr")
    batch = bert.tokenizer(TEXTS, return_tensors="pt", padding=True)
    method = attr.LayerIntegratedGradients(
        lambda ids, mask: bert.model(ids, attention_mask=mask).logits, bert.model.bert.embeddings
    )
    found = method.attribute(batch["input_ids"], target=1, additional_forward_args=(batch["attention_mask"],))
    lengths = batch["attention_mask"].sum(1).tolist()
    assert len(set(lengths)) == 2
    summed = found.detach().double().sum(-1).numpy()
    expected = [
        row[1 : length - 1] for row, length in zip(found.double().sum(-1).detach().numpy(), lengths, strict=True)
    ]
    for source in (found, found.detach().double().sum(-1).numpy(), found.detach().double().flip(0).sum(-1).flip(0)):
        for ours, theirs in zip(in_units(bert, source), expected, strict=True):
            agree("captum tensor", [ours], [theirs])
    cut = [row[:length] for row, length in zip(summed, lengths, strict=True)]
    for source in (cut, [row[None] for row in cut], summed, dict(zip(("text 0", "text 1"), cut, strict=True))):
        assert explained(bert, source) == ["text 0", "text 1"]


def test_captum_visualization_records(bert):
    attr = library("captum.attr")
    record = attr.visualization.VisualizationDataRecord
    tokens = [bert.tokenizer.convert_ids_to_tokens(bert.tokenizer(text)["input_ids"]) for text in TEXTS]
    scores = [torch.arange(float(len(each))) for each in tokens]

    def records(name):
        pairs = zip(scores, tokens, strict=True)
        return [record(values, 0.9, 1, 1, name, values.sum(), each, 0.0) for values, each in pairs]

    for ours, theirs in zip(in_units(bert, records(1)), scores, strict=True):
        agree("captum `VisualizationDataRecord", [ours], [theirs[1:-1]])
    assert explained(bert, records(1)) == explained(bert, records("positive")) == ["text 1"]
    assert explained(bert, records(torch.tensor(0))) == explained(bert, records(torch.tensor([0]))) == ["text 0"]
    with pytest.raises(DataError, match=r"attr_class is 0\.5; a class is expected, by name or index"):
        explained(bert, records(0.5))
    assert explained(bert, records(None)) == ["text 0", "text 1"]
    with pytest.raises(DataError, match="the explained classes are pos, and the labels are negative, positive"):
        explained(bert, records("pos"))


def test_captum_results_of_language_models(gpt2):
    attr = library("captum.attr")
    method = attr.LLMAttribution(attr.FeatureAblation(gpt2.model), gpt2.tokenizer)
    found = [method.attribute(attr.TextTokenInput(p, gpt2.tokenizer), target=" positive") for p in PROMPTS]
    for ours, theirs in zip(in_units(gpt2, found), found, strict=True):
        first = theirs.input_tokens.index(":") + 1
        last = theirs.input_tokens.index("Ċ")
        agree("captum `LLMAttributionResult", [ours], [theirs.seq_attr[first:last].numpy()])


@pytest.mark.parametrize("method", ["saliency", "attention"])
def test_a_file_of_inseq(gpt2, tmp_path, method):
    inseq = library("inseq")
    model = inseq.load_model(gpt2.model, method, tokenizer=gpt2.tokenizer)
    out = model.attribute(PROMPTS, [f"{p} positive" for p in PROMPTS], show_progress=False)
    out.save(tmp_path / "out.json")
    for place, ours in enumerate(in_units(gpt2, tmp_path / "out.json")):
        theirs = out.sequence_attributions[place]
        scores = theirs.target_attributions.numpy()
        steps = np.linalg.norm(scores, axis=-1) if method == "saliency" else scores.mean(axis=(2, 3))
        tokens = [each.token for each in theirs.target]
        first, last = tokens.index(":") + 1, tokens.index("Ċ")
        agree("inseq", [ours], [steps[first:last].sum(axis=1)])


@pytest.mark.parametrize("precision", ["float32", "float16", "float8"])
def test_inseq_in_memory_and_in_every_file_it_saves(gpt2, tmp_path, precision):
    inseq = library("inseq")
    model = inseq.load_model(gpt2.model, "input_x_gradient", tokenizer=gpt2.tokenizer)
    out = model.attribute(PROMPTS, [f"{p} positive" for p in PROMPTS], show_progress=False)
    joined = out.aggregate("sum")
    for each, name in ((out, "out.json"), (joined, "joined.json.gz")):
        compress = name.endswith("gz")
        each.save(tmp_path / name, compress=compress, scores_precision=precision)
        loaded = inseq.FeatureAttributionOutput.load(tmp_path / name, decompress=compress)
        for read_back, theirs in zip(in_units(gpt2, tmp_path / name), in_units(gpt2, loaded), strict=True):
            np.testing.assert_allclose(read_back, theirs, rtol=1e-5)
        np.testing.assert_array_equal(in_units(gpt2, each[0])[0], in_units(gpt2, each)[0])
    theirs = joined[0]
    tokens = [each.token for each in theirs.target]
    first, last = tokens.index(":") + 1, tokens.index("Ċ")
    expected = theirs.target_attributions.numpy()[first:last].sum(axis=1)
    agree("inseq", [in_units(gpt2, joined)[0]], [expected])
    assert (expected < 0).any()


@pytest.mark.parametrize(("method", "ours"), [("saliency", "gradient"), ("input_x_gradient", "input-x-gradient")])
def test_inseq_of_the_labels_log_odds_takes_the_rationales_of_our_own(gpt2, method, ours):
    """One label's logit less the other's is what we explain; a width that is summed keeps its sign."""
    inseq = library("inseq")
    model = inseq.load_model(gpt2.model, method, tokenizer=gpt2.tokenizer)
    sequences = []
    for prompt in PROMPTS:
        answers = [f"{prompt}y", f"{prompt}n"]  # one token each
        asked = {"attributed_fn": "contrast_logits_diff", "contrast_targets": answers[1], "show_progress": False}
        out = model.attribute(prompt, answers[0], **asked)
        sequences.append(out.aggregate("sum") if method == "input_x_gradient" else out)
    rows = Records([{"text": text, "label": "yes"} for text in TEXTS])
    task = replace(TASK, data=rows, label_words={"no": "n", "yes": "y"})
    given = {"attributions": {ours: None, "inseq": sequences}, "operators": ["delete"], "m": 5, "target": "gold"}
    found = ice_eval.evaluate((gpt2.model, gpt2.tokenizer), task, **given).examples().set_index("attribution").rationale
    assert found["inseq"].tolist() == found[ours].tolist()


def test_interpreto(bert):
    interpreto = library("interpreto")
    for granularity, unit in ((interpreto.Granularity.TOKEN, "token"), (interpreto.Granularity.WORD, "word")):
        found = interpreto.Occlusion(bert.model, bert.tokenizer, granularity=granularity)(TEXTS)
        for ours, theirs in zip(in_units(bert, found, unit=unit), found, strict=True):
            agree("interpreto", [ours], [theirs.attributions[0].numpy()])


def test_interpreto_for_all_classes_and_for_one(bert):
    interpreto = library("interpreto")
    found = interpreto.Occlusion(bert.model, bert.tokenizer)(TEXTS, torch.tensor([[1, 0], [1, 0]]))
    for ours, theirs in zip(in_units(bert, found, unit="word"), found, strict=True):
        agree("interpreto", [ours], [theirs.attributions.numpy().T])
    assert [each.classes for each in read(found)] == [(1, 0), (1, 0)]
    assert explained(bert, found) == ["text 0", "text 1"]
    assert explained(bert, interpreto.Occlusion(bert.model, bert.tokenizer)(TEXTS, torch.tensor([1, 1]))) == ["text 1"]


def test_interpreto_for_generated_text(gpt2):
    interpreto = library("interpreto")
    found = interpreto.Occlusion(gpt2.model, gpt2.tokenizer, granularity=interpreto.Granularity.WORD)(
        PROMPTS, [" positive"] * 2
    )
    for ours, theirs in zip(in_units(gpt2, found, unit="word"), found, strict=True):
        first, last = theirs.elements.index(":") + 1, theirs.elements.index("\n")
        agree("interpreto", [ours], [np.nansum(theirs.attributions.numpy(), axis=0)[first:last]])


def test_ferret_as_its_documentation_describes_it(bert):
    """ferret 0.4 needs transformers < 5 and cannot be installed beside ours: its dataclass is built by hand."""
    kind = type("Explanation", (SimpleNamespace,), {"__module__": "ferret.explainers.explanation"})
    tokens = [bert.tokenizer.convert_ids_to_tokens(bert.tokenizer(text)["input_ids"]) for text in TEXTS]
    found = [
        kind(text=text, tokens=each, scores=np.arange(float(len(each))), explainer="LIME", target=1)
        for text, each in zip(TEXTS, tokens, strict=True)
    ]
    for ours, each in zip(in_units(bert, found), tokens, strict=True):
        agree("ferret", [ours], [range(1, len(each) - 1)])
    given = {"attributions": {"ferret": found[::-1]}, "operators": ["delete"], "m": 5}
    assert ice_eval.evaluate((bert.model, bert.tokenizer), TASK, **given).summary()["n"].tolist() == [2]
