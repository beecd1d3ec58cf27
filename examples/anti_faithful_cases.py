"""Does the model use the word that its gradient names? Four reviews in which it names the wrong one.

The paper shows four film reviews in which the gradient of Llama 3.1 names a function word ("a", "uses") and ignores the
words that carry the sentiment. This script tests that word with SmolLM2, next to the word that a reader would choose.

python examples/anti_faithful_cases.py [MODEL]
"""

import sys
from collections.abc import Callable
from dataclasses import replace

import ice_eval as ice
from ice_eval.records import Encoded
from ice_eval.tasks import load_task

CASES = {  # text -> the word that the faulty explanation names, and the one that a reader would name
    "a gorgeous, witty, seductive movie": ("a", "gorgeous"),
    "a tender, heartfelt drama": ("a", "heartfelt"),
    "a fast, funny, enjoyable ride": ("a", "enjoyable"),
    "uses high comedy to reach real poignance": ("uses", "poignance"),
}


def naming(place: int) -> Callable[[Encoded], list[float]]:
    """An explanation that gives everything to one word."""
    words = {str(index): pair[place] for index, pair in enumerate(CASES.values())}
    return lambda item: [float(text == words[item.example_id]) for text in item.texts]


demo = load_task("demo")  # its prompt has four worked examples, and infill takes its words from the demo's reviews
others = [{**example.fields, "label": demo.labels[example.gold or 0]} for example in demo.examples()]
task = replace(demo, data=ice.Records([{"text": text} for text in CASES] + others), name="cases")
run = ice.evaluate(
    sys.argv[1] if len(sys.argv) > 1 else "smollm2",
    task,
    attributions={"function word": naming(0), "reader's word": naming(1)},
    unit="word",
    n=len(CASES),
    n_fills=20,  # every other word has a fill of its own
)
for (text, _), lines in zip(CASES.items(), run.examples().groupby("example_id", sort=True), strict=True):
    print(text)
    for line in lines[1][lines[1].operator != "all"].itertuples():
        print(
            f"  {line.attribution:<14} {line.operator:<7} win rate {100 * line.win_rate:3.0f} % of {line.m} sets   "
            f"d = {line.effect_size:+.1f}"
        )
