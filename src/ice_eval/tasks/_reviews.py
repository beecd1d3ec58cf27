"""What the English tasks about reviews share: worked examples, and words that say the verdict."""

import functools

from ice_eval.tasks._base import Shot
from ice_eval.tasks._data import PackageData


@functools.cache
def worked_reviews() -> tuple[Shot, ...]:
    """Four short reviews that were written for this package."""
    return tuple(Shot({"text": row["text"]}, row["label"]) for row in PackageData("demo_shots.jsonl").rows())


VERDICTS = frozenset(
    "good great best better excellent wonderful brilliant superb perfect amazing fantastic beautiful charming "
    "delightful enjoyable entertaining hilarious masterpiece masterful love loved loves recommend recommended "
    "bad worst worse terrible awful horrible dull boring poor poorly stupid lame tedious disappointing disappointment "
    "mess waste wasted fails failure unfunny pointless mediocre hate hated avoid".split()
)
