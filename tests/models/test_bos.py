"""The token that a text begins with: there when the model was trained with it, and there once."""

import json
import shutil
from dataclasses import replace

import pytest
from tests.rows import ledger_rows
from tests.small_tokenizers import SlowPieces, byte_level, sentence_piece

import ice_eval as ice
from ice_eval.encoding import encode
from ice_eval.models import load_model
from ice_eval.models.codec import HFCodec
from ice_eval.models.pretrained import wrap
from ice_eval.records import PROTECTED

WRITES_BOS = "{{ bos_token }}{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}<assistant>"
WRITES_NONE = WRITES_BOS.removeprefix("{{ bos_token }}")
SPELLS_IT_OUT = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}{% endfor %}<|im_start|>assistant\n"
)
FAILS = "{{ raise_exception('only with tools') }}"


def codec_of(tokenizer, family="", **changes):
    return HFCodec(tokenizer, **{"reads_pairs": False, "max_tokens": 1000, "family": family} | changes)


def begins(codec, text="the film", **how):
    """How often the text begins with BOS."""
    ids, bos = codec.tokenize(text, **how).ids.tolist(), codec.tokenizer.bos_token_id
    return next(place for place, i in enumerate([*ids, None]) if i != bos)


@pytest.mark.parametrize("family", ["gemma", "gemma2", "gemma3", "gemma3_text", "recurrent_gemma"])
@pytest.mark.parametrize("names", [{}, {"add_bos_token": False}])
def test_gemma_always_begins_with_bos(family, names):
    codec = codec_of(sentence_piece("bpe", bos_token="<bos>", **names), family)
    assert begins(codec) == 1
    assert "adds no <bos> before a text; ICE adds it, because texts of" in codec.notes[0]


@pytest.mark.parametrize(
    ("family", "token"),
    [
        ("llama", "<s>"), ("llama", "<|begin_of_text|>"), ("mistral", "<s>"), ("mixtral", "<s>"),
        ("lfm2", "<|startoftext|>"), ("cohere", "<BOS_TOKEN>"), ("deepseek_v3", "<｜begin▁of▁sentence｜>"),
    ],
)  # fmt: skip
def test_a_silent_file_of_a_family_with_bos_gets_it(family, token):
    assert begins(codec_of(byte_level(bos_token=token), family)) == 1
    said_no = byte_level(bos_token=token)
    said_no.init_kwargs["add_bos_token"] = False
    assert begins(codec_of(said_no, family)) == 0


@pytest.mark.parametrize(
    ("family", "bos", "eos"),
    [
        ("gpt2", "<|endoftext|>", "<|endoftext|>"), ("gpt_neox", "<|endoftext|>", "<|endoftext|>"),
        ("qwen2", None, "<|im_end|>"), ("phi", "<|endoftext|>", "<|endoftext|>"), ("phi3", "<s>", "<|endoftext|>"),
        ("bloom", "<s>", "</s>"), ("llama", "<|im_start|>", "<|im_end|>"), ("llama", "<s>", "<s>"), ("", "<s>", "</s>"),
    ],
)  # fmt: skip
def test_other_families_and_tokens_get_none(family, bos, eos):
    codec = codec_of(byte_level(bos_token=bos, eos_token=eos), family)
    assert codec.tokenize("the film").sequence.tolist()[0] == 0
    assert codec.notes == []


@pytest.mark.parametrize("family", ["gemma3", "llama", "gpt2"])
def test_a_tokenizer_that_adds_its_own_is_left_alone(family):
    codec = codec_of(byte_level(bos_token="<s>", add_bos_token=True, chat_template=WRITES_BOS), family)
    assert begins(codec) == 1
    assert codec.notes == []


def test_a_tokenizer_that_begins_with_another_token_is_left_alone():
    # OPT begins with its end token.
    tokenizer = byte_level(bos_token="</s>", eos_token="</s>", add_bos_token=True)
    codec = codec_of(tokenizer, "opt")
    assert codec.tokenize("the film").ids.tolist().count(tokenizer.eos_token_id) == 1


