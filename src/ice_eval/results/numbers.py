"""Attributions of one name are the same where their numbers are."""

import hashlib

import numpy as np

from ice_eval.results.folder import RunFolder

NUMBERS = "numbers"
"""Field of a brought attribution in a manifest: the hash of its numbers, which are known when the run is done."""


def numbers_hash(folder: RunFolder, name: str) -> str:
    """Of the numbers that an attribution gave to every example of a run, whatever the order of examples."""
    found = {
        row.example_id: row.attributions[name]
        for part in folder.parts()
        for row in folder.inputs(part)
        if name in row.attributions
    }
    digest = hashlib.sha256()
    for example_id in sorted(found):
        values = np.array(found[example_id], dtype="<f8")
        digest.update(f"{example_id!r}:{len(values)}:".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()[:32]
