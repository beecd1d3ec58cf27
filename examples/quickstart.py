"""Which explanations of a classifier are faithful? A first run, in seconds.

The toy model adds up weights of words, so the truth is known: its gradient is faithful, and random words are not.

python examples/quickstart.py [FOLDER]     # the run is kept in FOLDER
"""

import sys

import ice_eval as ice

texts = [
    f"{opening} {feeling} {ending}"
    for opening in ("we found the film", "most people called the play", "my sister thinks this album is")
    for feeling in ("gorgeous", "great", "delightful", "boring", "terrible", "broken")
    for ending in ("and a bit slow at the start", "but warm towards the end")
]
task = ice.Task(
    data=ice.Records([{"text": text} for text in texts]),  # or ice.FileData("reviews.jsonl"), or HubData
    prompt="Review: {text}\nSentiment:",
    label_words={"negative": " negative", "positive": " positive"},
)
run = ice.evaluate(
    "toy",  # or "smollm2", a hub id, a folder, (model, tokenizer), or a function from texts to probabilities
    task,  # or a name of `ice list tasks`
    attributions=["gradient", "longest-words", "random"],
    operators=["delete", "mask-unk"],
    out=sys.argv[1] if len(sys.argv) > 1 else None,
)
print(run.summary()[["attribution", "operator", "win_rate", "p_value", "verdict"]].to_string(index=False))
print(run.example("0", attribution="gradient", operator="delete"))
