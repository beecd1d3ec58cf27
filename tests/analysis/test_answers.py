import json

import ice_eval as ice
from ice_eval.analysis.checks import answered

REVIEWS = ["a good film", "a bad and dull plot", "fine actors and a great evening", "an awful scene in a good film"]


def lines(folder, groups):
    """Two runs with other random sets: the second stands for the adapted copy."""
    folder.mkdir()
    rows = [{"text": text, "group": group} for text, group in zip(REVIEWS, groups, strict=True)]
    (folder / "reviews.jsonl").write_text("\n".join(map(json.dumps, rows)))
    settings = {"data": folder / "reviews.jsonl", "attributions": ["random"], "operators": ["delete"], "m": 3}
    runs = [ice.evaluate("toy", "demo", **settings, seed=seed, out=folder / str(seed)).folder for seed in (0, 1)]
    return {line.operator: line for line in answered(*runs)}


def test_examples_of_one_group_say_nothing_about_other_groups(tmp_path):
    alone = lines(tmp_path / "alone", groups=["a", "b", "c", "d"])["delete"]
    together = lines(tmp_path / "together", groups=["a"] * 4)["delete"]
    assert together.difference == alone.difference
    assert alone.difference_ci is not None
    assert together.difference_ci is None and not together.learnt
