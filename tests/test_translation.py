"""The same examples in another language: ids and labels stay, and an interruption changes nothing."""

import json
from dataclasses import replace

import pytest
import torch
import transformers
from tests.helpers import byte_level

from ice_eval.errors import ConfigError, DataError, ModelError
from ice_eval.models import LoadSettings
from ice_eval.models.devices import is_offloaded
from ice_eval.models.generate import Translator
from ice_eval.models.pretrained import load_translator
from ice_eval.tasks import FileData, Records
from ice_eval.translation import PARTIAL, Provenance, translate_file, translated_fields

ROWS = [
    {"text": f"film number {place} is quite {'good' if place % 2 else 'bad'}", "label": place % 2, "words": [0, 2]}
    for place in range(7)
]
HOW = Provenance(model="upper", to="fr", source=None, beams=1, batch=3, fields=("text",))


def upper(texts):
    return [text.upper() for text in texts]


def made(path, rows=ROWS, how=HOW, translate=upper):
    return translate_file(Records(rows), path, how, lambda: translate)


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_ids_and_labels_stay_and_every_line_says_where_it_comes_from(tmp_path):
    found = made(tmp_path / "fr.jsonl")
    assert (found.n, found.n_before, found.dropped) == (7, 0, ("words",))
    for place, line in enumerate(lines(tmp_path / "fr.jsonl")):
        assert (line["id"], line["label"]) == (str(place), place % 2)
        assert (line["text"], line["source"]) == (ROWS[place]["text"].upper(), {"text": ROWS[place]["text"]})
        assert line["translation"] == {
            "model": "upper", "to": "fr", "source": None, "beams": 1, "batch": 3, "fields": ["text"],
        }  # fmt: skip
    examples = FileData(tmp_path / "fr.jsonl").load(["text"], ["negative", "positive"])
    originals = Records(ROWS).load(["text"], ["negative", "positive"])
    assert [(e.id, e.gold) for e in examples] == [(e.id, e.gold) for e in originals]
    assert not (tmp_path / f"fr.jsonl{PARTIAL}").exists()


@pytest.mark.parametrize("left", [b"", b'{"half of a li'])
def test_an_interrupted_translation_goes_on_in_whole_batches(tmp_path, left):
    made(tmp_path / "whole.jsonl")
    seen = []

    def fails(texts):
        if len(seen) == 1:
            raise KeyboardInterrupt
        seen.append(texts)
        return upper(texts)

    path = tmp_path / "fr.jsonl"
    with pytest.raises(KeyboardInterrupt):
        made(path, translate=fails)
    assert not path.exists()
    partial = tmp_path / f"fr.jsonl{PARTIAL}"
    first = partial.read_bytes()
    fourth = (tmp_path / "whole.jsonl").read_bytes().splitlines(keepends=True)[3]
    partial.write_bytes(first + fourth + left)  # as if the kill came while a batch was being written
    asked = []
    found = made(path, translate=lambda texts: asked.append(len(texts)) or upper(texts))
    assert (found.n_before, asked) == (3, [3, 1])
    assert path.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


@pytest.mark.parametrize("change", [{"to": "de"}, {"beams": 4}, {"batch": 2}])
def test_an_interrupted_translation_of_another_kind_is_refused(tmp_path, change):
    made(tmp_path / "fr.jsonl")
    (tmp_path / "fr.jsonl").rename(tmp_path / f"fr.jsonl{PARTIAL}")
    before = (tmp_path / f"fr.jsonl{PARTIAL}").read_bytes()
    with pytest.raises(ConfigError, match=r"fr.jsonl.partial holds another translation; choose another --out"):
        made(tmp_path / "fr.jsonl", how=Provenance(**{**vars(HOW), **change}))
    with pytest.raises(ConfigError, match="holds another translation"):
        made(tmp_path / "fr.jsonl", rows=[{**row, "text": row["text"] + "!"} for row in ROWS])
    assert (tmp_path / f"fr.jsonl{PARTIAL}").read_bytes() == before


def test_files_that_are_there_are_not_touched(tmp_path):
    made(tmp_path / "fr.jsonl")
    with pytest.raises(ConfigError, match="already exists; choose another --out"):
        made(tmp_path / "fr.jsonl")
    with pytest.raises(ConfigError, match="a name that ends in .jsonl is expected"):
        made(tmp_path / "fr.txt")
    with pytest.raises(ConfigError, match="does not exist; create it first"):
        made(tmp_path / "nowhere" / "fr.jsonl")


def test_which_fields_hold_text():
    pair = Records([{"id": "a", "premise": "x", "hypothesis": "y", "label": "neutral", "highlights": [1]}])
    assert translated_fields(pair, None) == ("premise", "hypothesis")
    assert translated_fields(pair, ["hypothesis"]) == ("hypothesis",)
    with pytest.raises(DataError, match="no text in 'text'; its fields are id, premise"):
        translated_fields(pair, ["text"])
    with pytest.raises(DataError, match="holds no examples"):
        translated_fields(Records([]), None)


