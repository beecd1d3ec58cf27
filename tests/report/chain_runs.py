"""Step-level runs with known steps, for reports: texts that hold markup, and a step that no answer rests on."""

from tests.servers.chat_server import ChatServer, completion
from tests.subjects.chain.reasoners import Reasoner, asked_of, records

from ice_eval.api import evaluate
from ice_eval.tasks import Records

SCRIPT = "<script>alert('{}')</script>"
EVERY = ("delete", "replace", "shuffle", "truncate")


class Marked(Reasoner):
    """Begins every chain with a step of markup that says nothing, and every reply with markup."""

    def __call__(self, request, number):
        said = super().__call__(request, number)
        prompt = request["messages"][-1]["content"]
        text = said["choices"][0]["message"]["content"]
        if "worked out already" in prompt:
            return completion(f"{SCRIPT.format('reply')}\n{text}")
        return said if "Rate how much" in prompt else completion(f"Note {SCRIPT.format('chain')} first.\n{text}")


class Shy(Marked):
    """Gives every fourth reply no answer."""

    def concluded(self, index, shown):
        known = super().concluded(index, shown)
        return "none that I know" if self.rng.random() < 0.25 else known


def chain_run(out, *, behave=None, count=5, steps=5, **fields):
    """The folder of a run against a scripted server."""
    questions = [
        {**record, "question": f"{record['question']} {SCRIPT.format('question')}"}
        for record in records(count, steps=steps)
    ]
    settings = {"operators": EVERY, "k": (0.2, 0.5), "m": 6, "attributions": ("position", "leave-one-out"), **fields}
    with ChatServer(behave or Marked(steps=steps)) as asked:
        found = evaluate(asked_of(asked), "gsm8k", data=Records(questions), n=count, out=out, **settings)
    return found.folder
