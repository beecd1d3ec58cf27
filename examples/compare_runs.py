"""What changes from one run to another, over the examples that both hold?

Here: whether rationales are the words that speak for the label, or those that speak for or against it most strongly.

python examples/compare_runs.py
"""

import tempfile
from pathlib import Path

import ice_eval as ice

texts = [
    f"{first} {feeling} {thing} with {second} {other} ending"
    for first, second in (("such a", "one"), ("quite the", "an utterly"), ("another", "the most"))
    for feeling, other in (("gorgeous", "slow"), ("witty", "dull"), ("boring", "warm"), ("cold", "beautiful"))
    for thing in ("film", "play", "album", "novel", "show")
]
task = ice.Task(
    data=ice.Records([{"text": text} for text in texts]),
    prompt="Review: {text}\nSentiment:",
    label_words={"negative": " negative", "positive": " positive"},
)
folder = Path(tempfile.mkdtemp())
runs = {
    sign: ice.evaluate(
        "toy", task, attributions=["input-x-gradient"], operators=["delete"], k=0.3, sign=sign, out=folder / sign
    )
    for sign in ("support", "abs")
}
changes = runs["support"].compare(runs["abs"])  # on the command line: ice compare FOLDER FOLDER
print("settings that differ:", changes.attrs["settings"])
print(changes[["attribution", "operator", "difference", "p_value"]].to_string(index=False))
