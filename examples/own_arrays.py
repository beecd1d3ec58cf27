"""Are my own explanations faithful? They are arrays here: a number per word of each text.

python examples/own_arrays.py
"""

import numpy as np

import ice_eval as ice

texts = [
    f"{opening} {feeling} {ending}"
    for opening in ("we found the film", "most people called the play", "my sister thinks this album is")
    for feeling in ("gorgeous", "great", "delightful", "boring", "terrible", "broken")
    for ending in ("and a bit slow at the start", "but warm towards the end")
]
task = ice.Task(
    data=ice.Records([{"id": f"review-{place}", "text": text} for place, text in enumerate(texts)]),
    prompt="Review: {text}\nSentiment:",
    label_words={"negative": " negative", "positive": " positive"},
    name="my reviews",
)
feelings = {"gorgeous", "great", "delightful", "boring", "terrible", "broken"}
one_per_text = [np.array([float(word in feelings) for word in text.split()]) for text in texts]
by_id = {f"review-{place}": np.arange(len(text.split()))[::-1] for place, text in enumerate(texts)}

run = ice.evaluate(
    "toy",
    task,
    attributions={"words of feeling": one_per_text, "first words": by_id, "random": None},  # None: the one of that name
    operators=["delete"],
    unit="word",
)
print(run.summary()[["attribution", "n", "win_rate", "verdict"]].to_string(index=False))
