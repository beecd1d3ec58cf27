"""Any text × tokenizer × unit × operator: kept units stay, order stays, the template stays, counts match.

A case is one text under one tokenizer, one kind of unit and one operator, with several sets of units kept. The ordinary
part is the same every time; `make fuzz` draws more, and other texts every time, on the real tokenizers too.
"""

from collections import Counter

import numpy as np
import pytest
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fetch_tokenizers import FAMILIES, folder, is_there
from tests.fuzz.laws import (
    APART,
    LONGEST,
    PROMPTS,
    Rows,
    check_template,
    check_template_characters,
    check_units,
    example_of,
    fills_for,
    task_of,
    usable,
)
from tests.fuzz.odd_texts import texts
from tests.helpers import word_pieces
from tests.rows import ledger_of
from tests.small_tokenizers import SlowPieces, SlowWords, byte_level, joining, sentence_piece

from ice_eval.encoding import encode
from ice_eval.models.codec import HFCodec
from ice_eval.models.function import WordCodec
from ice_eval.models.toy import ToyCodec
from ice_eval.operators import operators
from ice_eval.results import RunFolder
from ice_eval.results.ledger import NO_NAMES, Names

ON_TEXTS = [name for name, each in operators.items() if "token" in each.units]
SMALL = {
    "byte level": byte_level,
    "joining": joining,
    "bpe": lambda: sentence_piece("bpe"),
    "unigram": lambda: sentence_piece("unigram"),
    "python": SlowPieces,
    "python words": SlowWords,
    "word pieces": word_pieces,
}
LOSSY = {"python words"}
"""What is unknown to these has no spelling, so nobody can say which characters it stands for."""
EXACT = {"byte level", "joining", "bpe", "unigram"}
"""Tokens of these spell every character of the template."""
UNREADABLE = {*LOSSY, "python"}
"""What these decode is not the text."""
BARE = {"toy": ToyCodec, "words": WordCodec}
CODECS = [*SMALL, *BARE]
N_TEXTS = {"ordinary": 70, "slow": 300}
"""Per tokenizer."""
N_CASES = 2_000
"""That the ordinary part has at least."""


@pytest.fixture(scope="module")
def codec_named():
    made = {}

    def codec(name):
        if name not in made:
            pairs = name == "word pieces"
            made[name] = BARE[name]() if name in BARE else HFCodec(SMALL[name](), reads_pairs=pairs, max_tokens=LONGEST)
        return made[name]

    return codec


def fuzz(codec, path, *, n_texts, fixed, covers=True, exact: bool | None = True):
    """Check `n_texts` texts under every operator; returns the number of cases of each operator and unit.

    Rows go through the files of a run folder and back at the end.
    """
    counts, ledger = Counter(), []
    known = [name for name in ON_TEXTS if usable(name, codec.special)]

    @settings(max_examples=n_texts, derandomize=fixed, database=None)
    @given(
        text=texts(),
        other=texts(max_pieces=4),
        prompt=st.sampled_from(PROMPTS),
        unit=st.sampled_from(["token", "word"]),
        scope=st.sampled_from(["content", "content", "prompt"]),
        seed=st.integers(0, 999),
    )
    def law(text, other, prompt, unit, scope, seed):
        task = task_of(prompt)
        item = encode(codec, task, example_of(task, text, other), unit=unit, scope=scope)
        check_units(item, unit=unit, covers=covers and (scope == "prompt" or prompt in APART))
        check_template(codec, task, item)
        fills = fills_for(codec, task, item, unit=unit, scope=scope, seed=seed)
        keep = np.random.default_rng(seed).random((4, item.n_units)) < 0.5
        keep = np.concatenate([keep, np.ones((1, item.n_units), bool), np.zeros((1, item.n_units), bool)])
        for name in known:
            if fills is None and operators.get(name).needs_fills:
                continue
            rows = Rows(item, name, keep, fills)
            rows.check()
            if scope == "content" and exact is not None:
                check_template_characters(codec, task, rows.inputs(), exact=exact)
            ledger.extend(rows.ledger())
            counts[name, unit] += 1

    law()
    written = RunFolder(path)
    for name in ("inputs", "ledger"):
        (path / name).mkdir(parents=True)
    ids = tuple(dict.fromkeys(row.key.example_id for row in ledger))
    written.write_part(0, [], ledger_of(ledger, Names(ids, (), (), tuple(known))), {})
    assert written.ledger(0, NO_NAMES, inputs=True).records() == ledger
    return counts


def exactness(name):
    return None if name in UNREADABLE else name in EXACT


def checked(counts, codec, n_texts, record_property):
    """Every operator that the model can be asked for was tried with both units, on all texts but a few."""
    known = {name for name in ON_TEXTS if usable(name, codec.special)}
    assert set(counts) == {(name, unit) for name in known for unit in ("token", "word")}
    total = sum(counts.values())
    assert total >= 0.9 * n_texts * len(known)
    record_property("fuzz_cases", total)


@pytest.mark.parametrize("name", CODECS)
def test_no_law_is_broken_by_any_text(name, codec_named, tmp_path, record_property):
    codec, n_texts = codec_named(name), N_TEXTS["ordinary"]
    counts = fuzz(codec, tmp_path, n_texts=n_texts, fixed=True, covers=name not in LOSSY, exact=exactness(name))
    checked(counts, codec, n_texts, record_property)


def test_the_ordinary_part_has_two_thousand_cases(codec_named):
    n_operators = [sum(usable(operator, codec_named(name).special) for operator in ON_TEXTS) for name in CODECS]
    assert 0.9 * N_TEXTS["ordinary"] * sum(n_operators) >= N_CASES


@pytest.mark.slow
@pytest.mark.parametrize("name", CODECS)
def test_no_law_is_broken_by_many_other_texts(name, codec_named, tmp_path, record_property):
    codec, n_texts = codec_named(name), N_TEXTS["slow"]
    counts = fuzz(codec, tmp_path, n_texts=n_texts, fixed=False, covers=name not in LOSSY, exact=exactness(name))
    checked(counts, codec, n_texts, record_property)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_no_law_is_broken_on_real_tokenizers(family, tmp_path, record_property):
    if not is_there(family):
        pytest.skip(f"needs the tokenizer in {folder(family)}: make tokenizers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder(family))
    codec = HFCodec(tokenizer, reads_pairs=False, max_tokens=LONGEST)
    n_texts = N_TEXTS["slow"]
    checked(fuzz(codec, tmp_path, n_texts=n_texts, fixed=False), codec, n_texts, record_property)
