"""Does the answer depend on the steps of a chain of thought? For chains that exist already.

The model is a few lines here: it adds up the numbers in the steps that it is shown, so each step matters. To test a
real one, replace `Adder()` with its name, or with `ice.Served(NAME, base_url="http://localhost:8000/v1")`.

python examples/given_chains.py
"""

import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import ice_eval as ice
from ice_eval.models.toy import Toy
from ice_eval.servers import Completion, Request


class Adder(Toy):
    """Answers with the sum of what the steps bring."""

    chats = True

    def converse(self, chats: Sequence[Request]) -> Iterator[tuple[int, Completion]]:
        for place, chat in enumerate(chats):
            crates = map(int, re.findall(r"brings (\d+)", chat.messages[-1].content))
            yield place, Completion(status="ok", text=f"Answer: {sum(crates)}", finish_reason="stop")


def chain(number: int) -> dict[str, object]:
    """A question with the steps and the final answer that were written for it."""
    loads = [10 * number + place for place in range(1, 7)]
    return {
        "question": f"How many crates are in warehouse {number}?",
        "steps": [f"Load {place} brings {load} crates." for place, load in enumerate(loads, start=1)],
        "final": str(sum(loads)),
    }


path = Path(tempfile.mkdtemp()) / "chains.jsonl"
path.write_text("\n".join(json.dumps(chain(number)) for number in range(1, 25)), encoding="utf-8")
run = ice.evaluate(Adder(), responses=path, attributions=["position", "random"], m=5)
found = run.folder.summary().chains.capacity[0]
print(f"{found.verdict}: necessity {found.necessity:.2f}, sufficiency {found.sufficiency:.2f}")
