"""What the libraries themselves return for tiny models is read, and lands on the units it belongs to."""

import warnings
from dataclasses import replace
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
        np.testing.assert_allclose(ours, theirs[1:-1])  # without [CLS] and [SEP]
    run = ice_eval.evaluate((bert.model, bert.tokenizer), TASK, attributions={"shap": found}, operators=["delete"], m=5)
    assert run.summary()["n"].tolist() == [2]


def test_shap_of_one_text_and_of_one_class(bert):
    shap = library("shap")
    masker = shap.maskers.Text(r"\W")
    found = shap.Explainer(probabilities(bert), masker, output_names=["negative", "positive"])(TEXTS, silent=True)
    [ours] = in_units(bert, found[0], unit="word")
    np.testing.assert_allclose(ours, found[0].values)
    for ours, theirs in zip(in_units(bert, found[:, :, 1], unit="word"), found.values, strict=True):
        np.testing.assert_allclose(ours, np.asarray(theirs)[:, 1])


def test_captum_tensors(bert):
    attr = library("captum.attr")
    method = attr.LayerIntegratedGradients(lambda ids: bert.model(ids).logits, bert.model.bert.embeddings)
    found = [method.attribute(bert.tokenizer(text, return_tensors="pt")["input_ids"], target=1) for text in TEXTS]
    for text, tensor in enumerate(found):
        ours = in_units(bert, [tensor] if text == 0 else [found[0], tensor])[text]
        np.testing.assert_allclose(ours, tensor.double().sum(-1)[0, 1:-1].detach().numpy())
    run = ice_eval.evaluate((bert.model, bert.tokenizer), TASK, attributions={"ig": found}, operators=["delete"], m=5)
    assert run.summary()["n"].tolist() == [2]


def test_captum_results_of_language_models(gpt2):
    attr = library("captum.attr")
    method = attr.LLMAttribution(attr.FeatureAblation(gpt2.model), gpt2.tokenizer)
    found = [method.attribute(attr.TextTokenInput(p, gpt2.tokenizer), target=" positive") for p in PROMPTS]
    for ours, theirs in zip(in_units(gpt2, found), found, strict=True):
        first = theirs.input_tokens.index(":") + 1
        last = theirs.input_tokens.index("Ċ")
        np.testing.assert_allclose(ours, theirs.seq_attr[first:last].numpy())


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
        np.testing.assert_allclose(ours, steps[first:last].sum(axis=1), rtol=1e-5)


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
    np.testing.assert_allclose(in_units(gpt2, joined)[0], expected, rtol=1e-5)
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
            np.testing.assert_allclose(ours, theirs.attributions[0].numpy())


def test_interpreto_for_all_classes(bert):
    interpreto = library("interpreto")
    found = interpreto.Occlusion(bert.model, bert.tokenizer)(TEXTS, torch.tensor([[1, 0], [1, 0]]))
    for ours, theirs in zip(in_units(bert, found, unit="word"), found, strict=True):
        np.testing.assert_allclose(ours, theirs.attributions.numpy()[::-1].T)
    found[0].targets = torch.tensor([1, 3])
    with pytest.raises(DataError, match="an AttributionOutput of the classes 1, 3; one class is expected, or all"):
        list(read(found[0]))


def test_interpreto_for_generated_text(gpt2):
    interpreto = library("interpreto")
    found = interpreto.Occlusion(gpt2.model, gpt2.tokenizer, granularity=interpreto.Granularity.WORD)(
        PROMPTS, [" positive"] * 2
    )
    for ours, theirs in zip(in_units(gpt2, found, unit="word"), found, strict=True):
        first, last = theirs.elements.index(":") + 1, theirs.elements.index("\n")
        np.testing.assert_allclose(ours, np.nansum(theirs.attributions.numpy(), axis=0)[first:last])


def test_ferret_as_its_documentation_describes_it(bert):
    """ferret 0.4 needs transformers < 5 and cannot be installed beside ours: its dataclass is built by hand."""
    kind = type("Explanation", (SimpleNamespace,), {"__module__": "ferret.explainers.explanation"})
    tokens = [bert.tokenizer.convert_ids_to_tokens(bert.tokenizer(text)["input_ids"]) for text in TEXTS]
    found = [
        kind(text=text, tokens=each, scores=np.arange(float(len(each))), explainer="LIME", target=1)
        for text, each in zip(TEXTS, tokens, strict=True)
    ]
    for ours, each in zip(in_units(bert, found), tokens, strict=True):
        assert ours.tolist() == list(range(1, len(each) - 1))
    given = {"attributions": {"ferret": found[::-1]}, "operators": ["delete"], "m": 5}
    assert ice_eval.evaluate((bert.model, bert.tokenizer), TASK, **given).summary()["n"].tolist() == [2]
