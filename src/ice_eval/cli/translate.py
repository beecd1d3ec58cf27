"""`ice translate`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from ice_eval.cli._options import Device, DeviceMap, Dtype, Json, LoadIn, MaxMemory, names
from ice_eval.errors import ConfigError


def translate(
    data: Annotated[Path, typer.Option(help=".jsonl or .csv file to translate.")],
    to: Annotated[str, typer.Option(help="Language as the model writes it: fra_Latn (NLLB), fr (M2M-100, Marian).")],
    out: Annotated[Path, typer.Option(help="The .jsonl file to write.")],
    model: Annotated[
        str, typer.Option(help="Hub id (org/name, org/name@revision) or folder of an encoder-decoder that translates.")
    ] = "facebook/nllb-200-distilled-600M",
    source: Annotated[
        str | None, typer.Option("--from", help="Language of the texts; NLLB takes eng_Latn where none is given.")
    ] = None,
    fields: Annotated[
        str | None, typer.Option(help="Fields to translate, comma-separated; by default all that hold text.")
    ] = None,
    beams: Annotated[int, typer.Option(min=1, help="Beams of the search; 1 is greedy.")] = 4,
    batch: Annotated[int, typer.Option(min=1, help="Rows at a time.")] = 16,
    device: Device = "auto",
    dtype: Dtype = "auto",
    device_map: DeviceMap = None,
    max_memory: MaxMemory = None,
    load_in: LoadIn = None,
    as_json: Json = False,
) -> None:
    """Translate a data file: the same ids and labels in another language, for a run beside that of the original.

    The same command again continues where it was interrupted. `ice compare ORIGINAL TRANSLATED --by-id` sets the two
    runs side by side.
    """
    from ice_eval.cli._output import print_json, print_text
    from ice_eval.models import LoadSettings
    from ice_eval.tasks import FileData
    from ice_eval.translation import Provenance, translate_file, translated_fields

    how = LoadSettings(device=device, dtype=dtype, device_map=device_map, max_memory=max_memory, load_in=load_in)

    def load() -> Callable[[Sequence[str]], list[str]]:
        from ice_eval.models.pretrained import load_translator

        return load_translator(model, source=source, target=to, beams=beams, settings=how).translate

    def progress(done: int, total: int) -> None:
        print_text(f"{done}/{total} rows", error=True)

    given = FileData(data)
    chosen = translated_fields(given, None if fields is None else names(fields))
    if not to.strip():
        raise ConfigError("--to is empty; a language is expected, as fra_Latn.")
    provenance = Provenance(model=model, to=to, source=source, beams=beams, batch=batch, fields=chosen, load_in=load_in)
    found = translate_file(given, out, provenance, load, progress=progress)
    if as_json:
        content = {"out": str(found.path), "n": found.n, "n_before": found.n_before, "fields": list(chosen)}
        print_json({**content, "dropped": list(found.dropped)})
        return
    print_text(f"{found.path}: {found.n} examples, {', '.join(chosen)} in {to}.")
    if found.n_before:
        print_text(f"{found.n_before} of them were there from before.")
    if found.dropped:
        print_text(f"Left out, as they may point into the original texts: {', '.join(found.dropped)}.")
