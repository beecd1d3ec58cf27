import numpy as np
import pytest

from ice_eval.encoding import encode
from ice_eval.interop import Explanation, TextPart, align
from ice_eval.models.toy import Toy
from ice_eval.records import Example
from ice_eval.tasks import Records, Task

LABEL_WORDS = {"negative": " negative", "positive": " positive"}


@pytest.fixture(scope="session")
def item_of():
    """Fields -> what the toy codec makes of their prompt; `unit="word"` for word units."""

    def build(fields, *, codec=None, **settings):
        fields = {"text": fields} if isinstance(fields, str) else fields
        prompt = "\n".join(f"{name.title()}: {{{name}}}" for name in fields) + "\nSentiment:"
        task = Task(data=Records([fields]), prompt=prompt, label_words=LABEL_WORDS)
        return encode(codec or Toy().codec, task, Example("0", fields), **settings)

    return build


@pytest.fixture(scope="session")
def aligned(item_of):
    """Fields, tokens and scores -> the explanation in units."""

    def build(fields, tokens, scores=None, **settings):
        fields = {"text": fields} if isinstance(fields, str) else fields
        pieces = tuple(each if isinstance(each, TextPart) else TextPart(each) for each in tokens)
        values = np.arange(1.0, len(pieces) + 1) if scores is None else np.array(scores, dtype=float)
        return align(Explanation(values, pieces), item_of(fields, **settings), fields)

    return build