def test_a_row_without_text_is_named(tmp_path):
    with pytest.raises(DataError, match="example 7: the field 'text' holds no text"):
        made(tmp_path / "fr.jsonl", rows=[*ROWS, {"text": None}])
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def marian(tmp_path_factory):
    """A folder with a tiny random Marian model and a tokenizer that knows >>fra<< and fra_Latn."""
    tokenizer = byte_level()
    tokenizer.add_special_tokens({"pad_token": "<pad>", "additional_special_tokens": [">>fra<<", "fra_Latn"]})
    torch.manual_seed(0)
    config = transformers.MarianConfig(
        vocab_size=len(tokenizer), d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=64,
        pad_token_id=tokenizer.pad_token_id, decoder_start_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id, forced_eos_token_id=None, init_std=1.0,
    )  # fmt: skip
    path = tmp_path_factory.mktemp("marian")
    transformers.MarianMTModel(config).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def loaded(path, target, *, beams=1, **how):
    how = LoadSettings(**{"device": "cpu", "dtype": "float32"} | how)
    return load_translator(str(path), source=None, target=target, beams=beams, settings=how)


@pytest.mark.parametrize("beams", [1, 3])
def test_texts_of_a_batch_are_translated_as_each_alone_by_the_model_itself(marian, beams):
    texts = [row["text"] for row in ROWS[:3]] + ["short"]
    model = transformers.MarianMTModel.from_pretrained(marian)
    tokenizer = transformers.AutoTokenizer.from_pretrained(marian)
    found = loaded(marian, "fr", beams=beams).translate(texts)
    longest = max(len(tokenizer(text)["input_ids"]) for text in texts)
    for text, translation in zip(texts, found, strict=True):
        ids = tokenizer(text, return_tensors="pt")["input_ids"]
        written = model.generate(ids, num_beams=beams, do_sample=False, max_new_tokens=min(2 * longest + 20, 63))
        assert translation == tokenizer.decode(written[0], skip_special_tokens=True).strip()
    assert len(set(found)) > 1
    assert loaded(marian, "fr", beams=beams).translate(texts) == found


def test_the_language_is_asked_for_as_the_model_wants_it(marian):
    plain, before, begins = (loaded(marian, target) for target in ("fr", "fra", "fra_Latn"))
    assert (plain._begin, plain._before) == (None, "")
    assert (before._begin, before._before) == (None, ">>fra<< ")
    assert begins._before == "" and begins._begin == begins._tokenizer.convert_tokens_to_ids("fra_Latn")
    text = [ROWS[0]["text"]]
    assert len({each.translate(text)[0] for each in (plain, before, begins)}) == 3


def test_languages_that_a_model_of_many_does_not_know_are_refused(marian):
    model = transformers.MarianMTModel.from_pretrained(marian)
    model.config.model_type = "m2m_100"
    tokenizer = transformers.AutoTokenizer.from_pretrained(marian)
    with pytest.raises(ConfigError, match="does not know the language 'xx_Yyyy'"):
        Translator(model, tokenizer, source=None, target="xx_Yyyy", beams=1)
    tokenizer.src_lang = "eng_Latn"
    with pytest.raises(ConfigError, match="does not know the language 'zz' of --from"):
        Translator(model, tokenizer, source="zz", target="fra_Latn", beams=1)


def test_texts_that_do_not_fit_are_refused(marian):
    with pytest.raises(ModelError, match=r"a text has \d+ tokens, and the model reads 64"):
        loaded(marian, "fr").translate(["word " * 80])


@pytest.fixture(scope="module")
def m2m(tmp_path_factory):
    """A folder with a tiny random model of NLLB's kind."""
    tokenizer = byte_level()
    tokenizer.add_special_tokens({"pad_token": "<pad>", "additional_special_tokens": ["fra_Latn"]})
    torch.manual_seed(0)
    config = transformers.M2M100Config(
        vocab_size=len(tokenizer), d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=1024,
        pad_token_id=tokenizer.pad_token_id, decoder_start_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id, forced_eos_token_id=None, init_std=1.0,
    )  # fmt: skip
    path = tmp_path_factory.mktemp("m2m")
    transformers.M2M100ForConditionalGeneration(config).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def test_a_model_that_waits_on_disk_translates_the_same(m2m):
    texts = [row["text"] for row in ROWS[:2]]
    spread = loaded(m2m, "fra_Latn", device="auto", device_map={"model": "disk", "lm_head": "disk"})
    assert is_offloaded(spread._model)
    assert spread.translate(texts) == loaded(m2m, "fra_Latn").translate(texts)


def test_weights_that_a_map_loses_on_disk_are_named(m2m):
    places = {"model.shared": "cpu", "model.encoder": "disk", "model.decoder": "cpu", "lm_head": "cpu"}
    with pytest.raises(ConfigError, match="cannot be placed as --device-map says: model.encoder.embed_tokens.weight"):
        loaded(m2m, "fra_Latn", device="auto", device_map=places).translate(["one"])


def test_lines_name_the_quantisation_and_another_one_does_not_continue_them(tmp_path):
    made(tmp_path / "fr.jsonl", how=replace(HOW, load_in="4bit"))
    assert {line["translation"]["load_in"] for line in lines(tmp_path / "fr.jsonl")} == {"4bit"}
    assert "load_in" not in HOW.as_dict()
    (tmp_path / "fr.jsonl").rename(tmp_path / f"de.jsonl{PARTIAL}")
    with pytest.raises(ConfigError, match="holds another translation"):
        made(tmp_path / "de.jsonl")


def test_models_that_do_not_translate_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    transformers.GPT2Config().save_pretrained(tmp_path)
    with pytest.raises(ConfigError, match="is a gpt2; a translation model is needed"):
        loaded(tmp_path, "fr")
    with pytest.raises(ConfigError, match="no model 'nobody/nothing': it is not a folder"):
        loaded("nobody/nothing", "fr")
