"""Sentiment in nine languages: six data sets, and three prompts for texts of the user's own."""

from ice_eval.tasks._base import Shot, Task, TaskFactory, tasks
from ice_eval.tasks._data import HubData, NoData, PackageData, Row


def _factory(row: Row) -> TaskFactory:
    """Return a function that makes the task of a row of `sentiment.jsonl`; its label words are of negative first."""

    def sentiment() -> Task:
        data = dict(row.get("data") or {})
        labels = {value: name for name, value in data.pop("labels", {}).items()}
        return Task(
            data=HubData(**data, labels=labels) if data else NoData(),
            language=row["language"],
            prompt=row["prompt"],
            label_words=row["words"],
            worked=tuple(Shot({"text": text}, label) for label, text in row["worked"].items()),
            lexicon=frozenset(row["lexicon"].split()),
        )

    sentiment.__doc__ = row["description"]
    return sentiment


for _row in PackageData("sentiment.jsonl").rows():
    tasks.add(_row["name"], _factory(_row))
