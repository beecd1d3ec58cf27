"""The tests of a run on a copy of its model that was adapted to inputs with units removed."""

import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import transformers
from scipy.special import log_softmax
from tests.helpers import save_tiny
from tests.results.test_schemas import assert_conforms
from tests.rows import join, ledger_rows
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

import ice_eval
from ice_eval.analysis.checks import answered
from ice_eval.encoding import encode
from ice_eval.errors import ConfigError
from ice_eval.f_fidelity import Removal, Training, TrainingExample, adapt, f_fidelity, trainable
from ice_eval.models import load_model
from ice_eval.operators import operators
from ice_eval.pipeline import Silent
from ice_eval.records import Kind
from ice_eval.results import RunFolder
from ice_eval.tasks import Records, Task, load_task

FAST = {"epochs": 10, "lr": 2e-3, "batch_size": 8}
SETTINGS = {
    "attributions": ["attention", "rarest-tokens", "occlusion", "random"],
    "operators": ["delete", "infill"],
    "directions": ["sufficiency", "necessity"],
    "n": 12,
    "m": 5,
    "sign": "abs",  # ranks occlusion by magnitude, and rarest-tokens, whose numbers are negative, as it is
}


SPECIAL = {
    name: f"[{name[:-6].upper()}]" for name in ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
}
TELLING = (["dull", "slow", "boring"], ["warm", "great", "fun"])
PLAIN = ["film", "the", "plot", "cast"]


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """A tiny encoder with a token for every word of the task."""
    folder = tmp_path_factory.mktemp("models") / "bert"
    words = [*SPECIAL.values(), *TELLING[0], *TELLING[1], *PLAIN, "negative", "positive"]
    tokenizer = Tokenizer(WordPiece({word: place for place, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(name, words.index(name)) for name in ("[CLS]", "[SEP]")]
    )
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **SPECIAL).save_pretrained(folder)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    labels = {"id2label": {0: "negative", 1: "positive"}, "label2id": {"negative": 0, "positive": 1}}
    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=len(words), max_position_embeddings=32, **sizes, **labels)
    model = transformers.BertForSequenceClassification(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4)  # random initial weights are so small that every input gets the same answer
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def task():
    """Texts whose words tell their label, so that a small model can learn it; the second has one unit."""
    rng, rows = np.random.default_rng(0), []
    for label in [0, 1] * 24:
        words = [*rng.choice(TELLING[label], 7), *rng.choice(PLAIN, 2)]
        rows.append({"text": " ".join(rng.permutation(words)), "label": label})
    rows.insert(1, {"text": "film", "label": 0})
    return Task(data=Records(rows), prompt="{text}", label_words={"negative": " negative", "positive": " positive"})


@pytest.fixture(scope="module")
def model(bert):
    return load_model(str(bert), device="cpu")


