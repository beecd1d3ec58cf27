import numpy as np
import pytest

from ice_eval.records import PROTECTED, Encoded, Span, SpecialIds


@pytest.fixture
def handmade():
    """Token ids of each unit -> an encoded example with a protected token before and after them."""

    def build(*units, example_id="0", texts=None, special=None):
        owners = [unit for unit, ids in enumerate(units) for _ in ids]
        texts = tuple(f"u{unit}" for unit in range(len(units))) if texts is None else tuple(texts)
        return Encoded(
            example_id=example_id,
            ids=np.array([900, *(i for ids in units for i in ids), 901], dtype=np.int64),
            segments=np.zeros(len(owners) + 2, dtype=np.int64),
            unit_of=np.array([PROTECTED, *owners, PROTECTED], dtype=np.int64),
            spans=tuple(Span("text", unit, unit + 1) for unit in range(len(units))),
            texts=texts,
            special=special or SpecialIds(unk=1, pad=2, mask=3),
        )

    return build
