"""Messages to a help desk, in a file beside this one."""

from pathlib import Path

from ice_eval.tasks import FileData, Task, task


@task("help-desk")
def help_desk() -> Task:
    """Complaint or thanks in a message to a help desk."""
    return Task(
        data=FileData(Path(__file__).with_name("help_desk.jsonl")),
        language="en",
        prompt="Message: {text}\nThis is a",
        label_words={"complaint": " complaint", "thanks": " thanks"},  # the space before a label belongs to it
    )