@pytest.fixture(scope="module")
def deployed(model, task, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "deployed"
    return ice_eval.evaluate(model, task, out=folder, **SETTINGS).folder


@pytest.fixture(scope="module")
def adapted(model, task, deployed):
    return f_fidelity(deployed, model=model, task=task, out=deployed.path.parent / "adapted", training=FAST)


def inputs_of(folder):
    return [row for part in folder.parts() for row in folder.inputs(part)]


def rows_of(folder):
    return ledger_rows(folder, probes=False)


@pytest.fixture(scope="module")
def kinds(deployed, adapted):
    return {(line.operator, line.direction): line for line in answered(deployed, adapted)}


def test_the_copy_learns_to_read_inputs_with_units_removed(kinds):
    removed = {(name, way) for name in ("delete", "infill") for way in ("sufficiency", "necessity")}
    assert set(kinds) == removed | {(None, None)}
    for line in kinds.values():
        assert line.learnt and line.loss_adapted < line.loss_deployed and line.accuracy_adapted > line.accuracy_deployed


def test_accuracy_and_loss_are_those_of_the_ledger(deployed, adapted, kinds):
    gold = {row.example_id: row.gold for row in inputs_of(deployed) if row.skip_reason is None}
    line = kinds["infill", "necessity"]
    for folder, name in ((deployed, "deployed"), (adapted, "adapted")):
        scores = [
            (row.scores, gold[row.key.example_id])
            for row in rows_of(folder)
            if row.key[1:4] == (Kind.RANDOM, "infill", "necessity")
        ]
        assert line.rows == len(scores) > 50
        assert getattr(line, f"accuracy_{name}") == pytest.approx(np.mean([(s[1] > s[0]) == y for s, y in scores]))
        assert getattr(line, f"loss_{name}") == pytest.approx(np.mean([-s[y] for s, y in scores]))
        margins = np.array([(s[1] - s[0]) * (2 * y - 1) for s, y in scores])
        tried = [np.logaddexp(0, -margins / t).mean() for t in np.exp(np.linspace(-6, 9, 4000))]
        assert getattr(line, f"rescaled_{name}") == pytest.approx(min(tried), abs=1e-4)


def test_a_copy_that_is_only_less_sure_has_learnt_nothing(deployed, tmp_path):
    path = tmp_path / "surer"
    shutil.copytree(deployed.path, path)
    (path / "parts.sha256").unlink()  # the files are changed on purpose
    for part in (path / "ledger").glob("*.parquet"):
        table = pq.read_table(part)
        surer = [log_softmax(np.array(scores) * 20).tolist() for scores in table["scores"].to_pylist()]
        place = table.schema.get_field_index("scores")
        column = pa.array(surer, pa.list_(pa.float64()))
        pq.write_table(table.set_column(place, table.schema.field(place), column), part)
    for line in answered(RunFolder(path), deployed):
        assert line.loss_adapted < line.loss_deployed
        assert line.difference == pytest.approx(0, abs=1e-6) and not line.learnt


def test_explanations_and_targets_are_the_deployed_models(deployed, adapted):
    before, after = inputs_of(deployed), inputs_of(adapted)
    assert [(row.example_id, row.attributions, row.target, row.skip_reason) for row in after] == [
        (row.example_id, row.attributions, row.target, row.skip_reason) for row in before
    ]
    assert before[1].skip_reason is not None
    targets = {row.example_id: row.target for row in after}
    answered = {row.key.example_id: int(np.argmax(row.scores)) for row in rows_of(adapted) if row.key.kind == Kind.FULL}
    assert any(answered[each] != targets[each] for each in answered), "the copy should answer otherwise somewhere"


def test_every_row_is_the_same_input_with_another_score(deployed, adapted):
    before = {row.key: row for row in rows_of(deployed)}
    after = {row.key: row for row in rows_of(adapted)}
    assert before.keys() == after.keys()
    assert all((row.kept, row.input_ids) == (after[key].kept, after[key].input_ids) for key, row in before.items())
    assert all(row.scores != after[key].scores for key, row in before.items())


def test_the_deployed_model_is_left_as_it_was(model, deployed, adapted):
    assert model.fingerprint == deployed.manifest().identity["weights"]
    assert model.fingerprint != adapted.manifest().identity["weights"]
    assert not model.model.training and not any(each.requires_grad for each in model.model.parameters())


def test_the_manifest_tells_how_the_copy_came_about(deployed, adapted):
    manifest = adapted.manifest()
    assert_conforms(adapted.path)
    assert manifest.config.model == "bert+f-fidelity"
    assert "adapted_model" in manifest.flags
    found = manifest.adaptation
    assert found.of == "bert" and found.weights == deployed.manifest().identity["weights"]
    assert (found.epochs, found.lr, found.share) == (10, 2e-3, 0.8)  # tests keep a fifth
    assert found.operators == ("delete", "infill") and not found.rows_evaluated
    assert len(found.losses) == 10 and found.losses[-1] < found.losses[0]
    assert found.rows == 49 - len(inputs_of(deployed))
    assert "epochs 10" in manifest.identity["adaptation"]


@pytest.fixture(scope="module")
def lessons(model, task):
    examples = task.examples()[20:40]
    return [TrainingExample(encode(model.codec, task, example), example.gold) for example in examples]


def adapted_once(model, task, lessons, *, seed=0):
    removal = Removal({"delete": operators.get("delete")()}, None, 0.8, seed)
    return adapt(model, model.labels(task), lessons, removal=removal, training=Training(share=0.8, epochs=1, seed=seed))


def test_the_seed_alone_decides_the_copy(model, task, lessons):
    torch.manual_seed(5)
    state = torch.get_rng_state()
    first, losses = adapted_once(model, task, lessons)
    assert torch.equal(torch.get_rng_state(), state), "the caller's random numbers are left alone"
    torch.manual_seed(6)
    again, same = adapted_once(model, task, lessons)
    other, _ = adapted_once(model, task, lessons, seed=1)
    assert (first.fingerprint, losses) == (again.fingerprint, same)
    assert first.fingerprint != other.fingerprint


def test_half_precision_is_trained_in_full_and_comes_back(bert, task, lessons):
    half = load_model(str(bert), device="cpu", dtype="bfloat16")
    copy, _ = adapted_once(half, task, lessons)
    assert copy.dtype == half.dtype == "bfloat16"
    rows = join(lesson.item.full() for lesson in lessons)
    moved = copy.log_scores(rows, copy.labels(task)) - half.log_scores(rows, half.labels(task))
    assert 0 < np.abs(moved).max() < 1


def test_training_removes_from_no_unit_to_as_many_as_the_tests(lessons):
    removal = Removal({"delete": operators.get("delete")()}, None, 0.8, 0)
    item = max((lesson.item for lesson in lessons), key=lambda each: each.n_units)
    lengths = {len(item.ids) - len(removal.from_item(item, epoch).ids) for epoch in range(400)}
    assert lengths == set(range(item.n_units - item.n_units // 5 + 1))


def test_without_other_examples_the_evaluated_ones_are_used_and_that_is_told(model, task, deployed, tmp_path):
    said = []

    class Told(Silent):
        def say(self, message):
            said.append(message)

    few = Task(data=Records(task.data.records[:20]), prompt=task.prompt, label_words=task.label_words)
    settings = {"attributions": ["random"], "operators": ["delete"], "n": 6, "m": 3}
    run = ice_eval.evaluate(model, few, out=tmp_path / "few", **settings).folder
    found = f_fidelity(run, model=model, task=few, out=tmp_path / "out", training={"epochs": 1}, reporter=Told())
    record = found.manifest().adaptation
    assert record.rows_evaluated and record.rows == 19  # one has a single unit
    assert any("trained on those that are evaluated" in message for message in said)


def test_by_default_training_removes_as_much_as_the_tests(model, task, tmp_path):
    settings = {"operators": ["delete"], "n": 4, "m": 3}
    chosen = {"few": {"k": 0.3, "directions": "necessity"}, "many": {"k": [0.1, 0.5]}, "own": {"k": "dynamic"}}
    shares = {}
    for name, changes in chosen.items():
        run = ice_eval.evaluate(model, task, attributions=["random"], out=tmp_path / name, **settings, **changes).folder
        out = tmp_path / f"{name}-adapted"
        found = f_fidelity(run, model=model, task=task, out=out, training={"epochs": 1}).manifest()
        shares[name] = found.adaptation.share
    assert shares == {"few": 0.3, "many": 0.9, "own": 1.0}


def test_what_cannot_be_adapted_is_refused(tmp_path):
    save_tiny(tmp_path / "gpt2", "gpt2")
    for model in ("toy", str(tmp_path / "gpt2"), lambda texts: [[0.5, 0.5]] * len(texts)):
        with pytest.raises(ConfigError, match="cannot be adapted: F-Fidelity fine-tunes a copy of a sequence class"):
            trainable(load_model(model, device="cpu"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"share": 1.5}, "share = 1.5"),
        ({"training": {"epochs": 0}}, "epochs = 0: at least 1"),
        ({"training": {"lr": 0}}, "lr = 0: a learning rate"),
    ],
)
def test_bad_settings_are_refused(model, task, deployed, tmp_path, changes, message):
    with pytest.raises(ConfigError, match=message):
        f_fidelity(deployed, model=model, task=task, out=tmp_path / "out", **changes)
    assert not (tmp_path / "out").exists()


def test_another_model_or_task_than_the_runs_is_refused(bert, model, task, deployed, tmp_path):
    other = load_model(str(bert), device="cpu")
    with torch.no_grad():
        other.model.classifier.bias += 1
    with pytest.raises(ConfigError, match="is a run with other weights: give --model"):
        f_fidelity(deployed, model=other, task=task, out=tmp_path / "out")
    with pytest.raises(ConfigError, match="is a run with other data"):
        f_fidelity(deployed, model=model, task=load_task("demo"), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_folders_that_hold_something_else_are_refused_before_the_training(model, task, deployed, adapted, tmp_path):
    common = {"model": model, "task": task}
    with pytest.raises(ConfigError, match="holds a run of no adapted model, and this one is adapted with epochs 3"):
        f_fidelity(deployed, out=deployed.path, **common)
    with pytest.raises(ConfigError, match="adapted otherwise .epochs 10.*choose another --out"):
        f_fidelity(deployed, out=adapted.path, **common)
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(ConfigError, match="is not a run folder"):
        f_fidelity(deployed, out=tmp_path, **common)
    with pytest.raises(ConfigError, match="choose a --save-model that is empty or new"):
        f_fidelity(deployed, out=tmp_path / "new", save_model=tmp_path, **common)
