"""Does the model use the passages that it cites?

The model here copies what it reads, so the truth is known: half of the citations name the passage that the claim was
copied from, the other half name another one. For a real model, replace "toy-reader" with its name.

python examples/cited_answers.py
"""

from collections import Counter

import ice_eval as ice
from ice_eval.subjects.context import CitationTask

PLANTS = (
    "Ferns Mosses Reeds Irises Sages Mints Rushes Flaxes Hemps Dills Leeks Kales Beans Oats Ryes Vines Limes Elms Oaks "
    "Pines Yews Firs Ashes Plums"
).split()
PLACES = (
    "marshes cliffs woods fields dunes moors lakes ditches groves shores creeks ridges glens heaths fens banks walls "
    "roads hills farms caves reefs bogs quays"
).split()


def answer(number: int) -> dict[str, object]:
    """Return a question with 24 passages, and an answer of two claims: one cited rightly, one wrongly."""
    places = PLACES[number:] + PLACES[:number]
    texts = [f"{plant} like {place}" for plant, place in zip(PLANTS, places, strict=True)]
    said = f"{texts[3]} [4]. {texts[8]} [20]."
    return {"id": str(number), "question": "What grows where?", "passages": [f"{t}." for t in texts], "answer": said}


task = CitationTask(data=ice.Records([answer(number) for number in range(12)]), name="plants")
run = ice.evaluate("toy-reader", task, attributions=["cited", "bm25", "random"], operators="delete")
found = run.folder.summary().citations
print(dict(Counter(claim.word for claim in found.claims)))
for line in found.carried:
    print(f"{line.attribution}: carries {line.carried:.0%} of claims, random passages {line.carried_random:.0%}")
