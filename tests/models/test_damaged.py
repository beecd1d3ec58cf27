"""Damaged and hostile models are refused with one message, in bounded memory; nothing of them is kept."""

import json
import os
import re
import resource
import struct
import subprocess
import sys

import pytest
import transformers
from tests.damaged_models import (
    FILES,
    as_safetensors,
    copy_of,
    gguf_array,
    gguf_head,
    gguf_key,
    safetensors_of,
    with_tensor,
)
from tests.models.test_gguf import write_llama
from tests.small_tokenizers import byte_level

from ice_eval.errors import ConfigError, DataError
from ice_eval.models import load_model
from ice_eval.models.load import load_reader


@pytest.fixture(scope="module")
def parts(tiny_folder):
    """The files of a tiny GPT-2, by their short names."""
    folder = tiny_folder("gpt2")
    return {name: (folder / file).read_bytes() for name, file in FILES.items() if (folder / file).is_file()}


@pytest.fixture
def refused(tiny_folder, tmp_path):
    """Load a tiny model with other files, and return the message."""

    def load(family="gpt2", **files):
        folder = copy_of(tiny_folder(family), tmp_path / "model", **files)
        with pytest.raises(ConfigError) as caught:
            load_model(str(folder), device="cpu")
        assert str(caught.value).count("\n") == 0
        return str(caught.value)

    return load


