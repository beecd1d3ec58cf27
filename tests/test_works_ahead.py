"""A model that answers later, as a GPU does: parts are written while the next one is computed."""

import pytest

from ice_eval.attributions import attributions
from ice_eval.models import Pending
from ice_eval.models.toy import Toy
from ice_eval.pipeline import TextSubject, finish, score
from ice_eval.settings import run_config
from ice_eval.tasks import load_task


class Later(Toy):
    @property
    def works_ahead(self):
        return True

    def submit(self, batch, labels, *, prefix=0):
        tokens = len(batch.ids) - prefix * len(batch)
        return Pending(lambda: self.log_scores(batch, labels, prefix=prefix), tokens)


@pytest.mark.parametrize("settings", [{"m": 10}, {"adaptive": "examples"}, {"adaptive": "dataset"}], ids=str)
def test_answers_that_come_later_are_the_same(tmp_path, settings):
    task = load_task("demo")
    methods = {name: attributions.get(name)() for name in ("gradient", "random")}
    for model, folder in ((Toy(), "now"), (Later(), "later")):
        for names in (("gradient",), ("gradient", "random")):  # the second one is added to a finished run
            config = run_config({"attributions": names, "n": 40, "nulls": ("size", "position"), **settings})
            out = tmp_path / folder
            finish(
                score(
                    config,
                    model=model,
                    subject=TextSubject(task),
                    examples=task.examples(),
                    attributions=methods,
                    out=out,
                )
            )
    now, later = (
        [(tmp_path / folder / name).read_bytes() for name in ("summary.json", "examples.parquet")]
        for folder in ("now", "later")
    )
    assert now == later