@pytest.mark.parametrize(
    ("template", "expected"), [(WRITES_BOS, 1), (WRITES_NONE, 0), (SPELLS_IT_OUT, 0), (FAILS, 0), (None, 0)]
)
def test_a_template_that_begins_with_bos_says_that_texts_do(template, expected):
    tokenizer = byte_level(bos_token="<|im_start|>", chat_template=template)
    assert begins(codec_of(tokenizer, "llama")) == expected


@pytest.mark.parametrize("template", [WRITES_BOS, "\n " + WRITES_BOS, WRITES_NONE])
@pytest.mark.parametrize("own", [True, False])
def test_a_chat_begins_with_bos_once_whoever_writes_it(reviews, template, own):
    codec = codec_of(byte_level(bos_token="<s>", add_bos_token=own, chat_template=template), "gemma2")
    task = replace(reviews, chat=True)
    ids = encode(codec, task, task.examples()[0]).ids.tolist()
    assert ids.count(codec.tokenizer.bos_token_id) == 1


def test_a_chat_is_what_its_template_writes_where_plain_texts_get_bos(reviews):
    codec = codec_of(byte_level(bos_token="<s>", add_bos_token=True, chat_template=WRITES_NONE), "llama")
    task = replace(reviews, chat=True)
    assert begins(codec) == 1
    assert codec.tokenizer.bos_token_id not in encode(codec, task, task.examples()[0]).ids


def test_a_chat_of_a_model_without_bos_gets_none(reviews):
    codec = codec_of(byte_level(bos_token="<|im_start|>", chat_template=SPELLS_IT_OUT), "llama")
    task = replace(reviews, chat=True, shots=())
    ids = encode(codec, task, task.examples()[0]).ids.tolist()
    assert ids.count(codec.tokenizer.bos_token_id) == 2  # those that the template spells out


def test_bos_is_protected_and_counts_for_the_window(reviews):
    codec = codec_of(byte_level(bos_token="<s>"), "llama", max_tokens=60)
    task = replace(reviews, shots=())
    item = encode(codec, task, task.examples()[0])
    assert item.unit_of[0] == PROTECTED
    assert item.empty().ids[0] == codec.tokenizer.bos_token_id
    assert len(item.ids) <= 60


def test_classifiers_get_what_their_tokenizer_adds():
    codec = codec_of(byte_level(bos_token="<s>"), "llama", reads_pairs=True)
    assert begins(codec) == 0


def test_a_token_that_the_model_has_no_embedding_for_is_not_used():
    tokenizer = byte_level(bos_token="<s>")
    assert begins(codec_of(tokenizer, "llama", n_ids=tokenizer.bos_token_id)) == 0
    assert begins(codec_of(tokenizer, "llama", n_ids=tokenizer.bos_token_id + 1)) == 1


def test_a_tokenizer_in_python_gets_it_too():
    assert begins(codec_of(SlowPieces(bos_token="<cls>"), "gemma")) == 1


def test_the_run_says_that_bos_was_added(tiny, reviews):
    model = tiny("llama")
    tokenizer = model.codec.tokenizer
    tokenizer.add_special_tokens({"bos_token": "<s>"})
    run = ice.evaluate(wrap(model.model, tokenizer, name="mine"), reviews, attributions=["random"], n=2, m=2)
    [message] = run.folder.manifest().messages
    assert message.startswith("mine: the tokenizer adds no <s> before a text; ICE adds it, because texts of llama")
    assert ledger_rows(run.folder)[0].input_ids[0] == tokenizer.bos_token_id


@pytest.mark.parametrize("said", [True, False, None])
def test_what_the_file_says_of_bos_is_known_where_transformers_drops_it(tiny_folder, tmp_path, said):
    folder = tmp_path / "model"
    shutil.copytree(tiny_folder("llama"), folder)
    tokenizer = byte_level(bos_token="<s>")
    tokenizer.save_pretrained(folder)
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **({} if said is None else {"add_bos_token": said})}))
    model = load_model(str(folder), device="cpu")
    assert begins(model.codec) == (0 if said is False else 1)
    because = {True: "its configuration asks for it", None: "texts of llama models usually begin with it"}
    assert [note.rpartition("because ")[2] for note in model.notes] == (
        [because[said] + "."] if said in because else []
    )
