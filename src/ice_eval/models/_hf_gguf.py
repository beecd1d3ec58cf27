"""GGUF files: converted by transformers once into the user's cache, then loaded like any folder."""

import hashlib
import json
import shutil
import sys
import tempfile
from pathlib import Path

import torch
import transformers

from ice_eval._controls import without_controls
from ice_eval.errors import ConfigError, ModelError
from ice_eval.files import cache_folder
from ice_eval.models._base import Model
from ice_eval.models._hf_load import first_line, from_folder, quiet
from ice_eval.models._loading import Loading


def from_gguf(path: Path, *, name: str, how: Loading) -> Model:
    """A GGUF file: converted once into the cache, then loaded like any folder."""
    with path.open("rb") as stream:
        if stream.read(4) != b"GGUF":
            raise ConfigError(f"{path} is not a GGUF file.")
    folder = cache_folder() / f"gguf-{_sha256(path)[:32]}"
    if not folder.is_dir():
        print(without_controls(f"converting {path.name} once into {folder} …"), file=sys.stderr, flush=True)
        _convert_gguf(path, folder)
    return from_folder(folder, name=name, how=how)


def _convert_gguf(path: Path, folder: Path) -> None:
    """Write the converted model beside its place, then rename: a killed conversion leaves no half of one."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".converting-", dir=folder.parent))
    try:
        with quiet():
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                path.parent, gguf_file=path.name, trust_remote_code=False
            )
            model = transformers.AutoModelForCausalLM.from_pretrained(
                path.parent, gguf_file=path.name, dtype=torch.float32, trust_remote_code=False
            )
            # A model that still carries its GGUF quantisation config refuses to be saved, plain as its weights are.
            for holder in (model, model.config):
                for attribute in ("quantization_config", "hf_quantizer", "quantization_method"):
                    if hasattr(holder, attribute):
                        delattr(holder, attribute)
            model.save_pretrained(draft)
            tokenizer.save_pretrained(draft)
            _keep_bos(path, draft)
        try:
            draft.rename(folder)
        except OSError:
            if not folder.is_dir():  # unless another process was faster: its folder is as good
                raise
    except (OSError, ValueError, RuntimeError) as exc:
        raise ModelError(f"{path} could not be converted: {first_line(exc)}") from exc
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _keep_bos(path: Path, folder: Path) -> None:
    """Write down whether a GGUF file asks for BOS: transformers does not read it."""
    import gguf  # not there on every machine that evaluates models from a folder

    field = gguf.GGUFReader(path).get_field("tokenizer.ggml.add_bos_token")
    if field is not None:
        config = folder / "tokenizer_config.json"
        said = {**json.loads(config.read_text(encoding="utf-8")), "add_bos_token": bool(field.contents())}
        config.write_text(json.dumps(said, ensure_ascii=False, indent=2), encoding="utf-8")


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
