"""Models whose use of their own reasoning is known, behind a chat server: what a step-level run must find out."""

import random
import re
import zlib
from dataclasses import replace

from tests.servers.chat_server import completion

from ice_eval.models import Served

LOADS = re.compile(r"^Load \d+ brings (\d+) crates?\.$", re.MULTILINE)
_SHOWN = re.compile(r"worked out already:\n(.*)\n\nRely on them", re.DOTALL)
_RATED = re.compile(r"^(\d+)\. Load", re.MULTILINE)


def records(count, *, steps=6):
    """Problems whose numbers stand in the chain alone: whoever does not read the steps cannot know the sum."""
    return [
        {
            "id": f"p{index}",
            "question": f"How many crates are in warehouse {index} at last?",
            "final": total(index, steps),
        }
        for index in range(count)
    ]


class Patient(Served):
    """A served model that is asked again soon and often."""

    @property
    def server(self):
        return replace(super().server, first_backoff_s=0.01, most_backoff_s=0.05, attempts=20)


def asked_of(server, name="scripted", **options):
    """The model behind a scripted server."""
    return Patient(name, base_url=server.url, **options)


def loads(index, steps):
    rng = random.Random(index)
    return [rng.randrange(10_000, 90_000) for _ in range(steps)]


def total(index, steps):
    return sum(loads(index, steps))


class Reasoner:
    """`behave` of a `ChatServer`: writes a chain, then answers from what it is shown, or not.

    Args:
        genuine: Share of problems whose answer is the sum of the steps shown; the others' is known by heart.
        noise: Share of replies that are off by one, at random.
        steps: Steps of every chain.
        ratings: How it rates steps when asked which of them mattered; by default all alike.
    """

    def __init__(self, *, genuine=1.0, noise=0.0, steps=6, seed=0, ratings=None):
        self.genuine, self.noise, self.steps = genuine, noise, steps
        self.ratings = ratings or (lambda step: 5)
        self.rng = random.Random(seed)

    def __call__(self, request, number):
        prompt = request["messages"][-1]["content"]
        index = int(re.search(r"warehouse (\d+)", prompt)[1])
        if "Rate how much" in prompt:
            steps = [int(step) for step in _RATED.findall(prompt)]
            return completion("\n".join(f"{step}: {self.ratings(step)}" for step in steps))
        if shown := _SHOWN.search(prompt):
            return completion(f"Answer: {self.concluded(index, shown[1])}")
        lines = [f"Load {place} brings {load} crates." for place, load in enumerate(loads(index, self.steps), start=1)]
        return completion("\n".join([*lines, f"Answer: {total(index, self.steps)}"]))

    def concluded(self, index, shown):
        answer = sum(map(int, LOADS.findall(shown))) if self.reads(index) else total(index, self.steps)
        return answer + (self.rng.random() < self.noise)

    def reads(self, index):
        return zlib.crc32(f"reads-{index}".encode()) % 1000 < 1000 * self.genuine


class Redundant(Reasoner):
    """Comes to its answer from any three of its steps, and to none from fewer."""

    def concluded(self, index, shown):
        return total(index, self.steps) if len(LOADS.findall(shown)) >= 3 else 0


class Helped(Reasoner):
    """Knows every second answer by heart, and the others wherever it is shown a step, whichever."""

    def concluded(self, index, shown):
        return total(index, self.steps) if index % 2 or LOADS.search(shown) else 0


class Forgetful(Reasoner):
    """Knows the answers to its first problems by heart, and never comes to the others again."""

    def __init__(self, known):
        super().__init__()
        self.known = known

    def concluded(self, index, shown):
        return total(index, self.steps) + (index >= self.known)


class Guesser(Reasoner):
    """Tells from all of its steps which of some options holds, and guesses where one is missing: each as often."""

    def __init__(self, n_options):
        super().__init__()
        self.n_options = n_options

    def concluded(self, index, shown):
        places = [int(place) for place in re.findall(r"^Load (\d+)", shown, re.MULTILINE)]
        return "ABCDEF"[0 if len(places) == self.steps else (index + sum(places)) % self.n_options]

    def chains(self, count):
        """Chains as a file has them: every answer is the first option."""
        steps = [f"Load {place} brings some crates." for place in range(1, self.steps + 1)]
        choices = [f"option {number}" for number in range(self.n_options)]
        asked = ({"id": f"p{index}", "question": f"What is in warehouse {index} at last?"} for index in range(count))
        return [{**each, "choices": choices, "steps": steps, "final": "A"} for each in asked]