WEIGHTS = {
    "empty": (lambda raw: b"", "model.safetensors is damaged: .*header too small"),
    "cut in the header": (lambda raw: raw[:20], "is damaged: .*header"),
    "cut in the tensors": (lambda raw: raw[:-100], "is damaged: .*not fully covered"),
    "a huge header": (lambda raw: struct.pack("<Q", 10**12) + raw[8:], "is damaged: .*header too large"),
    "a header beyond the file": (lambda raw: struct.pack("<Q", 10**8 - 1) + raw[8:], "is damaged: .*header"),
    "a header without end": (lambda raw: as_safetensors(b'{"a":' * 10**6, b""), "is damaged: .*header"),
    "a header of brackets": (lambda raw: as_safetensors(b"[" * 10**6, b""), "is damaged: .*header"),
    "no tensors": (
        lambda raw: as_safetensors({}, b""),
        "could not be loaded: its weights lack .* parts of a GPT2LMHeadModel",
    ),
    "wrong offsets": (lambda raw: with_tensor(raw, data_offsets=[0, 10**12]), "is damaged: .*"),
    "offsets backwards": (lambda raw: with_tensor(raw, data_offsets=[9, 3]), "is damaged: .*"),
    "an unknown type": (lambda raw: with_tensor(raw, dtype="F31"), "is damaged: .*unknown variant `F31`"),
    "another type": (lambda raw: with_tensor(raw, dtype="F16"), "is damaged: .*invalid shape, data type, or offset"),
    "a huge shape": (lambda raw: with_tensor(raw, shape=[2**40, 2**40]), "is damaged: .*"),
    "whole numbers": (
        lambda raw: raw.replace(b'"F32"', b'"I32"'),
        "damaged: .*weight holds values of the type I32, and config.json has no quantization_config",
    ),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_damaged_weights_are_refused(refused, parts, name):
    change, message = WEIGHTS[name]
    assert_says(refused(weights=change(parts["weights"])), message)


def assert_says(message, pattern):
    assert re.search(pattern, message), message


def test_weights_that_lack_a_tensor_are_refused(refused, parts):
    header, data = safetensors_of(parts["weights"])
    tensors = {name: each for name, each in header.items() if name != "__metadata__"}
    last = max(tensors, key=lambda name: tensors[name]["data_offsets"])
    kept = as_safetensors({n: e for n, e in tensors.items() if n != last}, data[: tensors[last]["data_offsets"][0]])
    assert_says(refused(weights=kept), r"lack \d parts of a GPT2LMHeadModel, .* they would be random")


def test_weights_of_another_shape_are_refused_with_both_shapes(refused, parts):
    config = {**json.loads(parts["config"]), "n_inner": 96}
    message = refused(config=json.dumps(config).encode())
    assert_says(message, r"do not fit its config\.json: .*mlp\.c_fc\.bias is 128 in the file and 96 by the config")


INDEXES = {
    "a pickle": ({"weight_map": {"a": "pytorch_model.bin"}}, "'pytorch_model.bin' is no .safetensors file of this"),
    "another folder": ({"weight_map": {"a": "../x.safetensors"}}, "'../x.safetensors' is no .safetensors file of this"),
    "a path": ({"weight_map": {"a": "/x.safetensors"}}, "'/x.safetensors' is no .safetensors file of this folder"),
    "a list": ({"weight_map": ["a"]}, "weight_map: an object from tensors to files is expected"),
    "nothing": ({}, "weight_map: an object from tensors to files is expected"),
    "numbers": ({"weight_map": {"a": 3}}, "'3' is no .safetensors file of this folder"),
    "a lost file": ({"metadata": {}, "weight_map": {"a": "x.safetensors"}}, "x.safetensors"),
    "no metadata": ({"weight_map": {"a": "x.safetensors"}}, "index.json: metadata: an object is expected"),
}


@pytest.mark.parametrize("name", INDEXES)
def test_an_index_names_nothing_but_safetensors_of_its_folder(refused, name, tmp_path):
    content, message = INDEXES[name]
    said = refused(weights=None, index=json.dumps(content).encode(), **{"pytorch_model.bin": b"evil"})
    assert message in said and "could not be loaded: " in said


@pytest.mark.parametrize("content", [b"", b"[]", b"[" * 10**5, b"\xff"])
def test_an_index_that_is_no_object_is_refused(refused, content):
    assert_says(refused(weights=None, index=content), "could not be loaded: .*index.json is damaged: ")


@pytest.mark.parametrize("name", ["/etc/hostname", "../model.safetensors", "pytorch_model.bin", 3])
def test_a_configuration_names_no_weights_elsewhere(refused, parts, name):
    config = json.dumps({**json.loads(parts["config"]), "transformers_weights": name}).encode()
    assert_says(refused(config=config), "could not be loaded: config.json: transformers_weights: .* is no .safetensors")


CONFIGS = {
    "empty": (b"", "could not be loaded: .*config.json"),
    "cut": (b'{"model_type": "gpt2"', "could not be loaded: .*config.json"),
    "not an object": (b"[]", "could not be loaded: "),
    "a number": (b"3", "could not be loaded: "),
    "nested without end": (b'{"a":' * 10**5, "could not be loaded: "),
    "no text": (b'{"model_type": "gpt2\xff"}', r"config\.json is damaged: .*can't decode byte 0xff"),
    "no architecture": ({"architectures": None}, "model of no stated kind"),
    "architectures that are no list": ({"architectures": 7}, "could not be loaded: .*architectures: a list of names"),
    "an architecture that is no list": ({"architectures": "GPT2LMHeadModel"}, "architectures: a list of names is exp"),
    "architectures that are no names": (
        {"architectures": [3]},
        "could not be loaded: .*architectures: a list of names",
    ),
    "an unknown model_type": ({"model_type": "unheard-of"}, "could not be loaded: .*`unheard-of`"),
    "a text for a size": ({"n_embd": "wide"}, "could not be loaded: .*'n_embd'.* expected int, got str"),
    "no width": ({"n_embd": 0}, "could not be loaded: "),
    "no heads": ({"n_head": 0}, "could not be loaded: .*"),
    "fewer layers than stored": ({"n_layer": 2}, r"more layers than its config.json states: transformer\.h\.2\."),
    "no layers": ({"n_layer": 0}, r"more layers than its config.json states: transformer\.h\.0\."),
    "negative layers": ({"n_layer": -3}, "config.json: n_layer: a number from 0 on is expected, got -3"),
    "10^12 layers": ({"n_layer": 10**12}, r"config\.json: n_layer: at most 1,048,576 are expected, got 1,000,000,000,"),
    "10^6 layers": ({"n_layer": 10**6}, r"describes a model of [\d,]+ modules and more, too many for its weights"),
    "10^12 labels": ({"num_labels": 10**12}, "config.json: num_labels: at most"),
    "10^12 parameters": (
        {"vocab_size": 10**10},
        r"describes a model of 3.* values, too many for its weights \(\d+ tens",
    ),
    "10^12 positions": ({"n_positions": 10**9}, "describes a model of .* values, too many for its weights"),
    "sizes that overflow": ({"n_embd": 2**63}, "could not be loaded: "),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_hostile_configuration_is_refused(refused, parts, name):
    content, message = CONFIGS[name]
    if isinstance(content, dict):
        content = json.dumps({**json.loads(parts["config"]), **content}).encode()
    assert_says(refused(config=content), message)


@pytest.mark.parametrize("sizes", [{"n_layer": 10**6}, {"vocab_size": 10**13}, {"num_labels": 10**12}])
def test_a_reader_that_needs_no_weights_is_bounded_too(tiny_folder, parts, tmp_path, sizes):
    content = json.dumps({**json.loads(parts["config"]), **sizes}).encode()
    folder = copy_of(tiny_folder("gpt2"), tmp_path / "model", config=content)
    with pytest.raises(ConfigError, match="could not be loaded: config.json"):
        load_reader(str(folder))


TOKENIZERS = {
    "empty": (lambda raw: b"", "could not be loaded: "),
    "cut": (lambda raw: raw[:-200], "could not be loaded: "),
    "an array": (lambda raw: b"[]", "could not be loaded: "),
    "no vocabulary": (lambda raw: raw.replace(b'"vocab"', b'"words"'), "could not be loaded: "),
    "nested without end": (lambda raw: b"[" * 10**5, "could not be loaded: "),
    "a text": (lambda raw: b'"x"', r"tokenizer\.json is damaged: an object is expected, not str"),
}


def test_a_tokenizer_that_makes_texts_grow_without_end_is_refused_unused(refused, parts):
    step = {"type": "Replace", "pattern": {"Regex": "."}, "content": "a" * 10}
    content = {**json.loads(parts["tokenizer"]), "normalizer": {"type": "Sequence", "normalizers": [step] * 12}}
    message = refused(tokenizer=json.dumps(content).encode())
    assert_says(
        message, "could not be loaded: tokenizer.json: its normalizer writes up to 1,000,000,000,000 characters"
    )


@pytest.mark.parametrize("changes", [{}, {"config": None}])
def test_an_adapter_is_not_left_out_in_silence(refused, changes):
    message = refused(**changes, **{"adapter_config.json": b"{}"})
    assert_says(message, "holds an adapter of peft .* save what its `merge_and_unload` returns")


@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_damaged_tokenizer_is_refused(refused, parts, name):
    change, message = TOKENIZERS[name]
    assert_says(refused(tokenizer=change(parts["tokenizer"])), message)


@pytest.mark.parametrize("file", ["config", "weights", "tokenizer", "tokenizer_config"])
@pytest.mark.parametrize("linked", [False, True])
def test_a_pipe_in_the_place_of_a_file_is_refused_unread(tiny_folder, tmp_path, file, linked):
    folder, pipe = copy_of(tiny_folder("gpt2"), tmp_path / "model"), tmp_path / "pipe"
    path = folder / FILES[file]
    path.unlink(missing_ok=True)
    os.mkfifo(pipe if linked else path)
    if linked:
        path.symlink_to(pipe)
    with pytest.raises(ConfigError, match=rf"could not be loaded: {path.name} is not a regular file\.$"):
        load_model(str(folder), device="cpu")


def test_a_folder_of_links_is_loaded(tiny_folder, tmp_path):
    """As in the cache of the hub."""
    (tmp_path / "model").mkdir()
    for path in tiny_folder("gpt2").iterdir():
        (tmp_path / "model" / path.name).symlink_to(path)
    assert load_model(str(tmp_path / "model"), device="cpu").name == "model"


def test_a_tokenizer_that_cannot_tokenize_is_refused(refused, tiny_folder):
    content = json.loads((tiny_folder("bert") / "tokenizer.json").read_text())
    content["model"]["vocab"] = {}
    assert_says(refused("bert", tokenizer=json.dumps(content).encode()), "could not be loaded: .*UNK")


def test_a_tokenizer_that_fails_on_a_text_is_refused_where_it_does(tiny_folder, tmp_path):
    content = json.loads((tiny_folder("bert") / "tokenizer.json").read_text())
    content["model"]["unk_token"] = "[NONE]"
    folder = copy_of(tiny_folder("bert"), tmp_path / "model", tokenizer=json.dumps(content).encode())
    codec = load_model(str(folder), device="cpu").codec
    with pytest.raises(DataError, match=r"the tokenizer cannot read the text '☃ snow': WordPiece error: Missing .*\.$"):
        codec.tokenize("☃ snow")


def test_the_tokenizer_of_another_model_is_refused(refused, parts):
    content = json.loads(parts["tokenizer"])
    content["model"]["vocab"] |= {f"more{n}": 500 + n for n in range(1000)}
    message = refused(tokenizer=json.dumps(content).encode())
    assert_says(
        message, r"has 1,500 tokens, and the model has embeddings for 508: it is the tokenizer of another model"
    )


@pytest.mark.parametrize("family", ["gpt2", "bert"])
def test_a_token_without_an_embedding_is_named(tiny_folder, tmp_path, family):
    content = json.loads((tiny_folder(family) / "tokenizer.json").read_text())
    plain = dict.fromkeys(["single_word", "lstrip", "rstrip", "normalized", "special"], False)
    size = len(content["model"]["vocab"])
    for place, word in enumerate([*(f"other{n}" for n in range(20)), "zebra"]):
        content["added_tokens"].append({"id": size + place, "content": word, **plain})
    folder = copy_of(tiny_folder(family), tmp_path / "model", tokenizer=json.dumps(content).encode())
    codec = load_model(str(folder), device="cpu").codec
    codec.tokenize("a film")
    with pytest.raises(DataError, match="none for the token 'zebra' of this text"):
        codec.tokenize("a zebra")


@pytest.mark.parametrize("template", ["{{ 1 / 0 }}", "{{ messages + 1 }}", "{{ 'a' * (10**15) }}", "{% for %}"])
def test_a_chat_template_that_fails_is_refused(tiny_folder, tmp_path, template):
    content = json.dumps({"chat_template": template, "tokenizer_class": "PreTrainedTokenizerFast"}).encode()
    folder = copy_of(tiny_folder("gpt2"), tmp_path / "model", tokenizer_config=content)
    with pytest.raises(ConfigError, match=r"the chat template refuses these turns: \w.*[^.]\.$"):
        load_model(str(folder), device="cpu").codec.chat_frame([])


# ------------------------------------------------------------------------------------------------------------- GGUF

ARCHITECTURE = gguf_key("general.architecture", 8, struct.pack("<Q", 5) + b"llama")
GGUFS = {
    "only its magic": (b"GGUF", "ends before its header does, after 4 bytes"),
    "a version of 99": (gguf_head(version=99), "its version is 99; 2 or 3 is expected"),
    "keys beyond the file": (gguf_head(keys=2**63), r"its header counts 10\^18 keys, more than the file holds"),
    "tensors beyond the file": (gguf_head(keys=0, tensors=2**60), r"counts 10\^18 tensors, more than the file"),
    "a key beyond the file": (gguf_head() + struct.pack("<Q", 10**12), "more than the file holds|ends before"),
    "a string beyond the file": (
        gguf_head() + gguf_key("a", 8, struct.pack("<Q", 2**62)) + b"x" * 99,
        "it ends before its header does",
    ),
    "an array beyond the file": (
        gguf_head() + gguf_key("a", 9, gguf_array(4, 2**62)) + b"x" * 99,
        r"counts 10\^18 values of an array",
    ),
    "arrays in arrays": (gguf_head() + gguf_key("a", 9, gguf_array(9, 1) * 50), "a value has the unknown type 9"),
    "an unknown type": (gguf_head() + gguf_key("a", 77, b"x" * 99), "a value has the unknown type 77"),
    "a huge tensor": (
        gguf_head(keys=0, tensors=1) + struct.pack("<Q1sIQQIQ", 1, b"a", 2, 2**40, 2**40, 0, 0),
        r"a tensor has 10\^24 values",
    ),
    "nothing but a name": (gguf_head(keys=1) + ARCHITECTURE, "could not be loaded: "),
    "a number for a name": (
        gguf_head() + gguf_key("general.architecture", 4, struct.pack("<I", 7)),
        "its general.architecture is not text",
    ),
}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ICE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def assert_refused(path, message, cache):
    with pytest.raises(ConfigError, match=f"the model in .* could not be loaded: .*(?:{message})") as caught:
        load_model(str(path), device="cpu")
    assert "\n" not in str(caught.value)
    assert not cache.exists() or list(cache.iterdir()) == []


@pytest.mark.parametrize("name", GGUFS)
def test_a_hostile_gguf_is_refused_and_leaves_nothing_in_the_cache(tmp_path, cache, name):
    content, message = GGUFS[name]
    (tmp_path / "tiny.gguf").write_bytes(content)
    assert_refused(tmp_path / "tiny.gguf", message.removeprefix("could not be loaded: "), cache)


@pytest.fixture(scope="module")
def sound_gguf(tmp_path_factory):
    path = tmp_path_factory.mktemp("gguf") / "sound.gguf"
    write_llama(path, byte_level(bos_token="<s>"), bos="<s>", add_bos=True)
    return path.read_bytes()


def with_number(raw, name, value):
    """Return a GGUF file with another 32-bit number under a key."""
    stop = raw.index(name) + len(name) + 4
    return raw[:stop] + struct.pack("<I", value) + raw[stop + 4 :]


def with_layers(raw, count):
    return with_number(raw, b"llama.block_count", count)


def with_tensor_at(raw, *, kind=None, offset=None):
    """Return a GGUF file whose tensor of queries has another type, or begins elsewhere."""
    name = b"blk.0.attn_q.weight"
    stop = raw.index(name) + len(name) + 4 + 2 * 8
    found = struct.unpack("<IQ", raw[stop : stop + 12])
    head = struct.pack("<IQ", found[0] if kind is None else kind, found[1] if offset is None else offset)
    return raw[:stop] + head + raw[stop + 12 :]


CHANGES = {
    "cut in the tensors": (lambda raw: raw[:-4000], r"its tensors need [\d,]+ bytes, and it has [\d,]+"),
    "a tensor inside another": (lambda raw: with_tensor_at(raw, offset=32), "attn_q.weight begins at byte 32 in place"),
    "a tensor before the first": (lambda raw: with_tensor_at(raw, offset=2**64 - 32), "attn_q.weight begins at byte"),
    "a tensor of another type": (
        lambda raw: with_tensor_at(raw, kind=2),
        "attn_k.weight begins at byte .* in place",
    ),
    "a tensor of no type": (lambda raw: with_tensor_at(raw, kind=99), "a tensor has the unknown type 99"),
    "no layers": (lambda raw: with_layers(raw, 0), "is of a layer beyond its block_count of 0"),
    "cut in the header": (lambda raw: raw[:700], "it ends before its header does|more than the file holds"),
    "10^8 layers": (lambda raw: with_layers(raw, 10**8), "num_hidden_layers: at most 1,048,576 are expected"),
    "10^5 layers": (lambda raw: with_layers(raw, 10**5), "describes a model of .* too many for its weights"),
    "other heads": (lambda raw: with_number(raw, b"llama.attention.head_count", 1), "do not fit its config"),
    "no width": (lambda raw: with_number(raw, b"llama.embedding_length", 0), "could not be loaded: "),
    "a wider layer": (
        lambda raw: with_number(raw, b"llama.feed_forward_length", 96),
        "64 × 32 in the file and 96 × 32",
    ),
    "a lost tensor": (
        lambda raw: raw.replace(b"blk.0.attn_q.weight", b"blk.0.attn_z.weight"),
        "could not be loaded: its weights lack 1 parts",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_gguf_is_refused_and_leaves_nothing_in_the_cache(tmp_path, cache, sound_gguf, name):
    change, message = CHANGES[name]
    assert change(sound_gguf) != sound_gguf
    (tmp_path / "tiny.gguf").write_bytes(change(sound_gguf))
    with pytest.raises(ConfigError, match=message):
        load_model(str(tmp_path / "tiny.gguf"), device="cpu")
    assert not cache.exists() or list(cache.iterdir()) == []


# ----------------------------------------------------------------------------------------------------------- memory


def with_empty_tensors(raw, count):
    header, data = safetensors_of(raw)
    empty = {"dtype": "U8", "shape": [0], "data_offsets": [len(data)] * 2}
    return as_safetensors({**header, **{f"empty{number}": empty for number in range(count)}}, data)


_LIMITED = """
import resource, sys
from ice_eval.errors import ConfigError
from ice_eval.models import load_model
import transformers, torch
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for ref in sys.argv[1:]:
    try:
        load_model(ref, device="cpu")
        raise SystemExit(f"{ref} was loaded")
    except ConfigError as exc:
        print(exc)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_bombs_take_little_memory_and_time(tiny_folder, parts, tmp_path):
    bombs = {
        "layers": {"n_layer": 10**6}, "labels": {"num_labels": 10**9}, "width": {"n_embd": 10**6},
        "positions": {"n_positions": 10**9}, "words": {"vocab_size": 10**11},
    }  # fmt: skip
    config, refs = json.loads(parts["config"]), []
    for name, changes in bombs.items():
        content = json.dumps({**config, **changes}).encode()
        refs.append(str(copy_of(tiny_folder("gpt2"), tmp_path / name, config=content)))
    for name, content in (("keys", gguf_head(keys=2**40)), ("array", GGUFS["an array beyond the file"][0])):
        (tmp_path / f"{name}.gguf").write_bytes(content + b"\0" * 1000)
        refs.append(str(tmp_path / f"{name}.gguf"))
    layers = json.dumps({**config, "n_layer": 10**5}).encode()
    many = with_empty_tensors(parts["weights"], 10**5)  # so many that they would allow for two million modules
    refs.append(str(copy_of(tiny_folder("gpt2"), tmp_path / "tensors", config=layers, weights=many)))
    deep = as_safetensors(b'{"a":' * 10**6, b"")
    refs.append(str(copy_of(tiny_folder("gpt2"), tmp_path / "deep", weights=deep)))

    def limited():
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))

    done = subprocess.run(
        [sys.executable, "-c", _LIMITED, *refs], capture_output=True, text=True, preexec_fn=limited, check=False
    )
    *messages, more = done.stdout.splitlines()
    assert done.returncode == 0 and len(messages) == len(refs), done.stderr
    assert int(more) < 700_000  # kilobytes


def test_a_model_in_several_files_is_loaded(tiny_folder, tmp_path):
    model = transformers.AutoModelForCausalLM.from_pretrained(tiny_folder("llama"))
    folder = copy_of(tiny_folder("llama"), tmp_path / "model", weights=None)
    model.save_pretrained(folder, max_shard_size="60KB")
    assert len(list(folder.glob("*.safetensors"))) > 2
    whole, several = (load_model(str(each), device="cpu") for each in (tiny_folder("llama"), folder))
    assert several.fingerprint == whole.fingerprint
