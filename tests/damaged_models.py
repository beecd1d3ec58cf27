"""Models whose files are cut, changed or hostile: how each is made from a sound one."""

import json
import shutil
import struct

KEYS = ("hidden_size", "n_embd", "num_attention_heads", "n_head", "num_hidden_layers", "n_layer")


def copy_of(folder, target, **files):
    """Copy a model, with other bytes in some files (`config_json=b""`); None removes one."""
    shutil.copytree(folder, target)
    for name, content in files.items():
        path = target / FILES.get(name, name)
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
    return target


FILES = {
    "config": "config.json", "weights": "model.safetensors", "index": "model.safetensors.index.json",
    "tokenizer": "tokenizer.json", "tokenizer_config": "tokenizer_config.json",
}  # fmt: skip


def safetensors_of(raw):
    """Return the header of a safetensors file, and the bytes after it."""
    (length,) = struct.unpack("<Q", raw[:8])
    return json.loads(raw[8 : 8 + length]), raw[8 + length :]


def as_safetensors(header, data, *, length=None):
    content = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(content) if length is None else length) + content + data


def with_tensor(raw, **changes):
    """Return a safetensors file whose first tensor states something else."""
    header, data = safetensors_of(raw)
    first = next(name for name in header if name != "__metadata__")
    return as_safetensors({**header, first: {**header[first], **changes}}, data)


def gguf_head(*, version=3, tensors=0, keys=1):
    return b"GGUF" + struct.pack("<IQQ", version, tensors, keys)


def gguf_key(name, kind, value):
    return struct.pack("<Q", len(name)) + name.encode() + struct.pack("<I", kind) + value


def gguf_array(kind, count, content=b""):
    return struct.pack("<IQ", kind, count) + content
