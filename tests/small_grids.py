"""Small grids of the toy model."""

import json

WORDS = ("gorgeous", "awful", "witty", "boring", "great", "dull")


def write_reviews(path, n=6, **fields):
    """Texts with words that the toy knows, each with a weight of its own so that few sets tie; all have `fields`."""
    lines = [
        {"text": f"the {WORDS[i % 6]} plot and a {WORDS[(i + 2) % 6]} cast with one {WORDS[(2 * i + 1) % 6]} scene {i}"}
        for i in range(n)
    ]
    path.write_text("".join(json.dumps(line | {"label": i % 2} | fields) + "\n" for i, line in enumerate(lines)))
    return path


def content(data, **changes):
    """A grid of one model and two runs."""
    return {
        "models": ["toy"],
        "tasks": [{"task": "sst2", "data": str(data)}],
        "prompts": ["standard", "minimal"],
        "attributions": ["attention", "random"],
        "n": 6,
        "m": 5,
    } | changes
