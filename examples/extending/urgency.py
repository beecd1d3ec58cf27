"""Is a message to a shop urgent? A task is its data, its prompt and its label words."""

from ice_eval.tasks import Records, Task, task

MESSAGES = {
    "the gate is broken and my horse runs on the road": "urgent",
    "there is a terrible smell of gas in your cellar": "urgent",
    "the bad brakes you sold me failed again today": "urgent",
    "my order is a mess and the guests come at noon": "urgent",
    "thanks for the great shoes I wear them every day": "normal",
    "which of your maps shows the best way to the lake": "normal",
    "a good book you sent me last spring is on page nine": "normal",
    "do you still have the warm socks from the window": "normal",
}


@task("urgency")
def urgency() -> Task:
    """Urgency of a message to a shop."""
    return Task(
        data=Records([{"text": text, "label": label} for text, label in MESSAGES.items()]),
        language="en",
        prompt="Message: {text}\nIs it urgent or normal? It is",
        label_words={"urgent": " urgent", "normal": " normal"},  # the space in front belongs to the label
    )
